/* folder: every name with the suffix is found once, in a folder that takes several reads too. */
#include "engine/io/folder.h"

#include "tests/model/model_copy.h"

#include <errno.h>
#include <stdint.h>

enum { FILES = 700 };

static void names_are_found_by_suffix(void)
{
    struct folder_walk walk;
    char name[FOLDER_NAME_BYTES_MAX];
    uint32_t count = 0;
    CU_ASSERT_FATAL(folder_open(&walk, "tests/data/fixtures/models/q25vl-b"));
    while (folder_next(&walk, ".safetensors", name)) {
        CU_ASSERT(strncmp(name, "model-0000", 10) == 0);
        count++;
    }
    CU_ASSERT_EQUAL(count, 3);
    folder_close(&walk);
}

static void a_long_folder_is_read_to_its_end(void)
{
    static struct model_copy copy;
    static bool seen[FILES];
    struct folder_walk walk;
    char name[FOLDER_NAME_BYTES_MAX];
    copy_open(&copy, "tests/data/fixtures/models/q25vl-b");
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof name, "a_name_of_a_certain_length_%d.x", i);
        copy_write(&copy, name, "", 0);
    }
    CU_ASSERT_FATAL(folder_open(&walk, copy.folder));
    while (folder_next(&walk, ".x", name)) {
        int number = -1;
        CU_ASSERT_FATAL(sscanf(name, "a_name_of_a_certain_length_%d.x", &number) == 1 && number >= 0 && number < FILES);
        CU_ASSERT_FALSE(seen[number]);
        seen[number] = true;
    }
    folder_close(&walk);
    for (int i = 0; i < FILES; i++) {
        CU_ASSERT(seen[i]);
    }
    copy_close(&copy);
}

static void a_missing_folder_is_told(void)
{
    struct folder_walk walk;
    CU_ASSERT_FALSE(folder_open(&walk, "tests/data/nowhere"));
    CU_ASSERT_EQUAL(errno, ENOENT);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(names_are_found_by_suffix),
        CASE(a_long_folder_is_read_to_its_end),
        CASE(a_missing_folder_is_told),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "folder", cases, NULL);
}
