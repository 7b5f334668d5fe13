/* exif: the orientation tag out of an EXIF block.
 *
 * Every read is bounds-checked against the block: offsets inside it come from the file.
 */
#include "engine/image/exif.h"

#include <assert.h>
#include <stdbool.h>

enum {
    TIFF_HEAD_BYTES = 8,
    TIFF_ENTRY_BYTES = 12,
    TIFF_MAGIC = 42,
    TIFF_SHORT = 3, /* what the standard asks for */
    TIFF_LONG = 4,  /* what some writers put */
    TAG_ORIENTATION = 0x0112,
};

static uint32_t read_uint(const unsigned char *bytes, unsigned count, bool is_little)
{
    assert(count == 2 || count == 4);
    uint32_t value = 0;

    for (unsigned i = 0; i < count; i++) {
        value = value << 8 | bytes[is_little ? count - 1 - i : i];
    }
    return value;
}

uint8_t exif_read_orientation(const unsigned char *tiff, size_t tiff_bytes)
{
    assert(tiff != NULL || tiff_bytes == 0);

    if (tiff_bytes < TIFF_HEAD_BYTES || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) {
        return 1;
    }
    bool is_little = tiff[0] == 'I';
    if (read_uint(tiff + 2, 2, is_little) != TIFF_MAGIC) {
        return 1;
    }
    size_t directory = read_uint(tiff + 4, 4, is_little);
    if (directory > tiff_bytes - 2) {
        return 1;
    }
    uint32_t entry_count = read_uint(tiff + directory, 2, is_little);
    size_t entry = directory + 2;

    for (uint32_t i = 0; i < entry_count && tiff_bytes - entry >= TIFF_ENTRY_BYTES; i++, entry += TIFF_ENTRY_BYTES) {
        if (read_uint(tiff + entry, 2, is_little) != TAG_ORIENTATION) {
            continue;
        }
        uint32_t type = read_uint(tiff + entry + 2, 2, is_little);
        uint32_t value = read_uint(tiff + entry + 8, type == TIFF_LONG ? 4 : 2, is_little);
        bool is_known = (type == TIFF_SHORT || type == TIFF_LONG) && value >= 1 && value <= 8;
        return is_known ? (uint8_t)value : 1;
    }
    return 1;
}
