/* test_resize.c - resizing and augmentation against TensorFlow and Keras. */
#include <math.h>

#include "golden_pictures.h"
#include "image/augment.h"
#include "image/resize_rows.h"

#define MOST_FLOATS 20000

static float made[MOST_FLOATS];
static uint8_t scratch_bytes[1 << 16] __attribute__((aligned(64)));

/* The largest difference over the largest value. */
static double distance(const float *got, const struct golden *expected)
{
    double most = 0, largest = 1;
    const float *want = (const float *)(const void *)expected->data;
    for (int64_t i = 0; i < expected->height * expected->width * expected->channels; i++) {
        double difference = fabs((double)got[i] - (double)want[i]);
        most = difference > most || isnan(difference) ? difference : most;
        largest = fabs((double)want[i]) > largest ? fabs((double)want[i]) : largest;
    }
    return isnan(most) ? 1 : most / largest;
}

static const int64_t sizes[][2] = {{13, 50}, {64, 17}, {5, 4}};

/* -1 when there is no such file. */
static double resize_distance(const char *kind, int method, bool antialias, const int64_t *size)
{
    char name[80], path[512];
    snprintf(name, sizeof name, "resize_%s_%s_%d_%lldx%lld.npy", kind, resize_method_names[method], antialias,
             (long long)size[0], (long long)size[1]);
    golden_path(path, sizeof path, name);
    if (access(path, R_OK) != 0)
        return -1;
    char source[32];
    snprintf(source, sizeof source, "picture_%s.npy", kind);
    struct golden expected = golden_array(name), in = golden_array(source);
    struct resize resize = {.method = (enum resize_method)method,
                            .antialias = antialias,
                            .from = {in.real ? TYPE_F32 : TYPE_U8, in.height, in.width, in.channels},
                            .to_height = size[0],
                            .to_width = size[1]};
    uint64_t bytes;
    struct value_buffer scratch;
    assert_int_equal(resize_scratch(&bytes, &resize, NULL), PLIM_OK);
    assert_true(bytes <= sizeof scratch_bytes);
    value_buffer_init(&scratch, scratch_bytes, bytes);
    assert_int_equal(resize_image(made, in.data, &resize, &scratch, NULL), PLIM_OK);
    assert_int_equal(scratch.used, 0);
    assert_int_equal(resize_type(&resize), expected.real ? TYPE_F32 : TYPE_U8);
    double far = expected.real
                     ? distance(made, &expected)
                     : memcmp(made, expected.data, (size_t)(expected.height * expected.width * expected.channels)) != 0;
    golden_close(&expected);
    golden_close(&in);
    return far;
}

static void resizes_as_tensorflow(void **state)
{
    (void)state;
    int files = 0;
    for (int method = 0; method < 4; method++) {
        for (int antialias = 0; antialias < 2; antialias++) {
            double worst = 0;
            for (int s = 0; s < 6; s++) {
                double far = resize_distance(s < 3 ? "u8" : "f32", method, antialias, sizes[s % 3]);
                files += far >= 0;
                worst = far > worst ? far : worst;
            }
            print_message("%s%s: %.2g\n", resize_method_names[method], antialias ? ", antialias" : "", worst);
            /* Bits are equal where the order of operations is: without antialias, in nearest and bilinear. */
            assert_true(worst <= (method < 2 && !antialias ? 0 : 1e-6));
        }
    }
    assert_int_equal(files, 24);
}

/* The same bits however many channels are done at once: three at once against each alone. */
static void channels_do_not_matter(void **state)
{
    (void)state;
    struct golden in = golden_array("picture_u8.npy");
    static uint8_t one[29 * 37];
    static float alone[40 * 41];
    struct value_buffer scratch;
    for (int antialias = 0; antialias < 2; antialias++) {
        for (int64_t to = 1; to <= 40; to++) {
            struct resize resize = {
                .method = RESIZE_BILINEAR, .antialias = antialias, .to_height = to, .to_width = to + 1};
            resize.from = (struct picture){TYPE_U8, in.height, in.width, 3};
            value_buffer_init(&scratch, scratch_bytes, sizeof scratch_bytes);
            assert_int_equal(resize_image(made, in.data, &resize, &scratch, NULL), PLIM_OK);
            resize.from.channels = 1;
            for (int c = 0; c < 3; c++) {
                for (int64_t i = 0; i < in.height * in.width; i++)
                    one[i] = in.data[3 * i + c];
                assert_int_equal(resize_image(alone, one, &resize, &scratch, NULL), PLIM_OK);
                for (int64_t i = 0; i < to * (to + 1); i++)
                    assert_true(alone[i] == made[3 * i + c]);
            }
        }
    }
    golden_close(&in);
}

/* The copy of the loops that this processor runs and the plain one: the same bits. */
static void instruction_sets_agree(void **state)
{
    (void)state;
    enum { COUNT = 61 };
    const struct resize_rows *chosen = resize_rows_choose(), *plain = &resize_rows_plain;
    uint8_t top[3 * COUNT + ROWS_BYTES], bottom[sizeof top];
    float a[3 * COUNT + 1] = {0}, b[3 * COUNT + 1] = {0}, row[3 * COUNT + 1], weights[COUNT];
    struct tap taps[COUNT];
    for (size_t i = 0; i < sizeof top; i++)
        top[i] = (uint8_t)(i * 37 + i * i), bottom[i] = (uint8_t)(i * 91 + 5);
    for (int i = 0; i < COUNT; i++) {
        taps[i] = (struct tap){3 * i, i % 5 ? 3 * i + 3 : 3 * i, i % 5 ? 0.9337f * (float)i / COUNT : 0};
        weights[i] = 0.01f * (float)(i - 20);
    }
    for (int i = 0; i < 3 * COUNT + 1; i++)
        row[i] = 0.37f * (float)top[i];
    chosen->mix_three(a, top, bottom, taps, COUNT, 0.31f);
    plain->mix_three(b, top, bottom, taps, COUNT, 0.31f);
    assert_memory_equal(a, b, 3 * COUNT * sizeof *a);
    for (int n = 0; n < COUNT; n += 7) {
        chosen->set_bytes(a, top, n, 0.3f), plain->set_bytes(b, top, n, 0.3f);
        chosen->add_bytes(a, bottom, n, 0.7f), plain->add_bytes(b, bottom, n, 0.7f);
        assert_memory_equal(a, b, sizeof a - sizeof *a);
        chosen->set_floats(a, row, n, 0.3f), plain->set_floats(b, row, n, 0.3f);
        chosen->add_floats(a, row + 1, n, 0.7f), plain->add_floats(b, row + 1, n, 0.7f);
        assert_memory_equal(a, b, sizeof a - sizeof *a);
        chosen->sum_three(a, row, weights, n, 1.7f), plain->sum_three(b, row, weights, n, 1.7f);
        assert_memory_equal(a, b, 3 * sizeof *a);
    }
}

/* A flat picture stays flat, whatever the sizes: weights sum to one and no pixel outside is read. */
static void flat_stays_flat(void **state)
{
    (void)state;
    for (int method = 0; method < 4; method++)
        for (int64_t from = 1; from <= 12; from++)
            for (int64_t to = 1; to <= 25; to++) {
                struct resize resize = {.method = (enum resize_method)method,
                                        .antialias = to % 2,
                                        .from = {TYPE_F32, from, 13 - from, 2},
                                        .to_height = to,
                                        .to_width = 26 - to};
                struct value_buffer scratch;
                size_t floats = (size_t)(from * (13 - from) * 2);
                float *flat = malloc(floats * sizeof *flat), *out = malloc((size_t)(to * (26 - to) * 2) * sizeof *out);
                assert_true(flat && out);
                for (size_t i = 0; i < floats; i++)
                    flat[i] = 200;
                value_buffer_init(&scratch, scratch_bytes, sizeof scratch_bytes);
                assert_int_equal(resize_image(out, flat, &resize, &scratch, NULL), PLIM_OK);
                for (int64_t i = 0; i < to * (26 - to) * 2; i++) {
                    if (!(fabsf(out[i] - 200) < 5e-4f))
                        print_error("method %d, %lld to %lld: %.9g\n", method, (long long)from, (long long)to,
                                    (double)out[i]);
                    assert_true(fabsf(out[i] - 200) < 5e-4f);
                }
                free(flat);
                free(out);
            }
}

static void refuses_sizes(void **state)
{
    (void)state;
    static const int64_t bad[][5] = {{0, 3, 3, 3, 3},        {3, -1, 3, 3, 3},        {3, 3, 0, 3, 3},
                                     {3, 3, 3, 0, 3},        {3, 3, 3, 3, INT64_MAX}, {1 << 20, 1 << 20, 1 << 30, 3, 3},
                                     {3, 1 << 24, 256, 3, 3}};
    struct value_buffer scratch;
    plim_error error;
    uint64_t bytes;
    value_buffer_init(&scratch, scratch_bytes, 64);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct resize resize = {
            .from = {TYPE_U8, bad[i][0], bad[i][1], bad[i][2]}, .to_height = bad[i][3], .to_width = bad[i][4]};
        assert_int_equal(resize_scratch(&bytes, &resize, &error), PLIM_BAD_DATA);
        assert_int_equal(resize_image(made, made, &resize, &scratch, &error), PLIM_BAD_DATA);
    }
    for (int method = 0; method < 4; method++) {
        struct resize resize = {
            .method = (enum resize_method)method, .from = {TYPE_U8, 9, 9, 3}, .to_height = 30, .to_width = 30};
        assert_int_equal(resize_scratch(&bytes, &resize, NULL), PLIM_OK);
        assert_int_equal(resize_image(made, made, &resize, &scratch, &error), PLIM_OVER_BUDGET);
        assert_int_equal(scratch.wanted, bytes);
        assert_int_equal(scratch.used, 0);
    }
    struct resize wide = {.from = {TYPE_I64, 9, 9, 3}, .to_height = 3, .to_width = 3};
    assert_int_equal(resize_scratch(&bytes, &wide, &error), PLIM_UNSUPPORTED);
}

static void crops_and_pads(void **state)
{
    (void)state;
    static const int64_t to[][2] = {{13, 50}, {40, 20}, {10, 11}};
    struct golden in = golden_array("picture_u8.npy");
    struct picture picture = {TYPE_U8, in.height, in.width, in.channels};
    uint8_t *out = (uint8_t *)made;
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "crop_or_pad_%lldx%lld.npy", (long long)to[i][0], (long long)to[i][1]);
        struct golden expected = golden_array(name);
        assert_int_equal(crop_or_pad_image(out, in.data, &picture, to[i][0], to[i][1], NULL), PLIM_OK);
        assert_memory_equal(out, expected.data, expected.height * expected.width * expected.channels);
        golden_close(&expected);
    }
    assert_int_equal(crop_image(out, in.data, &picture, &(struct crop){3, 7, 5, 6}, NULL), PLIM_OK);
    for (int y = 0; y < 5; y++)
        assert_memory_equal(out + y * 18, in.data + ((3 + y) * 37 + 7) * 3, 18);
    assert_int_equal(crop_image(out, in.data, &picture, &(struct crop){24, 31, 5, 6}, NULL), PLIM_OK);
    assert_int_equal(crop_image(out, in.data, &picture, &(struct crop){25, 31, 5, 6}, NULL), PLIM_BAD_DATA);
    assert_int_equal(crop_image(out, in.data, &picture, &(struct crop){0, -1, 5, 6}, NULL), PLIM_BAD_DATA);
    assert_int_equal(crop_image(out, in.data, &picture, &(struct crop){0, 0, 30, 6}, NULL), PLIM_BAD_DATA);
    golden_close(&in);
}

/* ---- augmentation ------------------------------------------------------ */

static struct golden real_picture(float *floats)
{
    struct golden in = golden_array("picture_u8.npy");
    for (int64_t i = 0; i < in.height * in.width * 3; i++)
        floats[i] = in.data[i];
    return in;
}

static void warps_as_keras(void **state)
{
    (void)state;
    static float floats[29 * 37 * 3];
    struct golden in = real_picture(floats);
    struct picture picture = {TYPE_F32, in.height, in.width, 3};
    const struct {
        const char *name;
        struct warp_map map;
    } kinds[] = {{"rotation", warp_rotation(0.07f, 29, 37)},
                 {"zoom", warp_zoom(-0.2f, 0.3f, 29, 37)},
                 {"translation", warp_translation(1.3f, -0.4f, 29, 37)}};
    for (int k = 0; k < 3; k++)
        for (int f = 0; f < 4; f++)
            for (int nearest = 0; nearest < (k == 0 ? 2 : 1); nearest++) {
                char name[64];
                struct warp warp = {
                    .map = kinds[k].map, .fill = (enum warp_fill)f, .fill_value = 7, .nearest = nearest};
                snprintf(name, sizeof name, "augment_%s_%s_%s.npy", kinds[k].name, warp_fill_names[f],
                         nearest ? "nearest" : "bilinear");
                struct golden expected = golden_array(name);
                assert_int_equal(warp_image(made, floats, &picture, &warp, NULL), PLIM_OK);
                double far = distance(made, &expected);
                if (far > 1e-4)
                    print_error("%s: %g\n", name, far);
                assert_true(far <= 1e-4); /* sines and cosines differ in their last bit */
                golden_close(&expected);
            }
    golden_close(&in);
}

/* Numbers that no layer draws: the fill value, no crash. */
static void warps_with_odd_numbers(void **state)
{
    (void)state;
    static const float odd[] = {INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 1e9f, -1e8f};
    float in[6] = {1, 2, 3, 4, 5, 6};
    struct picture picture = {TYPE_F32, 2, 3, 1}, thin = {TYPE_F32, 6, 1, 1};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (int fill = 0; fill < 4; fill++)
            for (int nearest = 0; nearest < 2; nearest++) {
                struct warp warp = {
                    .map = {{1, 0, odd[i]}, {0, 1, 0}}, .fill = (enum warp_fill)fill, .nearest = nearest};
                assert_int_equal(warp_image(made, in, &picture, &warp, NULL), PLIM_OK);
                assert_true(made[0] >= 0 && made[0] <= 6);
                assert_int_equal(warp_image(made, in, &thin, &warp, NULL), PLIM_OK);
            }
}

static void flips(void **state)
{
    (void)state;
    static const uint8_t in[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; /* (2, 3, 2) */
    static const uint8_t flipped[4][12] = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                                           {5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8},
                                           {7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6},
                                           {11, 12, 9, 10, 7, 8, 5, 6, 3, 4, 1, 2}};
    struct picture picture = {TYPE_U8, 2, 3, 2};
    uint8_t out[12];
    for (int i = 0; i < 4; i++) {
        memcpy(out, in, sizeof out);
        flip_image(out, &picture, i & 1, i & 2);
        assert_memory_equal(out, flipped[i], 12);
    }
}

static void expect_values(const char *name)
{
    struct golden expected = golden_array(name);
    double far = distance(made, &expected);
    if (far > 2e-6)
        print_error("%s: %g\n", name, far);
    assert_true(far <= 2e-6);
    golden_close(&expected);
}

static void values_as_keras(void **state)
{
    (void)state;
    struct golden in = real_picture(made);
    adjust_contrast(made, 29 * 37, 3, 1.4f, 0, 255);
    expect_values("augment_contrast.npy");
    golden_close(&in);
    in = real_picture(made);
    adjust_brightness(made, 29 * 37, 3, -0.3f, 0, 255);
    expect_values("augment_brightness.npy");
    golden_close(&in);
    in = real_picture(made);
    standardize_image(made, 29 * 37, 3);
    expect_values("augment_standard.npy");
    golden_close(&in);
    in = real_picture(made);
    normalize_image(made, 29 * 37, 3, (const float[]){100, 110, 120}, (const float[]){900, 0, 16});
    expect_values("augment_normal.npy");
    golden_close(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizes_as_tensorflow),
        cmocka_unit_test(channels_do_not_matter),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(flat_stays_flat),
        cmocka_unit_test(refuses_sizes),
        cmocka_unit_test(crops_and_pads),
        cmocka_unit_test(warps_as_keras),
        cmocka_unit_test(warps_with_odd_numbers),
        cmocka_unit_test(flips),
        cmocka_unit_test(values_as_keras),
    };
    return cmocka_run_group_tests_name("resize", tests, NULL, NULL);
}
