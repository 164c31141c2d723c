/* test_stage_keep.c - caches, snapshots, save and load, scan, reduce, rejection_resample, options. */
#include <sys/stat.h>
#include <unistd.h>

#include "stage_checks.h"

#include "formats/records/snapshot.h"
#include "pipeline/core/chunk.h"

/* The current folder is the build's. */
static char folder[64] = "keep-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* fails when a test left something behind */
}

static const char *path_in(const char *name)
{
    static char path[4][128];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static bool is_there(const char *name)
{
    return access(path_in(name), F_OK) == 0;
}

static const int64_t digits[] = {3, 1, 3, 2, 1, 3, 7, 7, 2, 0, 5, 3};

static struct dataset *listed(struct budget *budget)
{
    static const struct spec spec = {
        .column_count = 1, .element_bytes = 8, .column = {{"i", TYPE_I64, {0, {0}}, 8, 0}}};
    const void *columns[1] = {digits};
    struct source *source;
    assert_int_equal(memory_open(&source, budget, &spec, columns, 12, NULL), PLIM_OK);
    return dataset_from_source(source);
}

/* How often its input was asked for an element: an expensive stage before a cache. */
static plim_status count_calls(bool *keep, const struct chunk *chunk, void *context, plim_error *error)
{
    (void)error;
    *(int64_t *)context += chunk->count;
    memset(keep, 1, (size_t)chunk->count);
    return PLIM_OK;
}

/* ---- cache in memory ---- */

static void cache_keeps_the_first_epoch(void **state)
{
    struct budget *budget = open_budget();
    int64_t calls = 0, a[MOST], b[MOST];
    (void)state;
    check_golden("cache_twice", staged(listed(budget), budget, "[take: 4, cache, repeat: 2]"), budget, "i");
    struct dataset *dataset = dataset_filter(dataset_shuffle(counting(budget, 300), SEED), count_calls, &calls);
    dataset = dataset_batch(dataset_cache(dataset, &(struct cache_options){.memory = 1 << 20}), 16, false);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 3, 0); /* whichever epoch comes first */
    assert_int_equal(collect(a, iterator), 300);
    assert_int_equal(collect(b, iterator), 300);
    assert_true(same(a, b, 300));
    assert_int_equal(calls, 300);
    iterator_close(iterator);
    assert_int_equal(epoch_of(b, dataset, budget, 0), 300);
    assert_true(same(a, b, 300)); /* a resumed run keeps the same elements */
    close_budget(budget);
}

static void cache_anywhere_and_at_its_cost(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    struct dataset *dataset = staged(counting(budget, 100), budget, "[shuffle: exact, cache, shuffle: 20, batch: 7]");
    uint64_t cost[TAG_COUNT] = {0};
    dataset_cost(cost, NULL, dataset, GRANT(1));
    assert_int_equal(cost[TAG_CACHE], budget_charge(100 * (16 + 8 + 8 + 8)));
    check_stage(dataset, budget, "i");
    dataset_unref(dataset);
    for (int indexed = 0; indexed < 2; indexed++) {
        dataset = texts_open(budget, indexed ? &texts_indexed : &texts_stream, 60, -1);
        dataset = staged(dataset, budget, "[cache: {memory: 64KiB}, enumerate]");
        check_stage(dataset, budget, "id");
        dataset_unref(dataset);
    }
    close_budget(budget);
}

static bool fits_below(void *context, struct grant grant)
{
    uint64_t cost[TAG_COUNT] = {0};
    dataset_cost(cost, NULL, *(struct dataset **)context, grant);
    return cost[TAG_CACHE] == 0;
}

static bool fits_always(void *context, struct grant grant)
{
    (void)context, (void)grant;
    return true;
}

/* An optional cache gives the same elements, kept or not; it is given up only where there is no room. */
static void optional_caches_change_nothing(void **state)
{
    struct budget *budget = open_budget();
    int64_t kept[MOST], made[MOST];
    (void)state;
    struct cache_options some = {.optional = true, .memory = 1 << 20};
    struct dataset *other = dataset_cache(dataset_shuffle(counting(budget, 300), SEED), &some);
    other = dataset_prefetch(dataset_batch(other, 16, false), 2);
    struct grant grant = grant_choose(other, 2, fits_always, NULL);
    assert_true(grant.slots == 3 && grant.caches);
    check_stage(other, budget, "i");
    assert_int_equal(epoch_of(kept, dataset_ref(other), budget, 1), 300);
    grant = grant_choose(other, 2, fits_below, &other);
    assert_true(grant.slots == 3 && !grant.caches); /* a cache that goes leaves room for the rest */
    struct iterator *iterator;
    struct budget_usage before = budget_usage(budget);
    assert_int_equal(iterator_open(&iterator, other, &(struct data_run){budget, NULL, SEED}, grant,
                                   &(struct batch_place){1, 0}, NULL),
                     PLIM_OK);
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_CACHE], before.now_by_tag[TAG_CACHE]);
    for (int epoch = 0; epoch < 2; epoch++) {
        assert_int_equal(collect_column(made, iterator, other, "i"), 300);
        assert_true(same(kept, made, 300));
    }
    iterator_close(iterator);
    dataset_unref(other);
    close_budget(budget);
}

/* Random functions behind a cache go by the epoch they run in, those before it do not. */
static void cache_freezes_what_is_before_it(void **state)
{
    struct budget *budget = open_budget();
    uint8_t image[2][2][600];
    static const char *const texts[] = {"[map: [random_flip: horizontal], cache, batch: 100]",
                                        "[cache, map: [random_flip: horizontal], batch: 100]"};
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct dataset *dataset = staged(counting(budget, 100), budget, texts[t]);
        struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
        for (int e = 0; e < 2; e++) {
            struct batch *batch;
            assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
            memcpy(image[t][e], batch->column[0], 600);
            assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
            assert_null(batch);
        }
        iterator_close(iterator);
        dataset_unref(dataset);
    }
    assert_memory_equal(image[0][0], image[0][1], 600);
    assert_memory_not_equal(image[1][0], image[1][1], 600);
    close_budget(budget);
}

static void cache_is_bounded(void **state)
{
    struct budget *budget = open_budget();
    struct batch *batch;
    plim_error error = {0};
    (void)state;
    stage_refused("[filter: \"i > 3\", cache]", PLIM_BAD_JOB, "not known", "memory: 64MiB");
    stage_refused("[repeat, cache]", PLIM_BAD_JOB, "without end", "before repeat");
    stage_refused("[repeat, cache: file]", PLIM_BAD_JOB, "without end", "before repeat");
    stage_refused("[cache: {memory: 1KiB}]", PLIM_OVER_BUDGET, "3.9 KiB, not 1.0 KiB", "FILE");
    stage_refused("[cache: {memory: lots}]", PLIM_BAD_JOB, "size", "64MiB");
    stage_refused("[cache: {memory: 1MiB, file: x}]", PLIM_BAD_JOB, "not both", "");
    struct dataset *dataset = staged(texts_open(budget, &texts_stream, 60, -1), budget, "[cache: {memory: 4KiB}]");
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    plim_status status = PLIM_OK;
    for (int i = 0; i < 60 && status == PLIM_OK; i++)
        status = iterator_next(&batch, iterator, &error);
    assert_int_equal(status, PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "4.0 KiB are full"));
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- cache in a file ---- */

static struct dataset *filed(struct budget *budget, int64_t *calls, const char *name)
{
    struct dataset *dataset = dataset_filter(counting(budget, 300), count_calls, calls);
    return dataset_batch(dataset_cache(dataset, &(struct cache_options){.file = path_in(name)}), 16, false);
}

static void file_is_found_again(void **state)
{
    struct budget *budget = open_budget();
    int64_t calls = 0, a[MOST], b[MOST];
    (void)state;
    struct dataset *dataset = filed(budget, &calls, "cache");
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    struct batch *batch;
    for (int i = 0; i < 5; i++)
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_false(is_there("cache"));
    assert_true(is_there("cache.partial"));
    assert_int_equal(iterator_seek(iterator, 0, 0, NULL), PLIM_OK); /* left early: from the beginning */
    assert_int_equal(collect(a, iterator), 300);
    assert_true(is_there("cache"));
    assert_false(is_there("cache.partial"));
    assert_false(is_there("cache.lock"));
    int64_t before = calls;
    assert_int_equal(collect(b, iterator), 300);
    assert_int_equal(calls, before);
    assert_true(same(a, b, 300));
    iterator_close(iterator);
    dataset_unref(dataset);
    /* another run: only the first elements are looked at */
    calls = 0;
    dataset = filed(budget, &calls, "cache");
    assert_int_equal(epoch_of(b, dataset, budget, 0), 300);
    assert_int_equal(calls, 8);
    assert_true(same(a, b, 300));
    unlink(path_in("cache"));
    close_budget(budget);
}

static void file_anywhere(void **state)
{
    struct budget *budget = open_budget();
    char text[256];
    (void)state;
    for (int again = 0; again < 2; again++) {
        for (int indexed = 0; indexed < 2; indexed++) {
            struct dataset *dataset = texts_open(budget, indexed ? &texts_indexed : &texts_stream, 40, -1);
            snprintf(text, sizeof text, "[cache: %s, shuffle: 9]", path_in(indexed ? "indexed" : "stream"));
            dataset = staged(dataset, budget, text);
            int64_t ids[2][MOST];
            struct iterator *iterator = open_iterator(dataset, budget, 2, 0, 7);
            assert_int_equal(collect_column(ids[0], iterator, dataset, "id"), 33);
            assert_int_equal(collect_column(ids[0], iterator, dataset, "id"), 40);
            assert_each(ids[0], 40, 40, 1);
            assert_int_equal(iterator_seek(iterator, 1, 0, NULL), PLIM_OK);
            assert_int_equal(collect_column(ids[1], iterator, dataset, "id"), 40);
            assert_true(same(ids[0], ids[1], 40));
            iterator_close(iterator);
            dataset_unref(dataset);
        }
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(unlink(path_in((const char *[]){"indexed", "indexed.values", "stream", "stream.values"}[i])),
                         0);
    close_budget(budget);
}

/* What it takes is not more than what was said, and running takes nothing. */
static void file_at_its_cost(void **state)
{
    struct budget *budget = open_budget();
    uint64_t cost[TAG_COUNT] = {0};
    int64_t calls = 0, ids[MOST];
    (void)state;
    struct dataset *dataset = filed(budget, &calls, "cost");
    dataset_cost(cost, NULL, dataset, GRANT(1));
    struct budget_usage before = budget_usage(budget);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    struct budget_usage after = budget_usage(budget);
    for (int tag = 0; tag < TAG_COUNT; tag++) {
        assert_true(after.now_by_tag[tag] - before.now_by_tag[tag] <= cost[tag]);
        assert_true(after.now_by_tag[tag] - before.now_by_tag[tag] + 4096 > cost[tag]);
    }
    assert_int_equal(collect(ids, iterator), 300);
    assert_int_equal(collect(ids, iterator), 300);
    assert_int_equal(budget_usage(budget).takes, after.takes);
    iterator_close(iterator);
    dataset_unref(dataset);
    unlink(path_in("cost"));
    close_budget(budget);
}

static uint64_t size_of(const char *name)
{
    struct stat status;
    return stat(path_in(name), &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* Where it is known how much it will be: refused before anything is read, and the figure is enough. */
static void file_counts_as_disk(void **state)
{
    struct budget *budget = open_budget();
    struct iterator *iterator;
    plim_error error = {0};
    int64_t ids[MOST];
    uint64_t cost[TAG_COUNT] = {0}, disk = 0;
    (void)state;
    struct cache_options options = {.file = path_in("counted")};
    struct dataset *dataset = dataset_batch(dataset_cache(counting(budget, 300), &options), 16, false);
    dataset_cost(cost, &disk, dataset, GRANT(1));
    assert_true(disk >= 300 * 24); /* 6, 1 and 8 bytes, from multiples of 8 on */
    struct scratch_disk less = {.folder = ".", .limit_bytes = disk - 1}, enough = {.folder = ".", .limit_bytes = disk};
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, &less, SEED}, GRANT(1), NULL, &error),
                     PLIM_OVER_DISK);
    assert_non_null(strstr(error.where, "counted"));
    assert_non_null(strstr(error.hint, "--disk"));
    assert_int_equal(less.used_bytes, 0);
    assert_int_equal(
        iterator_open(&iterator, dataset, &(struct data_run){budget, &enough, SEED}, GRANT(1), NULL, &error), PLIM_OK);
    assert_int_equal(enough.used_bytes, disk);
    struct batch *batch;
    assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OK);
    iterator_close(iterator);
    assert_int_equal(enough.used_bytes, 0); /* what was not finished is gone */
    assert_int_equal(
        iterator_open(&iterator, dataset, &(struct data_run){budget, &enough, SEED}, GRANT(2), NULL, &error), PLIM_OK);
    assert_int_equal(collect(ids, iterator), 300);
    iterator_close(iterator);
    assert_int_equal(enough.used_bytes, disk);
    assert_true(size_of("counted") <= disk && size_of("counted") + 1024 * 3 > disk);
    /* it is there: nothing is written */
    uint64_t again = 0;
    dataset_cost(cost, &again, dataset, GRANT(1));
    assert_int_equal(again, 0);
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, &less, SEED}, GRANT(1), NULL, &error),
                     PLIM_OK);
    assert_int_equal(collect(ids, iterator), 300);
    iterator_close(iterator);
    assert_int_equal(less.used_bytes, 0);
    dataset_unref(dataset);
    assert_int_equal(unlink(path_in("counted")), 0);
    close_budget(budget);
}

/* Where it is not known: what is written never passes the limit, and nothing of it stays. */
static void file_meets_the_limit_of_disk(void **state)
{
    struct budget *budget = open_budget();
    struct iterator *iterator;
    plim_error error = {0};
    uint64_t cost[TAG_COUNT] = {0}, disk = 0, whole = 0;
    (void)state;
    struct cache_options options = {.file = path_in("grows")};
    struct dataset *dataset = dataset_cache(texts_open(budget, &texts_stream, 60, -1), &options);
    dataset_cost(cost, &disk, dataset, GRANT(1));
    assert_int_equal(disk, 0);
    for (uint64_t limit = (uint64_t)1 << 20; limit; limit = limit > whole ? whole : limit > 1500 ? limit - 1500 : 0) {
        struct scratch_disk scratch = {.folder = ".", .limit_bytes = limit};
        iterator = NULL;
        plim_status status =
            iterator_open(&iterator, dataset, &(struct data_run){budget, &scratch, SEED}, GRANT(1), NULL, &error);
        struct batch *batch = NULL;
        int64_t given = 0;
        while (status == PLIM_OK && (status = iterator_next(&batch, iterator, &error)) == PLIM_OK && batch) {
            check_text(batch, 0);
            given++;
            assert_true(size_of("grows.partial") + size_of("grows.values.partial") <= limit);
        }
        bool fits = !whole || limit >= whole;
        assert_int_equal(status, fits ? PLIM_OK : PLIM_OVER_DISK);
        assert_true(fits ? given == 60 : given < 60);
        iterator_close(iterator);
        assert_int_equal(is_there("grows"), fits);
        assert_false(is_there("grows.partial") || is_there("grows.values.partial"));
        if (!fits) {
            assert_int_equal(scratch.used_bytes, 0);
            assert_non_null(strstr(error.hint, "--disk"));
            continue;
        }
        assert_true(scratch.used_bytes >= size_of("grows") + size_of("grows.values"));
        assert_true(scratch.used_bytes <= size_of("grows") + size_of("grows.values") + 8192);
        whole = scratch.used_bytes;
        unlink(path_in("grows"));
        unlink(path_in("grows.values"));
    }
    dataset_unref(dataset);
    close_budget(budget);
}

static void other_data_is_kept_anew(void **state)
{
    struct budget *budget = open_budget();
    int64_t ids[MOST];
    char text[256];
    (void)state;
    static const char *const pipelines[] = {"[take: 50, filter: \"i > 3\", cache: %s]",
                                            "[take: 50, filter: \"i > 4\", cache: %s]",
                                            "[take: 50, filter: \"i > 4\", shuffle: {buffer_size: 3}, cache: %s]"};
    static const int64_t counts[] = {46, 45, 45};
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, pipelines[i], path_in("anew"));
        assert_int_equal(ids_of(ids, staged(counting(budget, 100), budget, text), budget, "i", 0), counts[i]);
    }
    /* files of the same form in the place of others */
    for (int64_t first = 0; first < 2; first++) {
        int64_t numbers[20];
        for (int64_t i = 0; i < 20; i++)
            numbers[i] = first * 100 + i;
        static const struct spec spec = {
            .column_count = 1, .element_bytes = 8, .column = {{"i", TYPE_I64, {0, {0}}, 8, 0}}};
        const void *columns[1] = {numbers};
        struct source *source;
        assert_int_equal(memory_open(&source, budget, &spec, columns, 20, NULL), PLIM_OK);
        struct dataset *dataset =
            dataset_cache(dataset_from_source(source), &(struct cache_options){.file = path_in("anew")});
        assert_int_equal(ids_of(ids, dataset, budget, "i", 0), 20);
        assert_int_equal(ids[19], first * 100 + 19);
    }
    unlink(path_in("anew"));
    /* a file that is none of ours stays as it is */
    FILE *file = fopen(path_in("thesis"), "w");
    fputs("my only copy of the thesis", file);
    fclose(file);
    struct iterator *iterator;
    plim_error error = {0};
    struct dataset *dataset = dataset_cache(counting(budget, 9), &(struct cache_options){.file = path_in("thesis")});
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(1), NULL, &error),
                     PLIM_BAD_DATA);
    assert_non_null(strstr(error.hint, "another name"));
    dataset_unref(dataset);
    assert_true(is_there("thesis"));
    unlink(path_in("thesis"));
    close_budget(budget);
}

/* The n-th call of each kind fails, once and for ever: an error with its place, and nothing half-written. */
static void nothing_half_written_stays(void **state)
{
    static const unsigned sites[] = {FAULT_OPEN, FAULT_WRITE, FAULT_SYNC, FAULT_RENAME, FAULT_ALLOCATE, FAULT_STAT};
    (void)state;
    for (int s = 0; s < 6; s++)
        for (int forever = 0; forever < 2; forever++) {
            bool reached = true;
            for (int64_t n = 1; reached && n < 60; n++) {
                struct budget *budget = open_budget();
                struct dataset *dataset = dataset_cache(texts_open(budget, &texts_indexed, 30, -1),
                                                        &(struct cache_options){.file = path_in("fault")});
                struct iterator *iterator = NULL;
                struct batch *batch = NULL;
                plim_error error = {0};
                fault_arm(sites[s], n, forever, ENOSPC);
                plim_status status =
                    iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(1), NULL, &error);
                while (status == PLIM_OK) {
                    status = iterator_next(&batch, iterator, &error);
                    if (!batch)
                        break;
                }
                reached = fault_disarm();
                if (status != PLIM_OK)
                    assert_true(sites[s] == FAULT_ALLOCATE || strstr(error.where, "fault") ||
                                strstr(error.where, "keep"));
                if (!reached)
                    assert_int_equal(status, PLIM_OK);
                iterator_close(iterator);
                dataset_unref(dataset);
                assert_true(status != PLIM_OK || is_there("fault"));
                if (sites[s] != FAULT_RENAME) { /* else what is left could not be removed either */
                    assert_false(is_there("fault.partial"));
                    assert_false(is_there("fault.values.partial"));
                }
                if (is_there("fault")) { /* then all of it is */
                    struct snapshot *snapshot;
                    assert_int_equal(snapshot_open(&snapshot, budget, path_in("fault"), &error), PLIM_OK);
                    assert_int_equal(snapshot_head(snapshot)->count, 30);
                    snapshot_close(snapshot);
                }
                static const char *const names[] = {"fault", "fault.values", "fault.partial", "fault.values.partial",
                                                    "fault.lock"};
                for (int i = 0; i < 5; i++)
                    unlink(path_in(names[i]));
                close_budget(budget);
            }
            assert_false(reached);
        }
}

static void two_writers_do_not_meet(void **state)
{
    struct budget *budget = open_budget();
    int64_t calls = 0, ids[MOST];
    struct iterator *second;
    plim_error error = {0};
    (void)state;
    struct dataset *dataset = filed(budget, &calls, "shared");
    struct iterator *first = open_iterator(dataset, budget, 1, 0, 0);
    assert_int_equal(iterator_open(&second, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(1), NULL, &error),
                     PLIM_IO);
    assert_int_equal(collect(ids, first), 300);
    assert_int_equal(iterator_open(&second, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(1), NULL, &error),
                     PLIM_OK);
    assert_int_equal(collect(ids, second), 300);
    iterator_close(first);
    iterator_close(second);
    dataset_unref(dataset);
    unlink(path_in("shared"));
    close_budget(budget);
}

/* ---- snapshot, save and load ---- */

static void remove_snapshot(const char *name)
{
    char path[160];
    static const char *const files[] = {"/snapshot", "/snapshot.values"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s%s", path_in(name), files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(path_in(name)), 0);
}

static struct dataset *loaded(struct budget *budget, const char *name)
{
    struct source *source;
    plim_error error = {0};
    if (snapshot_source_open(&source, budget, path_in(name), &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    return dataset_from_source(source);
}

static void what_is_saved_is_loaded(void **state)
{
    struct budget *budget = open_budget();
    int64_t a[MOST], b[MOST];
    (void)state;
    struct dataset *dataset = staged(texts_open(budget, &texts_stream, 200, -1), budget, "[filter: \"id % 2 == 1\"]");
    assert_int_equal(dataset_save(dataset, path_in("saved"), &(struct data_run){budget, NULL, SEED}, NULL), PLIM_OK);
    dataset_unref(dataset);
    dataset = loaded(budget, "saved");
    assert_int_equal(dataset_cardinality(dataset), 100);
    assert_true(dataset->indexed);
    assert_string_equal(dataset_spec(dataset)->column[1].name, "text");
    assert_int_equal(dataset_spec(dataset)->column[2].shape.dim[0], -1);
    dataset = dataset_shuffle(dataset, SEED);
    check_stage(dataset, budget, "id");
    assert_int_equal(ids_of(a, dataset, budget, "id", 0), 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(a[i] % 2, 1);
    remove_snapshot("saved");
    /* rows of numbers; the images too */
    dataset = dataset_shuffle(counting(budget, 1000), SEED);
    assert_int_equal(dataset_save(dataset, path_in("rows"), &(struct data_run){budget, NULL, SEED}, NULL), PLIM_OK);
    ids_of(a, dataset, budget, "i", 0);
    ids_of(b, dataset_batch(loaded(budget, "rows"), 10, false), budget, "i", 0);
    assert_true(same(a, b, 1000));
    dataset = dataset_batch(loaded(budget, "rows"), 1000, false);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    struct batch *batch;
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    for (int i = 0; i < 1000; i++)
        for (int p = 0; p < 6; p++)
            assert_int_equal(((uint8_t *)batch->column[0])[i * 6 + p], pixel(a[i], p));
    iterator_close(iterator);
    dataset_unref(dataset);
    remove_snapshot("rows");
    close_budget(budget);
}

static void what_cannot_be_saved_is_not(void **state)
{
    struct budget *budget = open_budget();
    plim_error error = {0};
    (void)state;
    struct dataset *dataset = dataset_batch(counting(budget, 10), 3, false);
    assert_int_equal(dataset_save(dataset, path_in("no"), &(struct data_run){budget, NULL, SEED}, &error),
                     PLIM_UNSUPPORTED);
    dataset_unref(dataset);
    dataset = dataset_repeat(counting(budget, 10), -1);
    assert_int_equal(dataset_save(dataset, path_in("no"), &(struct data_run){budget, NULL, SEED}, &error),
                     PLIM_UNSUPPORTED);
    dataset_unref(dataset);
    dataset = made_open(budget, &(struct made_options){.count = 1000, .bad = 700});
    assert_int_equal(dataset_save(dataset, path_in("no"), &(struct data_run){budget, NULL, SEED}, &error),
                     PLIM_BAD_DATA);
    dataset_unref(dataset);
    remove_snapshot("no"); /* an empty folder */
    close_budget(budget);
}

static void the_word_snapshot_is_a_cache(void **state)
{
    struct budget *budget = open_budget();
    int64_t a[MOST], b[MOST];
    char text[256];
    (void)state;
    snprintf(text, sizeof text, "[filter: \"i > 5\", snapshot: %s]", path_in("stage"));
    ids_of(a, staged(counting(budget, 50), budget, text), budget, "i", 0);
    ids_of(b, staged(counting(budget, 50), budget, text), budget, "i", 1);
    assert_true(same(a, b, 44));
    ids_of(b, loaded(budget, "stage"), budget, "i", 0);
    assert_true(same(a, b, 44));
    remove_snapshot("stage");
    close_budget(budget);
}

/* ---- scan and reduce ---- */

static plim_status running_sum(void *state, struct chunk *to, const struct chunk *from, int64_t row, void *context,
                               plim_error *error)
{
    int64_t value, *sum = state;
    (void)context, (void)error;
    memcpy(&value, chunk_row(from, 0, row), sizeof value);
    *sum += value;
    memcpy(chunk_row(to, 0, to->count), sum, sizeof *sum);
    return PLIM_OK;
}

/* Makes a text of each element: its number so far, in stars. */
static plim_status stars(void *state, struct chunk *to, const struct chunk *from, int64_t row, void *context,
                         plim_error *error)
{
    uint64_t *count = state;
    (void)from, (void)row, (void)context;
    uint8_t *bytes = value_buffer_take_bytes(&to->values, ++*count);
    if (!bytes)
        return (fail)(error, PLIM_OVER_BUDGET, "no room");
    memset(bytes, '*', *count);
    struct string string = {bytes, *count};
    memcpy(chunk_row(to, 0, to->count), &string, sizeof string);
    return PLIM_OK;
}

static void scan_carries_its_state(void **state)
{
    struct budget *budget = open_budget();
    int64_t ten = 10;
    (void)state;
    struct scan_options options = {.state = &ten, .state_bytes = sizeof ten, .run = running_sum};
    struct dataset *dataset = dataset_scan(listed(budget), &options);
    ten = 0; /* ours was copied */
    check_stage(dataset, budget, "i");
    check_golden("scan_running_sum", dataset, budget, "i");
    static const struct spec spec = {.column_count = 1, .column = {{"text", TYPE_STRING, {0, {0}}, 0, 0}}};
    uint64_t none = 0;
    options = (struct scan_options){
        .state = &none, .state_bytes = sizeof none, .spec = &spec, .value_bytes = 300, .run = stars};
    dataset = dataset_scan(counting(budget, 300), &options);
    struct iterator *iterator = open_iterator(dataset, budget, 2, 0, 200);
    for (uint64_t i = 201; i <= 300; i++) {
        struct batch *batch;
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        assert_int_equal(((struct string *)batch->column[0])->bytes, i);
        assert_int_equal(((struct string *)batch->column[0])->data[i - 1], '*');
    }
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

static plim_status add_up(void *state, const struct batch *batch, const struct spec *spec, plim_error *error)
{
    int64_t *sum = state;
    (void)error;
    int column = spec_find(spec, "i");
    for (int64_t i = 0; i < batch->count; i++)
        *sum += ((int64_t *)batch->column[column])[i];
    return PLIM_OK;
}

static void reduce_runs_to_the_end(void **state)
{
    struct budget *budget = open_budget();
    int64_t sum = 100, expected[MOST];
    plim_error error = {0};
    (void)state;
    struct dataset *dataset = listed(budget);
    assert_int_equal(dataset_reduce(&sum, dataset, &(struct data_run){budget, NULL, SEED}, add_up, &error), PLIM_OK);
    golden_list(expected, "reduce_sum");
    assert_int_equal(sum, expected[0]);
    dataset_unref(dataset);
    dataset = dataset_take(listed(budget), 0);
    assert_int_equal(dataset_reduce(&sum, dataset, &(struct data_run){budget, NULL, SEED}, add_up, &error), PLIM_OK);
    assert_int_equal(sum, expected[0]);
    dataset_unref(dataset);
    dataset = dataset_repeat(listed(budget), -1);
    assert_int_equal(dataset_reduce(&sum, dataset, &(struct data_run){budget, NULL, SEED}, add_up, &error),
                     PLIM_UNSUPPORTED);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- rejection_resample ---- */

static void share_of(double share[10], struct dataset *dataset, struct budget *budget, int64_t *count)
{
    int64_t ids[MOST];
    *count = ids_of(ids, dataset, budget, "i", 0);
    memset(share, 0, 10 * sizeof *share);
    for (int64_t i = 0; i < *count; i++) {
        assert_true(!i || ids[i] > ids[i - 1]); /* none twice, in order */
        share[ids[i] % 10] += 1.0 / (double)*count;
    }
}

static void classes_come_as_often_as_they_should(void **state)
{
    struct budget *budget = open_budget();
    double share[10];
    int64_t count;
    (void)state;
    static const char *const texts[] = {
        "[rejection_resample: {column: y, target_dist: [0.5, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05],"
        " initial_dist: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]}]",
        "[rejection_resample: {column: y, target_dist: [0.5, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]}]"};
    for (int t = 0; t < 2; t++) {
        share_of(share, staged(counting(budget, 20000), budget, texts[t]), budget, &count);
        assert_in_range(count, 3700, 4096); /* 2000 of class 0 are half of it */
        assert_true(share[0] > 0.48 && share[0] < 0.54);
        assert_true(share[1] > 0.08 && share[1] < 0.12);
        for (int c = 2; c < 10; c++)
            assert_true(share[c] > 0.035 && share[c] < 0.065);
    }
    share_of(share,
             staged(counting(budget, 3000), budget,
                    "[map: {y: [cast: int32]}, rejection_resample: {column: y, target_dist: "
                    "[0, 1, 0, 0, 0, 0, 0, 0, 0, 0]}]"),
             budget, &count);
    assert_int_equal(count, 300);
    struct dataset *dataset = staged(counting(budget, 400), budget, texts[1]);
    check_stage(dataset, budget, "i");
    dataset_unref(dataset);
    stage_refused("[rejection_resample: {column: y, target_dist: [0.5, 0.6]}]", PLIM_BAD_JOB, "sums to 1.1", "");
    stage_refused("[rejection_resample: {column: z, target_dist: [0.5, 0.5]}]", PLIM_BAD_JOB, "'z'", "");
    stage_refused("[rejection_resample: {column: image, target_dist: [0.5, 0.5]}]", PLIM_BAD_JOB, "class numbers", "");
    stage_refused("[rejection_resample: {column: y}]", PLIM_BAD_JOB, "target_dist", "target_dist");
    stage_refused("[rejection_resample: {column: y, target_dist: [1], initial_dist: [0.5, 0.5]}]", PLIM_BAD_JOB,
                  "1 classes", "");
    close_budget(budget);
}

/* ---- options ---- */

static void options_are_said_or_refused(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    dataset_unref(staged(counting(budget, 9), budget, "[options: {deterministic: true}, batch: 3]"));
    stage_refused("[options: {deterministic: false}]", PLIM_UNSUPPORTED, "'deterministic'", "never depends on time");
    stage_refused("[options: {threading: {private_threadpool_size: 3}}]", PLIM_UNSUPPORTED, "'threading'", "threads");
    stage_refused("[options: {determinstic: true}]", PLIM_BAD_JOB, "'determinstic'", "'deterministic'");
    stage_refused("[options: fast]", PLIM_BAD_JOB, "map", "deterministic");
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_keeps_the_first_epoch),
        cmocka_unit_test(cache_anywhere_and_at_its_cost),
        cmocka_unit_test(optional_caches_change_nothing),
        cmocka_unit_test(cache_freezes_what_is_before_it),
        cmocka_unit_test(cache_is_bounded),
        cmocka_unit_test(file_is_found_again),
        cmocka_unit_test(file_anywhere),
        cmocka_unit_test(file_at_its_cost),
        cmocka_unit_test(file_counts_as_disk),
        cmocka_unit_test(file_meets_the_limit_of_disk),
        cmocka_unit_test(other_data_is_kept_anew),
        cmocka_unit_test(nothing_half_written_stays),
        cmocka_unit_test(two_writers_do_not_meet),
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(what_cannot_be_saved_is_not),
        cmocka_unit_test(the_word_snapshot_is_a_cache),
        cmocka_unit_test(scan_carries_its_state),
        cmocka_unit_test(reduce_runs_to_the_end),
        cmocka_unit_test(classes_come_as_often_as_they_should),
        cmocka_unit_test(options_are_said_or_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
