/* resident: makes the program itself resident before "ready", so that nothing of it is faulted in later. */
#ifndef POOLS_RESIDENT_H
#define POOLS_RESIDENT_H

#include <stdint.h>

struct resident_report {
    uint32_t mappings;      /* that were looked at */
    uint32_t refused;       /* the kernel would not: those pages will be faulted in when they are used */
    uint64_t file_bytes;    /* code and constants of the program and its libraries, mapped in */
    uint64_t private_bytes; /* their data, the heap's rest, the stack: copied, so that a later write changes no count */
};

/* Walks /proc/self/maps and backs with memory what lies behind each mapping: read-only ones of files are mapped in,
 * writable private ones are written to. The calling thread's stack is grown by RESIDENT_STACK_BYTES. Last step before
 * the seal; the pools are resident already. Does nothing under a sanitizer, whose shadow is larger than any memory. */
enum { RESIDENT_STACK_BYTES = 256 * 1024 };
struct resident_report resident_touch(void);

#endif
