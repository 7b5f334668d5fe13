/* plan_print: the memory plan for people and for scripts. */
#include "engine/plan_print.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_BYTES = 32 };

/* Text that grows in the caller's buffer; what does not fit is cut. */
struct print {
    char *text;
    size_t capacity, length;
};

static void say(struct print *print, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct print *print, const char *format, ...)
{
    va_list arguments;
    size_t room = print->capacity - print->length;

    assert(room > 0);
    va_start(arguments, format);
    int added = vsnprintf(print->text + print->length, room, format, arguments);
    va_end(arguments);
    assert(added >= 0);
    print->length += (size_t)added < room ? (size_t)added : room - 1;
}

/* 16584333312 as "16,584,333,312", in `text` of NUMBER_BYTES. */
static const char *grouped(uint64_t number, char *text)
{
    char digits[NUMBER_BYTES];
    int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    size_t at = 0;

    assert(count > 0 && count <= 20);
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) {
            text[at++] = ',';
        }
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

/* "16 computing or paused + 64 waiting to start + 1 /health_generate's own". */
static void print_holders(const struct pool_plan_row *row, struct print *print)
{
    for (uint32_t i = 0; i < row->holder_count; i++) {
        say(print, "%s%llu %s", i == 0 ? "" : " + ", (unsigned long long)row->holders[i].count, row->holders[i].whom);
    }
    say(print, "\n");
}

static void print_head(const struct plan *plan, struct print *print)
{
    const struct plan_source *source = &plan->source;
    char in_files[NUMBER_BYTES], packed[NUMBER_BYTES], memory[NUMBER_BYTES], limit[NUMBER_BYTES];

    say(print, "memory plan of %s\n", source->options->model_path != NULL ? source->options->model_path : "?");
    say(print, "weights: %u tensors, %s bytes in the checkpoint's files, %s as packed\n", source->tensor_count,
        grouped(source->tensor_bytes, in_files), grouped(plan->sizes.weights_bytes, packed));
    say(print, "limit: %.6g of %s bytes = %s bytes (%s)\n\n", plan_fraction(source->options),
        grouped(plan->memory_bytes, memory), grouped(plan->budget.limit_bytes, limit),
        source->is_one_memory ? "all domains are one memory" : "of the device");
}

static void print_rows(const struct plan *plan, struct print *print)
{
    const struct pool_plan *pools = &plan->budget.plan;
    char element[NUMBER_BYTES], count[NUMBER_BYTES], bytes[NUMBER_BYTES];

    say(print, "%-14s %-6s %15s %9s %17s  %s\n", "pool", "domain", "element bytes", "count", "bytes", "count is");
    for (int i = 0; i < POOL_COUNT; i++) {
        const struct pool_plan_row *row = &pools->rows[i];
        say(print, "%-14s %-6s %15s %9s %17s  ", row->name, domain_name(row->domain),
            grouped(row->element_bytes, element), grouped(row->count, count), grouped(row->bytes, bytes));
        print_holders(row, print);
    }
    say(print, "%-14s %-6s %15s %9s %17s  %s\n\n", "(books)", domain_name(DOMAIN_HOST), "", "",
        grouped(pools->books_bytes, bytes), "free lists and generations of all pools, alignment");
    for (int i = 0; i < DOMAIN_COUNT; i++) {
        say(print, "sum of %-7s %49s\n", domain_name((enum domain)i), grouped(pools->domain_bytes[i], bytes));
    }
    say(print, "sum %60s  %.2f GiB, each domain in whole pages\n", grouped(pools->total_bytes, bytes),
        (double)pools->total_bytes / 1073741824.0);
}

/* Bytes of K and V a token: what the elastic page holds, shared out. */
static uint64_t kv_token_bytes(const struct plan *plan)
{
    return plan->sizes.kv_page_bytes / KV_PAGE_TOKENS;
}

/* Requests of a full context that can run at once; one page is /health_generate's. */
static uint32_t full_contexts(const struct plan *plan)
{
    uint32_t pages = plan->budget.plan.kv_pages;
    uint32_t running = plan->limits.running_requests;

    assert(plan->limits.context_pages > 0);
    uint32_t fitting = pages == 0 ? 0 : (pages - 1) / plan->limits.context_pages;
    return fitting < running ? fitting : running;
}

static void print_figures(const struct plan *plan, struct print *print)
{
    const struct pool_limits *l = &plan->limits;
    char a[NUMBER_BYTES], b[NUMBER_BYTES], c[NUMBER_BYTES];

    say(print,
        "\nelastic: KV_PAGE, %s bytes a page with its records; %s bytes without any; at most %s pages are of use\n",
        grouped(plan->budget.page_price_bytes, a), grouped(plan->budget.fixed_bytes, b),
        grouped(plan->budget.cap_pages, c));
    say(print, "KV tokens: %s (%s bytes a token, %d tokens a page)\n",
        grouped((uint64_t)plan->budget.plan.kv_pages * KV_PAGE_TOKENS, a), grouped(kv_token_bytes(plan), b),
        KV_PAGE_TOKENS);
    say(print, "requests: %u running, %u queued; %u of a full context of %s tokens fit at once\n", l->running_requests,
        l->queued_requests, full_contexts(plan), grouped(l->context_tokens, a));
    say(print, "step: %u rows (%u of prompts, %u of answers)\n", l->step_tokens, l->chunk_tokens, l->running_requests);
    if (l->picture_tokens > 0) {
        say(print, "pictures: at most %s tokens each (%s pixels after resizing, %s before), %u a request\n",
            grouped(l->picture_tokens, a), grouped(l->picture_pixels, b), grouped(l->source_pixels, c),
            l->images_per_request);
        say(print, "image tokens at once: %s (%u pages of %d tokens, %u of them cache)\n",
            grouped((uint64_t)plan->budget.plan.rows[POOL_MM_PAGE].count * MM_PAGE_TOKENS, a),
            plan->budget.plan.rows[POOL_MM_PAGE].count, MM_PAGE_TOKENS, l->feature_cache_pages);
    }
}

static void print_shortage(const struct plan *plan, struct print *print)
{
    char a[NUMBER_BYTES], b[NUMBER_BYTES];

    if (plan->outcome != BUDGET_TOO_SMALL) {
        return;
    }
    say(print, "\ndoes not fit: %s bytes are missing (the plan above, with one full context and one page, takes %s)\n",
        grouped(plan->budget.missing_bytes, a), grouped(plan->budget.least_bytes, b));
    say(print, "give more memory (--mem-fraction-static, --device-memory), or free some:\n");
    for (uint32_t i = 0; i < plan->advice_count; i++) {
        say(print, "  %s %s frees %s bytes\n", plan->advice[i].flag, plan->advice[i].value,
            grouped(plan->advice[i].freed_bytes, a));
    }
}

size_t plan_print_text(const struct plan *plan, char *text, size_t capacity)
{
    struct print print = {.text = text, .capacity = capacity};

    assert(capacity > 0);
    text[0] = '\0';
    if (plan->outcome == BUDGET_OVERFLOW) {
        say(&print, "memory plan: a size or a sum does not fit 64 bits\n");
        return print.length;
    }
    print_head(plan, &print);
    print_rows(plan, &print);
    print_figures(plan, &print);
    print_shortage(plan, &print);
    assert(print.length < capacity);
    return print.length;
}

size_t plan_print_shortage(const struct plan *plan, char *text, size_t capacity)
{
    struct print print = {.text = text, .capacity = capacity};

    assert(capacity > 0);
    text[0] = '\0';
    print_shortage(plan, &print);
    return print.length;
}

static void key_number(struct json_out *out, const char *key, uint64_t value)
{
    json_out_key(out, key);
    json_out_u64(out, value);
}

static void json_rows(const struct plan *plan, struct json_out *out)
{
    json_out_key(out, "pools");
    json_out_array_begin(out);
    for (int i = 0; i < POOL_COUNT; i++) {
        const struct pool_plan_row *row = &plan->budget.plan.rows[i];
        json_out_object_begin(out);
        json_out_key_text(out, "name", row->name);
        json_out_key_text(out, "domain", domain_name(row->domain));
        key_number(out, "element_bytes", row->element_bytes);
        key_number(out, "count", row->count);
        key_number(out, "bytes", row->bytes);
        json_out_key(out, "holders");
        json_out_array_begin(out);
        for (uint32_t h = 0; h < row->holder_count; h++) {
            json_out_object_begin(out);
            key_number(out, "count", row->holders[h].count);
            json_out_key_text(out, "whom", row->holders[h].whom);
            json_out_object_end(out);
        }
        json_out_array_end(out);
        json_out_key_text(out, "when_empty", row->when_empty);
        json_out_key_bool(out, "is_elastic", i == POOL_KV_PAGE);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

static void json_shortage(const struct plan *plan, struct json_out *out)
{
    key_number(out, "missing_bytes", plan->budget.missing_bytes);
    json_out_key(out, "advice");
    json_out_array_begin(out);
    for (uint32_t i = 0; i < plan->advice_count; i++) {
        json_out_object_begin(out);
        json_out_key_text(out, "flag", plan->advice[i].flag);
        json_out_key_text(out, "value", plan->advice[i].value);
        key_number(out, "freed_bytes", plan->advice[i].freed_bytes);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

void plan_print_json(const struct plan *plan, struct json_out *out)
{
    const struct pool_limits *l = &plan->limits;
    const struct pool_plan *pools = &plan->budget.plan;

    json_out_object_begin(out);
    json_out_key_bool(out, "fits", plan->outcome == BUDGET_FITS);
    key_number(out, "memory_bytes", plan->memory_bytes);
    key_number(out, "limit_bytes", plan->budget.limit_bytes);
    key_number(out, "total_bytes", pools->total_bytes);
    for (int i = 0; i < DOMAIN_COUNT; i++) {
        static const char *const keys[DOMAIN_COUNT] = {"device_bytes", "pinned_bytes", "host_bytes"};
        key_number(out, keys[i], pools->domain_bytes[i]);
    }
    key_number(out, "books_bytes", pools->books_bytes);
    key_number(out, "fixed_bytes", plan->budget.fixed_bytes);
    key_number(out, "page_price_bytes", plan->budget.page_price_bytes);
    key_number(out, "tensors", plan->source.tensor_count);
    key_number(out, "weight_file_bytes", plan->source.tensor_bytes);
    key_number(out, "weight_packed_bytes", plan->sizes.weights_bytes);
    key_number(out, "kv_pages", pools->kv_pages);
    key_number(out, "kv_tokens", (uint64_t)pools->kv_pages * KV_PAGE_TOKENS);
    key_number(out, "kv_token_bytes", kv_token_bytes(plan));
    key_number(out, "context_tokens", l->context_tokens);
    key_number(out, "full_contexts", full_contexts(plan));
    key_number(out, "running_requests", l->running_requests);
    key_number(out, "queued_requests", l->queued_requests);
    key_number(out, "chunk_tokens", l->chunk_tokens);
    key_number(out, "picture_tokens", l->picture_tokens);
    key_number(out, "image_tokens_at_once", (uint64_t)pools->rows[POOL_MM_PAGE].count * MM_PAGE_TOKENS);
    json_rows(plan, out);
    if (plan->outcome == BUDGET_TOO_SMALL) {
        json_shortage(plan, out);
    }
    json_out_object_end(out);
}
