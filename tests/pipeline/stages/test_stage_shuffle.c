/* test_stage_shuffle.c - shuffles by a buffer and by blocks: against plain models, anywhere, at their cost. */
#include "stage_checks.h"

#include "formats/tables/rows.h"
#include "pipeline/stages/keep/held_blocks.h"

static struct dataset *buffered(struct dataset *dataset, int64_t size, uint64_t seed)
{
    return dataset_shuffle_with(dataset,
                                &(struct shuffle_options){.kind = SHUFFLE_BUFFER, .buffer_size = size, .seed = seed});
}

static struct dataset *blocked(struct dataset *dataset, int64_t block, int64_t group, uint64_t seed)
{
    return dataset_shuffle_with(
        dataset, &(struct shuffle_options){.kind = SHUFFLE_BLOCKS, .block_size = block, .group = group, .seed = seed});
}

/* ---- buffer ---- */

/* What tf.data's document says: a buffer of n, one of it at random, the next of the input in its place. */
static void model(int64_t *out, int64_t count, int64_t size, uint64_t key)
{
    int64_t buffer[MOST], held = 0, next = 0;
    for (int64_t k = 0; k < count; k++) {
        uint32_t block[4];
        while (held < size && next < count)
            buffer[held++] = next++;
        random_block(block, key, 0, (uint64_t)k / 2);
        uint64_t bits = k % 2 ? (uint64_t)block[3] << 32 | block[2] : (uint64_t)block[1] << 32 | block[0];
        int64_t at = (int64_t)((unsigned __int128)bits * (uint64_t)held >> 64);
        out[k] = buffer[at];
        if (next < count)
            buffer[at] = next++;
        else
            buffer[at] = buffer[--held];
    }
}

static void buffer_is_the_model(void **state)
{
    static const int64_t counts[] = {1, 2, 63, 257, 1000}, sizes[] = {1, 2, 7, 64, 300, 5000};
    struct budget *budget = open_budget();
    int64_t ids[MOST], expected[MOST];
    (void)state;
    for (int n = 0; n < 5; n++)
        for (int s = 0; s < 6; s++) {
            struct dataset *dataset = dataset_batch(buffered(counting(budget, counts[n]), sizes[s], SEED), 9, false);
            assert_int_equal(dataset_cardinality(dataset), counts[n]);
            assert_int_equal(ids_of(ids, dataset, budget, "i", 3), counts[n]);
            model(expected, counts[n], sizes[s], random_key(SEED, 1, 3));
            assert_true(same(ids, expected, counts[n]));
            assert_each(ids, counts[n], counts[n], 1);
        }
    close_budget(budget);
}

static void buffer_resumes_anywhere(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    struct dataset *dataset = dataset_batch(buffered(counting(budget, 500), 40, SEED), 8, false);
    check_stage(dataset, budget, "i");
    dataset_unref(dataset);
    dataset = buffered(texts_open(budget, &texts_stream, 150, -1), 30, SEED);
    check_stage(dataset, budget, "id");
    dataset_unref(dataset);
    dataset = buffered(dataset_repeat(texts_open(budget, &texts_indexed, 30, -1), 5), 1000, SEED);
    check_stage(dataset, budget, "id");
    dataset_unref(dataset);
    close_budget(budget);
}

/* Element i leaves at least at i - n; the distribution is that of the model: each of n is as likely to be first. */
static void buffer_is_fair(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST], first[20] = {0};
    (void)state;
    struct dataset *dataset = dataset_batch(buffered(counting(budget, 60), 20, SEED), 60, false);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    for (int e = 0; e < 2000; e++) {
        assert_int_equal(collect(ids, iterator), 60);
        for (int64_t k = 0; k < 60; k++)
            assert_true(ids[k] < k + 20);
        first[ids[0]]++;
    }
    for (int i = 0; i < 20; i++)
        assert_in_range(first[i], 60, 140); /* 100 expected, 4 standard deviations */
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

static void values_come_along(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST], streamed[MOST];
    (void)state;
    assert_int_equal(ids_of(ids, buffered(texts_open(budget, &texts_indexed, 1000, -1), 100, 5), budget, "id", 0),
                     1000);
    assert_each(ids, 1000, 1000, 1);
    assert_int_equal(ids_of(streamed, buffered(texts_open(budget, &texts_stream, 1000, -1), 100, 5), budget, "id", 0),
                     1000);
    assert_true(same(ids, streamed, 1000)); /* however the input comes */
    /* Bytes are the bound: fewer are mixed, none is lost, and it can be resumed. */
    struct shuffle_options options = {.kind = SHUFFLE_BUFFER, .buffer_size = 100, .bytes = 100 * 100 + 4096, .seed = 5};
    struct dataset *tight = dataset_shuffle_with(texts_open(budget, &texts_stream, 300, -1), &options);
    check_stage(tight, budget, "id");
    assert_int_equal(ids_of(ids, tight, budget, "id", 0), 300);
    assert_each(ids, 300, 300, 1);
    int64_t furthest = 0;
    for (int64_t k = 0; k < 300; k++)
        furthest = ids[k] - k > furthest ? ids[k] - k : furthest;
    assert_in_range(furthest, 8, 70);
    close_budget(budget);
}

/* A text larger than the store, and one larger than the room of who asks. */
static void too_large_is_an_error(void **state)
{
    struct budget *budget = open_budget();
    struct iterator *iterator;
    struct batch *batch;
    plim_error error = {0};
    (void)state;
    struct dataset *texts = texts_open(budget, &texts_indexed, 100, -1);
    dataset_set_value_bytes(texts, 64);
    struct dataset *dataset = buffered(texts, 10, SEED);
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(1), NULL, &error),
                     PLIM_OK);
    plim_status status = PLIM_OK;
    for (int i = 0; i < 100 && status == PLIM_OK; i++)
        status = iterator_next(&batch, iterator, &error);
    assert_int_equal(status, PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.hint, "largest_element"));
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

static void epochs_and_seeds(void **state)
{
    struct budget *budget = open_budget();
    int64_t a[MOST], b[MOST];
    static const char *const kept[] = {
        "[shuffle: {buffer_size: 50, reshuffle_each_iteration: false}, batch: 7]",
        "[shuffle: {blocks: {block_size: 10, group: 2}, reshuffle_each_iteration: false}, batch: 7]",
        "[shuffle: {exact: , reshuffle_each_iteration: false}, batch: 7]",
    };
    static const char *const anew[] = {"[shuffle: 50, batch: 7]", "[shuffle: blocks, batch: 7]",
                                       "[shuffle: {seed: 3}, batch: 7]"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        ids_of(a, staged(counting(budget, 200), budget, kept[i]), budget, "i", 0);
        ids_of(b, staged(counting(budget, 200), budget, kept[i]), budget, "i", 4);
        assert_true(same(a, b, 200));
        ids_of(a, staged(counting(budget, 200), budget, anew[i]), budget, "i", 0);
        ids_of(b, staged(counting(budget, 200), budget, anew[i]), budget, "i", 4);
        assert_false(same(a, b, 200));
    }
    ids_of(a, staged(counting(budget, 200), budget, "[shuffle: {buffer_size: 50, seed: 3}, batch: 7]"), budget, "i", 0);
    ids_of(b, dataset_batch(buffered(counting(budget, 200), 50, 3), 7, false), budget, "i", 0);
    assert_true(same(a, b, 200));
    ids_of(a, staged(counting(budget, 200), budget, "[shuffle: {seed: 3}, batch: 7]"), budget, "i", 0);
    ids_of(b, dataset_batch(dataset_shuffle(counting(budget, 200), 3), 7, false), budget, "i", 0);
    assert_true(same(a, b, 200));
    close_budget(budget);
}

/* An element of the input that is bad costs no other. */
static void errors_lose_nothing(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST];
    (void)state;
    struct dataset *dataset = made_open(budget, &(struct made_options){.count = 100, .bad = 41});
    dataset = dataset_ignore_errors(buffered(dataset, 16, SEED), &(struct ignore_options){.limit = IGNORE_ALL});
    assert_int_equal(ids_of(ids, dataset, budget, "i", 0), 99);
    bool seen[100] = {false};
    for (int i = 0; i < 99; i++)
        seen[ids[i]] = true;
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], i != 41);
    close_budget(budget);
}

/* ---- blocks ---- */

static void blocks_are_a_bijection(void **state)
{
    static const int64_t blocks[] = {1, 2, 7, 64}, groups[] = {1, 2, 3, 16};
    struct budget *budget = open_budget();
    int64_t ids[MOST];
    (void)state;
    for (int64_t n = 1; n < 300; n = n < 70 ? n + 1 : n + 37)
        for (int b = 0; b < 4; b++)
            for (int g = 0; g < 4; g++)
                for (int64_t epoch = 0; epoch < 2; epoch++) {
                    struct dataset *dataset = blocked(counting(budget, n), blocks[b], groups[g], SEED);
                    assert_int_equal(ids_of(ids, dataset_batch(dataset, 16, false), budget, "i", epoch), n);
                    assert_each(ids, n, n, 1);
                }
    close_budget(budget);
}

/* A group's rows are all of a few blocks, in no order: those blocks are fetched once. */
static void blocks_stay_together(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST], moved = 0;
    (void)state;
    ids_of(ids, dataset_batch(blocked(counting(budget, 1000), 10, 4, SEED), 100, false), budget, "i", 0);
    assert_each(ids, 1000, 1000, 1);
    for (int64_t g = 0; g < 25; g++) {
        bool block[100] = {false};
        int64_t blocks = 0, in_order = 0;
        for (int64_t k = 0; k < 40; k++) {
            int64_t id = ids[g * 40 + k];
            blocks += !block[id / 10];
            block[id / 10] = true;
            in_order += k && ids[g * 40 + k - 1] + 1 == id;
        }
        assert_int_equal(blocks, 4);
        assert_true(in_order < 15);
        moved += !block[g * 4];
    }
    assert_true(moved > 15);
    close_budget(budget);
}

static void blocks_keep_the_index(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST];
    (void)state;
    struct dataset *dataset = dataset_repeat(dataset_take(blocked(counting(budget, 333), 16, 3, SEED), 200), 2);
    assert_true(dataset->indexed);
    dataset = dataset_batch(dataset_shard(dataset, 3, 1), 8, false);
    check_stage(dataset, budget, "i");
    dataset_unref(dataset);
    /* About 256 KiB by default: 15 bytes a row are 17,476 rows. */
    dataset = blocked(counting(budget, 100000), 0, 0, SEED);
    assert_int_equal(((const struct shuffle_options *)dataset->options)->block_size, 262144 / 15);
    dataset_unref(dataset);
    assert_int_equal(ids_of(ids, dataset_batch(blocked(texts_open(budget, &texts_indexed, 50, -1), 0, 0, 1), 1, false),
                            budget, "id", 0),
                     50);
    assert_each(ids, 50, 50, 1);
    close_budget(budget);
}

/* A source that is told what will be asked for, and knows what it was not told in time. */
struct told {
    struct source base;
    bool said[MOST];
    int64_t runs, unsaid;
};

static plim_status told_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                             const uint64_t *stride, plim_error *error)
{
    struct told *told = (struct told *)source;
    (void)error;
    for (int64_t i = 0; i < count; i++) {
        told->unsaid += !told->said[index[i]];
        memcpy((char *)to[0] + (uint64_t)i * stride[0], &index[i], sizeof index[i]);
    }
    return PLIM_OK;
}

static void told_expect(struct source *source, int64_t first, int64_t count)
{
    struct told *told = (struct told *)source;
    told->runs++;
    assert_true(first >= 0 && count > 0 && first + count <= source->count);
    for (int64_t i = first; i < first + count; i++)
        told->said[i] = true;
}

static void told_close(struct source *source)
{
    (void)source;
}

static const struct source_type told_type = {
    .name = "told", .read = told_read, .expect = told_expect, .close = told_close};

/* The blocks of a group are announced before its first row is read, each once, wherever the stages before the shuffle
   put them; blocks that those tear apart are not. */
static void blocks_are_announced(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST];
    (void)state;
    for (int skipped = 0; skipped < 2; skipped++) {
        struct told told = {.base = {.type = &told_type, .budget = budget, .count = 777}};
        assert_int_equal(spec_add(&told.base.spec, "i", TYPE_I64, &(struct shape){0}, NULL), PLIM_OK);
        struct dataset *dataset = dataset_from_source(&told.base);
        if (skipped)
            dataset = dataset_skip(dataset, 100);
        dataset = dataset_batch(blocked(dataset, 20, 3, SEED), 8, false);
        assert_int_equal(ids_of(ids, dataset, budget, "i", 2), skipped ? 677 : 777);
        assert_int_equal(told.unsaid, 0);
        assert_int_equal(told.runs, skipped ? 34 : 39);
    }
    struct told torn = {.base = {.type = &told_type, .budget = budget, .count = 777}};
    assert_int_equal(spec_add(&torn.base.spec, "i", TYPE_I64, &(struct shape){0}, NULL), PLIM_OK);
    struct dataset *dataset = blocked(dataset_shard(dataset_from_source(&torn.base), 2, 0), 20, 3, SEED);
    ids_of(ids, dataset_batch(dataset, 8, false), budget, "i", 0);
    assert_int_equal(torn.runs, 0);
    close_budget(budget);
}

/* ---- blocks that are held ---- */

/* Rows read in order from file-like data, how often each, and a row that cannot be read. */
struct counted {
    struct source base;
    atomic_int reads[MOST];
    int64_t bad;
};

static plim_status counted_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                                const uint64_t *stride, plim_error *error)
{
    struct counted *counted = (struct counted *)source;
    for (int64_t i = 0; i < count; i++) {
        if (index[i] == counted->bad)
            return fail_at(error, PLIM_BAD_DATA, "counted", "row %lld is bad", (long long)index[i]);
        counted->reads[index[i]]++;
        memcpy((char *)to[0] + (uint64_t)i * stride[0], &index[i], sizeof index[i]);
        memset((char *)to[1] + (uint64_t)i * stride[1], (int)index[i] & 0xff, 3);
    }
    return PLIM_OK;
}

static void counted_expect(struct source *source, int64_t first, int64_t count)
{
    (void)source, (void)first, (void)count;
}

static const struct source_type counted_type = {
    .name = "counted", .read = counted_read, .expect = counted_expect, .close = told_close};

static struct dataset *counted_open(struct counted *counted, struct budget *budget, int64_t count, int64_t bad)
{
    *counted = (struct counted){.base = {.type = &counted_type, .budget = budget, .count = count}, .bad = bad};
    assert_int_equal(spec_add(&counted->base.spec, "i", TYPE_I64, &(struct shape){0}, NULL), PLIM_OK);
    assert_int_equal(spec_add(&counted->base.spec, "c", TYPE_U8, &(struct shape){.rank = 1, .dim = {3}}, NULL),
                     PLIM_OK);
    return dataset_from_source(&counted->base);
}

/* Two epochs of it, with what the grant says; the peak is what was said before. */
static void two_epochs(int64_t *ids, struct dataset *dataset, struct budget *budget, struct grant grant)
{
    struct iterator *iterator;
    struct batch *batch;
    plim_error error = {0};
    int64_t n = 0;
    uint64_t cost[TAG_COUNT] = {0};
    struct budget_usage before = budget_usage(budget);
    dataset_cost(cost, NULL, dataset, grant);
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, grant, NULL, &error),
                     PLIM_OK);
    struct budget_usage after = budget_usage(budget);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        assert_int_equal(after.now_by_tag[tag] - before.now_by_tag[tag], cost[tag]);
    for (int e = 0; e < 2;) {
        assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OK);
        e += !batch;
        for (int64_t i = 0; batch && i < batch->count; i++) {
            ids[n] = ((int64_t *)batch->column[0])[i];
            assert_int_equal(((uint8_t *)batch->column[1])[3 * i + 2], ids[n] & 0xff);
            n++;
        }
    }
    assert_int_equal(budget_usage(budget).takes, after.takes);
    iterator_close(iterator);
}

/* The same rows in the same order, held or not, by any number of threads; held ones are read once an epoch. */
static void held_rows_are_the_same(void **state)
{
    static const struct {
        int64_t count, block, group;
    } cases[] = {{777, 20, 3}, {1000, 100, 4}, {100, 7, 16}, {50, 50, 1}, {1300, 3, 40}};
    struct budget *budget = open_budget();
    static int64_t plain[MOST], held[MOST];
    static struct counted counted;
    (void)state;
    for (int c = 0; c < 5; c++)
        for (int threads = 0; threads < 4; threads++) {
            struct dataset *dataset =
                blocked(counted_open(&counted, budget, cases[c].count, -1), cases[c].block, cases[c].group, SEED);
            dataset = dataset_prefetch(dataset_batch(dataset, 8, false), 4);
            assert_true(dataset_wanted_grant(dataset, 2).held);
            assert_false(dataset_least_grant(dataset).held);
            struct grant grant = {.slots = 4, .workers = threads};
            two_epochs(plain, dataset, budget, grant);
            memset(counted.reads, 0, sizeof counted.reads);
            grant.held = true;
            two_epochs(held, dataset, budget, grant);
            assert_true(same(plain, held, 2 * cases[c].count));
            for (int64_t i = 0; i < cases[c].count; i++)
                assert_in_range(counted.reads[i], 1, threads ? 5 : 3); /* threads read ahead, into a third epoch */
            dataset_unref(dataset);
        }
    close_budget(budget);
}

/* A row that cannot be read is told when its batch comes, not when its block does. */
static void a_bad_row_of_a_block(void **state)
{
    struct budget *budget = open_budget();
    static struct counted counted;
    struct iterator *iterator;
    struct batch *batch;
    (void)state;
    for (int threads = 0; threads < 3; threads++)
        for (int held = 0; held < 2; held++) {
            plim_error error = {0};
            int64_t rows = 0;
            struct dataset *dataset = blocked(counted_open(&counted, budget, 300, 123), 30, 2, SEED);
            dataset = dataset_prefetch(dataset_batch(dataset, 8, false), 4);
            struct grant grant = {.slots = 4, .workers = threads, .held = held};
            assert_int_equal(
                iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, grant, NULL, &error),
                PLIM_OK);
            plim_status status;
            while ((status = iterator_next(&batch, iterator, &error)) == PLIM_OK && batch)
                rows += batch->count;
            assert_int_equal(status, PLIM_BAD_DATA);
            assert_string_equal(error.message, "row 123 is bad");
            static int64_t first;
            first = threads || held ? first : rows;
            assert_int_equal(rows, first);
            iterator_close(iterator);
            dataset_unref(dataset);
        }
    close_budget(budget);
}

/* Values, data in memory and blocks that stages tear apart are not held; the least grant holds nothing. */
static void what_is_not_held(void **state)
{
    struct budget *budget = open_budget();
    static struct counted counted;
    (void)state;
    struct dataset *torn = blocked(dataset_shard(counted_open(&counted, budget, 100, -1), 2, 0), 10, 2, SEED);
    struct dataset *texts = blocked(texts_open(budget, &texts_indexed, 50, -1), 10, 2, SEED);
    struct dataset *made = blocked(counting(budget, 100), 10, 2, SEED);
    assert_int_equal(held_bytes(torn, 1), 0);
    assert_int_equal(held_bytes(texts, 1), 0);
    assert_int_equal(held_bytes(made, 1), 0);
    struct grant grant = {.slots = 3, .workers = 1, .held = true}, least = {.slots = 1};
    int steps = 0;
    while (grant_shrink(&grant, least))
        steps++;
    assert_int_equal(steps, 3);
    assert_false(grant.held);
    dataset_unref(torn);
    dataset_unref(texts);
    dataset_unref(made);
    close_budget(budget);
}

/* ---- words ---- */

static void wrong_ones_are_refused(void **state)
{
    struct budget *budget = open_budget();
    struct studio room;
    (void)state;
    stage_refused("[shuffle: 0]", PLIM_BAD_JOB, "at least 1", "");
    stage_refused("[shuffle: -5]", PLIM_BAD_JOB, "at least 1", "");
    stage_refused("[shuffle: wild]", PLIM_BAD_JOB, "'wild'", "shuffle: exact");
    stage_refused("[shuffle: {buffer_size: 0}]", PLIM_BAD_JOB, "at least 1", "");
    stage_refused("[shuffle: {buffer_sise: 3}]", PLIM_BAD_JOB, "buffer_sise", "buffer_size");
    stage_refused("[shuffle: {buffer_size: 3, blocks: }]", PLIM_BAD_JOB, "one of", "");
    stage_refused("[shuffle: {buffer_size: 3, bytes: much}]", PLIM_BAD_JOB, "size", "16MiB");
    stage_refused("[shuffle: {blocks: {block_size: 0}}]", PLIM_BAD_JOB, "at least 1", "");
    stage_refused("[repeat, shuffle: blocks]", PLIM_UNSUPPORTED, "without end", "before repeat");
    stage_refused("[batch: 3, shuffle: exact]", PLIM_UNSUPPORTED, "after batch", "before batch");
    stage_refused("[shuffle: 10, shuffle: exact]", PLIM_UNSUPPORTED, "index", "right behind the source");
    assert_int_equal(read_stages(&room, texts_open(budget, &texts_stream, 9, -1), budget, "[shuffle: exact]"),
                     PLIM_UNSUPPORTED);
    assert_non_null(strstr(room.error.hint, "buffer_size"));
    assert_non_null(strstr(room.error.hint, "plim data index"));
    dataset_unref(room.dataset);
    /* More than an address can say: refused when it is opened, with its size. */
    struct iterator *iterator;
    struct dataset *huge = buffered(dataset_repeat(counting(budget, 10), -1), INT64_MAX, 1);
    assert_int_equal(iterator_open(&iterator, huge, &(struct data_run){budget, NULL, SEED}, GRANT(1), NULL, NULL),
                     PLIM_OVER_BUDGET);
    dataset_unref(huge);
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_is_the_model),    cmocka_unit_test(buffer_resumes_anywhere),
        cmocka_unit_test(buffer_is_fair),         cmocka_unit_test(values_come_along),
        cmocka_unit_test(too_large_is_an_error),  cmocka_unit_test(epochs_and_seeds),
        cmocka_unit_test(errors_lose_nothing),    cmocka_unit_test(blocks_are_a_bijection),
        cmocka_unit_test(blocks_stay_together),   cmocka_unit_test(blocks_keep_the_index),
        cmocka_unit_test(blocks_are_announced),   cmocka_unit_test(held_rows_are_the_same),
        cmocka_unit_test(a_bad_row_of_a_block),   cmocka_unit_test(what_is_not_held),
        cmocka_unit_test(wrong_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
