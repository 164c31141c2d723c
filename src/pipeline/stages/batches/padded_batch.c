/* padded_batch.c - elements of different shapes into batches, padded to the longest of the batch or to a stated shape;
   and rebatch, which makes other batches of batches. */
#include <string.h>

#include "base/numbers/checked.h"
#include "base/text/settings.h"
#include "pipeline/stages/batches/padding.h"

#define PADDED_ROWS 64

struct padded_options {
    uint64_t room;  /* of one batch */
    int size_count; /* rebatch may have several: they take turns */
    int64_t largest;
    const int64_t *size; /* in the same block */
    struct column_padding padding[MOST_COLUMNS];
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

static uint64_t kept_room(const struct dataset *dataset)
{
    const struct padded_options *options = dataset->options;
    return spec_has_values(dataset->input->spec) ? options->room : 0;
}

static uint64_t padded_bytes(const struct dataset *dataset)
{
    const struct padded_options *options = dataset->options;
    const struct dataset *input = dataset->input;
    uint64_t rows = chunk_bytes(input->spec, rows_of(options), input->room_bytes);
    uint64_t kept = chunk_bytes(input->spec, options->largest, kept_room(dataset));
    return add_most(round_up(sizeof(struct padded_stream), 64), add_most(rows, kept));
}

static plim_status padded_start(struct stream *stream, plim_error *error)
{
    struct padded_stream *self = (struct padded_stream *)stream;
    const struct dataset *input = stream->dataset->input;
    uint8_t *at = (uint8_t *)stream + round_up(sizeof *self, 64);
    (void)error;
    self->options = stream->dataset->options;
    chunk_lay(&self->rows, at, input->spec, rows_of(self->options), input->room_bytes);
    at += chunk_bytes(input->spec, rows_of(self->options), input->room_bytes);
    chunk_lay(&self->kept, at, input->spec, self->options->largest, kept_room(stream->dataset));
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
            return stream_too_large(self->stream.dataset, self->kept.room.wanted, self->kept.room.capacity, error);
    return PLIM_OK;
}

/* The next `size` samples, fewer at the end; *from says where they are. */
static plim_status gather(const struct chunk **from, struct padded_stream *self, int64_t size, plim_error *error)
{
    self->kept.count = 0;
    room_empty(&self->kept.room);
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
    return padding_stack(to, from, NULL, from->count, options->padding, -1, stream->dataset, error);
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
static int64_t count_batches(bool *whole, int64_t n, const struct padded_options *options, bool drop)
{
    int64_t size = options->size[0];
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
    struct padded_options *options = (struct padded_options *)(uintptr_t)dataset->options;
    struct spec *spec = (struct spec *)(uintptr_t)dataset->spec; /* our own copy */
    const struct dataset *input = dataset->input;
    bool whole;
    TRY(check_sizes(dataset, options, error));
    dataset->cardinality = count_batches(&whole, input->cardinality, options, dataset->drop_remainder);
    for (int c = 0; c < spec->column_count; c++)
        spec->column[c].origin = c;
    options->room = padding_room(input->spec, input->room_bytes, options->largest, options->room);
    TRY(padding_spec(spec, options->padding, whole ? options->largest : -1, error));
    dataset->stacked = options->largest;
    dataset->room_bytes = spec_has_values(spec) ? options->room : 0;
    return PLIM_OK;
}

/* A node with room for a spec, the options and the sizes. */
static struct dataset *padded_node(struct dataset **dataset, const struct stage *stage, const int64_t *sizes, int count)
{
    size_t spec_bytes = round_up(sizeof(struct spec), 64), options_bytes = round_up(sizeof(struct padded_options), 64);
    void *room;
    struct dataset *node =
        dataset_stage(dataset, stage, spec_bytes + options_bytes + (size_t)count * sizeof *sizes, &room);
    if (!node)
        return NULL;
    struct padded_options *options = (struct padded_options *)((char *)room + spec_bytes);
    node->spec = memcpy(room, node->spec, sizeof(struct spec));
    node->options = options;
    options->size = memcpy((char *)options + options_bytes, sizes, (size_t)count * sizeof *sizes);
    options->size_count = count;
    for (int i = 0; i < count; i++)
        options->largest = sizes[i] > options->largest ? sizes[i] : options->largest;
    return node;
}

static struct dataset *refuse(struct dataset *dataset, const plim_error *error)
{
    struct dataset *failed = dataset_failed(dataset->budget, error);
    dataset_unref(dataset);
    return failed;
}

struct dataset *dataset_padded_batch(struct dataset *dataset, int64_t size, const struct padding *padding, int count,
                                     bool drop_remainder, uint64_t room_bytes)
{
    plim_error error = {0};
    struct dataset *node = padded_node(&dataset, &stage_padded_batch, &size, 1);
    if (!node)
        return dataset;
    struct padded_options *options = (struct padded_options *)(uintptr_t)node->options;
    options->room = room_bytes ? room_bytes : node->room_stated;
    node->drop_remainder = drop_remainder;
    if (padding_resolve(options->padding, node->spec, padding, count, &error) != PLIM_OK)
        return refuse(node, &error);
    return dataset_built(node);
}

struct dataset *dataset_rebatch(struct dataset *dataset, const int64_t *sizes, int count, bool drop_remainder)
{
    plim_error error = {0};
    dataset = dataset_unbatch(dataset);
    if (dataset->error || count == 1) /* of one size: rows go straight into batch slots */
        return dataset->error ? dataset : dataset_batch(dataset, sizes[0], drop_remainder);
    if (count < 1) {
        fail(&error, PLIM_BAD_JOB, "rebatch: no sizes");
        return refuse(dataset, &error);
    }
    struct dataset *node = padded_node(&dataset, &stage_rebatch, sizes, count);
    if (!node)
        return dataset;
    for (int c = 0; c < node->spec->column_count; c++)
        if (column_is_variable(&node->spec->column[c])) {
            fail(&error, PLIM_BAD_JOB, "rebatch: column '%s' has elements of different shapes",
                 node->spec->column[c].name);
            hint(&error, PLIM_BAD_JOB, "use unbatch and padded_batch");
            return refuse(node, &error);
        }
    node->drop_remainder = drop_remainder;
    struct padded_options *options = (struct padded_options *)(uintptr_t)node->options;
    if (padding_resolve(options->padding, node->spec, NULL, 0, &error) != PLIM_OK)
        return refuse(node, &error);
    return dataset_built(node);
}

/* ---- job files ---- */

struct padded_words {
    int64_t size;
    bool drop_remainder;
    const struct yaml *shapes, *values;
    const char *room;
};

static plim_status missing_size(const char *word, const char *job, const struct yaml *value, plim_error *error)
{
    char where[256];
    yaml_place(where, job, value);
    return hint(error, fail_at(error, PLIM_BAD_JOB, where, "%s: 'size' is missing", word), "%s: {size: 32}", word);
}

static plim_status padded_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                               plim_error *error)
{
    static const struct setting settings[] = {
        {"size", SETTING_WHOLE, offsetof(struct padded_words, size), 1},
        {"drop_remainder", SETTING_BOOL, offsetof(struct padded_words, drop_remainder), 0},
        {"padded_shapes", SETTING_NODE, offsetof(struct padded_words, shapes), 0},
        {"padding_values", SETTING_NODE, offsetof(struct padded_words, values), 0},
        {"room", SETTING_WORD, offsetof(struct padded_words, room), 0},
    };
    const struct setting alone = {"padded_batch", SETTING_WHOLE, 0, 1};
    struct padded_words words = {0};
    struct padding padding[MOST_COLUMNS + 1];
    uint64_t room = 0;
    int count = 0;
    (void)seed;
    if (value->kind == YAML_SCALAR)
        TRY(setting_value(&words.size, &alone, job, value, error));
    else
        TRY(settings_read(&words, settings, 5, job, value, error));
    if (!words.size)
        return missing_size("padded_batch", job, value, error);
    TRY(stage_room(&room, words.room, job, value, error));
    TRY(padding_read(padding, &count, words.shapes, words.values, job, error));
    *dataset = dataset_padded_batch(*dataset, words.size, padding, count, words.drop_remainder, room);
    return PLIM_OK;
}

struct rebatch_words {
    const struct yaml *size;
    bool drop_remainder;
};

#define MOST_SIZES 64

/* rebatch: 8, rebatch: [3, 1, 4], rebatch: {size: [3, 1], drop_remainder: true} */
static plim_status rebatch_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                                plim_error *error)
{
    static const struct setting settings[] = {
        {"size", SETTING_NODE, offsetof(struct rebatch_words, size), 0},
        {"drop_remainder", SETTING_BOOL, offsetof(struct rebatch_words, drop_remainder), 0},
    };
    const struct setting each = {"rebatch", SETTING_WHOLE, 0, 1};
    struct rebatch_words words = {.size = value};
    int64_t size[MOST_SIZES];
    int count = 0;
    (void)seed;
    if (value->kind == YAML_MAP) {
        words.size = NULL;
        TRY(settings_read(&words, settings, 2, job, value, error));
    }
    if (!words.size || words.size->kind == YAML_MAP || words.size->count > MOST_SIZES)
        return missing_size("rebatch", job, value, error);
    const struct yaml *item = words.size->kind == YAML_LIST ? words.size->first : words.size;
    for (; item; item = item == words.size ? NULL : item->next)
        TRY(setting_value(&size[count++], &each, job, item, error));
    if (!count)
        return missing_size("rebatch", job, value, error);
    *dataset = dataset_rebatch(*dataset, size, count, words.drop_remainder);
    return PLIM_OK;
}

const struct stage stage_padded_batch = {
    .name = "padded_batch",
    .build = padded_build,
    .stream = &padded_stream,
    .sequential = true,
    .read = padded_read,
};

const struct stage stage_rebatch = {
    .name = "rebatch",
    .build = padded_build,
    .stream = &padded_stream,
    .sequential = true,
    .read = rebatch_read,
};
