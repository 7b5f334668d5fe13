/* fuzz_safetensors: what is accepted describes the file exactly. */
#include "engine/io/safetensors.h"
#include "tests/fuzz/fuzz.h"

enum { ENTRIES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct tensor_entry entries[ENTRIES];
    struct safetensors file = {.entries = entries, .capacity = ENTRIES};
    char *copy = fuzz_copy(data, bytes);

    if (safetensors_read(&file, copy, bytes)) {
        fuzz_demand(file.count <= ENTRIES, "entries fit");
        uint64_t end = file.count > 0 ? entries[0].begin : bytes;
        for (uint32_t i = 0; i < file.count; i++) {
            uint64_t elements = 1;
            fuzz_demand(entries[i].begin == end && entries[i].end >= entries[i].begin, "no hole, no overlap");
            fuzz_demand(entries[i].rank <= SAFETENSORS_RANK_MAX, "rank is bounded");
            for (uint32_t d = 0; d < entries[i].rank; d++) {
                elements *= entries[i].shape[d];
            }
            size_t type_bytes = tensor_type_bytes(entries[i].type);
            fuzz_demand(type_bytes == 0 || elements * type_bytes == entries[i].end - entries[i].begin, "sizes follow");
            end = entries[i].end;
        }
        fuzz_demand(end == bytes, "the last tensor ends with the file");
    } else {
        fuzz_demand(file.reason != NULL, "a refusal says why");
    }
    free(copy);
    return 0;
}
