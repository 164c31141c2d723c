/* fuzz_snapshot.c - any bytes as a snapshot whose values are the same bytes. */
#include "formats/records/snapshot.h"
#include "fuzz_file.h"

#define ROOM_BYTES ((size_t)256 * 1024)
#define ROW_BYTES  ((size_t)64 * 1024)

static plim_status read_some(struct snapshot *snapshot, uint8_t *memory)
{
    const struct spec *spec = &snapshot_head(snapshot)->spec;
    int64_t count = snapshot_head(snapshot)->count, done;
    int64_t index[2] = {0, count - 1};
    void *to[MOST_COLUMNS];
    uint64_t stride[MOST_COLUMNS], at = 0;
    struct value_buffer values;
    value_buffer_init(&values, memory, ROOM_BYTES);
    for (int c = 0; c < spec->column_count; c++) {
        to[c] = memory + ROOM_BYTES + at;
        stride[c] = spec->column[c].bytes;
        at += stride[c] > ROW_BYTES ? ROW_BYTES : stride[c] * 2;
    }
    if (count < 1 || spec->element_bytes * 2 > ROW_BYTES)
        return PLIM_OK;
    const struct row_target target = {.to = to, .stride = stride, .values = &values};
    return snapshot_read(&done, snapshot, index, 2, &target, NULL);
}

static void put_file(const char *path, const uint8_t *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes)
        abort();
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static _Alignas(64) uint8_t memory[ROOM_BYTES + 2 * ROW_BYTES];
    char folder[] = "snapshot-XXXXXX", path[64], values[64];
    struct budget *budget;
    struct snapshot *snapshot;
    if (!mkdtemp(folder))
        return 0;
    snprintf(path, sizeof path, "%s/s", folder);
    snprintf(values, sizeof values, "%s/s.values", folder);
    put_file(path, data, bytes);
    put_file(values, data, bytes);
    if (budget_make(&budget, bytes + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK) {
        plim_status status = snapshot_open(&snapshot, budget, path, NULL);
        if (status == PLIM_OK) {
            status = read_some(snapshot, memory);
            snapshot_close(snapshot);
        }
        fuzz_budget_free(budget, bytes, status);
    }
    unlink(path);
    unlink(values);
    rmdir(folder);
    return 0;
}
