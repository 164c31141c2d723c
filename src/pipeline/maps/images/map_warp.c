/* map_warp.c - Keras's RandomRotation, RandomZoom and RandomTranslation. */
#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/random.h"
#include "base/text/settings.h"
#include "pipeline/core/stage.h"
#include "pipeline/maps/images/map_image.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static plim_status infer(struct spec *spec, const struct warp_options *warp, const char *name, plim_error *error)
{
    int c;
    TRY(map_image_column(&c, spec, name, warp->column, false, error));
    spec->column[c].type = TYPE_F32;
    spec->column[c].origin = -1; /* each pixel is made of several: not in place */
    return PLIM_OK;
}

static uint64_t room(const struct spec *from, const struct spec *to, const void *options)
{
    const struct warp_options *warp = options;
    int c = map_first_column(to, warp->column);
    const struct column *before = &from->column[c];
    uint64_t bytes = map_values_room(&to->column[c]);
    if (before->type == TYPE_U8) /* it is made float32 first */
        bytes += (bytes ? MAP_VALUES : (uint64_t)shape_count(&before->shape)) * sizeof(float) + ROOM_ALIGNMENT;
    return bytes;
}

/* The pixels as float32, in the room where they are not. NULL: it is full. */
static const float *as_floats(struct room *to, const void *pixels, struct picture *picture)
{
    if (picture->type == TYPE_F32)
        return pixels;
    uint64_t count = picture_values(picture);
    float *floats = room_take(to, count * sizeof *floats);
    for (uint64_t i = 0; floats && i < count; i++)
        floats[i] = ((const uint8_t *)pixels)[i];
    picture->type = TYPE_F32;
    return floats;
}

typedef struct affine draw_affine(const struct warp_options *warp, const uint32_t random[4],
                                  const struct picture *picture);

static plim_status warp_row(const struct map_call *call, int c, int64_t row, draw_affine *draw, plim_error *error)
{
    const struct warp_options *options = call->options;
    uint32_t random[4];
    struct picture picture;
    const void *pixels = map_image_from(&picture, call, c, row);
    struct picture to = picture;
    to.type = TYPE_F32;
    float *out = map_image_to(call, c, row, &to);
    uint64_t used = call->room ? call->room->used : 0;
    const float *in = out ? as_floats(call->room, pixels, &picture) : NULL;
    if (!in)
        return map_full(call, error);
    random_block(random, call->seed, call->epoch, (uint64_t)call->index[row]);
    const struct warp warp = {.affine = draw(options, random, &picture),
                              .fill = options->fill,
                              .fill_value = (float)options->fill_value,
                              .nearest = options->nearest};
    plim_status status = warp_image(out, in, &picture, &warp, error);
    if (call->room)
        call->room->used = used;
    return status;
}

static plim_status run(const struct map_call *call, draw_affine *draw, plim_error *error)
{
    const struct warp_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    for (int64_t i = 0; i < call->count; i++)
        TRY(warp_row(call, c, i, draw, error));
    return PLIM_OK;
}

static struct affine draw_rotation(const struct warp_options *warp, const uint32_t random[4],
                                   const struct picture *picture)
{
    return affine_rotation(factor_draw(&warp->height, random[0]), picture->height, picture->width);
}

static struct affine draw_zoom(const struct warp_options *warp, const uint32_t random[4], const struct picture *picture)
{
    float tall = factor_draw(&warp->height, random[0]);
    float wide = warp->same ? tall : factor_draw(&warp->width, random[1]);
    return affine_zoom(tall, wide, picture->height, picture->width);
}

static struct affine draw_translation(const struct warp_options *warp, const uint32_t random[4],
                                      const struct picture *picture)
{
    return affine_translation(factor_draw(&warp->height, random[0]), factor_draw(&warp->width, random[1]),
                              picture->height, picture->width);
}

/* ---- job files ---- */

struct warp_words {
    const struct yaml *factor, *height, *width;
    const char *fill, *interpolation;
    double fill_value;
};

static plim_status read_rest(struct warp_options *warp, const struct warp_words *words, const char *job,
                             const struct yaml *value, plim_error *error)
{
    static const char *const fills[] = {"reflect", "wrap", "constant", "nearest"}, *const ways[] = {"bilinear",
                                                                                                    "nearest"};
    char where[256];
    yaml_place(where, job, value);
    warp->fill_value = words->fill_value;
    warp->nearest = strcmp(words->interpolation, "nearest") == 0;
    if (!warp->nearest && strcmp(words->interpolation, "bilinear") != 0)
        return stage_unknown("interpolation", words->interpolation, ways, COUNT(ways), NULL, 0, where, error);
    if (!fill_mode_from_name(&warp->fill, words->fill))
        return stage_unknown("fill_mode", words->fill, fills, COUNT(fills), NULL, 0, where, error);
    return PLIM_OK;
}

/* {factor or height_factor, width_factor, fill_mode, fill_value, interpolation}, or the factor alone. */
static plim_status read_words(struct warp_words *words, struct warp_options *warp, const char *job,
                              const struct yaml *value, bool turn, plim_error *error)
{
    static const struct setting settings[] = {
        {"fill_mode", SETTING_WORD, offsetof(struct warp_words, fill), 0},
        {"fill_value", SETTING_NUMBER, offsetof(struct warp_words, fill_value), 0},
        {"interpolation", SETTING_WORD, offsetof(struct warp_words, interpolation), 0},
        {"factor", SETTING_NODE, offsetof(struct warp_words, factor), 0},
        {"height_factor", SETTING_NODE, offsetof(struct warp_words, height), 0},
        {"width_factor", SETTING_NODE, offsetof(struct warp_words, width), 0},
    };
    struct setting known[5];
    *words = (struct warp_words){.fill = "reflect", .interpolation = "bilinear"};
    if (value->kind != YAML_MAP) {
        words->height = value;
    } else if (turn) {
        TRY(settings_read(words, settings, 4, job, value, error));
        words->height = words->factor;
    } else {
        memcpy(known, settings, 3 * sizeof *known);
        memcpy(known + 3, settings + 4, 2 * sizeof *known);
        TRY(settings_read(words, known, COUNT(known), job, value, error));
    }
    if (!words->height)
        return fail(error, PLIM_BAD_JOB, "'%s:' is missing", turn ? "factor" : "height_factor");
    return read_rest(warp, words, job, value, error);
}

static plim_status rotation_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct warp_options *warp = options;
    struct warp_words words;
    TRY(read_words(&words, warp, job, value, true, error));
    return map_read_factor(&warp->height, "factor", job, words.height, error);
}

static plim_status zoom_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct warp_options *warp = options;
    struct warp_words words;
    TRY(read_words(&words, warp, job, value, false, error));
    TRY(map_read_factor(&warp->height, "height_factor", job, words.height, error));
    warp->same = !words.width || words.width->is_null;
    return warp->same ? PLIM_OK : map_read_factor(&warp->width, "width_factor", job, words.width, error);
}

/* One factor alone is both. */
static plim_status translation_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct warp_options *warp = options;
    struct warp_words words;
    TRY(read_words(&words, warp, job, value, false, error));
    if (value->kind == YAML_MAP && !words.width)
        return fail(error, PLIM_BAD_JOB, "'width_factor:' is missing");
    TRY(map_read_factor(&warp->height, "height_factor", job, words.height, error));
    warp->width = warp->height;
    return words.width ? map_read_factor(&warp->width, "width_factor", job, words.width, error) : PLIM_OK;
}

#define WARP(word, draw, reader)                                                                                       \
    static plim_status word##_infer(struct spec *spec, const void *options, plim_error *error)                         \
    {                                                                                                                  \
        return infer(spec, options, #word, error);                                                                     \
    }                                                                                                                  \
    static plim_status word##_run(const struct map_call *call, plim_error *error)                                      \
    {                                                                                                                  \
        return run(call, draw, error);                                                                                 \
    }                                                                                                                  \
    const struct map_function map_##word = {                                                                           \
        .name = #word,                                                                                                 \
        .infer = word##_infer,                                                                                         \
        .run = word##_run,                                                                                             \
        .options_bytes = sizeof(struct warp_options),                                                                  \
        .room_bytes = room,                                                                                            \
        .heavy = true,                                                                                                 \
        .read = reader,                                                                                                \
    };

WARP(random_rotation, draw_rotation, rotation_read)
WARP(random_zoom, draw_zoom, zoom_read)
WARP(random_translation, draw_translation, translation_read)
