/* answer: what a sampled token means for its request: published, and perhaps the last one. */
#ifndef ENGINE_ANSWER_H
#define ENGINE_ANSWER_H

#include "engine/request.h"
#include "engine/text/stops.h"

enum { ANSWER_STOPS_MAX = EOS_IDS_MAX + STOP_IDS_MAX };

/* Of one running slot. */
struct answer {
    struct stops stops;
    uint32_t stop_id_count;
    int32_t stop_ids[ANSWER_STOPS_MAX]; /* the checkpoint's, then the request's */
};

/* Begins the answer of a request. */
void answer_open(struct answer *answer, const struct request *request, const int32_t *eos_ids, uint32_t eos_count);

/* Ids that may not be chosen for answer token `index` (counted from 0): the stop ids, before min_tokens. */
uint32_t answer_masked(const struct answer *answer, const struct request *request, uint32_t index, const int32_t **ids);

/* tokens[prompt_tokens + count - 1] is new: publishes it and the text that may be shown. Anything but FINISH_NONE is
 * published too: the request is over. */
enum finish_reason answer_publish(struct answer *answer, struct request *request, const struct tokenizer *tokenizer,
                                  uint32_t count);

#endif
