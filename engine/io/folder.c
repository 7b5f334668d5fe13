/* folder: the names of a folder's files. opendir() takes heap memory, the system call behind it does not.
 *
 * Always true between calls: 0 <= at <= used <= sizeof records.
 */
#include "engine/io/folder.h"

#include <assert.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel lays a record out (getdents64(2)); the name follows. */
struct record {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[5];
};

bool folder_open(struct folder_walk *walk, const char *path)
{
    assert(walk != NULL && path != NULL);
    walk->used = 0;
    walk->at = 0;
    walk->descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return walk->descriptor >= 0;
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t length = strlen(name), tail = strlen(suffix);

    return length >= tail && strcmp(name + length - tail, suffix) == 0;
}

bool folder_next(struct folder_walk *walk, const char *suffix, char name[FOLDER_NAME_BYTES_MAX])
{
    assert(walk->descriptor >= 0);
    for (;;) {
        if (walk->at >= walk->used) {
            walk->used = syscall(SYS_getdents64, walk->descriptor, walk->records, sizeof walk->records);
            walk->at = 0;
            if (walk->used <= 0) {
                return false;
            }
        }
        struct record record;
        memcpy(&record, walk->records + walk->at, offsetof(struct record, name));
        const char *entry = walk->records + walk->at + offsetof(struct record, name);
        assert(record.bytes > 0 && walk->at + record.bytes <= walk->used);
        walk->at += record.bytes;
        if (strlen(entry) < FOLDER_NAME_BYTES_MAX && ends_in(entry, suffix)) {
            memcpy(name, entry, strlen(entry) + 1);
            return true;
        }
    }
}

void folder_close(struct folder_walk *walk)
{
    assert(walk->descriptor >= 0);
    (void)close(walk->descriptor);
    walk->descriptor = -1;
}
