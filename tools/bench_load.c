/* bench_load: makes the requests of the load: random words, pictures of noise, the JSON body around them.
 *
 * Always true: a request depends on (seed, number) only. A few noises are encoded once; every use carries a JPEG
 * comment of its own, so no two pictures of a run are the same file and none is served from the feature cache.
 */
#include "tools/bench_load.h"

#include "engine/json.h"
#include "tools/bench_answer.h"

#include <stdio.h>
#include <jpeglib.h>
#include <stdlib.h>
#include <string.h>

enum { JPEG_QUALITY = 85, WORD_BYTES_MAX = 32, COMMENT_BYTES = 40 };

static const char *const plain_words[] = {" the", " of", " and", " to", " in", " is", " that", " for", " on", " with"};

uint64_t load_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9E3779B97F4A7C15u; /* splitmix64 */

    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

uint64_t load_random_below(uint64_t *state, uint64_t bound)
{
    return bound == 0 ? 0 : load_random(state) % bound;
}

bool load_resolution(const char *text, int *width, int *height)
{
    static const struct {
        const char *name;
        int width, height;
    } known[] = {{"360p", 640, 360}, {"720p", 1280, 720}, {"1080p", 1920, 1080}, {"4k", 3840, 2160}};
    char end = '\0';

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(text, known[i].name) == 0) {
            *width = known[i].width;
            *height = known[i].height;
            return true;
        }
    }
    return sscanf(text, "%dx%d%c", height, width, &end) == 2 && *height > 0 && *width > 0 && *height < 65536 &&
           *width < 65536;
}

/* ---- words ---- */

/* A vocabulary entry that is a blank and letters: such a token comes back as itself from any text of such tokens. */
static bool is_word_token(const char *text, size_t bytes)
{
    if (bytes < 4 || bytes > WORD_BYTES_MAX || memcmp(text, "\xC4\xA0", 2) != 0) {
        return false; /* U+0120 stands for the blank */
    }
    for (size_t i = 2; i < bytes; i++) {
        if ((text[i] | 0x20) < 'a' || (text[i] | 0x20) > 'z') {
            return false;
        }
    }
    return true;
}

static void add_word(struct load *load, size_t *capacity, const char *text, size_t bytes)
{
    char *word = malloc(WORD_BYTES_MAX + 1);

    load->words = grow(load->words, capacity, (load->word_count + 1) * sizeof *load->words);
    if (word == NULL) {
        return;
    }
    snprintf(word, WORD_BYTES_MAX + 1, " %.*s", (int)(bytes - 2), text + 2);
    load->words[load->word_count++] = word;
}

static char *read_whole(const char *folder, const char *name, size_t *bytes)
{
    char path[4096], *text = NULL;
    size_t capacity = 0, got = 1;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    *bytes = 0;
    while (file != NULL && got > 0) {
        text = grow(text, &capacity, *bytes + 65536);
        got = fread(text + *bytes, 1, capacity - *bytes, file);
        *bytes += got;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return text;
}

/* Every key of the object "vocab" in a tokenizer.json, or of the outermost one in a vocab.json. */
static void read_words(struct load *load, char *text, size_t bytes, bool is_vocab)
{
    struct json_reader reader;
    struct json_event event;
    size_t capacity = 0;

    json_open(&reader, text, bytes);
    while (json_next(&reader, &event) == ERR_OK && event.kind != JSON_END) {
        bool is_end = event.kind == JSON_OBJECT_END;
        if (is_vocab && event.kind == JSON_KEY && is_word_token(event.text, event.bytes)) {
            add_word(load, &capacity, event.text, event.bytes);
        } else if (event.kind == JSON_KEY && json_event_is(&event, "vocab")) {
            is_vocab = true;
        } else if (is_vocab && is_end) {
            break;
        }
    }
}

static void find_words(struct load *load, const char *folder)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json"};

    for (int i = 0; i < 2 && load->word_count == 0; i++) {
        size_t bytes = 0;
        char *text = read_whole(folder, names[i], &bytes);
        if (text != NULL) {
            read_words(load, text, bytes, i == 1);
        }
        free(text);
    }
}

/* ---- pictures ---- */

static void make_noise(struct load *load, int index)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    uint64_t state = load->seed * NOISES + (uint64_t)index;
    size_t row_bytes = (size_t)load->picture_width * 3;
    JSAMPLE *row = malloc(row_bytes + 8);
    unsigned long bytes = 0;

    if (row == NULL) {
        exit(2);
    }
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &load->noises[index], &bytes);
    jpeg.image_width = (JDIMENSION)load->picture_width;
    jpeg.image_height = (JDIMENSION)load->picture_height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, JPEG_QUALITY, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        for (size_t i = 0; i < row_bytes; i += 8) {
            uint64_t noise = load_random(&state);
            memcpy(row + i, &noise, 8);
        }
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    load->noise_bytes[index] = bytes;
    free(row);
}

size_t load_open(struct load *load, const char *tokenizer_folder)
{
    if (tokenizer_folder != NULL) {
        find_words(load, tokenizer_folder);
    }
    for (int i = 0; i < NOISES && load->picture_count > 0; i++) {
        make_noise(load, i);
    }
    return load->word_count;
}

/* ---- one request ---- */

struct text {
    char *bytes;
    size_t byte_count, capacity;
};

static void append(struct text *text, const char *bytes, size_t byte_count)
{
    text->bytes = grow(text->bytes, &text->capacity, text->byte_count + byte_count + 1);
    memcpy(text->bytes + text->byte_count, bytes, byte_count);
    text->byte_count += byte_count;
    text->bytes[text->byte_count] = '\0';
}

static void append_text(struct text *text, const char *string)
{
    append(text, string, strlen(string));
}

static void append_base64(struct text *text, const unsigned char *bytes, size_t byte_count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    text->bytes = grow(text->bytes, &text->capacity, text->byte_count + (byte_count + 2) / 3 * 4 + 1);
    char *out = text->bytes + text->byte_count;
    for (size_t i = 0; i < byte_count; i += 3) {
        size_t have = byte_count - i;
        uint32_t group =
            (uint32_t)bytes[i] << 16 | (have > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (have > 2 ? bytes[i + 2] : 0);
        *out++ = digits[group >> 18];
        *out++ = digits[group >> 12 & 63];
        *out++ = have > 1 ? digits[group >> 6 & 63] : '=';
        *out++ = have > 2 ? digits[group & 63] : '=';
    }
    *out = '\0';
    text->byte_count = (size_t)(out - text->bytes);
}

static void append_picture(struct text *text, const struct load *load, uint64_t number, int index)
{
    uint64_t use = number * (uint64_t)load->picture_count + (uint64_t)index;
    const unsigned char *noise = load->noises[use % NOISES];
    size_t bytes = load->noise_bytes[use % NOISES];
    unsigned char *file = malloc(bytes + COMMENT_BYTES + 4);

    if (file == NULL) {
        exit(2);
    }
    memcpy(file, noise, 2); /* the start marker, then our comment, then the rest */
    memcpy(file + 2, "\xFF\xFE\x00", 3);
    file[5] = COMMENT_BYTES + 2;
    memset(file + 6, ' ', COMMENT_BYTES);
    snprintf((char *)file + 6, COMMENT_BYTES, "use %llu, seed %llu", (unsigned long long)use,
             (unsigned long long)load->seed);
    memcpy(file + 6 + COMMENT_BYTES, noise + 2, bytes - 2);
    append_text(text, "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/jpeg;base64,");
    append_base64(text, file, bytes + COMMENT_BYTES + 4);
    append_text(text, "\"}},");
    free(file);
}

static int draw_length(const struct load *load, uint64_t *state, int tokens)
{
    int least = (int)(load->range_ratio * tokens);

    least = least < 1 ? 1 : least;
    return least + (int)load_random_below(state, (uint64_t)(tokens - least + 1));
}

static void append_words(struct text *text, const struct load *load, uint64_t *state, int count)
{
    for (int i = 0; i < count; i++) {
        const char *word = load->word_count > 0
                               ? load->words[load_random_below(state, load->word_count)]
                               : plain_words[load_random_below(state, sizeof plain_words / sizeof plain_words[0])];
        append_text(text, word);
    }
}

static struct text make_body(const struct load *load, uint64_t number, uint64_t *state, struct load_request *request)
{
    struct text body = {0};
    char fields[512];

    request->text_tokens = draw_length(load, state, load->input_tokens);
    request->output_tokens = draw_length(load, state, load->output_tokens);
    append_text(&body, "{\"model\":\"");
    append_text(&body, load->model);
    append_text(&body, "\",\"messages\":[{\"role\":\"user\",\"content\":");
    append_text(&body, load->picture_count > 0 ? "[" : "\"");
    for (int i = 0; i < load->picture_count; i++) {
        append_picture(&body, load, number, i);
    }
    append_text(&body, load->picture_count > 0 ? "{\"type\":\"text\",\"text\":\"" : "");
    append_words(&body, load, state, request->text_tokens);
    append_text(&body, load->picture_count > 0 ? "\"}]}]" : "\"}]");
    snprintf(fields, sizeof fields, ",\"temperature\":0.0,\"max_completion_tokens\":%d,\"stream\":%s,\"ignore_eos\":%s",
             request->output_tokens, load->is_stream ? "true" : "false", load->ignores_eos ? "true" : "false");
    append_text(&body, fields);
    if (load->extra_body != NULL && load->extra_body[0] == '{' && strlen(load->extra_body) > 2) {
        append_text(&body, ",");
        append(&body, load->extra_body + 1, strlen(load->extra_body) - 2);
    }
    append_text(&body, "}");
    return body;
}

struct load_request load_request(const struct load *load, uint64_t number, const char *host, const char *authorization)
{
    struct load_request request = {0};
    uint64_t state = (load->seed << 20) ^ (number * 0xD1342543DE82EF95u);
    struct text body = make_body(load, number, &state, &request), whole = {0};
    char head[1024];

    snprintf(head, sizeof head,
             "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n%s\r\n",
             host, body.byte_count, authorization);
    append_text(&whole, head);
    append(&whole, body.bytes, body.byte_count);
    free(body.bytes);
    request.bytes = whole.bytes;
    request.byte_count = whole.byte_count;
    return request;
}

void load_shut(struct load *load)
{
    for (size_t i = 0; i < load->word_count; i++) {
        free(load->words[i]);
    }
    free(load->words);
    for (int i = 0; i < NOISES; i++) {
        free(load->noises[i]);
    }
}
