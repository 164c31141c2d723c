/* map_hashing.c - hashing: any value into one of so many bins.

   hashing: 1000
   hashing: {num_bins: 1000, salt: 7, mask_value: "", output_mode: multi_hot} */
#include "base/text/settings.h"
#include "pipeline/core/chunk.h"
#include "pipeline/maps/text/map_words.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static plim_status hashing_make(void *context, struct budget *budget, const struct spec *from, plim_error *error)
{
    struct hashing_options *options = context;
    struct hashing *hashing = &options->hashing;
    const char *dtype = options->dtype;
    (void)budget, (void)from;
    options->dtype = NULL; /* no addresses in what stands for the stage in digests */
    if (hashing->bins < 1)
        return fail(error, PLIM_BAD_JOB, "hashing: num_bins must be at least 1");
    return map_category_type(&options->type, dtype, hashing->output == CATEGORY_INT ? TYPE_I64 : TYPE_F32,
                             hashing->output, error);
}

static plim_status hashing_infer(struct spec *spec, const void *context, plim_error *error)
{
    const struct hashing_options *options = context;
    int c = map_first_column(spec, options->column);
    if (c < 0)
        return map_no_column(spec, "hashing", options->column, error);
    struct column *column = &spec->column[c];
    TRY(map_category_infer(column, "hashing", options->hashing.output, options->hashing.bins, error));
    column->type = options->type;
    if (options->hashing.output != CATEGORY_INT) /* rows of zeros first: never over what is read */
        column->origin = -1;
    return PLIM_OK;
}

static plim_status hashing_run(const struct map_call *call, plim_error *error)
{
    const struct hashing_options *options = call->options;
    int c = map_first_column(call->from_spec, options->column);
    const struct column *from = &call->from_spec->column[c];
    struct hashing hashing = options->hashing;
    hashing.mask = (struct string){(const uint8_t *)options->mask, strlen(options->mask)};
    for (int64_t i = 0; i < call->count; i++) {
        int64_t count;
        const void *values = map_values(&count, call, c, i);
        struct shape shape = value_shape(from, (const uint8_t *)call->from[c] + (uint64_t)i * call->from_stride[c]);
        void *to = map_category_to(call, c, i, &shape);
        if (!to)
            return map_full(call, error);
        hashing_row(to, options->type, &hashing, values, from->type, &shape);
    }
    return PLIM_OK;
}

/* ---- job files ---- */

struct hashing_words {
    int64_t bins;
    const struct yaml *mask, *salt;
    const char *output, *dtype;
};

static const struct setting hashing_settings[] = {
    {"num_bins", SETTING_WHOLE, offsetof(struct hashing_words, bins), 1},
    {"mask_value", SETTING_NODE, offsetof(struct hashing_words, mask), 0},
    {"salt", SETTING_NODE, offsetof(struct hashing_words, salt), 0},
    {"output_mode", SETTING_WORD, offsetof(struct hashing_words, output), 0},
    {"dtype", SETTING_WORD, offsetof(struct hashing_words, dtype), 0},
};

/* A text for columns of strings, a number for others. */
static plim_status read_mask(struct hashing_options *options, const char *job, const struct yaml *value,
                             plim_error *error)
{
    const struct setting word = {"mask_value", SETTING_WORD, 0, 0};
    const char *text = "";
    if (value->is_null)
        return PLIM_OK;
    TRY(setting_value(&text, &word, job, value, error));
    if (strlen(text) >= sizeof options->mask)
        return fail(error, PLIM_BAD_JOB, "mask_value: at most %d bytes", (int)sizeof options->mask - 1);
    snprintf(options->mask, sizeof options->mask, "%s", text);
    options->hashing.masked = true;
    setting_number(&options->hashing.mask_number, text);
    return PLIM_OK;
}

static plim_status hashing_read(void *context, const char *job, const struct yaml *value, plim_error *error)
{
    struct hashing_options *options = context;
    struct hashing_words words = {0};
    if (value->kind == YAML_SCALAR)
        return setting_value(&options->hashing.bins, &hashing_settings[0], job, value, error);
    TRY(settings_read(&words, hashing_settings, COUNT(hashing_settings), job, value, error));
    if (!words.bins)
        return hint(error, fail(error, PLIM_BAD_JOB, "'num_bins' is missing"), "num_bins: 1000");
    options->hashing.bins = words.bins;
    options->dtype = words.dtype;
    if (words.mask)
        TRY(read_mask(options, job, words.mask, error));
    if (words.salt)
        TRY(map_salt_read(&options->hashing.salt, job, words.salt, error));
    return words.output ? category_output_from_name(&options->hashing.output, words.output, error) : PLIM_OK;
}

const struct map_function map_hashing = {
    .name = "hashing",
    .options_make = hashing_make,
    .infer = hashing_infer,
    .run = hashing_run,
    .options_bytes = sizeof(struct hashing_options),
    .room_bytes = map_category_room,
    .read = hashing_read,
};
