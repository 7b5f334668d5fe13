/* checkpoint: a model folder's JSON files become numbers that were checked.
 *
 * Always true: a number that the files leave out is refused, or it is the published default and one log line says so.
 * Missing and present-but-wrong are different things: only the first may fall back.
 */
#include "engine/model/checkpoint.h"

#include "engine/log.h"
#include "engine/model/bind.h"
#include "engine/model/config_text.h"
#include "engine/model/dims.h"
#include "engine/model/registry.h"
#include "engine/start.h"
#include "pools/domain.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)DIM_COUNT <= (int)CHECKPOINT_DIMS, "every symbol has its place");
_Static_assert(VISION_BLOCKS_MAX <= 64, "full_blocks has a bit for each");

/* One JSON file of the folder while it is being read. */
struct folder_file {
    struct config_text config;
    void *map;
    uint64_t map_bytes;
};

static bool map_file(const char *folder, const char *name, struct folder_file *file)
{
    assert(folder != NULL && name != NULL);
    char path[PATH_BYTES_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);

    if (length < 0 || (size_t)length >= sizeof path) {
        start_refuse(START_USAGE, "--model-path is too long");
    }
    *file = (struct folder_file){.config.file = name};
    file->map = domain_file_map(path, &file->map_bytes);
    if (file->map == NULL) {
        if (errno == ENOENT) {
            return false;
        }
        start_refuse(START_BAD_MODEL, "%s: %s", path, start_errno_text(errno));
    }
    if (file->map_bytes == 0 || file->map_bytes > STAGE_BYTES) {
        start_refuse(START_BAD_MODEL, "%s: %llu bytes; expected 1 to %d", path, (unsigned long long)file->map_bytes,
                     STAGE_BYTES);
    }
    file->config.text = (struct json_span){file->map, (size_t)file->map_bytes};
    return true;
}

static void unmap_file(struct folder_file *file)
{
    if (file->map != NULL) {
        domain_file_unmap(file->map, file->map_bytes);
        file->map = NULL;
    }
}

/* Text model values that may stand at the root or under "text_config". */
static bool text_f64(const struct config_text *config, const char *key, double *value)
{
    char path[CONFIG_PATH_BYTES];
    return config_f64(config, config_text_path(config, key, path), value);
}

static bool text_bool(const struct config_text *config, const char *key, bool *value)
{
    char path[CONFIG_PATH_BYTES];
    return config_bool(config, config_text_path(config, key, path), value);
}

static void read_arch(struct checkpoint *checkpoint, const struct config_text *config)
{
    struct json_span span, name = {NULL, 0};
    struct json_reader reader;
    struct json_event event;

    if (!config_find(config, "architectures", &span)) {
        start_refuse(START_BAD_MODEL, "%s: \"architectures\" is missing", config->file);
    }
    json_open_raw(&reader, span.bytes, span.length);
    if (json_next(&reader, &event) == ERR_OK && event.kind == JSON_ARRAY_BEGIN &&
        json_next(&reader, &event) == ERR_OK && event.kind == JSON_STRING) {
        name = (struct json_span){event.text, event.bytes};
    }
    checkpoint->arch = registry_find(name.bytes, name.length);
    if (checkpoint->arch == NULL) {
        char known[256];
        int shown = span.length > 80 ? 80 : (int)span.length;
        registry_list(known, sizeof known);
        start_refuse(START_BAD_MODEL, "%s: \"architectures\" is %.*s; known: %s", config->file, shown, span.bytes,
                     known);
    }
}

/* What would change the maths in a way that the tables do not know. */
static void refuse_unknown_forms(const struct config_text *config)
{
    char path[CONFIG_PATH_BYTES];
    struct json_span span;
    bool is_on = false;

    if (config_find(config, config_text_path(config, "quantization_config", path), &span)) {
        start_refuse(START_BAD_MODEL, "%s: \"quantization_config\": quantized checkpoints are not supported yet",
                     config->file);
    }
    if (text_bool(config, "use_sliding_window", &is_on) && is_on) {
        start_refuse(START_BAD_MODEL, "%s: \"use_sliding_window\" is true; only full attention is supported",
                     config->file);
    }
    static const char *const activations[] = {"hidden_act", "vision_config.hidden_act"};
    for (uint32_t i = 0; i < 2; i++) {
        const char *key = i == 0 ? config_text_path(config, activations[i], path) : activations[i];
        if (config_string(config, key, &span) && !config_span_is(span, "silu")) {
            start_refuse(START_BAD_MODEL, "%s: \"%s\" is \"%.*s\"; expected \"silu\"", config->file, key,
                         (int)span.length, span.bytes);
        }
    }
}

/* Published files have rope_theta and rope_scaling; transformers 5 writes both into rope_parameters. */
static void read_rope(struct checkpoint *checkpoint, const struct config_text *config)
{
    static const char *const type_keys[] = {"rope_scaling.type", "rope_scaling.rope_type", "rope_parameters.type",
                                            "rope_parameters.rope_type"};
    char path[CONFIG_PATH_BYTES];
    struct json_span span;
    int32_t section[3];
    uint32_t count = 0;

    for (uint32_t i = 0; i < sizeof type_keys / sizeof type_keys[0]; i++) {
        if (config_string(config, config_text_path(config, type_keys[i], path), &span) &&
            !config_span_is(span, "mrope") && !config_span_is(span, "default")) {
            start_refuse(START_BAD_MODEL, "%s: \"%s\" is \"%.*s\"; expected \"mrope\" or \"default\"", config->file,
                         path, (int)span.length, span.bytes);
        }
    }
    if (!text_f64(config, "rope_parameters.rope_theta", &checkpoint->rope_theta) &&
        !text_f64(config, "rope_theta", &checkpoint->rope_theta)) {
        start_refuse(START_BAD_MODEL, "%s: \"rope_theta\" is missing", config->file);
    }
    if (!(checkpoint->rope_theta >= 1)) {
        start_refuse(START_BAD_MODEL, "%s: \"rope_theta\" is %g; expected at least 1", config->file,
                     checkpoint->rope_theta);
    }
    if (!config_i32_list(config, config_text_path(config, "rope_parameters.mrope_section", path), section, 3, &count) &&
        !config_i32_list(config, config_text_path(config, "rope_scaling.mrope_section", path), section, 3, &count)) {
        start_refuse(START_BAD_MODEL, "%s: \"rope_scaling.mrope_section\" is missing", config->file);
    }
    int64_t half = checkpoint->dims[HEAD_DIM] / 2;
    if (count != 3 || section[0] < 0 || section[1] < 0 || section[2] < 0 ||
        (int64_t)section[0] + section[1] + section[2] != half) {
        start_refuse(START_BAD_MODEL, "%s: \"%s\" must be three numbers whose sum is half of the head dimension, %lld",
                     config->file, path, (long long)half);
    }
    for (uint32_t i = 0; i < 3; i++) {
        checkpoint->mrope_section[i] = (uint32_t)section[i];
    }
}

static int32_t read_token_id(const struct checkpoint *checkpoint, const struct config_text *config, const char *key,
                             bool is_required)
{
    int32_t id = -1;

    assert(checkpoint->vocab > 0);
    if (!config_i32(config, key, &id)) {
        if (is_required) {
            start_refuse(START_BAD_MODEL, "%s: \"%s\" is missing", config->file, key);
        }
        return -1;
    }
    if (id < 0 || (uint32_t)id >= checkpoint->vocab) {
        start_refuse(START_BAD_MODEL, "%s: \"%s\" is %d, outside the vocabulary of %u", config->file, key, (int)id,
                     checkpoint->vocab);
    }
    return id;
}

static void read_text(struct checkpoint *checkpoint, const struct config_text *config)
{
    char path[CONFIG_PATH_BYTES];

    checkpoint->vocab = checkpoint->dims[VOCAB];
    checkpoint->hidden = checkpoint->dims[HIDDEN];
    if (!config_u32(config, config_text_path(config, "max_position_embeddings", path), &checkpoint->context_max)) {
        start_refuse(START_BAD_MODEL, "%s: \"max_position_embeddings\" is missing", config->file);
    }
    if (checkpoint->context_max == 0 || checkpoint->context_max > INT32_MAX / 4) {
        start_refuse(START_BAD_MODEL, "%s: \"max_position_embeddings\" is %u; expected 1 to %d", config->file,
                     checkpoint->context_max, INT32_MAX / 4);
    }
    if (!text_bool(config, "tie_word_embeddings", &checkpoint->is_tied)) {
        checkpoint->is_tied = false;
        log_warn("config_default file=%s key=tie_word_embeddings value=false", config->file);
    }
    if (!text_f64(config, "rms_norm_eps", &checkpoint->rms_eps)) {
        checkpoint->rms_eps = 1e-6;
        log_warn("config_default file=%s key=rms_norm_eps value=1e-6", config->file);
    }
    if (!(checkpoint->rms_eps >= 0 && checkpoint->rms_eps < 1)) {
        start_refuse(START_BAD_MODEL, "%s: \"rms_norm_eps\" is %g; expected 0 to 1", config->file, checkpoint->rms_eps);
    }
    read_rope(checkpoint, config);
}

static void read_vision(struct checkpoint *checkpoint, const struct config_text *config)
{
    int32_t blocks[VISION_BLOCKS_MAX];
    uint32_t count = 0;

    assert(checkpoint->dims[V_BLOCKS] > 0 && checkpoint->dims[V_BLOCKS] <= VISION_BLOCKS_MAX);
    checkpoint->has_vision = true;
    checkpoint->image_token_id = read_token_id(checkpoint, config, "image_token_id", true);
    checkpoint->vision_start_token_id = read_token_id(checkpoint, config, "vision_start_token_id", true);
    checkpoint->vision_end_token_id = read_token_id(checkpoint, config, "vision_end_token_id", true);
    checkpoint->video_token_id = read_token_id(checkpoint, config, "video_token_id", false);

    checkpoint->vision_rope_theta = 10000; /* the published files never say it */
    (void)config_f64(config, "vision_config.rope_parameters.rope_theta", &checkpoint->vision_rope_theta);
    if (!(checkpoint->vision_rope_theta >= 1)) {
        start_refuse(START_BAD_MODEL, "%s: \"vision_config.rope_parameters.rope_theta\" is %g; expected at least 1",
                     config->file, checkpoint->vision_rope_theta);
    }
    if (!config_i32_list(config, "vision_config.fullatt_block_indexes", blocks, VISION_BLOCKS_MAX, &count)) {
        checkpoint->full_blocks = checkpoint->arch->full_blocks;
        log_warn("config_default file=%s key=vision_config.fullatt_block_indexes bits=0x%llx", config->file,
                 (unsigned long long)checkpoint->full_blocks);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (blocks[i] < 0) {
            start_refuse(START_BAD_MODEL, "%s: \"vision_config.fullatt_block_indexes\" holds %d", config->file,
                         (int)blocks[i]);
        }
        /* Indices beyond the depth are harmless; a cut depth (--json-model-override-args) leaves some. */
        if ((uint32_t)blocks[i] < checkpoint->dims[V_BLOCKS]) {
            checkpoint->full_blocks |= UINT64_C(1) << blocks[i];
        }
    }
}

/* The processors that this architecture's pictures may name, as one text; returns whether `type` is one of them. */
static bool is_known_processor(const struct arch *arch, struct json_span type, char *known, size_t known_bytes)
{
    size_t used = 0;
    bool is_known = false;

    known[0] = '\0';
    for (const char *const *name = arch->image_processors; *name != NULL && used < known_bytes; name++) {
        int length = snprintf(known + used, known_bytes - used, "%s%s", used > 0 ? ", " : "", *name);
        used += length > 0 ? (size_t)length : 0;
        is_known = is_known || config_span_is(type, *name);
    }
    return is_known;
}

static void check_switches(const struct arch *arch, const struct config_text *config)
{
    static const char *const switches[] = {"do_resize", "do_rescale", "do_normalize", "do_convert_rgb"};
    struct json_span type;
    char known[256];
    uint32_t resample = 3;
    double factor = 1.0 / 255;

    for (uint32_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        bool is_on = true;
        if (config_bool(config, switches[i], &is_on) && !is_on) {
            start_refuse(START_BAD_MODEL, "%s: \"%s\" is false; expected true", config->file, switches[i]);
        }
    }
    if (config_u32(config, "resample", &resample) && resample != 3) {
        start_refuse(START_BAD_MODEL, "%s: \"resample\" is %u; expected 3 (bicubic)", config->file, resample);
    }
    if (config_f64(config, "rescale_factor", &factor) && (factor < 0.003921568 || factor > 0.003921569)) {
        start_refuse(START_BAD_MODEL, "%s: \"rescale_factor\" is %g; expected 1/255", config->file, factor);
    }
    if (!config_string(config, "image_processor_type", &type)) {
        log_warn("config_default file=%s key=image_processor_type value=%s", config->file, arch->image_processors[0]);
        return;
    }
    if (!is_known_processor(arch, type, known, sizeof known)) {
        start_refuse(START_BAD_MODEL, "%s: \"image_processor_type\" is \"%.*s\"; known: %s", config->file,
                     (int)type.length, type.bytes, known);
    }
}

/* An edge that both files may name: they must agree. */
static uint32_t read_edge(const struct config_text *config, const char *key, uint32_t of_model)
{
    uint32_t value = 0;

    assert(of_model > 0);
    if (!config_u32(config, key, &value)) {
        log_warn("config_default file=%s key=%s value=%u from=config.json", config->file, key, of_model);
        return of_model;
    }
    if (value != of_model) {
        start_refuse(START_BAD_MODEL, "%s: \"%s\" is %u; config.json's vision_config says %u", config->file, key, value,
                     of_model);
    }
    return value;
}

static uint64_t read_pixels(const struct config_text *config, const char *key, const char *alias, uint32_t published)
{
    uint32_t value = 0;

    /* The flag's word comes first in either spelling. */
    struct config_text over = *config;
    over.text.length = 0;
    if (config_u32(&over, key, &value) || config_u32(&over, alias, &value) || config_u32(config, key, &value) ||
        config_u32(config, alias, &value)) {
        return value;
    }
    log_warn("config_default file=%s key=%s value=%u", config->file, key, published);
    return published;
}

static void read_channels(const struct config_text *config, const char *key, const double *published, float *channels)
{
    double values[3];
    uint32_t count = 0;

    if (!config_f64_list(config, key, values, 3, &count)) {
        memcpy(values, published, sizeof values);
        count = 3;
        log_warn("config_default file=%s key=%s value=%g,%g,%g", config->file, key, values[0], values[1], values[2]);
    }
    if (count != 3) {
        start_refuse(START_BAD_MODEL, "%s: \"%s\" has %u values; expected 3", config->file, key, count);
    }
    for (uint32_t i = 0; i < 3; i++) {
        channels[i] = (float)values[i];
    }
}

static void read_preprocessor(struct checkpoint *checkpoint, const struct config_text *config)
{
    static const double mean[3] = {0.48145466, 0.4578275, 0.40821073}, std[3] = {0.26862954, 0.26130258, 0.27577711};
    struct image_rules *image = &checkpoint->image;
    uint32_t frames = 2;

    check_switches(checkpoint->arch, config);
    image->patch = read_edge(config, "patch_size", checkpoint->dims[V_PATCH]);
    image->merge = read_edge(config, "merge_size", checkpoint->dims[V_MERGE]);
    if (config_u32(config, "temporal_patch_size", &frames) && frames != checkpoint->dims[V_FRAMES]) {
        start_refuse(START_BAD_MODEL, "%s: \"temporal_patch_size\" is %u; config.json's vision_config says %u",
                     config->file, frames, checkpoint->dims[V_FRAMES]);
    }
    image->min_pixels = read_pixels(config, "min_pixels", "size.shortest_edge", 3136);
    image->max_pixels = read_pixels(config, "max_pixels", "size.longest_edge", 12845056);
    uint64_t edge = (uint64_t)image->patch * image->merge;
    if (image->min_pixels == 0 || image->min_pixels > image->max_pixels || image->max_pixels < edge * edge) {
        bool is_by_flag = config->over.length > 0;
        start_refuse(is_by_flag ? START_USAGE : START_BAD_MODEL,
                     "%s: min_pixels %llu, max_pixels %llu: expected 1 <= min <= max and max >= %llu",
                     is_by_flag ? config->over_name : config->file, (unsigned long long)image->min_pixels,
                     (unsigned long long)image->max_pixels, (unsigned long long)(edge * edge));
    }
    read_channels(config, "image_mean", mean, image->mean);
    read_channels(config, "image_std", std, image->std);
    for (uint32_t i = 0; i < 3; i++) {
        if (!(image->std[i] > 0)) {
            start_refuse(START_BAD_MODEL, "%s: \"image_std\" holds %g; expected more than 0", config->file,
                         (double)image->std[i]);
        }
    }
}

static void read_eos(struct checkpoint *checkpoint, const struct config_text *generation,
                     const struct config_text *config)
{
    char path[CONFIG_PATH_BYTES];
    const struct config_text *source = generation;

    assert(checkpoint->vocab > 0 && checkpoint->eos_count == 0);
    if (!config_i32_list(generation, "eos_token_id", checkpoint->eos_ids, EOS_IDS_MAX, &checkpoint->eos_count)) {
        source = config;
        (void)config_i32_list(config, config_text_path(config, "eos_token_id", path), checkpoint->eos_ids, EOS_IDS_MAX,
                              &checkpoint->eos_count);
    }
    if (checkpoint->eos_count == 0) {
        start_refuse(START_BAD_MODEL, "%s: \"eos_token_id\" is missing", config->file);
    }
    for (uint32_t i = 0; i < checkpoint->eos_count; i++) {
        if (checkpoint->eos_ids[i] < 0 || (uint32_t)checkpoint->eos_ids[i] >= checkpoint->vocab) {
            start_refuse(START_BAD_MODEL, "%s: \"eos_token_id\" %d is outside the vocabulary of %u", source->file,
                         (int)checkpoint->eos_ids[i], checkpoint->vocab);
        }
    }
}

static float read_sampling(const struct config_text *generation, const char *key, double fallback, double least,
                           double most)
{
    double value = fallback;

    assert(least <= fallback && fallback <= most);
    (void)config_f64(generation, key, &value);
    if (!(value >= least && value <= most)) {
        start_refuse(START_BAD_MODEL, "%s: \"%s\" is %g; expected %g to %g", generation->file, key, value, least, most);
    }
    return (float)value;
}

static void read_generation(struct checkpoint *checkpoint, const struct config_text *generation)
{
    int32_t top_k = -1;

    (void)config_i32(generation, "top_k", &top_k);
    checkpoint->sampling = (struct sampling_defaults){
        .temperature = read_sampling(generation, "temperature", 1, 0, 100),
        .top_p = read_sampling(generation, "top_p", 1, 1e-9, 1),
        .top_k = top_k <= 0 ? -1 : top_k,
        .min_p = read_sampling(generation, "min_p", 0, 0, 1),
        .repetition_penalty = read_sampling(generation, "repetition_penalty", 1, 1e-3, 100),
    };
}

/* The "image" part of --mm-process-config. */
static struct json_span image_overlay(const char *mm_process_json)
{
    struct json_span span = {NULL, 0};
    struct config_text flag = {.file = "--mm-process-config", .over_name = "--mm-process-config"};

    if (mm_process_json != NULL && mm_process_json[0] != '\0') {
        flag.over = (struct json_span){mm_process_json, strlen(mm_process_json)};
        config_text_open(&flag);
        if (config_find(&flag, "image", &span) && span.bytes[0] != '{') {
            start_refuse(START_USAGE, "--mm-process-config: \"image\" is not an object");
        }
    }
    return span;
}

void checkpoint_read(struct checkpoint *checkpoint, const struct checkpoint_source *source)
{
    struct folder_file config, generation, preprocessor;

    assert(source->folder != NULL);
    *checkpoint = (struct checkpoint){
        .folder = source->folder,
        .image_token_id = -1,
        .video_token_id = -1,
        .vision_start_token_id = -1,
        .vision_end_token_id = -1,
    };
    if (!map_file(source->folder, "config.json", &config)) {
        start_refuse(START_BAD_MODEL,
                     "%s/config.json: no such file (--model-path is a folder on this machine; nothing is downloaded)",
                     source->folder);
    }
    config.config.over_name = "--json-model-override-args";
    if (source->model_override_json != NULL) {
        config.config.over = (struct json_span){source->model_override_json, strlen(source->model_override_json)};
    }
    config_text_open(&config.config);
    read_arch(checkpoint, &config.config);
    refuse_unknown_forms(&config.config);
    dims_read(checkpoint->arch, &config.config, checkpoint->dims);
    read_text(checkpoint, &config.config);

    (void)map_file(source->folder, "generation_config.json", &generation);
    config_text_open(&generation.config);
    read_eos(checkpoint, &generation.config, &config.config);
    read_generation(checkpoint, &generation.config);
    unmap_file(&generation);

    if (checkpoint->dims[V_BLOCKS] > 0) {
        read_vision(checkpoint, &config.config);
        if (!map_file(source->folder, "preprocessor_config.json", &preprocessor)) {
            start_refuse(START_BAD_MODEL, "%s/preprocessor_config.json: no such file", source->folder);
        }
        preprocessor.config.over_name = "--mm-process-config";
        preprocessor.config.over = image_overlay(source->mm_process_json);
        config_text_open(&preprocessor.config);
        read_preprocessor(checkpoint, &preprocessor.config);
        unmap_file(&preprocessor);
    }
    unmap_file(&config);
    bind_measure(checkpoint, &checkpoint->tensor_count, &checkpoint->tensor_bytes);
}
