/* fuzz_csv.c - any bytes as a CSV file, and as lines: through buffers of two sizes the same must come out. */
#include <string.h>

#include "base/numbers/hash.h"
#include "formats/tables/csv.h"
#include "formats/tables/lines.h"
#include "fuzz_file.h"

#define SMALL_BUFFER ((size_t)32768) /* no record of an input that is not longer outgrows it */
#define ROWS         4

static plim_status read_records(uint64_t *sum, struct budget *budget, const char *path, size_t buffer, int64_t most,
                                bool header)
{
    static uint8_t memory[1 << 20];
    struct csv_column columns[] = {{.type = TYPE_I32, .whole = 1},
                                   {.type = TYPE_F32, .required = true},
                                   {.type = TYPE_F64},
                                   {.type = TYPE_STRING}};
    struct csv_options options = {
        .columns = columns, .column_count = 4, .na_value = "NA", .header = header, .buffer_bytes = buffer};
    int32_t a[ROWS];
    float b[ROWS];
    double c[ROWS];
    struct string d[ROWS];
    void *to[] = {a, b, c, d};
    uint64_t stride[] = {sizeof *a, sizeof *b, sizeof *c, sizeof *d};
    struct csv *csv;
    struct value_buffer values;
    const struct row_target target = {.to = to, .stride = stride, .values = &values};
    int64_t got = 1;
    TRY(csv_open(&csv, budget, path, &options, NULL));
    for (plim_status status = PLIM_OK; got || status == PLIM_BAD_DATA;) {
        value_buffer_init(&values, memory, sizeof memory);
        got = 0;
        status = csv_read(&got, csv, most, &target, NULL);
        *sum = fnv1a(*sum, &(uint8_t){status == PLIM_BAD_DATA}, status == PLIM_BAD_DATA);
        for (int64_t i = 0; i < got; i++) {
            *sum = fnv1a(fnv1a(fnv1a(*sum, &a[i], 4), &b[i], 4), &c[i], 8);
            *sum = fnv1a(*sum, d[i].data, d[i].bytes);
        }
        if (status != PLIM_OK && status != PLIM_BAD_DATA)
            break;
    }
    csv_close(csv);
    return PLIM_OK;
}

static plim_status read_lines(uint64_t *sum, struct budget *budget, const char *path, size_t buffer)
{
    struct lines *lines;
    struct string out[ROWS];
    int64_t got = 1;
    plim_status status = PLIM_OK;
    TRY(lines_open(&lines, budget, path, COMPRESSION_AUTO, buffer, NULL));
    while (got && status == PLIM_OK) {
        status = lines_read(&got, lines, out, ROWS, NULL, NULL);
        for (int64_t i = 0; status == PLIM_OK && i < got; i++)
            *sum = fnv1a(*sum + 1, out[i].data, out[i].bytes);
    }
    lines_close(lines);
    return status;
}

static plim_status read_it(struct budget *budget, const char *path, bool raw)
{
    uint64_t large = 0, small = 0, lines_large = 0, lines_small = 0;
    enum type types[4];
    struct csv_options options = {.na_value = "NA"};
    const struct csv_probe file = {.budget = budget, .path = path, .options = &options};
    TRY(read_records(&large, budget, path, 0, ROWS, false));
    TRY(read_records(&small, budget, path, SMALL_BUFFER, 1, false));
    TRY(read_lines(&lines_large, budget, path, 0));
    TRY(read_lines(&lines_small, budget, path, SMALL_BUFFER));
    if (raw && (large != small || lines_large != lines_small))
        abort();
    plim_status status = csv_infer(types, 4, 0, &file, NULL);
    return status == PLIM_OK ? read_records(&large, budget, path, 0, ROWS, true) : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    struct fuzz_file file;
    if (bytes > SMALL_BUFFER / 2 || !fuzz_file_open(&file, data, bytes))
        return 0;
    if (budget_make(&budget, bytes + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK)
        fuzz_budget_free(budget, bytes, read_it(budget, file.path, bytes < 2 || (data[0] != 0x1f && data[0] != 'x')));
    fuzz_file_close(&file);
    return 0;
}
