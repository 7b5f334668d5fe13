/* main: the start-up order and nothing else: options, plan, port, carve, load, warm, seal, serve, drain. */
#include "engine/ask.h"
#include "engine/boot.h"
#include "engine/clock.h"
#include "engine/http/http_server.h"
#include "engine/log.h"
#include "engine/model/model.h"
#include "engine/plan_print.h"
#include "engine/start.h"
#include "pools/pools.h"
#include "pools/resident.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What resident.h grows the stack by, and as much again for who calls it. */
enum { MAIN_STACK_BYTES_MIN = 2 * RESIDENT_STACK_BYTES };

static struct options options;
static struct boot boot;
static struct http_server server;
static char text[PLAN_TEXT_BYTES]; /* or the help's */
_Static_assert(sizeof text >= OPTIONS_HELP_BYTES, "the help fits");

/* Prints the plan to standard output, or to standard error beside the log. Refuses what does not fit. */
static void show_plan(bool is_for_log)
{
    size_t length;

    if (options.json && !is_for_log) {
        struct json_out out;
        json_out_open(&out, text, sizeof text - 1);
        plan_print_json(&boot.plan, &out);
        assert(json_out_is_whole(&out));
        length = out.length;
        text[length++] = '\n';
    } else {
        length = plan_print_text(&boot.plan, text, sizeof text);
    }
    if (is_for_log) {
        start_print_error(text, length);
    } else {
        start_print(text, length);
    }
    if (boot.plan.outcome == BUDGET_TOO_SMALL) {
        length = is_for_log ? 0 : plan_print_shortage(&boot.plan, text, sizeof text);
        start_print_error(text, length);
        start_refuse(START_NO_MEMORY, "the plan does not fit: %llu bytes are missing",
                     (unsigned long long)boot.plan.budget.missing_bytes);
    }
}

static void configure_log(void)
{
    enum log_level level = LOG_INFO;

    if (options.command == COMMAND_ASK && !options.is_given[OPTION_log_level]) {
        level = LOG_WARN; /* the answer stands alone */
    } else {
        (void)log_level_parse(options.log_level, &level); /* the options' table allows only levels */
    }
    log_set_level(level);
}

/* Test runs ask for guard gaps and for refusals by the environment. */
static void configure_tests(void)
{
    const char *guards = getenv("ASHLAR_GUARDS"), *refusal = getenv("ASHLAR_REFUSE");

    pools_set_guards(guards != NULL && strcmp(guards, "1") == 0);
    if (refusal != NULL && !pools_refuse_text(refusal)) {
        start_refuse(START_USAGE, "ASHLAR_REFUSE: %s is not POOL:n or POOL:n:once", refusal);
    }
}

/* /server_info shows what the server runs with, not what was left open on the command line. */
static void fill_defaults(void)
{
    const struct pool_limits *limits = &boot.plan.limits;

    options.context_length = limits->context_tokens;
    options.max_running_requests = limits->running_requests;
    options.max_queued_requests = limits->queued_requests;
    options.chunked_prefill_size = limits->chunk_tokens;
    options.max_connections = limits->connections;
    options.threads = limits->compute_threads;
    options.served_model_name = options.served_model_name != NULL ? options.served_model_name : options.model_path;
    options.tokenizer_path = options.tokenizer_path != NULL ? options.tokenizer_path : options.model_path;
}

static int run_serve(void)
{
    boot_plan(&boot, &options);
    show_plan(true);
    plan_warn(&boot.plan);
    fill_defaults();
    http_server_bind(&server, &options); /* a taken port shows before gigabytes are touched */
    boot_carve(&boot);
    boot_load(&boot);
    struct http_facts facts = {
        .options = &options,
        .tokenizer = &boot.tokenizer,
        .model_name = options.served_model_name,
        .tokenizer_path = options.tokenizer_path,
        .model_type = boot.model_type,
        .architecture = boot.checkpoint.arch->hf_name,
        .weight_bytes = pools_element_bytes(POOL_WEIGHTS),
        .started_unix_s = (uint64_t)clock_unix_seconds(),
        .context_tokens = boot.plan.limits.context_tokens,
        .running_requests = boot.plan.limits.running_requests,
        .queued_requests = boot.plan.limits.queued_requests,
        .has_pictures = boot.plan.limits.picture_workers > 0};
    http_server_open(&server, boot.engine, &facts);
    server.facts.resident_bytes = boot_seal(&boot);
    log_info("Uvicorn running on http://%s:%u (Press CTRL+C to quit)", options.host, http_server_port(&server));
    log_info("The server is fired up and ready to roll!");
    bool is_clean = http_server_run(&server);
    seal_end();
    if (is_clean) {
        boot_stop(&boot);
    } else { /* a second signal, or a step that does not end: nobody is waited for */
        log_stop();
    }
    return is_clean ? START_OK : START_BUG;
}

static int run_plan(void)
{
    boot_plan(&boot, &options);
    show_plan(false);
    return START_OK;
}

static int run_ask(void)
{
    if (options.question == NULL) {
        start_refuse(START_USAGE,
                     "ask: the question is missing: ashlar ask --model-path FOLDER [--image FILE]... \"question\"");
    }
    boot_plan(&boot, &options);
    if (boot.plan.outcome == BUDGET_TOO_SMALL) {
        show_plan(true);
    }
    boot_carve(&boot);
    boot_load(&boot);
    struct request *request = ask_prepare(&boot);
    (void)boot_seal(&boot);
    int code = ask_run(&boot, request);
    seal_end();
    boot_stop(&boot);
    return code;
}

int main(int argument_count, char **arguments, char **environment)
{
    struct options_error error;

    start_hold_streams();
    start_hold_stack(MAIN_STACK_BYTES_MIN);
    if (!options_parse(&options, argument_count, arguments, environment, &error)) {
        start_refuse(START_USAGE, "%s", error.text);
    }
    configure_log();
    configure_tests();
    options_warn_ignored(&options);
    switch (options.command) {
    case COMMAND_SERVE:
        return run_serve();
    case COMMAND_PLAN:
        return run_plan();
    case COMMAND_ASK:
        return run_ask();
    case COMMAND_HELP:
        start_print(text, options_help(text, sizeof text));
        return START_OK;
    case COMMAND_VERSION:
        start_print("ashlar " ASHLAR_VERSION "\n", sizeof "ashlar " ASHLAR_VERSION "\n" - 1);
        return START_OK;
    }
    return START_BUG;
}
