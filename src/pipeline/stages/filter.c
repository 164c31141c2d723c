/* filter.c - the elements that pass a test (filter), or those before the first that does not (take_while).

   The test is a function of the caller's over a chunk, or an expression over the columns of a row. How many pass is
   not known beforehand. */
#include <string.h>

#include "pipeline/core/flow.h"
#include "pipeline/core/pipeline_digest.h"
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

static void run_expression(bool *keep, const struct expression *expression, const struct chunk *chunk)
{
    struct row_pointers from;
    chunk_pointers(&from, chunk);
    expression_run(expression, chunk->count, from.row, from.stride, keep, sizeof *keep);
}

/* What the test says of each row. */
static plim_status test_rows(struct filter_stream *self, struct chunk *to, plim_error *error)
{
    const struct filter_options *options = self->stream.dataset->options;
    if (!options->expression)
        return options->test(self->keep, to, options->context, error);
    run_expression(self->keep, options->expression, to);
    return PLIM_OK;
}

static plim_status filter_keep(struct stream *stream, struct chunk *to, plim_error *error)
{
    struct filter_stream *self = (struct filter_stream *)stream;
    int64_t kept = 0;
    TRY(test_rows(self, to, error));
    for (int64_t row = 0; row < to->count; row++)
        if (self->keep[row])
            chunk_move(to, kept++, row);
    to->count = kept;
    return PLIM_OK;
}

static plim_status take_while_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct filter_stream *self = (struct filter_stream *)stream;
    if (self->over)
        return PLIM_OK;
    most = stream->careful ? 1 : most < FLOW_ROWS ? most : FLOW_ROWS;
    TRY(stream_pull(stream->input, to, most, error));
    if (to->count)
        TRY(test_rows(self, to, error));
    for (int64_t row = 0; row < to->count; row++)
        if (!self->keep[row]) {
            self->over = true;
            to->count = row;
        }
    return PLIM_OK;
}

static const struct stream_type filter_stream = {.state_bytes = sizeof(struct filter_stream), .keep = filter_keep};
static const struct stream_type take_while_stream = {.state_bytes = sizeof(struct filter_stream),
                                                     .pull = take_while_pull};

/* ---- building ---- */

static void filter_release(const struct dataset *dataset)
{
    struct filter_options *options = (struct filter_options *)(uintptr_t)dataset->options;
    if (options && options->arena.budget)
        arena_release(&options->arena);
}

static struct dataset *with_test(struct dataset *dataset, const struct stage *stage, element_test *test, void *context)
{
    const struct filter_options options = {.test = test, .context = context};
    return dataset_add(dataset, stage, (struct stage_arguments){.options = &options, .options_bytes = sizeof options});
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
        return error_at(error, status, where);
    return check_result(type, &shape, where, name, error);
}

static struct dataset *with_expression(struct dataset *dataset, const struct stage *stage, const char *text,
                                       const char *where)
{
    void *block;
    plim_error error = {0};
    struct dataset *node = dataset_stage(&dataset, stage, sizeof(struct filter_options), &block);
    if (!node)
        return dataset;
    struct filter_options *options = block;
    node->options = options;
    node->number = digest_number(text, strlen(text));
    arena_init(&options->arena, node->budget, TAG_PIPELINE);
    options->arena.block_bytes = 4096;
    return dataset_finish(node, read_test(options, node->input, stage->name, text, where, &error), &error);
}

struct dataset *dataset_filter_expression(struct dataset *dataset, const char *text, const char *where)
{
    return with_expression(dataset, &stage_filter, text, where);
}

struct dataset *dataset_take_while_expression(struct dataset *dataset, const char *text, const char *where)
{
    return with_expression(dataset, &stage_take_while, text, where);
}

static plim_status test_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    if (entry->value->kind != YAML_SCALAR)
        return stage_bad(entry, "expected a test", "\"label < 5\"", error);
    *dataset = with_expression(*dataset, entry->stage, entry->value->text, entry->where);
    return PLIM_OK;
}

const struct stage stage_filter = {
    .name = "filter",
    .build = filter_build,
    .stream = &filter_stream,
    .keeps_elements = true,
    .sequential = true,
    .release = filter_release,
    .read = test_read,
};

const struct stage stage_take_while = {
    .name = "take_while",
    .build = take_while_build,
    .stream = &take_while_stream,
    .keeps_elements = true,
    .sequential = true,
    .release = filter_release,
    .read = test_read,
};
