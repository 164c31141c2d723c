/* stream.c - elements one after another: opening, closing, pulling; and the two streams that are no stage:
   a source's reader, and a flow of maps between two stages. */
#include "pipeline/core/stream.h"

#include <string.h>

#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "base/numbers/random.h"
#include "base/threads/clock.h"
#include "pipeline/core/flow.h"

#define SKIP_STEP 4096 /* elements that are passed over between two looks at the stop flag */

/* ---- a source's reader ---- */

struct source_stream {
    struct stream stream;
    struct reader *reader;
    int64_t given; /* this epoch */
};

static void source_stream_cost(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset, bool caches)
{
    (void)caches;
    by_tag[TAG_FORMATS] = add_most(by_tag[TAG_FORMATS], dataset->source->reader_bytes);
}

static plim_status source_stream_start(struct stream *stream, plim_error *error)
{
    struct source_stream *self = (struct source_stream *)stream;
    struct source *source = stream->dataset->source;
    return source->type->reader_open(&self->reader, source, stream->run.budget, error);
}

static void source_stream_stop(struct stream *stream)
{
    struct source_stream *self = (struct source_stream *)stream;
    if (self->reader)
        stream->dataset->source->type->reader_close(self->reader);
}

static plim_status source_stream_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct source_stream *self = (struct source_stream *)stream;
    self->given = 0;
    return stream->dataset->source->type->reader_rewind(self->reader, epoch, error);
}

static plim_status source_stream_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct source_stream *self = (struct source_stream *)stream;
    struct row_pointers rows;
    chunk_pointers(&rows, to);
    const struct row_target target = {.to = rows.row, .stride = rows.stride, .values = &to->values};
    int64_t got = 0;
    most = stream->careful ? 1 : most; /* rows made before a bad one would be lost with it */
    plim_status status = stream->dataset->source->type->reader_next(&got, self->reader, most, &target, error);
    if (status != PLIM_OK) {
        self->given += status == PLIM_BAD_DATA; /* its number is used up */
        return status;
    }
    if (!got && to->values.wanted)
        return stream_too_large(stream->dataset, to->values.wanted, to->values.capacity, error);
    to->count = got;
    chunk_number(to, self->given, stream->epoch);
    self->given += got;
    return PLIM_OK;
}

static plim_status source_stream_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                                      plim_error *error)
{
    struct source_stream *self = (struct source_stream *)stream;
    const struct source_type *type = stream->dataset->source->type;
    if (!type->reader_skip)
        return stream_pull_past(passed, stream, count, by, error);
    *passed = 0;
    while (*passed < count) {
        int64_t step = 0, most = count - *passed < SKIP_STEP ? count - *passed : SKIP_STEP;
        TRY(budget_go_on(stream->run.budget, error));
        plim_status status = type->reader_skip(&step, self->reader, most, error);
        self->given += step + (status == PLIM_BAD_DATA);
        *passed += step;
        if (status != PLIM_OK || step < most)
            return status;
    }
    return PLIM_OK;
}

static const struct stream_type source_stream = {
    .state_bytes = sizeof(struct source_stream),
    .cost = source_stream_cost,
    .start = source_stream_start,
    .stop = source_stream_stop,
    .rewind = source_stream_rewind,
    .pull = source_stream_pull,
    .skip = source_stream_skip,
};

/* ---- a flow between two stages ---- */

struct flow_stream {
    struct stream stream;
    struct flow *flow;
    int64_t position; /* of the next element, where the data has an index */
};

static uint64_t flow_stream_bytes(const struct dataset *dataset)
{
    return add_most(round_up(sizeof(struct flow_stream), 64), flow_bytes(dataset));
}

static void flow_stream_cost(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset, bool caches)
{
    (void)caches;
    by_tag[TAG_PIPELINE] = add_most(by_tag[TAG_PIPELINE], flow_cost(dataset));
}

static plim_status flow_stream_start(struct stream *stream, plim_error *error)
{
    struct flow_stream *self = (struct flow_stream *)stream;
    self->flow = (struct flow *)((uint8_t *)stream + round_up(sizeof *self, 64));
    return flow_start(self->flow, stream->dataset, stream->run.budget, stream->run.seed, error);
}

static void flow_stream_stop(struct stream *stream)
{
    struct flow_stream *self = (struct flow_stream *)stream;
    if (self->flow)
        flow_stop(self->flow);
}

static plim_status flow_stream_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    ((struct flow_stream *)stream)->position = 0;
    return stream->input ? stream_rewind(stream->input, epoch, error) : PLIM_OK;
}

static int64_t left(const struct flow_stream *self, int64_t most)
{
    int64_t cardinality = self->stream.dataset->cardinality;
    return cardinality < 0 || cardinality - self->position > most ? most : cardinality - self->position;
}

static plim_status flow_stream_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct flow_stream *self = (struct flow_stream *)stream;
    struct flow_target target;
    bool kept;
    int64_t got, done;
    memcpy(target.column, to->column, sizeof target.column);
    most = stream->careful ? 1 : most < flow_rows(self->flow) ? most : flow_rows(self->flow);
    if (stream->input) {
        TRY(flow_take(&got, &kept, self->flow, stream->input, &target, most, false, error));
    } else {
        got = left(self, most);
        flow_place(self->flow, stream->epoch, self->position, got);
    }
    if (!got)
        return PLIM_OK;
    plim_status status = flow_finish(&done, self->flow, &target, got, error);
    if (status != PLIM_OK) {
        self->position += status == PLIM_BAD_DATA && stream->careful; /* it counts as given */
        return status;
    }
    self->position += done;
    memcpy(to->index, flow_index(self->flow), (size_t)done * sizeof *to->index);
    memcpy(to->epoch, flow_epoch(self->flow), (size_t)done * sizeof *to->epoch);
    to->count = done;
    return PLIM_OK;
}

static plim_status flow_stream_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                                    plim_error *error)
{
    struct flow_stream *self = (struct flow_stream *)stream;
    struct flow_target target;
    if (stream->input) {
        memcpy(target.column, by->column, sizeof target.column);
        return flow_skip(passed, self->flow, stream->input, &target, by->capacity, count, error);
    }
    *passed = left(self, count);
    self->position += *passed;
    return PLIM_OK;
}

static const struct stream_type flow_stream = {
    .bytes = flow_stream_bytes,
    .cost = flow_stream_cost,
    .start = flow_stream_start,
    .stop = flow_stream_stop,
    .rewind = flow_stream_rewind,
    .pull = flow_stream_pull,
    .skip = flow_stream_skip,
};

/* ---- which one, and its inputs ---- */

/* A prefetch or a batch without anything behind it is nothing to run: the stream is that of its input. */
static const struct dataset *runs(const struct dataset *dataset)
{
    while (!dataset->sequential && dataset->input && !dataset->input->indexed && !dataset->function)
        dataset = dataset->input;
    return dataset;
}

static const struct stream_type *type_of(const struct dataset *dataset)
{
    if (!dataset->sequential)
        return &flow_stream;
    return dataset->stage ? dataset->stage->stream : &source_stream;
}

static const struct dataset *input_of(const struct dataset *dataset)
{
    return dataset->sequential ? dataset->input : flow_head(dataset);
}

static uint64_t own_bytes(const struct dataset *dataset)
{
    const struct stream_type *type = type_of(dataset);
    return round_up(type->bytes ? type->bytes(dataset) : type->state_bytes, 64);
}

/* Its struct and buffers, and the pointers to its inputs besides the first. */
static uint64_t block_bytes(const struct dataset *dataset)
{
    return add_most(own_bytes(dataset), (uint64_t)dataset->other_count * sizeof(struct stream *));
}

void stream_cost_each(stream_visit *visit, void *context, const struct dataset *dataset, bool caches)
{
    uint64_t by_tag[TAG_COUNT] = {0};
    dataset = runs(dataset);
    const struct stream_type *type = type_of(dataset);
    by_tag[TAG_PIPELINE] = budget_charge(block_bytes(dataset));
    if (type->cost)
        type->cost(by_tag, dataset, caches);
    visit(context, dataset, by_tag);
    if (input_of(dataset))
        stream_cost_each(visit, context, input_of(dataset), caches);
    for (int i = 0; dataset->sequential && i < dataset->other_count; i++)
        stream_cost_each(visit, context, dataset->others[i], caches);
}

static void add_cost(void *context, const struct dataset *dataset, const uint64_t by_tag[TAG_COUNT])
{
    uint64_t *sum = context;
    (void)dataset;
    for (int tag = 0; tag < TAG_COUNT; tag++)
        sum[tag] = add_most(sum[tag], by_tag[tag]);
}

void stream_cost(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset, bool caches)
{
    stream_cost_each(add_cost, by_tag, dataset, caches);
}

static plim_status open_inputs(struct stream *stream, const struct dataset *dataset, plim_error *error)
{
    if (input_of(dataset)) {
        TRY(stream_open(&stream->input, input_of(dataset), &stream->run, error));
        stream->input_count++;
    }
    for (int i = 0; dataset->sequential && i < dataset->other_count; i++) {
        TRY(stream_open(&stream->others[i], dataset->others[i], &stream->run, error));
        stream->input_count++;
    }
    return stream->type->start ? stream->type->start(stream, error) : PLIM_OK;
}

plim_status stream_open(struct stream **out, const struct dataset *dataset, const struct stream_run *run,
                        plim_error *error)
{
    dataset = runs(dataset);
    uint64_t bytes = block_bytes(dataset);
    struct stream *stream = bytes == UINT64_MAX ? NULL : budget_take(run->budget, TAG_PIPELINE, bytes);
    if (!stream)
        return budget_refused(run->budget, TAG_PIPELINE, bytes, error);
    *stream = (struct stream){.type = type_of(dataset), .dataset = dataset, .run = *run, .bytes = bytes};
    stream->others = (struct stream **)((uint8_t *)stream + own_bytes(dataset));
    return OPENED(out, stream, stream_close, open_inputs(stream, dataset, error));
}

void stream_close(struct stream *stream)
{
    if (!stream)
        return;
    if (stream->type->stop)
        stream->type->stop(stream);
    for (int i = stream->input_count; i-- > 0;)
        stream_close(stream_input(stream, i));
    budget_give(stream->run.budget, TAG_PIPELINE, stream, stream->bytes);
}

/* ---- running ---- */

plim_status stream_rewind_inputs(struct stream *stream, uint64_t epoch, plim_error *error)
{
    for (int i = 0; i < stream->input_count; i++)
        TRY(stream_rewind(stream_input(stream, i), epoch, error));
    return PLIM_OK;
}

plim_status stream_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    stream->epoch = epoch;
    if (stream->type->rewind)
        return stream->type->rewind(stream, epoch, error);
    if (stream->type->state_bytes)
        memset((uint8_t *)stream + sizeof *stream, 0, stream->type->state_bytes - sizeof *stream);
    return stream_rewind_inputs(stream, epoch, error);
}

/* Elements of the input, until the stage keeps some. */
static plim_status pull_kept(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    most = stream->careful ? 1 : most < FLOW_ROWS ? most : FLOW_ROWS;
    do {
        TRY(stream_pull(stream->input, to, most, error));
        if (!to->count)
            return PLIM_OK;
        TRY(stream->type->keep(stream, to, error));
    } while (!to->count);
    return PLIM_OK;
}

static plim_status pull_untimed(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    return (stream->type->keep ? pull_kept : stream->type->pull)(stream, to, most, error);
}

/* The inputs' time too: who reads the figures takes it off. */
static plim_status pull_timed(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    uint64_t start_ns = clock_ns();
    plim_status status = pull_untimed(stream, to, most, error);
    stream->busy_ns += clock_ns() - start_ns;
    stream->elements += (uint64_t)to->count;
    return status;
}

plim_status stream_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    to->count = 0;
    value_buffer_empty(&to->values);
    TRY(budget_go_on(stream->run.budget,
                     error)); /* every element passes here: no loop over them goes on after a stop */
    most = most < to->capacity ? most : to->capacity;
    return (stream->timed ? pull_timed : pull_untimed)(stream, to, most, error);
}

plim_status stream_pull_past(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error)
{
    *passed = 0;
    while (*passed < count) {
        TRY(stream_pull(stream, by, count - *passed, error));
        if (!by->count)
            break;
        *passed += by->count;
    }
    return PLIM_OK;
}

plim_status stream_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by, plim_error *error)
{
    *passed = 0;
    TRY(budget_go_on(stream->run.budget, error));
    if (stream->type->skip)
        return stream->type->skip(passed, stream, count, by, error);
    return stream_pull_past(passed, stream, count, by, error);
}

bool stream_describe(char out[256], struct stream *stream, uint64_t epoch, int64_t index, const char *column)
{
    const struct dataset *dataset = stream->dataset;
    const struct source *source = dataset->source;
    if (stream->type == &source_stream)
        return source->type->reader_describe &&
               source->type->reader_describe(out, ((struct source_stream *)stream)->reader, epoch, index);
    if (dataset->sequential)
        return dataset->stage->keeps_elements && stream_describe(out, stream->input, epoch, index, column);
    if (stream->input)
        return stream_describe(out, stream->input, epoch, index, column);
    return index >= 0 && (source->count < 0 || index < source->count) && source->type->describe &&
           source->type->describe(out, source, index, column);
}

void stream_be_careful(struct stream *stream)
{
    stream->careful = true;
    for (int i = 0; i < stream->input_count; i++)
        stream_be_careful(stream_input(stream, i));
}

void stream_time(struct stream *stream)
{
    stream->timed = true;
    if (!stream->dataset->sequential)
        flow_time(((struct flow_stream *)stream)->flow);
    for (int i = 0; i < stream->input_count; i++)
        stream_time(stream_input(stream, i));
}

void stream_times_each(stream_time_visit *visit, void *context, const struct stream *stream)
{
    uint64_t inputs = 0;
    for (int i = 0; i < stream->input_count; i++) {
        inputs += stream_input(stream, i)->busy_ns;
        stream_times_each(visit, context, stream_input(stream, i));
    }
    if (!stream->dataset->sequential) {
        flow_times_each(visit, context, ((const struct flow_stream *)stream)->flow);
        return;
    }
    visit(context, stream->dataset, stream->busy_ns > inputs ? stream->busy_ns - inputs : 0, stream->elements);
}

uint64_t stream_skipped(const struct stream *stream)
{
    uint64_t count = stream ? stream->skipped : 0;
    for (int i = 0; stream && i < stream->input_count; i++)
        count += stream_skipped(stream_input(stream, i));
    return count;
}

uint64_t stream_key(const struct stream *stream, uint64_t epoch)
{
    return random_key(stream->run.seed, (uint64_t)stream->dataset->node, epoch);
}

plim_status stream_too_large(const struct dataset *dataset, uint64_t wanted, uint64_t capacity, plim_error *error)
{
    const char *name = dataset->stage ? dataset->stage->name : dataset->source->type->name;
    fail(error, PLIM_OVER_BUDGET, "%s: an element needs %llu bytes, its room has %llu", name,
         (unsigned long long)wanted, (unsigned long long)capacity);
    return hint(error, PLIM_OVER_BUDGET, "set largest_element: %lluKiB", (unsigned long long)(wanted / 1024 + 1));
}
