/* map_parse.c - records into columns: parse_example. The work is in formats/records/example.c. */
#include "pipeline/maps/map_parse.h"

#include <string.h>

#include "formats/tables/rows.h"
#include "pipeline/core/stage.h"
#include "pipeline/maps/map_functions.h"

struct parse_options {
    char column[64];
    struct example_parser *parser; /* owned */
    int feature_count;
    const struct feature *features; /* of the caller's: only while the dataset is built */
};

static const struct map_function map_parse;

/* ---- columns ---- */

static plim_status parse_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct parse_options *options = context;
    int from = map_column(spec, &map_parse, options);
    if (from < 0)
        return fail(error, PLIM_BAD_JOB, "parse_example: there is no column '%s'", options->column);
    if (spec->column[from].type != TYPE_STRING || spec->column[from].shape.rank)
        return fail(error, PLIM_BAD_JOB, "parse_example: column '%s' does not hold records", spec->column[from].name);
    for (int c = from; c + 1 < spec->column_count; c++)
        spec->column[c] = spec->column[c + 1];
    spec->column_count--;
    for (int f = 0; f < options->feature_count; f++) {
        const struct feature *feature = &options->features[f];
        struct shape shape = feature_shape(feature);
        if (spec_find(spec, feature->name) >= 0)
            return fail(error, PLIM_BAD_JOB, "parse_example: a second column '%s'", feature->name);
        TRY(spec_add(spec, feature->name, feature->type, &shape, error));
        spec->column[spec->column_count - 1].origin = -1;
    }
    return PLIM_OK;
}

/* ---- running ---- */

static plim_status parse_run(const struct map_call *call, plim_error *error)
{
    const struct parse_options *options = call->options;
    int from = map_column(call->from_spec, call->function, options),
        first = call->to_spec->column_count - options->feature_count;
    const struct row_target target = {
        .to = call->to + first, .stride = call->to_stride + first, .values = call->values};
    int64_t done = 0;
    plim_status status = example_parse(&done, options->parser, call->from[from], call->count, &target, error);
    if (status == PLIM_OK && done < call->count)
        return map_full(call, error);
    return map_bad(call, done, status, error);
}

static void parse_release(void *context)
{
    struct parse_options *options = context;
    example_parser_free(options->parser);
}

/* VarLen and sequence features are cells. */
static uint64_t parse_value_bytes(const struct spec *from, const struct spec *to, const void *context)
{
    const struct parse_options *options = context;
    (void)from;
    for (int c = to->column_count - options->feature_count; c < to->column_count; c++)
        if (column_is_variable(&to->column[c]))
            return MAP_RECORD_BYTES;
    return 0;
}

static const struct map_function map_parse = {
    .name = "parse_example",
    .infer = parse_infer,
    .run = parse_run,
    .options_bytes = sizeof(struct parse_options),
    .value_bytes = parse_value_bytes,
    .options_release = parse_release,
};

/* ---- building ---- */

struct dataset *dataset_parse_example(struct dataset *dataset, const char *column, const struct feature *features,
                                      int count, bool sequence)
{
    plim_error error = {0};
    struct parse_options options = {.feature_count = count, .features = features};
    if (dataset->error)
        return dataset;
    plim_status status = PLIM_OK;
    if (strlen(column) >= sizeof options.column)
        status = fail(&error, PLIM_BAD_JOB, "parse_example: there is no column '%s'", column);
    else
        memcpy(options.column, column, strlen(column) + 1);
    if (status == PLIM_OK)
        status = example_parser_make(&options.parser, dataset->budget, features, count, sequence, &error);
    if (status != PLIM_OK) {
        struct dataset *failed = dataset_failed(dataset->budget, &error);
        dataset_unref(dataset);
        return failed;
    }
    return dataset_map(dataset, &map_parse, &options);
}
