/* image_codec.h - what the image formats share behind image.h. */
#ifndef IMAGE_IMAGE_CODEC_H
#define IMAGE_IMAGE_CODEC_H

#include "image/image.h"

struct image_task {
    struct image_decoder *decoder;
    const struct image_info *info;
    const uint8_t *data;
    size_t bytes;
    int channels;
    struct value_buffer *values;
};

struct image_codec {
    const char *name;
    const char *magic; /* a file of this format begins with it */
    size_t magic_bytes;
    plim_status (*probe)(struct image_info *out, const uint8_t *data, size_t bytes, plim_error *error);
    plim_status (*decode)(struct image *out, const struct image_task *task, plim_error *error);
};

extern const struct image_codec image_codec_jpeg, image_codec_png, image_codec_gif, image_codec_bmp;

struct jpeg;
struct png_functions;

struct image_decoder {
    struct budget *budget;
    struct image_options options;
    uint64_t work_bytes;
    struct value_buffer work; /* emptied before each image */
    void *own_work;
    struct jpeg *jpeg;
    struct png_functions *png; /* behind this struct */
};

/* Takes the pixels' place in the value buffer and says so in *out. */
plim_status image_take(struct image *out, const struct image_task *task, int64_t height, int64_t width, int channels,
                       plim_error *error);
/* The work memory was too small. */
plim_status image_refused(const struct image_task *task, plim_error *error);

plim_status jpeg_make(struct jpeg **out, struct image_decoder *decoder, plim_error *error);
void jpeg_free(struct jpeg *jpeg, struct budget *budget);
uint64_t jpeg_cost(void);

static inline uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t be32(const uint8_t *p)
{
    return be16(p) << 16 | be16(p + 2);
}

static inline uint32_t le16(const uint8_t *p)
{
    return (uint32_t)p[1] << 8 | p[0];
}

static inline uint32_t le32(const uint8_t *p)
{
    return le16(p + 2) << 16 | le16(p);
}

#endif
