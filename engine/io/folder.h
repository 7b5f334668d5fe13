/* folder: the names of a folder's files, without heap. Start-up only. */
#ifndef IO_FOLDER_H
#define IO_FOLDER_H

#include <stdbool.h>

enum { FOLDER_NAME_BYTES_MAX = 256, FOLDER_READ_BYTES = 4096 };

struct folder_walk {
    int descriptor;
    long used, at; /* bytes in `records`, and of the next one */
    _Alignas(8) char records[FOLDER_READ_BYTES];
};

/* False with errno set. */
bool folder_open(struct folder_walk *walk, const char *path);

/* The next name (any order) that ends in `suffix`; false at the end. */
bool folder_next(struct folder_walk *walk, const char *suffix, char name[FOLDER_NAME_BYTES_MAX]);

void folder_close(struct folder_walk *walk);

#endif
