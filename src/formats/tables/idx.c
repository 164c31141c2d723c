/* idx.c - IDX files (MNIST's format), plain or gzip.

   00 00, type, number of axes, then a u32 an axis and the data, all big-endian.
   Invariants: 1. a plain file has exactly the bytes that its header declares;
   2. a packed one is unpacked into a scratch file that has exactly those. */
#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "formats/containers/gzip.h"
#include "formats/files/cursor.h"
#include "formats/files/scratch_file.h"
#include "formats/tables/array_source.h"

#define HEAD_MOST          (4 + 4 * MOST_AXES)
#define PEEK_BUFFER_BYTES  ((size_t)1024)
#define INPUT_BUFFER_BYTES ((size_t)32 * 1024)

struct idx_source {
    struct array_source arrays;
    uint64_t unpacked_bytes[MOST_COLUMNS]; /* of a packed file, its header included */
};

static bool type_from_code(enum type *out, uint8_t code)
{
    static const struct {
        uint8_t code;
        enum type type;
    } codes[] = {{0x08, TYPE_U8},  {0x09, TYPE_I8},  {0x0b, TYPE_I16},
                 {0x0c, TYPE_I32}, {0x0d, TYPE_F32}, {0x0e, TYPE_F64}};
    for (size_t i = 0; i < COUNT(codes); i++)
        if (codes[i].code == code) {
            *out = codes[i].type;
            return true;
        }
    return false;
}

static uint64_t total_bytes(const struct npy_header *header)
{
    return header->at + header->data_bytes;
}

static plim_status parse_axes(struct npy_header *header, int rank, struct cursor *cursor, plim_error *error)
{
    for (int i = 0; i < rank; i++) {
        uint64_t turned; /* the most significant byte comes first */
        if (!cursor_le(&turned, cursor, 4))
            return cursor_fail(cursor, error, "the file ends inside its header");
        if (turned == 0) {
            cursor->at -= 4;
            return cursor_fail(cursor, error, "axis %d has length 0: the file holds no elements", i);
        }
        header->shape.dim[header->shape.rank++] = __builtin_bswap32((uint32_t)turned);
    }
    header->at = cursor->at;
    if (!shape_bytes(&header->data_bytes, &header->shape, header->type) || header->data_bytes > UINT64_MAX - header->at)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, 4, "the declared axes give more bytes than any file has");
    return PLIM_OK;
}

static plim_status parse_header(struct npy_header *header, struct cursor *cursor, plim_error *error)
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
    header->big_endian = true;
    return parse_axes(header, rank, cursor, error);
}

/* The header's bytes, unpacked if need be. */
static plim_status read_head(uint8_t head[HEAD_MOST], size_t *got, bool *packed, struct file *file,
                             struct budget *budget, plim_error *error)
{
    struct gzip *gzip;
    TRY(file_read_some(got, file, 0, head, HEAD_MOST, error));
    *packed = *got >= 2 && head[0] == 0x1f && head[1] == 0x8b;
    if (!*packed)
        return PLIM_OK;
    TRY(gzip_open(&gzip, budget, file, PEEK_BUFFER_BYTES, HEAD_MOST, error));
    /* The cap is at what is read here: a longer file is no error yet. */
    plim_status status = gzip_read(got, gzip, head, HEAD_MOST, error);
    gzip_close(gzip);
    return status;
}

/* Declared bytes against bytes present. */
static plim_status check_size(const struct npy_header *header, struct file *file, bool packed, plim_error *error)
{
    uint64_t present, most, declared = total_bytes(header);
    const char *path = file_path(file);
    TRY(file_size(&present, file, error));
    if (packed) {
        if (mul_u64(&most, present, GZIP_MOST_RATIO) && declared > most)
            return fail_byte(error, PLIM_BAD_DATA, path, present,
                             "declares %llu bytes, more than %llu bytes of gzip can hold", (unsigned long long)declared,
                             (unsigned long long)present);
    } else if (present < declared) {
        return fail_byte(error, PLIM_BAD_DATA, path, present, "the file ends here; its header declares %llu bytes",
                         (unsigned long long)declared);
    } else if (present > declared) {
        return fail_byte(error, PLIM_BAD_DATA, path, declared, "%llu bytes more than the header declares",
                         (unsigned long long)(present - declared));
    }
    return PLIM_OK;
}

/* All axes but the first; images get a channel. */
static plim_status add_column(struct spec *spec, const struct npy_header *header, plim_error *error)
{
    struct shape shape = shape_of(header->shape.rank - 1, header->shape.dim + 1);
    if (header->shape.rank == 3 && header->type == TYPE_U8)
        shape.dim[shape.rank++] = 1;
    return spec_add(spec, NULL, header->type, &shape, error);
}

static plim_status check_count(struct array_source *arrays, const struct npy_header *header, const char *path,
                               plim_error *error)
{
    struct source *base = &arrays->base;
    if (arrays->part_count == 1)
        base->count = header->shape.dim[0];
    if (base->count != header->shape.dim[0])
        return fail_byte(error, PLIM_BAD_DATA, path, 4, "%lld elements, but %s has %lld",
                         (long long)header->shape.dim[0], file_path(arrays->part[0].origin), (long long)base->count);
    return PLIM_OK;
}

static plim_status add_file(struct idx_source *idx, const char *path, plim_error *error)
{
    struct source *base = &idx->arrays.base;
    struct array_part *part;
    uint8_t head[HEAD_MOST];
    size_t got;
    bool packed;
    struct cursor cursor;
    struct npy_header header = {0};
    TRY(array_source_open_file(&part, &idx->arrays, path, error));
    TRY(read_head(head, &got, &packed, part->origin, base->budget, error));
    cursor_init(&cursor, head, got, path, 0);
    TRY(parse_header(&header, &cursor, error));
    TRY(check_size(&header, part->origin, packed, error));
    TRY(check_count(&idx->arrays, &header, path, error));
    TRY(add_column(&base->spec, &header, error));
    array_part_set(part, packed ? NULL : part->origin, &header);
    if (packed) {
        int count = idx->arrays.part_count;
        idx->unpacked_bytes[count - 1] = total_bytes(&header);
        base->start_bytes =
            GZIP_STATE_BYTES + INPUT_BUFFER_BYTES + SCRATCH_BUFFER_BYTES + SCRATCH_FILE_BYTES * (uint64_t)count;
        base->scratch_bytes += total_bytes(&header);
    } else {
        file_expect_random(part->origin);
    }
    return PLIM_OK;
}

/* ---- start: unpacking ------------------------------------------------ */

static plim_status read_packed(size_t *got, void *context, void *to, size_t bytes, plim_error *error)
{
    return gzip_read(got, context, to, bytes, error);
}

static plim_status unpack_to(struct file *to, struct file *file, uint64_t bytes, struct budget *budget,
                             plim_error *error)
{
    struct gzip *gzip;
    uint64_t written = 0;
    TRY(gzip_open(&gzip, budget, file, INPUT_BUFFER_BYTES, bytes, error));
    const struct scratch_input input = {.more = read_packed, .context = gzip};
    plim_status status = scratch_fill(&written, to, 0, budget, &input, error);
    if (status == PLIM_OK && written < bytes)
        status = fail_byte(error, PLIM_BAD_DATA, file_path(file), gzip_at(gzip),
                           "unpacks to %llu bytes; its header declares %llu", (unsigned long long)written,
                           (unsigned long long)bytes);
    gzip_close(gzip);
    return status;
}

static plim_status unpack(struct array_part *part, uint64_t bytes, struct budget *budget, struct scratch_disk *scratch,
                          plim_error *error)
{
    struct file *to;
    TRY(scratch_open(&to, budget, scratch, bytes, file_path(part->origin), error));
    plim_status status = unpack_to(to, part->origin, bytes, budget, error);
    if (status != PLIM_OK) {
        scratch_disk_give(scratch, bytes);
        file_close(to);
        return status;
    }
    file_expect_random(to);
    part->rows.file = to;
    return PLIM_OK;
}

static plim_status idx_start(struct source *source, struct scratch_disk *scratch, plim_error *error)
{
    struct idx_source *idx = (struct idx_source *)source;
    for (int i = 0; i < idx->arrays.part_count; i++)
        if (!idx->arrays.part[i].rows.file)
            TRY(unpack(&idx->arrays.part[i], idx->unpacked_bytes[i], source->budget, scratch, error));
    return PLIM_OK;
}

static const struct source_type idx_type = {.name = "idx",
                                            .start = idx_start,
                                            .read = array_source_read,
                                            .expect = array_source_expect,
                                            .waits = array_source_waits,
                                            .layout = array_source_layout,
                                            ARRAY_SOURCE_FILES,
                                            .close = array_source_close};

static plim_status fill(struct idx_source *idx, const char *const *paths, int count, plim_error *error)
{
    TRY(array_source_reserve(&idx->arrays, count, error));
    for (int i = 0; i < count; i++)
        TRY(add_file(idx, paths[i], error));
    return PLIM_OK;
}

plim_status idx_open(struct source **out, struct budget *budget, const char *const *paths, int count, plim_error *error)
{
    if (count < 1 || count > MOST_COLUMNS)
        return fail(error, PLIM_BAD_JOB, "idx: %d files: 1 to %d are possible", count, MOST_COLUMNS);
    struct idx_source *idx;
    TRY(source_make(&idx, sizeof *idx, &idx_type, budget, error));
    return source_opened(out, &idx->arrays.base, fill(idx, paths, count, error));
}
