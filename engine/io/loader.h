/* loader: the weight files of a model folder, bound to the weight table. Start-up only.
 *
 * One file (model.safetensors, or the only .safetensors file of the folder), or shards under
 * model.safetensors.index.json. With an index, its word counts: every tensor lies where the index says, in one place;
 * files that it does not name are left alone, with a log line. Without one, two files refuse to start.
 */
#ifndef IO_LOADER_H
#define IO_LOADER_H

#include "engine/io/safetensors.h"
#include "engine/model/checkpoint.h"

#include <stdint.h>

struct loader;

/* Bytes of scratch memory that loader_open wants. */
uint64_t loader_bytes(const struct checkpoint *checkpoint);

/* Maps the files, checks each header, and binds every tensor. Refuses to start (code 4), naming file and tensor, unless
 * files and table match one to one. */
struct loader *loader_open(const struct checkpoint *checkpoint, void *scratch, uint64_t scratch_bytes);

/* The data of tensor `index` (bind.h numbers them), in the file's type. Valid until loader_close. */
const void *loader_tensor(const struct loader *loader, uint32_t index, enum tensor_type *type);

/* Bytes of all bound tensors in the files. */
uint64_t loader_file_bytes(const struct loader *loader);

/* Gives the files back. */
void loader_close(struct loader *loader);

#endif
