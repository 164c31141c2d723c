/* api_map.c - a map whose function is the caller's, for a chunk or for an element. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

struct call_options {
    char name[64];
    plim_map map; /* columns: NULL, or in `spec` */
    bool has_spec;
    struct spec spec;
};

/* A column of the same name, type and shape is the one that came in. */
static int origin_of(const struct column *column, const struct spec *before)
{
    int c = spec_find(before, column->name);
    if (c < 0 || before->column[c].type != column->type || !shape_equal(&before->column[c].shape, &column->shape))
        return -1;
    return c;
}

static plim_status call_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct call_options *call = options;
    if (!call->map.chunk == !call->map.element)
        return fail(error, PLIM_USAGE, "%s: one of chunk and element must be given", call->name);
    if (!call->has_spec)
        return PLIM_OK;
    struct spec before = *spec;
    *spec = call->spec;
    for (int c = 0; c < spec->column_count; c++)
        spec->column[c].origin = origin_of(&spec->column[c], &before);
    return PLIM_OK;
}

/* A caller's function may fail without a word. */
static plim_status told(plim_status status, const struct call_options *options, long long index, plim_error *error)
{
    if (status == PLIM_OK || (error && error->code == status && error->message[0]))
        return status;
    return fail(error, status, "%s: the function failed (%s) at element %lld", options->name, plim_status_name(status),
                index);
}

static plim_status call_elements(const struct call_options *options, const struct map_call *call, plim_error *error)
{
    for (int64_t i = 0; i < call->count; i++) {
        void *from[MOST_COLUMNS], *to[MOST_COLUMNS];
        for (int c = 0; c < call->from_spec->column_count; c++)
            from[c] = (uint8_t *)call->from[c] + (uint64_t)i * call->from_stride[c];
        for (int c = 0; c < call->to_spec->column_count; c++)
            to[c] = (uint8_t *)call->to[c] + (uint64_t)i * call->to_stride[c];
        unsigned mode = floats_enter();
        plim_status status = options->map.element(options->map.context, from, to, call->index[i], error);
        floats_restore(mode); /* whatever the function has set */
        TRY(told(status, options, call->index[i], error));
    }
    return PLIM_OK;
}

static plim_status call_chunk(const struct call_options *options, const struct map_call *call, plim_error *error)
{
    const plim_chunk chunk = {
        .count = call->count,
        .from = call->from,
        .from_stride = call->from_stride,
        .to = call->to,
        .to_stride = call->to_stride,
        .index = call->index,
        .epoch = call->epoch,
        .seed = call->seed,
        .room = call->values,
    };
    unsigned mode = floats_enter();
    plim_status status = options->map.chunk(options->map.context, &chunk, error);
    floats_restore(mode); /* whatever the function has set */
    return status;
}

static plim_status call_run(const struct map_call *call, plim_error *error)
{
    const struct call_options *options = call->options;
    if (!options->map.chunk)
        return call_elements(options, call, error);
    return told(call_chunk(options, call, error), options, call->index[0], error);
}

static uint64_t call_room(const struct spec *from, const struct spec *to, const void *options)
{
    (void)from, (void)to;
    return ((const struct call_options *)options)->map.value_bytes;
}

/* By whether it makes values, and whether it is worth threads. */
#define CALL(values, slow)                                                                                             \
    {                                                                                                                  \
        .name = "function", .infer = call_infer, .run = call_run, .options_bytes = sizeof(struct call_options),        \
        .value_bytes = (values) ? call_room : NULL, .heavy = (slow)                                                    \
    }
static const struct map_function call_functions[2][2] = {{CALL(false, false), CALL(false, true)},
                                                         {CALL(true, false), CALL(true, true)}};

plim_dataset *plim_dataset_map(plim_dataset *dataset, const plim_map *map)
{
    plim_error error = {0};
    if (!dataset)
        return NULL;
    if (!map)
        return api_dataset_null(dataset, "the map");
    struct call_options options = {.map = *map, .has_spec = map->columns != NULL};
    snprintf(options.name, sizeof options.name, "%s", map->name ? map->name : "function");
    options.map.name = NULL;
    options.map.columns = NULL;
    if (map->columns && api_spec(&options.spec, map->columns, map->column_count, &error) != PLIM_OK)
        return api_dataset_fail(dataset, &error);
    return outside(dataset_map(inside(dataset), &call_functions[map->value_bytes != 0][map->heavy], &options));
}

void *plim_chunk_take(const plim_chunk *chunk, uint64_t bytes)
{
    return chunk && chunk->room ? value_buffer_take(chunk->room, bytes) : NULL;
}
