/* available: how much memory this machine, or the container that we run in, has left. Reads files; obtains nothing. */
#ifndef POOLS_AVAILABLE_H
#define POOLS_AVAILABLE_H

#include <stdint.h>

/* The smaller of MemAvailable (root/proc/meminfo) and what each control group of root/proc/self/cgroup, and each group
 * above it, leaves: its limit minus its use, where pages of files that lie idle do not count as use. Version 1 and 2 of
 * control groups. `root` is "" but in tests. 0 when meminfo cannot be read. */
uint64_t available_bytes(const char *root);

#endif
