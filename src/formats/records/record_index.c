/* record_index.c - finds records by number in an index that stays on the disk.

   Pages of entries and blocks of residuals are cached in frames, each under a flag. Who finds a frame taken does not
   wait: it reads the piece for itself, on its stack. */
#include "formats/records/record_index.h"

#include <stdatomic.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/files/cursor.h"
#include "formats/records/record_index_file.h"

#define SAMPLES      16
#define SAMPLE_BYTES ((size_t)256)
/* Both open files and the index's path. */
#define FILES_BYTES ((uint64_t)24 * 1024)

struct frame {
    atomic_flag taken;
    int64_t number; /* of the piece; -1: none */
    uint8_t bytes[];
};

#define FRAME_BYTES(bytes) (round_up(sizeof(struct frame) + (bytes), 64))
#define PAGE_FRAME_BYTES   FRAME_BYTES(INDEX_PAGE_BYTES)
#define BLOCK_FRAME_BYTES  FRAME_BYTES(INDEX_BLOCK_BYTES)

struct record_index {
    struct budget *budget;
    struct file *file, *data;
    struct index_header header;
    uint8_t *pages, *blocks; /* frames of each */
    int frames;
};

/* ---- shared with the builder ------------------------------------------------------ */

plim_status index_samples(uint32_t *out, struct file *data, uint64_t data_bytes, plim_error *error)
{
    uint8_t sample[SAMPLE_BYTES];
    uint32_t crc = crc32c(0, &data_bytes, sizeof data_bytes);
    size_t bytes = data_bytes < SAMPLE_BYTES ? (size_t)data_bytes : SAMPLE_BYTES;
    uint64_t last = data_bytes - bytes;
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t at = i == SAMPLES - 1 ? last : last / (SAMPLES - 1) * (uint64_t)i;
        TRY(file_read(data, at, sample, bytes, error));
        crc = crc32c(crc, sample, bytes);
    }
    *out = crc;
    return PLIM_OK;
}

plim_status index_path_take(char **out, struct budget *budget, const char *data_path, const char *index_path,
                            plim_error *error)
{
    const char *suffix = index_path ? "" : INDEX_SUFFIX, *stem = index_path ? index_path : data_path;
    size_t bytes = strlen(stem) + strlen(suffix) + 1;
    char *path;
    TRY(budget_alloc(&path, budget, TAG_FORMATS, bytes, error));
    memcpy(path, stem, strlen(stem));
    memcpy(path + strlen(stem), suffix, strlen(suffix));
    *out = path;
    return PLIM_OK;
}

/* ---- opening ---------------------------------------------------------------------- */

static int usable_frames(int frames)
{
    return frames < 1 ? 1 : frames > 1 << 20 ? 1 << 20 : frames;
}

uint64_t record_index_cost(int frames)
{
    size_t count = (size_t)usable_frames(frames);
    return budget_charge(sizeof(struct record_index)) + budget_charge(count * PAGE_FRAME_BYTES) +
           budget_charge(count * BLOCK_FRAME_BYTES) + FILES_BYTES;
}

static uint64_t group_count(const struct record_index *index)
{
    uint64_t count = index->header.count;
    return count / INDEX_GROUP_RECORDS + (count % INDEX_GROUP_RECORDS != 0);
}

static plim_status bad_index(const struct record_index *index, uint64_t at, const char *what, plim_error *error)
{
    fail_byte(error, PLIM_BAD_DATA, file_path(index->file), at, "%s", what);
    return hint(error, PLIM_BAD_DATA, "plim data index makes it anew");
}

static plim_status read_header(struct record_index *index, plim_error *error)
{
    struct index_header *header = &index->header;
    size_t got;
    uint64_t size, end;
    TRY(file_size(&size, index->file, error));
    TRY(file_read_some(&got, index->file, 0, header, sizeof *header, error));
    if (memcmp(header->magic, INDEX_MAGIC, sizeof header->magic) != 0)
        return bad_index(index, 0, "not an index of records", error);
    if (header->version != INDEX_VERSION)
        return bad_index(index, 8, "an index of another version", error);
    if (got < sizeof *header)
        return bad_index(index, got, "the index ends inside its header", error);
    if (header->crc != index_header_crc(header))
        return bad_index(index, INDEX_HEADER_BYTES - 4, "the checksum of the index's header does not hold", error);
    if (header->count > header->data_bytes / RECORD_FRAME_BYTES || header->directory < INDEX_HEADER_BYTES ||
        !add_u64(&end, header->directory, group_count(index) * INDEX_DIRECTORY_BYTES) || end != size)
        return bad_index(index, size, "the index is not as long as it declares", error);
    return PLIM_OK;
}

static plim_status check_data(struct record_index *index, const char *data_path, plim_error *error)
{
    uint64_t size;
    uint32_t samples = 0;
    TRY(file_open(&index->data, index->budget, data_path, FILE_READ, error));
    TRY(file_size(&size, index->data, error));
    if (size == index->header.data_bytes)
        TRY(index_samples(&samples, index->data, size, error));
    if (size != index->header.data_bytes || samples != index->header.samples)
        return bad_index(index, 12, "the index was made for other data than the file has now", error);
    file_expect_random(index->data);
    return PLIM_OK;
}

static void *take_frames(struct record_index *index, size_t frame_bytes)
{
    uint8_t *frames = budget_take(index->budget, TAG_FORMATS, (size_t)index->frames * frame_bytes);
    for (int i = 0; frames && i < index->frames; i++) {
        struct frame *frame = (struct frame *)(frames + (size_t)i * frame_bytes);
        atomic_flag_clear(&frame->taken);
        frame->number = -1;
    }
    return frames;
}

static plim_status start(struct record_index *index, const char *data_path, const char *index_path, plim_error *error)
{
    char *path;
    TRY(index_path_take(&path, index->budget, data_path, index_path, error));
    plim_status status = file_open(&index->file, index->budget, path, FILE_READ, error);
    budget_give(index->budget, TAG_FORMATS, path, strlen(path) + 1);
    TRY(status);
    TRY(read_header(index, error));
    TRY(check_data(index, data_path, error));
    file_expect_random(index->file);
    index->pages = take_frames(index, PAGE_FRAME_BYTES);
    index->blocks = take_frames(index, BLOCK_FRAME_BYTES);
    if (!index->pages || !index->blocks)
        return budget_refused(index->budget, TAG_FORMATS, (uint64_t)index->frames * BLOCK_FRAME_BYTES, error);
    return PLIM_OK;
}

plim_status record_index_open(struct record_index **out, struct budget *budget, const char *data_path,
                              const char *index_path, int frames, plim_error *error)
{
    struct record_index *index;
    TRY(budget_alloc(&index, budget, TAG_FORMATS, sizeof *index, error));
    index->budget = budget;
    index->frames = usable_frames(frames);
    return OPENED(out, index, record_index_close, start(index, data_path, index_path, error));
}

void record_index_close(struct record_index *index)
{
    if (!index)
        return;
    file_close(index->file);
    file_close(index->data);
    budget_give(index->budget, TAG_FORMATS, index->pages, (size_t)index->frames * PAGE_FRAME_BYTES);
    budget_give(index->budget, TAG_FORMATS, index->blocks, (size_t)index->frames * BLOCK_FRAME_BYTES);
    budget_give(index->budget, TAG_FORMATS, index, sizeof *index);
}

int64_t record_index_count(const struct record_index *index)
{
    return (int64_t)index->header.count;
}

struct file *record_index_data(const struct record_index *index)
{
    return index->data;
}

/* ---- pieces ----------------------------------------------------------------------- */

/* `bytes` of the index between header and directory, if their checksum holds. */
static plim_status read_piece(uint8_t *to, const struct record_index *index, uint64_t at, uint64_t bytes, uint32_t crc,
                              plim_error *error)
{
    if (at < INDEX_HEADER_BYTES || at > index->header.directory || bytes > index->header.directory - at)
        return bad_index(index, at, "the index refers to bytes that it has not got", error);
    TRY(file_read(index->file, at, to, (size_t)bytes, error));
    if (crc32c(0, to, (size_t)bytes) != crc)
        return bad_index(index, at, "the checksum of a piece of the index does not hold", error);
    return PLIM_OK;
}

static plim_status load_page(uint8_t *to, const struct record_index *index, int64_t group, plim_error *error)
{
    struct index_directory_line line;
    uint64_t at = index->header.directory + (uint64_t)group * INDEX_DIRECTORY_BYTES;
    TRY(file_read(index->file, at, &line, sizeof line, error));
    if (line.crc != index_line_crc(&line))
        return bad_index(index, at, "the checksum of a line of the index's directory does not hold", error);
    uint64_t left = index->header.count - (uint64_t)group * INDEX_GROUP_RECORDS;
    uint64_t blocks =
        left < INDEX_GROUP_RECORDS ? (left + INDEX_BLOCK_RECORDS - 1) / INDEX_BLOCK_RECORDS : INDEX_GROUP_BLOCKS;
    return read_piece(to, index, line.page, blocks * INDEX_ENTRY_BYTES, line.page_crc, error);
}

static plim_status load_block(uint8_t *to, const struct record_index *index, int64_t block,
                              const struct index_entry *entry, plim_error *error)
{
    uint64_t left = index->header.count - (uint64_t)block * INDEX_BLOCK_RECORDS;
    uint64_t records = left < INDEX_BLOCK_RECORDS ? left : INDEX_BLOCK_RECORDS;
    return read_piece(to, index, entry->place, (records + 1) * entry->width, entry->crc, error);
}

/* `bytes` at `from` of a piece: a page (entry NULL) or a block of residuals. */
static plim_status read_through_frame(void *out, struct record_index *index, int64_t number,
                                      const struct index_entry *entry, size_t from, size_t bytes, plim_error *error)
{
    size_t frame_bytes = entry ? BLOCK_FRAME_BYTES : PAGE_FRAME_BYTES;
    uint8_t *frames = entry ? index->blocks : index->pages, own[INDEX_BLOCK_BYTES], *piece = own;
    struct frame *frame = (struct frame *)(frames + (size_t)(number % index->frames) * frame_bytes);
    bool mine = !atomic_flag_test_and_set_explicit(&frame->taken, memory_order_acquire);
    plim_status status = PLIM_OK;
    if (mine)
        piece = frame->bytes;
    if (!mine || frame->number != number) {
        if (mine)
            frame->number = -1;
        status = entry ? load_block(piece, index, number, entry, error) : load_page(piece, index, number, error);
        if (mine && status == PLIM_OK)
            frame->number = number;
    }
    if (status == PLIM_OK)
        memcpy(out, piece + from, bytes);
    if (mine)
        atomic_flag_clear_explicit(&frame->taken, memory_order_release);
    return status;
}

/* ---- finding ------------------------------------------------------------------------ */

/* Residuals i and i + 1 of a block. */
static plim_status residuals(uint64_t residual[2], struct record_index *index, int64_t block, int64_t i,
                             const struct index_entry *entry, plim_error *error)
{
    uint8_t bytes[2 * INDEX_RESIDUAL_MOST];
    residual[0] = residual[1] = 0;
    if (entry->width == 0)
        return PLIM_OK;
    if (entry->width > INDEX_RESIDUAL_MOST)
        return bad_index(index, entry->place, "the index has residuals of more than 8 bytes", error);
    TRY(read_through_frame(bytes, index, block, entry, (size_t)i * entry->width, 2 * (size_t)entry->width, error));
    memcpy(&residual[0], bytes, entry->width);
    memcpy(&residual[1], bytes + entry->width, entry->width);
    return PLIM_OK;
}

plim_status record_index_find(uint64_t *at, uint64_t *bytes, struct record_index *index, int64_t i, plim_error *error)
{
    struct index_entry entry;
    uint64_t residual[2];
    if (i < 0 || (uint64_t)i >= index->header.count)
        return fail_at(error, PLIM_INTERNAL, file_path(index->data), "record %lld of %lld", (long long)i,
                       (long long)index->header.count);
    int64_t block = i / INDEX_BLOCK_RECORDS, k = i % INDEX_BLOCK_RECORDS;
    TRY(read_through_frame(&entry, index, block / INDEX_GROUP_BLOCKS, NULL,
                           (size_t)(block % INDEX_GROUP_BLOCKS) * sizeof entry, sizeof entry, error));
    TRY(residuals(residual, index, block, k, &entry, error));
    uint64_t begin = entry.base + (uint64_t)k * entry.slope + residual[0];
    uint64_t end = entry.base + (uint64_t)(k + 1) * entry.slope + residual[1];
    if (end > index->header.data_bytes || begin > end || end - begin < RECORD_FRAME_BYTES)
        return bad_index(index, entry.place, "the index has a record where no record can be", error);
    *at = begin;
    *bytes = end - begin - RECORD_FRAME_BYTES;
    return PLIM_OK;
}
