/* test_vocab: what was added is found, nothing else; what does not fit is refused with a reason. */
#include "engine/text/vocab.h"

#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

static struct vocab vocab;

static void open_vocab(uint32_t id_limit)
{
    size_t bytes = vocab_memory_bytes(id_limit);
    vocab_open(&vocab, id_limit, harness_memory(bytes), bytes);
}

static void every_token_is_found_by_its_bytes(void)
{
    enum { TOKENS = 5000 };
    open_vocab(TOKENS);
    for (int id = 0; id < TOKENS; id++) {
        char text[16];
        int bytes = snprintf(text, sizeof text, "t%d", id * 7);
        CU_ASSERT_PTR_NULL(vocab_add_token(&vocab, id, text, (size_t)bytes));
    }
    for (int id = 0; id < TOKENS; id++) {
        char text[16];
        size_t length;
        int bytes = snprintf(text, sizeof text, "t%d", id * 7);
        CU_ASSERT_EQUAL(vocab_find(&vocab, text, (size_t)bytes), id);
        CU_ASSERT(memcmp(vocab_text(&vocab, id, &length), text, length) == 0 && length == (size_t)bytes);
        CU_ASSERT_EQUAL(vocab_flags(&vocab, id), VOCAB_PRESENT);
        text[0] = 'u';
        CU_ASSERT_EQUAL(vocab_find(&vocab, text, (size_t)bytes), VOCAB_NONE);
    }
}

static void every_merge_is_found_by_its_pair(void)
{
    enum { SIDE = 40 };
    open_vocab(2 * SIDE + SIDE * SIDE);
    for (int i = 0; i < SIDE; i++) {
        char text[2] = {'A', (char)('0' + i)};
        CU_ASSERT_PTR_NULL(vocab_add_token(&vocab, i, text, 2));
        text[0] = 'B';
        CU_ASSERT_PTR_NULL(vocab_add_token(&vocab, SIDE + i, text, 2));
    }
    for (int i = 0; i < SIDE * SIDE; i++) {
        char text[4] = {'A', (char)('0' + i / SIDE), 'B', (char)('0' + i % SIDE)};
        CU_ASSERT_PTR_NULL(vocab_add_token(&vocab, 2 * SIDE + i, text, 4));
        CU_ASSERT_PTR_NULL(vocab_add_merge(&vocab, i / SIDE, SIDE + i % SIDE));
    }
    for (int i = 0; i < SIDE * SIDE; i++) {
        const struct vocab_merge *merge = vocab_merge_of(&vocab, i / SIDE, SIDE + i % SIDE);
        CU_ASSERT_PTR_NOT_NULL_FATAL(merge);
        CU_ASSERT(merge->id == 2 * SIDE + i && merge->rank == (uint32_t)i);
        CU_ASSERT_PTR_NULL(vocab_merge_of(&vocab, SIDE + i % SIDE, i / SIDE));
    }
}

static void what_does_not_fit_is_refused(void)
{
    char text[TOKEN_BYTES_MAX + 1];
    memset(text, 'x', sizeof text);
    open_vocab(4);
    CU_ASSERT_PTR_NOT_NULL(vocab_add_token(&vocab, 4, "a", 1));
    CU_ASSERT_PTR_NOT_NULL(vocab_add_token(&vocab, -1, "a", 1));
    CU_ASSERT_PTR_NOT_NULL(vocab_add_token(&vocab, 0, "", 0));
    CU_ASSERT_PTR_NOT_NULL(vocab_add_token(&vocab, 0, text, sizeof text));
    CU_ASSERT_PTR_NULL(vocab_add_token(&vocab, 0, "a", 1));
    CU_ASSERT_PTR_NOT_NULL(vocab_add_token(&vocab, 0, "b", 1));
    CU_ASSERT_PTR_NOT_NULL(vocab_add_token(&vocab, 1, "a", 1));
    CU_ASSERT_PTR_NOT_NULL(vocab_add_merge(&vocab, 0, 1)); /* 1 is not there */
    CU_ASSERT_PTR_NOT_NULL(vocab_add_merge(&vocab, 0, 0)); /* aa is not there */
    CU_ASSERT_PTR_NULL(vocab_add_token(&vocab, 1, "aa", 2));
    CU_ASSERT_PTR_NULL(vocab_add_merge(&vocab, 0, 0));
}

static void text_has_its_planned_room_and_no_more(void)
{
    char text[TOKEN_BYTES_MAX];
    const char *wrong = NULL;
    uint32_t id = 0;
    open_vocab(4096);
    for (; id < 4096 && wrong == NULL; id++) {
        memset(text, 'x', sizeof text);
        (void)snprintf(text, sizeof text, "%u", id);
        wrong = vocab_add_token(&vocab, id, text, sizeof text);
    }
    CU_ASSERT_STRING_EQUAL(wrong, "tokens longer than planned on the average");
    CU_ASSERT(vocab.text_bytes <= vocab.text_capacity);
}

static void added_tokens_are_kept_longest_first(void)
{
    open_vocab(16);
    CU_ASSERT_PTR_NULL(vocab_add_token(&vocab, 0, "<b>", 3));
    CU_ASSERT_PTR_NULL(vocab_add_special(&vocab, 1, "<a>", 3, true));
    CU_ASSERT_PTR_NULL(vocab_add_special(&vocab, 2, "<a><a>", 6, false));
    CU_ASSERT_PTR_NULL(vocab_add_special(&vocab, 0, "<b>", 3, true));  /* one of the vocabulary becomes added too */
    CU_ASSERT_PTR_NULL(vocab_add_special(&vocab, 1, "<a>", 3, false)); /* named twice: the first time counts */
    CU_ASSERT_PTR_NOT_NULL(vocab_add_special(&vocab, 3, "<a>", 3, true));
    CU_ASSERT_PTR_NOT_NULL(vocab_add_special(&vocab, 1, "<c>", 3, true));
    CU_ASSERT_PTR_NOT_NULL(vocab_add_special(&vocab, 16, "<c>", 3, true));
    CU_ASSERT_EQUAL(vocab.added_count, 3);
    CU_ASSERT(vocab.added_ids[0] == 2 && vocab.added_ids[1] == 1 && vocab.added_ids[2] == 0);
    CU_ASSERT_EQUAL(vocab_flags(&vocab, 0), VOCAB_PRESENT | VOCAB_ADDED | VOCAB_SPECIAL);
    CU_ASSERT_EQUAL(vocab_flags(&vocab, 1), VOCAB_PRESENT | VOCAB_ADDED | VOCAB_SPECIAL);
    CU_ASSERT_EQUAL(vocab_flags(&vocab, 2), VOCAB_PRESENT | VOCAB_ADDED);
    CU_ASSERT_EQUAL(vocab_find_added(&vocab, "<a>", 3), 1);
    CU_ASSERT_EQUAL(vocab_find(&vocab, "<a>", 3), VOCAB_NONE);
    CU_ASSERT_EQUAL(vocab_find(&vocab, "<b>", 3), 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_token_is_found_by_its_bytes),   CASE(every_merge_is_found_by_its_pair),
        CASE(what_does_not_fit_is_refused),        CASE(text_has_its_planned_room_and_no_more),
        CASE(added_tokens_are_kept_longest_first), {NULL, NULL},
    };
    return harness_run(argc, argv, "text/vocab", cases, NULL);
}
