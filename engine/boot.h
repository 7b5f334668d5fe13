/* boot: from options to an engine that runs, step by step, in the order that main.c calls. Start-up only; refuses to
 * start. */
#ifndef ENGINE_BOOT_H
#define ENGINE_BOOT_H

#include "engine/crew.h"
#include "engine/engine_open.h"
#include "engine/plan_measure.h"
#include "engine/plan_solve.h"
#include "engine/text/tokenizer.h"

enum { BOOT_MODEL_TYPE_BYTES = 64 };

/* One a process, zeroed at first. */
struct boot {
    const struct options *options;
    struct checkpoint checkpoint;
    char model_type[BOOT_MODEL_TYPE_BYTES]; /* config.json "model_type" */
    struct plan_subject subject;
    struct plan plan;
    struct crew crew;
    struct tokenizer tokenizer;
    const struct chat_template *chat_template;
    struct model *model;
    struct engine *engine;
};

/* Reads what the folder says and solves the plan. Nothing is obtained; needs no weights. */
void boot_plan(struct boot *boot, const struct options *options);

/* Obtains and lays out all memory. Refuses (code 3) what does not fit, telling what would free most. */
void boot_carve(struct boot *boot);

/* Tokenizer, chat template, compute threads, weights, warm-up, engine. */
void boot_load(struct boot *boot);

/* Starts the engine's threads and seals memory: from here on nothing is obtained. Returns the resident bytes (RssAnon)
 * from then on. */
uint64_t boot_seal(struct boot *boot);

/* The end: requests that still run are cut, threads end. */
void boot_stop(struct boot *boot);

#endif
