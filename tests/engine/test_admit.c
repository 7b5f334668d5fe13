/* Properties of engine/admit.c: the check agrees with the search of every order, shared pages and all. */
#include "engine/admit.h"
#include "tests/harness.h"

#include <string.h>

enum { ROWS = 6, PAGES = 64, DEPTH = 5 };

static struct kv_page books[PAGES];
static struct kv kv;
static uint64_t random_state;

static uint32_t draw(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % bound;
}

struct state {
    struct admit_row rows[ROWS];
    uint32_t lists[ROWS][DEPTH];
    uint64_t held_by[PAGES]; /* rows, as bits */
    uint32_t row_count, free_pages, page_count;
};

/* Random paths of a random tree: a path goes on along an earlier one for a while, then alone. */
static void fill_state(struct state *state)
{
    memset(state, 0, sizeof *state);
    state->row_count = 1 + draw(ROWS);
    for (uint32_t r = 0; r < state->row_count; r++) {
        uint32_t shared = r > 0 ? draw(DEPTH + 1) : 0, from = r > 0 ? draw(r) : 0;
        shared = shared < state->rows[from].shared_count ? shared : state->rows[from].shared_count;
        uint32_t count = shared + draw(DEPTH + 1 - shared);
        for (uint32_t i = 0; i < count; i++) {
            state->lists[r][i] = i < shared ? state->lists[from][i] : state->page_count++;
            state->held_by[state->lists[r][i]] |= 1u << r;
        }
        uint32_t named = shared + (count > shared ? draw(count - shared + 1) : 0);
        state->rows[r] =
            (struct admit_row){.pages = state->lists[r], .page_count = count, .shared_count = named, .need = draw(8)};
    }
    state->free_pages = draw(10);
}

/* True if some order lets everybody finish: what is free once a set of rows is done does not depend on their order. */
static bool is_safe_by_search(const struct state *state)
{
    bool is_reached[1 << ROWS] = {true};
    uint32_t all = (1u << state->row_count) - 1;

    for (uint32_t done = 0; done < all; done++) {
        uint32_t available = state->free_pages;
        for (uint32_t page = 0; page < state->page_count; page++) {
            available += (state->held_by[page] & ~(uint64_t)done) == 0;
        }
        for (uint32_t r = 0; is_reached[done] && r < state->row_count; r++) {
            if ((done >> r & 1) == 0 && state->rows[r].need <= available) {
                is_reached[done | 1u << r] = true;
            }
        }
    }
    return is_reached[all];
}

static void the_check_equals_the_search_of_all_orders(void)
{
    struct admit_work work[ROWS];
    struct state state;
    uint32_t different = 0, safe = 0;

    random_state = 1;
    for (int round = 0; round < 100000; round++) {
        fill_state(&state);
        bool is_safe = admit_is_safe(&kv, state.rows, state.row_count, state.free_pages, work);
        different += is_safe != is_safe_by_search(&state);
        safe += is_safe;
    }
    CU_ASSERT_EQUAL(different, 0);
    CU_ASSERT(safe > 10000 && safe < 90000); /* both answers are tried */
}

static void nobody_is_safe(void)
{
    CU_ASSERT(admit_is_safe(&kv, NULL, 0, 0, NULL));
}

static void a_page_of_two_comes_back_with_the_second(void)
{
    const uint32_t path[] = {3, 4, 5};
    struct admit_work work[3];
    struct admit_row rows[] = {{path, 3, 3, 1}, {path, 3, 3, 1}, {NULL, 0, 0, 3}};

    CU_ASSERT(admit_is_safe(&kv, rows, 3, 1, work)); /* both finish with the one free page, then three come back */
    rows[2].need = 5;
    CU_ASSERT_FALSE(admit_is_safe(&kv, rows, 3, 1, work)); /* counted twice it would be seven */
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_check_equals_the_search_of_all_orders),
        CASE(nobody_is_safe),
        CASE(a_page_of_two_comes_back_with_the_second),
        {NULL, NULL},
    };
    kv = (struct kv){.pages = books, .page_count = PAGES};
    return harness_run(argc, argv, "engine/admit", cases, NULL);
}
