/* image_png.c - PNG by libpng, with tf.io.decode_png's rules for 8 bits: a palette becomes RGB, 16 bits lose the low
   byte, alpha is stripped, made of a transparent colour, or opaque.

   The library's objects cannot be used again: they are made for each image, in the decoder's work memory, zlib's state
   too. Errors are a jump, as in image_jpeg.c. What the library calls is given nothing but its object, and asking that
   for ours takes functions of a library that is not linked: the thread remembers what it decodes, while it does. */
#include <setjmp.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "image/image_codec.h"
#include "image/image_library.h"

/* The library's structures, zlib's window and state, gamma tables. */
#define STATE_BYTES ((uint64_t)224 * 1024)
/* Deflate packs at most 258 bytes in two bits. */
#define MOST_RATIO 1032

struct png_run {
    const struct png_functions *call;
    const struct image_task *task;
    png_structp library;
    png_infop info;
    size_t at;
    bool ended, refused;
    int64_t warnings;
    jmp_buf failed;
    char message[160];
};

/* ---- the header, without the library ------------------------------- */

static const uint8_t signature_and_head[16] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R'};

/* Channels by colour type; 0: there is no such type. */
static const uint8_t type_channels[7] = {1, 0, 3, 1, 2, 0, 4};

/* Whether a palette has transparent entries: a tRNS chunk before the data. */
static bool has_transparency(const uint8_t *data, size_t bytes)
{
    for (uint64_t at = 8; at + 12 <= bytes && memcmp(data + at + 4, "IDAT", 4) != 0;
         at += (uint64_t)12 + be32(data + at))
        if (memcmp(data + at + 4, "tRNS", 4) == 0)
            return true;
    return false;
}

static plim_status probe_png(struct image_info *out, const uint8_t *data, size_t bytes, plim_error *error)
{
    uint64_t row, all;
    if (bytes < 33)
        return fail(error, PLIM_BAD_DATA, "PNG: premature end at byte %zu, inside its header", bytes);
    if (memcmp(data, signature_and_head, sizeof signature_and_head) != 0)
        return fail(error, PLIM_BAD_DATA, "PNG: byte 8: an image header of 13 bytes is not there");
    uint32_t width = be32(data + 16), height = be32(data + 20);
    int depth = data[24], kind = data[25], channels = kind < 7 ? type_channels[kind] : 0;
    if (!width || !height || width > INT32_MAX || height > INT32_MAX || !channels || depth > 16)
        return fail(error, PLIM_BAD_DATA, "PNG: byte 16: declares %u x %u pixels of %d bits, colour type %d", height,
                    width, depth, kind);
    row = ((uint64_t)width * (uint64_t)(channels * depth) + 7) / 8;
    if (!mul_u64(&all, row, height) || all / MOST_RATIO > bytes)
        return fail(error, PLIM_BAD_DATA, "PNG: %u x %u pixels are declared, which %zu bytes cannot hold", height,
                    width, bytes);
    out->height = height;
    out->width = width;
    out->channels = kind == PNG_COLOR_TYPE_PALETTE ? 3 + has_transparency(data, bytes) : channels;
    out->work_bytes = STATE_BYTES + 3 * ((uint64_t)width * 8 + 64 + VALUE_ALIGNMENT);
    return PLIM_OK;
}

/* ---- what the library calls ----------------------------------------- */

static _Thread_local struct png_run *running;

__attribute__((noreturn)) static void png_failed(png_structp library, png_const_charp message)
{
    struct png_run *run = running;
    (void)library;
    snprintf(run->message, sizeof run->message, "%s", message);
    longjmp(run->failed, 1);
}

static void png_warned(png_structp library, png_const_charp message)
{
    (void)library, (void)message;
    running->warnings++;
}

static png_voidp png_take(png_structp library, png_alloc_size_t bytes)
{
    struct png_run *run = running;
    (void)library;
    void *taken = value_buffer_take(&run->task->decoder->work, bytes);
    run->refused |= !taken;
    return taken;
}

/* Nothing is given back: the work memory is emptied before each image. */
static void png_give(png_structp library, png_voidp block)
{
    (void)library, (void)block;
}

static void png_next(png_structp library, png_bytep to, size_t bytes)
{
    struct png_run *run = running;
    if (bytes > run->task->bytes - run->at) {
        run->ended = true;
        png_failed(library, "premature end");
    }
    memcpy(to, run->task->data + run->at, bytes);
    run->at += bytes;
}

/* ---- decoding -------------------------------------------------------- */

/* Chunks that change no pixel are passed over: they may be larger than the image. (gAMA does, when grey is made of
   colours.) */
static void skip_chunks(const struct png_functions *call, png_structp library)
{
    static const png_byte skipped[] = "bKGD\0eXIf\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sTER\0"
                                      "tEXt\0tIME\0zTXt";
    call->png_set_keep_unknown_chunks(library, PNG_HANDLE_CHUNK_NEVER, skipped, (int)(sizeof skipped / 5));
}

static void set_alpha(const struct png_run *run, int channels, bool transparent, int depth)
{
    const struct png_functions *call = run->call;
    bool stored = call->png_get_color_type(run->library, run->info) & PNG_COLOR_MASK_ALPHA;
    if (channels % 2 != 0) {
        if (stored || transparent)
            call->png_set_strip_alpha(run->library);
    } else if (!stored && transparent) {
        call->png_set_tRNS_to_alpha(run->library);
    } else if (!stored) {
        call->png_set_add_alpha(run->library, (1u << depth) - 1, PNG_FILLER_AFTER);
    }
}

/* The order and the weights are TensorFlow's. */
static void set_transforms(const struct png_run *run, int channels)
{
    const struct png_functions *call = run->call;
    png_structp library = run->library;
    int depth = call->png_get_bit_depth(library, run->info), kind = call->png_get_color_type(library, run->info);
    bool gray = !(kind & PNG_COLOR_MASK_COLOR);
    set_alpha(run, channels, call->png_get_valid(library, run->info, PNG_INFO_tRNS), depth);
    if (depth > 8)
        call->png_set_strip_16(library);
    call->png_set_packing(library);
    if (kind == PNG_COLOR_TYPE_PALETTE)
        call->png_set_palette_to_rgb(library);
    if (gray && depth < 8)
        call->png_set_expand_gray_1_2_4_to_8(library);
    if (channels < 3 && !gray)
        call->png_set_rgb_to_gray(library, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    else if (channels >= 3 && gray)
        call->png_set_gray_to_rgb(library);
}

static plim_status read_image(struct image *out, struct png_run *run, plim_error *error)
{
    const struct image_task *task = run->task;
    const struct png_functions *call = run->call;
    png_structp library = run->library;
    int channels = task->channels ? task->channels : task->info->channels;
    call->png_set_read_fn(library, run, png_next);
    skip_chunks(call, library);
    call->png_read_info(library, run->info);
    set_transforms(run, channels);
    int passes = call->png_set_interlace_handling(library);
    call->png_read_update_info(library, run->info);
    size_t row_bytes = call->png_get_rowbytes(library, run->info);
    if (row_bytes != (size_t)task->info->width * (size_t)channels)
        return fail(error, PLIM_BAD_DATA, "PNG: cannot be decoded to %d channels", channels);
    TRY(image_take(out, task, task->info->height, task->info->width, channels, error));
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < task->info->height; y++)
            call->png_read_row(library, out->pixels + (size_t)y * row_bytes, NULL);
    call->png_read_end(library, NULL);
    out->warnings = run->warnings;
    return PLIM_OK;
}

static plim_status read_or_jump(struct image *out, struct png_run *run, plim_error *error)
{
    if (setjmp(run->failed)) {
        if (run->refused)
            return image_refused(run->task, error);
        return fail(error, PLIM_BAD_DATA, run->ended ? "PNG: %s at byte %zu" : "PNG: %s (byte %zu)", run->message,
                    run->ended ? run->task->bytes : run->at);
    }
    return read_image(out, run, error);
}

static plim_status decode_run(struct image *out, struct png_run *run, plim_error *error)
{
    const struct png_functions *call = run->call;
    run->library =
        call->png_create_read_struct_2(PNG_LIBPNG_VER_STRING, run, png_failed, png_warned, run, png_take, png_give);
    if (!run->library)
        return image_refused(run->task, error);
    run->info = call->png_create_info_struct(run->library);
    plim_status status = run->info ? read_or_jump(out, run, error) : image_refused(run->task, error);
    call->png_destroy_read_struct(&run->library, &run->info, NULL);
    return status;
}

static plim_status decode_png(struct image *out, const struct image_task *task, plim_error *error)
{
    struct png_run run = {.call = task->decoder->png, .task = task};
    running = &run;
    plim_status status = decode_run(out, &run, error);
    running = NULL;
    return status;
}

const struct image_codec image_codec_png = {
    .name = "PNG", .magic = "\x89PNG\r\n\x1a\n", .magic_bytes = 8, .probe = probe_png, .decode = decode_png};
