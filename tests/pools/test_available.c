/* Properties of pools/available.c, on made-up /proc and /sys trees: the least of machine and control groups is found.
 */
#include "pools/available.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

/* Writes a file below the root, its folders too. */
static void put_file(const char *path, const char *text)
{
    char whole[256];
    FILE *file;

    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0700);
        *slash = '/';
    }
    file = fopen(whole, "w");
    CU_ASSERT_FATAL(file != NULL);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void new_root(void)
{
    (void)snprintf(root, sizeof root, "/tmp/ashlar-available-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(root) != NULL);
    put_file("/proc/meminfo", "MemTotal:  8000000 kB\nMemFree: 1 kB\nMemAvailable:    4000000 kB\n");
}

static int remove_root(void)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    return root[0] == '\0' || system(command) == 0 ? 0 : 1;
}

static const uint64_t MACHINE = 4000000ull * 1024;

static void without_control_groups_the_machine_decides(void)
{
    new_root();
    CU_ASSERT(available_bytes(root) == MACHINE);
}

static void version_2_limits_count_at_every_level(void)
{
    new_root();
    put_file("/proc/self/cgroup", "0::/a.slice/b.scope\n");
    put_file("/sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
    put_file("/sys/fs/cgroup/a.slice/b.scope/memory.current", "5\n");
    CU_ASSERT(available_bytes(root) == MACHINE);
    put_file("/sys/fs/cgroup/a.slice/memory.max", "1000000\n");
    put_file("/sys/fs/cgroup/a.slice/memory.current", "300000\n");
    CU_ASSERT(available_bytes(root) == 700000);
    put_file("/sys/fs/cgroup/a.slice/memory.stat", "anon 5\ninactive_file 100000\nactive_file 50000\n");
    CU_ASSERT(available_bytes(root) == 800000);
}

static void inside_a_container_the_mounts_own_limit_counts(void)
{
    new_root();
    put_file("/proc/self/cgroup", "0::/../outside/name\n");
    put_file("/sys/fs/cgroup/memory.max", "2097152\n");
    put_file("/sys/fs/cgroup/memory.current", "97152\n");
    CU_ASSERT(available_bytes(root) == 2000000);
}

static void version_1_limits_count(void)
{
    new_root();
    put_file("/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/1\n0::/\n");
    put_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
    put_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
    put_file("/sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_inactive_file 500000\n");
    CU_ASSERT(available_bytes(root) == 2500000);
    put_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    CU_ASSERT(available_bytes(root) == MACHINE);
}

static void a_full_group_leaves_nothing(void)
{
    new_root();
    put_file("/proc/self/cgroup", "0::/\n");
    put_file("/sys/fs/cgroup/memory.max", "1000\n");
    put_file("/sys/fs/cgroup/memory.current", "2000\n");
    CU_ASSERT(available_bytes(root) == 0);
}

static void nonsense_is_no_limit(void)
{
    new_root();
    put_file("/proc/self/cgroup", "\n:::\nabc\n0:\n1:memoryx:/\n2:xmemory:/\n");
    put_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1\n");
    CU_ASSERT(available_bytes(root) == MACHINE);
    put_file("/proc/meminfo", "nothing\n");
    CU_ASSERT(available_bytes(root) == 0);
    CU_ASSERT(available_bytes("/nowhere/at/all") == 0);
}

static void this_machine_has_memory(void)
{
    root[0] = '\0';
    CU_ASSERT(available_bytes("") > 1024 * 1024);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(without_control_groups_the_machine_decides),
        CASE(version_2_limits_count_at_every_level),
        CASE(inside_a_container_the_mounts_own_limit_counts),
        CASE(version_1_limits_count),
        CASE(a_full_group_leaves_nothing),
        CASE(nonsense_is_no_limit),
        CASE(this_machine_has_memory),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "pools/available", cases, remove_root);
}
