/* rows.c - rows of equal size in a file, read by number straight into place. */
#include "formats/tables/rows.h"

#include <string.h>

#include "base/numbers/minmax.h"

/* Rows that are cut into parts go through a buffer on the stack: small
   enough for a thread's stack, large enough for tens of small rows. */
#define PART_BUFFER_BYTES 16384

#define SWAP_LOOP(bits)                                                                                                \
    for (uint64_t i = 0; i + bits / 8 <= bytes; i += bits / 8) {                                                       \
        uint##bits##_t value;                                                                                          \
        memcpy(&value, (char *)data + i, sizeof value);                                                                \
        value = __builtin_bswap##bits(value);                                                                          \
        memcpy((char *)data + i, &value, sizeof value);                                                                \
    }

void swap_elements(void *data, uint64_t bytes, uint32_t size)
{
    if (size == 2) {
        SWAP_LOOP(16)
    } else if (size == 4) {
        SWAP_LOOP(32)
    } else if (size == 8) {
        SWAP_LOOP(64)
    }
}

int64_t run_length(const int64_t *index, int64_t count)
{
    int64_t run = 1;
    while (run < count && index[run] == index[0] + run)
        run++;
    return run;
}

/* ---- what has to be waited for ---- */

#define MOST_LATE 512 /* runs of a call whose data is not in memory: asked for together, then waited for */

struct late {
    int count;
    struct late_run {
        int64_t first, rows;
    } run[MOST_LATE];
};

/* Reads the run if it is in memory; else the disk may begin, and it is read when all others have been asked for.
   A single run is simply read: the caller does so for those that are left over, too. */
static bool put_off(struct late *late, const struct rows *rows, const int64_t *index, int64_t first, int64_t run,
                    int64_t count)
{
    if (run == count || late->count == MOST_LATE)
        return false;
    if (first && index[first] != index[first - 1] + 1)
        file_expect_random(rows->file); /* rows in order are better off with the system's own reading ahead */
    file_will_need(rows->file, rows->at + (uint64_t)index[first] * rows->row_bytes, (uint64_t)run * rows->row_bytes);
    late->run[late->count++] = (struct late_run){.first = first, .rows = run};
    return true;
}

/* Where rows go: straight to to[0], or, where they are cut into parts, through a buffer. */
struct destination {
    void *const *to;
    const uint64_t *stride;
    const struct row_part *part;
    int part_count;
    char *buffer; /* NULL: they are not cut */
};

static char *place_of(const struct destination *where, int64_t i)
{
    return where->buffer ? where->buffer : (char *)where->to[0] + (uint64_t)i * where->stride[0];
}

/* Rows i..i + run of the call have been read to place_of(i). */
static void arrived(const struct destination *where, const struct rows *rows, int64_t i, int64_t run)
{
    const char *row = place_of(where, i);
    swap_elements(place_of(where, i), (uint64_t)run * rows->row_bytes, rows->swap);
    for (int64_t r = 0; r < run && where->buffer; r++, row += rows->row_bytes)
        for (int p = 0; p < where->part_count; p++)
            memcpy((char *)where->to[p] + (uint64_t)(i + r) * where->stride[p], row + where->part[p].offset,
                   where->part[p].bytes);
}

/* Runs of at most `most` rows. */
static plim_status read_runs(const struct rows *rows, const int64_t *index, int64_t count, int64_t most,
                             const struct destination *where, plim_error *error)
{
    struct late late = {.count = 0};
    for (int64_t i = 0, run; i < count; i += run) {
        run = run_length(index + i, min_i64(count - i, most));
        uint64_t bytes = (uint64_t)run * rows->row_bytes, at = rows->at + (uint64_t)index[i] * rows->row_bytes;
        if (!file_read_ready(rows->file, at, place_of(where, i), bytes)) {
            if (put_off(&late, rows, index, i, run, count))
                continue;
            TRY(file_read(rows->file, at, place_of(where, i), bytes, error));
        }
        arrived(where, rows, i, run);
    }
    for (int r = 0; r < late.count; r++) {
        int64_t first = late.run[r].first, run = late.run[r].rows;
        uint64_t at = rows->at + (uint64_t)index[first] * rows->row_bytes;
        TRY(file_read(rows->file, at, place_of(where, first), (uint64_t)run * rows->row_bytes, error));
        arrived(where, rows, first, run);
    }
    return PLIM_OK;
}

plim_status rows_read(const struct rows *rows, const int64_t *index, int64_t count, void *to, uint64_t stride,
                      plim_error *error)
{
    const struct destination where = {.to = &to, .stride = &stride};
    return read_runs(rows, index, count, stride == rows->row_bytes ? count : 1, &where, error);
}

void rows_expect(const struct rows *rows, int64_t first, int64_t count)
{
    file_will_need(rows->file, rows->at + (uint64_t)first * rows->row_bytes, (uint64_t)count * rows->row_bytes);
}

struct layout_part rows_layout(const struct rows *rows)
{
    return (struct layout_part){rows->file, rows->at, rows->row_bytes, rows->swap};
}

/* ---- rows cut into parts ---- */

/* Rows too large for the buffer: each part is a read of its own. */
static plim_status read_large_row(const struct cut_rows *cut, int64_t index, int64_t i, void *const *to,
                                  const uint64_t *stride, plim_error *error)
{
    const struct rows *rows = cut->rows;
    uint64_t at = rows->at + (uint64_t)index * rows->row_bytes;
    for (int p = 0; p < cut->part_count; p++) {
        const struct row_part *part = &cut->part[p];
        char *place_to = (char *)to[p] + (uint64_t)i * stride[p];
        TRY(file_read(rows->file, at + part->offset, place_to, part->bytes, error));
        swap_elements(place_to, part->bytes, rows->swap);
    }
    return PLIM_OK;
}

plim_status rows_read_parts(const struct cut_rows *cut, const int64_t *index, int64_t count, void *const *to,
                            const uint64_t *stride, plim_error *error)
{
    char buffer[PART_BUFFER_BYTES];
    int64_t most = (int64_t)(PART_BUFFER_BYTES / cut->rows->row_bytes);
    const struct destination where = {to, stride, cut->part, cut->part_count, buffer};
    if (most)
        return read_runs(cut->rows, index, count, most, &where, error);
    for (int64_t i = 0; i < count; i++)
        TRY(read_large_row(cut, index[i], i, to, stride, error));
    return PLIM_OK;
}
