/* fuzz: what the fuzz targets share. A target is LLVMFuzzerTestOneInput; run.sh builds corpora and starts them. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Ends the run when a property does not hold; in every build. */
static inline void fuzz_demand(int holds, const char *property)
{
    if (!holds) {
        (void)fprintf(stderr, "does not hold: %s\n", property);
        abort();
    }
}

/* A copy of exactly this size, so that a sanitizer sees each byte read or written behind it. */
static inline void *fuzz_copy(const void *data, size_t bytes)
{
    void *copy = malloc(bytes > 0 ? bytes : 1);

    fuzz_demand(copy != NULL, "there is memory");
    if (bytes > 0) {
        memcpy(copy, data, bytes);
    }
    return copy;
}

/* Memory that lives as long as the program; it is remembered, so it is no leak. */
static inline void *fuzz_room(size_t bytes)
{
    static void *rooms[32];
    static size_t room_count;
    void *room = calloc(1, bytes);

    fuzz_demand(room != NULL && room_count < sizeof rooms / sizeof rooms[0], "there is memory");
    rooms[room_count++] = room;
    return room;
}

/* A whole file, NUL behind it; ends the run if it cannot be read. */
static inline char *fuzz_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;

    fuzz_demand(file != NULL, path);
    (void)fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    text = fuzz_room(*bytes + 1);
    fuzz_demand(fread(text, 1, *bytes, file) == *bytes, path);
    (void)fclose(file);
    return text;
}

#endif
