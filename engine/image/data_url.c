/* data_url: the string of an image_url part becomes the picture file's bytes, in place.
 */
#include "engine/image/data_url.h"

#include "engine/image/base64.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* What base64 of the two formats begins with: bare base64 is told from a path or a host name by this. */
static const char JPEG_BASE64[] = "/9j/", PNG_BASE64[] = "iVBORw0KGgo";

static unsigned char lower(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte - 'A' + 'a') : byte;
}

/* `prefix` is in lower case. */
static bool begins_with(const unsigned char *text, size_t text_bytes, const char *prefix)
{
    size_t i = 0;

    while (i < text_bytes && prefix[i] != '\0' && lower(text[i]) == (unsigned char)prefix[i]) {
        i++;
    }
    return prefix[i] == '\0';
}

static bool begins_exactly(const unsigned char *text, size_t text_bytes, const char *prefix)
{
    size_t prefix_bytes = strlen(prefix);

    return text_bytes >= prefix_bytes && memcmp(text, prefix, prefix_bytes) == 0;
}

static enum err decode_base64(unsigned char *text, size_t text_bytes, struct file_span *file, const char **reason)
{
    size_t decoded_bytes;

    if (!base64_decode_in_place(text, text_bytes, &decoded_bytes)) {
        *reason = "invalid base64";
        return ERR_BAD_IMAGE;
    }
    if (decoded_bytes == 0) {
        *reason = "empty";
        return ERR_BAD_IMAGE;
    }
    assert(decoded_bytes <= text_bytes);
    *file = (struct file_span){text, decoded_bytes};
    return ERR_OK;
}

/* `rest` is what follows "data:": a type and parameters up to the first comma, the last of them base64. */
static enum err decode_data(unsigned char *rest, size_t rest_bytes, struct file_span *file, const char **reason)
{
    static const char marker[] = ";base64";
    const size_t marker_bytes = sizeof marker - 1;
    unsigned char *comma = memchr(rest, ',', rest_bytes);

    if (comma == NULL) {
        *reason = "data URL without a comma before its data";
        return ERR_BAD_IMAGE;
    }
    size_t type_bytes = (size_t)(comma - rest);
    if (type_bytes < marker_bytes || !begins_with(comma - marker_bytes, marker_bytes, marker)) {
        *reason = "data URL without ;base64 (percent-encoded data is not supported)";
        return ERR_BAD_IMAGE;
    }
    return decode_base64(comma + 1, rest_bytes - type_bytes - 1, file, reason);
}

enum err data_url_decode(unsigned char *url, size_t url_bytes, struct file_span *file, const char **reason)
{
    assert(url != NULL || url_bytes == 0);
    assert(file != NULL && reason != NULL);

    if (url_bytes == 0) {
        *reason = "empty";
        return ERR_BAD_IMAGE;
    }
    if (begins_with(url, url_bytes, "data:")) {
        return decode_data(url + 5, url_bytes - 5, file, reason);
    }
    if (begins_exactly(url, url_bytes, JPEG_BASE64) || begins_exactly(url, url_bytes, PNG_BASE64)) {
        return decode_base64(url, url_bytes, file, reason);
    }
    if (begins_with(url, url_bytes, "http://") || begins_with(url, url_bytes, "https://")) {
        *reason = "this server fetches no URLs; send \"data:image/jpeg;base64,\" (or image/png) and the file in base64";
    } else if (begins_with(url, url_bytes, "file:")) {
        *reason = "this server opens no files; send \"data:image/jpeg;base64,\" (or image/png) and the file in base64";
    } else {
        *reason = "not a picture: send \"data:image/jpeg;base64,\" (or image/png) and the file in base64";
    }
    return ERR_UNSUPPORTED;
}
