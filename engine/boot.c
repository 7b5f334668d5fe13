/* boot: from options to an engine that runs. */
#include "engine/boot.h"

#include "engine/clock.h"
#include "engine/footprint.h"
#include "engine/log.h"
#include "engine/model/config_text.h"
#include "engine/plan_print.h"
#include "engine/start.h"
#include "engine/text/chat.h"
#include "engine/warm.h"
#include "kernels/op.h"
#include "pools/pools.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { STEP_BUDGET_MS = 50, PATH_BYTES = 4096 };

/* ---- files ---- */

struct boot_file {
    char *bytes;
    uint64_t length;
};

/* A file of the folder; absent: no bytes. */
static struct boot_file map_file(const char *folder, const char *name)
{
    struct boot_file file = {0};
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);

    if (length < 0 || length >= (int)sizeof path) {
        start_refuse(START_USAGE, "--model-path: longer than %d bytes", PATH_BYTES);
    }
    file.bytes = domain_file_map(path, &file.length);
    if (file.bytes == NULL && errno != ENOENT) {
        start_refuse(START_BAD_MODEL, "%s: %s", path, start_errno_text(errno));
    }
    if (file.length > STAGE_BYTES) {
        start_refuse(START_BAD_MODEL, "%s: %llu bytes; at most %d", path, (unsigned long long)file.length, STAGE_BYTES);
    }
    return file;
}

static void unmap_file(struct boot_file *file)
{
    if (file->bytes != NULL) {
        domain_file_unmap(file->bytes, file->length);
    }
}

static void read_model_type(struct boot *boot)
{
    struct boot_file file = map_file(boot->options->model_path, "config.json");
    struct config_text config = {.file = "config.json", .over_name = "--json-model-override-args"};
    struct json_span span = {0};

    config.text = (struct json_span){file.bytes, (size_t)file.length};
    config_text_open(&config);
    if (config_string(&config, "model_type", &span)) {
        (void)snprintf(boot->model_type, sizeof boot->model_type, "%.*s", (int)span.length, span.bytes);
    }
    unmap_file(&file);
}

/* ---- the plan ---- */

void boot_plan(struct boot *boot, const struct options *options)
{
    struct checkpoint_source source = {.folder = options->model_path,
                                       .model_override_json = options->json_model_override_args,
                                       .mm_process_json = options->mm_process_config};
    struct options_error error;

    if (options->model_path == NULL) {
        start_refuse(START_USAGE, "--model-path is missing: the folder of a model (config.json, *.safetensors)");
    }
    boot->options = options;
    kernels_choose();
    checkpoint_read(&boot->checkpoint, &source);
    read_model_type(boot);
    boot->subject.checkpoint = &boot->checkpoint;
    boot->subject.dtype =
        strcmp(options->dtype, "float32") == 0 || strcmp(options->dtype, "float") == 0 ? MODEL_F32 : MODEL_BF16;

    struct plan_source plan_source = {.options = options,
                                      .measure = plan_measure_pools,
                                      .context = &boot->subject,
                                      .available_bytes = domain_available_bytes(),
                                      .is_one_memory = domain_is_one_memory(),
                                      .tensor_count = boot->checkpoint.tensor_count,
                                      .tensor_bytes = boot->checkpoint.tensor_bytes};
    plan_source.facts = plan_measure_facts(&boot->subject, thread_cpu_count());
    if (!plan_solve(&boot->plan, &plan_source, &error)) {
        start_refuse(START_USAGE, "%s", error.text);
    }
    if (boot->plan.outcome == BUDGET_OVERFLOW) {
        start_refuse(START_USAGE, "the plan passes 64 bits: some count is far too large");
    }
}

void boot_carve(struct boot *boot)
{
    assert(boot->plan.outcome == BUDGET_FITS);
    if (!pools_open(&boot->plan.budget.plan)) {
        start_refuse(START_NO_MEMORY, "the system refuses %llu bytes: %s",
                     (unsigned long long)boot->plan.budget.plan.total_bytes, start_errno_text(errno));
    }
}

/* ---- the model ---- */

/* The tokenizer's folder may be a bare vocabulary: a file that it lacks comes from the model's. */
static struct boot_file map_either(const char *folder, const char *model_folder, const char *name)
{
    struct boot_file file = map_file(folder, name);

    return file.bytes != NULL ? file : map_file(model_folder, name);
}

static void find_template(struct boot *boot, const char *folder)
{
    char detail[ERROR_DETAIL_BYTES_MAX];
    const char *model_folder = boot->options->model_path;
    struct boot_file json = map_either(folder, model_folder, "chat_template.json");
    struct boot_file jinja = map_either(folder, model_folder, "chat_template.jinja");
    struct boot_file config = map_either(folder, model_folder, "tokenizer_config.json");
    struct chat_files files = {.chat_template_json = {json.bytes, (size_t)json.length},
                               .chat_template_jinja = {jinja.bytes, (size_t)jinja.length},
                               .tokenizer_config_json = {config.bytes, (size_t)config.length}};

    boot->chat_template = chat_open(&files, detail);
    if (boot->chat_template == NULL) {
        start_refuse(START_BAD_MODEL, "%s: %s", folder, detail);
    }
    unmap_file(&json);
    unmap_file(&jinja);
    unmap_file(&config);
}

static void open_tokenizer(struct boot *boot, const char *folder)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json",
                                        "added_tokens.json"};
    struct boot_file mapped[sizeof names / sizeof names[0]];
    struct tokenizer_files files;
    struct tokenizer_file *const targets[] = {&files.tokenizer_json, &files.vocab_json, &files.merges_txt,
                                              &files.tokenizer_config_json, &files.added_tokens_json};
    char detail[ERROR_DETAIL_BYTES_MAX];
    slab_handle memory = pools_get(POOL_TOKENIZER);

    assert(slab_is_some(memory));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        mapped[i] = map_file(folder, names[i]);
        *targets[i] = (struct tokenizer_file){mapped[i].bytes, (size_t)mapped[i].length};
    }
    if (!tokenizer_open(&boot->tokenizer, boot->checkpoint.vocab, &files, pools_at(POOL_TOKENIZER, memory),
                        (size_t)pools_element_bytes(POOL_TOKENIZER), detail)) {
        start_refuse(START_BAD_MODEL, "%s: %s", folder, detail);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unmap_file(&mapped[i]);
    }
}

static void *take_pool(enum pool pool)
{
    if (pools_capacity(pool) == 0) {
        return NULL;
    }
    slab_handle handle = pools_get(pool);
    assert(slab_is_some(handle));
    return pools_at(pool, handle);
}

static void open_model(struct boot *boot)
{
    struct model_limits limits = plan_measure_model(&boot->subject, &boot->plan.limits);
    struct model_memory memory = {.weights = take_pool(POOL_WEIGHTS),
                                  .act_text = take_pool(POOL_ACT_TEXT),
                                  .act_vision = take_pool(POOL_ACT_VISION),
                                  .step_tables = take_pool(POOL_STEP_TABLES),
                                  .op_workspace = take_pool(POOL_OP_WORKSPACE),
                                  .kv_pages = pools_base(POOL_KV_PAGE),
                                  .kv_page_count = pools_capacity(POOL_KV_PAGE)};
    bool is_dummy = strcmp(boot->options->load_format, "dummy") == 0;

    assert(pools_stride_bytes(POOL_KV_PAGE) == pools_element_bytes(POOL_KV_PAGE));
    boot->model = model_open(&boot->checkpoint, &limits, &memory, &boot->crew.team);
    uint64_t begin_us = clock_now_us();
    model_load(boot->model, is_dummy ? LOAD_DUMMY : LOAD_AUTO);
    uint64_t loaded_us = clock_now_us();
    warm_model(boot->model, &boot->checkpoint, &boot->plan.limits);
    log_info("model_loaded folder=%s format=%s load_ms=%llu warm_ms=%llu kernels=%s threads=%u",
             boot->options->model_path, is_dummy ? "dummy" : "safetensors",
             (unsigned long long)(loaded_us - begin_us) / 1000, (unsigned long long)(clock_now_us() - loaded_us) / 1000,
             kernels_level_name(kernels_level()), limits.threads);
}

/* ---- the engine ---- */

/* One more than the last id that has text: those above are padding of the head. */
static uint32_t count_ids(const struct tokenizer *tokenizer, uint32_t vocab)
{
    uint32_t limit = vocab;
    size_t bytes;

    while (limit > 1 && (tokenizer_token(tokenizer, (int32_t)limit - 1, &bytes) == NULL || bytes == 0)) {
        limit--;
    }
    return limit;
}

static struct sampling_params default_params(const struct boot *boot)
{
    struct sampling_params params = {.temperature = 1, .top_p = 1, .top_k = -1, .repetition_penalty = 1};
    const struct sampling_defaults *model = &boot->checkpoint.sampling;

    if (strcmp(boot->options->sampling_defaults, "model") == 0) {
        params.temperature = model->temperature;
        params.top_p = model->top_p;
        params.top_k = model->top_k;
        params.min_p = model->min_p;
        params.repetition_penalty = model->repetition_penalty;
    }
    return params;
}

static uint64_t draw_seed(const struct options *options)
{
    uint64_t seed = (uint64_t)options->random_seed;

    if (!options->is_given[OPTION_random_seed] && getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        seed = clock_now_us();
    }
    return seed;
}

static void open_engine(struct boot *boot)
{
    const struct options *options = boot->options;
    const struct pool_limits *limits = &boot->plan.limits;
    struct engine_parts parts = {.checkpoint = &boot->checkpoint,
                                 .limits = limits,
                                 .model = boot->model,
                                 .tokenizer = &boot->tokenizer,
                                 .id_limit = count_ids(&boot->tokenizer, boot->checkpoint.vocab),
                                 .chat_template = boot->chat_template,
                                 .seed = draw_seed(options),
                                 .step_budget_ms =
                                     options->step_budget_ms > 0 ? (uint32_t)options->step_budget_ms : STEP_BUDGET_MS,
                                 .decode_log_interval = (uint32_t)options->decode_log_interval};

    parts.rules =
        (struct chat_rules){.vocab_size = boot->checkpoint.vocab,
                            .defaults = default_params(boot),
                            .has_pictures = limits->picture_workers > 0 && chat_takes_pictures(boot->chat_template),
                            .allows_special_in_text = options->allow_special_tokens_in_text,
                            .has_tools = chat_takes_tools(boot->chat_template),
                            .image = boot->checkpoint.image,
                            .max_source_pixels = limits->source_pixels,
                            .images_max = limits->images_per_request,
                            .choices_max = limits->running_requests};
    boot->engine = engine_open(&parts);
}

void boot_load(struct boot *boot)
{
    const struct options *options = boot->options;
    const char *folder = options->tokenizer_path != NULL ? options->tokenizer_path : options->model_path;

    find_template(boot, folder);
    open_tokenizer(boot, folder);
    crew_start(&boot->crew, boot->plan.limits.compute_threads);
    open_model(boot);
    open_engine(boot);
}

uint64_t boot_seal(struct boot *boot)
{
    struct footprint footprint;

    log_start();
    engine_start(boot->engine);
    pools_seal();
    (void)footprint_read(&footprint);
    footprint_log(&footprint);
    return footprint.anonymous_bytes;
}

void boot_stop(struct boot *boot)
{
    engine_stop(boot->engine);
    crew_stop(&boot->crew);
    log_stop();
}
