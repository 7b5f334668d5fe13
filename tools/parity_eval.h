/* parity_eval: a model's evaluation set (demo/eval): are the answers the reference's, and how many are right? */
#ifndef TOOLS_PARITY_EVAL_H
#define TOOLS_PARITY_EVAL_H

#include "engine/model/run.h"

#include <stdbool.h>

/* Runs every question of FOLDER/eval.json greedily, from picture file to answer ids. Lists the answers that differ with
 * the reference's margin. False if fewer than 98 % are equal, or fewer answers right than recorded minus 1 point. */
bool parity_eval(const char *folder, const char *model_folder, enum model_dtype dtype);

#endif
