/* domain: where memory comes from. domain_*.c are the only files of the program that obtain any. */
#ifndef POOLS_DOMAIN_H
#define POOLS_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>

enum domain {
    DOMAIN_DEVICE, /* where the maths runs: CUDA memory, or host memory on a CPU build */
    DOMAIN_PINNED, /* host memory that the device reads by itself */
    DOMAIN_HOST,
    DOMAIN_COUNT
};

/* "device", "pinned", "host". */
const char *domain_name(enum domain domain);

/* True if all domains are one memory, so that one limit holds for their sum (CPU builds). */
bool domain_is_one_memory(void);

/* Bytes of the device that a new process can take now. On a CPU: the smaller of the kernel's MemAvailable and what the
 * control groups above us (version 1 or 2) leave. 0 when it cannot be told. */
uint64_t domain_available_bytes(void);

/* Reserves one range of address space of `bytes`, aligned to a page; it holds no memory until domain_populate.
 * NULL when the system refuses. Start-up only: aborts after the seal. The range lives as long as the process. */
void *domain_reserve(enum domain domain, uint64_t bytes);

/* Backs every page of the range with memory, now, and locks it where permitted. False when the system refuses the
 * memory; a refused lock is no failure: domain_locked_bytes tells. Start-up only. */
bool domain_populate(enum domain domain, void *address, uint64_t bytes);

/* Bytes that are locked against swapping, of all that was populated. */
uint64_t domain_locked_bytes(void);
uint64_t domain_populated_bytes(void);

/* Makes a range of whole pages unreadable and gives its memory back: below a stack, between pools in test builds. */
void domain_guard(void *address, uint64_t bytes);

/* Maps a file for reading at start-up: private, so that a parser may write into its copy, and gone before "ready".
 * `*bytes` is its length. NULL with errno set on failure; an empty file is mapped as one zero byte with *bytes = 0. */
void *domain_file_map(const char *path, uint64_t *bytes);
void domain_file_unmap(void *address, uint64_t bytes);

/* File maps that were not given back: must be 0 at the seal. */
uint32_t domain_file_map_count(void);

#endif
