/* unicode: the character classes and the normal form that Qwen's tokenizer is defined with.
 *
 * Nothing is kept between calls. The tables are utf8proc's (Debian's is Unicode 15), corrected to what the reference
 * (Hugging Face tokenizers 0.23) does, measured over all code points: its letters and numbers are Unicode 16's, its
 * normal form is older, so it does not know the combining classes of some marks nor one composition. With these
 * corrections every text gives the reference's ids. Of utf8proc only functions that cannot allocate are used, and its
 * sorting of marks, which is quadratic, is not.
 */
#include "engine/text/unicode.h"

#include "engine/text/utf8.h"

#include <assert.h>
#include <string.h>
#include <utf8proc.h>

struct code_range {
    uint32_t first, last;
};

/* Unassigned in Unicode 15, letters or numbers in Unicode 16. */
static const struct code_range later_letters[] = {
    {0x1c89, 0x1c8a},   {0xa7cb, 0xa7cd},   {0xa7da, 0xa7dc},   {0x105c0, 0x105f3}, {0x10d4a, 0x10d65},
    {0x10d6f, 0x10d85}, {0x10ec2, 0x10ec4}, {0x11380, 0x11389}, {0x1138b, 0x1138b}, {0x1138e, 0x1138e},
    {0x11390, 0x113b5}, {0x113b7, 0x113b7}, {0x113d1, 0x113d1}, {0x113d3, 0x113d3}, {0x11bc0, 0x11be0},
    {0x13460, 0x143fa}, {0x16100, 0x1611d}, {0x16d40, 0x16d6c}, {0x18cff, 0x18cff}, {0x1e5d0, 0x1e5ed},
    {0x1e5f0, 0x1e5f0}, {0x2ebf0, 0x2ee5d},
};
static const struct code_range later_numbers[] = {
    {0x10d40, 0x10d49}, {0x116d0, 0x116e3}, {0x11bf0, 0x11bf9}, {0x16130, 0x16139},
    {0x16d70, 0x16d79}, {0x1ccf0, 0x1ccf9}, {0x1e5f1, 0x1e5fa},
};

/* Marks that the reference leaves in the order given: their combining class counts as 0. */
static const struct code_range unordered_marks[] = {
    {0x07fd, 0x07fd},   {0x0898, 0x089f},   {0x08ca, 0x08d3},   {0x09fe, 0x09fe},   {0x0c3c, 0x0c3c},
    {0x0d3b, 0x0d3c},   {0x0eba, 0x0eba},   {0x1715, 0x1715},   {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},
    {0xa82c, 0xa82c},   {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50},
    {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a},
    {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47},
    {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42},
    {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef},
    {0x1e4ec, 0x1e4ef},
};

/* Combining class 0, and yet the second half of a composition. */
static const struct code_range second_starters[] = {
    {0x09be, 0x09be},   {0x09d7, 0x09d7},   {0x0b3e, 0x0b3e},   {0x0b56, 0x0b57},   {0x0bbe, 0x0bbe},
    {0x0bd7, 0x0bd7},   {0x0cc2, 0x0cc2},   {0x0cd5, 0x0cd6},   {0x0d3e, 0x0d3e},   {0x0d57, 0x0d57},
    {0x0dcf, 0x0dcf},   {0x0ddf, 0x0ddf},   {0x102e, 0x102e},   {0x1161, 0x1175},   {0x11a8, 0x11c2},
    {0x1b35, 0x1b35},   {0x11127, 0x11127}, {0x1133e, 0x1133e}, {0x11357, 0x11357}, {0x114b0, 0x114b0},
    {0x114ba, 0x114ba}, {0x114bd, 0x114bd}, {0x115af, 0x115af},
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static bool is_in(uint32_t code, const struct code_range *ranges, size_t count)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code > ranges[middle].last) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && code >= ranges[low].first;
}

enum unicode_class unicode_class(uint32_t code)
{
    assert(code <= UTF8_CODE_MAX);
    utf8proc_category_t category = (utf8proc_category_t)utf8proc_get_property((utf8proc_int32_t)code)->category;

    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) {
        return UNICODE_LETTER;
    }
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) {
        return UNICODE_NUMBER;
    }
    if (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP) {
        return UNICODE_SPACE;
    }
    if (category == UTF8PROC_CATEGORY_CC) {
        return (code >= '\t' && code <= '\r') || code == 0x85 ? UNICODE_SPACE : UNICODE_OTHER;
    }
    if (category == UTF8PROC_CATEGORY_CN) {
        return is_in(code, later_letters, COUNT_OF(later_letters))   ? UNICODE_LETTER
               : is_in(code, later_numbers, COUNT_OF(later_numbers)) ? UNICODE_NUMBER
                                                                     : UNICODE_OTHER;
    }
    return UNICODE_OTHER;
}

bool unicode_is_printable(uint32_t code)
{
    assert(code <= UTF8_CODE_MAX);
    utf8proc_category_t category = (utf8proc_category_t)utf8proc_get_property((utf8proc_int32_t)code)->category;
    bool is_hidden = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                     category == UTF8PROC_CATEGORY_CS || category == UTF8PROC_CATEGORY_CO ||
                     category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
                     category == UTF8PROC_CATEGORY_ZP;
    if (category == UTF8PROC_CATEGORY_CN) {
        return unicode_class(code) != UNICODE_OTHER;
    }
    return code == ' ' || !is_hidden;
}

/* NFC. A run is a starter with all that may combine with it: it ends before the next code point that combines with
 * nothing before it. Runs are independent of each other. */

enum {
    DECOMPOSED_MAX = 8,        /* code points of one canonical decomposition (4 in Unicode 16) */
    FIRST_MARK = 0x300,        /* below, every code point is in NFC and begins a run */
    LATER_COMPOSITE = 0x11938, /* the reference neither composes nor decomposes it */
    FEW_MARKS = 16,
    RUN_CODES_A_BYTE = 2, /* decomposed code points for a byte of text, rounded up (the most is 3 for 2) */
};

static uint32_t combining_class(uint32_t code)
{
    uint32_t class = (uint32_t)utf8proc_get_property((utf8proc_int32_t)code)->combining_class;
    if (class != 0 && is_in(code, unordered_marks, COUNT_OF(unordered_marks))) {
        return 0;
    }
    return class;
}

static size_t decompose(uint32_t code, uint32_t out[DECOMPOSED_MAX])
{
    utf8proc_int32_t codes[DECOMPOSED_MAX];
    int bound_class = 0;
    if (code == LATER_COMPOSITE) {
        out[0] = code;
        return 1;
    }
    utf8proc_ssize_t count =
        utf8proc_decompose_char((utf8proc_int32_t)code, codes, DECOMPOSED_MAX, UTF8PROC_DECOMPOSE, &bound_class);
    assert(count >= 1 && count <= DECOMPOSED_MAX);
    for (utf8proc_ssize_t i = 0; i < count; i++) {
        out[i] = (uint32_t)codes[i];
    }
    return (size_t)count;
}

/* The composition of two code points; 0: there is none. */
static uint32_t compose(uint32_t first, uint32_t second)
{
    utf8proc_int32_t pair[2] = {(utf8proc_int32_t)first, (utf8proc_int32_t)second};
    bool is_one = utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1;
    return is_one && pair[0] != LATER_COMPOSITE ? (uint32_t)pair[0] : 0;
}

/* True if `code` is its own NFC and never joins with what stands before it. */
static bool is_inert(uint32_t code)
{
    if (code < FIRST_MARK || (code >= 0x3400 && code < 0xa000) || (code >= 0xac00 && code < 0xd7a4)) {
        return true; /* Latin, Han, Hangul syllables: most text never gets further */
    }
    const utf8proc_property_t *property = utf8proc_get_property((utf8proc_int32_t)code);
    if (combining_class(code) != 0 || is_in(code, second_starters, COUNT_OF(second_starters))) {
        return false;
    }
    if (property->decomp_seqindex == UINT16_MAX || property->decomp_type != 0) {
        return true;
    }
    /* Canonical decompositions come back together, unless excluded, single, or begun by a mark: so compare. */
    uint32_t codes[DECOMPOSED_MAX];
    size_t count = decompose(code, codes);
    uint32_t whole = codes[0];
    for (size_t i = 1; i < count && whole != 0; i++) {
        whole = combining_class(codes[0]) == 0 ? compose(whole, codes[i]) : 0;
    }
    return whole == code;
}

size_t unicode_nfc_prefix(const char *text, size_t bytes)
{
    size_t at = 0;
    size_t run = 0; /* where the current run begins */
    while (at < bytes) {
        uint64_t word;
        if (bytes - at >= sizeof word) {
            memcpy(&word, text + at, sizeof word);
            if ((word & 0x8080808080808080U) == 0) {
                at += sizeof word;
                run = at - 1;
                continue;
            }
        }
        uint32_t code = 0;
        int step = utf8_decode(text + at, bytes - at, &code);
        assert(step > 0);
        if (!is_inert(code)) {
            return run;
        }
        run = at;
        at += (size_t)step;
    }
    assert(at == bytes);
    return bytes;
}

size_t unicode_nfc_scratch_bytes(size_t bytes)
{
    return (bytes * RUN_CODES_A_BYTE + DECOMPOSED_MAX) * 2 * sizeof(uint32_t);
}

/* Appends `code` with its class in the top byte, so that it is looked up once. */
static uint32_t with_class(uint32_t code)
{
    return code | combining_class(code) << 24;
}

/* Sorts codes[0 .. count) by class, stably: a few by insertion; more by counting, for their number is the client's
 * choice. */
static void sort_marks(uint32_t *codes, size_t count, uint32_t *spare)
{
    size_t first[257] = {0};
    if (count <= FEW_MARKS) {
        for (size_t i = 1; i < count; i++) {
            uint32_t code = codes[i];
            size_t place = i;
            for (; place > 0 && codes[place - 1] >> 24 > code >> 24; place--) {
                codes[place] = codes[place - 1];
            }
            codes[place] = code;
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        first[(codes[i] >> 24) + 1]++;
    }
    for (size_t i = 1; i < 257; i++) {
        first[i] += first[i - 1];
    }
    for (size_t i = 0; i < count; i++) {
        spare[first[codes[i] >> 24]++] = codes[i];
    }
    memcpy(codes, spare, count * sizeof *codes);
}

/* Composes a run of sorted code points in place; returns how many are left. */
static size_t compose_run(uint32_t *codes, size_t count)
{
    size_t starter = 0;
    size_t end = 1;
    bool has_starter = codes[0] >> 24 == 0;
    uint32_t last_class = 0; /* of the code before the next one, since the starter; 0: right behind it */

    for (size_t i = 1; i < count; i++) {
        uint32_t class = codes[i] >> 24;
        bool is_adjacent = end == starter + 1;
        uint32_t whole = 0;
        if (has_starter && (is_adjacent || last_class < class)) {
            whole = compose(codes[starter], codes[i] & 0xffffff);
        }
        if (whole != 0) {
            codes[starter] = whole;
            continue;
        }
        if (class == 0) {
            starter = end;
            has_starter = true;
        }
        last_class = class;
        codes[end++] = codes[i];
    }
    assert(end <= count);
    return end;
}

/* Decomposes the run at `text` into `codes`, marks sorted. Returns the bytes of text it takes. */
static size_t read_run(const char *text, size_t bytes, uint32_t *codes, size_t capacity, size_t *count)
{
    uint32_t *spare = codes + capacity;
    size_t at = 0;
    size_t end = 0;
    size_t marks = 0; /* where the marks behind the last starter begin */
    while (at < bytes) {
        uint32_t code = 0;
        uint32_t parts[DECOMPOSED_MAX];
        int step = utf8_decode(text + at, bytes - at, &code);
        assert(step > 0);
        if (at > 0 && is_inert(code)) {
            break;
        }
        size_t part_count = decompose(code, parts);
        assert(part_count <= capacity - end);
        for (size_t i = 0; i < part_count; i++) {
            uint32_t part = with_class(parts[i]);
            codes[end] = part;
            if (part >> 24 == 0) {
                sort_marks(codes + marks, end - marks, spare);
                marks = end + 1;
            }
            end++;
        }
        at += (size_t)step;
    }
    sort_marks(codes + marks, end - marks, spare);
    *count = end;
    return at;
}

bool unicode_nfc(const char *text, size_t bytes, char *out, size_t capacity, void *scratch, size_t scratch_bytes,
                 size_t *length)
{
    uint32_t *codes = scratch;
    size_t code_capacity = scratch_bytes / sizeof *codes / 2;
    size_t at = 0;
    size_t end = 0;

    assert((uintptr_t)scratch % sizeof *codes == 0);
    assert(scratch_bytes >= unicode_nfc_scratch_bytes(bytes));
    while (at < bytes) {
        size_t run = unicode_nfc_prefix(text + at, bytes - at);
        if (run > capacity - end) {
            return false;
        }
        memcpy(out + end, text + at, run);
        at += run;
        end += run;
        if (at == bytes) {
            break;
        }
        size_t count;
        at += read_run(text + at, bytes - at, codes, code_capacity, &count);
        count = compose_run(codes, count);
        for (size_t i = 0; i < count; i++) {
            char utf8[UTF8_BYTES_MAX];
            size_t step = (size_t)utf8_encode(codes[i] & 0xffffff, utf8);
            if (step > capacity - end) {
                return false;
            }
            memcpy(out + end, utf8, step);
            end += step;
        }
    }
    assert(at == bytes && end <= capacity);
    *length = end;
    return true;
}
