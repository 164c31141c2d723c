/* map_hashing.c - hashing: any value into one of so many bins.

   hashing: 1000
   hashing: {num_bins: 1000, salt: 7, mask_value: "", output_mode: multi_hot} */
#include <string.h>

#include "base/numbers/count.h"
#include "pipeline/maps/text/map_text.h"

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

static plim_status hashing_infer(struct column *column, const struct map_function *self, const void *context,
                                 plim_error *error)
{
    const struct hashing_options *options = context;
    return map_category_infer(column, self->name, options->type, options->hashing.output, options->hashing.bins, error);
}

static plim_status hash_values(const struct map_row *row, plim_error *error)
{
    const struct hashing_options *options = row->options;
    struct hashing hashing = options->hashing;
    void *to = map_result(row, &row->shape);
    if (!to)
        return map_full(row->call, error);
    hashing.mask = (struct string){(const uint8_t *)options->mask, strlen(options->mask)};
    hashing_row(to, options->type, &hashing, row->values, row->from->type, &row->shape);
    return PLIM_OK;
}

/* ---- job files ---- */

struct hashing_settings {
    int64_t bins;
    const struct yaml *mask, *salt;
    const char *output, *dtype;
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
    TRY(map_text_read(options->mask, sizeof options->mask, word.word, text, error));
    options->hashing.masked = true;
    setting_number(&options->hashing.mask_number, text);
    return PLIM_OK;
}

static plim_status hashing_read(void *context, const struct map_function *self, const char *job,
                                const struct yaml *value, plim_error *error)
{
    static const struct setting settings[] = {
        {"num_bins", SETTING_WHOLE, offsetof(struct hashing_settings, bins), 1},
        {"mask_value", SETTING_NODE, offsetof(struct hashing_settings, mask), 0},
        {"salt", SETTING_NODE, offsetof(struct hashing_settings, salt), 0},
        {"output_mode", SETTING_WORD, offsetof(struct hashing_settings, output), 0},
        {"dtype", SETTING_WORD, offsetof(struct hashing_settings, dtype), 0},
    };
    struct hashing_options *options = context;
    struct hashing_settings read = {0};
    (void)self;
    TRY(map_settings_read(&read, &(struct map_settings){settings, COUNT(settings), "num_bins"}, job, value, error));
    if (!read.bins)
        return hint(error, fail(error, PLIM_BAD_JOB, "'num_bins' is missing"), "num_bins: 1000");
    options->hashing.bins = read.bins;
    options->dtype = read.dtype;
    if (read.mask)
        TRY(read_mask(options, job, read.mask, error));
    if (read.salt)
        TRY(map_salt_read(&options->hashing.salt, job, read.salt, error));
    return read.output ? category_output_from_name(&options->hashing.output, read.output, error) : PLIM_OK;
}

const struct map_function map_hashing = {
    .name = "hashing",
    .options_make = hashing_make,
    .infer_column = hashing_infer,
    .run_row = hash_values,
    .options_bytes = sizeof(struct hashing_options),
    .value_bytes = map_value_bytes,
    .read = hashing_read,
};
