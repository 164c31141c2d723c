/* rows.c - rows of equal size in a file, read by number straight into place. */
#include "formats/rows.h"

#include <string.h>

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

plim_status rows_read(const struct rows *rows, const int64_t *index, int64_t count, void *to, uint64_t stride,
                      plim_error *error)
{
    for (int64_t i = 0; i < count;) {
        int64_t run = stride == rows->row_bytes ? run_length(index + i, count - i) : 1;
        uint64_t bytes = (uint64_t)run * rows->row_bytes;
        char *place_to = (char *)to + (uint64_t)i * stride;
        TRY(file_read(rows->file, rows->at + (uint64_t)index[i] * rows->row_bytes, place_to, bytes, error));
        swap_elements(place_to, bytes, rows->swap);
        i += run;
    }
    return PLIM_OK;
}

/* Rows too large for the buffer: each part is a read of its own. */
static plim_status read_large_row(const struct rows *rows, const struct row_part *part, int part_count, int64_t index,
                                  int64_t i, void *const *to, const uint64_t *stride, plim_error *error)
{
    uint64_t at = rows->at + (uint64_t)index * rows->row_bytes;
    for (int p = 0; p < part_count; p++) {
        char *place_to = (char *)to[p] + (uint64_t)i * stride[p];
        TRY(file_read(rows->file, at + part[p].offset, place_to, part[p].bytes, error));
        swap_elements(place_to, part[p].bytes, rows->swap);
    }
    return PLIM_OK;
}

static void split_row(const char *row, const struct row_part *part, int part_count, int64_t i, void *const *to,
                      const uint64_t *stride)
{
    for (int p = 0; p < part_count; p++)
        memcpy((char *)to[p] + (uint64_t)i * stride[p], row + part[p].offset, part[p].bytes);
}

plim_status rows_read_parts(const struct rows *rows, const struct row_part *part, int part_count, const int64_t *index,
                            int64_t count, void *const *to, const uint64_t *stride, plim_error *error)
{
    char buffer[PART_BUFFER_BYTES];
    int64_t most = (int64_t)(PART_BUFFER_BYTES / rows->row_bytes);
    if (most == 0) {
        for (int64_t i = 0; i < count; i++)
            TRY(read_large_row(rows, part, part_count, index[i], i, to, stride, error));
        return PLIM_OK;
    }
    for (int64_t i = 0; i < count;) {
        int64_t run = run_length(index + i, count - i < most ? count - i : most);
        uint64_t bytes = (uint64_t)run * rows->row_bytes;
        TRY(file_read(rows->file, rows->at + (uint64_t)index[i] * rows->row_bytes, buffer, bytes, error));
        swap_elements(buffer, bytes, rows->swap);
        for (int64_t r = 0; r < run; r++)
            split_row(buffer + (uint64_t)r * rows->row_bytes, part, part_count, i + r, to, stride);
        i += run;
    }
    return PLIM_OK;
}
