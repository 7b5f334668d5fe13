/* checkpoint: everything that a model folder says, read before any memory is planned. Works without the weights.
 *
 * Always true after checkpoint_read: every number has been checked (no zero dimension, heads divide, sections sum up),
 * and each one that the files left out is a documented default that was logged with its key.
 */
#ifndef MODEL_CHECKPOINT_H
#define MODEL_CHECKPOINT_H

#include "config.h"
#include "engine/image/grid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch;

enum {
    CHECKPOINT_DIMS = 48, /* room for enum dim of engine/model/model.h */
};

/* Sampling values for requests that name none: generation_config.json, else the API's defaults. */
struct sampling_defaults {
    float temperature;        /* 1 */
    float top_p;              /* 1 */
    int32_t top_k;            /* -1: all */
    float min_p;              /* 0 */
    float repetition_penalty; /* 1 */
};

struct checkpoint {
    const struct arch *arch;
    const char *folder;             /* the caller's string */
    uint32_t dims[CHECKPOINT_DIMS]; /* by enum dim; those of the flags are 0 */

    uint32_t context_max; /* positions: max_position_embeddings */
    uint32_t vocab;       /* rows of the head; the tokenizer's is smaller */
    uint32_t hidden;      /* width of a feature row */
    int32_t eos_ids[EOS_IDS_MAX];
    uint32_t eos_count; /* at least 1 */
    bool is_tied;       /* the head is the embedding */
    double rms_eps, rope_theta;
    uint32_t mrope_section[3]; /* frequencies of t, h, w; sum: half of the head */

    bool has_vision;
    int32_t image_token_id, video_token_id, vision_start_token_id, vision_end_token_id; /* -1: none */
    double vision_rope_theta;
    uint64_t full_blocks; /* bit i: block i attends to the whole picture, not to its window */
    struct image_rules image;

    struct sampling_defaults sampling;

    uint32_t tensor_count; /* that the tensor table asks for */
    uint64_t tensor_bytes; /* of them in bf16 files */
};

/* Where to read from. Strings outlive the checkpoint. */
struct checkpoint_source {
    const char *folder;
    const char *model_override_json; /* --json-model-override-args: merged over config.json; NULL: none */
    const char *mm_process_json; /* --mm-process-config: {"image": {"max_pixels": …}} over the preprocessor's; NULL */
};

/* Reads config.json, generation_config.json and preprocessor_config.json. Refuses to start (code 4), naming file
 * and key, what it cannot serve. Start-up only. The chat template is engine/text/chat.h's, the tokenizer too. */
void checkpoint_read(struct checkpoint *checkpoint, const struct checkpoint_source *source);

#endif
