/* parity: runs every case of a folder in the fixtures' format on the model and prints, one line a case, how far ids, grids,
 * positions, pixels, features and logits lie from the reference. Exit code 1 if one is out of the README's bounds.
 *
 *     build/ashlar-parity DIR [--dtype bfloat16|float32] [--model NAME] [--case NAME] [--chunk ROWS]
 */
#include "tests/model/case_run.h"

#include <stdio.h>
#include <stdlib.h>

struct arguments {
    const char *folder, *model, *name, *dtype;
    uint32_t chunk;
};

static bool parse(struct arguments *arguments, int count, char **words)
{
    *arguments = (struct arguments){.dtype = NULL};
    for (int i = 1; i < count; i++) {
        bool has_value = i + 1 < count;
        if (strcmp(words[i], "--dtype") == 0 && has_value) {
            arguments->dtype = words[++i];
        } else if (strcmp(words[i], "--model") == 0 && has_value) {
            arguments->model = words[++i];
        } else if (strcmp(words[i], "--case") == 0 && has_value) {
            arguments->name = words[++i];
        } else if (strcmp(words[i], "--chunk") == 0 && has_value) {
            arguments->chunk = (uint32_t)strtoul(words[++i], NULL, 10);
        } else if (words[i][0] != '-' && arguments->folder == NULL) {
            arguments->folder = words[i];
        } else {
            return false;
        }
    }
    return arguments->folder != NULL &&
           (arguments->dtype == NULL || strcmp(arguments->dtype, "bfloat16") == 0 || strcmp(arguments->dtype, "float32") == 0);
}

static void print_line(const char *model, const char *dtype, const char *name, const struct case_result *r, bool is_good)
{
    (void)printf("%s %-8s %-8s %-18s ids %s grid %s pos %s win %s greedy %s  pixel %.1e  vision %.1e %.2f%%  "
                 "logits max %.1e mean %.1e\n",
                 is_good ? "ok  " : "FAIL", model, dtype, name, r->ids_equal ? "=" : "!", r->grid_equal ? "=" : "!",
                 r->positions_equal ? "=" : "!", r->windows_equal ? "=" : "!", r->greedy_equal ? "=" : "!",
                 (double)r->pixel_max, (double)r->vision_max, 100 * (double)r->vision_norm, (double)r->logit_max,
                 (double)r->logit_mean);
}

/* Returns the number of cases out of bounds, or -1 if the model has no cases in the folder. */
static int run_model(const struct arguments *arguments, const char *model, enum model_dtype dtype)
{
    static struct golden_case cases[GOLDEN_CASES_MAX];
    static struct golden_arrays arrays;
    static struct case_room room;
    static struct rig rig;
    char path[512], folder[512];
    const char *dtype_name = dtype == MODEL_F32 ? "float32" : "bfloat16";
    int failed = 0;

    (void)snprintf(path, sizeof path, "%s/cases/%s.json", arguments->folder, model);
    uint32_t count = golden_read(path, cases);
    (void)snprintf(path, sizeof path, "%s/cases/%s.safetensors", arguments->folder, model);
    if (count == 0 || !golden_open(&arrays, path)) {
        return -1;
    }
    (void)snprintf(folder, sizeof folder, "%s/models/%s", arguments->folder, model);
    rig_open(&rig, &(struct rig_setup){.folder = folder, .dtype = dtype});
    room.folder = arguments->folder;
    room.chunk = arguments->chunk;
    for (uint32_t i = 0; i < count; i++) {
        struct case_result result;
        if (arguments->name != NULL && strcmp(arguments->name, cases[i].name) != 0) {
            continue;
        }
        bool is_good = case_run(&rig, &arrays, &cases[i], &room, &result) && case_is_within(&result, dtype);
        print_line(model, dtype_name, cases[i].name, &result, is_good);
        failed += is_good ? 0 : 1;
    }
    rig_close(&rig);
    return failed;
}

int main(int count, char **words)
{
    static const char *const models[] = {"q25vl-a", "q25vl-b"};
    struct arguments arguments;
    int failed = 0;

    if (!parse(&arguments, count, words)) {
        (void)fprintf(stderr, "usage: %s DIR [--dtype bfloat16|float32] [--model NAME] [--case NAME] [--chunk ROWS]\n",
                      words[0]);
        return 2;
    }
    kernels_choose();
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        if (arguments.model != NULL && strcmp(arguments.model, models[m]) != 0) {
            continue;
        }
        for (int d = 0; d < 2; d++) {
            enum model_dtype dtype = d == 0 ? MODEL_F32 : MODEL_BF16;
            if (arguments.dtype != NULL && (strcmp(arguments.dtype, "float32") == 0) != (dtype == MODEL_F32)) {
                continue;
            }
            int result = run_model(&arguments, models[m], dtype);
            failed += result != 0 ? 1 : 0;
        }
    }
    return failed == 0 ? 0 : 1;
}
