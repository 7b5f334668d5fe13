/* sampling: from a row of logits to a token.
 *
 * Order (SGLang's PyTorch sampler): 1. frequency penalty x count and presence penalty, over the answer's ids; 2.
 * repetition penalty once per id of the answer (logit < 0: times r, else divided by r); 3. logit_bias; 4. greedy if
 * temperature < 1e-6 or top_k = 1 (equal logits: the lowest id); 5. divide by temperature, softmax, sort descending
 * (equal: lower id first);
 * 6. top_k keeps the first k; 7. top_p drops an entry if the sum before it is greater than top_p, over the full
 * softmax;
 * 8. min_p drops entries below min_p times the largest; 9. the rest is drawn from, by its own sum.
 */
#ifndef ENGINE_SAMPLING_H
#define ENGINE_SAMPLING_H

#include "engine/request.h"

/* One row. The ids that may never be chosen now are -infinity's: above id_limit, and the stop ids while they are
 * masked. */
struct sampling_row {
    float *logits; /* [vocab]; changed in place */
    uint32_t vocab;
    uint32_t id_limit; /* ids of the tokenizer: those from here on are padding of the head */
    const struct sampling_params *params;
    const int32_t *answer_ids; /* generated so far */
    uint32_t answer_count;
    const int32_t *prompt_ids; /* count for the repetition penalty too (transformers' way); prompt_count 0: no */
    uint32_t prompt_count;
    const int32_t *masked_ids; /* may not be chosen at this place */
    uint32_t masked_count;
};

/* Bytes of work memory for rows of `vocab` logits. Aligned to 64. */
uint64_t sampling_work_bytes(uint32_t vocab);

/* Uniform in [0, 1), a function of its arguments alone. */
double sampling_noise(uint64_t seed, uint32_t choice, uint32_t position);

/* Chooses a token with the noise `uniform`. ERR_INTERNAL if a logit is not a number or +infinity, or none may be
 * chosen. `memory` has sampling_work_bytes(vocab) bytes, all zero before the first use; it is left fit for the next. */
enum err sampling_choose(const struct sampling_row *row, double uniform, void *memory, int32_t *token) ERR_CHECKED;

#endif
