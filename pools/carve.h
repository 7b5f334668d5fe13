/* carve: places one block after the other in a range. Counting and placing are the same code. */
#ifndef POOLS_CARVE_H
#define POOLS_CARVE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CARVE_LINE_BYTES = 64,      /* alignment of every block */
    CARVE_PAGE_BYTES = 4096,    /* alignment of big blocks, and length of a guard gap */
    CARVE_BIG_BYTES = 64 * 1024 /* blocks from here on begin at a page */
};

struct carve {
    unsigned char *base;   /* NULL: count mode */
    uint64_t range_bytes;  /* place mode: length of the range, never passed */
    uint64_t offset_bytes; /* where the next block may begin */
    uint64_t gap_bytes;    /* of guard gaps so far */
    bool has_overflowed;   /* a sum passed 64 bits: every later number is meaningless */
};

/* Count mode: nothing is placed, offsets advance. */
void carve_count(struct carve *carve);

/* Place mode over `range_bytes` at `base`, which begins at a page. */
void carve_place(struct carve *carve, void *base, uint64_t range_bytes);

/* The next block of `element_bytes` * `count`. Its offset goes to `*offset_bytes`; its address is returned in place
 * mode, NULL in count mode and for an empty block. */
void *carve_take(struct carve *carve, uint64_t element_bytes, uint64_t count, uint64_t *offset_bytes);

/* Leaves one page unused, from a page boundary on; returns its address in place mode, NULL in count mode. */
void *carve_gap(struct carve *carve);

/* Fills up to a whole page. */
void carve_finish(struct carve *carve);

/* Bytes of the range without its gaps. */
uint64_t carve_memory_bytes(const struct carve *carve);

#endif
