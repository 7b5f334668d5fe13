/* picture_case: what the tests of engine/image share: files with an unreadable page behind their last byte, regions of
 * exactly the planned size, hashes, rows of a golden file. */
#ifndef TESTS_IMAGE_PICTURE_CASE_H
#define TESTS_IMAGE_PICTURE_CASE_H

#include "engine/image/jpeg.h"
#include "engine/image/orient.h"
#include "engine/image/picture_file.h"
#include "engine/image/png.h"
#include "engine/image/sniff.h"
#include "tests/harness.h"

#include <dirent.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURE_FILE_BYTES_MAX = 64 * 1024 * 1024, PICTURE_PATH_BYTES = 1024 };

static const uint64_t PICTURE_PIXELS_MAX = 4 * 1024 * 1024;

static const struct image_rules RULES_QWEN25 = {
    .patch = 14, .merge = 2, .min_pixels = 3136, .max_pixels = 12845056, .mean = {0.5F, 0.5F, 0.5F}, .std = {1, 1, 1}};
static const struct image_rules RULES_QWEN3 = {
    .patch = 16, .merge = 2, .min_pixels = 65536, .max_pixels = 16777216, .mean = {0.5F, 0.5F, 0.5F}, .std = {1, 1, 1}};

struct picture_case {
    unsigned char *buffer; /* PICTURE_FILE_BYTES_MAX, ending at an unreadable page */
    struct picture_regions regions;
    unsigned char *pixels;
    size_t pixels_bytes;
};

/* Places a copy of the bytes so that reading behind the last one faults. Valid until the next call. */
static inline const unsigned char *picture_case_place(struct picture_case *room, const void *bytes, size_t count)
{
    CU_ASSERT_FATAL(count <= PICTURE_FILE_BYTES_MAX);
    unsigned char *place = room->buffer + PICTURE_FILE_BYTES_MAX - count;
    memmove(place, bytes, count);
    return place;
}

/* Reads a file to the end of the buffer. Returns its address; fails the case if there is none. */
static inline const unsigned char *picture_case_read(struct picture_case *room, const char *path, size_t *file_bytes)
{
    long got = harness_read(path, room->buffer, PICTURE_FILE_BYTES_MAX);

    if (got < 0) {
        (void)fprintf(stderr, "cannot read %s\n", path);
    }
    CU_ASSERT_FATAL(got >= 0);
    *file_bytes = (size_t)got;
    return picture_case_place(room, room->buffer, (size_t)got);
}

/* One room a program: regions of exactly the planned size, for both rules. */
static inline struct picture_case *picture_case_room(void)
{
    static struct picture_case room;

    if (room.buffer == NULL) {
        size_t rgb_bytes = picture_file_rgb_bytes(PICTURE_PIXELS_MAX);
        size_t work_bytes = picture_file_work_bytes(PICTURE_PIXELS_MAX, &RULES_QWEN3);
        room.buffer = harness_memory(PICTURE_FILE_BYTES_MAX);
        room.regions =
            (struct picture_regions){harness_memory(rgb_bytes), rgb_bytes, harness_memory(work_bytes), work_bytes};
        room.pixels_bytes = picture_file_pixels_bytes(&RULES_QWEN3);
        room.pixels = harness_memory(room.pixels_bytes);
    }
    return &room;
}

/* Sniffs and decodes a file into the room's rgb, in a work region of exactly the planned size. */
static inline enum err picture_case_decode(struct picture_case *room, const unsigned char *file, size_t file_bytes,
                                           struct image_header *header, const char **reason)
{
    struct jmem work;
    enum err err = sniff_read_header(file, file_bytes, PICTURE_PIXELS_MAX, header, reason);

    if (err != ERR_OK) {
        return err;
    }
    jmem_open(&work, room->regions.work, room->regions.work_bytes);
    if (header->format == IMAGE_JPEG) {
        return jpeg_decode_rgb(file, file_bytes, header, &work, room->regions.rgb, NULL, reason);
    }
    return png_decode_rgb(file, file_bytes, header, &work, room->regions.rgb, NULL, reason);
}

static inline void picture_case_hash(const unsigned char *bytes, size_t count, char hex[65])
{
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];

    sha256_init(&context);
    sha256_update(&context, count, bytes);
    sha256_digest(&context, sizeof digest, digest);
    for (int i = 0; i < SHA256_DIGEST_SIZE; i++) {
        (void)snprintf(hex + 2 * (size_t)i, 3, "%02x", digest[i]);
    }
}

/* Calls `row` for each line of a golden file that is not a comment; the line is cut at tabs into `fields`. */
static inline int picture_case_rows(const char *path, int field_count, void (*row)(char **fields))
{
    static char text[256 * 1024];
    long bytes = harness_read(path, text, sizeof text - 1);
    int rows = 0;

    CU_ASSERT_FATAL(bytes > 0);
    text[bytes] = '\0';
    for (char *line = text, *next; *line != '\0'; line = next) {
        char *fields[16] = {line};
        int fields_found = 1;
        next = strchr(line, '\n');
        CU_ASSERT_PTR_NOT_NULL_FATAL(next);
        *next++ = '\0';
        if (*line == '#') {
            continue;
        }
        for (char *tab = line; fields_found < field_count && (tab = strchr(tab, '\t')) != NULL;) {
            *tab++ = '\0';
            fields[fields_found++] = tab;
        }
        CU_ASSERT_EQUAL_FATAL(fields_found, field_count);
        row(fields);
        rows++;
    }
    return rows;
}

/* A row of decoded.golden: the file's pixels, upright and on white, are Pillow's. */
static inline void picture_case_check_decoded(char **fields)
{
    struct picture_case *room = picture_case_room();
    struct image_header header;
    const char *reason = "";
    char hex[65];
    size_t file_bytes;
    const unsigned char *file = picture_case_read(room, fields[0], &file_bytes);
    enum err err = picture_case_decode(room, file, file_bytes, &header, &reason);

    if (err != ERR_OK) {
        (void)fprintf(stderr, "%s: %s\n", fields[0], reason);
    }
    CU_ASSERT_EQUAL_FATAL(err, ERR_OK);
    CU_ASSERT_EQUAL(header.width, strtoul(fields[1], NULL, 10));
    CU_ASSERT_EQUAL(header.height, strtoul(fields[2], NULL, 10));
    orient_write_upright(room->regions.rgb, header.stored_width, header.stored_height, header.orientation,
                         room->regions.work);
    picture_case_hash(room->regions.work, (size_t)header.width * header.height * 3, hex);
    if (strcmp(hex, fields[3]) != 0) {
        (void)fprintf(stderr, "%s: other pixels\n", fields[0]);
    }
    CU_ASSERT_STRING_EQUAL(hex, fields[3]);
}

/* Calls `visit` with the path of each regular file right below `folder`; returns how many. */
static inline int picture_case_visit(const char *folder, void (*visit)(const char *path))
{
    DIR *directory = opendir(folder);
    int files = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[PICTURE_PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_type == DT_REG) {
            visit(path);
            files++;
        }
    }
    (void)closedir(directory);
    return files;
}

#endif
