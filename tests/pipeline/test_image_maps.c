/* test_image_maps.c - images from files through the pipeline: equal to direct calls of the modules that decode, resize
   and change them, at any number of workers and from any place; folders of classes; costs; errors with their file. */
#include "golden_pictures.h"
#include "made_source.h"

#include "base/files/file.h"
#include "base/numbers/count.h"
#include "pipeline/core/stage.h"

#define FILES_MOST 64
#define EPOCHS     2

/* ---- pipelines over the golden pictures ---- */

struct studio {
    struct budget *budget;
    struct arena arena;
    struct dataset *dataset;
    plim_error error;
};

static struct dataset *pictures(struct budget *budget)
{
    char color[512], jpeg[512], png[512];
    struct source *source;
    plim_error error = {0};
    golden_path(color, sizeof color, "color.jpg");
    golden_path(jpeg, sizeof jpeg, "[!c]*.jpg"); /* inks cannot be made gray */
    golden_path(png, sizeof png, "*.png");
    const struct images_options options = {.patterns = (const char *[]){color, jpeg, png}, .pattern_count = 3};
    if (images_open(&source, budget, &options, &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    return dataset_from_source(source);
}

static plim_status read_around(struct studio *studio, struct dataset *dataset, const char *text)
{
    struct yaml *list;
    arena_init(&studio->arena, studio->budget, TAG_PLANNER);
    studio->dataset = dataset;
    plim_status status = yaml_parse(&list, &studio->arena, "job.yaml", text, strlen(text), &studio->error);
    for (struct yaml *entry = status == PLIM_OK ? list->first : NULL; entry && status == PLIM_OK; entry = entry->next)
        status = stage_read(&studio->dataset, "job.yaml", entry, SEED, &studio->error);
    return status;
}

static plim_status enter(struct studio *studio, const char *text)
{
    memset(studio, 0, sizeof *studio);
    studio->budget = open_budget();
    return read_around(studio, pictures(studio->budget), text);
}

static void leave(struct studio *studio)
{
    dataset_unref(studio->dataset);
    arena_release(&studio->arena);
    close_budget(studio->budget);
}

/* ---- the same by direct calls ---- */

struct direct {
    struct picture picture;
    uint8_t *pixels;
};

static uint64_t pixel_count(const struct picture *picture)
{
    return (uint64_t)(picture->height * picture->width * picture->channels);
}

/* Another picture in its place; the old pixels are returned. */
static uint8_t *renew(struct direct *direct, enum type type, int64_t height, int64_t width)
{
    uint8_t *old = direct->pixels;
    direct->picture = (struct picture){type, height, width, direct->picture.channels};
    direct->pixels = malloc(pixel_count(&direct->picture) * type_bytes(type) + 1);
    assert_non_null(direct->pixels);
    return old;
}

static void to_floats(struct direct *direct)
{
    if (direct->picture.type == TYPE_F32)
        return;
    uint8_t *old = renew(direct, TYPE_F32, direct->picture.height, direct->picture.width);
    for (uint64_t i = 0; i < pixel_count(&direct->picture); i++)
        ((float *)(void *)direct->pixels)[i] = old[i];
    free(old);
}

static void direct_decode(struct direct *direct, const struct decode_options *options, const char *path)
{
    struct budget *budget = open_budget();
    struct image_decoder *decoder;
    struct image image;
    struct value_buffer values;
    struct file_content file;
    uint8_t *space = aligned_alloc(64, 1 << 20);
    plim_error error = {0};
    value_buffer_init(&values, space, 1 << 20);
    assert_int_equal(file_load(&file, budget, TAG_FORMATS, path, 1 << 20, NULL), PLIM_OK);
    assert_int_equal(image_decoder_make(&decoder, budget, &options->image, 4 << 20, NULL), PLIM_OK);
    const struct string encoded = {(const uint8_t *)file.text, file.bytes};
    if (image_decode(&image, decoder, &encoded, (int)options->channels, &values, &error) != PLIM_OK)
        fail_msg("%s: %s", path, error.message);
    direct->picture.channels = image.shape.dim[2];
    renew(direct, TYPE_U8, image.shape.dim[0], image.shape.dim[1]);
    memcpy(direct->pixels, image.pixels, pixel_count(&direct->picture));
    image_decoder_free(decoder);
    budget_give(budget, TAG_FORMATS, file.text, file.bytes + 1);
    free(space);
    close_budget(budget);
}

static void direct_resize(struct direct *direct, const struct resize_options *options)
{
    uint8_t space[64 * 1024] __attribute__((aligned(64)));
    struct value_buffer values;
    struct resize resize = {options->method, options->antialias, direct->picture, options->height, options->width};
    value_buffer_init(&values, space, sizeof space);
    uint8_t *old = renew(direct, resize_type(&resize), options->height, options->width);
    assert_int_equal(resize_image(direct->pixels, old, &resize, &values, NULL), PLIM_OK);
    free(old);
}

static void direct_crop(struct direct *direct, const struct map_function *function, const struct crop_options *crop,
                        const uint32_t random[4])
{
    const struct picture from = direct->picture;
    uint8_t *old = renew(direct, from.type, crop->height, crop->width);
    int64_t tall = from.height - crop->height, wide = from.width - crop->width, y = crop->y, x = crop->x;
    if (function == &map_random_crop)
        y = (int64_t)((uint64_t)(tall + 1) * random[0] >> 32), x = (int64_t)((uint64_t)(wide + 1) * random[1] >> 32);
    else if (function == &map_center_crop)
        y = tall / 2, x = wide / 2;
    if (function == &map_resize_with_crop_or_pad)
        assert_int_equal(crop_or_pad_image(direct->pixels, old, &from, crop->height, crop->width, NULL), PLIM_OK);
    else
        assert_int_equal(crop_image(direct->pixels, old, &from, &(struct crop){y, x, crop->height, crop->width}, NULL),
                         PLIM_OK);
    free(old);
}

static float drawn(const struct factor *factor, uint32_t bits)
{
    float lower = (float)factor->lower, upper = (float)factor->upper;
    return lower + (upper - lower) * random_unit(bits);
}

static void direct_warp(struct direct *direct, const struct map_function *function, const struct warp_options *options,
                        const uint32_t random[4])
{
    to_floats(direct);
    const struct picture p = direct->picture;
    float first = drawn(&options->height, random[0]), second = drawn(&options->width, random[1]);
    struct warp warp = {.fill = options->fill, .fill_value = (float)options->fill_value, .nearest = options->nearest};
    warp.map = function == &map_random_rotation ? warp_rotation(first, p.height, p.width)
               : function == &map_random_zoom   ? warp_zoom(first, options->same ? first : second, p.height, p.width)
                                                : warp_translation(first, second, p.height, p.width);
    uint8_t *old = renew(direct, TYPE_F32, p.height, p.width);
    assert_int_equal(warp_image((void *)direct->pixels, (void *)old, &p, &warp, NULL), PLIM_OK);
    free(old);
}

static void direct_flip(struct direct *direct, const struct random_flip_options *flip, const uint32_t random[4])
{
    flip_image(direct->pixels, &direct->picture, flip->horizontal && random[0] >> 31,
               flip->vertical && random[1] >> 31);
}

static void direct_color(struct direct *direct, const struct map_function *function, const void *options, uint32_t bits)
{
    const struct color_options *color = options;
    const struct normalize_options *normal = options;
    to_floats(direct);
    float *pixels = (void *)direct->pixels, factor = drawn(&color->factor, bits), mean[4], variance[4];
    int64_t count = direct->picture.height * direct->picture.width, channels = direct->picture.channels;
    for (int i = 0; i < 4; i++) {
        mean[i] = normal->mean[normal->mean_count > 1 ? i : 0];
        variance[i] = normal->variance[normal->variance_count > 1 ? i : 0];
    }
    if (function == &map_random_contrast)
        adjust_contrast(pixels, count, channels, 1.0f + factor, (float)color->low, (float)color->high);
    else if (function == &map_random_brightness)
        adjust_brightness(pixels, count, channels, factor, (float)color->low, (float)color->high);
    else if (function == &map_per_image_standardization)
        standardize_image(pixels, count, channels);
    else
        normalize_image(pixels, count, channels, mean, variance);
}

static void direct_run(struct direct *direct, const struct dataset *node, uint64_t epoch, int64_t index)
{
    uint32_t random[4];
    if (node->input)
        direct_run(direct, node->input, epoch, index);
    const struct map_function *function = node->function;
    if (!function)
        return;
    random_block(random, random_key(SEED, (uint64_t)node->node, UINT64_MAX), epoch, (uint64_t)index);
    char path[256];
    assert_true(node->source->type->describe(path, node->source, index, NULL));
    if (strncmp(function->name, "decode", 6) == 0)
        direct_decode(direct, node->options, path);
    else if (function == &map_resize)
        direct_resize(direct, node->options);
    else if (strstr(function->name, "crop"))
        direct_crop(direct, function, node->options, random);
    else if (function == &map_random_flip)
        direct_flip(direct, node->options, random);
    else if (function == &map_random_rotation || function == &map_random_zoom || function == &map_random_translation)
        direct_warp(direct, function, node->options, random);
    else
        direct_color(direct, function, node->options, random[0]);
}

/* ---- both are the same ---- */

struct expected {
    struct direct direct[EPOCHS][FILES_MOST];
    int64_t count;
};

static void expect_all(struct expected *expected, const struct dataset *dataset)
{
    expected->count = dataset_cardinality(dataset);
    assert_in_range(expected->count, 10, FILES_MOST);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (int64_t i = 0; i < expected->count; i++) {
            expected->direct[epoch][i] = (struct direct){0};
            direct_run(&expected->direct[epoch][i], dataset, epoch, i);
        }
}

static void check_batch(const struct batch *batch, const struct dataset *dataset, const struct expected *expected,
                        int64_t first)
{
    const struct column *column = &dataset_spec(dataset)->column[0];
    for (int64_t i = 0; i < batch->count; i++) {
        const struct direct *direct = &expected->direct[batch->epoch][first + i];
        const uint8_t *row = (const uint8_t *)batch->column[0] + (uint64_t)i * column->bytes;
        uint64_t bytes = pixel_count(&direct->picture) * type_bytes(direct->picture.type);
        assert_int_equal(column->type, direct->picture.type);
        if (column_is_variable(column)) {
            const struct cell *cell = (const void *)row;
            assert_int_equal(cell->dim[0], direct->picture.height);
            assert_int_equal(cell->dim[1], direct->picture.width);
            assert_int_equal(cell->dim[2], direct->picture.channels);
            row = cell->data;
        } else {
            assert_int_equal(column->bytes, bytes);
        }
        if (memcmp(row, direct->pixels, bytes) != 0)
            fail_msg("element %d of epoch %d differs", (int)(first + i), (int)batch->epoch);
    }
}

static struct iterator *open_with(struct studio *studio, int slots, int workers, int64_t epoch, int64_t step)
{
    struct iterator *iterator = NULL;
    struct grant grant = {.slots = slots, .workers = workers};
    plim_error error = {0};
    if (iterator_open(&iterator, studio->dataset, &(struct data_run){studio->budget, NULL, SEED}, grant,
                      &(struct batch_place){epoch, step}, &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    return iterator;
}

/* From a place on to the end of the last epoch. */
static void check_from(struct studio *studio, const struct expected *expected, int workers, int64_t epoch, int64_t step)
{
    int64_t size = dataset_batch_size(studio->dataset) ? dataset_batch_size(studio->dataset) : 1;
    uint64_t takes;
    struct iterator *iterator = open_with(studio, workers + 1, workers, epoch, step);
    takes = budget_usage(studio->budget).takes;
    while (epoch < EPOCHS) {
        struct batch *batch;
        plim_error error = {0};
        if (iterator_next(&batch, iterator, &error) != PLIM_OK)
            fail_msg("%s: %s", error.where, error.message);
        if (batch)
            check_batch(batch, studio->dataset, expected, batch->step * size);
        epoch += !batch;
    }
    assert_int_equal(budget_usage(studio->budget).takes, takes);
    iterator_close(iterator);
}

static void check_chain(const char *text)
{
    struct studio studio;
    static struct expected expected;
    if (enter(&studio, text) != PLIM_OK)
        fail_msg("%s: %s: %s", text, studio.error.where, studio.error.message);
    expect_all(&expected, studio.dataset);
    check_from(&studio, &expected, 0, 0, 0);
    check_from(&studio, &expected, 3, 0, 0);
    check_from(&studio, &expected, 1, 1, 1);
    for (int e = 0; e < EPOCHS; e++)
        for (int64_t i = 0; i < expected.count; i++)
            free(expected.direct[e][i].pixels);
    leave(&studio);
}

static void chain_equals_direct_calls(void **state)
{
    (void)state;
    check_chain("[map: [decode_jpeg: 3, resize: [20, 24]], batch: 4]");
    check_chain(
        "[map: [decode_image: {channels: 1, dct: accurate}, resize: {size: [9, 50], method: bicubic}], batch: 5]");
    check_chain(
        "[map: [decode_png: {channels: 4, fancy_upscaling: false}, "
        "resize: {size: [16, 16], method: area}, normalize: {mean: [1, 2, 3, 4], std: [2, 3, 4, 5]}], batch: 4]");
    check_chain("[map: [decode_image: 3, resize: {size: [30, 30], method: nearest}, center_crop: [20, 10], "
                "crop: [1, 2, 10, 6]], batch: 3]");
    check_chain(
        "[map: [decode_image: {channels: 3, scaled: true}, resize: {size: [8, 8], antialias: true}], batch: 6]");
    check_chain("[map: [decode_image: {channels: 3, ratio: 2}, resize_with_crop_or_pad: [25, 25], "
                "per_image_standardization], batch: 6]");
}

/* Of images of one size, which are in the batch already. */
static void random_ones_of_one_size(void **state)
{
    (void)state;
    check_chain("[map: [decode_image: 3, resize: [20, 24], random_flip: horizontal_and_vertical, random_rotation: 0.1, "
                "random_zoom: {height_factor: [-0.3, 0.1], width_factor: 0.2, fill_mode: wrap}, "
                "random_translation: {height_factor: 0.2, width_factor: [0, 0.5], fill_mode: constant, fill_value: 9}, "
                "random_contrast: [0.2, 0.6], random_brightness: {factor: 0.3, value_range: [0, 200]}, "
                "random_crop: [10, 12]], batch: 4]");
    check_chain("[map: [decode_image: 1, resize: {size: [20, 24], method: nearest}, random_flip: vertical, "
                "random_zoom: 0.5, random_contrast: 0.4], batch: 4]");
    check_chain("[map: [decode_image: 3, resize: {size: [20, 24], method: nearest}, random_brightness: 0.5, "
                "random_rotation: {factor: [0, 0.5], interpolation: nearest, fill_mode: nearest}], batch: 4]");
}

/* Of images as they are: everything goes through the value buffer. */
static void random_ones_of_any_size(void **state)
{
    (void)state;
    check_chain("[map: [decode_image: 3, random_flip: horizontal, random_rotation: 0.2, random_contrast: 0.3, "
                "per_image_standardization, random_translation: 0.1, resize: [20, 24]], batch: 4]");
    check_chain("[map: [decode_image, random_flip: horizontal, random_brightness: 0.2, random_zoom: 0.2]]");
    check_chain("[map: [decode_image, random_crop: [5, 5], resize: {size: [7, 9], method: bicubic}]]");
}

/* Half of the images are flipped, not all in the same way in each epoch. */
static void epochs_differ(void **state)
{
    struct studio studio;
    struct expected *expected = malloc(sizeof *expected);
    int different = 0;
    (void)state;
    assert_int_equal(enter(&studio, "[map: [decode_image: 3, random_flip: horizontal], batch: 4]"), PLIM_OK);
    expect_all(expected, studio.dataset);
    for (int64_t i = 0; i < expected->count; i++) {
        const struct direct *a = &expected->direct[0][i], *b = &expected->direct[1][i];
        different += memcmp(a->pixels, b->pixels, pixel_count(&a->picture)) != 0;
        free(a->pixels);
        free(b->pixels);
    }
    assert_in_range(different, 2, expected->count - 2);
    free(expected);
    leave(&studio);
}

/* ---- costs ---- */

static void check_cost(const char *text, int slots, int workers)
{
    struct studio studio;
    struct batch *batch;
    uint64_t cost[TAG_COUNT] = {0};
    assert_int_equal(enter(&studio, text), PLIM_OK);
    dataset_cost(cost, NULL, studio.dataset, (struct grant){.slots = slots, .workers = workers});
    struct budget_usage before = budget_usage(studio.budget);
    struct iterator *iterator = open_with(&studio, slots, workers, 0, 0);
    struct budget_usage after = budget_usage(studio.budget);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        assert_int_equal(after.now_by_tag[tag] - before.now_by_tag[tag], cost[tag]);
    for (int i = 0; i < 12; i++)
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(budget_usage(studio.budget).takes, after.takes);
    assert_int_equal(budget_usage(studio.budget).peak, after.now);
    iterator_close(iterator);
    leave(&studio);
}

static void cost_is_what_opening_takes(void **state)
{
    (void)state;
    for (int workers = 0; workers < 3; workers++) {
        check_cost("[map: [decode_jpeg: 3, resize: [20, 24]], batch: 4]", workers + 1, workers);
        check_cost("[map: [decode_jpeg, random_zoom: 0.1, resize: {size: [20, 24], method: area}]]", 1, workers);
    }
}

/* ---- errors ---- */

static struct dataset *one_file(struct budget *budget, const char *path)
{
    struct source *source;
    const struct images_options options = {.patterns = &path, .pattern_count = 1};
    assert_int_equal(images_open(&source, budget, &options, NULL), PLIM_OK);
    return dataset_from_source(source);
}

static void bad_images_are_named(void **state)
{
    struct golden picture = golden_open("color.jpg");
    const char *path = write_file("short.jpg", picture.bytes, picture.count / 2);
    struct studio studio = {.budget = open_budget()};
    plim_error error = {0};
    struct batch *batch;
    (void)state;
    assert_int_equal(
        read_around(&studio, one_file(studio.budget, path), "[map: [decode_image: 3, resize: [4, 4]], batch: 1]"),
        PLIM_OK);
    struct iterator *iterator = open_with(&studio, 1, 0, 0, 0);
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_BAD_DATA);
    assert_string_equal(error.where, path);
    assert_non_null(strstr(error.message, "element 0: JPEG: premature end at byte"));
    iterator_close(iterator);
    leave(&studio);
    remove(path);
    golden_close(&picture);
}

/* Of a value buffer that is too small the error says what would do; that much does. */
static void room_that_is_too_small(void **state)
{
    char path[512];
    plim_error error = {0};
    struct batch *batch;
    unsigned long long wanted = 0;
    (void)state;
    golden_path(path, sizeof path, "progressive.jpg");
    for (int turn = 0; turn < 2; turn++) {
        struct studio studio = {.budget = open_budget()};
        struct dataset *dataset = one_file(studio.budget, path);
        dataset_set_value_bytes(dataset, turn ? wanted : 4096);
        assert_int_equal(read_around(&studio, dataset, "[map: [decode_image: 3, resize: [4, 4]], batch: 1]"), PLIM_OK);
        struct iterator *iterator = open_with(&studio, 1, 0, 0, 0);
        assert_int_equal(iterator_next(&batch, iterator, &error), turn ? PLIM_OK : PLIM_OVER_BUDGET);
        if (!turn) {
            assert_int_equal(sscanf(error.hint, "set largest_element: %lluKiB", &wanted), 1);
            wanted *= 1024;
            assert_in_range(wanted, 4097, 4 << 20);
        }
        iterator_close(iterator);
        leave(&studio);
    }
}

static void refused(const char *text, plim_status expected, const char *words)
{
    struct studio studio;
    plim_status status = enter(&studio, text);
    if (status != expected || !strstr(studio.error.message, words))
        fail_msg("%s: status %d: %s", text, (int)status, studio.error.message);
    leave(&studio);
}

static void wrong_words_are_refused(void **state)
{
    (void)state;
    refused("[map: [resize: [4, 4]]]", PLIM_BAD_JOB, "(height, width, channels)");
    refused("[map: [decode_jpeg: 2]]", PLIM_BAD_JOB, "channels are");
    refused("[map: [decode_jpeg: {ratio: 3}]]", PLIM_BAD_JOB, "ratio");
    refused("[map: [decode_jpeg: {dct: exact}]]", PLIM_BAD_JOB, "dct");
    refused("[map: [decode_jpeg: {chanels: 3}]]", PLIM_BAD_JOB, "chanels");
    refused("[map: [decode_jpeg: {scaled: true}, crop: [0, 0, 4, 4]]]", PLIM_BAD_JOB, "right behind it");
    refused("[map: [decode_jpeg: {scaled: true}]]", PLIM_BAD_JOB, "right behind it");
    refused("[map: [decode_jpeg, resize: 4]]", PLIM_BAD_JOB, "list of 2");
    refused("[map: [decode_jpeg, resize: {method: area}]]", PLIM_BAD_JOB, "size");
    refused("[map: [decode_jpeg, resize: {size: [4, 4], method: lanczos3}]]", PLIM_UNSUPPORTED, "lanczos3");
    refused("[map: [decode_jpeg, random_rotation: {factor: 0.1, fill_mode: black}]]", PLIM_BAD_JOB, "black");
    refused("[map: [decode_jpeg, random_zoom: {width_factor: 0.1}]]", PLIM_BAD_JOB, "height_factor");
    refused("[map: [decode_jpeg, random_contrast: {value_range: [0, 1]}]]", PLIM_BAD_JOB, "factor");
    refused("[map: [decode_jpeg: 3, normalize: {mean: [1, 2], std: 1}]]", PLIM_BAD_JOB, "channels");
    refused("[map: [decode_jpeg: 3, normalize: {mean: 1}]]", PLIM_BAD_JOB, "needs");
    refused("[map: [decode_jpeg, per_image_standardization: 3]]", PLIM_BAD_JOB, "no value");
    refused("[map: [cast: float32]]", PLIM_BAD_JOB, "strings");
}

/* ---- folders ---- */

static const char *copy_golden(const char *name, const char *golden)
{
    struct golden picture = golden_open(golden);
    const char *path = write_file(name, picture.bytes, picture.count);
    golden_close(&picture);
    return path;
}

/* cat: 2 images, dog: 1, owl: 1, and a file that is none. */
static void make_classes(void)
{
    mkdir(path_of("cat"), 0777);
    mkdir(path_of("dog"), 0777);
    mkdir(path_of("owl"), 0777);
    copy_golden("cat/b.jpg", "color.jpg");
    copy_golden("cat/a.PNG", "channels3.png");
    copy_golden("dog/c.bmp", "c3.bmp");
    copy_golden("owl/d.jpeg", "small.jpg");
    write_file("owl/notes.txt", "none", 4);
}

static void remove_classes(void)
{
    static const char *const names[] = {"cat/b.jpg",     "cat/a.PNG", "dog/c.bmp", "owl/d.jpeg",
                                        "owl/notes.txt", "cat",       "dog",       "owl"};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(remove(path_of(names[i])), 0);
}

/* Reads element i and compares it with its file. */
static void check_element(struct source *source, int64_t i, const char *name, int32_t label)
{
    struct string string;
    int32_t found = -1;
    uint8_t space[16384];
    struct value_buffer values;
    int64_t done;
    char where[256];
    struct golden picture = golden_open(name);
    value_buffer_init(&values, space, sizeof space);
    struct row_target target = {(void *[]){&string, &found}, (uint64_t[]){sizeof string, sizeof found}, &values};
    assert_int_equal(source->type->read_values(&done, source, &i, 1, &target, NULL), PLIM_OK);
    assert_int_equal(done, 1);
    assert_int_equal(found, source->spec.column_count > 1 ? label : -1);
    assert_int_equal(string.bytes, picture.count);
    assert_memory_equal(string.data, picture.bytes, picture.count);
    assert_true(source->type->describe(where, source, i, NULL));
    assert_int_equal(strncmp(where, folder, strlen(folder)), 0);
    values.capacity = string.bytes - 1; /* one byte too few */
    value_buffer_empty(&values);
    assert_int_equal(source->type->read_values(&done, source, &i, 1, &target, NULL), PLIM_OK);
    assert_int_equal(done, 0);
    assert_int_equal(values.wanted, picture.count);
    golden_close(&picture);
}

static void folders_are_classes(void **state)
{
    struct budget *budget = open_budget();
    struct source *source;
    plim_error error = {0};
    (void)state;
    make_classes();
    assert_int_equal(images_open(&source, budget, &(struct images_options){.folder = folder}, NULL), PLIM_OK);
    assert_int_equal(source->count, 4);
    assert_string_equal(source->type->class_name(source, 1), "dog");
    assert_null(source->type->class_name(source, 3));
    assert_true(source->value_bytes >= 256 * 1024);
    check_element(source, 0, "channels3.png", 0);
    check_element(source, 1, "color.jpg", 0);
    check_element(source, 2, "c3.bmp", 1);
    check_element(source, 3, "small.jpg", 2);
    source_close(source);
    const char *const names[] = {"owl", "cat", NULL};
    const struct images_options chosen = {.folder = folder, .class_names = names};
    assert_int_equal(images_open(&source, budget, &chosen, NULL), PLIM_OK);
    assert_int_equal(source->count, 3);
    check_element(source, 0, "small.jpg", 0);
    source_close(source);
    const struct images_options bare = {.folder = folder, .no_labels = true};
    assert_int_equal(images_open(&source, budget, &bare, NULL), PLIM_OK);
    assert_int_equal(source->spec.column_count, 1);
    check_element(source, 2, "c3.bmp", 0);
    remove(path_of("dog/c.bmp"));
    int64_t index = 2, done;
    struct string string;
    uint8_t space[64];
    struct value_buffer values;
    value_buffer_init(&values, space, sizeof space);
    struct row_target target = {(void *[]){&string}, (uint64_t[]){sizeof string}, &values};
    assert_int_equal(source->type->read_values(&done, source, &index, 1, &target, &error), PLIM_IO);
    assert_non_null(strstr(error.where, "dog/c.bmp"));
    source_close(source);
    copy_golden("dog/c.bmp", "c3.bmp");
    remove_classes();
    assert_int_equal(images_open(&source, budget, &bare, &error), PLIM_BAD_DATA);
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain_equals_direct_calls),  cmocka_unit_test(random_ones_of_one_size),
        cmocka_unit_test(random_ones_of_any_size),    cmocka_unit_test(epochs_differ),
        cmocka_unit_test(cost_is_what_opening_takes), cmocka_unit_test(bad_images_are_named),
        cmocka_unit_test(room_that_is_too_small),     cmocka_unit_test(wrong_words_are_refused),
        cmocka_unit_test(folders_are_classes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
