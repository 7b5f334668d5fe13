/* ask: `ashlar ask`: one question through the whole engine, without HTTP; the answer goes to standard output as it
 * comes. */
#ifndef ENGINE_ASK_H
#define ENGINE_ASK_H

#include "engine/boot.h"

/* Makes the request from the question and the picture files. Before the seal. */
struct request *ask_prepare(struct boot *boot);

/* Asks, prints the answer. After the seal. Returns the exit code: 0, or 1 after telling why there is no answer. */
int ask_run(struct boot *boot, struct request *request);

#endif
