/* sink_tar.c - elements into a tar file as WebDataset reads it: KEY.COLUMN for strings, KEY.COLUMN.npy for numbers.

   KEY is the number of the element. A whole number in a column named "cls" is text, as everybody writes labels. */
#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/files/partial_file.h"
#include "job/data/data_sink.h"
#include "pipeline/core/chunk.h"

#define BLOCK_BYTES 512

struct sink {
    struct budget *budget;
    struct spec spec;
    int64_t count;
    struct partial_file file;
};

static uint64_t tar_cost(const struct sink_plan *plan)
{
    (void)plan;
    return sizeof(struct sink) + 8192 + PARTIAL_FILE_BYTES;
}

static void tar_sink_close(struct sink *sink)
{
    partial_abandon(&sink->file);
    budget_give(sink->budget, TAG_FORMATS, sink, sizeof *sink);
}

static plim_status tar_sink_open(struct sink **out, struct budget *budget, const char *path,
                                 const struct sink_plan *plan, plim_error *error)
{
    char head[NPY_HEAD_BYTES];
    for (int c = 0; c < plan->spec->column_count; c++) {
        const struct column *column = &plan->spec->column[c];
        bool fits =
            column->type == TYPE_STRING ? column->shape.rank == 0 : npy_head(head, column->type, &column->shape, -1);
        if (!fits)
            return fail(error, PLIM_UNSUPPORTED, "tar: column '%s' is no string and no array that npy has",
                        column->name);
    }
    struct sink *sink;
    TRY(budget_alloc(&sink, budget, TAG_FORMATS, sizeof *sink, error));
    sink->budget = budget;
    sink->spec = *plan->spec;
    plim_status status = partial_open(&sink->file, budget, path, error);
    if (status == PLIM_OK)
        *out = sink;
    else
        budget_give(budget, TAG_FORMATS, sink, sizeof *sink);
    return status;
}

/* ---- members ---- */

static void octal(uint8_t *field, int digits, uint64_t value)
{
    for (int i = digits - 1; i >= 0; i--, value >>= 3)
        field[i] = (uint8_t)('0' + (value & 7));
}

/* ustar; sizes of 8 GiB and more as a binary number, as GNU tar has it. */
static plim_status put_header(struct sink *sink, const char *name, uint64_t bytes, plim_error *error)
{
    uint8_t block[BLOCK_BYTES] = {0};
    unsigned sum = 0;
    memcpy(block, name, strnlen(name, 100));
    memcpy(block + 100,
           "0000644\0"
           "0000000\0"
           "0000000\0",
           24);
    memcpy(block + 136, "00000000000", 12); /* no time of day: the same data make the same file */
    memcpy(block + 148, "        ", 8);
    block[156] = '0';
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    if (bytes >> 33) {
        block[124] = 0x80;
        for (int i = 0; i < 8; i++)
            block[135 - i] = (uint8_t)(bytes >> (8 * i));
    } else {
        octal(block + 124, 11, bytes);
    }
    for (int i = 0; i < BLOCK_BYTES; i++)
        sum += block[i];
    octal(block + 148, 6, sum);
    block[154] = 0;
    return partial_put(&sink->file, block, sizeof block, error);
}

static plim_status put_member(struct sink *sink, const char *name, const void *head, uint64_t head_bytes,
                              const struct string *data, plim_error *error)
{
    static const uint8_t zeros[BLOCK_BYTES];
    uint64_t bytes = head_bytes + data->bytes;
    TRY(put_header(sink, name, bytes, error));
    TRY(partial_put(&sink->file, head, head_bytes, error));
    TRY(partial_put(&sink->file, data->data, data->bytes, error));
    return partial_put(&sink->file, zeros, -bytes % BLOCK_BYTES, error);
}

static bool is_whole(enum type type)
{
    return type != TYPE_STRING && !type_is_float(type);
}

static plim_status put_column(struct sink *sink, const struct column *column, const void *row, plim_error *error)
{
    char name[128], head[NPY_HEAD_BYTES], number[32];
    bool text = column->type == TYPE_STRING, label = strcmp(column->name, "cls") == 0;
    int length =
        snprintf(name, sizeof name, "%09lld.%s%s", (long long)sink->count, column->name, text || label ? "" : ".npy");
    if (length > 100)
        return fail(error, PLIM_UNSUPPORTED, "tar: the name of column '%s' is too long", column->name);
    if (text)
        return put_member(sink, name, "", 0, row, error);
    if (label && is_whole(column->type) && column->shape.rank == 0) {
        int digits = snprintf(number, sizeof number, "%lld", (long long)element_get(row, column->type, 0));
        return put_member(sink, name, "", 0, &(struct string){(const uint8_t *)number, (uint64_t)digits}, error);
    }
    struct shape shape = value_shape(column, row);
    const void *data = column_is_variable(column) ? ((const struct cell *)row)->data : row;
    npy_head(head, column->type, &shape, -1);
    uint64_t bytes = (uint64_t)value_count(column, row) * type_bytes(column->type);
    return put_member(sink, name, head, sizeof head, &(struct string){data, bytes}, error);
}

static plim_status tar_add(struct sink *sink, void *const *row, plim_error *error)
{
    for (int c = 0; c < sink->spec.column_count; c++)
        TRY(put_column(sink, &sink->spec.column[c], row[c], error));
    sink->count++;
    return PLIM_OK;
}

static plim_status tar_finish(struct sink *sink, plim_error *error)
{
    static const uint8_t end[2 * BLOCK_BYTES];
    TRY(partial_put(&sink->file, end, sizeof end, error));
    return partial_commit(&sink->file, error);
}

const struct sink_type sink_tar = {
    .suffixes = {".tar"},
    .cost = tar_cost,
    .open = tar_sink_open,
    .add = tar_add,
    .finish = tar_finish,
    .close = tar_sink_close,
};
