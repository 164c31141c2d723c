/* fuzz_safetensors.c - any bytes as a safetensors file. */
#include <stdlib.h>

#include "formats/weights/safetensors.h"
#include "fuzz_file.h"

/* What opened must be consistent: reads inside entries work, names find themselves. */
static void look(struct safetensors *file)
{
    uint8_t digest[32], byte;
    for (int i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_entry *entry = safetensors_at(file, i);
        if (safetensors_find(file, entry->name) != entry)
            abort();
        if (entry->bytes && safetensors_read(file, entry, entry->bytes - 1, &byte, 1, NULL) != PLIM_OK)
            abort();
    }
    safetensors_metadata(file, "format");
    if (safetensors_digest(digest, file, 0, NULL) != PLIM_OK)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    struct fuzz_file file;
    struct safetensors *tensors;
    if (!fuzz_file_open(&file, data, bytes))
        return 0;
    if (budget_make(&budget, bytes + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK) {
        plim_status status = safetensors_open(&tensors, budget, file.path, NULL);
        if (status == PLIM_OK) {
            look(tensors);
            safetensors_close(tensors);
        }
        fuzz_budget_free(budget, bytes, status);
    }
    fuzz_file_close(&file);
    return 0;
}
