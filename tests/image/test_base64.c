/* test_base64: every length, every byte, every place of white space and padding, across the vector path's groups. */
#include "engine/image/base64.h"

#include "tests/harness.h"

#include <string.h>

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { BYTES_MAX = 400 };

static size_t encode(const unsigned char *bytes, size_t count, unsigned char *text, bool is_padded)
{
    size_t length = 0;

    for (size_t at = 0; at < count; at += 3) {
        size_t left = count - at < 3 ? count - at : 3;
        uint32_t bits =
            (uint32_t)bytes[at] << 16 | (left > 1 ? (uint32_t)bytes[at + 1] << 8 : 0) | (left > 2 ? bytes[at + 2] : 0U);
        for (size_t digit = 0; digit < 4; digit++) {
            if (digit <= left) {
                text[length++] = (unsigned char)ALPHABET[bits >> (18 - 6 * digit) & 63];
            } else if (is_padded) {
                text[length++] = '=';
            }
        }
    }
    return length;
}

static void fill(unsigned char *bytes, size_t count)
{
    uint32_t state = (uint32_t)count + 1;

    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(state >> 24);
    }
}

static void every_length_round_trips_padded_or_not(void)
{
    unsigned char bytes[BYTES_MAX], *end = (unsigned char *)harness_memory(1024) + 1024;

    for (size_t count = 0; count <= BYTES_MAX; count++) {
        for (int is_padded = 0; is_padded < 2; is_padded++) {
            unsigned char text[BYTES_MAX * 2];
            size_t decoded, length;
            fill(bytes, count);
            length = encode(bytes, count, text, is_padded);
            memcpy(end - length, text, length); /* one byte behind the text faults */
            CU_ASSERT_TRUE(base64_decode_in_place(end - length, length, &decoded));
            CU_ASSERT_EQUAL(decoded, count);
            CU_ASSERT_EQUAL(memcmp(end - length, bytes, count), 0);
        }
    }
}

static void every_foreign_byte_is_refused_wherever_it_stands(void)
{
    unsigned char bytes[96], text[128], copy[128];
    size_t decoded;

    fill(bytes, sizeof bytes);
    size_t length = encode(bytes, sizeof bytes, text, true);
    for (size_t at = 0; at < length; at++) {
        for (int byte = 0; byte < 256; byte++) {
            if (byte != 0 && (strchr(ALPHABET, byte) != NULL || strchr(" \t\r\n\f", byte) != NULL)) {
                continue;
            }
            memcpy(copy, text, length);
            copy[at] = (unsigned char)byte;
            /* A pad may only be the last or the last two: here only in place of the last digit. */
            CU_ASSERT_EQUAL(base64_decode_in_place(copy, length, &decoded), byte == '=' && at == length - 1);
        }
    }
}

static void white_space_is_skipped_wherever_it_stands(void)
{
    unsigned char bytes[60], text[128], copy[256];
    size_t decoded;

    fill(bytes, sizeof bytes);
    size_t length = encode(bytes, 59, text, true);
    for (size_t at = 0; at <= length; at++) {
        memcpy(copy, text, at);
        memcpy(copy + at, "\r\n \t\f", 5);
        memcpy(copy + at + 5, text + at, length - at);
        CU_ASSERT_TRUE(base64_decode_in_place(copy, length + 5, &decoded));
        CU_ASSERT_EQUAL(decoded, 59);
        CU_ASSERT_EQUAL(memcmp(copy, bytes, 59), 0);
    }
}

static void wrong_padding_is_refused(void)
{
    static const char *const wrong[] = {"A",    "AA=",   "AAA==", "AAAA=", "AAAA==", "====",  "=",       "A===",
                                        "AA=A", "AA==A", "A=A=",  "AAAAA", "AA===",  "AAA=A", "AAAA=AAA"};
    static const char *const right[] = {"", "AA", "AAA", "AA==", "AAA=", "AA= =", "AAA=\n", "AAAA", " AA = = "};
    unsigned char text[16];
    size_t decoded;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(text, wrong[i], strlen(wrong[i]));
        CU_ASSERT_FALSE(base64_decode_in_place(text, strlen(wrong[i]), &decoded));
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        memcpy(text, right[i], strlen(right[i]));
        CU_ASSERT_TRUE(base64_decode_in_place(text, strlen(right[i]), &decoded));
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {CASE(every_length_round_trips_padded_or_not),
                                                CASE(every_foreign_byte_is_refused_wherever_it_stands),
                                                CASE(white_space_is_skipped_wherever_it_stands),
                                                CASE(wrong_padding_is_refused),
                                                {NULL, NULL}};

    return harness_run(argc, argv, "base64", cases, NULL);
}
