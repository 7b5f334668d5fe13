/* vocab_load: a checkpoint's tokenizer files into a vocabulary, or the reason why not. Start-up only. */
#ifndef ENGINE_TEXT_VOCAB_LOAD_H
#define ENGINE_TEXT_VOCAB_LOAD_H

#include "engine/text/vocab.h"

/* The files that are there (NULL bytes: absent), whole and writable: they are parsed in place and useless afterwards.
 * Either tokenizer_json, or vocab_json and merges_txt (with or without its #version line). The added tokens are those
 * of tokenizer_json, tokenizer_config_json and added_tokens_json together. */
struct tokenizer_file {
    char *bytes;
    size_t length;
};

struct tokenizer_files {
    struct tokenizer_file tokenizer_json, vocab_json, merges_txt, tokenizer_config_json, added_tokens_json;
};

/* Fills an empty vocabulary. False: `detail` (ERROR_DETAIL_BYTES_MAX) says which file, where, and what is wrong.
 * Refused is all that is not known to give the reference's ids: another normaliser, pattern, model, a byte without a
 * token. */
bool vocab_load(struct vocab *vocab, const struct tokenizer_files *files, char *detail);

#endif
