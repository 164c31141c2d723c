/* test_image.c - pixels are TensorFlow's, memory is bounded, damaged files are errors. */
#include <errno.h>

#include "base/numbers/count.h"
#include "golden_pictures.h"
#include "image/image.h"

#define WORK_BYTES ((uint64_t)1 << 20)

static uint8_t *value_bytes;
static struct value_buffer values;

static int make_room(void **state)
{
    (void)state;
    value_bytes = aligned_alloc(64, 1 << 20);
    value_buffer_init(&values, value_bytes, 1 << 20);
    return value_bytes ? 0 : -1;
}

static int free_room(void **state)
{
    (void)state;
    free(value_bytes);
    return 0;
}

static struct image_decoder *new_decoder(struct budget *budget, struct image_options options, uint64_t work_bytes)
{
    struct image_decoder *decoder;
    assert_int_equal(image_decoder_make(&decoder, budget, &options, work_bytes, NULL), PLIM_OK);
    return decoder;
}

static const struct {
    const char *name, *variant;
    int channels;
    struct image_options options;
} cases[] = {
    {"color.jpg", "", 0, {0}},
    {"color.jpg", "", 3, {0}},
    {"color.jpg", "@gray", 1, {0}},
    {"color.jpg", "@accurate", 0, {.accurate = true}},
    {"color.jpg", "@plain", 0, {.plain_upsampling = true}},
    {"color.jpg", "@ratio2", 0, {.ratio = 2}},
    {"color.jpg", "@ratio4", 0, {.ratio = 4}},
    {"color.jpg", "@ratio8", 0, {.ratio = 8}},
    {"color.jpg", "", 0, {.least_height = 16, .least_width = 10}},
    {"color.jpg", "@ratio2", 0, {.least_height = 15, .least_width = 10}},
    {"color.jpg", "@ratio4", 0, {.least_height = 8, .least_width = 10}},
    {"color.jpg", "@ratio8", 0, {.least_height = 1, .least_width = 5}},
    {"whole.jpg", "", 0, {0}},
    {"progressive.jpg", "", 0, {0}},
    {"gray.jpg", "", 0, {0}},
    {"gray.jpg", "@color", 3, {0}},
    {"small.jpg", "", 0, {0}},
    {"cmyk.jpg", "", 0, {0}},
    {"cmyk_adobe.jpg", "", 0, {0}},
    {"cmyk_adobe.jpg", "@color", 3, {0}},
    {"channels1.png", "@0", 0, {0}},
    {"channels1.png", "@1", 1, {0}},
    {"channels1.png", "@3", 3, {0}},
    {"channels1.png", "@4", 4, {0}},
    {"channels2.png", "@0", 0, {0}},
    {"channels2.png", "@1", 1, {0}},
    {"channels2.png", "@3", 3, {0}},
    {"channels2.png", "@4", 4, {0}},
    {"channels3.png", "@0", 0, {0}},
    {"channels3.png", "@1", 1, {0}},
    {"channels3.png", "@3", 3, {0}},
    {"channels3.png", "@4", 4, {0}},
    {"channels4.png", "@0", 0, {0}},
    {"channels4.png", "@1", 1, {0}},
    {"channels4.png", "@3", 3, {0}},
    {"channels4.png", "@4", 4, {0}},
    {"deep.png", "", 0, {0}},
    {"deep.png", "@4", 4, {0}},
    {"palette.png", "@0", 0, {0}},
    {"palette.png", "@1", 1, {0}},
    {"palette.png", "@3", 3, {0}},
    {"palette.png", "@4", 4, {0}},
    {"transparent.png", "@0", 0, {0}},
    {"transparent.png", "@1", 1, {0}},
    {"transparent.png", "@3", 3, {0}},
    {"transparent.png", "@4", 4, {0}},
    {"bits.png", "", 0, {0}},
    {"gray_transparent.png", "@4", 4, {0}},
    {"interlaced.png", "", 0, {0}},
    {"gamma.png", "@1", 1, {0}},
    {"gamma.png", "@3", 3, {0}},
    {"c1.bmp", "", 0, {0}},
    {"c3.bmp", "", 0, {0}},
    {"c4.bmp", "", 0, {0}},
    {"top_down.bmp", "", 0, {0}},
    {"small.bmp", "", 0, {0}},
    {"plain.gif", "", 0, {0}},
    {"frames.gif", "", 0, {0}},
    {"interlaced.gif", "", 0, {0}},
    {"transparent.gif", "", 0, {0}},
    {"part.gif", "", 0, {0}},
    {"long.gif", "", 3, {0}},
};

/* How many bytes differ; the shapes must be equal. */
static int64_t differences(const struct image *image, const struct golden *expected, const char *name)
{
    int64_t count = 0, elements = shape_count(&image->shape);
    if (image->shape.dim[0] != expected->height || image->shape.dim[1] != expected->width ||
        image->shape.dim[2] != expected->channels)
        print_error("%s: (%lld, %lld, %lld)\n", name, (long long)image->shape.dim[0], (long long)image->shape.dim[1],
                    (long long)image->shape.dim[2]);
    assert_int_equal(image->shape.dim[0], expected->height);
    assert_int_equal(image->shape.dim[1], expected->width);
    assert_int_equal(image->shape.dim[2], expected->channels);
    for (int64_t i = 0; i < elements; i++)
        count += image->pixels[i] != expected->data[i];
    return count;
}

/* Every way to decode: TensorFlow's bytes, with no more work memory than the header was found to need. */
static void decodes_as_tensorflow(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    int wrong = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s.npy", cases[i].name, cases[i].variant);
        struct golden file = golden_open(cases[i].name), expected = golden_array(name);
        struct image_info info;
        struct image image;
        plim_error error = {0};
        assert_int_equal(image_probe(&info, file.bytes, file.count, NULL), PLIM_OK);
        struct image_decoder *decoder = new_decoder(budget, cases[i].options, info.work_bytes);
        value_buffer_empty(&values);
        plim_status status =
            image_decode(&image, decoder, &(struct string){file.bytes, file.count}, cases[i].channels, &values, &error);
        if (status != PLIM_OK)
            print_error("%s: %s\n", name, error.message);
        assert_int_equal(status, PLIM_OK);
        int64_t different = differences(&image, &expected, name);
        if (different)
            print_error("%s: %lld bytes differ\n", name, (long long)different);
        wrong += different != 0;
        if (cases[i].channels == 0)
            assert_int_equal(info.channels, expected.channels);
        image_decoder_free(decoder);
        golden_close(&file);
        golden_close(&expected);
    }
    assert_int_equal(wrong, 0);
    end_budget(budget);
}

/* One decoder for all images, twice: nothing of one is seen in the next, and nothing is allocated. */
static void decoder_is_used_again(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct image_decoder *decoder = new_decoder(budget, (struct image_options){0}, WORK_BYTES);
    assert_true(budget_usage(budget).now_by_tag[TAG_PIPELINE] <= image_decoder_cost(WORK_BYTES));
    uint64_t takes = budget_usage(budget).takes, heap = 0;
    for (size_t n = 0; n < 2 * COUNT(cases); n++) {
        size_t i = n < COUNT(cases) ? n : 2 * COUNT(cases) - 1 - n;
        char name[64];
        snprintf(name, sizeof name, "%s%s.npy", cases[i].name, cases[i].variant);
        struct image_options none = {0};
        if (memcmp(&cases[i].options, &none, sizeof none) != 0)
            continue;
        struct golden file = golden_open(cases[i].name), expected = golden_array(name);
        struct image image;
        value_buffer_empty(&values);
        heap = budget_heap_bytes();
        assert_int_equal(
            image_decode(&image, decoder, &(struct string){file.bytes, file.count}, cases[i].channels, &values, NULL),
            PLIM_OK);
        assert_int_equal(budget_heap_bytes(), heap);
        assert_int_equal(differences(&image, &expected, name), 0);
        /* A broken one between them. */
        assert_int_not_equal(
            image_decode(&image, decoder, &(struct string){file.bytes, file.count / 2}, 3, &values, NULL), PLIM_OK);
        golden_close(&file);
        golden_close(&expected);
    }
    assert_int_equal(budget_usage(budget).takes, takes);
    image_decoder_free(decoder);
    end_budget(budget);
}

/* What TensorFlow refuses and we do: alpha where none is stored is opaque. */
static void adds_alpha(void **state)
{
    (void)state;
    static const char *const names[] = {"color.jpg", "plain.gif", "c3.bmp", "cmyk.jpg"};
    struct budget *budget = new_budget();
    struct image_decoder *decoder = new_decoder(budget, (struct image_options){0}, WORK_BYTES);
    for (int i = 0; i < 4; i++) {
        struct golden file = golden_open(names[i]);
        struct image three, four;
        value_buffer_empty(&values);
        assert_int_equal(image_decode(&three, decoder, &(struct string){file.bytes, file.count}, 3, &values, NULL),
                         PLIM_OK);
        assert_int_equal(image_decode(&four, decoder, &(struct string){file.bytes, file.count}, 4, &values, NULL),
                         PLIM_OK);
        for (int64_t p = 0; p < three.shape.dim[0] * three.shape.dim[1]; p++) {
            assert_memory_equal(three.pixels + 3 * p, four.pixels + 4 * p, 3);
            assert_int_equal(four.pixels[4 * p + 3], 255);
        }
        golden_close(&file);
    }
    image_decoder_free(decoder);
    end_budget(budget);
}

/* A value buffer that is too small says what it lacks; a decoder that is too small says so. */
static void says_what_is_lacking(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct golden file = golden_open("progressive.jpg");
    struct image_decoder *decoder = new_decoder(budget, (struct image_options){0}, WORK_BYTES);
    struct image image;
    struct value_buffer small;
    plim_error error = {0};
    value_buffer_init(&small, value_bytes, 29 * 37 * 3 - 1);
    assert_int_equal(image_decode(&image, decoder, &(struct string){file.bytes, file.count}, 0, &small, &error),
                     PLIM_OVER_BUDGET);
    assert_int_equal(small.wanted, 29 * 37 * 3);
    assert_int_equal(small.used, 0);
    assert_non_null(strstr(error.message, "3219 bytes"));
    assert_int_equal(image_decode(&image, decoder, &(struct string){file.bytes, file.count}, 2, &values, &error),
                     PLIM_BAD_JOB);
    image_decoder_free(decoder);
    static const char *const names[] = {"progressive.jpg", "channels3.png", "plain.gif"};
    for (int i = 0; i < 3; i++) {
        struct golden each = golden_open(names[i]);
        decoder = new_decoder(budget, (struct image_options){0}, 4096);
        value_buffer_empty(&values);
        assert_int_equal(image_decode(&image, decoder, &(struct string){each.bytes, each.count}, 0, &values, &error),
                         PLIM_OVER_BUDGET);
        assert_int_equal(values.wanted, 0);
        assert_int_equal(values.used, 0);
        assert_non_null(strstr(error.message, "it may use 4096"));
        image_decoder_free(decoder);
        golden_close(&each);
    }
    assert_int_equal(image_decoder_make(&decoder, budget, &(struct image_options){.ratio = 3}, 4096, &error),
                     PLIM_BAD_JOB);
    golden_close(&file);
    end_budget(budget);
}

static plim_status decode_copy(struct image_decoder *decoder, const uint8_t *data, size_t bytes, plim_error *error)
{
    struct image image;
    struct image_info info;
    uint8_t *exact = malloc(bytes ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, data, bytes);
    value_buffer_empty(&values);
    plim_status probed = image_probe(&info, exact, bytes, NULL);
    plim_status status = image_decode(&image, decoder, &(struct string){exact, bytes}, 3, &values, error);
    if (probed != PLIM_OK)
        assert_int_equal(status, probed);
    if (status == PLIM_OK && !decoder)
        assert_int_equal(image.shape.rank, 3);
    free(exact);
    return status;
}

/* Cut at every byte, every bit turned: an error of the right kind, or pixels. */
static void damaged_files(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool to_the_end; /* an error wherever it is cut: nothing follows the pixels that is not needed */
    } seeds[] = {{"small.jpg", true}, {"progressive.jpg", true}, {"palette.png", true},    {"bits.png", true},
                 {"small.bmp", true}, {"part.gif", false},       {"interlaced.gif", false}};
    struct budget *budget = new_budget();
    struct image_decoder *decoder = new_decoder(budget, (struct image_options){0}, WORK_BYTES);
    for (size_t s = 0; s < COUNT(seeds); s++) {
        struct golden file = golden_open(seeds[s].name);
        int cut_well = 0, refused = 0;
        for (size_t cut = 0; cut < file.count; cut++) {
            plim_error error = {0};
            plim_status status = decode_copy(decoder, file.bytes, cut, &error);
            cut_well += status == PLIM_OK;
            assert_true(status == PLIM_OK || status == PLIM_BAD_DATA);
        }
        assert_true(seeds[s].to_the_end ? cut_well == 0 : cut_well <= 16);
        for (size_t bit = 0; bit < 8 * file.count; bit++) {
            file.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            plim_status status = decode_copy(decoder, file.bytes, file.count, NULL);
            refused += status != PLIM_OK;
            assert_true(status == PLIM_OK || status == PLIM_BAD_DATA || status == PLIM_OVER_BUDGET);
            file.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        assert_true(refused > 100);
        golden_close(&file);
    }
    image_decoder_free(decoder);
    end_budget(budget);
}

static void expect_refusal(struct image_decoder *decoder, const uint8_t *data, size_t bytes, plim_status status,
                           const char *what)
{
    plim_error error = {0};
    plim_status got = decode_copy(decoder, data, bytes, &error);
    if (got != status || !strstr(error.message, what))
        print_error("%d: %s\n", got, error.message);
    assert_int_equal(got, status);
    assert_non_null(strstr(error.message, what));
}

/* Files that declare what they do not hold. */
static void bombs(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct image_decoder *decoder = new_decoder(budget, (struct image_options){0}, WORK_BYTES);
    struct golden jpeg = golden_open("small.jpg"), png = golden_open("bits.png"), bmp = golden_open("c3.bmp"),
                  slow = golden_open("progressive.jpg");
    uint8_t *frame = memmem(jpeg.bytes, jpeg.count, "\xff\xc0", 2);
    assert_non_null(frame);
    memset(frame + 5, 0xff, 4);
    expect_refusal(decoder, jpeg.bytes, jpeg.count, PLIM_BAD_DATA, "65535 x 65535 pixels are declared");
    memset(frame + 5, 0, 4);
    expect_refusal(decoder, jpeg.bytes, jpeg.count, PLIM_BAD_DATA, "declares 0 x 0");
    frame = memmem(slow.bytes, slow.count, "\xff\xc2", 2);
    assert_non_null(frame);
    memset(frame + 5, 0x7f, 4);
    expect_refusal(decoder, slow.bytes, slow.count, PLIM_OVER_BUDGET, "there is room for");
    memcpy(frame + 5, "\x00\x50\x10\x00", 4); /* pixels fit the value buffer, coefficients not the decoder */
    expect_refusal(decoder, slow.bytes, slow.count, PLIM_OVER_BUDGET, "it may use 1048576");
    memset(png.bytes + 17, 0x7f, 3);
    memset(png.bytes + 21, 0x7f, 3);
    expect_refusal(decoder, png.bytes, png.count, PLIM_BAD_DATA, "cannot hold");
    memset(bmp.bytes + 18, 0x7f, 8);
    expect_refusal(decoder, bmp.bytes, bmp.count, PLIM_BAD_DATA, "premature end");
    expect_refusal(decoder, (const uint8_t *)"RIFF", 4, PLIM_BAD_DATA, "first bytes");
    expect_refusal(decoder, (const uint8_t *)"", 0, PLIM_BAD_DATA, "first bytes");
    golden_close(&jpeg);
    golden_close(&png);
    golden_close(&bmp);
    golden_close(&slow);
    image_decoder_free(decoder);
    end_budget(budget);
}

/* The same scan again and again: each would run over the whole image. */
static void too_many_scans(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct image_decoder *decoder = new_decoder(budget, (struct image_options){0}, WORK_BYTES);
    struct golden file = golden_open("progressive.jpg");
    uint8_t *many = malloc(file.count + 200 * 10);
    assert_non_null(many);
    size_t at = file.count - 2; /* before the end of the image: all tables are there */
    memcpy(many, file.bytes, at);
    for (int i = 0; i < 200; i++, at += 10)
        memcpy(many + at, "\xff\xda\0\x08\1\1\0\1\5\0", 10); /* one component, coefficients 1 to 5, no data */
    memcpy(many + at, file.bytes + file.count - 2, 2);
    expect_refusal(decoder, many, at + 2, PLIM_BAD_DATA, "too many scans");
    free(many);
    golden_close(&file);
    image_decoder_free(decoder);
    end_budget(budget);
}

/* Whatever allocation fails while a decoder is made: an error, and nothing is kept. */
static void decoder_that_cannot_be_made(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct image_decoder *decoder;
    int failures = 0;
    for (int n = 1; n < 8; n++) {
        fault_arm(FAULT_ALLOCATE, n, false, ENOMEM);
        plim_status status = image_decoder_make(&decoder, budget, &(struct image_options){0}, WORK_BYTES, NULL);
        bool fired = fault_disarm();
        if (status == PLIM_OK)
            image_decoder_free(decoder);
        else
            assert_true(fired);
        failures += status != PLIM_OK;
        assert_int_equal(budget_usage(budget).now_by_tag[TAG_PIPELINE], 0);
    }
    assert_true(failures >= 3);
    end_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_as_tensorflow),
        cmocka_unit_test(decoder_is_used_again),
        cmocka_unit_test(adds_alpha),
        cmocka_unit_test(says_what_is_lacking),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(bombs),
        cmocka_unit_test(too_many_scans),
        cmocka_unit_test(decoder_that_cannot_be_made),
    };
    return cmocka_run_group_tests_name("image", tests, make_room, free_room);
}
