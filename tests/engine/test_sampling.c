/* Properties of engine/sampling.c: the distributions of the fixtures, noise that is a function of its arguments,
 * faults. */
#include "engine/json.h"
#include "engine/sampling.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { VOCAB_MAX = 200000, NAMES_MAX = 16, NAME_BYTES = 32, IDS_MAX = 64, FILE_BYTES = 4 * 1024 * 1024 };

struct vector {
    char name[NAME_BYTES];
    uint32_t count;
    float logits[2048];
};

struct fixture {
    char name[128];
    const struct vector *vector;
    struct sampling_params params;
    int32_t prompt_ids[IDS_MAX], answer_ids[IDS_MAX];
    uint32_t prompt_count, answer_count, kept;
    bool has_prompt_scope;
    double probs[2048];
};

static struct vector vectors[NAMES_MAX];
static uint32_t vector_count;
static void *work;
static float logits[VOCAB_MAX];

static const struct sampling_params off = {.temperature = 1, .top_p = 1, .top_k = -1, .repetition_penalty = 1};

static int choose(const struct fixture *fixture, double uniform)
{
    int32_t token = -1;
    memcpy(logits, fixture->vector->logits, fixture->vector->count * sizeof logits[0]);
    struct sampling_row row = {.logits = logits,
                               .vocab = fixture->vector->count,
                               .id_limit = fixture->vector->count,
                               .params = &fixture->params,
                               .answer_ids = fixture->answer_ids,
                               .answer_count = fixture->answer_count,
                               .prompt_ids = fixture->prompt_ids,
                               .prompt_count = fixture->has_prompt_scope ? fixture->prompt_count : 0};
    CU_ASSERT_EQUAL(sampling_choose(&row, uniform, work, &token), ERR_OK);
    return token;
}

/* Reading the fixture file. A value that is not as expected ends the test by CU_ASSERT_FATAL. */
static struct json_event next(struct json_reader *reader)
{
    struct json_event event;
    CU_ASSERT_FATAL(json_next(reader, &event) == ERR_OK);
    return event;
}

static double number(const struct json_event *event)
{
    double value = 0;
    if (event->kind == JSON_STRING) {
        return -INFINITY; /* "-inf" */
    }
    CU_ASSERT_FATAL(json_number_f64(event->text, event->bytes, &value));
    return value;
}

static uint32_t read_ids(struct json_reader *reader, int32_t *ids)
{
    uint32_t count = 0;
    struct json_event event = next(reader);
    while ((event = next(reader)).kind != JSON_ARRAY_END) {
        CU_ASSERT_FATAL(count < IDS_MAX);
        ids[count++] = (int32_t)number(&event);
    }
    return count;
}

static void read_vectors(struct json_reader *reader)
{
    struct json_event event = next(reader);
    while ((event = next(reader)).kind == JSON_KEY) {
        struct vector *vector = &vectors[vector_count++];
        memcpy(vector->name, event.text, event.bytes);
        event = next(reader);
        while ((event = next(reader)).kind != JSON_ARRAY_END) {
            vector->logits[vector->count++] = (float)number(&event);
        }
    }
}

static void read_params(struct json_reader *reader, struct fixture *fixture)
{
    struct sampling_params *params = &fixture->params;
    struct json_event key = next(reader), value;
    while ((key = next(reader)).kind == JSON_KEY) {
        value = next(reader);
        if (json_event_is(&key, "repetition_scope")) {
            fixture->has_prompt_scope = json_event_is(&value, "prompt_and_output");
        } else if (json_event_is(&key, "logit_bias")) {
            while ((key = next(reader)).kind == JSON_KEY) {
                value = next(reader);
                int64_t id = 0;
                CU_ASSERT_FATAL(json_number_i64(key.text, key.bytes, &id));
                params->bias_ids[params->bias_count] = (int32_t)id;
                params->bias_values[params->bias_count++] = (float)number(&value);
            }
        } else {
            float x = (float)number(&value);
            params->temperature = json_event_is(&key, "temperature") ? x : params->temperature;
            params->top_p = json_event_is(&key, "top_p") ? x : params->top_p;
            params->top_k = json_event_is(&key, "top_k") ? (int32_t)x : params->top_k;
            params->min_p = json_event_is(&key, "min_p") ? x : params->min_p;
            params->repetition_penalty = json_event_is(&key, "repetition_penalty") ? x : params->repetition_penalty;
            params->frequency_penalty = json_event_is(&key, "frequency_penalty") ? x : params->frequency_penalty;
            params->presence_penalty = json_event_is(&key, "presence_penalty") ? x : params->presence_penalty;
        }
    }
}

static void read_probs(struct json_reader *reader, struct fixture *fixture, bool is_sparse)
{
    struct json_event event = next(reader);
    for (uint32_t i = 0; (event = next(reader)).kind != JSON_ARRAY_END && event.kind != JSON_OBJECT_END; i++) {
        int64_t id = i;
        if (is_sparse) {
            bool is_pair = event.kind == JSON_ARRAY_BEGIN;
            event = is_pair ? next(reader) : event;
            CU_ASSERT_FATAL(json_number_i64(event.text, event.bytes, &id));
            event = next(reader);
            fixture->probs[id] = number(&event);
            event = is_pair ? next(reader) : event;
        } else {
            fixture->probs[id] = number(&event);
        }
    }
}

static bool read_fixture(struct json_reader *reader, struct fixture *fixture)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->params = off;
    if (next(reader).kind != JSON_OBJECT_BEGIN) {
        return false;
    }
    struct json_event key, value;
    while ((key = next(reader)).kind == JSON_KEY) {
        if (json_event_is(&key, "params")) {
            read_params(reader, fixture);
        } else if (json_event_is(&key, "prompt_ids")) {
            fixture->prompt_count = read_ids(reader, fixture->prompt_ids);
        } else if (json_event_is(&key, "output_ids")) {
            fixture->answer_count = read_ids(reader, fixture->answer_ids);
        } else if (json_event_is(&key, "probs") || json_event_is(&key, "probs_sparse")) {
            read_probs(reader, fixture, json_event_is(&key, "probs_sparse"));
        } else if (json_event_is(&key, "name")) {
            value = next(reader);
            memcpy(fixture->name, value.text, value.bytes);
        } else if (json_event_is(&key, "logits")) {
            value = next(reader);
            for (uint32_t i = 0; i < vector_count; i++) {
                fixture->vector = json_event_is(&value, vectors[i].name) ? &vectors[i] : fixture->vector;
            }
        } else if (json_event_is(&key, "kept")) {
            value = next(reader);
            fixture->kept = (uint32_t)number(&value);
        } else {
            CU_ASSERT_FATAL(json_skip(reader) == ERR_OK);
        }
    }
    return fixture->vector != NULL;
}

/* Walks the kept entries, best first: just inside its span of the noise each entry is chosen, and no other. */
static bool is_distribution(const struct fixture *fixture)
{
    const double margin = 2e-6;
    bool is_walked[2048] = {false};
    double before = 0;
    uint32_t kept = 0, wrong = 0;

    for (;;) {
        int best = -1;
        for (uint32_t i = 0; i < fixture->vector->count; i++) {
            if (!is_walked[i] && fixture->probs[i] > 0 && (best < 0 || fixture->probs[i] > fixture->probs[best])) {
                best = (int)i;
            }
        }
        if (best < 0) {
            break;
        }
        is_walked[best] = true;
        double after = before + fixture->probs[best];
        if (fixture->probs[best] > 4 * margin) {
            wrong += choose(fixture, before + margin) != best;
            wrong += choose(fixture, (before + after) / 2) != best;
            wrong += choose(fixture, after - margin) != best;
        }
        before = after;
        kept++;
    }
    double whole = before - 1;
    return wrong == 0 && kept == fixture->kept && whole < 1e-5 && whole > -1e-5;
}

static void the_fixtures_distributions_are_drawn_from(void)
{
    static char text[FILE_BYTES];
    static struct fixture fixture;
    struct json_reader reader;
    struct json_event key;
    uint32_t case_count = 0;

    long bytes = harness_read("tests/data/fixtures/sampling.json", text, sizeof text);
    CU_ASSERT_FATAL(bytes > 0 && bytes < FILE_BYTES);
    json_open(&reader, text, (size_t)bytes);
    key = next(&reader);
    while ((key = next(&reader)).kind == JSON_KEY) {
        if (json_event_is(&key, "logits")) {
            read_vectors(&reader);
        } else if (json_event_is(&key, "cases")) {
            key = next(&reader);
            while (read_fixture(&reader, &fixture)) {
                CU_ASSERT(is_distribution(&fixture));
                if (!is_distribution(&fixture)) {
                    CU_FAIL(fixture.name);
                }
                case_count++;
            }
        } else {
            CU_ASSERT_FATAL(json_skip(&reader) == ERR_OK);
        }
    }
    CU_ASSERT_EQUAL(case_count, 80);
}

/* The same, by sorting everything. */
static int32_t choose_slowly(const float *row, uint32_t count, const struct sampling_params *params, double uniform)
{
    static uint32_t order[VOCAB_MAX];
    static double weights[VOCAB_MAX];
    float largest = -INFINITY;
    double total = 0, sum = 0, running = 0;

    for (uint32_t i = 0; i < count; i++) {
        largest = row[i] > largest ? row[i] : largest;
    }
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = (double)expf(-((largest - row[i]) / params->temperature));
        total += weights[i];
        uint32_t place = i;
        for (; place > 0 && row[order[place - 1]] < row[i]; place--) {
            order[place] = order[place - 1];
        }
        order[place] = i;
    }
    uint32_t kept = 0;
    while (kept < count && (params->top_k < 1 || kept < (uint32_t)params->top_k) &&
           sum <= (double)params->top_p * total && weights[order[kept]] >= (double)params->min_p) {
        sum += weights[order[kept++]];
    }
    uint32_t i = 0;
    for (; i + 1 < kept; i++) {
        running += weights[order[i]];
        if (running > uniform * sum) {
            break;
        }
    }
    return (int32_t)order[i];
}

static void selection_by_bins_equals_a_full_sort(void)
{
    enum { COUNT = 3000 };
    uint64_t random = 1;
    int different = 0;

    for (int round = 0; round < 300; round++) {
        struct sampling_params params = off;
        float spread = (float)(round % 7) * 2;
        for (uint32_t i = 0; i < COUNT; i++) {
            logits[i] = (float)(sampling_noise(random++, 0, 0) - 0.5) * spread;
            logits[i] = round % 5 == 0 ? roundf(logits[i]) : logits[i]; /* many ties */
        }
        params.temperature = 0.1f + (float)(round % 11) / 5;
        params.top_k = round % 3 == 0 ? 1 + round * 7 % COUNT : -1;
        params.top_p = round % 4 == 1 ? (float)(1 + round % 97) / 100 : 1;
        params.min_p = round % 6 == 2 ? (float)(round % 31) / 40 : 0;
        double uniform = sampling_noise(99, 0, (uint32_t)round);
        int32_t slow = choose_slowly(logits, COUNT, &params, uniform), token = -1;
        struct sampling_row row = {.logits = logits, .vocab = COUNT, .id_limit = COUNT, .params = &params};
        CU_ASSERT_EQUAL(sampling_choose(&row, uniform, work, &token), ERR_OK);
        different += token != slow;
    }
    CU_ASSERT(different <= 1); /* sums in another order may differ at a boundary */
}

static void noise_is_uniform_and_a_function_of_its_arguments(void)
{
    uint32_t buckets[16] = {0};
    const uint32_t draws = 160000;

    for (uint32_t i = 0; i < draws; i++) {
        double u = sampling_noise(i / 400, i % 4, i % 400);
        CU_ASSERT_FATAL(u >= 0 && u < 1);
        buckets[(uint32_t)(u * 16)]++;
    }
    for (int i = 0; i < 16; i++) {
        CU_ASSERT(buckets[i] > draws / 16 - 500 && buckets[i] < draws / 16 + 500);
    }
    CU_ASSERT_EQUAL(sampling_noise(7, 1, 3), sampling_noise(7, 1, 3));
    CU_ASSERT_NOT_EQUAL(sampling_noise(7, 1, 3), sampling_noise(7, 3, 1));
    CU_ASSERT_NOT_EQUAL(sampling_noise(7, 1, 3), sampling_noise(8, 1, 3));
}

static void ids_of_padding_and_masked_ids_are_never_chosen(void)
{
    int32_t token = -1;
    const int32_t masked[] = {4, 2};
    struct sampling_params params = off;
    float row_logits[] = {0, 1, 9, 3, 8, 50, 60, 70};
    struct sampling_row row = {
        .logits = row_logits, .vocab = 8, .id_limit = 5, .params = &params, .masked_ids = masked, .masked_count = 2};

    for (int i = 0; i < 200; i++) {
        CU_ASSERT_EQUAL(sampling_choose(&row, i / 200.0, work, &token), ERR_OK);
        CU_ASSERT(token == 0 || token == 1 || token == 3);
    }
    params.temperature = 0;
    CU_ASSERT_EQUAL(sampling_choose(&row, 0, work, &token), ERR_OK);
    CU_ASSERT_EQUAL(token, 3);
}

static void what_is_not_a_number_is_an_error(void)
{
    int32_t token = -1;
    float bad[] = {1, NAN, 2, 3};
    struct sampling_row row = {.logits = bad, .vocab = 4, .id_limit = 4, .params = &off};

    CU_ASSERT_EQUAL(sampling_choose(&row, 0.5, work, &token), ERR_INTERNAL);
    bad[1] = INFINITY;
    CU_ASSERT_EQUAL(sampling_choose(&row, 0.5, work, &token), ERR_INTERNAL);
    for (int i = 0; i < 4; i++) {
        bad[i] = -INFINITY;
    }
    CU_ASSERT_EQUAL(sampling_choose(&row, 0.5, work, &token), ERR_INTERNAL);
    bad[3] = -5;
    CU_ASSERT_EQUAL(sampling_choose(&row, 0.999999, work, &token), ERR_OK);
    CU_ASSERT_EQUAL(token, 3);
}

static void a_penalty_close_to_0_is_no_fault(void)
{
    for (int is_greedy = 0; is_greedy < 2; is_greedy++) {
        struct sampling_params params = off;
        params.repetition_penalty = 1e-45f;
        params.temperature = is_greedy ? 0 : 0.7f;
        float row_logits[4] = {2, 30, -5, 3};
        const int32_t seen[] = {0, 2};
        int32_t token = -1;
        struct sampling_row row = {.logits = row_logits,
                                   .vocab = 4,
                                   .id_limit = 4,
                                   .params = &params,
                                   .answer_ids = seen,
                                   .answer_count = 2};
        CU_ASSERT_EQUAL(sampling_choose(&row, 0.5, work, &token), ERR_OK);
        CU_ASSERT_EQUAL(token, 0);
        row_logits[0] = INFINITY; /* the model's own is still found */
        CU_ASSERT_EQUAL(sampling_choose(&row, 0.5, work, &token), ERR_INTERNAL);
    }
}

static void equal_logits_give_the_lowest_id_when_greedy(void)
{
    int32_t token = -1;
    float ties[] = {1, 7, 7, 7};
    struct sampling_params params = off;
    struct sampling_row row = {.logits = ties, .vocab = 4, .id_limit = 4, .params = &params};

    params.temperature = 0;
    CU_ASSERT_EQUAL(sampling_choose(&row, 0.99, work, &token), ERR_OK);
    CU_ASSERT_EQUAL(token, 1);
    params = off;
    params.top_k = 1;
    CU_ASSERT_EQUAL(sampling_choose(&row, 0.99, work, &token), ERR_OK);
    CU_ASSERT_EQUAL(token, 1);
}

static void a_flat_row_of_a_whole_vocabulary_is_drawn_from_evenly(void)
{
    int32_t token = -1;
    memset(logits, 0, sizeof logits);
    struct sampling_row row = {.logits = logits, .vocab = VOCAB_MAX, .id_limit = VOCAB_MAX, .params = &off};

    for (int i = 0; i < 10; i++) {
        CU_ASSERT_EQUAL(sampling_choose(&row, i / 10.0, work, &token), ERR_OK);
        CU_ASSERT_EQUAL(token, i * (VOCAB_MAX / 10));
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_fixtures_distributions_are_drawn_from),
        CASE(selection_by_bins_equals_a_full_sort),
        CASE(noise_is_uniform_and_a_function_of_its_arguments),
        CASE(ids_of_padding_and_masked_ids_are_never_chosen),
        CASE(what_is_not_a_number_is_an_error),
        CASE(a_penalty_close_to_0_is_no_fault),
        CASE(equal_logits_give_the_lowest_id_when_greedy),
        CASE(a_flat_row_of_a_whole_vocabulary_is_drawn_from_evenly),
        {NULL, NULL},
    };
    work = harness_memory((size_t)sampling_work_bytes(VOCAB_MAX));
    return harness_run(argc, argv, "engine/sampling", cases, NULL);
}
