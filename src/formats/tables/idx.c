/* idx.c - IDX files (MNIST's format), plain or gzip.

   00 00, type, number of axes, then a u32 an axis and the data, all big-endian.
   Invariants: 1. a plain file has exactly the bytes that its header declares;
   2. a packed one is unpacked into a scratch file that has exactly those. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "formats/containers/gzip.h"
#include "formats/files/cursor.h"
#include "formats/files/scratch_file.h"
#include "formats/tables/rows.h"

#define HEAD_MOST          (4 + 4 * MOST_AXES)
#define PEEK_BUFFER_BYTES  ((size_t)1024)
#define INPUT_BUFFER_BYTES ((size_t)32 * 1024)

struct idx_header {
    enum type type;
    int rank;
    uint32_t dim[MOST_AXES];
    uint64_t row_bytes, total_bytes; /* total: with the header */
};

struct idx_file {
    struct rows rows; /* of the scratch file, once unpacked */
    uint64_t total_bytes;
    bool packed;
    char *path; /* of the file as it was given: the scratch file has none */
    size_t path_bytes;
};

struct idx_source {
    struct source base;
    int file_count;
    struct idx_file file[MOST_COLUMNS];
};

static bool type_from_code(enum type *out, uint8_t code)
{
    static const struct {
        uint8_t code;
        enum type type;
    } codes[] = {{0x08, TYPE_U8},  {0x09, TYPE_I8},  {0x0b, TYPE_I16},
                 {0x0c, TYPE_I32}, {0x0d, TYPE_F32}, {0x0e, TYPE_F64}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code) {
            *out = codes[i].type;
            return true;
        }
    return false;
}

static plim_status parse_dims(struct idx_header *header, struct cursor *cursor, plim_error *error)
{
    uint64_t row = type_bytes(header->type);
    bool fits = true;
    for (int i = 0; i < header->rank; i++) {
        if (!cursor_u32_be(&header->dim[i], cursor))
            return cursor_fail(cursor, error, "the file ends inside its header");
        if (header->dim[i] == 0) {
            cursor->at -= 4;
            return cursor_fail(cursor, error, "axis %d has length 0: the file holds no elements", i);
        }
        if (i > 0)
            fits = fits && mul_u64(&row, row, header->dim[i]);
    }
    uint64_t total;
    if (!fits || !mul_u64(&total, row, header->dim[0]) || !add_u64(&total, total, cursor->at))
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, 4, "the declared axes give more bytes than any file has");
    header->row_bytes = row;
    header->total_bytes = total;
    return PLIM_OK;
}

static plim_status parse_header(struct idx_header *header, struct cursor *cursor, plim_error *error)
{
    uint8_t code, rank;
    if (cursor_left(cursor) < 4)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, cursor->bytes, "the file ends inside its header");
    if (cursor->data[0] || cursor->data[1])
        return cursor_fail(cursor, error, "not an IDX file: it begins with %02x %02x", cursor->data[0],
                           cursor->data[1]);
    cursor->at = 2;
    if (!cursor_u8(&code, cursor) || !type_from_code(&header->type, code))
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, 2, "no IDX element type has the code %02x", code);
    if (!cursor_u8(&rank, cursor) || rank == 0)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, 3, "the file has no axes");
    if (rank > MOST_AXES)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, 3, "%d axes: at most %d are supported", rank, MOST_AXES);
    header->rank = rank;
    return parse_dims(header, cursor, error);
}

/* The header's bytes, unpacked if need be. */
static plim_status read_head(uint8_t head[HEAD_MOST], size_t *got, bool *packed, struct idx_file *file,
                             struct budget *budget, plim_error *error)
{
    struct gzip *gzip;
    TRY(file_read_some(got, file->rows.file, 0, head, HEAD_MOST, error));
    *packed = *got >= 2 && head[0] == 0x1f && head[1] == 0x8b;
    if (!*packed)
        return PLIM_OK;
    TRY(gzip_open(&gzip, budget, file->rows.file, PEEK_BUFFER_BYTES, HEAD_MOST, error));
    /* The cap is at what is read here: a longer file is no error yet. */
    plim_status status = gzip_read(got, gzip, head, HEAD_MOST, error);
    gzip_close(gzip);
    return status;
}

/* Declared bytes against bytes present. */
static plim_status check_size(const struct idx_header *header, struct idx_file *file, plim_error *error)
{
    uint64_t present, most;
    const char *path = file_path(file->rows.file);
    unsigned long long declared = header->total_bytes;
    TRY(file_size(&present, file->rows.file, error));
    if (file->packed) {
        if (mul_u64(&most, present, GZIP_MOST_RATIO) && header->total_bytes > most)
            return fail_byte(error, PLIM_BAD_DATA, path, present,
                             "declares %llu bytes, more than %llu bytes of gzip can hold", declared,
                             (unsigned long long)present);
    } else if (present < header->total_bytes) {
        return fail_byte(error, PLIM_BAD_DATA, path, present, "the file ends here; its header declares %llu bytes",
                         declared);
    } else if (present > header->total_bytes) {
        return fail_byte(error, PLIM_BAD_DATA, path, header->total_bytes, "%llu bytes more than the header declares",
                         (unsigned long long)(present - header->total_bytes));
    }
    return PLIM_OK;
}

/* The shape of an element: all axes but the first; images get a channel. */
static struct shape element_shape(const struct idx_header *header)
{
    struct shape shape = {.rank = header->rank - 1};
    for (int i = 1; i < header->rank; i++)
        shape.dim[i - 1] = header->dim[i];
    if (header->rank == 3 && header->type == TYPE_U8)
        shape.dim[shape.rank++] = 1;
    return shape;
}

static plim_status check_count(struct idx_source *idx, const struct idx_header *header, plim_error *error)
{
    const char *path = file_path(idx->file[idx->file_count - 1].rows.file);
    if (idx->file_count == 1)
        idx->base.count = header->dim[0];
    if (idx->base.count != header->dim[0])
        return fail_byte(error, PLIM_BAD_DATA, path, 4, "%lld elements, but %s has %lld", (long long)header->dim[0],
                         file_path(idx->file[0].rows.file), (long long)idx->base.count);
    return PLIM_OK;
}

static plim_status add_file(struct idx_source *idx, const char *path, plim_error *error)
{
    struct idx_file *file = &idx->file[idx->file_count];
    uint8_t head[HEAD_MOST];
    size_t got;
    struct cursor cursor;
    struct idx_header header = {0};
    TRY(file_open(&file->rows.file, idx->base.budget, path, FILE_READ, error));
    idx->file_count++;
    file->path_bytes = strlen(path) + 1;
    file->path = budget_take(idx->base.budget, TAG_FORMATS, file->path_bytes);
    if (!file->path)
        return budget_refused(idx->base.budget, TAG_FORMATS, file->path_bytes, error);
    memcpy(file->path, path, file->path_bytes);
    TRY(read_head(head, &got, &file->packed, file, idx->base.budget, error));
    cursor_init(&cursor, head, got, path, 0);
    TRY(parse_header(&header, &cursor, error));
    TRY(check_size(&header, file, error));
    TRY(check_count(idx, &header, error));
    struct shape shape = element_shape(&header);
    TRY(spec_add(&idx->base.spec, NULL, header.type, &shape, error));
    file->total_bytes = header.total_bytes;
    file->rows.at = cursor.at;
    file->rows.row_bytes = header.row_bytes;
    file->rows.swap = (uint32_t)type_bytes(header.type);
    if (file->packed) {
        idx->base.start_bytes = GZIP_STATE_BYTES + INPUT_BUFFER_BYTES + SCRATCH_BUFFER_BYTES +
                                SCRATCH_FILE_BYTES * (uint64_t)idx->file_count;
        idx->base.scratch_bytes += header.total_bytes;
    } else {
        file_expect_random(file->rows.file);
    }
    return PLIM_OK;
}

/* ---- start: unpacking ------------------------------------------------ */

static plim_status read_packed(size_t *got, void *context, void *to, size_t bytes, plim_error *error)
{
    return gzip_read(got, context, to, bytes, error);
}

static plim_status unpack_to(struct file *to, const struct idx_file *file, struct budget *budget, plim_error *error)
{
    struct gzip *gzip;
    uint64_t written = 0;
    TRY(gzip_open(&gzip, budget, file->rows.file, INPUT_BUFFER_BYTES, file->total_bytes, error));
    plim_status status = scratch_fill(&written, to, 0, budget, read_packed, gzip, error);
    if (status == PLIM_OK && written < file->total_bytes)
        status = fail_byte(error, PLIM_BAD_DATA, file_path(file->rows.file), gzip_at(gzip),
                           "unpacks to %llu bytes; its header declares %llu", (unsigned long long)written,
                           (unsigned long long)file->total_bytes);
    gzip_close(gzip);
    return status;
}

static plim_status unpack(struct idx_file *file, struct budget *budget, struct scratch *scratch, plim_error *error)
{
    struct file *to;
    TRY(scratch_open(&to, budget, scratch, file->total_bytes, file_path(file->rows.file), error));
    plim_status status = unpack_to(to, file, budget, error);
    if (status != PLIM_OK) {
        scratch_give(scratch, file->total_bytes);
        file_close(to);
        return status;
    }
    file_expect_random(to);
    file_close(file->rows.file);
    file->rows.file = to;
    file->packed = false;
    return PLIM_OK;
}

static plim_status idx_start(struct source *source, struct scratch *scratch, plim_error *error)
{
    struct idx_source *idx = (struct idx_source *)source;
    for (int i = 0; i < idx->file_count; i++)
        if (idx->file[i].packed)
            TRY(unpack(&idx->file[i], source->budget, scratch, error));
    return PLIM_OK;
}

/* ---- reading ---------------------------------------------------------- */

static plim_status idx_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                            const uint64_t *stride, plim_error *error)
{
    struct idx_source *idx = (struct idx_source *)source;
    TRY(source_check(source, index, count, error));
    for (int i = 0; i < idx->file_count; i++) {
        if (idx->file[i].packed)
            return fail(error, PLIM_INTERNAL, "idx source: read before start");
        TRY(rows_read(&idx->file[i].rows, index, count, to[i], stride[i], error));
    }
    source_count_read(source, (uint64_t)count * source->spec.element_bytes);
    return PLIM_OK;
}

static void idx_expect(struct source *source, int64_t first, int64_t count)
{
    struct idx_source *idx = (struct idx_source *)source;
    for (int i = 0; i < idx->file_count; i++)
        if (!idx->file[i].packed)
            rows_expect(&idx->file[i].rows, first, count);
}

static bool idx_waits(const struct source *source)
{
    const struct idx_source *idx = (const struct idx_source *)source;
    for (int i = 0; i < idx->file_count; i++)
        if (!idx->file[i].packed && file_waits(idx->file[i].rows.file))
            return true;
    return false;
}

static bool idx_layout(struct row_layout *out, const struct source *source)
{
    const struct idx_source *idx = (const struct idx_source *)source;
    out->part_count = idx->file_count;
    for (int i = 0; i < idx->file_count; i++) {
        out->part[i] = rows_layout(&idx->file[i].rows);
        out->column[i] = (struct layout_column){.part = i};
    }
    return true;
}

/* Bytes of a packed file are those of what it unpacks to. */
static bool idx_describe(char out[256], const struct source *source, int64_t index, const char *column)
{
    const struct idx_source *idx = (const struct idx_source *)source;
    int file = idx->file_count == 1 ? 0 : column ? spec_find(&source->spec, column) : -1;
    if (file < 0)
        return false;
    const struct idx_file *found = &idx->file[file];
    source_place(out, found->path, index, found->rows.at + (uint64_t)index * found->rows.row_bytes);
    return true;
}

static int64_t idx_file_count(const struct source *source)
{
    return ((const struct idx_source *)source)->file_count;
}

static void idx_file_path(char out[4096], const struct source *source, int64_t file)
{
    snprintf(out, 4096, "%s", ((const struct idx_source *)source)->file[file].path);
}

static void idx_close(struct source *source)
{
    struct idx_source *idx = (struct idx_source *)source;
    for (int i = 0; i < idx->file_count; i++) {
        file_close(idx->file[i].rows.file);
        budget_give(source->budget, TAG_FORMATS, idx->file[i].path, idx->file[i].path_bytes);
    }
    budget_give(source->budget, TAG_FORMATS, idx, sizeof *idx);
}

static const struct source_type idx_type = {.name = "idx",
                                            .start = idx_start,
                                            .read = idx_read,
                                            .expect = idx_expect,
                                            .waits = idx_waits,
                                            .layout = idx_layout,
                                            .describe = idx_describe,
                                            .file_count = idx_file_count,
                                            .file_path = idx_file_path,
                                            .close = idx_close};

plim_status idx_open(struct source **out, struct budget *budget, const char *const *paths, int count, plim_error *error)
{
    if (count < 1 || count > MOST_COLUMNS)
        return fail(error, PLIM_BAD_JOB, "idx: %d files: 1 to %d are possible", count, MOST_COLUMNS);
    struct idx_source *idx = budget_take(budget, TAG_FORMATS, sizeof *idx);
    if (!idx)
        return budget_refused(budget, TAG_FORMATS, sizeof *idx, error);
    idx->base.type = &idx_type;
    idx->base.budget = budget;
    plim_status status = PLIM_OK;
    for (int i = 0; i < count && status == PLIM_OK; i++)
        status = add_file(idx, paths[i], error);
    if (status != PLIM_OK) {
        source_close(&idx->base);
        return status;
    }
    *out = &idx->base;
    return PLIM_OK;
}
