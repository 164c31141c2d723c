/* map_decode_raw.c - the bytes of strings as numbers: tf.io.decode_raw.

   decode_raw: uint8                                                 as many as the bytes are: shape (-1)
   decode_raw: {out_type: float32, shape: [28, 28], little_endian: true}   exactly so many: a column of this shape
   decode_raw: {out_type: uint8, offset: 1, shape: [3, 32, 32]}            what stands behind the first byte */
#include <string.h>

#include "base/numbers/count.h"
#include "formats/tables/rows.h"
#include "pipeline/maps/map_functions.h"

static plim_status raw_infer(struct column *column, const struct map_function *self, const void *context,
                             plim_error *error)
{
    const struct decode_raw_options *options = context;
    if (column->type != TYPE_STRING || column->shape.rank)
        return fail(error, PLIM_BAD_JOB, "%s: column '%s' does not hold strings", self->name, column->name);
    column->type = options->type;
    column->shape = options->has_shape ? options->shape : (struct shape){.rank = 1, .dim = {-1}};
    column->origin = -1;
    return PLIM_OK;
}

static plim_status wrong_size(const struct map_row *row, uint64_t bytes, uint64_t wanted, plim_error *error)
{
    const struct decode_raw_options *options = row->options;
    long long element = map_element(row->call, row->index);
    if (options->has_shape)
        return fail(error, PLIM_BAD_DATA, "element %lld: decode_raw: %llu bytes; the shape takes %llu", element,
                    (unsigned long long)bytes, (unsigned long long)wanted);
    return fail(error, PLIM_BAD_DATA, "element %lld: decode_raw: %llu bytes are no whole number of %s", element,
                (unsigned long long)bytes, type_name(options->type));
}

static plim_status raw_row(const struct map_row *row, plim_error *error)
{
    const struct decode_raw_options *options = row->options;
    uint64_t wanted = options->has_shape ? row->to->bytes : 0;
    uint32_t size = (uint32_t)type_bytes(options->type);
    struct string from;
    memcpy(&from, row->values, sizeof from);
    uint64_t bytes = from.bytes < options->offset ? 0 : from.bytes - options->offset;
    if (from.bytes < options->offset || (options->has_shape ? bytes != wanted : bytes % size != 0))
        return wrong_size(row, from.bytes, wanted + options->offset, error);
    void *to = map_result(row, &(struct shape){.rank = 1, .dim = {(int64_t)(bytes / size)}});
    if (!to)
        return map_full(row->call, error);
    memcpy(to, from.data + options->offset, bytes);
    if (options->big_endian)
        swap_elements(to, bytes, size);
    return PLIM_OK;
}

static uint64_t raw_value_bytes(const struct spec *from, const struct spec *to, const void *context)
{
    const struct decode_raw_options *options = context;
    (void)from, (void)to;
    return options->has_shape ? 0 : MAP_RECORD_BYTES;
}

/* ---- job files ---- */

struct raw_settings {
    const char *out_type;
    const struct yaml *shape;
    bool little_endian;
    int64_t offset;
};

static plim_status raw_read(void *context, const struct map_function *self, const char *job, const struct yaml *value,
                            plim_error *error)
{
    static const struct setting settings[] = {
        {"out_type", SETTING_WORD, offsetof(struct raw_settings, out_type), 0},
        {"shape", SETTING_NODE, offsetof(struct raw_settings, shape), 0},
        {"little_endian", SETTING_BOOL, offsetof(struct raw_settings, little_endian), 0},
        {"offset", SETTING_WHOLE, offsetof(struct raw_settings, offset), 0},
    };
    struct decode_raw_options *options = context;
    struct raw_settings read = {.little_endian = true};
    TRY(map_settings_read(&read, &(struct map_settings){settings, COUNT(settings), self->name}, job, value, error));
    if (!read.out_type || !type_from_name(&options->type, read.out_type) || options->type == TYPE_STRING)
        return hint(error, yaml_fail(error, PLIM_BAD_JOB, job, value, "decode_raw: expected a type of numbers"),
                    "decode_raw: {out_type: uint8, shape: [28, 28]}");
    options->big_endian = !read.little_endian;
    options->offset = (uint64_t)read.offset;
    options->has_shape = read.shape != NULL;
    return read.shape ? map_fixed_shape_read(&options->shape, job, read.shape, error) : PLIM_OK;
}

const struct map_function map_decode_raw = {
    .name = "decode_raw",
    .infer_column = raw_infer,
    .run_row = raw_row,
    .options_bytes = sizeof(struct decode_raw_options),
    .value_bytes = raw_value_bytes,
    .read = raw_read,
};
