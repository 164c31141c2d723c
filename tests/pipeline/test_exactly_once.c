/* test_exactly_once.c - every sample exactly once an epoch, counted by its id, however often a run is stopped at a
   batch and begun again from its state: with other threads and slots, in the same iterator or a new one, and with
   another number of shards. PLIM_TEST_SEED is another set of runs. */
#include "random_pipeline.h"

#define STOPS       200
#define N           157 /* ids */
#define MOST_SHARDS 5

static char folder[] = "once-XXXXXX";
static unsigned long long seed;

/* ---- pipelines over ids ---- */

static const char *const shuffles[] = {"",
                                       "shuffle: exact",
                                       "shuffle: blocks",
                                       "shuffle: {blocks: {block_size: 5, group: 3}}",
                                       "shuffle: 20",
                                       "shuffle: {buffer_size: 300, bytes: 64KiB}"};
static const char *const sources[] = {"range", "texts", "stream of texts", "tfrecord"};

struct run {
    int source, shuffle; /* of the lists */
    int64_t batch;
    bool mapped;
    plim_budget *budget;
    char what[128];
};

static struct dataset *open_ids(const struct run *run)
{
    char text[256];
    if (run->source == 1 || run->source == 2)
        return texts_open(run->budget->inner, run->source == 1 ? &texts_indexed : &texts_stream, N, -1);
    if (run->source == 0)
        snprintf(text, sizeof text, "{range: %d}", N);
    else
        snprintf(text, sizeof text,
                 "{tfrecord: {files: '%s/?.tfrecord', interleave: {cycle_length: 2, block_length: 3}, "
                 "features: {id: int64, x: 'float32[3]', list: {var: int64}}}}",
                 folder);
    return inside(plim_dataset_read(run->budget, text, 1));
}

/* Ids in the first column. */
static plim_dataset *make_run(const struct run *run, int64_t shards, int64_t shard)
{
    char text[64];
    plim_error error = {0};
    plim_dataset *dataset = outside(open_ids(run));
    if (*shuffles[run->shuffle])
        dataset = plim_dataset_stage(dataset, shuffles[run->shuffle], 3);
    if (shards)
        dataset = plim_dataset_shard(dataset, shards, shard);
    if (run->mapped && run->source != 0)
        dataset = plim_dataset_stage(dataset, "map: {twice: \"id * 2\"}", 0);
    snprintf(text, sizeof text, "batch: %lld", (long long)run->batch);
    dataset = plim_dataset_stage(dataset, text, 0);
    if (plim_dataset_check(dataset, &error) != PLIM_OK)
        fail_msg("%s: %s", run->what, error.message);
    return dataset;
}

static plim_iterator *open_run(const struct run *run, plim_dataset *dataset, struct dice *dice,
                               const plim_iterator_state *state)
{
    plim_iterator *iterator;
    plim_error error = {0};
    plim_iterator_options options = {
        .threads = (int)between(dice, 0, 3), .slots = (int)between(dice, 1, 5), .seed = SEED, .state = state};
    if (plim_iterator_open(&iterator, dataset, run->budget, &options, &error) != PLIM_OK)
        fail_msg("%s: %s", run->what, error.message);
    return iterator;
}

static const plim_batch *next_of(const struct run *run, plim_iterator *iterator)
{
    const plim_batch *batch = NULL;
    plim_error error = {0};
    if (plim_iterator_next(&batch, iterator, &error) != PLIM_OK)
        fail_msg("%s: %s", run->what, error.message);
    return batch;
}

/* False: the source has no index, and this shuffle needs one. */
static bool choose_run(struct run *run, struct dice *dice, plim_budget *budget)
{
    *run = (struct run){.source = (int)roll(dice, 4),
                        .shuffle = (int)roll(dice, 6),
                        .batch = between(dice, 1, 9),
                        .mapped = roll(dice, 2),
                        .budget = budget};
    snprintf(run->what, sizeof run->what, "PLIM_TEST_SEED=%llu: %s, %s, batch: %lld%s", seed, sources[run->source],
             shuffles[run->shuffle], (long long)run->batch, run->mapped ? ", map" : "");
    bool indexed = run->source < 2, by_index = run->shuffle >= 1 && run->shuffle <= 3;
    return indexed || !by_index;
}

/* ---- counting ---- */

struct seen_ids {
    int64_t count, id[N];
    bool seen[N];
};

static void count(struct seen_ids *ids, const struct run *run, const plim_batch *batch)
{
    for (int64_t i = 0; i < batch->count; i++) {
        int64_t id = ((const int64_t *)batch->column[0])[i];
        if (id < 0 || id >= N || ids->seen[id])
            fail_msg("%s: id %lld comes %s", run->what, (long long)id, id < 0 || id >= N ? "from nowhere" : "twice");
        ids->seen[id] = true;
        ids->id[ids->count++] = id;
    }
}

static void check_ids(const struct seen_ids *ids, const struct run *run, int64_t epoch)
{
    if (ids->count != N)
        fail_msg("%s: %lld of %d ids came in epoch %lld", run->what, (long long)ids->count, N, (long long)epoch);
}

/* ---- stops and restores ---- */

/* Behind the last batch: in the same iterator, or a new one. */
static void stop_and_go_on(plim_iterator **iterator, const struct run *run, plim_dataset *dataset, struct dice *dice)
{
    plim_iterator_state state;
    plim_error error = {0};
    plim_iterator_state_take(&state, *iterator);
    if (roll(dice, 3) == 0) {
        if (plim_iterator_restore(*iterator, &state, &error) != PLIM_OK)
            fail_msg("%s: %s", run->what, error.message);
        return;
    }
    plim_iterator_close(*iterator);
    *iterator = open_run(run, dataset, dice, &state);
}

static int stopped_run(const struct run *run, struct dice *dice)
{
    int stops = 0;
    plim_dataset *dataset = make_run(run, 0, 0);
    plim_iterator *whole = open_run(run, dataset, dice, NULL), *iterator = open_run(run, dataset, dice, NULL);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        struct seen_ids expected = {0}, ids = {0};
        for (const plim_batch *batch; (batch = next_of(run, whole));)
            count(&expected, run, batch);
        check_ids(&expected, run, epoch);
        if (roll(dice, 4) == 0)
            stop_and_go_on(&iterator, run, dataset, dice); /* at the beginning of an epoch */
        for (const plim_batch *batch; (batch = next_of(run, iterator));) {
            assert_int_equal(batch->epoch, epoch);
            count(&ids, run, batch);
            if (roll(dice, 4))
                continue;
            stop_and_go_on(&iterator, run, dataset, dice);
            stops++;
        }
        check_ids(&ids, run, epoch);
        if (memcmp(ids.id, expected.id, sizeof ids.id) != 0)
            fail_msg("%s: another order after a restore", run->what);
    }
    plim_iterator_close(whole);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    return stops;
}

static plim_budget *new_plim_budget(void)
{
    plim_budget *budget;
    assert_int_equal(plim_budget_make(&budget, (uint64_t)256 << 20, NULL), PLIM_OK);
    return budget;
}

static void end_plim_budget(plim_budget *budget)
{
    assert_int_equal(budget_usage(budget->inner).now, budget->own_bytes);
    plim_budget_free(budget);
}

static void through_stops(void **state)
{
    struct dice dice = {.key = random_key(seed, 1, 0)};
    int stops = 0, runs = 0;
    (void)state;
    while (stops < STOPS) {
        plim_budget *budget = new_plim_budget();
        struct run run;
        if (choose_run(&run, &dice, budget)) {
            stops += stopped_run(&run, &dice);
            runs++;
        }
        end_plim_budget(budget);
    }
    print_message("%d runs, %d stops\n", runs, stops);
}

/* ---- shards, of which there are others after each stop ---- */

struct crew {
    int64_t shards;
    plim_dataset *dataset[MOST_SHARDS];
    plim_iterator *iterator[MOST_SHARDS];
};

static void open_crew(struct crew *crew, const struct run *run, struct dice *dice, const plim_iterator_state *state)
{
    crew->shards = between(dice, 1, MOST_SHARDS);
    for (int64_t s = 0; s < crew->shards; s++) {
        crew->dataset[s] = make_run(run, crew->shards, s);
        crew->iterator[s] = open_run(run, crew->dataset[s], dice, state);
    }
}

static void close_crew(struct crew *crew)
{
    for (int64_t s = 0; s < crew->shards; s++) {
        plim_iterator_close(crew->iterator[s]);
        plim_dataset_unref(crew->dataset[s]);
    }
}

/* A batch of each. Returns how many gave one. */
static int64_t one_round(struct seen_ids *ids, struct crew *crew, bool over[MOST_SHARDS], const struct run *run)
{
    int64_t gave = 0;
    for (int64_t s = 0; s < crew->shards; s++) {
        const plim_batch *batch = over[s] ? NULL : next_of(run, crew->iterator[s]);
        over[s] = !batch;
        if (batch)
            count(ids, run, batch);
        gave += batch != NULL;
    }
    return gave;
}

/* All of them stand at the same place, whoever is asked. */
static void place_of(plim_iterator_state *state, const struct crew *crew, const struct run *run)
{
    for (int64_t s = 0; s < crew->shards; s++) {
        plim_iterator_state other;
        plim_iterator_state_take(s ? &other : state, crew->iterator[s]);
        if (s && memcmp(&other, state, sizeof other) != 0)
            fail_msg("%s: shard %lld of %lld says sample %lld, shard 0 %lld", run->what, (long long)s,
                     (long long)crew->shards, (long long)other.samples, (long long)state->samples);
    }
}

static int sharded_epoch(const struct run *run, struct dice *dice, int64_t epoch)
{
    struct crew crew;
    struct seen_ids ids = {0};
    bool over[MOST_SHARDS] = {false};
    plim_iterator_state state = {0};
    int stops = 0;
    int64_t gave;
    open_crew(&crew, run, dice, NULL);
    for (int64_t e = 0; e < epoch; e++) /* those before it are another test's */
        for (int64_t s = 0; s < crew.shards; s++)
            while (next_of(run, crew.iterator[s]))
                ;
    while ((gave = one_round(&ids, &crew, over, run))) {
        if (gave < crew.shards || roll(dice, 2))
            continue; /* to the end, when one has reached it */
        place_of(&state, &crew, run);
        close_crew(&crew);
        open_crew(&crew, run, dice, &state);
        stops++;
    }
    close_crew(&crew);
    check_ids(&ids, run, epoch);
    return stops;
}

static void with_other_shards(void **state)
{
    struct dice dice = {.key = random_key(seed, 2, 0)};
    int stops = 0, runs = 0;
    (void)state;
    while (stops < STOPS) {
        plim_budget *budget = new_plim_budget();
        struct run run;
        if (choose_run(&run, &dice, budget)) {
            stops += sharded_epoch(&run, &dice, between(&dice, 0, 1));
            runs++;
        }
        end_plim_budget(budget);
    }
    print_message("%d runs, %d stops\n", runs, stops);
}

/* ---- files ---- */

static int make_files(void **state)
{
    const char *told = getenv("PLIM_TEST_SEED");
    (void)state;
    seed = told ? strtoull(told, NULL, 10) : 20261115;
    print_message("PLIM_TEST_SEED=%llu\n", seed);
    if (!mkdtemp(folder))
        return -1;
    write_records(folder, "a.tfrecord", RECORDS_RAW, 0, 83);
    write_records(folder, "b.tfrecord", RECORDS_GZIP, 83, 40);
    write_records(folder, "c.tfrecord", RECORDS_RAW, 123, N - 123);
    return 0;
}

static int remove_files(void **state)
{
    static const char *const names[] = {"a.tfrecord", "b.tfrecord", "c.tfrecord"};
    char path[256];
    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(through_stops), cmocka_unit_test(with_other_shards)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
