/* fuzz_data_url: a URL becomes bytes inside itself, or a reason. */
#include "engine/image/data_url.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    unsigned char *url = fuzz_copy(data, bytes);
    struct file_span file = {NULL, 0};
    const char *reason = NULL;

    if (data_url_decode(url, bytes, &file, &reason) == ERR_OK) {
        fuzz_demand(file.bytes >= url && file.count <= bytes, "the file lies in the URL");
        fuzz_demand(file.bytes + file.count <= url + bytes, "the file ends in the URL");
        fuzz_demand(file.count * 4 / 3 <= bytes, "base64 shrinks by a quarter");
    } else {
        fuzz_demand(reason != NULL && reason[0] != '\0', "a refusal says why");
    }
    free(url);
    return 0;
}
