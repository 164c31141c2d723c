/* map_random_flip.c - mirrors half of the images, in place. */
#include "base/numbers/count.h"
#include "pipeline/maps/images/map_image.h"

static plim_status flip_infer(struct column *column, const struct map_function *self, const void *options,
                              plim_error *error)
{
    (void)options;
    return map_need_image(column, self->name, true, error);
}

static plim_status flip_row(const struct map_row *row, plim_error *error)
{
    const struct random_flip_options *flip = row->options;
    bool either = flip->horizontal || flip->vertical;
    uint32_t random[4];
    map_random(random, row);
    bool horizontal = (flip->horizontal || !either) && random[0] >> 31;
    bool vertical = flip->vertical && random[1] >> 31;
    if (!horizontal && !vertical)
        return PLIM_OK;
    const struct picture picture = map_picture(row);
    void *pixels = map_image_own(row);
    if (!pixels)
        return map_full(row->call, error);
    flip_image(pixels, &picture, horizontal, vertical);
    return PLIM_OK;
}

static plim_status flip_read(void *options, const struct map_function *self, const char *job, const struct yaml *value,
                             plim_error *error)
{
    static const char *const modes[] = {"horizontal", "vertical", "horizontal_and_vertical"};
    const struct word_choices choices = {.what = self->name, .names = modes, .count = COUNT(modes)};
    const struct setting setting = {self->name, SETTING_WORD, 0, 0};
    struct random_flip_options *flip = options;
    const char *word = NULL;
    int mode = 0;
    TRY(setting_value(&word, &setting, job, value, error));
    TRY(map_choice_read(&mode, &choices, word, job, value, error));
    flip->horizontal = mode != 1;
    flip->vertical = mode != 0;
    return PLIM_OK;
}

const struct map_function map_random_flip = {
    .name = "random_flip",
    .infer_column = flip_infer,
    .run_row = flip_row,
    .options_bytes = sizeof(struct random_flip_options),
    .value_bytes = map_value_bytes,
    .read = flip_read,
};
