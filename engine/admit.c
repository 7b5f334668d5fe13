/* admit: the banker's safety check.
 *
 * The inequality that holds for every granted state, with rows in ascending order of need:
 *     need(k) <= free + sum over i < k of charge(i),   charge(i) = pages whose last holder in this order is row i.
 */
#include "engine/admit.h"

#include <assert.h>
#include <stddef.h>

/* Shell sort: rows are few and mostly in order already. Ties do not matter. */
static void sort_by_need(const struct admit_row *rows, struct admit_work *work, uint32_t count)
{
    static const uint32_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};

    for (size_t g = 0; g < sizeof gaps / sizeof gaps[0]; g++) {
        for (uint32_t i = gaps[g]; i < count; i++) {
            struct admit_work moved = work[i];
            uint32_t place = i;
            while (place >= gaps[g] && rows[work[place - gaps[g]].row].need > rows[moved.row].need) {
                work[place] = work[place - gaps[g]];
                place -= gaps[g];
            }
            work[place] = moved;
        }
    }
}

/* Pages of `row` that no later row holds. The stamped ones are a beginning of its list, so halving finds their number.
 */
static uint32_t charge_row(struct kv *kv, const struct admit_row *row)
{
    uint32_t stamped = 0, above = row->shared_count;

    assert(row->shared_count <= row->page_count);
    while (stamped < above) {
        uint32_t middle = stamped + (above - stamped) / 2;
        assert(row->pages[middle] < kv->page_count);
        if (kv->pages[row->pages[middle]].stamp == kv->stamp) {
            stamped = middle + 1;
        } else {
            above = middle;
        }
    }
    for (uint32_t i = stamped; i < row->shared_count; i++) {
        kv->pages[row->pages[i]].stamp = kv->stamp;
    }
    return row->page_count - stamped;
}

bool admit_is_safe(struct kv *kv, const struct admit_row *rows, uint32_t row_count, uint32_t free_pages,
                   struct admit_work *work)
{
    uint64_t needed = 0;

    assert(row_count == 0 || (rows != NULL && work != NULL));
    for (uint32_t i = 0; i < row_count; i++) {
        needed += rows[i].need;
        work[i] = (struct admit_work){.row = i};
    }
    if (needed <= free_pages) {
        return true; /* the usual case: nobody has to wait for anybody */
    }

    sort_by_need(rows, work, row_count);
    kv->stamp++;
    for (uint32_t i = row_count; i > 0; i--) {
        work[i - 1].charge = charge_row(kv, &rows[work[i - 1].row]);
    }
    uint64_t available = free_pages;
    for (uint32_t i = 0; i < row_count; i++) {
        if (rows[work[i].row].need > available) {
            return false;
        }
        available += work[i].charge;
    }
    assert(available <= kv->page_count);
    return true;
}
