/* image.h - encoded pictures to pixels: JPEG, PNG, BMP, and the first frame of a GIF.

   The results are TensorFlow's: tf.io.decode_jpeg, decode_png, decode_bmp, decode_gif and decode_image give the same
   bytes. Where those refuse (alpha asked of a JPEG or a GIF, other channels than a BMP has) the plain thing is done.

   A decoder belongs to one worker. It holds all the memory that decoding takes, the libraries' too: nothing is
   allocated per image, and an image that needs more than the decoder holds is an error that names the bytes. */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "base/memory/budget.h"
#include "base/memory/value_buffer.h"
#include "graph/tensor.h"

struct image_info {
    const char *format; /* "JPEG", "PNG", "GIF" or "BMP" */
    int64_t height, width;
    int channels;        /* as stored, as channels = 0 decodes it */
    uint64_t work_bytes; /* a decoder with this much work memory decodes it */
};

/* What the first bytes declare, without decoding; sizes that so few bytes cannot hold are refused. */
plim_status image_probe(struct image_info *out, const void *data, size_t bytes, plim_error *error);

/* For JPEG only; zeros are decode_jpeg's defaults. */
struct image_options {
    bool accurate;         /* the exact inverse transform (what PIL uses); false: TensorFlow's fast one */
    bool plain_upsampling; /* fancy_upscaling=False */
    int ratio;             /* 1, 2, 4 or 8: decodes to a part of the size; 0 is 1 */
    /* Both not 0: the largest ratio that leaves at least this size, for a resize that follows. */
    int64_t least_height, least_width;
};

struct image_decoder;

/* Bytes of the budget that a decoder with so much work memory takes (tag pipeline). */
uint64_t image_decoder_cost(uint64_t work_bytes);
plim_status image_decoder_make(struct image_decoder **out, struct budget *budget, const struct image_options *options,
                               uint64_t work_bytes, plim_error *error);
void image_decoder_free(struct image_decoder *decoder);
/* From now on it works in the caller's memory (aligned to VALUE_ALIGNMENT), instead of its own. */
void image_decoder_lend(struct image_decoder *decoder, void *work, uint64_t bytes);
/* Loads the libraries that decode, as the first decoder would; for whoever wants to know before what is mapped.
   PLIM_UNSUPPORTED where one is not installed. */
plim_status image_prepare(plim_error *error);

struct image {
    struct shape shape; /* (height, width, channels) */
    uint8_t *pixels;
    int64_t warnings; /* faults in the data that the format passes over, as TensorFlow does */
};

/* channels: 0 as stored, 1, 3 or 4. The pixels go into the buffer. When they do not fit the status is OVER_BUDGET and
   values->wanted says how large it would have to be; when the decoder's work memory is too small it is OVER_BUDGET and
   values->wanted is 0. Messages name bytes of the image; the caller adds the file. */
plim_status image_decode(struct image *out, struct image_decoder *decoder, const struct string *encoded, int channels,
                         struct value_buffer *values, plim_error *error);

#endif
