/* Properties of the whole engine: the same answer in any company, whatever the flags; refusals of any pool at any
 * moment. */
#include "tests/engine/booted.h"

#include <stdlib.h>

enum { ASKS = 16, BODY_BYTES_MAX = 400 * 1024 };

#define SMALL                                                                                                          \
    "--max-source-pixels 256Ki --large-bodies 3 --large-body-bytes 512Ki --device-memory 100Mi --random-seed 5 "       \
    "SGLANG_VLM_CACHE_SIZE_MB=8 "
#define DEMO "--model-path demo/model --context-length 1024 " SMALL

static struct booted_run *alone, *together;

/* base64 of a file, appended. */
static size_t append_picture(char *out, const char *path)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static unsigned char bytes[BODY_BYTES_MAX];
    long count = harness_read(path, bytes, sizeof bytes - 3);
    size_t length = 0;
    CU_ASSERT_FATAL(count > 0);
    memset(bytes + count, 0, 3);
    for (long i = 0; i < count; i += 3) {
        uint32_t word = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];
        for (int k = 0; k < 4; k++) {
            out[length++] = i + k > count ? '=' : digits[word >> (18 - 6 * k) & 63];
        }
    }
    return length;
}

/* A chat body: a text, pictures, and parameters. */
static const char *make_body(const char *text, const char *const *pictures, uint32_t picture_count, const char *rest)
{
    char *body = harness_memory(BODY_BYTES_MAX);
    size_t length = (size_t)snprintf(body, BODY_BYTES_MAX, "{\"messages\":[{\"role\":\"user\",\"content\":[");
    for (uint32_t i = 0; i < picture_count; i++) {
        length += (size_t)snprintf(body + length, BODY_BYTES_MAX - length,
                                   "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,");
        length += append_picture(body + length, pictures[i]);
        length += (size_t)snprintf(body + length, BODY_BYTES_MAX - length, "\"}},");
    }
    (void)snprintf(body + length, BODY_BYTES_MAX - length, "{\"type\":\"text\",\"text\":\"%s\"}]}],%s}", text, rest);
    return body;
}

static const char *long_text(uint32_t words)
{
    char *text = harness_memory(words * 8 + 64);
    size_t length = 0;
    for (uint32_t i = 0; i < words; i++) {
        length += (size_t)snprintf(text + length, 16, "%s%u ", i % 3 == 0 ? "ring" : "cross", i % 17);
    }
    return text;
}

/* Texts short and long, with common beginnings; one to four pictures, some twice; greedy and drawn. */
static void fill_asks(struct booted_run *run)
{
    const char *const shapes[] = {"demo/samples/shapes.png", "demo/samples/number.png", "demo/samples/shapes.png",
                                  "demo/samples/stars.png"};
    const char *greedy = "\"temperature\":0,\"max_tokens\":24,\"ignore_eos\":true";
    const char *drawn = "\"temperature\":0.9,\"top_p\":0.95,\"seed\":11,\"max_tokens\":40,\"ignore_eos\":true";

    run->ask_count = ASKS;
    for (uint32_t i = 0; i < ASKS; i++) {
        const char *rest = i % 2 == 0 ? greedy : drawn;
        if (i % 4 == 1) {
            run->asks[i].body = make_body("What is shown in the image?", shapes + i / 4 % 3, 1, rest);
        } else if (i % 8 == 6) {
            run->asks[i].body = make_body("Write the shapes as JSON.", shapes, 4, rest);
        } else {
            run->asks[i].body = make_body(long_text(i * 7 % 90), NULL, 0, rest);
        }
    }
}

/* Every ask has the tokens and the logits that it had alone. */
static uint32_t count_different(const struct booted_run *run)
{
    uint32_t different = 0;
    for (uint32_t i = 0; i < run->ask_count; i++) {
        const struct booted_ask *a = &alone->asks[i], *b = &run->asks[i];
        bool is_same = b->is_done && b->err == ERR_OK && a->answer_tokens == b->answer_tokens &&
                       memcmp(a->tokens, b->tokens, a->answer_tokens * sizeof a->tokens[0]) == 0 &&
                       a->logits_hash == b->logits_hash;
        if (!is_same) {
            printf("ask %u: err %d, tokens %u and %u, hash %lx and %lx: %s\n", i, (int)b->err, a->answer_tokens,
                   b->answer_tokens, (unsigned long)a->logits_hash, (unsigned long)b->logits_hash, b->detail);
        }
        different += !is_same;
    }
    return different;
}

static void answer_alone(const char *flags)
{
    fill_asks(alone);
    alone->at_once = 1;
    CU_ASSERT_FATAL(booted_answer(alone, flags, NULL));
    CU_ASSERT_EQUAL(count_different(alone), 0);
    CU_ASSERT_EQUAL(alone->excess, 0);
}

struct company {
    uint32_t at_once;
    const char *flags;
};

/* The reference: one at a time, no prefix cache, whole prompts. */
static void compare_companies(const char *model, const struct company *companies, size_t company_count)
{
    char flags[512];

    (void)snprintf(flags, sizeof flags, "%s--threads 1 --disable-radix-cache --chunked-prefill-size -1", model);
    answer_alone(flags);
    for (size_t i = 0; i < company_count; i++) {
        fill_asks(together);
        together->at_once = companies[i].at_once;
        (void)snprintf(flags, sizeof flags, "%s%s", model, companies[i].flags);
        CU_ASSERT_FATAL(booted_answer(together, flags, NULL));
        uint32_t different = count_different(together);
        CU_ASSERT_EQUAL(different, 0);
        CU_ASSERT_EQUAL(together->excess, 0);
        if (different > 0) {
            printf("with %s, %u at once\n", flags, companies[i].at_once);
        }
    }
}

static void the_answer_does_not_depend_on_the_company(void)
{
    static const struct company companies[] = {
        {1, "--threads 1"},
        {2, "--threads 2"},
        {5, "--threads 1 --chunked-prefill-size 64"},
        {16, "--threads 2 --chunked-prefill-size 16"},
        {16, "--threads 2 --chunked-prefill-size 512 SGLANG_VLM_CACHE_SIZE_MB=0"},
        {16, "--threads 1 --chunked-prefill-size -1 --max-running-requests 3"},
        {16, "--threads 2 --disable-radix-cache --step-budget-ms 1"},
        {16, "--threads 2 --max-total-tokens 1024 --step-budget-ms 1"},
    };
    compare_companies(DEMO, companies, sizeof companies / sizeof companies[0]);
}

static void nor_on_it_with_other_models_and_types(void)
{
    static const struct company companies[] = {
        {16, "--threads 2 --chunked-prefill-size 16"},
        {5, "--threads 2 --max-total-tokens 1024 SGLANG_VLM_CACHE_SIZE_MB=0"},
    };
    compare_companies("--model-path tests/data/fixtures/models/q25vl-a --context-length 1024 " SMALL, companies, 2);
    compare_companies("--model-path tests/data/fixtures/models/q25vl-b --context-length 1024 " SMALL, companies, 2);
    compare_companies("--dtype float32 " DEMO, companies, 2);
}

static void a_repeat_is_neither_decoded_nor_encoded_nor_computed_again(void)
{
    static const char *const pictures[] = {"demo/samples/shapes.png", "demo/samples/number.png"};
    const char *rest = "\"temperature\":0,\"max_tokens\":8";
    memset(together, 0, sizeof *together);
    together->ask_count = 4;
    together->at_once = 1;
    together->asks[0].body = make_body("What is shown in the image?", pictures, 2, rest);
    together->asks[1].body = together->asks[0].body;
    together->asks[2].body = make_body("Hello", NULL, 0, rest);
    together->asks[3].body = together->asks[2].body;
    CU_ASSERT_FATAL(booted_answer(together, DEMO "--threads 2", NULL));
    CU_ASSERT_EQUAL(together->decoded, 2);
    CU_ASSERT_EQUAL(together->encoded, 2);
    for (int i = 0; i < 4; i += 2) {
        CU_ASSERT_EQUAL(together->asks[i + 1].cached_tokens, together->asks[i].prompt_tokens - 1);
        CU_ASSERT_EQUAL(together->asks[i + 1].answer_tokens, together->asks[i].answer_tokens);
    }
    /* Without the prefix cache the features are still there. */
    CU_ASSERT_FATAL(booted_answer(together, DEMO "--threads 2 --disable-radix-cache", NULL));
    CU_ASSERT_EQUAL(together->decoded, 2);
    CU_ASSERT_EQUAL(together->feature_hits, 2);
    CU_ASSERT_EQUAL(together->asks[1].cached_tokens, 0);
}

static void twenty_pictures_run_in_the_memory_of_two(void)
{
    static const char *const names[] = {"shapes", "number",           "stars", "four", "night", "pair-a", "pair-b",
                                        "row",    "number-and-shapes"};
    static char paths[20][64];
    const char *pictures[20];
    for (uint32_t i = 0; i < 20; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "demo/samples/%s.png", names[i % 9]);
        pictures[i] = paths[i];
    }
    memset(together, 0, sizeof *together);
    together->ask_count = 3;
    together->at_once = 3;
    for (uint32_t i = 0; i < 3; i++) {
        together->asks[i].body = make_body("Which number can you see?", pictures + i, 18, "\"max_tokens\":4");
    }
    CU_ASSERT_FATAL(booted_answer(
        together, "--model-path demo/model --context-length 4096 " SMALL "SGLANG_VLM_CACHE_SIZE_MB=0 --threads 2",
        NULL));
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(together->asks[i].err, ERR_OK);
        CU_ASSERT(together->asks[i].prompt_tokens > 18 * 40);
    }
    CU_ASSERT(together->high_water[POOL_PIXELS] <= 2);
    CU_ASSERT(together->high_water[POOL_MM_PAGE] <= 6);
    CU_ASSERT_EQUAL(together->excess, 0);
}

static bool choices_are_equal(const struct booted_ask *a, const struct booted_ask *b)
{
    return a->answer_tokens > 0 && a->answer_tokens == b->answer_tokens && a->logits_hash == b->logits_hash &&
           memcmp(a->tokens, b->tokens, a->answer_tokens * sizeof a->tokens[0]) == 0;
}

/* Whatever the caches, whoever refuses: choice 0 is the answer of one alone, the others are their own, and the picture
 * is seen once. */
static void choices_share_a_prompt_and_nothing_else(void)
{
    static const char *const picture = "demo/samples/shapes.png";
#define DRAWN "\"temperature\":1.5,\"seed\":11,\"max_tokens\":40,\"ignore_eos\":true"
    static const char *const rests[] = {DRAWN, "\"n\":4," DRAWN};
    static const struct {
        const char *flags, *refusal;
    } runs[] = {
        {"--threads 2", NULL},
        {"--threads 2 --disable-radix-cache SGLANG_VLM_CACHE_SIZE_MB=0", NULL},
        {"--threads 1 --max-running-requests 4 --max-total-tokens 1024 --chunked-prefill-size 16", NULL},
        {"--threads 1", "KV_PAGE:3:once"},
        {"--threads 1 --disable-radix-cache", "KV_PAGE:6:once"},
        {"--threads 1", "PAGE_LIST:1:once"},
        {"--threads 1", "PREFIX:1"},
    };
    static struct booted_ask kept[4];

    memset(alone, 0, sizeof *alone);
    alone->ask_count = alone->at_once = 1;
    alone->asks[0].body = make_body("What is shown in the image?", &picture, 1, rests[0]);
    CU_ASSERT_FATAL(booted_answer(alone, DEMO "--threads 1 --disable-radix-cache", NULL));
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        char flags[512];
        memset(together, 0, sizeof *together);
        together->ask_count = together->at_once = 1;
        together->asks[0].body = make_body("What is shown in the image?", &picture, 1, rests[1]);
        (void)snprintf(flags, sizeof flags, DEMO "%s", runs[i].flags);
        CU_ASSERT_FATAL(booted_answer(together, flags, runs[i].refusal));
        CU_ASSERT(choices_are_equal(&together->asks[0], &alone->asks[0]));
        for (uint32_t choice = 0; choice < 4; choice++) {
            const struct booted_ask *ask = booted_choice(together, choice);
            kept[choice] = i == 0 ? *ask : kept[choice];
            CU_ASSERT(ask->is_done && ask->err == ERR_OK && choices_are_equal(ask, &kept[choice]));
            CU_ASSERT(choice == 0 || ask->cached_tokens + 1 == ask->prompt_tokens);
            CU_ASSERT(choice == 0 || !choices_are_equal(ask, &kept[choice - 1]));
        }
        CU_ASSERT_EQUAL(together->decoded, 1);
        CU_ASSERT_EQUAL(together->encoded, 1);
        CU_ASSERT_EQUAL(together->excess, 0);
    }
}

/* A picture with a good header and a broken rest. */
static const char *make_damaged(void)
{
    static const char *const path = "demo/samples/stars.png";
    char *body = (char *)(uintptr_t)make_body("What is it?", &path, 1, "\"max_tokens\":4");
    char *data = strstr(body, "base64,") + 7 + 400;
    memset(data, 'A', 200);
    return body;
}

static void a_damaged_picture_is_refused_before_anything_is_said(void)
{
    memset(together, 0, sizeof *together);
    together->ask_count = 3;
    together->at_once = 3;
    together->asks[0].body = make_damaged();
    together->asks[1].body = together->asks[0].body;
    together->asks[2].body = make_body("Hello", NULL, 0, "\"max_tokens\":4");
    CU_ASSERT_FATAL(booted_answer(together, DEMO "--threads 2", NULL));
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(together->asks[i].err, ERR_BAD_IMAGE);
        CU_ASSERT_EQUAL(together->asks[i].answer_tokens, 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(together->asks[i].detail, "messages[0].content[0]"));
    }
    CU_ASSERT_EQUAL(together->asks[2].err, ERR_OK);
    CU_ASSERT_EQUAL(together->excess, 0);
}

static void whoever_leaves_leaves_nothing_behind(void)
{
    fill_asks(together);
    together->at_once = 16;
    for (uint32_t i = 0; i < ASKS; i++) {
        together->asks[i].cancel_after_us = i % 3 == 0 ? 0 : 1 + i * 700;
    }
    CU_ASSERT_FATAL(booted_answer(together, DEMO "--threads 2 --max-running-requests 4", NULL));
    for (uint32_t i = 0; i < ASKS; i++) {
        const struct booted_ask *ask = &together->asks[i];
        CU_ASSERT(ask->is_done);
        CU_ASSERT(ask->err == ERR_CLIENT_GONE ? ask->cancel_after_us > 0 : ask->err == ERR_OK);
    }
    CU_ASSERT_EQUAL(together->excess, 0);
    memset(together, 0, sizeof *together);
}

/* A pool that refuses once delays somebody, and changes no answer. */
static void one_refusal_of_any_pool_at_any_moment_changes_no_answer(void)
{
    static const char *const names[] = {"KV_PAGE", "PREFIX", "PAGE_LIST", "MM_PAGE", "FEATURE", "PIXELS"};
    char refusal[64];

    answer_alone(DEMO "--threads 1");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (uint32_t n = 0; n < 40; n = n * 2 + 1) {
            fill_asks(together);
            together->at_once = 5;
            (void)snprintf(refusal, sizeof refusal, "%s:%u:once", names[i], n);
            CU_ASSERT_FATAL(booted_answer(together, DEMO "--threads 1", refusal));
            CU_ASSERT_EQUAL(count_different(together), 0);
            CU_ASSERT_EQUAL(together->excess, 0);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_answer_does_not_depend_on_the_company),
        CASE(nor_on_it_with_other_models_and_types),
        CASE(a_repeat_is_neither_decoded_nor_encoded_nor_computed_again),
        CASE(twenty_pictures_run_in_the_memory_of_two),
        CASE(choices_share_a_prompt_and_nothing_else),
        CASE(a_damaged_picture_is_refused_before_anything_is_said),
        CASE(whoever_leaves_leaves_nothing_behind),
        CASE(one_refusal_of_any_pool_at_any_moment_changes_no_answer),
        {NULL, NULL},
    };
    alone = booted_open();
    together = booted_open();
    return harness_run(argc, argv, "engine/engine", cases, NULL);
}
