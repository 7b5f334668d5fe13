/* test_metrics: the text obeys the exposition format's rules, histograms add up, labels cannot be broken out of. */
#include "engine/http/metrics.h"
#include "pools/pools.h"
#include "tests/http/fake_engine.h"

#include <string.h>

static struct metrics metrics;
static struct engine_stats stats;
static char text[METRICS_BYTES_MAX];

static void print(const char *model)
{
    const struct metrics_view view = {.metrics = &metrics, .stats = &stats, .model_name = model, .context_tokens = 64};
    size_t length = 0, piece_bytes;

    for (uint32_t piece = 0; metrics_piece(&view, piece, text + length, &piece_bytes); piece++) {
        CU_ASSERT_FATAL(piece_bytes > 0 && piece_bytes < METRICS_PIECE_BYTES_MAX);
        length += piece_bytes;
        CU_ASSERT_FATAL(length < METRICS_BYTES_MAX - METRICS_PIECE_BYTES_MAX);
    }
    text[length] = '\0';
}

/* Every sample follows the TYPE line of its own family; no family comes twice; every line ends. */
static void samples_stand_in_families(void)
{
    static char family[128];
    static char families[64][128];
    int family_count = 0;

    print("m");
    for (char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        if (strncmp(line, "# TYPE ", 7) == 0) {
            CU_ASSERT(sscanf(line, "# TYPE %127s", family) == 1);
            for (int i = 0; i < family_count; i++) {
                CU_ASSERT(strcmp(families[i], family) != 0);
            }
            CU_ASSERT_FATAL(family_count < 64);
            (void)memcpy(families[family_count++], family, sizeof family);
        } else if (line[0] != '#') {
            CU_ASSERT(strncmp(line, family, strlen(family)) == 0);
        }
        CU_ASSERT_PTR_NOT_NULL_FATAL(strchr(line, '\n'));
    }
    CU_ASSERT(family_count > 40);
}

static double value_of(const char *sample)
{
    const char *at = strstr(text, sample);
    double value = -1;

    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    CU_ASSERT(sscanf(at + strlen(sample), " %lf", &value) == 1);
    return value;
}

static void histograms_add_up(void)
{
    metrics_open(&metrics);
    metrics_observe_first_token(&metrics, 100000); /* a bound belongs to its bucket */
    metrics_observe_first_token(&metrics, 100001);
    metrics_observe_first_token(&metrics, 999000000);
    metrics_observe_tokens(&metrics, 30000, 3);
    print("m");
    CU_ASSERT(value_of("sglang:time_to_first_token_seconds_bucket{model_name=\"m\",le=\"0.1\"}") == 1);
    CU_ASSERT(value_of("sglang:time_to_first_token_seconds_bucket{model_name=\"m\",le=\"0.2\"}") == 2);
    CU_ASSERT(value_of("sglang:time_to_first_token_seconds_bucket{model_name=\"m\",le=\"400.0\"}") == 2);
    CU_ASSERT(value_of("sglang:time_to_first_token_seconds_bucket{model_name=\"m\",le=\"+Inf\"}") == 3);
    CU_ASSERT(value_of("sglang:time_to_first_token_seconds_count{model_name=\"m\"}") == 3);
    CU_ASSERT(value_of("sglang:time_to_first_token_seconds_sum{model_name=\"m\"}") == 999.200001);
    CU_ASSERT(value_of("sglang:inter_token_latency_seconds_bucket{model_name=\"m\",le=\"0.008\"}") == 0);
    CU_ASSERT(value_of("sglang:inter_token_latency_seconds_bucket{model_name=\"m\",le=\"0.01\"}") == 3);
    CU_ASSERT(value_of("sglang:inter_token_latency_seconds_count{model_name=\"m\"}") == 3);
}

static void ended_requests_are_counted_by_how_they_ended(void)
{
    static struct request request;

    metrics_open(&metrics);
    request_open(&request, 0, 1, 1000, 1);
    request.prompt_tokens = 5;
    request.answer_tokens = 7;
    request.finish = FINISH_LENGTH;
    request.finished_us = 2000;
    metrics_count_end(&metrics, &request);
    request.finish = FINISH_ABORT;
    metrics_count_end(&metrics, &request);
    request.err = ERR_BAD_FIELD;
    metrics_count_end(&metrics, &request);
    metrics_count_status(&metrics, 503);
    print("m");
    CU_ASSERT(value_of("sglang:num_requests_total{model_name=\"m\"}") == 2);
    CU_ASSERT(value_of("sglang:prompt_tokens_total{model_name=\"m\"}") == 10);
    CU_ASSERT(value_of("sglang:generation_tokens_total{model_name=\"m\"}") == 14);
    CU_ASSERT(value_of("sglang:num_aborted_requests_total{model_name=\"m\"}") == 1);
    CU_ASSERT(value_of("ashlar_requests_refused_total{model_name=\"m\"}") == 1);
    CU_ASSERT(value_of("sglang:e2e_request_latency_seconds_count{model_name=\"m\"}") == 1);
    CU_ASSERT(value_of("sglang:http_responses_total{status_code=\"503\"}") == 1);
}

static void every_status_of_a_refusal_can_be_counted(void)
{
    for (int i = 0; i < ERR_CLIENT_GONE; i++) {
        metrics_count_status(&metrics, err_row((enum err)i)->status); /* aborts if it is not listed */
    }
    metrics_count_status(&metrics, 204);
    CU_ASSERT(metrics.answered_total[0] > 0);
}

static void a_models_name_stays_inside_its_label(void)
{
    char name[300];

    metrics_open(&metrics);
    print("a\"} 1\nb\\");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "{model_name=\"a\\\"} 1?b\\\\\"}"));
    memset(name, '"', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    print(name); /* the longest label fits every piece */
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(samples_stand_in_families),
        CASE(histograms_add_up),
        CASE(ended_requests_are_counted_by_how_they_ended),
        CASE(every_status_of_a_refusal_can_be_counted),
        CASE(a_models_name_stays_inside_its_label),
        {NULL, NULL},
    };
    fake_open_pools(4);
    return harness_run(argc, argv, "http/metrics", cases, NULL);
}
