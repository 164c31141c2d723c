/* hdf5_chunks.c - a chunked data set, unpacked chunk by chunk into a file in C order.

   Chunks are found through a B-tree. Each is read whole, its filters are undone from the last to the first, and its
   rows go to where they belong; what lies beyond the data set's edge is left out. Places of chunks that were never
   written stay zero. */
#include <string.h>
#include <zlib.h>

#include "base/numbers/checked.h"
#include "formats/containers/gzip.h"
#include "formats/containers/hdf5_reader.h"
#include "formats/containers/zlib_memory.h"

#define MOST_DEPTH 32
#define DROP_BYTES ((uint64_t)8 * 1024 * 1024)

struct unpacking {
    struct hdf5 *hdf5;
    const struct hdf5_dataset *dataset;
    struct file *to;
    uint64_t at, written;
    size_t capacity;    /* of each buffer */
    uint8_t *buffer[2]; /* what is there, and what is made of it */
    uint64_t chunks;    /* found */
    struct zlib_memory memory;
    z_stream stream;
    bool ready;
};

/* Filters may add a little. */
static size_t capacity_of(const struct hdf5_dataset *dataset)
{
    return (size_t)(dataset->chunk_bytes + dataset->chunk_bytes / 4 + 1024);
}

uint64_t hdf5_unpack_cost(const struct hdf5_dataset *dataset)
{
    return 2 * budget_charge(capacity_of(dataset)) + GZIP_STATE_BYTES;
}

/* ---- filters ---- */

static plim_status damaged(struct unpacking *self, uint64_t at, const char *what, plim_error *error)
{
    return hdf5_bad(self->hdf5, error, at, "a chunk cannot be unpacked: %s", what);
}

/* Sums of 16-bit words, the first byte the higher. */
static uint32_t fletcher32(const uint8_t *data, size_t bytes)
{
    uint32_t low = 0, high = 0;
    for (size_t words = bytes / 2; words;) {
        size_t some = words < 360 ? words : 360; /* the sums stay below 2^32 */
        words -= some;
        for (; some; some--, data += 2) {
            low += (uint32_t)data[0] << 8 | data[1];
            high += low;
        }
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    if (bytes % 2) {
        low += (uint32_t)*data << 8;
        high += low;
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    return high << 16 | low;
}

static plim_status undo_deflate(size_t *bytes, struct unpacking *self, uint64_t at, plim_error *error)
{
    z_stream *stream = &self->stream;
    if (!self->ready) {
        zlib_memory_use(&self->memory, stream);
        if (inflateInit(stream) != Z_OK)
            return budget_refused(self->hdf5->budget, TAG_FORMATS, GZIP_STATE_BYTES, error);
        self->ready = true;
    } else {
        inflateReset(stream);
    }
    stream->next_in = self->buffer[0];
    stream->avail_in = (unsigned)*bytes;
    stream->next_out = self->buffer[1];
    stream->avail_out = (unsigned)self->capacity;
    if (inflate(stream, Z_FINISH) != Z_STREAM_END)
        return damaged(self, at, "its gzip data are damaged, or hold more than a chunk", error);
    *bytes = self->capacity - stream->avail_out;
    return PLIM_OK;
}

/* All first bytes of the elements, then all second ones, ... */
static void undo_shuffle(uint8_t *to, const uint8_t *from, size_t bytes, size_t size)
{
    size_t count = bytes / size;
    for (size_t b = 0; b < size; b++)
        for (size_t i = 0; i < count; i++)
            to[i * size + b] = from[b * count + i];
    memcpy(to + count * size, from + count * size, bytes - count * size);
}

/* buffer[0] holds the result. `mask` has a bit for each filter that this chunk was spared. */
static plim_status undo_filters(size_t bytes, struct unpacking *self, uint64_t mask, uint64_t at, plim_error *error)
{
    const struct hdf5_dataset *dataset = self->dataset;
    for (int i = dataset->filter_count; i-- > 0;) {
        if (mask >> i & 1)
            continue;
        if (dataset->filter[i] == HDF5_FLETCHER32) {
            if (bytes < 4 || fletcher32(self->buffer[0], bytes - 4) != read_le(self->buffer[0] + bytes - 4, 4))
                return damaged(self, at, "its checksum is wrong", error);
            bytes -= 4;
            continue;
        }
        if (dataset->filter[i] == HDF5_DEFLATE)
            TRY(undo_deflate(&bytes, self, at, error));
        else
            undo_shuffle(self->buffer[1], self->buffer[0], bytes, type_bytes(dataset->type));
        uint8_t *made = self->buffer[1];
        self->buffer[1] = self->buffer[0];
        self->buffer[0] = made;
    }
    return bytes == dataset->chunk_bytes ? PLIM_OK : damaged(self, at, "it is not as large as its shape", error);
}

/* ---- rows to their places ---- */

struct box {
    int rank;
    int64_t offset[MOST_AXES], extent[MOST_AXES]; /* in the data set; what lies inside of it */
};

/* From this axis on the chunk's elements follow one another in the data set, too. */
static int packed_from(const struct hdf5_dataset *dataset)
{
    int axis = dataset->shape.rank - 1;
    while (axis > 0 && dataset->chunk[axis] == dataset->shape.dim[axis])
        axis--;
    return axis;
}

static plim_status write_run(struct unpacking *self, const struct box *box, const int64_t *place, int axis,
                             plim_error *error)
{
    const struct hdf5_dataset *dataset = self->dataset;
    uint64_t size = type_bytes(dataset->type), from = 0, to = 0, run = (uint64_t)box->extent[axis];
    for (int i = 0; i < box->rank; i++) {
        uint64_t inside = i < axis ? (uint64_t)place[i] : 0;
        from = from * (uint64_t)dataset->chunk[i] + inside;
        to = to * (uint64_t)dataset->shape.dim[i] + (uint64_t)box->offset[i] + inside;
        if (i > axis)
            run *= (uint64_t)dataset->shape.dim[i];
    }
    TRY(file_write(self->to, self->at + to * size, self->buffer[0] + from * size, (size_t)(run * size), error));
    self->written += run * size;
    return PLIM_OK;
}

static plim_status scatter(struct unpacking *self, const struct box *box, plim_error *error)
{
    int64_t place[MOST_AXES] = {0};
    int axis = packed_from(self->dataset), carry;
    do {
        TRY(write_run(self, box, place, axis, error));
        for (carry = axis - 1; carry >= 0 && ++place[carry] == box->extent[carry]; carry--)
            place[carry] = 0;
    } while (carry >= 0);
    if (self->written >= DROP_BYTES) {
        file_drop(self->to, self->at, self->dataset->bytes);
        self->written = 0;
    }
    return PLIM_OK;
}

/* ---- chunks ---- */

static plim_status unpack_chunk(struct unpacking *self, const struct box *box, uint64_t at, uint64_t packed,
                                uint64_t mask, plim_error *error)
{
    if (packed > self->capacity)
        return damaged(self, at, "it is larger packed than it would be unpacked", error);
    TRY(hdf5_read(self->hdf5, at, self->buffer[0], (size_t)packed, error));
    TRY(undo_filters((size_t)packed, self, mask, at, error));
    self->chunks++;
    return scatter(self, box, error);
}

/* A key: u32 bytes, u32 spared filters, u64 an axis, u64 0. */
static plim_status take_key(struct box *box, struct unpacking *self, const uint8_t *key, uint64_t at, plim_error *error)
{
    const struct hdf5_dataset *dataset = self->dataset;
    box->rank = dataset->shape.rank;
    for (int i = 0; i < box->rank; i++) {
        uint64_t offset = read_le(key + 8 + 8 * i, 8), chunk = (uint64_t)dataset->chunk[i];
        uint64_t extent = (uint64_t)dataset->shape.dim[i];
        if (offset % chunk || offset >= extent)
            return hdf5_bad(self->hdf5, error, at, "a chunk lies outside its data set");
        box->offset[i] = (int64_t)offset;
        box->extent[i] = (int64_t)(extent - offset < chunk ? extent - offset : chunk);
    }
    return PLIM_OK;
}

static plim_status visit_tree(struct unpacking *self, uint64_t at, int level, plim_error *error)
{
    struct hdf5 *hdf5 = self->hdf5;
    uint8_t head[24], key[8 + 8 * (MOST_AXES + 1) + 8];
    size_t key_bytes = 8 + 8 * ((size_t)self->dataset->shape.rank + 1);
    TRY(hdf5_step(hdf5, at, error));
    TRY(hdf5_read(hdf5, at, head, sizeof head, error));
    if (memcmp(head, "TREE", 4) != 0 || head[4] != 1 || head[5] > MOST_DEPTH || (level >= 0 && head[5] != level))
        return hdf5_bad(hdf5, error, at, "not a tree of chunks");
    for (uint64_t i = 0, count = read_le(head + 6, 2); i < count; i++) {
        struct box box;
        TRY(hdf5_step(hdf5, at, error));
        TRY(hdf5_read(hdf5, at + 24 + i * (key_bytes + 8), key, key_bytes + 8, error));
        uint64_t child = read_le(key + key_bytes, 8);
        if (head[5] > 0) {
            TRY(visit_tree(self, child, head[5] - 1, error));
            continue;
        }
        TRY(take_key(&box, self, key, at, error));
        TRY(unpack_chunk(self, &box, child, read_le(key, 4), read_le(key + 4, 4), error));
    }
    return PLIM_OK;
}

static uint64_t chunk_count(const struct hdf5_dataset *dataset)
{
    uint64_t count = 1;
    for (int i = 0; i < dataset->shape.rank; i++)
        if (!mul_u64(&count, count, (uint64_t)((dataset->shape.dim[i] - 1) / dataset->chunk[i] + 1)))
            return UINT64_MAX;
    return count;
}

static plim_status unpack_all(struct unpacking *self, plim_error *error)
{
    const struct hdf5_dataset *dataset = self->dataset;
    struct box whole = {.rank = dataset->shape.rank};
    static const uint8_t zero;
    memcpy(whole.extent, dataset->shape.dim, sizeof whole.extent);
    self->buffer[0] = budget_take(self->hdf5->budget, TAG_FORMATS, self->capacity);
    self->buffer[1] = budget_take(self->hdf5->budget, TAG_FORMATS, self->capacity);
    if (!self->buffer[0] || !self->buffer[1])
        return budget_refused(self->hdf5->budget, TAG_FORMATS, self->capacity, error);
    /* What no chunk covers is there, too, as zeros. */
    TRY(file_write(self->to, self->at + dataset->bytes - 1, &zero, 1, error));
    if (dataset->single && chunk_count(dataset) != 1)
        return hdf5_bad(self->hdf5, error, dataset->at, "more chunks than the one that is said to be all");
    if (dataset->single)
        TRY(unpack_chunk(self, &whole, dataset->at, dataset->packed_bytes, 0, error));
    else
        TRY(visit_tree(self, dataset->at, -1, error));
    if (dataset->other_fill && self->chunks < chunk_count(dataset))
        return hdf5_bad(self->hdf5, error, dataset->at,
                        "chunks that were never written, with a fill value, are not supported");
    return PLIM_OK;
}

plim_status hdf5_unpack(struct hdf5 *hdf5, const struct hdf5_dataset *dataset, struct file *to, uint64_t at,
                        plim_error *error)
{
    struct unpacking self = {.hdf5 = hdf5, .dataset = dataset, .to = to, .at = at, .capacity = capacity_of(dataset)};
    self.memory.budget = hdf5->budget;
    hdf5->steps_left = hdf5->file_bytes / 8 + 16;
    plim_status status = unpack_all(&self, error);
    file_drop(to, at, dataset->bytes);
    if (self.ready)
        inflateEnd(&self.stream);
    for (int i = 0; i < 2; i++)
        budget_give(hdf5->budget, TAG_FORMATS, self.buffer[i], self.capacity);
    return status;
}
