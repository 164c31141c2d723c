/* map_decode_raw.c - the bytes of strings as numbers: tf.io.decode_raw.

   decode_raw: uint8                                                 as many as the bytes are: shape (-1)
   decode_raw: {out_type: float32, shape: [28, 28], little_endian: true}   exactly so many: a column of this shape
   decode_raw: {out_type: uint8, offset: 1, shape: [3, 32, 32]}            what stands behind the first byte */
#include "pipeline/maps/map_decode_raw.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text/settings.h"
#include "formats/tables/rows.h"
#include "pipeline/core/stage.h"

#define CELLS_ROOM ((uint64_t)256 * 1024)

static plim_status raw_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct decode_raw_options *options = context;
    int c = map_first_column(spec, options->column);
    if (c < 0)
        return map_no_column(spec, "decode_raw", options->column, error);
    struct column *column = &spec->column[c];
    if (column->type != TYPE_STRING || column->shape.rank)
        return fail(error, PLIM_BAD_JOB, "decode_raw: column '%s' does not hold strings", column->name);
    column->type = options->type;
    column->shape = options->has_shape ? options->shape : (struct shape){.rank = 1, .dim = {-1}};
    column->origin = -1;
    return PLIM_OK;
}

static plim_status wrong_size(const struct map_call *call, int64_t row, uint64_t bytes, uint64_t wanted,
                              plim_error *error)
{
    const struct decode_raw_options *options = call->options;
    if (options->has_shape)
        return fail(error, PLIM_BAD_DATA, "element %lld: decode_raw: %llu bytes; the shape takes %llu",
                    map_element(call, row), (unsigned long long)bytes, (unsigned long long)wanted);
    return fail(error, PLIM_BAD_DATA, "element %lld: decode_raw: %llu bytes are no whole number of %s",
                map_element(call, row), (unsigned long long)bytes, type_name(options->type));
}

/* Where the numbers of a row go; NULL: the room is full. */
static void *place_for(const struct map_call *call, int c, int64_t row, uint64_t bytes)
{
    const struct decode_raw_options *options = call->options;
    uint8_t *at = (uint8_t *)call->to[c] + (uint64_t)row * call->to_stride[c];
    if (options->has_shape)
        return at;
    struct cell cell = {.data = room_take(call->room, bytes), .dim = {(int64_t)(bytes / type_bytes(options->type))}};
    if (cell.data)
        memcpy(at, &cell, sizeof cell);
    return cell.data;
}

static plim_status raw_run(const struct map_call *call, plim_error *error)
{
    const struct decode_raw_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    uint64_t wanted = 0;
    uint32_t size = (uint32_t)type_bytes(options->type);
    if (options->has_shape)
        wanted = call->to_spec->column[c].bytes;
    for (int64_t i = 0; i < call->count; i++) {
        struct string from;
        memcpy(&from, (const uint8_t *)call->from[c] + (uint64_t)i * call->from_stride[c], sizeof from);
        uint64_t bytes = from.bytes < options->offset ? 0 : from.bytes - options->offset;
        if (from.bytes < options->offset || (options->has_shape ? bytes != wanted : bytes % size != 0))
            return wrong_size(call, i, from.bytes, wanted + options->offset, error);
        void *to = place_for(call, c, i, bytes);
        if (!to)
            return map_full(call, error);
        memcpy(to, from.data + options->offset, bytes);
        if (options->big_endian)
            swap_elements(to, bytes, size);
    }
    return PLIM_OK;
}

static uint64_t raw_room(const struct spec *from, const struct spec *to, const void *context)
{
    const struct decode_raw_options *options = context;
    (void)from, (void)to;
    return options->has_shape ? 0 : CELLS_ROOM;
}

/* ---- job files ---- */

struct raw_words {
    const char *out_type;
    const struct yaml *shape;
    bool little_endian;
    int64_t offset;
};

static const struct setting raw_settings[] = {
    {"out_type", SETTING_WORD, offsetof(struct raw_words, out_type), 0},
    {"shape", SETTING_NODE, offsetof(struct raw_words, shape), 0},
    {"little_endian", SETTING_BOOL, offsetof(struct raw_words, little_endian), 0},
    {"offset", SETTING_WHOLE, offsetof(struct raw_words, offset), 0},
};

plim_status map_read_shape(struct shape *out, const char *job, const struct yaml *list, plim_error *error)
{
    const struct setting extent = {"shape", SETTING_WHOLE, 0, 1};
    char where[256];
    uint64_t bytes;
    bool fits = list->kind == YAML_LIST && list->count < MOST_AXES;
    for (const struct yaml *item = fits ? list->first : NULL; item; item = item->next)
        TRY(setting_value(&out->dim[out->rank++], &extent, job, item, error));
    if (fits && shape_bytes(&bytes, out, TYPE_F64))
        return PLIM_OK;
    yaml_place(where, job, list);
    return fail_at(error, PLIM_BAD_JOB, where, "shape: expected a list of at most %d whole numbers", MOST_AXES - 1);
}

static plim_status raw_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct decode_raw_options *options = context;
    struct raw_words words = {.little_endian = true};
    char where[256];
    if (value->kind == YAML_SCALAR)
        words.out_type = value->text;
    else
        TRY(settings_read(&words, raw_settings, sizeof raw_settings / sizeof *raw_settings, job, value, error));
    yaml_place(where, job, value);
    if (!words.out_type || !type_from_name(&options->type, words.out_type) || options->type == TYPE_STRING) {
        fail_at(error, PLIM_BAD_JOB, where, "decode_raw: expected a type of numbers");
        return hint(error, PLIM_BAD_JOB, "decode_raw: {out_type: uint8, shape: [28, 28]}");
    }
    options->big_endian = !words.little_endian;
    options->offset = (uint64_t)words.offset;
    options->has_shape = words.shape != NULL;
    return words.shape ? map_read_shape(&options->shape, job, words.shape, error) : PLIM_OK;
}

const struct map_function map_decode_raw = {
    .name = "decode_raw",
    .infer = raw_infer,
    .run = raw_run,
    .options_bytes = sizeof(struct decode_raw_options),
    .room_bytes = raw_room,
    .read = raw_read,
};
