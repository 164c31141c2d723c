/* image_gif.c - the first frame of a GIF, as decode_image(expand_animations=False) paints it: the picture is as large
   as the frame, yet the frame lies where it says it lies on the screen, and is cut off there. What it does not cover,
   and what is transparent, is black.

   Invariants: 1. a code's chain of prefixes leads to smaller codes only, so it ends; 2. pixels outside the picture are
   decoded and dropped. */
#include <string.h>

#include "base/numbers/checked.h"
#include "image/image_codec.h"

#define CODES 4096

struct lzw {
    uint16_t prefix[CODES];
    uint8_t suffix[CODES], stack[CODES];
};

struct gif {
    const uint8_t *data;
    size_t bytes, at;
    const uint8_t *colors; /* 3 bytes each */
    unsigned color_count;
    int transparent; /* an index, or -1 */
    unsigned left, top, width, height;
    bool interlaced;
};

static plim_status ends_early(const struct gif *gif, plim_error *error)
{
    return fail(error, PLIM_BAD_DATA, "GIF: premature end at byte %zu", gif->bytes);
}

static plim_status gif_take(const uint8_t **out, struct gif *gif, size_t bytes, plim_error *error)
{
    if (bytes > gif->bytes - gif->at)
        return ends_early(gif, error);
    *out = gif->data + gif->at;
    gif->at += bytes;
    return PLIM_OK;
}

static plim_status take_colors(struct gif *gif, uint8_t flags, plim_error *error)
{
    if (!(flags & 0x80))
        return PLIM_OK;
    gif->color_count = 2u << (flags & 7);
    return gif_take(&gif->colors, gif, (size_t)3 * gif->color_count, error);
}

static plim_status skip_blocks(struct gif *gif, plim_error *error)
{
    const uint8_t *size = NULL, *skipped;
    do {
        TRY(gif_take(&size, gif, 1, error));
        TRY(gif_take(&skipped, gif, *size, error));
    } while (*size);
    return PLIM_OK;
}

static plim_status read_extension(struct gif *gif, plim_error *error)
{
    const uint8_t *label = NULL;
    TRY(gif_take(&label, gif, 1, error));
    /* A graphic control block of 4 bytes: flags, delay, transparent index. */
    if (*label == 0xF9 && gif->bytes - gif->at >= 5 && gif->data[gif->at] == 4)
        gif->transparent = gif->data[gif->at + 1] & 1 ? gif->data[gif->at + 4] : -1;
    return skip_blocks(gif, error);
}

/* Passes over everything before the first frame's data. */
static plim_status read_to_frame(struct gif *gif, plim_error *error)
{
    const uint8_t *kind = NULL, *frame = NULL;
    for (;;) {
        TRY(gif_take(&kind, gif, 1, error));
        if (*kind == 0x21) {
            TRY(read_extension(gif, error));
            continue;
        }
        if (*kind != 0x2C)
            return fail(error, PLIM_BAD_DATA, "GIF: byte %zu: %s", gif->at - 1,
                        *kind == 0x3B ? "it holds no image" : "an unknown block");
        TRY(gif_take(&frame, gif, 9, error));
        gif->left = le16(frame), gif->top = le16(frame + 2);
        gif->width = le16(frame + 4), gif->height = le16(frame + 6);
        gif->interlaced = frame[8] & 0x40;
        TRY(take_colors(gif, frame[8], error));
        if (!gif->colors)
            return fail(error, PLIM_BAD_DATA, "GIF: byte %zu: the frame has no colours", gif->at);
        if (!gif->width || !gif->height)
            return fail(error, PLIM_BAD_DATA, "GIF: byte %zu: the frame has no pixels", gif->at);
        return PLIM_OK;
    }
}

static plim_status read_head(struct gif *gif, const uint8_t *data, size_t bytes, plim_error *error)
{
    const uint8_t *head = NULL;
    *gif = (struct gif){.data = data, .bytes = bytes, .transparent = -1};
    TRY(gif_take(&head, gif, 13, error));
    TRY(take_colors(gif, head[10], error));
    return read_to_frame(gif, error);
}

static plim_status probe_gif(struct image_info *out, const uint8_t *data, size_t bytes, plim_error *error)
{
    struct gif gif;
    TRY(read_head(&gif, data, bytes, error));
    out->height = gif.height;
    out->width = gif.width;
    out->channels = 3;
    out->work_bytes = sizeof(struct lzw) + VALUE_ALIGNMENT;
    return PLIM_OK;
}

/* Where the frame's pixels go, in the order in which they are stored. */
struct painter {
    const struct gif *gif;
    uint8_t *pixels;
    int channels;
    unsigned x, y, pass;
    bool done;
};

/* Interlaced rows: from 0 by 8, from 4 by 8, from 2 by 4, from 1 by 2. */
static void next_row(struct painter *painter)
{
    static const unsigned from[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    painter->x = 0;
    painter->y += painter->gif->interlaced ? step[painter->pass] : 1;
    while (painter->gif->interlaced && painter->y >= painter->gif->height && painter->pass < 3)
        painter->y = from[++painter->pass];
    painter->done = painter->y >= painter->gif->height;
}

/* False when the index has no colour. */
static bool paint(struct painter *painter, unsigned index)
{
    const struct gif *gif = painter->gif;
    size_t x = gif->left + painter->x, y = gif->top + painter->y;
    if (index >= gif->color_count)
        return false;
    if (x < gif->width && y < gif->height && (int)index != gif->transparent)
        memcpy(painter->pixels + (y * gif->width + x) * (size_t)painter->channels, gif->colors + (size_t)3 * index, 3);
    if (++painter->x == gif->width)
        next_row(painter);
    return true;
}

struct bits {
    uint32_t held;
    unsigned count;
    size_t block_end; /* of the sub-block that is being read */
};

static plim_status take_code(unsigned *out, struct gif *gif, struct bits *bits, unsigned width, plim_error *error)
{
    const uint8_t *byte = NULL;
    while (bits->count < width) {
        if (gif->at == bits->block_end) {
            TRY(gif_take(&byte, gif, 1, error));
            if (!*byte)
                return fail(error, PLIM_BAD_DATA, "GIF: byte %zu: the data ends before the last pixel", gif->at - 1);
            bits->block_end = gif->at + *byte;
        }
        TRY(gif_take(&byte, gif, 1, error));
        bits->held |= (uint32_t)*byte << bits->count;
        bits->count += 8;
    }
    *out = bits->held & ((1u << width) - 1);
    bits->held >>= width;
    bits->count -= width;
    return PLIM_OK;
}

/* Paints a code's string. */
static bool paint_code(struct painter *painter, struct lzw *lzw, unsigned code, unsigned clear)
{
    unsigned depth = 0;
    while (code > clear) {
        lzw->stack[depth++] = lzw->suffix[code];
        code = lzw->prefix[code];
    }
    bool good = paint(painter, code);
    while (good && depth && !painter->done)
        good = paint(painter, lzw->stack[--depth]);
    return good;
}

static plim_status decode_frame(struct painter *painter, struct lzw *lzw, struct gif *gif, plim_error *error)
{
    const uint8_t *least = NULL;
    TRY(gif_take(&least, gif, 1, error));
    if (*least < 1 || *least > 8)
        return fail(error, PLIM_BAD_DATA, "GIF: byte %zu: codes of %u bits", gif->at - 1, *least);
    unsigned clear = 1u << *least, width = *least + 1u, next = clear + 2, before = CODES, code = 0;
    struct bits bits = {.block_end = gif->at};
    while (!painter->done) {
        TRY(take_code(&code, gif, &bits, width, error));
        if (code == clear) {
            width = *least + 1u, next = clear + 2, before = CODES;
            continue;
        }
        /* Until a code came before it, a code is an index; after that, the next new one is the most. */
        if (code == clear + 1 || (before == CODES ? code > clear : code > next || (code == next && next == CODES)))
            return fail(error, PLIM_BAD_DATA, "GIF: byte %zu: a code that has no meaning", gif->at - 1);
        if (before != CODES &&
            next < CODES) { /* the string before, and the first index of this one: of itself, where it is the new one */
            unsigned root = code == next ? before : code;
            while (root > clear)
                root = lzw->prefix[root];
            lzw->prefix[next] = (uint16_t)before, lzw->suffix[next] = (uint8_t)root;
            next++;
        }
        if (!paint_code(painter, lzw, code, clear))
            return fail(error, PLIM_BAD_DATA, "GIF: byte %zu: a pixel of a colour that is not in the table",
                        gif->at - 1);
        before = code;
        if (next == 1u << width && width < 12)
            width++;
    }
    return PLIM_OK;
}

static plim_status decode_gif(struct image *out, const struct image_task *task, plim_error *error)
{
    struct gif gif;
    int channels = task->channels ? task->channels : 3;
    struct lzw *lzw = value_buffer_take(&task->decoder->work, sizeof *lzw);
    if (channels == 1)
        return fail(error, PLIM_BAD_DATA, "GIF: has 3 channels and cannot be decoded to 1");
    if (!lzw)
        return image_refused(task, error);
    TRY(read_head(&gif, task->data, task->bytes, error));
    TRY(image_take(out, task, gif.height, gif.width, channels, error));
    int64_t elements = shape_count(&out->shape);
    memset(out->pixels, 0, (size_t)elements);
    for (int64_t i = 3; channels == 4 && i < elements; i += 4)
        out->pixels[i] = 255;
    struct painter painter = {.gif = &gif, .pixels = out->pixels, .channels = channels};
    return decode_frame(&painter, lzw, &gif, error);
}

const struct image_codec image_codec_gif = {
    .name = "GIF", .magic = "GIF8", .magic_bytes = 4, .probe = probe_gif, .decode = decode_gif};
