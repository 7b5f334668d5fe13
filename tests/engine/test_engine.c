/* Properties of the whole engine: the same answer in any company, whatever the flags; refusals of any pool at any moment. */
#include "tests/engine/booted.h"

#include <stdlib.h>

enum { ASKS = 16, BODY_BYTES_MAX = 400 * 1024 };

#define SMALL "--max-source-pixels 1Mi --large-bodies 3 --large-body-bytes 1Mi --device-memory 300Mi --random-seed 5 "
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
    alone = booted_open();
    fill_asks(alone);
    alone->at_once = 1;
    CU_ASSERT_FATAL(booted_answer(alone, flags, NULL));
    CU_ASSERT_EQUAL(count_different(alone), 0);
    CU_ASSERT_EQUAL(alone->excess, 0);
}

/* The reference: one at a time, no cache at all, whole prompts. */
static void the_answer_does_not_depend_on_the_company(void)
{
    static const struct {
        uint32_t at_once;
        const char *flags;
    } companies[] = {
        {1, "--threads 1"},
        {2, "--threads 2"},
        {5, "--threads 1 --chunked-prefill-size 64"},
        {16, "--threads 2 --chunked-prefill-size 16"},
        {16, "--threads 2 --chunked-prefill-size 512"},
        {16, "--threads 1 --chunked-prefill-size -1 --max-running-requests 3"},
        {16, "--threads 2 --disable-radix-cache --step-budget-ms 1"},
        {16, "--threads 2 --max-total-tokens 1024 --step-budget-ms 1"},
    };
    char flags[512];

    answer_alone(DEMO "--threads 1 --disable-radix-cache --chunked-prefill-size -1");
    for (size_t i = 0; i < sizeof companies / sizeof companies[0]; i++) {
        fill_asks(together);
        together->at_once = companies[i].at_once;
        (void)snprintf(flags, sizeof flags, "%s%s", DEMO, companies[i].flags);
        CU_ASSERT_FATAL(booted_answer(together, flags, NULL));
        uint32_t different = count_different(together);
        CU_ASSERT_EQUAL(different, 0);
        CU_ASSERT_EQUAL(together->excess, 0);
        if (different > 0) {
            printf("with %s, %u at once\n", companies[i].flags, companies[i].at_once);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_answer_does_not_depend_on_the_company),
        {NULL, NULL},
    };
    together = booted_open();
    return harness_run(argc, argv, "engine/engine", cases, NULL);
}
