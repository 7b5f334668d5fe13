/* Properties of engine/plan_print.c: every pool has its row in both forms, sums agree, a shortage is named. */
#include "engine/plan_print.h"
#include "config.h"
#include "engine/json.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct plan plan;
static char text[PLAN_TEXT_BYTES];

static void measure(const void *context, const struct pool_limits *limits, struct pool_sizes *sizes)
{
    (void)context;
    *sizes = (struct pool_sizes){
        .weights_bytes = 16584333312,
        .kv_page_bytes = 917504,
        .mm_page_bytes = 458752,
        .pixels_bytes = 3ull * limits->picture_pixels,
        .act_text_bytes = 1000000,
        .act_vision_bytes = 2000000,
        .logits_bytes = 600000,
        .op_workspace_bytes = 65536,
        .step_tables_bytes = 4096,
        .request_bytes = 20000,
        .kv_meta_bytes = 16,
        .prefix_bytes = 64,
        .feature_bytes = 96,
        .conn_bytes = 40000,
        .intake_scratch_bytes = 1 << 20,
        .tokenizer_bytes = 2 << 20,
        .image_rgb_bytes = 3 * limits->source_pixels,
        .image_work_bytes = 6 * limits->source_pixels,
        .sample_work_bytes = 20000,
        .engine_bytes = 4096,
        .queue_bytes = 8192,
    };
}

static void solve(const char *memory)
{
    static struct options options;
    static struct options_error error;
    static char flag[64];
    static char program[] = "ashlar", command[] = "plan", model[] = "--model=M";
    char *arguments[] = {program, command, model, flag};
    struct plan_source source = {
        .options = &options,
        .facts = {.context_max_tokens = 32768,
                  .picture_tokens_max = 16384,
                  .token_pixels = 784,
                  .mm_page_bytes = 458752,
                  .cpus = 2},
        .measure = measure,
        .is_one_memory = true,
        .tensor_count = 729,
        .tensor_bytes = 16584333312,
    };

    (void)snprintf(flag, sizeof flag, "--device-memory=%s", memory);
    CU_ASSERT_FATAL(options_parse(&options, 4, arguments, NULL, &error));
    CU_ASSERT_FATAL(plan_solve(&plan, &source, &error));
}

static void every_pool_has_a_row(void)
{
    solve("80Gi");
    size_t length = plan_print_text(&plan, text, sizeof text);
    CU_ASSERT(length == strlen(text) && length < PLAN_TEXT_BYTES / 2);
    for (int i = 0; i < POOL_COUNT; i++) {
        char row[64];
        (void)snprintf(row, sizeof row, "\n%-14s ", plan.budget.plan.rows[i].name);
        CU_ASSERT(strstr(text, row) != NULL);
    }
    CU_ASSERT(strstr(text, "729 tensors, 16,584,333,312 bytes") != NULL);
    CU_ASSERT(strstr(text, "57,344 bytes a token") != NULL);
    CU_ASSERT(strstr(text, "16 computing or paused + 64 waiting to start + 1 /health_generate's own\n") != NULL);
    CU_ASSERT(strstr(text, "elastic: what") != NULL);
    CU_ASSERT(strstr(text, "does not fit") == NULL);
    for (const char *line = text; *line != '\0';) {
        size_t bytes = strcspn(line, "\n");
        CU_ASSERT(bytes <= 150);
        line += bytes + (line[bytes] == '\n');
    }
}

static void a_shortage_names_bytes_and_flags(void)
{
    solve("10Gi");
    (void)plan_print_text(&plan, text, sizeof text);
    CU_ASSERT(strstr(text, "does not fit: ") != NULL);
    CU_ASSERT(strstr(text, "bytes are missing") != NULL);
    CU_ASSERT(strstr(text, " frees ") != NULL);
    char shortage[2048];
    CU_ASSERT(plan_print_shortage(&plan, shortage, sizeof shortage) == strlen(shortage));
    CU_ASSERT(strlen(shortage) > 0 && strcmp(strstr(text, "\ndoes not fit"), shortage) == 0);
    solve("80Gi");
    CU_ASSERT(plan_print_shortage(&plan, shortage, sizeof shortage) == 0);
}

static void a_small_buffer_cuts_and_does_not_overrun(void)
{
    solve("80Gi");
    char *tight = harness_memory(64);
    size_t whole = plan_print_text(&plan, text, sizeof text);
    CU_ASSERT(plan_print_text(&plan, tight, 64) == 63);
    CU_ASSERT(whole > 63 && strncmp(tight, text, 63) == 0 && tight[63] == '\0');
}

/* Sums the member `key` of each object in "pools", reading the JSON that was written. */
static uint64_t sum_of_pools(const char *json, size_t bytes, const char *key, int *count)
{
    struct json_reader reader;
    struct json_event event;
    uint64_t sum = 0;
    bool is_wanted = false;

    *count = 0;
    json_open_raw(&reader, strstr(json, "\"pools\":") + 8, bytes - (size_t)(strstr(json, "\"pools\":") + 8 - json));
    while (json_next(&reader, &event) == ERR_OK && reader.depth > 0) {
        if (event.kind == JSON_KEY) {
            is_wanted = json_event_is(&event, key);
        } else if (event.kind == JSON_NUMBER && is_wanted) {
            sum += strtoull(event.text, NULL, 10);
            (*count)++;
        }
    }
    return sum;
}

static void json_has_the_same_rows(void)
{
    struct json_out out;
    int count = 0;
    uint64_t wanted = 0;

    solve("80Gi");
    json_out_open(&out, text, sizeof text);
    plan_print_json(&plan, &out);
    CU_ASSERT_FATAL(json_out_is_whole(&out));
    for (int i = 0; i < POOL_COUNT; i++) {
        wanted += plan.budget.plan.rows[i].bytes;
    }
    text[out.length] = '\0';
    CU_ASSERT(sum_of_pools(text, out.length, "bytes", &count) == wanted);
    CU_ASSERT(count == POOL_COUNT);
    CU_ASSERT(strstr(text, "\"fits\":true") != NULL);
    CU_ASSERT(strstr(text, "\"kv_token_bytes\":57344") != NULL);
    solve("10Gi");
    json_out_open(&out, text, sizeof text);
    plan_print_json(&plan, &out);
    CU_ASSERT_FATAL(json_out_is_whole(&out));
    text[out.length] = '\0';
    CU_ASSERT(strstr(text, "\"missing_bytes\":") != NULL);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_pool_has_a_row),
        CASE(a_shortage_names_bytes_and_flags),
        CASE(a_small_buffer_cuts_and_does_not_overrun),
        CASE(json_has_the_same_rows),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/plan_print", cases, NULL);
}
