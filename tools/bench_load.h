/* bench_load: makes the requests of the load: random words, pictures of noise, the JSON body around them. */
#ifndef TOOLS_BENCH_LOAD_H
#define TOOLS_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NOISES = 8, RESOLUTION_BYTES = 32 };

struct load {
    /* What every request is made of; the caller fills these in. */
    const char *model;
    const char *extra_body;                           /* a JSON object whose members are added, or NULL */
    int picture_count, picture_width, picture_height; /* of one request; 0 pictures: text only */
    int input_tokens, output_tokens;
    double range_ratio; /* lengths are drawn from [ratio * tokens, tokens] */
    bool is_stream, ignores_eos;
    uint64_t seed;

    /* Own part. */
    char **words; /* each one token of the served tokenizer, leading blank included */
    size_t word_count;
    unsigned char *noises[NOISES]; /* JPEG files */
    size_t noise_bytes[NOISES];
};

struct load_request {
    char *bytes; /* head and body; the caller frees it */
    size_t byte_count;
    int text_tokens, output_tokens; /* as drawn */
};

/* "360p", "720p", "1080p", "4k" or HEIGHTxWIDTH; false if it is none. */
bool load_resolution(const char *text, int *width, int *height);

/* Reads the words out of DIR/tokenizer.json or DIR/vocab.json (NULL or unreadable: plain words) and makes the noises.
 * Returns how many words were found, 0 when plain ones serve instead. */
size_t load_open(struct load *load, const char *tokenizer_folder);

/* Request `number`: the same number and seed give the same bytes. `host` and `authorization` go into the head. */
struct load_request load_request(const struct load *load, uint64_t number, const char *host, const char *authorization);

void load_shut(struct load *load);

/* The generator behind everything random here: a new value, and a number in [0, bound). */
uint64_t load_random(uint64_t *state);
uint64_t load_random_below(uint64_t *state, uint64_t bound);

#endif
