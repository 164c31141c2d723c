/* fuzz_image.c - any bytes as an image of each format: as stored, as RGB, and reduced while it is decoded. */
#include "fuzz_file.h"

#include "image/image.h"
#include "image/resize.h"

#define WORK_BYTES    ((uint64_t)512 * 1024)
#define PIXELS_BYTES  ((uint64_t)512 * 1024)
#define SCRATCH_BYTES ((uint64_t)256 * 1024)

/* What was decoded can be resized: every pixel is read. */
static void resize_it(const struct image *image, struct budget *budget)
{
    static float small[7 * 5 * 4];
    struct resize resize = {.method = RESIZE_AREA,
                            .from = {TYPE_U8, image->shape.dim[0], image->shape.dim[1], image->shape.dim[2]},
                            .to_height = 7,
                            .to_width = 5};
    struct value_buffer scratch;
    uint64_t bytes;
    if (resize_scratch(&bytes, &resize, NULL) != PLIM_OK || bytes > SCRATCH_BYTES)
        return;
    void *block = budget_take(budget, TAG_FORMATS, bytes);
    if (!block)
        return;
    value_buffer_init(&scratch, block, bytes);
    if (resize_image(small, image->pixels, &resize, &scratch, NULL) != PLIM_OK)
        abort();
    budget_give(budget, TAG_FORMATS, block, bytes);
}

static void decode_it(const uint8_t *data, size_t bytes, struct budget *budget, struct image_options options,
                      int channels)
{
    struct image_decoder *decoder;
    struct image_info info;
    struct image image;
    struct value_buffer values;
    void *pixels = budget_take(budget, TAG_FORMATS, PIXELS_BYTES);
    value_buffer_init(&values, pixels, PIXELS_BYTES);
    if (pixels && image_decoder_make(&decoder, budget, &options, WORK_BYTES, NULL) == PLIM_OK) {
        plim_status probed = image_probe(&info, data, bytes, NULL);
        plim_status status = image_decode(&image, decoder, &(struct string){data, bytes}, channels, &values, NULL);
        bool whole = !options.least_height;
        if (status == PLIM_INTERNAL || (status == PLIM_OK && probed != PLIM_OK))
            abort();
        /* Enough work memory was promised. */
        if (status == PLIM_OVER_BUDGET && !values.wanted && info.work_bytes <= WORK_BYTES)
            abort();
        if (status == PLIM_OK && whole && (image.shape.dim[0] != info.height || image.shape.dim[1] != info.width))
            abort();
        if (status == PLIM_OK)
            resize_it(&image, budget);
        image_decoder_free(decoder);
    }
    budget_give(budget, TAG_FORMATS, pixels, PIXELS_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    if (budget_make(&budget, FUZZ_LIMIT_BYTES, NULL) != PLIM_OK)
        return 0;
    decode_it(data, bytes, budget, (struct image_options){0}, 0);
    decode_it(data, bytes, budget, (struct image_options){.least_height = 3, .least_width = 3, .accurate = true}, 3);
    budget_free(budget); /* asserts that it is empty */
    return 0;
}
