/* map_decode.c - encoded images into pixels: decode_jpeg and its kin.

   The value buffer holds the pixels, and behind them, while one is decoded, what the decoder works with: one size, that
   of largest_element, bounds both. */
#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "pipeline/maps/images/map_image.h"

/* For 1024 pixels a row, whatever the format; progressive files of that size take more. */
#define WORK_BYTES ((uint64_t)1024 * 1024)

struct decode_state {
    struct image_decoder *decoder;
};

static plim_status decode_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct decode_options *decode = options;
    int c = map_column(spec, &map_decode_image, decode);
    if (c < 0)
        return map_no_column(spec, "decode", decode->column, error);
    struct column *column = &spec->column[c];
    if (column->type != TYPE_STRING || column->shape.rank != 0)
        return fail(error, PLIM_BAD_JOB, "decode: column '%s' is %s, not the bytes of an image", column->name,
                    type_name(column->type));
    if (decode->channels != 0 && decode->channels != 1 && decode->channels != 3 && decode->channels != 4)
        return fail(error, PLIM_BAD_JOB, "decode: channels are 0 (as stored), 1, 3 or 4, not %lld",
                    (long long)decode->channels);
    TRY(image_prepare(error));
    column->type = TYPE_U8;
    column->shape = shape_of(3, (int64_t[]){-1, -1, decode->channels ? decode->channels : -1});
    return PLIM_OK;
}

/* ---- running ---- */

/* At most: scaled decoding makes fewer. */
static uint64_t pixel_bytes(const struct image_info *info, const struct decode_options *decode)
{
    uint64_t bytes, channels = (uint64_t)(decode->channels ? decode->channels : info->channels);
    bool fits = mul_u64(&bytes, (uint64_t)info->height, (uint64_t)info->width) && mul_u64(&bytes, bytes, channels);
    return fits && bytes < UINT64_MAX / 4 ? bytes : UINT64_MAX / 4;
}

/* With the pixels before its work memory, at the end of the value buffer. */
static plim_status decode_into(struct image *image, const struct map_call *call, const struct string *string,
                               plim_error *error)
{
    const struct decode_options *decode = call->options;
    const struct decode_state *state = call->state;
    struct value_buffer *buffer = call->values, pixels = *buffer;
    struct image_info info;
    TRY(image_probe(&info, string->data, (size_t)string->bytes, error));
    uint64_t work = info.work_bytes > UINT64_MAX / 2 ? UINT64_MAX / 2 : round_up(info.work_bytes, VALUE_ALIGNMENT);
    uint64_t end = buffer->capacity & ~(uint64_t)(VALUE_ALIGNMENT - 1);
    if (work >= end || end - work <= buffer->used) {
        value_buffer_refuse(buffer, add_most(work, pixel_bytes(&info, decode) + VALUE_ALIGNMENT));
        return PLIM_OVER_BUDGET;
    }
    pixels.capacity = end - work;
    image_decoder_lend(state->decoder, buffer->bytes + pixels.capacity, work);
    plim_status status = image_decode(image, state->decoder, string, (int)decode->channels, &pixels, error);
    buffer->used = pixels.used;
    buffer->wanted = pixels.wanted ? add_most(pixels.wanted, work) : 0;
    return status;
}

static plim_status decode_row(const struct map_row *row, plim_error *error)
{
    struct image image;
    plim_status status = decode_into(&image, row->call, row->values, error);
    if (status == PLIM_OVER_BUDGET && row->call->values->wanted)
        return map_full(row->call, error);
    if (status != PLIM_OK)
        return map_reword(row->call, row->index, status, error);
    *(struct cell *)(void *)row->to_row =
        (struct cell){image.pixels, {image.shape.dim[0], image.shape.dim[1], image.shape.dim[2]}};
    return PLIM_OK;
}

static uint64_t decode_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    (void)from, (void)to, (void)options;
    return MAP_VALUES + WORK_BYTES;
}

/* ---- the decoder of a worker ---- */

static uint64_t decode_state_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    (void)from, (void)to, (void)options;
    return sizeof(struct decode_state);
}

static uint64_t decode_state_cost(const struct spec *from, const struct spec *to, const void *options)
{
    (void)from, (void)to, (void)options;
    return image_decoder_cost(0);
}

static plim_status decode_state_start(void *state, struct budget *budget, const struct spec *from,
                                      const struct spec *to, const void *options, plim_error *error)
{
    const struct decode_options *decode = options;
    struct decode_state *self = state;
    (void)from, (void)to;
    return image_decoder_make(&self->decoder, budget, &decode->image, 0, error);
}

static void decode_state_stop(void *state)
{
    struct decode_state *self = state;
    image_decoder_free(self->decoder);
}

/* ---- job files ---- */

struct decode_settings {
    int64_t channels, ratio;
    const char *dct;
    bool scaled, fancy_upscaling;
    const struct yaml *scaled_to;
};

/* `decode_jpeg`, `decode_jpeg: 3`, `decode_jpeg: {channels: 3, dct: accurate, ratio: 2}`. */
static plim_status decode_read(void *options, const struct map_function *self, const char *job,
                               const struct yaml *value, plim_error *error)
{
    static const struct setting settings[] = {
        {"channels", SETTING_WHOLE, offsetof(struct decode_settings, channels), 0},
        {"ratio", SETTING_WHOLE, offsetof(struct decode_settings, ratio), 1},
        {"dct", SETTING_WORD, offsetof(struct decode_settings, dct), 0},
        {"fancy_upscaling", SETTING_BOOL, offsetof(struct decode_settings, fancy_upscaling), 0},
        {"scaled", SETTING_BOOL, offsetof(struct decode_settings, scaled), 0},
        {"scaled_to", SETTING_NODE, offsetof(struct decode_settings, scaled_to), 0},
    };
    static const char *const names[] = {"tf", "accurate"};
    static const struct word_choices transforms = {.what = "dct", .names = names, .count = COUNT(names)};
    struct decode_options *decode = options;
    struct decode_settings read = {.ratio = 1, .dct = "tf", .fancy_upscaling = true};
    int transform = 0;
    (void)self;
    if (value)
        TRY(map_settings_read(&read, &(struct map_settings){settings, COUNT(settings), "channels"}, job, value, error));
    if (read.ratio != 1 && read.ratio != 2 && read.ratio != 4 && read.ratio != 8)
        return fail(error, PLIM_BAD_JOB, "ratio: is 1, 2, 4 or 8, not %lld", (long long)read.ratio);
    if (read.scaled_to) {
        int64_t size[2];
        TRY(map_read_sizes(size, 2, 1, "scaled_to", job, read.scaled_to, error));
        decode->image.least_height = size[0];
        decode->image.least_width = size[1];
    }
    decode->channels = read.channels;
    decode->scaled = read.scaled;
    decode->image.ratio = (int)read.ratio;
    decode->image.plain_upsampling = !read.fancy_upscaling;
    TRY(map_choice_read(&transform, &transforms, read.dct, job, value, error));
    decode->image.accurate = transform == 1;
    return PLIM_OK;
}

/* scaled: true is as small as the resize behind it allows. */
static plim_status decode_precede(void *options, const char *job, const char *next, const struct yaml *next_value,
                                  plim_error *error)
{
    struct decode_options *decode = options;
    union map_options read;
    if (!decode->scaled)
        return PLIM_OK;
    if (!next || strcmp(next, map_resize.name) != 0) {
        fail(error, PLIM_BAD_JOB, "scaled: true takes its size from a resize right behind it, which is not there");
        return hint(error, PLIM_BAD_JOB, "scaled_to: [224, 224]");
    }
    TRY(map_function_read(&read, &map_resize, job, next_value, error));
    const struct resize_options *resize = (const void *)&read;
    decode->image.least_height = resize->height;
    decode->image.least_width = resize->width;
    return PLIM_OK;
}

#define DECODE(word)                                                                                                   \
    const struct map_function map_##word = {                                                                           \
        .name = #word,                                                                                                 \
        .infer = decode_infer,                                                                                         \
        .run_row = decode_row,                                                                                         \
        .options_bytes = sizeof(struct decode_options),                                                                \
        .value_bytes = decode_value_bytes,                                                                             \
        .state_bytes = decode_state_bytes,                                                                             \
        .state_cost = decode_state_cost,                                                                               \
        .state_start = decode_state_start,                                                                             \
        .state_stop = decode_state_stop,                                                                               \
        .heavy = true,                                                                                                 \
        .bare = true,                                                                                                  \
        .read = decode_read,                                                                                           \
        .precede = decode_precede,                                                                                     \
    };

DECODE(decode_jpeg)
DECODE(decode_png)
DECODE(decode_gif)
DECODE(decode_bmp)
DECODE(decode_image)
