/* admit: the banker's safety check. A page is granted, or a request started, only if some order exists in which every
 * started request can reach its claim with what is free plus what those before it gave back. Design §5.
 *
 * Finishing a request never leaves less than before, so the order by ascending need finds one if there is one: the
 * check is exact, not a bound. Shared pages: one comes back when its last holder in that order finishes, so it is
 * charged there.
 */
#ifndef ENGINE_ADMIT_H
#define ENGINE_ADMIT_H

#include "engine/kv.h"

/* One started request (or one that wants to start). */
struct admit_row {
    const uint32_t *pages; /* its page list; only the first shared_count are read */
    uint32_t page_count;   /* pages that it holds, the granted one included */
    uint32_t shared_count; /* leading pages that the prefix cache names, so that others may hold them too */
    uint32_t need;         /* pages that it can still ask for */
};

/* Room for the order of the rows, one entry a row. */
struct admit_work {
    uint32_t row;
    uint32_t charge; /* pages that come back when this row finishes */
};

/* True if the state is safe when `free_pages` are free or evictable. Two rows share a page only with all pages before
 * it: page lists are paths of one tree. `work` has row_count entries. */
bool admit_is_safe(struct kv *kv, const struct admit_row *rows, uint32_t row_count, uint32_t free_pages,
                   struct admit_work *work);

#endif
