/* map_random_flip.c - mirrors half of the images, in place. */
#include <string.h>

#include "base/numbers/random.h"
#include "base/text/settings.h"
#include "pipeline/core/stage.h"
#include "pipeline/maps/images/map_image.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static plim_status random_flip_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct random_flip_options *flip = options;
    int c;
    return map_image_column(&c, spec, "random_flip", flip->column, true, error);
}

static inline __attribute__((always_inline)) void exchange(uint8_t *a, uint8_t *b, size_t bytes)
{
    uint8_t kept[256];
    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < sizeof kept ? bytes - at : sizeof kept;
        memcpy(kept, a + at, part);
        memcpy(a + at, b + at, part);
        memcpy(b + at, kept, part);
    }
}

static inline __attribute__((always_inline)) void mirror_by(uint8_t *line, int64_t width, size_t pixel_bytes)
{
    for (int64_t x = 0; x < width / 2; x++)
        exchange(line + (size_t)x * pixel_bytes, line + (size_t)(width - 1 - x) * pixel_bytes, pixel_bytes);
}

/* Where the size is a constant a pixel is moved by one instruction or two. */
static void mirror(uint8_t *line, int64_t width, size_t pixel_bytes)
{
    if (pixel_bytes == 3)
        mirror_by(line, width, 3);
    else if (pixel_bytes == 12)
        mirror_by(line, width, 12);
    else if (pixel_bytes == 1)
        mirror_by(line, width, 1);
    else
        mirror_by(line, width, pixel_bytes);
}

static void flip_pixels(uint8_t *pixels, const struct picture *picture, bool horizontal, bool vertical)
{
    size_t pixel = (size_t)picture->channels * type_bytes(picture->type), row = (size_t)picture->width * pixel;
    for (int64_t y = 0; horizontal && y < picture->height; y++)
        mirror(pixels + (size_t)y * row, picture->width, pixel);
    for (int64_t y = 0; vertical && y < picture->height / 2; y++)
        exchange(pixels + (size_t)y * row, pixels + (size_t)(picture->height - 1 - y) * row, row);
}

static plim_status random_flip_run(const struct map_call *call, plim_error *error)
{
    const struct random_flip_options *flip = call->options;
    bool either = flip->horizontal || flip->vertical;
    int c = map_first_column(call->from_spec, flip->column);
    for (int64_t i = 0; i < call->count; i++) {
        uint32_t random[4];
        struct picture picture;
        random_block(random, call->seed, call->epoch, (uint64_t)call->index[i]);
        bool horizontal = (flip->horizontal || !either) && random[0] >> 31;
        bool vertical = flip->vertical && random[1] >> 31;
        if (!horizontal && !vertical)
            continue;
        void *pixels = map_image_own(&picture, call, c, i);
        if (!pixels)
            return map_full(call, error);
        flip_pixels(pixels, &picture, horizontal, vertical);
    }
    return PLIM_OK;
}

static uint64_t random_flip_room(const struct spec *from, const struct spec *to, const void *options)
{
    const struct random_flip_options *flip = options;
    (void)from;
    return map_values_room(&to->column[map_first_column(to, flip->column)]);
}

static plim_status random_flip_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct random_flip_options *flip = options;
    static const char *const modes[] = {"horizontal", "vertical", "horizontal_and_vertical"};
    const char *word = NULL;
    char where[256];
    const struct setting setting = {"random_flip", SETTING_WORD, 0, 0};
    TRY(setting_value(&word, &setting, job, value, error));
    flip->horizontal = strcmp(word, modes[0]) == 0 || strcmp(word, modes[2]) == 0;
    flip->vertical = strcmp(word, modes[1]) == 0 || strcmp(word, modes[2]) == 0;
    if (flip->horizontal || flip->vertical)
        return PLIM_OK;
    yaml_place(where, job, value);
    return stage_unknown("random_flip", word, modes, COUNT(modes), NULL, 0, where, error);
}

const struct map_function map_random_flip = {
    .name = "random_flip",
    .infer = random_flip_infer,
    .run = random_flip_run,
    .options_bytes = sizeof(struct random_flip_options),
    .room_bytes = random_flip_room,
    .read = random_flip_read,
};
