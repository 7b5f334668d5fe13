/* data_url: the string of an image_url part becomes the picture file's bytes, in place.
 *
 * Accepted: `data:[type][;parameters];base64,DATA` (names in any case, type ignored) and bare base64 of a JPEG or PNG
 * file. DATA is "forgiving-base64" of the WHATWG Infra standard: the standard alphabet, ASCII white space skipped,
 * padding complete or left out.
 */
#ifndef ENGINE_IMAGE_DATA_URL_H
#define ENGINE_IMAGE_DATA_URL_H

#include "engine/err.h"

#include <stddef.h>

struct file_span {
    const unsigned char *bytes; /* inside the url's own memory */
    size_t count;
};

/* Decodes `url` (url_bytes long, not terminated, unescaped) over itself. ERR_BAD_IMAGE for a broken data URL,
 * ERR_UNSUPPORTED for anything that would have to be fetched or opened; both with a constant text in *reason. On an
 * error the url's bytes may be overwritten in part. */
enum err data_url_decode(unsigned char *url, size_t url_bytes, struct file_span *file, const char **reason) ERR_CHECKED;

#endif
