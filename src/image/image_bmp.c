/* image_bmp.c - BMP as tf.io.decode_bmp reads it: 8, 24 or 32 bits a pixel, not compressed; of 8 bits the stored
   index is the grey value. */
#include "base/numbers/checked.h"
#include "image/image_codec.h"

#define HEAD_BYTES 54 /* file header, and the first 40 bytes of the information header */

struct bmp {
    uint64_t offset, row_bytes; /* of the pixels; of a row, padded to 4 */
    bool top_down;
};

static plim_status read_head(struct bmp *bmp, struct image_info *info, const uint8_t *data, size_t bytes,
                             plim_error *error)
{
    if (bytes < HEAD_BYTES)
        return fail(error, PLIM_BAD_DATA, "BMP: premature end at byte %zu, inside its header", bytes);
    int64_t height = (int32_t)le32(data + 22), width = (int32_t)le32(data + 18);
    uint32_t bits = le16(data + 28), compression = le32(data + 30);
    if (le32(data + 14) < 40)
        return fail(error, PLIM_BAD_DATA, "BMP: byte 14: a header of %u bytes is not supported", le32(data + 14));
    if (bits != 8 && bits != 24 && bits != 32)
        return fail(error, PLIM_BAD_DATA, "BMP: byte 28: %u bits a pixel; 8, 24 and 32 are supported", bits);
    if (compression != 0 && !(compression == 3 && bits == 32))
        return fail(error, PLIM_BAD_DATA, "BMP: byte 30: compression %u is not supported", compression);
    if (width <= 0 || height == 0)
        return fail(error, PLIM_BAD_DATA, "BMP: byte 18: declares %lld x %lld pixels", (long long)height,
                    (long long)width);
    bmp->top_down = height < 0;
    info->height = height < 0 ? -height : height;
    info->width = width;
    info->channels = (int)bits / 8;
    bmp->offset = le32(data + 10);
    bmp->row_bytes = round_up((uint64_t)width * (uint64_t)info->channels, 4);
    return PLIM_OK;
}

/* The padding of the last row need not be there. */
static plim_status check_present(const struct bmp *bmp, const struct image_info *info, size_t bytes, plim_error *error)
{
    uint64_t end;
    if (bmp->offset < HEAD_BYTES)
        return fail(error, PLIM_BAD_DATA, "BMP: byte 10: the pixels begin inside the header");
    if (!mul_u64(&end, (uint64_t)info->height - 1, bmp->row_bytes) || !add_u64(&end, end, bmp->offset) ||
        !add_u64(&end, end, (uint64_t)info->width * (uint64_t)info->channels) || end > bytes)
        return fail(error, PLIM_BAD_DATA,
                    "BMP: premature end at byte %zu: %lld x %lld pixels of %d channels are declared", bytes,
                    (long long)info->height, (long long)info->width, info->channels);
    return PLIM_OK;
}

static plim_status probe_bmp(struct image_info *out, const uint8_t *data, size_t bytes, plim_error *error)
{
    struct bmp bmp;
    TRY(read_head(&bmp, out, data, bytes, error));
    return check_present(&bmp, out, bytes, error);
}

/* Stored blue, green, red, alpha; grey becomes three equal channels, missing alpha is opaque. */
static void convert_row(uint8_t *to, const uint8_t *from, int64_t width, int have, int want)
{
    static const int order[4] = {2, 1, 0, 3};
    for (int64_t x = 0; x < width; x++, to += want, from += have)
        for (int c = 0; c < want; c++)
            to[c] = have == 1 && c < 3 ? from[0] : order[c] < have ? from[order[c]] : 255;
}

static plim_status decode_bmp(struct image *out, const struct image_task *task, plim_error *error)
{
    struct bmp bmp;
    struct image_info info = *task->info;
    int channels = task->channels ? task->channels : info.channels;
    TRY(read_head(&bmp, &info, task->data, task->bytes, error));
    if (channels == 1 && info.channels != 1)
        return fail(error, PLIM_BAD_DATA, "BMP: has %d channels and cannot be decoded to 1", info.channels);
    TRY(image_take(out, task, info.height, info.width, channels, error));
    for (int64_t y = 0; y < info.height; y++) {
        int64_t row = bmp.top_down ? y : info.height - 1 - y;
        convert_row(out->pixels + y * info.width * channels, task->data + bmp.offset + (uint64_t)row * bmp.row_bytes,
                    info.width, info.channels, channels);
    }
    return PLIM_OK;
}

const struct image_codec image_codec_bmp = {
    .name = "BMP", .magic = "BM", .magic_bytes = 2, .probe = probe_bmp, .decode = decode_bmp};
