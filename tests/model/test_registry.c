/* registry: every file of engine/model/arch is found by the name that config.json gives it, and its tables pass the
 * rules. */
#include "engine/model/registry.h"

#include "engine/model/plan_steps.h"
#include "tests/harness.h"

#include <string.h>

static void names_are_found_whole_only(void)
{
    const char *name = "Qwen2_5_VLForConditionalGeneration";
    CU_ASSERT_PTR_NOT_NULL(registry_find(name, strlen(name)));
    CU_ASSERT_PTR_NULL(registry_find(name, strlen(name) - 1));
    CU_ASSERT_PTR_NULL(registry_find("", 0));
    CU_ASSERT_PTR_NULL(registry_find(NULL, 0));
}

static void every_listed_architecture_has_sound_tables(void)
{
    char known[512];
    registry_list(known, sizeof known);
    uint32_t count = 0;
    for (char *name = strtok(known, ", "); name != NULL; name = strtok(NULL, ", ")) {
        const struct arch *arch = registry_find(name, strlen(name));
        CU_ASSERT_PTR_NOT_NULL_FATAL(arch);
        CU_ASSERT_PTR_NULL(plan_steps_check(arch).reason);
        count++;
    }
    CU_ASSERT(count >= 1);
}

static void a_short_list_is_cut(void)
{
    char known[8];
    registry_list(known, sizeof known);
    CU_ASSERT(strlen(known) == sizeof known - 1);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(names_are_found_whole_only),
        CASE(every_listed_architecture_has_sound_tables),
        CASE(a_short_list_is_cut),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "registry", cases, NULL);
}
