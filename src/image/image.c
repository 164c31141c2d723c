/* image.c - which format it is, and the memory that decoding may use. */
#include "image/image_codec.h"

#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "image/image_library.h"

static const struct image_codec *const codecs[] = {&image_codec_jpeg, &image_codec_png, &image_codec_gif,
                                                   &image_codec_bmp};

/* The format by its first bytes, and what they declare. */
static plim_status probe(const struct image_codec **out, struct image_info *info, const uint8_t *data, size_t bytes,
                         plim_error *error)
{
    for (size_t i = 0; i < COUNT(codecs); i++) {
        if (bytes >= codecs[i]->magic_bytes && memcmp(data, codecs[i]->magic, codecs[i]->magic_bytes) == 0) {
            *out = codecs[i];
            *info = (struct image_info){.format = codecs[i]->name};
            return codecs[i]->probe(info, data, bytes, error);
        }
    }
    return fail(error, PLIM_BAD_DATA, "its first bytes are not those of a JPEG, PNG, GIF or BMP image");
}

plim_status image_probe(struct image_info *out, const void *data, size_t bytes, plim_error *error)
{
    const struct image_codec *codec;
    struct image_info info;
    TRY(probe(&codec, &info, data, bytes, error));
    *out = info;
    return PLIM_OK;
}

static uint64_t decoder_bytes(void)
{
    return sizeof(struct image_decoder) + sizeof(struct png_functions);
}

uint64_t image_decoder_cost(uint64_t work_bytes)
{
    return budget_charge(decoder_bytes()) + budget_charge(work_bytes) + jpeg_cost();
}

static bool ratio_is_known(int ratio)
{
    return ratio == 0 || ratio == 1 || ratio == 2 || ratio == 4 || ratio == 8;
}

plim_status image_decoder_make(struct image_decoder **out, struct budget *budget, const struct image_options *options,
                               uint64_t work_bytes, plim_error *error)
{
    if (!ratio_is_known(options->ratio))
        return fail(error, PLIM_BAD_JOB, "the ratio of decode_jpeg is 1, 2, 4 or 8, not %d", options->ratio);
    struct png_functions png;
    TRY(png_library(&png, error));
    struct image_decoder *decoder = budget_take(budget, TAG_PIPELINE, decoder_bytes());
    if (!decoder)
        return budget_refused(budget, TAG_PIPELINE, decoder_bytes(), error);
    decoder->png = (struct png_functions *)(decoder + 1);
    *decoder->png = png;
    decoder->budget = budget;
    decoder->options = *options;
    decoder->work_bytes = work_bytes;
    decoder->own_work = budget_take(budget, TAG_PIPELINE, work_bytes);
    value_buffer_init(&decoder->work, decoder->own_work, work_bytes);
    plim_status status = decoder->own_work ? jpeg_make(&decoder->jpeg, decoder, error)
                                           : budget_refused(budget, TAG_PIPELINE, work_bytes, error);
    if (status != PLIM_OK) {
        image_decoder_free(decoder);
        return status;
    }
    *out = decoder;
    return PLIM_OK;
}

void image_decoder_free(struct image_decoder *decoder)
{
    if (!decoder)
        return;
    jpeg_free(decoder->jpeg, decoder->budget);
    budget_give(decoder->budget, TAG_PIPELINE, decoder->own_work, decoder->work_bytes);
    budget_give(decoder->budget, TAG_PIPELINE, decoder, decoder_bytes());
}

void image_decoder_lend(struct image_decoder *decoder, void *work, uint64_t bytes)
{
    value_buffer_init(&decoder->work, work, bytes);
}

plim_status image_prepare(plim_error *error)
{
    struct jpeg_functions jpeg;
    struct png_functions png;
    TRY(jpeg_library(&jpeg, error));
    return png_library(&png, error);
}

plim_status image_decode(struct image *out, struct image_decoder *decoder, const struct string *encoded, int channels,
                         struct value_buffer *values, plim_error *error)
{
    const struct image_codec *codec;
    struct image_info info;
    struct image image = {0};
    struct image_task task = {.decoder = decoder,
                              .info = &info,
                              .data = encoded->data,
                              .bytes = (size_t)encoded->bytes,
                              .channels = channels,
                              .values = values};
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
        return fail(error, PLIM_BAD_JOB, "channels of an image are 0 (as stored), 1, 3 or 4, not %d", channels);
    TRY(probe(&codec, &info, task.data, task.bytes, error));
    uint64_t used = values->used;
    values->wanted = 0;
    value_buffer_empty(&decoder->work);
    plim_status status = codec->decode(&image, &task, error);
    if (status == PLIM_OK)
        *out = image;
    else
        values->used = used;
    return status;
}

plim_status image_take(struct image *out, const struct image_task *task, int64_t height, int64_t width, int channels,
                       plim_error *error)
{
    uint64_t bytes;
    out->shape = shape_of(3, (int64_t[]){height, width, channels});
    if (!shape_bytes(&bytes, &out->shape, TYPE_U8))
        return fail(error, PLIM_BAD_DATA, "%s: declares %lld x %lld pixels", task->info->format, (long long)height,
                    (long long)width);
    out->pixels = value_buffer_take(task->values, bytes);
    if (out->pixels)
        return PLIM_OK;
    return fail(error, PLIM_OVER_BUDGET, "%s: %lld x %lld pixels of %d channels are %llu bytes; there is room for %llu",
                task->info->format, (long long)height, (long long)width, channels, (unsigned long long)bytes,
                (unsigned long long)value_buffer_left(task->values));
}

plim_status image_refused(const struct image_task *task, plim_error *error)
{
    const struct image_info *info = task->info;
    return fail(error, PLIM_OVER_BUDGET, "%s: decoding %lld x %lld pixels takes %llu bytes of memory; it may use %llu",
                info->format, (long long)info->height, (long long)info->width, (unsigned long long)info->work_bytes,
                (unsigned long long)task->decoder->work.capacity);
}
