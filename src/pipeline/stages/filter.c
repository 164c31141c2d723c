/* filter.c - the elements that pass a test (filter), or those before the first that does not (take_while).

   The test is a function of the caller's over a chunk, or an expression over the columns of a row. How many pass is
   not known beforehand. */
#include <string.h>

#include "base/numbers/checked.h"
#include "base/text/settings.h"
#include "pipeline/core/chain_digest.h"
#include "pipeline/core/flow.h"
#include "pipeline/expression/expression.h"

struct filter_options {
    element_test *test;
    void *context;
    struct arena arena; /* of the expression; made only with one */
    struct expression *expression;
};

static plim_status filter_build(struct dataset *dataset, plim_error *error)
{
    (void)error;
    if (dataset->cardinality > 0)
        dataset->cardinality = CARDINALITY_UNKNOWN;
    return PLIM_OK;
}

static plim_status take_while_build(struct dataset *dataset, plim_error *error)
{
    (void)error;
    if (dataset->cardinality != 0)
        dataset->cardinality = CARDINALITY_UNKNOWN;
    return PLIM_OK;
}

/* ---- running ---- */

struct filter_stream {
    struct stream stream;
    bool over; /* take_while has met its end */
    bool keep[FLOW_ROWS];
};

static uint64_t filter_bytes(const struct dataset *dataset)
{
    (void)dataset;
    return sizeof(struct filter_stream);
}

static plim_status filter_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    ((struct filter_stream *)stream)->over = false;
    return stream_rewind_inputs(stream, epoch, error);
}

static void run_expression(bool *keep, const struct expression *expression, const struct chunk *chunk)
{
    void *from[MOST_COLUMNS];
    uint64_t stride[MOST_COLUMNS];
    for (int c = 0; c < chunk->spec->column_count; c++) {
        from[c] = chunk->column[c];
        stride[c] = chunk->spec->column[c].bytes;
    }
    expression_run(expression, chunk->count, from, stride, keep, sizeof *keep);
}

/* The next rows with what the test says of each. */
static plim_status pull_tested(struct filter_stream *self, struct chunk *to, int64_t most, plim_error *error)
{
    const struct filter_options *options = self->stream.dataset->options;
    most = self->stream.careful ? 1 : most < FLOW_ROWS ? most : FLOW_ROWS;
    TRY(stream_pull(self->stream.input, to, most, error));
    if (!to->count)
        return PLIM_OK;
    if (options->expression) {
        run_expression(self->keep, options->expression, to);
        return PLIM_OK;
    }
    return options->test(self->keep, to, options->context, error);
}

static plim_status filter_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct filter_stream *self = (struct filter_stream *)stream;
    int64_t kept = 0;
    do {
        TRY(pull_tested(self, to, most, error));
        if (!to->count)
            return PLIM_OK;
        for (int64_t row = 0; row < to->count; row++)
            if (self->keep[row])
                chunk_move(to, kept++, row);
    } while (!kept);
    to->count = kept;
    return PLIM_OK;
}

static plim_status take_while_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct filter_stream *self = (struct filter_stream *)stream;
    if (self->over)
        return PLIM_OK;
    TRY(pull_tested(self, to, most, error));
    for (int64_t row = 0; row < to->count; row++)
        if (!self->keep[row]) {
            self->over = true;
            to->count = row;
        }
    return PLIM_OK;
}

static const struct stream_type filter_stream = {.bytes = filter_bytes, .rewind = filter_rewind, .pull = filter_pull};
static const struct stream_type take_while_stream = {
    .bytes = filter_bytes, .rewind = filter_rewind, .pull = take_while_pull};

/* ---- building ---- */

static void filter_release(const struct dataset *dataset)
{
    struct filter_options *options = (struct filter_options *)(uintptr_t)dataset->options;
    if (options && options->arena.budget)
        arena_release(&options->arena);
}

static struct dataset *with_test(struct dataset *dataset, const struct stage *stage, element_test *test, void *context)
{
    void *room;
    struct dataset *node = dataset_stage(&dataset, stage, sizeof(struct filter_options), &room);
    if (!node)
        return dataset;
    node->options =
        memcpy(room, &(struct filter_options){.test = test, .context = context}, sizeof(struct filter_options));
    return dataset_built(node);
}

struct dataset *dataset_filter(struct dataset *dataset, element_test *test, void *context)
{
    return with_test(dataset, &stage_filter, test, context);
}

struct dataset *dataset_take_while(struct dataset *dataset, element_test *test, void *context)
{
    return with_test(dataset, &stage_take_while, test, context);
}

/* ---- expressions ---- */

static plim_status check_result(enum type type, const struct shape *shape, const char *where, const char *name,
                                plim_error *error)
{
    char text[64];
    if (type == TYPE_BOOL && shape->rank == 0)
        return PLIM_OK;
    shape_text(text, sizeof text, shape, false);
    fail_at(error, PLIM_BAD_JOB, where, "%s: the test gives %s %s, not true or false", name, type_name(type), text);
    return hint(error, PLIM_BAD_JOB, "%s: \"label < 5\"", name);
}

/* Into the node's own options, whose arena lives and goes with the node. */
static plim_status read_test(struct filter_options *options, const struct dataset *input, const char *name,
                             const char *text, const char *where, plim_error *error)
{
    enum type type;
    struct shape shape;
    TRY(expression_parse(&options->expression, &options->arena, text, where, error));
    plim_status status = expression_check(&type, &shape, options->expression, input->spec, error);
    if (status != PLIM_OK)
        return place(error, status, where);
    return check_result(type, &shape, where, name, error);
}

static struct dataset *with_expression(struct dataset *dataset, const struct stage *stage, const char *text,
                                       const char *where)
{
    void *room;
    plim_error error = {0};
    struct dataset *node = dataset_stage(&dataset, stage, sizeof(struct filter_options), &room);
    if (!node)
        return dataset;
    struct filter_options *options = room;
    *options = (struct filter_options){0};
    node->options = options;
    node->number = digest_number(text, strlen(text));
    arena_init(&options->arena, node->budget, TAG_PIPELINE);
    options->arena.block_bytes = 4096;
    if (read_test(options, node->input, stage->name, text, where, &error) == PLIM_OK)
        return dataset_built(node);
    struct dataset *failed = dataset_failed(node->budget, &error);
    dataset_unref(node);
    return failed;
}

struct dataset *dataset_filter_expression(struct dataset *dataset, const char *text, const char *where)
{
    return with_expression(dataset, &stage_filter, text, where);
}

struct dataset *dataset_take_while_expression(struct dataset *dataset, const char *text, const char *where)
{
    return with_expression(dataset, &stage_take_while, text, where);
}

static plim_status read_stage(struct dataset **dataset, const struct stage *stage, const char *job,
                              const struct yaml *value, plim_error *error)
{
    char where[256];
    yaml_place(where, job, value);
    if (value->kind != YAML_SCALAR)
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "%s: expected a test", stage->name), "%s: \"label < 5\"",
                    stage->name);
    *dataset = with_expression(*dataset, stage, value->text, where);
    return PLIM_OK;
}

static plim_status filter_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                               plim_error *error)
{
    (void)seed;
    return read_stage(dataset, &stage_filter, job, value, error);
}

static plim_status take_while_read(struct dataset **dataset, const char *job, const struct yaml *value, uint64_t seed,
                                   plim_error *error)
{
    (void)seed;
    return read_stage(dataset, &stage_take_while, job, value, error);
}

const struct stage stage_filter = {
    .name = "filter",
    .build = filter_build,
    .stream = &filter_stream,
    .keeps_elements = true,
    .sequential = true,
    .release = filter_release,
    .read = filter_read,
};

const struct stage stage_take_while = {
    .name = "take_while",
    .build = take_while_build,
    .stream = &take_while_stream,
    .keeps_elements = true,
    .sequential = true,
    .release = filter_release,
    .read = take_while_read,
};
