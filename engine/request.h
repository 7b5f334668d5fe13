/* request: the record of one chat request and the rules of who may touch which part of it, when.
 *
 * A REQUEST goes conn -> intake -> engine -> conn. Whoever holds it (`stage`) may write its plain fields; the atomics
 * are the only fields that two threads touch at once. conn alone takes it from the pool and gives it back, and only in
 * the stages READING and DONE: so a leaving client sets `is_cancelled` and waits for DONE like everybody else.
 *
 * A request for n > 1 choices is a REQUEST a choice. The first one alone is read and parsed; intake then gives it back
 * to conn (CHOICES), which takes the others, all or none, as copies of it, and hands them all to the engine.
 */
#ifndef ENGINE_REQUEST_H
#define ENGINE_REQUEST_H

#include "config.h"
#include "engine/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The holder. Stored with release by the one who hands over, loaded with acquire by the one who takes. */
enum request_stage {
    REQUEST_READING, /* conn: the body arrives */
    REQUEST_INTAKE,  /* an intake worker: parsing, chat, ids */
    REQUEST_CHOICES, /* conn: the prompt is whole, its other choices are not made yet */
    REQUEST_ENGINE,  /* the engine: queued, started, paused (its own state machine: engine/sched.h) */
    REQUEST_DONE,    /* conn again: finish or err is final, the engine holds nothing of it any more */
};

enum finish_reason { FINISH_NONE, FINISH_STOP, FINISH_LENGTH, FINISH_ABORT };

/* Sampling as asked, defaults filled in by intake. Order of use and formulas: engine/sampling.h. */
struct sampling_params {
    float temperature;        /* >= 0; below 1e-6 greedy */
    float top_p;              /* (0, 1] */
    int32_t top_k;            /* -1 (all) or >= 1 */
    float min_p;              /* [0, 1] */
    float repetition_penalty; /* (0, 2] */
    float frequency_penalty;  /* [-2, 2] */
    float presence_penalty;   /* [-2, 2] */
    uint64_t seed;            /* noise is a function of (seed, choice, position) */
    uint32_t min_tokens;      /* stop tokens are masked before */
    bool ignore_eos;
    uint32_t stop_id_count;
    int32_t stop_ids[STOP_IDS_MAX];
    uint32_t bias_count;
    int32_t bias_ids[LOGIT_BIAS_MAX];
    float bias_values[LOGIT_BIAS_MAX];
};

/* One picture of a request: where its file lies in the BODY, and what its header says. */
struct picture {
    const unsigned char *file; /* decoded bytes inside the BODY; valid until body_release */
    size_t file_bytes;
    uint32_t part_index;       /* "messages[i].content[j]": for messages about it */
    uint32_t message_index;
    uint16_t width, height;    /* upright (after EXIF), source pixels */
    uint16_t grid_h, grid_w;   /* patches after smart_resize */
    uint32_t token_count;      /* grid_h * grid_w / merge^2 */
    uint32_t first_token;      /* index of its first image token in TOKENS */
    unsigned char digest[32];  /* file bytes + preprocessing parameters */
};

struct stop_string {
    uint16_t bytes;
    char text[STOP_BYTES_MAX];
};

struct request {
    _Atomic uint32_t stage;          /* enum request_stage */
    atomic_bool is_cancelled;        /* conn -> all: the client left; drop it as soon as possible */

    /* Identity; conn writes, everybody reads. */
    uint32_t index;                  /* of the pool element: names the request in rings */
    uint64_t number;                 /* 1, 2, ...: arrival order */
    uint64_t arrived_us;             /* monotonic: headers complete */
    uint64_t created_s;              /* unix time */
    char id[40];                     /* "chatcmpl-" and 24 hex digits */
    uint64_t group;                  /* number of the choice 0: all choices of one client's request have it */
    uint32_t choice;                 /* 0 .. choice_count-1 */

    /* The body; conn writes before INTAKE. NULL once released. */
    unsigned char *body;
    size_t body_bytes;
    atomic_bool is_body_free;        /* the holder is through with the BODY: conn gives the slot back */

    /* What was asked; intake writes. */
    bool is_stream, wants_usage, wants_continuous_usage, no_stop_trim, skip_special_tokens;
    uint32_t choice_count;           /* `n` */
    char model[MODEL_NAME_BYTES_MAX]; /* echoed */
    struct sampling_params sampling;
    uint32_t stop_string_count;
    struct stop_string stop_strings[STOP_STRINGS_MAX];
    uint32_t picture_count;
    struct picture pictures[IMAGES_MAX];
    int32_t *tokens;                 /* TOKENS: [context] prompt ids (pads expanded), then the answer's */
    uint32_t prompt_tokens;
    uint32_t max_new_tokens;         /* >= 1: prompt_tokens + max_new_tokens <= context */

    /* Refusal; the holder writes before handing over to DONE. */
    enum err err;
    char err_param[64];              /* the field, "" if none */
    char err_detail[ERROR_DETAIL_BYTES_MAX];

    /* The answer; the engine writes, conn reads at any time. */
    _Atomic uint32_t answer_tokens;  /* ids published behind the prompt */
    _Atomic uint64_t answer_bytes;   /* bytes of decoded text that may be released (stop strings, whole characters) */
    _Atomic uint32_t finish;         /* enum finish_reason; stored after the two above */
    int32_t matched_stop_id;         /* final with finish: stop token, or -1 */
    int32_t matched_stop_string;     /* final with finish: index into stop_strings, or -1 */
    uint32_t cached_tokens;          /* prompt tokens that came from the prefix cache; final with the first token */
    uint32_t image_tokens;           /* of the prompt; intake writes */
    _Atomic uint64_t first_token_us, finished_us; /* monotonic; for the histograms */

    /* What it holds of the engine's pools, for lists of holders; the engine writes once a round, anyone reads. Of pages
     * that several hold each counts them all. */
    _Atomic uint32_t slot_state; /* enum sched_state; 0: it has no slot yet */
    _Atomic uint32_t held_page_lists, held_kv_pages, held_features, held_mm_pages;

    /* The engine's own part: engine/sched.c. */
    uint32_t engine_slot;            /* index of its running slot, or UINT32_MAX */
    uint32_t queue_next;             /* intrusive list of the waiting */
};

/* Refuses: records `err`, the field and a formatted detail. The first refusal wins. Returns `err` for `return`. */
enum err request_refuse(struct request *request, enum err err, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The record with this index in the pool REQUEST. */
struct request *request_at(uint32_t index);

/* Makes a record fresh for a new client: everything zero but index, number and times; one choice. `id` is the opener's
 * to write. */
void request_open(struct request *request, uint32_t index, uint64_t number, uint64_t now_us, uint64_t unix_s);

/* Makes a record another choice of `first`, whose prompt is whole: the same prompt, copied to `tokens`, and the same
 * wishes. Its pictures lie in first's BODY, which must stay until every choice says is_body_free. */
void request_open_choice(struct request *request, uint32_t index, uint64_t number, uint32_t choice,
                         const struct request *first, int32_t *tokens);

#endif
