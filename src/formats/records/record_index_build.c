/* record_index_build.c - one scan over a TFRecord file gives the index of its records. */
#include "base/memory/budget_alloc.h"
#include "formats/files/partial_file.h"
#include "formats/records/record_index_file.h"
#include "formats/records/tfrecord_reader.h"

/* Records between two tells of the progress. */
#define TELL_RECORDS ((int64_t)64 * 1024)

struct builder {
    struct budget *budget;
    struct tfrecord_reader *reader;
    struct partial_file file;
    uint64_t begin[INDEX_BLOCK_RECORDS + 1]; /* of the records of this block, and the end of the last */
    int64_t in_block;
    struct index_entry page[INDEX_GROUP_BLOCKS];
    int64_t in_page, count;
    struct index_directory_line *directory; /* one for each group */
    size_t groups, groups_most;
};

/* ---- blocks, pages, directory --------------------------------------------------- */

static uint32_t bytes_for(uint64_t value)
{
    uint32_t bytes = 0;
    for (; value; value >>= 8)
        bytes++;
    return bytes;
}

/* Takes the line from the first record to the end; what the records are beside it, above the lowest, is left over. */
static struct index_entry fit_line(uint64_t residual[INDEX_BLOCK_RECORDS + 1], const struct builder *builder)
{
    int64_t n = builder->in_block, lowest = 0;
    uint64_t slope = (builder->begin[n] - builder->begin[0]) / (uint64_t)n, most = 0;
    for (int64_t i = 0; i <= n; i++) {
        residual[i] = builder->begin[i] - builder->begin[0] - (uint64_t)i * slope;
        lowest = (int64_t)residual[i] < lowest ? (int64_t)residual[i] : lowest;
    }
    for (int64_t i = 0; i <= n; i++) {
        residual[i] -= (uint64_t)lowest;
        most = residual[i] > most ? residual[i] : most;
    }
    return (struct index_entry){.base = builder->begin[0] + (uint64_t)lowest, .slope = slope, .width = bytes_for(most)};
}

static plim_status end_page(struct builder *builder, plim_error *error)
{
    if (builder->groups == builder->groups_most) {
        size_t more = builder->groups_most ? 2 * builder->groups_most : 4;
        void *grown = budget_grow(builder->budget, TAG_FORMATS, builder->directory,
                                  builder->groups_most * INDEX_DIRECTORY_BYTES, more * INDEX_DIRECTORY_BYTES);
        if (!grown)
            return budget_refused(builder->budget, TAG_FORMATS, more * INDEX_DIRECTORY_BYTES, error);
        builder->directory = grown;
        builder->groups_most = more;
    }
    uint64_t bytes = (uint64_t)builder->in_page * INDEX_ENTRY_BYTES;
    struct index_directory_line *line = &builder->directory[builder->groups++];
    *line = (struct index_directory_line){partial_bytes(&builder->file), crc32c(0, builder->page, bytes), 0};
    line->crc = index_line_crc(line);
    builder->in_page = 0;
    return partial_put(&builder->file, builder->page, bytes, error);
}

static plim_status end_block(struct builder *builder, plim_error *error)
{
    uint64_t residual[INDEX_BLOCK_RECORDS + 1];
    struct index_entry entry = fit_line(residual, builder);
    entry.place = partial_bytes(&builder->file);
    for (int64_t i = 0; i <= builder->in_block && entry.width; i++) {
        entry.crc = crc32c(entry.crc, &residual[i], entry.width);
        TRY(partial_put(&builder->file, &residual[i], entry.width, error));
    }
    builder->page[builder->in_page++] = entry;
    builder->in_block = 0;
    return builder->in_page == INDEX_GROUP_BLOCKS ? end_page(builder, error) : PLIM_OK;
}

/* ---- the scan --------------------------------------------------------------------- */

static plim_status report_scan(const struct builder *builder, const struct record_progress *progress, plim_error *error)
{
    uint64_t done, total;
    if (!progress)
        return PLIM_OK;
    tfrecord_reader_progress(&done, &total, builder->reader);
    if (progress->tell(progress->context, done, total))
        return PLIM_OK;
    return fail_at(error, PLIM_INTERRUPTED, tfrecord_reader_path(builder->reader), "making its index was stopped");
}

static plim_status scan(struct builder *builder, const struct record_progress *progress, plim_error *error)
{
    int64_t skipped;
    for (;;) {
        uint64_t at = tfrecord_reader_tell(builder->reader).byte;
        TRY(tfrecord_reader_skip(&skipped, builder->reader, 1, error));
        if (!skipped)
            break;
        builder->begin[builder->in_block++] = at;
        builder->begin[builder->in_block] = tfrecord_reader_tell(builder->reader).byte;
        if (builder->in_block == INDEX_BLOCK_RECORDS)
            TRY(end_block(builder, error));
        if (++builder->count % TELL_RECORDS == 0)
            TRY(report_scan(builder, progress, error));
    }
    if (builder->in_block)
        TRY(end_block(builder, error));
    if (builder->in_page)
        TRY(end_page(builder, error));
    return report_scan(builder, progress, error);
}

static plim_status put_header(struct builder *builder, struct file *data, plim_error *error)
{
    struct index_header header = {.magic = INDEX_MAGIC,
                                  .version = INDEX_VERSION,
                                  .count = (uint64_t)builder->count,
                                  .data_bytes = tfrecord_reader_tell(builder->reader).byte,
                                  .directory = partial_bytes(&builder->file)};
    TRY(index_samples(&header.samples, data, header.data_bytes, error));
    header.crc = index_header_crc(&header);
    TRY(partial_put(&builder->file, builder->directory, builder->groups * INDEX_DIRECTORY_BYTES, error));
    return partial_patch(&builder->file, 0, &header, sizeof header, error);
}

static plim_status build(struct builder *builder, const char *data_path, const struct record_progress *progress,
                         plim_error *error)
{
    struct file *data;
    if (tfrecord_reader_is_packed(builder->reader)) {
        fail_at(error, PLIM_UNSUPPORTED, data_path, "records of a compressed file cannot be reached by number");
        return hint(error, PLIM_UNSUPPORTED, "unpack it, or read it in order");
    }
    TRY(partial_put(&builder->file, (uint8_t[INDEX_HEADER_BYTES]){0}, INDEX_HEADER_BYTES, error));
    TRY(scan(builder, progress, error));
    TRY(file_open(&data, builder->budget, data_path, FILE_READ, error));
    plim_status status = put_header(builder, data, error);
    file_close(data);
    return status;
}

/* The file that the builder writes to has the index's name in the end, or none. */
static plim_status build_file(struct builder *builder, const char *data_path, const char *path,
                              const struct record_progress *progress, plim_error *error)
{
    TRY(tfrecord_reader_open(&builder->reader, builder->budget, data_path, RECORD_BUFFER_BYTES, error));
    TRY(partial_open(&builder->file, builder->budget, path, error));
    plim_status status = build(builder, data_path, progress, error);
    if (status == PLIM_OK)
        return partial_commit(&builder->file, error);
    partial_abandon(&builder->file);
    return status;
}

plim_status record_index_build(struct budget *budget, const char *data_path, const char *index_path,
                               const struct record_progress *progress, plim_error *error)
{
    struct builder *builder;
    char *path = NULL;
    TRY(budget_alloc(&builder, budget, TAG_FORMATS, sizeof *builder, error));
    builder->budget = budget;
    plim_status status = index_path_take(&path, budget, data_path, index_path, error);
    if (status == PLIM_OK)
        status = build_file(builder, data_path, path, progress, error);
    tfrecord_reader_close(builder->reader);
    budget_give(budget, TAG_FORMATS, builder->directory, builder->groups_most * INDEX_DIRECTORY_BYTES);
    budget_give(budget, TAG_FORMATS, path, path ? strlen(path) + 1 : 0);
    budget_give(budget, TAG_FORMATS, builder, sizeof *builder);
    return status;
}
