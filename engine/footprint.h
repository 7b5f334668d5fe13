/* footprint: what the process really holds, beside what was planned. No heap: may be asked after "ready". */
#ifndef ENGINE_FOOTPRINT_H
#define ENGINE_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

struct footprint {
    uint64_t planned_bytes;   /* all pools, books included */
    uint64_t locked_bytes;    /* of them, locked against swapping */
    uint64_t anonymous_bytes; /* resident, not backed by a file: RssAnon of /proc/self/status */
    uint64_t file_bytes;      /* resident, backed by files: the program itself */
    uint64_t peak_bytes;      /* largest resident set so far: VmHWM, start-up's file reading included */
    uint64_t swapped_bytes;   /* VmSwap */
    uint64_t heap_used_bytes; /* what the C library's heap holds now: libraries' start-up data */
    uint64_t heap_calls;      /* since the seal; valid if is_heap_counted */
    bool is_heap_counted;     /* the program was linked with a counter of heap calls */
};

/* Measures now. False when /proc cannot be read (the numbers of the process are 0 then). After pools_open. */
bool footprint_read(struct footprint *footprint);

/* The promise: resident anonymous memory is the plan, within 1 % + 8 MiB for the program itself. */
bool footprint_keeps(const struct footprint *footprint);

/* One log line at "ready": planned, resident, their difference; a warning if the promise does not hold. */
void footprint_log(const struct footprint *footprint);

#endif
