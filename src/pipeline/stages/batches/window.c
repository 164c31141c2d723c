/* window.c - windows over the elements, each one stacked into one: element i of window k is element
   k * shift + i * stride of the input. As tf.data's window with its elements batched again. */
#include "base/numbers/checked.h"
#include "pipeline/stages/batches/padding.h"
#include "pipeline/stages/keep/store.h"

#define WINDOW_ROWS 64

struct window_options {
    struct stacking stacking; /* nothing is padded */
    int64_t size, shift, stride;
    int64_t span; /* from the first to the last element of a window */
};

struct window_stream {
    struct stream stream;
    const struct window_options *options;
    int64_t start; /* of the next window, in elements of the input */
    int64_t begin; /* elements begin..end are kept; that many were read or passed over */
    int64_t end;
    bool over;       /* the input has ended */
    int64_t *kept;   /* element p is kept as kept[p % span] */
    int64_t *chosen; /* of one window */
    struct chunk rows;
    struct store store;
};

static int64_t rows_of(const struct window_options *options)
{
    return options->span < WINDOW_ROWS ? options->span : WINDOW_ROWS;
}

static uint64_t lists_bytes(const struct window_options *options)
{
    return round_up((uint64_t)(options->span + options->size) * sizeof(int64_t), 64);
}

static uint64_t window_bytes(const struct dataset *dataset)
{
    const struct window_options *options = dataset->options;
    const struct dataset *input = dataset->input;
    uint64_t rows = chunk_bytes(input->spec, rows_of(options), input->value_bytes);
    uint64_t store = store_bytes(input->spec, options->span, stacking_value_bytes(dataset));
    return add_most(round_up(sizeof(struct window_stream), 64) + lists_bytes(options), add_most(rows, store));
}

static plim_status window_start(struct stream *stream, plim_error *error)
{
    struct window_stream *self = (struct window_stream *)stream;
    const struct dataset *input = stream->dataset->input;
    uint8_t *at = (uint8_t *)stream + round_up(sizeof *self, 64);
    (void)error;
    self->options = stream->dataset->options;
    self->kept = (int64_t *)at;
    self->chosen = self->kept + self->options->span;
    at += lists_bytes(self->options);
    chunk_lay(&self->rows, at, input->spec, rows_of(self->options), input->value_bytes);
    at += chunk_bytes(input->spec, rows_of(self->options), input->value_bytes);
    store_lay(&self->store, at, input->spec, self->options->span, stacking_value_bytes(stream->dataset));
    return PLIM_OK;
}

static plim_status window_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct window_stream *self = (struct window_stream *)stream;
    self->start = self->begin = self->end = 0;
    self->over = false;
    store_clear(&self->store);
    return stream_rewind_inputs(stream, epoch, error);
}

/* Gives up what lies before the window; passes over what lies between the last one and this. */
static plim_status move_to_window(struct window_stream *self, plim_error *error)
{
    for (; self->begin < self->end && self->begin < self->start; self->begin++)
        store_give(&self->store, self->kept[self->begin % self->options->span]);
    int64_t between = self->start - self->end, passed = 0;
    if (between <= 0 || self->over)
        return PLIM_OK;
    TRY(stream_skip(&passed, self->stream.input, between, &self->rows, error));
    self->end += passed;
    self->begin = self->end;
    self->over = passed < between;
    return PLIM_OK;
}

static plim_status keep_rows(struct window_stream *self, plim_error *error)
{
    for (int64_t i = 0; i < self->rows.count; i++) {
        int64_t element = store_add(&self->store, &self->rows, i);
        if (element < 0)
            return stream_too_large(self->stream.dataset, self->store.wanted, self->store.elements.values.capacity,
                                    error);
        self->kept[self->end % self->options->span] = element;
        self->end++;
    }
    return PLIM_OK;
}

/* Keeps the elements of the window, as far as there are any. */
static plim_status fill_window(struct window_stream *self, plim_error *error)
{
    int64_t end = self->start + self->options->span;
    TRY(move_to_window(self, error));
    while (!self->over && self->end < end) {
        TRY(stream_pull(self->stream.input, &self->rows, end - self->end, error));
        self->over = !self->rows.count;
        TRY(keep_rows(self, error));
    }
    return PLIM_OK;
}

/* Where the window begins that is so many further on; as far as positions go, where that is beyond them. */
static int64_t start_behind(const struct window_options *options, int64_t start, int64_t windows)
{
    int64_t farthest = INT64_MAX - options->span, way;
    return !mul_i64(&way, windows, options->shift) || way > farthest - start ? farthest : start + way;
}

static plim_status window_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct window_stream *self = (struct window_stream *)stream;
    const struct window_options *options = self->options;
    (void)most;
    TRY(fill_window(self, error));
    int64_t count = 0;
    for (; count < options->size && count * options->stride < self->end - self->start; count++)
        self->chosen[count] = self->kept[(self->start + count * options->stride) % options->span];
    if (!count || (count < options->size && stream->dataset->drop_remainder))
        return PLIM_OK;
    self->start = start_behind(options, self->start, 1);
    return padding_stack(to, &self->store.elements, self->chosen, count, options->stacking.padding, -1, stream->dataset,
                         error);
}

/* Windows that lie before the end are passed over with their elements; the last ones are counted. */
static plim_status window_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                               plim_error *error)
{
    struct window_stream *self = (struct window_stream *)stream;
    const struct window_options *options = self->options;
    int64_t before = self->start;
    (void)by;
    *passed = 0;
    if (count < 1)
        return PLIM_OK;
    /* The last of those to be passed over: that it is there has to be seen. */
    self->start = start_behind(options, before, count - 1);
    TRY(fill_window(self, error));
    int64_t whole = self->end - options->span, last = stream->dataset->drop_remainder ? whole : self->end - 1;
    int64_t windows = last < before ? 0 : (last - before) / options->shift + 1;
    *passed = windows < count ? windows : count;
    self->start = start_behind(options, before, *passed);
    return PLIM_OK;
}

static const struct stream_type window_stream = {
    .bytes = window_bytes,
    .start = window_start,
    .rewind = window_rewind,
    .pull = window_pull,
    .skip = window_skip,
};

/* ---- building ---- */

static plim_status check_options(const struct window_options *options, plim_error *error)
{
    if (options->size < 1 || options->shift < 1 || options->stride < 1)
        return fail(error, PLIM_BAD_JOB, "window: size, shift and stride must be at least 1");
    if (options->span < 1 || options->span > INT32_MAX || options->shift > INT64_MAX / 4)
        return fail(error, PLIM_BAD_JOB, "window: more than 2^31 elements would be kept");
    return PLIM_OK;
}

/* How many windows n elements give, and whether all of them are whole. */
static int64_t count_windows(bool *whole, int64_t n, const struct window_options *options)
{
    bool drop = options->stacking.drop_remainder;
    *whole = drop || n == CARDINALITY_INFINITE;
    if (n < 0)
        return n;
    if (drop)
        return n < options->span ? 0 : (n - options->span) / options->shift + 1;
    int64_t windows = n / options->shift + (n % options->shift != 0);
    *whole = windows && (windows - 1) * options->shift + options->span <= n;
    return windows;
}

static plim_status window_build(struct dataset *dataset, plim_error *error)
{
    struct window_options *options = (struct window_options *)(uintptr_t)dataset->options;
    const struct spec *spec = dataset->spec;
    bool whole;
    TRY(check_options(options, error));
    for (int c = 0; c < spec->column_count; c++)
        if (column_is_variable(&spec->column[c])) {
            fail(error, PLIM_BAD_JOB, "window: column '%s' has elements of different shapes", spec->column[c].name);
            return hint(error, PLIM_BAD_JOB, "pad them first");
        }
    TRY(padding_resolve(options->stacking.padding, spec, NULL, 0, error));
    dataset->cardinality = count_windows(&whole, dataset->input->cardinality, options);
    return stacking_build(dataset, options->span, options->size, whole, error);
}

struct dataset *dataset_window(struct dataset *dataset, int64_t size, int64_t shift, int64_t stride,
                               bool drop_remainder)
{
    struct window_options options = {
        .stacking = {.drop_remainder = drop_remainder}, .size = size, .shift = shift ? shift : size, .stride = stride};
    if (size > 0 && stride > 0 && (!mul_i64(&options.span, size - 1, stride) || options.span == INT64_MAX))
        options.span = INT64_MAX - 1;
    options.span++;
    return dataset_add(dataset, &stage_window,
                       (struct stage_arguments){.options = &options, .options_bytes = sizeof options});
}

/* ---- job files ---- */

static plim_status window_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct keys {
        int64_t size, shift, stride;
        bool drop_remainder;
    } keys = {.stride = 1};
    static const struct setting settings[] = {
        {"size", SETTING_WHOLE, offsetof(struct keys, size), 1},
        {"shift", SETTING_WHOLE, offsetof(struct keys, shift), 1},
        {"stride", SETTING_WHOLE, offsetof(struct keys, stride), 1},
        {"drop_remainder", SETTING_BOOL, offsetof(struct keys, drop_remainder), 0},
    };
    TRY(stage_settings(&keys, settings, COUNT(settings), "window", entry, error));
    if (!keys.size)
        return stage_bad(entry, "'size' is missing", "{size: 5, shift: 1}", error);
    *dataset = dataset_window(*dataset, keys.size, keys.shift, keys.stride, keys.drop_remainder);
    return PLIM_OK;
}

const struct stage stage_window = {
    .name = "window",
    .build = window_build,
    .stream = &window_stream,
    .sequential = true,
    .changes_spec = true,
    .read = window_read,
};
