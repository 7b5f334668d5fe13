/* safetensors: the header of one file, checked. Reads bytes that somebody else mapped; takes no memory. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SAFETENSORS_RANK_MAX = 6,
    SAFETENSORS_HEADER_BYTES_MAX = 100 * 1000 * 1000, /* the format's own bound */
};

enum tensor_type { TENSOR_BF16, TENSOR_F16, TENSOR_F32, TENSOR_OTHER };

struct tensor_entry {
    const char *name; /* not NUL-ended; in the file's bytes */
    uint32_t name_bytes;
    uint32_t rank;
    uint64_t shape[SAFETENSORS_RANK_MAX];
    enum tensor_type type;
    char type_name[12];  /* as in the file, for messages */
    uint64_t begin, end; /* bytes of the data in the file, from the file's first byte */
};

struct safetensors {
    struct tensor_entry *entries; /* the caller's, ascending by `begin` after safetensors_read */
    uint32_t capacity;
    uint32_t count;
    const char *reason;  /* of a refusal: constant text */
    const char *subject; /* and the tensor that it is about, or NULL */
    uint32_t subject_bytes;
};

/* Reads the header of the file `bytes` (written to: strings are unescaped in place) and checks that it describes the
 * file exactly: offsets without overlap and without holes from the header's end to the file's, sizes that follow from
 * type and shape. Whether a name comes twice is for the one who looks names up. False: `reason` and `subject` say why.
 */
bool safetensors_read(struct safetensors *file, char *bytes, size_t length);

/* Bytes of one element; 0 for TENSOR_OTHER. */
size_t tensor_type_bytes(enum tensor_type type);

#endif
