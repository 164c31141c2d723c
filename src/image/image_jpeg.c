/* image_jpeg.c - JPEG by libjpeg-turbo, with tf.io.decode_jpeg's settings.

   The library reports errors by a jump: decode_or_jump and what it calls hold nothing that a jump would lose. Its
   object is made once. Invariants: 1. no table of an image is there for the next one, though the library would keep
   them: an image that lacks its tables must not decode by accident; 2. after image_decoder_make the library takes
   memory from the decoder's work memory only. */
#include "image/image_jpeg.h"

#include "base/numbers/checked.h"

/* Each scan of a progressive file runs over the whole image: many in few bytes are a bomb. Encoders make 10 or so. */
#define MOST_SCANS 100
/* What jpeg_create_decompress allocates with malloc, once. */
#define LIBRARY_BYTES ((uint64_t)16 * 1024)

static const struct jpeg *of(const struct jpeg_decompress_struct *library)
{
    return library->client_data;
}

static void jump(j_common_ptr library)
{
    struct jpeg *jpeg = library->client_data;
    library->err->format_message(library, jpeg->message);
    longjmp(jpeg->failed, 1);
}

void jpeg_stop(struct jpeg *jpeg, const char *message)
{
    snprintf(jpeg->message, sizeof jpeg->message, "%s", message);
    longjmp(jpeg->failed, 1);
}

__attribute__((noreturn)) static void stop_at_end(j_decompress_ptr library)
{
    struct jpeg *jpeg = library->client_data;
    jpeg->ended = true;
    jpeg_stop(jpeg, "premature end");
}

/* Warnings have a negative level: faults that the library gets over, as in TensorFlow. */
static void count_warning(j_common_ptr library, int level)
{
    library->err->num_warnings += level < 0;
}

static void keep_silent(j_common_ptr library)
{
    (void)library;
}

static void nothing(j_decompress_ptr library)
{
    (void)library;
}

/* The whole image is there from the start: asking for more is its premature end. */
static boolean no_more(j_decompress_ptr library)
{
    stop_at_end(library);
}

static void skip(j_decompress_ptr library, long bytes)
{
    struct jpeg_source_mgr *source = library->src;
    if (bytes <= 0)
        return;
    if ((size_t)bytes > source->bytes_in_buffer)
        stop_at_end(library);
    source->next_input_byte += bytes;
    source->bytes_in_buffer -= (size_t)bytes;
}

static void limit_scans(j_common_ptr library)
{
    if (((j_decompress_ptr)library)->input_scan_number > MOST_SCANS)
        jpeg_stop(library->client_data, "has too many scans");
}

uint64_t jpeg_cost(void)
{
    return budget_charge(sizeof(struct jpeg)) + LIBRARY_BYTES;
}

static plim_status create(struct jpeg *jpeg, plim_error *error)
{
    if (setjmp(jpeg->failed))
        return fail(error, PLIM_NO_MEMORY, "the JPEG library cannot start: %s", jpeg->message);
    jpeg->call.jpeg_CreateDecompress(&jpeg->library, JPEG_LIB_VERSION, sizeof jpeg->library);
    jpeg->made_with = jpeg->library.mem;
    return PLIM_OK;
}

plim_status jpeg_make(struct jpeg **out, struct image_decoder *decoder, plim_error *error)
{
    struct jpeg_functions functions;
    TRY(jpeg_library(&functions, error));
    TRY(budget_reserve(decoder->budget, TAG_PIPELINE, LIBRARY_BYTES, error));
    struct jpeg *jpeg = budget_take(decoder->budget, TAG_PIPELINE, sizeof *jpeg);
    if (!jpeg) {
        budget_release(decoder->budget, TAG_PIPELINE, LIBRARY_BYTES);
        return budget_refused(decoder->budget, TAG_PIPELINE, sizeof *jpeg, error);
    }
    jpeg->work = &decoder->work;
    jpeg->call = functions;
    jpeg->library.err = functions.jpeg_std_error(&jpeg->errors);
    jpeg->library.client_data = jpeg;
    jpeg->errors.error_exit = jump;
    jpeg->errors.emit_message = count_warning;
    jpeg->errors.output_message = keep_silent;
    plim_status status = create(jpeg, error);
    if (status != PLIM_OK) {
        jpeg_free(jpeg, decoder->budget);
        return status;
    }
    jpeg->source = (struct jpeg_source_mgr){.init_source = nothing,
                                            .fill_input_buffer = no_more,
                                            .skip_input_data = skip,
                                            .resync_to_restart = functions.jpeg_resync_to_restart,
                                            .term_source = nothing};
    jpeg->progress.progress_monitor = limit_scans;
    jpeg->library.src = &jpeg->source;
    jpeg->library.progress = &jpeg->progress;
    jpeg_memory_use(jpeg);
    *out = jpeg;
    return PLIM_OK;
}

void jpeg_free(struct jpeg *jpeg, struct budget *budget)
{
    if (!jpeg)
        return;
    jpeg->library.mem = jpeg->made_with;
    if (jpeg->made_with)
        jpeg->call.jpeg_destroy_decompress(&jpeg->library);
    budget_give(budget, TAG_PIPELINE, jpeg, sizeof *jpeg);
    budget_release(budget, TAG_PIPELINE, LIBRARY_BYTES);
}

static void start_image(struct jpeg *jpeg, const struct image_task *task)
{
    struct jpeg_decompress_struct *library = &jpeg->library;
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        library->quant_tbl_ptrs[i] = NULL;
    for (int i = 0; i < NUM_HUFF_TBLS; i++)
        library->dc_huff_tbl_ptrs[i] = library->ac_huff_tbl_ptrs[i] = NULL;
    jpeg->planned = NULL;
    jpeg->refused = jpeg->ended = false;
    jpeg->errors.num_warnings = 0;
    jpeg->bytes = task->bytes;
    jpeg->source.next_input_byte = task->data;
    jpeg->source.bytes_in_buffer = task->bytes;
}

static int choose_ratio(const struct image_options *options, const struct jpeg_decompress_struct *library)
{
    if (!options->least_height || !options->least_width)
        return options->ratio ? options->ratio : 1;
    for (int ratio = 8; ratio > 1; ratio /= 2)
        if ((library->image_height + (JDIMENSION)ratio - 1) / (JDIMENSION)ratio >= options->least_height &&
            (library->image_width + (JDIMENSION)ratio - 1) / (JDIMENSION)ratio >= options->least_width)
            return ratio;
    return 1;
}

/* CMYK is decoded as such and made RGB here: the library would refuse. */
static void set_output(struct jpeg_decompress_struct *library, const struct image_options *options, int channels)
{
    bool cmyk = library->jpeg_color_space == JCS_CMYK || library->jpeg_color_space == JCS_YCCK;
    library->out_color_space = channels == 1 ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : channels == 4 ? JCS_EXT_RGBA : JCS_RGB;
    library->do_fancy_upsampling = !options->plain_upsampling;
    library->dct_method = options->accurate ? JDCT_ISLOW : JDCT_IFAST;
    library->scale_num = 1;
    library->scale_denom = (unsigned)choose_ratio(options, library);
    of(library)->call.jpeg_calc_output_dimensions(library);
}

/* TensorFlow's rule: Adobe stores the inks inverted. */
static void rgb_of_cmyk(uint8_t *to, const uint8_t *from, int64_t width, int channels, bool inverted)
{
    for (int64_t x = 0; x < width; x++, to += channels, from += 4) {
        int black = inverted ? from[3] : 255 - from[3];
        for (int c = 0; c < 3; c++)
            to[c] = (uint8_t)(black * (inverted ? from[c] : 255 - from[c]) / 255);
        if (channels == 4)
            to[3] = 255;
    }
}

static void read_rows(struct jpeg_decompress_struct *library, const struct image *image)
{
    enum { MOST_ROWS = 8 };
    int64_t row_bytes = image->shape.dim[1] * image->shape.dim[2];
    while (library->output_scanline < library->output_height) {
        JSAMPROW rows[MOST_ROWS];
        JDIMENSION left = library->output_height - library->output_scanline,
                   count = left < MOST_ROWS ? left : MOST_ROWS;
        for (JDIMENSION i = 0; i < count; i++)
            rows[i] = image->pixels + (library->output_scanline + i) * row_bytes;
        of(library)->call.jpeg_read_scanlines(library, rows, count);
    }
}

static void read_cmyk_rows(struct jpeg_decompress_struct *library, const struct image *image)
{
    int64_t width = image->shape.dim[1];
    int channels = (int)image->shape.dim[2];
    JSAMPARRAY inks = library->mem->alloc_sarray((j_common_ptr)library, JPOOL_IMAGE, (JDIMENSION)width * 4, 1);
    while (library->output_scanline < library->output_height) {
        uint8_t *to = image->pixels + library->output_scanline * width * channels;
        of(library)->call.jpeg_read_scanlines(library, inks, 1);
        rgb_of_cmyk(to, inks[0], width, channels, library->saw_Adobe_marker);
    }
}

/* What follows the last row is not read: the image is whole without it, as in TensorFlow. */
static plim_status decode(struct image *out, struct jpeg *jpeg, const struct image_task *task, plim_error *error)
{
    struct jpeg_decompress_struct *library = &jpeg->library;
    start_image(jpeg, task);
    jpeg->call.jpeg_read_header(library, TRUE);
    int channels = task->channels ? task->channels : library->num_components < 3 ? library->num_components : 3;
    if (channels == 2)
        return fail(error, PLIM_BAD_DATA, "JPEG: has 2 channels");
    set_output(library, &task->decoder->options, channels);
    TRY(image_take(out, task, library->output_height, library->output_width, channels, error));
    jpeg->call.jpeg_start_decompress(library);
    if (library->out_color_space == JCS_CMYK)
        read_cmyk_rows(library, out);
    else
        read_rows(library, out);
    out->warnings = jpeg->errors.num_warnings;
    return PLIM_OK;
}

static plim_status report(const struct jpeg *jpeg, const struct image_task *task, plim_error *error)
{
    size_t at = jpeg->bytes - jpeg->source.bytes_in_buffer;
    if (jpeg->refused)
        return image_refused(task, error);
    if (jpeg->ended)
        return fail(error, PLIM_BAD_DATA, "JPEG: premature end at byte %zu", jpeg->bytes);
    return fail(error, PLIM_BAD_DATA, "JPEG: byte %zu: %s", at, jpeg->message);
}

static plim_status decode_or_jump(struct image *out, const struct image_task *task, plim_error *error)
{
    struct jpeg *jpeg = task->decoder->jpeg;
    if (setjmp(jpeg->failed))
        return report(jpeg, task, error);
    return decode(out, jpeg, task, error);
}

static plim_status decode_jpeg(struct image *out, const struct image_task *task, plim_error *error)
{
    plim_status status = decode_or_jump(out, task, error);
    task->decoder->jpeg->call.jpeg_abort_decompress(&task->decoder->jpeg->library);
    return status;
}

const struct image_codec image_codec_jpeg = {
    .name = "JPEG", .magic = "\xff\xd8\xff", .magic_bytes = 3, .probe = jpeg_probe, .decode = decode_jpeg};
