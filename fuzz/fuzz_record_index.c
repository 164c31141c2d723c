/* fuzz_record_index.c - any bytes as the index of a TFRecord file. Its checksums are put right first: what is
   behind them is what a hostile file would reach. */
#include <stdlib.h>

#include "formats/records/record_index_file.h"
#include "fuzz_file.h"

#define DATA_BYTES 4096

static void put_crc(uint8_t *to, const uint8_t *from, size_t bytes)
{
    uint32_t crc = crc32c(0, from, bytes);
    memcpy(to, &crc, sizeof crc);
}

/* The checksums of the residuals of an entry, as far as they lie in the file. */
static void mend_entry(uint8_t *entry, const uint8_t *file, size_t bytes, uint64_t records)
{
    struct index_entry values;
    memcpy(&values, entry, sizeof values);
    uint64_t residuals = (records + 1) * (values.width & 15);
    if (values.width <= INDEX_RESIDUAL_MOST && values.place <= bytes && residuals <= bytes - values.place)
        put_crc(entry + 28, file + values.place, residuals);
}

static void mend(uint8_t *file, size_t bytes, uint32_t samples)
{
    uint64_t count, directory, at, data_bytes = DATA_BYTES;
    if (bytes < INDEX_HEADER_BYTES)
        return;
    memcpy(file, INDEX_MAGIC, 8);
    memcpy(file + 12, &samples, 4);
    memcpy(file + 24, &data_bytes, 8);
    memcpy(&count, file + 16, 8);
    memcpy(&directory, file + 32, 8);
    if (count && count <= INDEX_BLOCK_RECORDS && directory <= bytes && bytes - directory == INDEX_DIRECTORY_BYTES) {
        uint8_t *line = file + directory;
        memcpy(&at, line, 8);
        if (at <= directory && directory - at >= INDEX_ENTRY_BYTES) {
            mend_entry(file + at, file, directory, count);
            put_crc(line + 8, file + at, INDEX_ENTRY_BYTES);
        }
        put_crc(line + 12, line, 12);
    }
    put_crc(file + INDEX_HEADER_BYTES - 4, file, INDEX_HEADER_BYTES - 4);
}

static plim_status find_some(struct budget *budget, const char *data_path, const char *path)
{
    struct record_index *index;
    uint64_t at, bytes;
    plim_status status = PLIM_OK;
    TRY(record_index_open(&index, budget, data_path, path, 2, NULL));
    int64_t count = record_index_count(index);
    for (int64_t i = 0; i < count && status == PLIM_OK; i++) {
        status = record_index_find(&at, &bytes, index, i, NULL);
        if (status == PLIM_OK && (at > DATA_BYTES || bytes > DATA_BYTES - at))
            abort();
    }
    record_index_close(index);
    return status;
}

static plim_status try_index(struct budget *budget, const char *data_path, const uint8_t *input, size_t bytes)
{
    struct file *data;
    struct fuzz_file index;
    uint32_t samples = 0;
    uint8_t *copy = malloc(bytes + 1);
    if (!copy)
        return PLIM_OK;
    memcpy(copy, input, bytes);
    plim_status status = file_open(&data, budget, data_path, FILE_READ, NULL);
    if (status == PLIM_OK) {
        status = index_samples(&samples, data, DATA_BYTES, NULL);
        file_close(data);
    }
    mend(copy, bytes, samples);
    if (status == PLIM_OK && fuzz_file_open(&index, copy, bytes)) {
        status = find_some(budget, data_path, index.path);
        fuzz_file_close(&index);
    }
    free(copy);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const uint8_t zeros[DATA_BYTES];
    struct budget *budget;
    struct fuzz_file file;
    if (!fuzz_file_open(&file, zeros, sizeof zeros))
        return 0;
    if (budget_make(&budget, bytes + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK)
        fuzz_budget_free(budget, bytes, try_index(budget, file.path, data, bytes));
    fuzz_file_close(&file);
    return 0;
}
