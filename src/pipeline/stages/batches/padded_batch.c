/* padded_batch.c - elements of different shapes into batches, padded to the longest of the batch or to a stated shape;
   and rebatch, which makes other batches of batches. */
#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/stages/batches/padding.h"

#define PADDED_ROWS 64

struct padded_options {
    struct stacking stacking; /* value_bytes: of one batch */
    int size_count;           /* rebatch may have several: they take turns */
    int64_t largest;
    const int64_t *size; /* in the same block */
};

struct padded_stream {
    struct stream stream;
    const struct padded_options *options;
    int turn;
    struct chunk rows; /* as they come */
    struct chunk kept; /* the samples of the batch, where they do not come all at once */
};

static int64_t rows_of(const struct padded_options *options)
{
    return options->largest < PADDED_ROWS ? options->largest : PADDED_ROWS;
}

static uint64_t padded_bytes(const struct dataset *dataset)
{
    const struct padded_options *options = dataset->options;
    const struct dataset *input = dataset->input;
    uint64_t rows = chunk_bytes(input->spec, rows_of(options), input->value_bytes);
    uint64_t kept = chunk_bytes(input->spec, options->largest, stacking_value_bytes(dataset));
    return add_most(round_up(sizeof(struct padded_stream), 64), add_most(rows, kept));
}

static plim_status padded_start(struct stream *stream, plim_error *error)
{
    struct padded_stream *self = (struct padded_stream *)stream;
    const struct dataset *input = stream->dataset->input;
    uint8_t *at = (uint8_t *)stream + round_up(sizeof *self, 64);
    (void)error;
    self->options = stream->dataset->options;
    chunk_lay(&self->rows, at, input->spec, rows_of(self->options), input->value_bytes);
    at += chunk_bytes(input->spec, rows_of(self->options), input->value_bytes);
    chunk_lay(&self->kept, at, input->spec, self->options->largest, stacking_value_bytes(stream->dataset));
    return PLIM_OK;
}

static plim_status padded_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    ((struct padded_stream *)stream)->turn = 0;
    return stream_rewind_inputs(stream, epoch, error);
}

static plim_status keep(struct padded_stream *self, plim_error *error)
{
    for (int64_t i = 0; i < self->rows.count; i++)
        if (!chunk_append(&self->kept, &self->rows, i))
            return stream_too_large(self->stream.dataset, self->kept.values.wanted, self->kept.values.capacity, error);
    return PLIM_OK;
}

/* The next `size` samples, fewer at the end; *from says where they are. */
static plim_status gather(const struct chunk **from, struct padded_stream *self, int64_t size, plim_error *error)
{
    self->kept.count = 0;
    value_buffer_empty(&self->kept.values);
    *from = &self->kept;
    while (self->kept.count < size) {
        TRY(stream_pull(self->stream.input, &self->rows, size - self->kept.count, error));
        if (!self->rows.count)
            break;
        if (self->rows.count == size) { /* all at once: no copy */
            *from = &self->rows;
            break;
        }
        TRY(keep(self, error));
    }
    return PLIM_OK;
}

static plim_status padded_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct padded_stream *self = (struct padded_stream *)stream;
    const struct padded_options *options = self->options;
    const struct chunk *from;
    int64_t size = options->size[self->turn];
    (void)most;
    TRY(gather(&from, self, size, error));
    if (!from->count || (from->count < size && stream->dataset->drop_remainder))
        return PLIM_OK;
    self->turn = (self->turn + 1) % options->size_count;
    return padding_stack(to, from, NULL, from->count, options->stacking.padding, -1, stream->dataset, error);
}

static plim_status padded_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                               plim_error *error)
{
    struct padded_stream *self = (struct padded_stream *)stream;
    const struct padded_options *options = self->options;
    (void)by;
    for (*passed = 0; *passed < count;) {
        int64_t size = options->size[self->turn], batches = 1, samples;
        if (options->size_count == 1 && count - *passed < INT64_MAX / size)
            batches = count - *passed;
        TRY(stream_skip(&samples, stream->input, batches * size, &self->rows, error));
        *passed += samples / size + (samples % size && !stream->dataset->drop_remainder);
        self->turn = (self->turn + 1) % options->size_count;
        if (samples < batches * size)
            break;
    }
    return PLIM_OK;
}

static const struct stream_type padded_stream = {
    .bytes = padded_bytes,
    .start = padded_start,
    .rewind = padded_rewind,
    .pull = padded_pull,
    .skip = padded_skip,
};

/* ---- building ---- */

/* Batches of n elements that take turns by the sizes. *whole: no batch has fewer samples than the largest. */
static int64_t count_batches(bool *whole, int64_t n, const struct padded_options *options)
{
    int64_t size = options->size[0];
    bool drop = options->stacking.drop_remainder;
    *whole = options->size_count == 1 && (drop || n == CARDINALITY_INFINITE || (n >= 0 && n % size == 0));
    if (n < 0 || options->size_count > 1)
        return n == CARDINALITY_INFINITE ? n : CARDINALITY_UNKNOWN;
    return n / size + (n % size && !drop);
}

static plim_status check_sizes(const struct dataset *dataset, const struct padded_options *options, plim_error *error)
{
    uint64_t bytes;
    for (int i = 0; i < options->size_count; i++)
        if (options->size[i] < 1 ||
            !mul_u64(&bytes, (uint64_t)options->size[i], add_most(dataset->spec->element_bytes, 64)) ||
            bytes > INT64_MAX / 4)
            return fail(error, PLIM_BAD_JOB, "%s: a batch of %lld elements is not possible", dataset->stage->name,
                        (long long)options->size[i]);
    return PLIM_OK;
}

static plim_status padded_build(struct dataset *dataset, plim_error *error)
{
    const struct padded_options *options = dataset->options;
    bool whole;
    TRY(check_sizes(dataset, options, error));
    dataset->cardinality = count_batches(&whole, dataset->input->cardinality, options);
    return stacking_build(dataset, options->largest, options->largest, whole, error);
}

/* A node with the options and the sizes in its block. */
static struct dataset *padded_node(struct dataset **dataset, const struct stage *stage, struct padded_options **options,
                                   const int64_t *sizes, int count, bool drop_remainder)
{
    size_t options_bytes = round_up(sizeof **options, 64);
    void *block;
    struct dataset *node = dataset_stage(dataset, stage, options_bytes + (size_t)count * sizeof *sizes, &block);
    if (!node)
        return NULL;
    struct padded_options *own = block;
    own->stacking.drop_remainder = drop_remainder;
    own->size = memcpy((char *)block + options_bytes, sizes, (size_t)count * sizeof *sizes);
    own->size_count = count;
    for (int i = 0; i < count; i++)
        own->largest = sizes[i] > own->largest ? sizes[i] : own->largest;
    node->options = *options = own;
    return node;
}

struct dataset *dataset_padded_batch(struct dataset *dataset, int64_t size, const struct padding *padding, int count,
                                     bool drop_remainder, uint64_t value_bytes)
{
    plim_error error = {0};
    struct padded_options *options;
    struct dataset *node = padded_node(&dataset, &stage_padded_batch, &options, &size, 1, drop_remainder);
    if (!node)
        return dataset;
    options->stacking.value_bytes = value_bytes;
    return dataset_finish(node, padding_resolve(options->stacking.padding, node->spec, padding, count, &error), &error);
}

static plim_status check_alike(const struct spec *spec, plim_error *error)
{
    for (int c = 0; c < spec->column_count; c++)
        if (column_is_variable(&spec->column[c])) {
            fail(error, PLIM_BAD_JOB, "rebatch: column '%s' has elements of different shapes", spec->column[c].name);
            return hint(error, PLIM_BAD_JOB, "use unbatch and padded_batch");
        }
    return PLIM_OK;
}

struct dataset *dataset_rebatch(struct dataset *dataset, const int64_t *sizes, int count, bool drop_remainder)
{
    plim_error error = {0};
    struct padded_options *options;
    dataset = dataset_unbatch(dataset);
    if (dataset->error || count == 1) /* of one size: rows go straight into batch slots */
        return dataset->error ? dataset : dataset_batch(dataset, sizes[0], drop_remainder);
    if (count < 1) {
        fail(&error, PLIM_BAD_JOB, "rebatch: no sizes");
        return dataset_refuse(dataset, &error);
    }
    struct dataset *node = padded_node(&dataset, &stage_rebatch, &options, sizes, count, drop_remainder);
    if (!node)
        return dataset;
    plim_status status = check_alike(node->spec, &error);
    if (status == PLIM_OK)
        status = padding_resolve(options->stacking.padding, node->spec, NULL, 0, &error);
    return dataset_finish(node, status, &error);
}

/* ---- job files ---- */

struct padded_keys {
    int64_t size;
    bool drop_remainder;
    struct padding_keys padding;
};

static plim_status padded_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    static const struct setting settings[] = {
        {"size", SETTING_WHOLE, offsetof(struct padded_keys, size), 1},
        {"drop_remainder", SETTING_BOOL, offsetof(struct padded_keys, drop_remainder), 0},
        PADDING_SETTINGS(struct padded_keys, padding),
    };
    struct padded_keys keys = {0};
    struct padding padding[MOST_COLUMNS + 1];
    uint64_t value_bytes;
    int count;
    TRY(stage_settings(&keys, settings, COUNT(settings), "padded_batch", entry, error));
    if (!keys.size)
        return stage_bad(entry, "'size' is missing", "{size: 32}", error);
    TRY(padding_read(padding, &count, &value_bytes, &keys.padding, entry, error));
    *dataset = dataset_padded_batch(*dataset, keys.size, padding, count, keys.drop_remainder, value_bytes);
    return PLIM_OK;
}

#define MOST_SIZES 64

/* rebatch: 8, rebatch: [3, 1, 4], rebatch: {size: [3, 1], drop_remainder: true} */
static plim_status rebatch_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct keys {
        const struct yaml *size;
        bool drop_remainder;
    } keys = {.size = entry->value};
    static const struct setting settings[] = {
        {"size", SETTING_NODE, offsetof(struct keys, size), 0},
        {"drop_remainder", SETTING_BOOL, offsetof(struct keys, drop_remainder), 0},
    };
    const struct setting each = {"rebatch", SETTING_WHOLE, 0, 1};
    int64_t size[MOST_SIZES];
    int count = 0;
    if (entry->value->kind == YAML_MAP) {
        keys.size = NULL;
        TRY(settings_read(&keys, settings, 2, entry->job, entry->value, error));
    }
    if (!keys.size || keys.size->kind == YAML_MAP || keys.size->count > MOST_SIZES)
        return stage_bad(entry, "'size' is missing", "{size: 32}", error);
    const struct yaml *item = keys.size->kind == YAML_LIST ? keys.size->first : keys.size;
    for (; item; item = item == keys.size ? NULL : item->next)
        TRY(setting_value(&size[count++], &each, entry->job, item, error));
    if (!count)
        return stage_bad(entry, "'size' is missing", "{size: 32}", error);
    *dataset = dataset_rebatch(*dataset, size, count, keys.drop_remainder);
    return PLIM_OK;
}

const struct stage stage_padded_batch = {
    .name = "padded_batch",
    .build = padded_build,
    .stream = &padded_stream,
    .sequential = true,
    .changes_spec = true,
    .read = padded_read,
};

const struct stage stage_rebatch = {
    .name = "rebatch",
    .build = padded_build,
    .stream = &padded_stream,
    .sequential = true,
    .changes_spec = true,
    .read = rebatch_read,
};
