/* test_pipeline.c - datasets: the order of elements, repetitions, maps, and those that could not be built. */
#include <math.h>

#include "base/numbers/count.h"
#include "made_source.h"

/* ---- order ---- */

static void once_an_epoch(int64_t n, int64_t size, int slots)
{
    struct budget *budget = open_budget();
    struct dataset *dataset = dataset_batch(dataset_shuffle(counting(budget, n), SEED), size, false);
    struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
    int64_t first[MOST], second[MOST];
    assert_int_equal(collect(first, iterator), n);
    assert_int_equal(collect(second, iterator), n);
    assert_each(first, n, n, 1);
    assert_each(second, n, n, 1);
    if (n >= 64) {
        assert_false(same(first, second, n));
        int64_t in_place = 0;
        for (int64_t i = 0; i < n; i++)
            in_place += first[i] == i;
        assert_true(in_place < n / 4);
    }
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

static void every_element_once_an_epoch(void **state)
{
    static const int64_t counts[] = {1, 2, 7, 64, 257, 1000}, sizes[] = {1, 3, 32, 256, 300};
    (void)state;
    for (int n = 0; n < 6; n++)
        for (int s = 0; s < 5; s++)
            for (int slots = 1; slots <= 5; slots += 1 + slots / 2)
                once_an_epoch(counts[n], sizes[s], slots);
}

static void steps_and_remainders(void **state)
{
    struct budget *budget = open_budget();
    int64_t last, index[MOST];
    (void)state;
    struct dataset *all = dataset_batch(counting(budget, 100), 32, false);
    assert_int_equal(dataset_steps(all, &last), 4);
    assert_int_equal(last, 4);
    assert_int_equal(dataset_batch_size(all), 32);
    assert_int_equal(dataset_cardinality(all), 100);
    assert_int_equal(epoch_of(index, all, budget, 0), 100);
    struct dataset *dropped = dataset_batch(counting(budget, 100), 32, true);
    assert_int_equal(dataset_steps(dropped, &last), 3);
    assert_int_equal(last, 32);
    assert_int_equal(epoch_of(index, dropped, budget, 0), 96);
    assert_int_equal(index[95], 95);
    struct dataset *even = dataset_batch(counting(budget, 96), 32, false);
    assert_int_equal(dataset_steps(even, &last), 3);
    assert_int_equal(last, 32);
    dataset_unref(even);
    close_budget(budget);
}

static void stages_apply_in_the_order_written(void **state)
{
    struct budget *budget = open_budget();
    int64_t whole[MOST], a[MOST], b[MOST];
    (void)state;
    epoch_of(whole, dataset_batch(dataset_shuffle(counting(budget, 100), SEED), 8, false), budget, 3);
    /* shuffle, then take: the head of the shuffled whole */
    assert_int_equal(
        epoch_of(a, dataset_batch(dataset_take(dataset_shuffle(counting(budget, 100), SEED), 30), 8, false), budget, 3),
        30);
    assert_true(same(a, whole, 30));
    /* shuffle, then skip: its tail */
    assert_int_equal(
        epoch_of(a, dataset_batch(dataset_skip(dataset_shuffle(counting(budget, 100), SEED), 30), 8, false), budget, 3),
        70);
    assert_true(same(a, whole + 30, 70));
    /* take, then shuffle: the first 30, shuffled */
    assert_int_equal(
        epoch_of(b, dataset_batch(dataset_shuffle(dataset_take(counting(budget, 100), 30), SEED), 8, false), budget, 3),
        30);
    assert_each(b, 30, 30, 1);
    /* skip and take in a row; take of more than there is; take of all */
    assert_int_equal(
        epoch_of(a, dataset_batch(dataset_take(dataset_skip(counting(budget, 100), 10), 20), 8, false), budget, 0), 20);
    assert_int_equal(a[0], 10);
    assert_int_equal(a[19], 29);
    assert_int_equal(epoch_of(a, dataset_batch(dataset_take(counting(budget, 100), 500), 8, false), budget, 0), 100);
    assert_int_equal(epoch_of(a, dataset_batch(dataset_take(counting(budget, 100), -1), 8, false), budget, 0), 100);
    close_budget(budget);
}

static void seeds_and_nodes_give_other_orders(void **state)
{
    struct budget *budget = open_budget();
    int64_t a[MOST], b[MOST];
    (void)state;
    epoch_of(a, dataset_batch(dataset_shuffle(counting(budget, 200), 1), 8, false), budget, 0);
    epoch_of(b, dataset_batch(dataset_shuffle(counting(budget, 200), 2), 8, false), budget, 0);
    assert_false(same(a, b, 200));
    epoch_of(b, dataset_batch(dataset_shuffle(counting(budget, 200), 1), 50, false), budget, 0);
    assert_true(same(a, b, 200)); /* the batch size does not matter */
    epoch_of(b, dataset_batch(dataset_shuffle(dataset_take(counting(budget, 200), -1), 1), 8, false), budget, 0);
    assert_false(same(a, b, 200)); /* another node of the chain */
    close_budget(budget);
}

static void repeat_shuffles_each_time_anew(void **state)
{
    struct budget *budget = open_budget();
    int64_t index[MOST], inner[MOST];
    (void)state;
    struct dataset *dataset = dataset_repeat(dataset_shuffle(counting(budget, 100), SEED), 3);
    assert_int_equal(dataset_cardinality(dataset), 300);
    assert_int_equal(epoch_of(index, dataset_batch(dataset, 7, false), budget, 2), 300);
    for (int r = 0; r < 3; r++) {
        epoch_of(inner, dataset_batch(dataset_shuffle(counting(budget, 100), SEED), 7, false), budget, 2 * 3 + r);
        assert_true(same(index + 100 * r, inner, 100));
    }
    assert_false(same(index, index + 100, 100));
    /* repeat, then shuffle: everything three times, mixed */
    dataset = dataset_shuffle(dataset_repeat(dataset_shuffle(counting(budget, 100), SEED), 3), SEED);
    assert_int_equal(epoch_of(index, dataset_batch(dataset, 7, false), budget, 0), 300);
    assert_each(index, 300, 100, 3);
    int64_t early[100] = {0}, twice = 0;
    for (int i = 0; i < 100; i++)
        twice += early[index[i]]++ == 1;
    assert_true(twice > 5);
    close_budget(budget);
}

static void repeat_without_end(void **state)
{
    struct budget *budget = open_budget();
    int64_t index[MOST], inner[MOST], last;
    (void)state;
    struct dataset *dataset = dataset_repeat(dataset_shuffle(counting(budget, 10), SEED), -1);
    assert_int_equal(dataset_cardinality(dataset), -1);
    dataset = dataset_batch(dataset, 7, true);
    assert_int_equal(dataset_steps(dataset, &last), -1);
    assert_int_equal(last, 7);
    struct iterator *iterator = open_iterator(dataset, budget, 2, 0, 0);
    struct batch *batch;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        assert_non_null(batch);
        assert_int_equal(batch->count, 7);
        assert_int_equal(batch->step, i);
        memcpy(index + 7 * i, batch->column[2], 7 * sizeof *index);
    }
    for (int r = 0; r < 70; r += 23) {
        epoch_of(inner, dataset_batch(dataset_shuffle(counting(budget, 10), SEED), 7, false), budget, r);
        assert_true(same(index + 10 * r, inner, 10));
    }
    assert_int_equal(iterator_seek(iterator, 0, (int64_t)1 << 50, NULL), PLIM_OK);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(iterator_seek(iterator, 0, INT64_MAX, NULL), PLIM_BAD_DATA);
    iterator_close(iterator);
    dataset_unref(dataset);
    /* without end, then an end again */
    dataset = dataset_take(dataset_skip(dataset_repeat(counting(budget, 10), -1), 5), 33);
    assert_int_equal(epoch_of(index, dataset_batch(dataset, 7, false), budget, 0), 33);
    for (int i = 0; i < 33; i++)
        assert_int_equal(index[i], (i + 5) % 10);
    close_budget(budget);
}

static void slots_wanted(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    struct dataset *dataset = plain(budget);
    assert_int_equal(dataset_least_grant(dataset).slots, 1);
    assert_int_equal(dataset_wanted_grant(dataset, 1).slots, 1);
    dataset = dataset_prefetch(dataset, PREFETCH_AUTO);
    assert_int_equal(dataset_wanted_grant(dataset, 1).slots, 3);
    dataset = dataset_prefetch(dataset, 5);
    assert_int_equal(dataset_wanted_grant(dataset, 1).slots, 6);
    dataset_unref(dataset);
    close_budget(budget);
}

static plim_status toil_infer(struct spec *spec, const void *options, plim_error *error)
{
    (void)spec, (void)options, (void)error;
    return PLIM_OK;
}

static plim_status toil_run(const struct map_call *call, plim_error *error)
{
    (void)call, (void)error;
    return PLIM_OK;
}

static const struct map_function map_toil = {.name = "toil", .infer = toil_infer, .run = toil_run, .heavy = true};

static uint64_t cost_of(const struct dataset *dataset, struct grant grant)
{
    uint64_t cost[TAG_COUNT] = {0}, all = 0;
    dataset_cost(cost, NULL, dataset, grant);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        all += cost[tag];
    return all;
}

/* From what is wanted down to the least: each one costs less, and no thread is left that has nothing to do. */
static void shrink_to_the_least(const struct dataset *dataset, int threads, int expected)
{
    struct grant least = dataset_least_grant(dataset), grant = dataset_wanted_grant(dataset, threads);
    int steps = 0;
    for (uint64_t cost = cost_of(dataset, grant), next; grant_shrink(&grant, least); cost = next, steps++) {
        next = cost_of(dataset, grant);
        assert_true(next < cost);
        assert_true(grant.slots >= 1 && grant.workers >= 0);
        assert_false(grant.slots == 1 && grant.workers == 1);
    }
    assert_int_equal(steps, expected);
    assert_int_equal(grant.slots, least.slots);
    assert_int_equal(grant.workers, least.workers);
    assert_int_equal(grant.held, least.held);
    assert_false(grant_shrink(&grant, least));
}

static void grants_shrink_to_the_least(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    struct dataset *dataset = plain(budget);
    shrink_to_the_least(dataset, 4, 0);
    dataset = dataset_prefetch(dataset, 5);
    shrink_to_the_least(dataset, 0, 0); /* no threads: nothing is read ahead */
    shrink_to_the_least(dataset, 4, 5); /* six slots; the thread goes with the last but one */
    dataset_unref(dataset);
    dataset = dataset_prefetch(dataset_batch(dataset_map(counting(budget, 100), &map_toil, NULL), 8, false), 2);
    shrink_to_the_least(dataset, 4,
                        5); /* three slots, four threads: two slots, three threads and the last with the second */
    dataset_unref(dataset);
    /* held: given up before the second slot is */
    struct grant grant = {.slots = 3, .workers = 1, .held = true}, least = {.slots = 1};
    assert_true(grant_shrink(&grant, least) && grant.slots == 2 && grant.held);
    assert_true(grant_shrink(&grant, least) && grant.slots == 2 && !grant.held && grant.workers == 1);
    assert_true(grant_shrink(&grant, least) && grant.slots == 1 && grant.workers == 0);
    assert_false(grant_shrink(&grant, least));
    close_budget(budget);
}

/* ---- maps ---- */

static void maps_change_types_and_values(void **state)
{
    struct budget *budget = open_budget();
    struct batch *batch;
    (void)state;
    struct dataset *dataset = dataset_shuffle(counting(budget, 700), SEED);
    dataset = dataset_map(dataset, &map_rescale, &(struct rescale_options){.scale = 1.0 / 255, .offset = -0.5});
    dataset = dataset_map(dataset, &map_cast, &(struct cast_options){.type = TYPE_F64});
    dataset = dataset_map(dataset, &map_cast, &(struct cast_options){.column = "i", .type = TYPE_I32});
    dataset = dataset_batch(dataset, 300, false);
    dataset = dataset_map(dataset, &map_one_hot,
                          &(struct one_hot_options){.column = "y", .classes = 10}); /* after batch too */
    const struct spec *spec = dataset_spec(dataset);
    assert_int_equal(spec->column[0].type, TYPE_F64);
    assert_int_equal(spec->column[1].bytes, 40);
    assert_int_equal(spec->element_bytes, 48 + 40 + 4);
    struct iterator *iterator = open_iterator(dataset, budget, 2, 0, 0);
    for (int b = 0; b < 3; b++) {
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        for (int64_t r = 0; r < batch->count; r++) {
            int64_t index = ((int32_t *)batch->column[2])[r];
            for (int p = 0; p < 6; p++) {
                float scaled = (float)pixel(index, p) * (float)(1.0 / 255) + -0.5f;
                assert_true(((double *)batch->column[0])[r * 6 + p] == (double)scaled);
            }
            for (int k = 0; k < 10; k++)
                assert_true(((float *)batch->column[1])[r * 10 + k] == (k == index % 10));
        }
    }
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* Which of the 200 images are mirrored in an epoch; each must be as it was or mirrored, nothing else. */
static int flipped(bool *out, struct iterator *iterator)
{
    struct batch *batch;
    int count = 0;
    while (iterator_next(&batch, iterator, NULL) == PLIM_OK && batch)
        for (int64_t r = 0; r < batch->count; r++) {
            int64_t index = ((int64_t *)batch->column[2])[r];
            const uint8_t *image = (uint8_t *)batch->column[0] + r * 6;
            out[index] = image[0] != pixel(index, 0);
            count += out[index];
            for (int p = 0; p < 6; p++)
                assert_int_equal(image[p], pixel(index, out[index] ? p / 3 * 3 + 2 - p % 3 : p));
        }
    return count;
}

static void random_maps_are_functions_of_epoch_and_index(void **state)
{
    struct budget *budget = open_budget();
    bool first[200], second[200], again[200];
    (void)state;
    struct dataset *dataset = dataset_map(dataset_shuffle(counting(budget, 200), SEED), &map_random_flip,
                                          &(struct random_flip_options){.column = "image"});
    dataset = dataset_batch(dataset, 16, false);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    assert_in_range(flipped(first, iterator), 70, 130);
    assert_in_range(flipped(second, iterator), 70, 130);
    assert_memory_not_equal(first, second, sizeof first);
    iterator_close(iterator);
    iterator = open_iterator(dataset, budget, 3, 1, 0);
    flipped(again, iterator);
    assert_memory_equal(second, again, sizeof second);
    iterator_close(iterator);
    dataset_unref(dataset);
    /* every repetition draws anew, wherever the map stands */
    dataset = dataset_map(dataset_repeat(counting(budget, 200), 2), &map_random_flip, &(struct random_flip_options){0});
    iterator = open_iterator(dataset = dataset_batch(dataset, 200, false), budget, 1, 0, 0);
    struct batch *batch;
    uint8_t images[1200];
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    memcpy(images, batch->column[0], sizeof images);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_memory_not_equal(images, batch->column[0], sizeof images);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* Several repetitions in one chunk: each as in its own epoch. */
static void repetitions_in_a_chunk_keep_their_epochs(void **state)
{
    struct budget *budget = open_budget();
    struct batch *batch, *inner;
    (void)state;
    const struct random_flip_options flip = {.column = "image"};
    const struct cast_options cast = {.type = TYPE_F32};
    struct dataset *once = dataset_map(dataset_map(counting(budget, 20), &map_random_flip, &flip), &map_cast, &cast);
    once = dataset_map(once, &map_rescale, &(struct rescale_options){.scale = 0.5, .offset = 1}); /* in place */
    struct dataset *thrice = dataset_batch(dataset_repeat(dataset_ref(once), 3), 60, false);
    once = dataset_batch(once, 20, false);
    struct iterator *all = open_iterator(thrice, budget, 1, 2, 0), *one = open_iterator(once, budget, 1, 0, 0);
    assert_int_equal(iterator_next(&batch, all, NULL), PLIM_OK);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(iterator_seek(one, 2 * 3 + r, 0, NULL), PLIM_OK);
        assert_int_equal(iterator_next(&inner, one, NULL), PLIM_OK);
        assert_memory_equal((float *)batch->column[0] + r * 120, inner->column[0], 120 * sizeof(float));
    }
    iterator_close(all);
    iterator_close(one);
    dataset_unref(once);
    dataset_unref(thrice);
    close_budget(budget);
}

/* A function of the user's own: every pixel gets a second channel, its complement. The type stays. */
static plim_status complement_infer(struct spec *spec, const void *options, plim_error *error)
{
    (void)options, (void)error;
    spec->column[0].shape.dim[2] = 2;
    return PLIM_OK;
}

static plim_status complement_run(const struct map_call *call, plim_error *error)
{
    (void)error;
    for (int64_t i = 0; i < call->count; i++)
        for (int p = 0; p < 6; p++) {
            const uint8_t *from = (const uint8_t *)call->from[0] + (uint64_t)i * call->from_stride[0];
            uint8_t *to = (uint8_t *)call->to[0] + (uint64_t)i * call->to_stride[0];
            to[2 * p] = from[p];
            to[2 * p + 1] = (uint8_t)~from[p];
        }
    return PLIM_OK;
}

static void maps_of_the_users_own(void **state)
{
    static const struct map_function complement = {
        .name = "complement", .infer = complement_infer, .run = complement_run};
    struct budget *budget = open_budget();
    struct batch *batch;
    (void)state;
    struct dataset *dataset = dataset_batch(dataset_map(counting(budget, 30), &complement, NULL), 30, false);
    assert_int_equal(dataset_spec(dataset)->element_bytes, 12 + 1 + 8);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    for (int i = 0; i < 360; i++) {
        uint8_t value = pixel(i / 12, i % 12 / 2);
        assert_int_equal(((uint8_t *)batch->column[0])[i], i % 2 ? (uint8_t)~value : value);
    }
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- what cannot be built ---- */

static void bad_labels_are_named(void **state)
{
    struct budget *budget = open_budget();
    plim_error error = {0};
    struct batch *batch;
    (void)state;
    struct dataset *dataset =
        dataset_map(counting(budget, 20), &map_one_hot, &(struct one_hot_options){.column = "y", .classes = 8});
    struct iterator *iterator = open_iterator(dataset = dataset_batch(dataset, 20, false), budget, 1, 0, 0);
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "element 8"));
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- labels that a loss can take ---- */

#define LABELS    300
#define BAD_LABEL 277
#define TEN       10

/* 300 class numbers below ten of this type, but for one. */
struct labels {
    _Alignas(8) char data[LABELS * 8];
    int64_t number[LABELS];
};

static struct dataset *labelled(struct labels *labels, struct budget *budget, enum type type, double bad)
{
    struct source *source;
    struct spec spec = {
        .column_count = 2,
        .element_bytes = 8 + type_bytes(type),
        .column = {{.name = "x", .type = TYPE_I64, .bytes = 8},
                   {.name = "y", .type = type, .shape = {1, {1}}, .bytes = type_bytes(type), .origin = 1}}};
    for (int64_t i = 0; i < LABELS; i++)
        element_set(labels->data, type, labels->number[i] = i, i == BAD_LABEL ? bad : (double)(i % TEN));
    const void *columns[] = {labels->number, labels->data};
    assert_int_equal(memory_open(&source, budget, &spec, columns, LABELS, NULL), PLIM_OK);
    return dataset_batch(dataset_shuffle(dataset_from_source(source), SEED), 70, false);
}

/* Goes through an epoch; stays at the error, if any, and shows it again. */
static plim_status whole_epoch(plim_error *error, struct dataset *dataset, struct budget *budget, int slots)
{
    struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
    struct batch *batch;
    plim_status status;
    while ((status = iterator_next(&batch, iterator, error)) == PLIM_OK && batch)
        ;
    if (status != PLIM_OK)
        assert_int_equal(iterator_next(&batch, iterator, NULL), status);
    iterator_close(iterator);
    return status;
}

static void check_label(enum type type, double value, int64_t classes, bool allowed)
{
    struct labels labels;
    for (int slots = 1; slots <= 3; slots += 2) {
        struct budget *budget = open_budget();
        plim_error error = {0};
        struct dataset *dataset = labelled(&labels, budget, type, value);
        assert_int_equal(whole_epoch(&error, dataset, budget, slots), PLIM_OK); /* nobody has said what labels are */
        assert_int_equal(dataset_expect(dataset, 1, classes ? EXPECT_CLASSES : EXPECT_NUMBERS, classes, NULL), PLIM_OK);
        plim_status status = whole_epoch(&error, dataset, budget, slots);
        if (status != (allowed ? PLIM_OK : PLIM_BAD_DATA))
            fail_msg("%s %g of %d classes: status %d", type_name(type), value, (int)classes, (int)status);
        if (!allowed && (!strstr(error.message, "element 277:") || !strstr(error.message, "'y'")))
            fail_msg("'%s' does not name the element", error.message);
        dataset_unref(dataset);
        close_budget(budget);
    }
}

static void labels_that_no_loss_can_take(void **state)
{
    static const enum type whole[] = {TYPE_U8, TYPE_I8, TYPE_I16, TYPE_I32, TYPE_I64, TYPE_F32, TYPE_F64, TYPE_F16};
    double nan = (double)NAN;
    (void)state;
    for (size_t i = 0; i < COUNT(whole); i++) {
        check_label(whole[i], 9, TEN, true);
        check_label(whole[i], 10, TEN, false);
        check_label(whole[i], 10, TEN + 1, true);
        check_label(whole[i], 10, 0, true);
        if (whole[i] != TYPE_U8)
            check_label(whole[i], -1, TEN, false);
    }
    check_label(TYPE_I64, 1099511627776.0, TEN, false); /* 2^40: 0 in 32 bits */
    check_label(TYPE_F32, 1.5, TEN, false);
    check_label(TYPE_F32, -0.5, TEN, false);
    check_label(TYPE_F32, nan, TEN, false);
    check_label(TYPE_F64, nan, TEN, false);
    check_label(TYPE_F32, nan, 0, false);
    check_label(TYPE_F32, 1.5, 0, true);
    check_label(TYPE_F32, -3, 0, true);
}

static void labels_of_a_column_that_is_not_there(void **state)
{
    struct budget *budget = open_budget();
    struct dataset *dataset = plain(budget), *failed = dataset_take(counting(budget, 9), -2);
    (void)state;
    assert_int_equal(dataset_expect(dataset, -1, EXPECT_CLASSES, TEN, NULL), PLIM_INTERNAL);
    assert_int_equal(dataset_expect(dataset, 3, EXPECT_CLASSES, TEN, NULL), PLIM_INTERNAL);
    assert_int_equal(dataset_expect(failed, 0, EXPECT_CLASSES, TEN, NULL), PLIM_BAD_JOB);
    dataset_unref(dataset);
    dataset_unref(failed);
    close_budget(budget);
}

static void expect_failed(struct dataset *dataset, plim_status code, const char *part)
{
    plim_error error = {0};
    struct iterator *iterator;
    uint64_t cost[TAG_COUNT] = {0};
    dataset = dataset_prefetch(dataset_take(dataset, 3), 1); /* goes through unharmed */
    assert_int_equal(dataset_check(dataset, &error), code);
    if (!strstr(error.message, part))
        fail_msg("'%s' does not say '%s'", error.message, part);
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){NULL, NULL, 0}, GRANT(1), NULL, &error),
                     code);
    assert_int_equal(dataset_spec(dataset)->column_count, 0);
    assert_int_equal(dataset_steps(dataset, NULL), 0);
    dataset_cost(cost, NULL, dataset, GRANT(3));
    assert_int_equal(cost[TAG_BATCHES], 0);
    dataset_unref(dataset);
}

static void failed_datasets_carry_their_error(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    expect_failed(dataset_take(counting(budget, 9), -2), PLIM_BAD_JOB, "take");
    expect_failed(dataset_skip(counting(budget, 9), -1), PLIM_BAD_JOB, "skip");
    expect_failed(dataset_repeat(counting(budget, 9), 0), PLIM_BAD_JOB, "repeat");
    expect_failed(dataset_repeat(counting(budget, 9), INT64_MAX), PLIM_BAD_JOB, "2^63");
    expect_failed(dataset_batch(counting(budget, 9), 0, false), PLIM_BAD_JOB, "batch");
    expect_failed(dataset_batch(counting(budget, 9), INT64_MAX, false), PLIM_BAD_JOB, "address");
    expect_failed(dataset_batch(plain(budget), 2, false), PLIM_UNSUPPORTED, "batches of batches");
    expect_failed(dataset_prefetch(counting(budget, 9), -2), PLIM_BAD_JOB, "prefetch");
    expect_failed(dataset_prefetch(plain(budget), -2), PLIM_BAD_JOB, "prefetch");
    expect_failed(dataset_shuffle(dataset_repeat(counting(budget, 9), -1), 1), PLIM_UNSUPPORTED, "without end");
    expect_failed(dataset_map(plain(budget), &map_cast, &(struct cast_options){.column = "imag"}), PLIM_BAD_JOB,
                  "imag");
    expect_failed(dataset_map(plain(budget), &map_random_flip, &(struct random_flip_options){.column = "y"}),
                  PLIM_BAD_JOB, "height");
    expect_failed(dataset_map(plain(budget), &map_one_hot, &(struct one_hot_options){.classes = INT64_MAX / 2}),
                  PLIM_BAD_JOB, "address");
    struct dataset *long_chain = counting(budget, 9);
    for (int i = 0; i < 80; i++)
        long_chain = dataset_skip(long_chain, 0);
    expect_failed(long_chain, PLIM_UNSUPPORTED, "at most");
    expect_failed(dataset_failed(budget, &(plim_error){.code = PLIM_IO, .message = "gone"}), PLIM_IO, "gone");
    close_budget(budget);
}

static void check_says(struct dataset *dataset, plim_status code, const char *part)
{
    plim_error error = {0};
    assert_int_equal(dataset_check(dataset, &error), code);
    assert_non_null(strstr(error.message, part));
    dataset_unref(dataset);
}

static void unfinished_pipelines_are_refused(void **state)
{
    struct budget *budget = open_budget();
    plim_error error = {0};
    (void)state;
    struct dataset *dataset = dataset_shuffle(counting(budget, 9), 1);
    assert_int_equal(dataset_check(dataset, &error), PLIM_BAD_JOB);
    assert_non_null(strstr(error.hint, "batch: 32"));
    dataset_unref(dataset);
    check_says(dataset_batch(counting(budget, 0), 4, false), PLIM_BAD_DATA, "no elements");
    check_says(dataset_batch(counting(budget, 3), 4, true), PLIM_BAD_JOB, "no batch");
    check_says(dataset_batch(dataset_skip(counting(budget, 3), 3), 4, false), PLIM_BAD_JOB, "no batch");
    check_says(dataset_batch(dataset_repeat(dataset_take(counting(budget, 3), 0), -1), 4, false), PLIM_BAD_JOB,
               "no batch");
    check_says(plain(budget), PLIM_OK, "");
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_once_an_epoch),
        cmocka_unit_test(steps_and_remainders),
        cmocka_unit_test(stages_apply_in_the_order_written),
        cmocka_unit_test(seeds_and_nodes_give_other_orders),
        cmocka_unit_test(repeat_shuffles_each_time_anew),
        cmocka_unit_test(repeat_without_end),
        cmocka_unit_test(slots_wanted),
        cmocka_unit_test(grants_shrink_to_the_least),
        cmocka_unit_test(maps_change_types_and_values),
        cmocka_unit_test(random_maps_are_functions_of_epoch_and_index),
        cmocka_unit_test(repetitions_in_a_chunk_keep_their_epochs),
        cmocka_unit_test(maps_of_the_users_own),
        cmocka_unit_test(bad_labels_are_named),
        cmocka_unit_test(labels_that_no_loss_can_take),
        cmocka_unit_test(labels_of_a_column_that_is_not_there),
        cmocka_unit_test(failed_datasets_carry_their_error),
        cmocka_unit_test(unfinished_pipelines_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
