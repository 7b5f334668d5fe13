/* answer: what a sampled token means for its request.
 *
 * Always true: answer_tokens, answer_bytes and finish are stored in this order, each with release, so whoever sees a
 * finish sees the whole answer; answer_bytes never moves back.
 */
#include "engine/answer.h"

#include <assert.h>
#include <string.h>

void answer_open(struct answer *answer, const struct request *request, const int32_t *eos_ids, uint32_t eos_count)
{
    const struct sampling_params *params = &request->sampling;

    assert(eos_count <= EOS_IDS_MAX && params->stop_id_count <= STOP_IDS_MAX);
    answer->stop_id_count = eos_count + params->stop_id_count;
    memcpy(answer->stop_ids, eos_ids, eos_count * sizeof eos_ids[0]);
    memcpy(answer->stop_ids + eos_count, params->stop_ids, params->stop_id_count * sizeof eos_ids[0]);
    stops_open(&answer->stops, request->stop_strings, request->stop_string_count, request->skip_special_tokens,
               request->no_stop_trim);
}

uint32_t answer_masked(const struct answer *answer, const struct request *request, uint32_t index, const int32_t **ids)
{
    *ids = answer->stop_ids;
    return index < request->sampling.min_tokens ? answer->stop_id_count : 0;
}

static bool is_stop_id(const struct answer *answer, const struct request *request, int32_t id)
{
    for (uint32_t i = 0; i < answer->stop_id_count && !request->sampling.ignore_eos; i++) {
        if (answer->stop_ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Why the answer ends with this token, if it does. */
static enum finish_reason judge(struct answer *answer, struct request *request, const struct tokenizer *tokenizer,
                                uint32_t count)
{
    const int32_t *ids = request->tokens + request->prompt_tokens;
    bool is_stopped = is_stop_id(answer, request, ids[count - 1]);
    bool is_full = count == request->max_new_tokens;
    uint32_t shown_count = is_stopped && !request->no_stop_trim ? count - 1 : count;

    if (stops_append(&answer->stops, tokenizer, ids, shown_count, is_stopped || is_full)) {
        request->matched_stop_string = answer->stops.matched;
        return FINISH_STOP;
    }
    if (is_stopped) {
        request->matched_stop_id = ids[count - 1];
        return FINISH_STOP;
    }
    return is_full ? FINISH_LENGTH : FINISH_NONE;
}

enum finish_reason answer_publish(struct answer *answer, struct request *request, const struct tokenizer *tokenizer,
                                  uint32_t count)
{
    assert(count > 0 && count <= request->max_new_tokens);
    assert(atomic_load_explicit(&request->finish, memory_order_relaxed) == FINISH_NONE);
    enum finish_reason finish = judge(answer, request, tokenizer, count);
    atomic_store_explicit(&request->answer_tokens, count, memory_order_release);
    atomic_store_explicit(&request->answer_bytes, answer->stops.safe_bytes, memory_order_release);
    if (finish != FINISH_NONE) {
        atomic_store_explicit(&request->finish, finish, memory_order_release);
    }
    return finish;
}
