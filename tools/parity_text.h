/* parity_text: the tokenizer of a model folder, for the parity tool. */
#ifndef TOOLS_PARITY_TEXT_H
#define TOOLS_PARITY_TEXT_H

#include "engine/text/tokenizer.h"

#include <stdbool.h>
#include <stdint.h>

/* Opens tokenizer.json (and tokenizer_config.json, if it is there) of the folder; false with a line on standard error.
 */
bool parity_open_tokenizer(const char *folder, uint32_t vocab_size);

/* True if `text` (raw JSON string text), its added tokens matched everywhere, gives exactly these ids. */
bool parity_encodes_to(const char *text, size_t bytes, const int32_t *ids, uint32_t count);

/* The text of the ids, special tokens left out, into `out`; returns its length. */
size_t parity_decode(const int32_t *ids, uint32_t count, char *out, size_t out_bytes);

#endif
