/* map_expression.c - expressions over the columns of a row as a map.

   All of them see the columns as they come in, whatever the others make of them: a column is written in place only
   where nothing but its own expression reads it. */
#include <stdio.h>
#include <string.h>

#include "formats/tables/rows.h"
#include "pipeline/core/pipeline_digest.h"
#include "pipeline/core/stage.h"
#include "pipeline/expression/expression.h"

struct column_expression {
    struct expression *expression;
    char name[64];
    int from, to; /* columns; from -1: it is a new one */
    bool in_place;
    enum type type;
    struct shape shape;
};

struct expression_options {
    int count;
    const struct map_expression *list; /* of the caller's: only while the dataset is built */
    struct arena arena;                /* of all below */
    struct column_expression *made;
    int64_t number; /* stands for all of them */
};

static plim_status make_one(struct column_expression *out, struct arena *arena, const struct map_expression *said,
                            const struct spec *from, plim_error *error)
{
    if (!*said->column || strlen(said->column) >= sizeof out->name) {
        fail(error, PLIM_BAD_JOB, "map: the name of a column has 1 to %d bytes", (int)sizeof out->name - 1);
    } else {
        snprintf(out->name, sizeof out->name, "%s", said->column);
        TRY(expression_parse(&out->expression, arena, said->text, said->where, error));
        TRY(expression_check(&out->type, &out->shape, out->expression, from, error));
        out->from = spec_find(from, out->name);
        return PLIM_OK;
    }
    return said->where ? error_at(error, PLIM_BAD_JOB, said->where) : PLIM_BAD_JOB;
}

static bool others_read(const struct expression_options *options, int self, int column)
{
    for (int i = 0; i < options->count; i++)
        if (i != self && expression_reads(options->made[i].expression, column))
            return true;
    return false;
}

static plim_status expressions_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    struct expression_options *options = context;
    int columns = from->column_count;
    arena_init(&options->arena, budget, TAG_PIPELINE);
    options->arena.block_bytes = 4096;
    options->made = arena_array(&options->arena, (size_t)options->count, sizeof *options->made);
    if (!options->made)
        return arena_refused(&options->arena, error);
    for (int i = 0; i < options->count; i++)
        TRY(make_one(&options->made[i], &options->arena, &options->list[i], from, error));
    for (int i = 0; i < options->count; i++) {
        const char *text = options->list[i].text, *column = options->made[i].name;
        const int64_t said[] = {options->number, digest_number(column, strlen(column)),
                                digest_number(text, strlen(text))};
        options->number = digest_number(said, sizeof said);
    }
    for (int i = 0; i < options->count; i++) {
        struct column_expression *made = &options->made[i];
        made->to = made->from >= 0 ? made->from : columns++;
        made->in_place = made->from >= 0 && expression_in_place(made->expression, made->from) &&
                         !others_read(options, i, made->from);
        for (int k = 0; k < i; k++)
            if (strcmp(made->name, options->made[k].name) == 0)
                return fail(error, PLIM_BAD_JOB, "map: two expressions for the column '%s'", made->name);
    }
    return PLIM_OK;
}

static int64_t expressions_number(const void *context)
{
    return ((const struct expression_options *)context)->number;
}

static plim_status expressions_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct expression_options *options = context;
    for (int i = 0; i < options->count; i++) {
        const struct column_expression *made = &options->made[i];
        if (made->from < 0) {
            TRY(spec_add(spec, made->name, made->type, &made->shape, error));
        } else {
            spec->column[made->to].type = made->type;
            spec->column[made->to].shape = made->shape;
        }
        spec->column[made->to].origin = made->in_place ? made->from : -1;
    }
    return PLIM_OK;
}

static plim_status expressions_run(const struct map_call *call, plim_error *error)
{
    const struct expression_options *options = call->options;
    (void)error;
    for (int i = 0; i < options->count; i++) {
        const struct column_expression *made = &options->made[i];
        expression_run(made->expression, call->count, call->from, call->from_stride, call->to[made->to],
                       call->to_stride[made->to]);
    }
    return PLIM_OK;
}

static void expressions_release(void *context)
{
    struct expression_options *options = context;
    if (options->arena.budget)
        arena_release(&options->arena);
}

static const struct map_function map_expressions = {
    .name = "expression",
    .options_make = expressions_make,
    .options_number = expressions_number,
    .infer = expressions_infer,
    .run = expressions_run,
    .options_bytes = sizeof(struct expression_options),
    .options_release = expressions_release,
};

struct dataset *dataset_map_expressions(struct dataset *dataset, const struct map_expression *list, int count)
{
    const struct expression_options options = {.count = count, .list = list};
    return dataset_map(dataset, &map_expressions, &options);
}

struct dataset *dataset_map_expression(struct dataset *dataset, const char *column, const char *text)
{
    return dataset_map_expressions(dataset, &(struct map_expression){.column = column, .text = text}, 1);
}
