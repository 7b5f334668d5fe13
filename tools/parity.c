/* parity: runs every case of a folder in the fixtures' format on the model and prints, one line a case, how far ids,
 * grids, positions, pixels, features and logits lie from the reference. Exit code 1 if one is out of the README's
 * bounds.
 *
 *     build/ashlar-parity DIR [--dtype bfloat16|float32] [--model NAME] [--case NAME] [--chunk ROWS]
 *     build/ashlar-parity --eval DIR --model-path DIR [--dtype bfloat16|float32]
 *
 * --kernels ref|generic|avx2|avx512|avx512bf16|amx computes with another of the machine's variants than the best; one
 * that the machine lacks ends with exit code 3.
 */
#include "engine/io/folder.h"
#include "engine/log.h"
#include "engine/model/registry.h"
#include "tests/model/case_run.h"
#include "tools/parity_eval.h"
#include "tools/parity_text.h"

#include <stdio.h>
#include <stdlib.h>

enum { MODELS_MAX = 32 };

struct arguments {
    const char *folder, *model, *name, *dtype;
    const char *eval, *model_path, *kernels;
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
        } else if (strcmp(words[i], "--eval") == 0 && has_value) {
            arguments->eval = words[++i];
        } else if (strcmp(words[i], "--model-path") == 0 && has_value) {
            arguments->model_path = words[++i];
        } else if (strcmp(words[i], "--kernels") == 0 && has_value) {
            arguments->kernels = words[++i];
        } else if (words[i][0] != '-' && arguments->folder == NULL) {
            arguments->folder = words[i];
        } else {
            return false;
        }
    }
    return (arguments->folder != NULL) == (arguments->eval == NULL) &&
           (arguments->eval != NULL) == (arguments->model_path != NULL) &&
           (arguments->dtype == NULL || strcmp(arguments->dtype, "bfloat16") == 0 ||
            strcmp(arguments->dtype, "float32") == 0);
}

/* A measure, or "-" where the case has none. */
static const char *measure(char *text, size_t bytes, const char *format, float value)
{
    if (isnan(value)) {
        return "-";
    }
    (void)snprintf(text, bytes, format, (double)value);
    return text;
}

static void print_line(const char *model, const char *dtype, const char *name, const struct case_result *r,
                       bool is_good)
{
    char pixel[16], vision[16], norm[16];
    (void)printf(
        "%s %-8s %-8s %-16s ids %s grid %s positions %s windows %s greedy %s  pixels %-7s vision %-7s %-6s "
        "logits %.1e mean %.1e\n",
        is_good ? "ok  " : "FAIL", model, dtype, name, r->ids_equal ? "=" : "!", r->grid_equal ? "=" : "!",
        r->positions_equal ? "=" : "!", r->windows_equal ? "=" : "!", r->greedy_equal ? "=" : "!",
        measure(pixel, sizeof pixel, "%.1e", r->pixel_max), measure(vision, sizeof vision, "%.1e", r->vision_max),
        measure(norm, sizeof norm, "%.2f%%", 100 * r->vision_norm), (double)r->logit_max, (double)r->logit_mean);
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

    (void)snprintf(path, sizeof path, "%s/cases/%.200s.json", arguments->folder, model);
    uint32_t count = golden_read(path, cases);
    (void)snprintf(path, sizeof path, "%s/cases/%.200s.safetensors", arguments->folder, model);
    if (count == 0 || !golden_open(&arrays, path)) {
        return -1;
    }
    (void)snprintf(folder, sizeof folder, "%s/models/%.200s", arguments->folder, model);
    rig_open(&rig, &(struct rig_setup){.folder = folder, .dtype = dtype});
    room.folder = arguments->folder;
    room.chunk = arguments->chunk;
    bool is_open = parity_open_tokenizer(folder, rig.checkpoint.vocab);
    for (uint32_t i = 0; i < count; i++) {
        struct case_result result = {.ids_equal = false};
        if (arguments->name != NULL && strcmp(arguments->name, cases[i].name) != 0) {
            continue;
        }
        bool is_good = is_open && case_run(&rig, &arrays, &cases[i], &room, &result);
        uint32_t id_count = 0;
        const int32_t *ids = golden_find(&arrays, cases[i].name, "prompt_ids", &id_count);
        result.ids_equal =
            result.ids_equal && parity_encodes_to(cases[i].prompt.bytes, cases[i].prompt.length, ids, id_count);
        is_good = is_good && case_is_within(&result, dtype);
        print_line(model, dtype_name, cases[i].name, &result, is_good);
        failed += is_good ? 0 : 1;
    }
    rig_close(&rig);
    return failed;
}

/* True if config.json names an architecture that was compiled in. */
static bool is_known(const char *folder)
{
    static char config[64 * 1024];
    struct json_reader reader;
    struct json_event event = {.kind = JSON_NONE};
    char path[600];
    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    uint64_t bytes = 0;
    char *map = domain_file_map(path, &bytes);
    if (map == NULL || bytes > sizeof config) {
        return false;
    }
    memcpy(config, map, bytes);
    domain_file_unmap(map, bytes);
    json_open_raw(&reader, config, (size_t)bytes);
    while (json_next(&reader, &event) == ERR_OK && event.kind != JSON_END) {
        if (event.kind == JSON_KEY && json_event_is(&event, "architectures")) {
            golden_next(&reader, &event);
            golden_next(&reader, &event);
            return event.kind == JSON_STRING && registry_find(event.text, event.bytes) != NULL;
        }
    }
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The models that the folder has cases for, by name. */
static uint32_t list_models(const char *folder, char (*names)[FOLDER_NAME_BYTES_MAX])
{
    struct folder_walk walk;
    char path[512];
    uint32_t count = 0;
    (void)snprintf(path, sizeof path, "%s/cases", folder);
    if (!folder_open(&walk, path)) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        return 0;
    }
    while (count < MODELS_MAX && folder_next(&walk, ".json", names[count])) {
        names[count][strlen(names[count]) - strlen(".json")] = '\0';
        count++;
    }
    folder_close(&walk);
    qsort(names, count, sizeof names[0], compare_names);
    return count;
}

static int run_folder(const struct arguments *arguments)
{
    static char names[MODELS_MAX][FOLDER_NAME_BYTES_MAX];
    uint32_t count = list_models(arguments->folder, names);
    int failed = 0, run = 0;

    for (uint32_t m = 0; m < count; m++) {
        char folder[512];
        (void)snprintf(folder, sizeof folder, "%s/models/%.200s", arguments->folder, names[m]);
        if (arguments->model != NULL && strcmp(arguments->model, names[m]) != 0) {
            continue;
        }
        if (!is_known(folder)) {
            (void)printf("skip %s: not an architecture of this program\n", names[m]);
            continue;
        }
        for (int d = 0; d < 2; d++) {
            enum model_dtype dtype = d == 0 ? MODEL_F32 : MODEL_BF16;
            if (arguments->dtype == NULL || (strcmp(arguments->dtype, "float32") == 0) == (dtype == MODEL_F32)) {
                failed += run_model(arguments, names[m], dtype) != 0 ? 1 : 0;
                run++;
            }
        }
    }
    return failed == 0 && run > 0 ? 0 : 1;
}

/* False: this machine lacks it, or there is none of that name. */
static bool use_kernels(const char *name)
{
    for (enum kernel_level level = LEVEL_REF; level < LEVEL_COUNT; level++) {
        if (strcmp(kernels_level_name(level), name) == 0) {
            return kernels_use(level);
        }
    }
    return false;
}

int main(int count, char **words)
{
    struct arguments arguments;

    if (!parse(&arguments, count, words)) {
        (void)fprintf(stderr,
                      "usage: %s DIR [--dtype bfloat16|float32] [--model NAME] [--case NAME] [--chunk ROWS]\n"
                      "       %s --eval DIR --model-path DIR [--dtype bfloat16|float32]\n"
                      "       both: [--kernels ref|generic|avx2|avx512|avx512bf16|amx]\n",
                      words[0], words[0]);
        return 2;
    }
    kernels_choose();
    if (arguments.kernels != NULL && !use_kernels(arguments.kernels)) {
        (void)fprintf(stderr, "no %s kernels on this machine\n", arguments.kernels);
        return 3;
    }
    log_set_level(LOG_ERROR);
    if (arguments.eval != NULL) {
        bool is_f32 = arguments.dtype != NULL && strcmp(arguments.dtype, "float32") == 0;
        return parity_eval(arguments.eval, arguments.model_path, is_f32 ? MODEL_F32 : MODEL_BF16) ? 0 : 1;
    }
    return run_folder(&arguments);
}
