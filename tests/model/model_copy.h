/* model_copy: a model folder that a test may spoil, and what the program says to it. */
#ifndef TESTS_MODEL_MODEL_COPY_H
#define TESTS_MODEL_MODEL_COPY_H

#include "tests/harness.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COPY_FILE_BYTES_MAX = 64 * 1024 * 1024, COPY_TEXT_BYTES = 4096 };

struct model_copy {
    char folder[64];
    char path[400];             /* scratch */
    char said[COPY_TEXT_BYTES]; /* what the child wrote to standard error */
    int code;                   /* and its exit code; -1 if it was killed */
};

static inline const char *copy_path(struct model_copy *copy, const char *name)
{
    (void)snprintf(copy->path, sizeof copy->path, "%s/%s", copy->folder, name);
    return copy->path;
}

static inline void copy_write(struct model_copy *copy, const char *name, const void *bytes, size_t count)
{
    (void)unlink(copy_path(copy, name)); /* it may be a link into the data */
    int file = open(copy->path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ssize_t written = write(file, bytes, count);
    assert(file >= 0 && written == (ssize_t)count);
    (void)written;
    (void)close(file);
}

/* The whole file in memory that stays until the process ends. */
static inline char *copy_read(struct model_copy *copy, const char *name, size_t *count)
{
    static char *room;
    room = room != NULL ? room : harness_memory(COPY_FILE_BYTES_MAX);
    long length = harness_read(copy_path(copy, name), room, COPY_FILE_BYTES_MAX);
    assert(length >= 0);
    *count = (size_t)length;
    return room;
}

/* A fresh folder of links to the files of `folder`. */
static inline void copy_open(struct model_copy *copy, const char *folder)
{
    char here[256], target[600];
    DIR *files = opendir(folder);

    *copy = (struct model_copy){.code = 0};
    (void)snprintf(copy->folder, sizeof copy->folder, "/tmp/ashlar_model_XXXXXX");
    bool is_made = mkdtemp(copy->folder) != NULL && getcwd(here, sizeof here) != NULL && files != NULL;
    assert(is_made);
    (void)is_made;
    for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
        if (file->d_name[0] != '.') {
            (void)snprintf(target, sizeof target, "%s/%s/%s", here, folder, file->d_name);
            int failed = symlink(target, copy_path(copy, file->d_name));
            assert(failed == 0);
            (void)failed;
        }
    }
    (void)closedir(files);
}

static inline void copy_close(struct model_copy *copy)
{
    DIR *files = opendir(copy->folder);
    for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
        if (file->d_name[0] != '.') {
            (void)unlink(copy_path(copy, file->d_name));
        }
    }
    (void)closedir(files);
    (void)rmdir(copy->folder);
}

/* Replaces the first `from` in a text file by `to`; asserts that it is there. */
static inline void copy_edit(struct model_copy *copy, const char *name, const char *from, const char *to)
{
    static char edited[256 * 1024];
    size_t count = 0;
    char *text = copy_read(copy, name, &count);
    text[count] = '\0';
    char *at = strstr(text, from);
    assert(at != NULL && count + strlen(to) < sizeof edited);
    int length = snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    copy_write(copy, name, edited, (size_t)length);
}

/* Runs `start` in a child and keeps its exit code and what it says. */
static inline void copy_try(struct model_copy *copy, void (*start)(const char *folder))
{
    int ends[2], status = 0;
    size_t used = 0;
    ssize_t got;
    int failed = pipe(ends);
    assert(failed == 0);
    (void)failed;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        start(copy->folder);
        _exit(0);
    }
    (void)close(ends[1]);
    while (used < sizeof copy->said - 1 && (got = read(ends[0], copy->said + used, sizeof copy->said - 1 - used)) > 0) {
        used += (size_t)got;
    }
    copy->said[used] = '\0';
    (void)close(ends[0]);
    (void)waitpid(child, &status, 0);
    copy->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* True if the child ended with `code` and its words hold all of `parts` (ended by NULL). */
static inline bool copy_said(const struct model_copy *copy, int code, const char *const *parts)
{
    bool is_said = copy->code == code;
    for (; *parts != NULL; parts++) {
        is_said = is_said && strstr(copy->said, *parts) != NULL;
    }
    if (!is_said) {
        (void)fprintf(stderr, "code %d: %s\n", copy->code, copy->said);
    }
    return is_said;
}

#define SAYS(copy, code, ...) copy_said(copy, code, (const char *const[]){__VA_ARGS__, NULL})

#endif
