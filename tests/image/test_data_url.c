/* test_data_url: what counts as a picture's URL, and what each refusal says. */
#include "engine/image/data_url.h"

#include "tests/harness.h"

#include <string.h>

static enum err decode(const char *url, struct file_span *file, const char **reason)
{
    static unsigned char *end;
    size_t bytes = strlen(url);

    if (end == NULL) {
        end = (unsigned char *)harness_memory(4096) + 4096;
    }
    memcpy(end - bytes, url, bytes);
    *reason = NULL;
    return data_url_decode(end - bytes, bytes, file, reason);
}

static void data_urls_of_every_spelling_are_decoded(void)
{
    static const char *const urls[] = {
        "data:image/png;base64,aGVsbG8=",
        "data:;base64,aGVsbG8=",
        "data:image/jpeg;charset=utf-8;base64,aGVsbG8=",
        "data:image/png;name=a.png;base64,aGVsbG8",
        "DATA:IMAGE/PNG;BASE64,aGVsbG8=",
        "data:application/octet-stream;base64,aGVs\r\nbG8=",
    };

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct file_span file;
        const char *reason;
        CU_ASSERT_EQUAL_FATAL(decode(urls[i], &file, &reason), ERR_OK);
        CU_ASSERT_EQUAL(file.count, 5);
        CU_ASSERT_EQUAL(memcmp(file.bytes, "hello", 5), 0);
    }
}

static void broken_data_urls_are_bad_images_with_a_reason(void)
{
    static const char *const rows[][2] = {
        {"", "empty"},
        {"data:", "data URL without a comma before its data"},
        {"data:image/png;base64", "data URL without a comma before its data"},
        {"data:,x", "data URL without ;base64 (percent-encoded data is not supported)"},
        {"data:image/png,aGVsbG8=", "data URL without ;base64 (percent-encoded data is not supported)"},
        {"data:image/png;base64;x,aGVsbG8=", "data URL without ;base64 (percent-encoded data is not supported)"},
        {"data:image/png;base64,", "empty"},
        {"data:image/png;base64, \r\n", "empty"},
        {"data:image/png;base64,data:image/png;base64,aGVsbG8=", "invalid base64"},
        {"data:image/png;base64,aGVsbG8*", "invalid base64"},
        {"data:image/png;base64,aGVsb", "invalid base64"},
        {"data:image/png;base64,a-_s", "invalid base64"},
        {"/9j/4AAQSkZJRg*", "invalid base64"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct file_span file;
        const char *reason;
        CU_ASSERT_EQUAL(decode(rows[i][0], &file, &reason), ERR_BAD_IMAGE);
        CU_ASSERT_STRING_EQUAL(reason, rows[i][1]);
    }
}

static void bare_base64_of_a_picture_is_decoded(void)
{
    struct file_span file;
    const char *reason;

    CU_ASSERT_EQUAL(decode("/9j/4AAQ", &file, &reason), ERR_OK);
    CU_ASSERT_EQUAL(file.count, 6);
    CU_ASSERT_EQUAL(file.bytes[0], 0xFF);
    CU_ASSERT_EQUAL(decode("iVBORw0KGgoAAAANSUhEUg", &file, &reason), ERR_OK);
    CU_ASSERT_EQUAL(memcmp(file.bytes + 1, "PNG", 3), 0);
}

static void nothing_is_fetched_or_opened(void)
{
    static const char *const urls[] = {"http://127.0.0.1/a.png",
                                       "HTTPS://example.com/a.jpg",
                                       "file:///etc/passwd",
                                       "file:a.png",
                                       "/etc/passwd",
                                       "../a.png",
                                       "a.png",
                                       "ftp://x/y",
                                       "R0lGODlhAQABAAAAACw=",
                                       "x"};

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct file_span file;
        const char *reason;
        CU_ASSERT_EQUAL(decode(urls[i], &file, &reason), ERR_UNSUPPORTED);
        CU_ASSERT_PTR_NOT_NULL(strstr(reason, "data:image/jpeg;base64,"));
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {CASE(data_urls_of_every_spelling_are_decoded),
                                                CASE(broken_data_urls_are_bad_images_with_a_reason),
                                                CASE(bare_base64_of_a_picture_is_decoded),
                                                CASE(nothing_is_fetched_or_opened),
                                                {NULL, NULL}};

    return harness_run(argc, argv, "data_url", cases, NULL);
}
