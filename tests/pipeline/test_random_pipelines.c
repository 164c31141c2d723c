/* test_random_pipelines.c - 200 pipelines made by chance, each under budgets made by chance.

   Of each: a budget below what it costs is refused and leaves nothing behind; with exactly that it runs, and takes
   nothing more; slots and threads change nothing in what it gives; any batch can be gone to. PLIM_TEST_SEED is another
   set of pipelines, PLIM_TEST_PIPELINE one of them alone; both are in the message of a failure. */
#include "base/numbers/hash.h"
#include "random_pipeline.h"

#define PIPELINES    200
#define MOST_BATCHES 1024
#define EPOCHS       2

static char folder[] = "pipelines-XXXXXX";
static struct grower now;
static unsigned long long seed;
static int number;

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        print_error("PLIM_TEST_SEED=%llu PLIM_TEST_PIPELINE=%d: %s\n", seed, number, now.words);                       \
        fail_msg(__VA_ARGS__);                                                                                         \
    } while (0)
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            FAIL("%s", #condition);                                                                                    \
    } while (0)

/* ---- what a batch holds, as a number ---- */

static void mix(uint64_t *hash, const void *data, uint64_t bytes)
{
    *hash = fnv1a(*hash, data, bytes);
}

static void mix_values(uint64_t *hash, enum type type, const void *data, int64_t count)
{
    const struct string *string = data;
    if (type != TYPE_STRING)
        mix(hash, data, (uint64_t)count * type_bytes(type));
    for (int64_t i = 0; type == TYPE_STRING && i < count; i++) {
        mix(hash, &string[i].bytes, sizeof string[i].bytes);
        mix(hash, string[i].data, string[i].bytes);
    }
}

static void mix_shaped(uint64_t *hash, enum type type, const void *data, const struct shape *shape)
{
    mix(hash, shape->dim, (uint64_t)shape->rank * sizeof shape->dim[0]);
    mix_values(hash, type, data, shape_count(shape));
}

static uint64_t digest(const struct batch *batch, const struct iterator *iterator, const struct dataset *dataset)
{
    uint64_t hash = FNV1A_START;
    mix(&hash, &batch->count, sizeof batch->count);
    mix(&hash, &batch->epoch, sizeof batch->epoch);
    for (int c = 0; c < dataset->spec->column_count; c++) {
        const struct column *column = &dataset->spec->column[c];
        struct shape all = iterator_shape(iterator, c);
        CHECK(all.dim[0] == batch->count);
        if (dataset->stacked || !column_is_variable(column)) {
            mix_shaped(&hash, column->type, batch->column[c], &all);
            continue;
        }
        for (int64_t i = 0; i < batch->count; i++) {
            const struct cell *cell = (const struct cell *)batch->column[c] + i;
            struct shape shape = value_shape(column, cell);
            mix_shaped(&hash, column->type, cell->data, &shape);
        }
    }
    return hash;
}

/* ---- running ---- */

struct record {
    int64_t count;
    uint64_t batch[MOST_BATCHES + 1]; /* and, where it ended with an error, that */
    plim_error error;
};

static void run_to_end(struct record *out, struct iterator *iterator, const struct dataset *dataset)
{
    *out = (struct record){0};
    for (;;) {
        struct batch *batch;
        plim_status status = iterator_next(&batch, iterator, &out->error);
        if (status != PLIM_OK) {
            mix(&out->batch[out->count++], out->error.message, strlen(out->error.message));
            return;
        }
        if (!batch)
            return;
        CHECK(out->count < MOST_BATCHES);
        out->batch[out->count++] = digest(batch, iterator, dataset);
    }
}

static void run_epochs(struct record out[EPOCHS], struct iterator *iterator, const struct dataset *dataset)
{
    for (int e = 0; e < EPOCHS; e++) {
        run_to_end(&out[e], iterator, dataset);
        if (out[e].error.code != PLIM_OK)
            CHECK(iterator_seek(iterator, e + 1, 0, NULL) == PLIM_OK);
    }
}

static void compare(const struct record *got, const struct record *expected, int64_t from, const char *what)
{
    if (got->error.code != expected->error.code)
        FAIL("%s: '%s: %s' is not '%s: %s'", what, got->error.where, got->error.message, expected->error.where,
             expected->error.message);
    if (got->count != expected->count - from)
        FAIL("%s: %lld batches, not %lld", what, (long long)got->count, (long long)(expected->count - from));
    for (int64_t i = 0; i < got->count; i++)
        if (got->batch[i] != expected->batch[from + i])
            FAIL("%s: batch %lld is another one", what, (long long)(from + i));
}

/* ---- the pipeline, again and again ---- */

static plim_budget *budget_of(uint64_t bytes)
{
    plim_budget *budget;
    plim_error error = {0};
    if (plim_budget_make(&budget, bytes, &error) != PLIM_OK)
        FAIL("%s", error.message);
    return budget;
}

/* All that was taken has been given back. */
static void end_of(plim_budget *budget)
{
    uint64_t left, peak;
    plim_budget_figures(&left, &peak, budget);
    if (budget_usage(budget->inner).now != budget->own_bytes)
        FAIL("%llu bytes stay behind", (unsigned long long)(budget_usage(budget->inner).now - budget->own_bytes));
    plim_budget_free(budget);
}

/* A cache is complete or not there: it has no other names. */
static void forget_files(void)
{
    char path[256];
    for (int i = 0; i < 32; i++)
        for (int values = 0; values < 2; values++) {
            snprintf(path, sizeof path, "%s/kept%d%s", folder, i, values ? ".values" : "");
            unlink(path);
        }
}

static struct dataset *grow_again(plim_budget *budget)
{
    grow_pipeline(&now, random_key(seed, (uint64_t)number, 0), budget, folder);
    return now.dataset;
}

static uint64_t cost_of(uint64_t by_tag[TAG_COUNT], const struct dataset *dataset, struct grant grant)
{
    uint64_t scratch = 0, all = 0;
    memset(by_tag, 0, TAG_COUNT * sizeof *by_tag);
    dataset_cost(by_tag, &scratch, dataset, grant);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        all += by_tag[tag];
    return all;
}

static void seek_about(struct iterator *iterator, const struct dataset *dataset, const struct record expected[EPOCHS],
                       struct dice *dice)
{
    static struct record rest;
    for (int i = 0; i < 4; i++) {
        int64_t epoch = between(dice, 0, EPOCHS - 1), steps = expected[epoch].count;
        if (expected[epoch].error.code != PLIM_OK && steps)
            steps--; /* to the batch that cannot be had, not behind it */
        int64_t step = between(dice, 0, steps);
        plim_error error = {0};
        char what[64];
        snprintf(what, sizeof what, "from epoch %lld, step %lld", (long long)epoch, (long long)step);
        if (iterator_seek(iterator, epoch, step, &error) != PLIM_OK)
            FAIL("%s: %s", what, error.message);
        run_to_end(&rest, iterator, dataset);
        compare(&rest, &expected[epoch], step, what);
    }
}

/* With exactly what it costs. Returns what it takes of it: files that are there, or are smaller than they might be, may
   leave something over. */
static uint64_t runs_in_its_cost(const struct record expected[EPOCHS], struct grant grant, struct dice *dice)
{
    static struct record got[EPOCHS];
    plim_budget *budget = budget_of(BUDGET_UNLIMITED);
    struct dataset *dataset = grow_again(budget);
    struct iterator *iterator;
    uint64_t cost[TAG_COUNT], all = cost_of(cost, dataset, grant);
    plim_error error = {0};
    struct budget_usage before = budget_usage(budget->inner);
    CHECK(budget_limit(budget->inner, before.now + all, NULL) == PLIM_OK);
    if (iterator_open(&iterator, dataset, &(struct data_run){budget->inner, NULL, SEED}, grant, NULL, &error) !=
        PLIM_OK)
        FAIL("%llu bytes, %d slots, %d threads: %s", (unsigned long long)all, grant.slots, grant.workers,
             error.message);
    struct budget_usage opened = budget_usage(budget->inner);
    run_epochs(got, iterator, dataset);
    for (int e = 0; e < EPOCHS; e++)
        compare(&got[e], &expected[e], 0, e ? "epoch 1" : "epoch 0");
    seek_about(iterator, dataset, expected, dice);
    struct budget_usage after = budget_usage(budget->inner);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        if (after.now_by_tag[tag] - before.now_by_tag[tag] > cost[tag])
            FAIL("%s: %llu bytes where %llu were told", tag_name(tag),
                 (unsigned long long)(after.now_by_tag[tag] - before.now_by_tag[tag]), (unsigned long long)cost[tag]);
    if (after.takes != opened.takes)
        FAIL("%llu blocks were taken while it ran", (unsigned long long)(after.takes - opened.takes));
    iterator_close(iterator);
    dataset_unref(dataset);
    end_of(budget);
    uint64_t taken = opened.now - before.now;
    if (taken != all && !now.caches) /* files of a cache: what is told is the most */
        FAIL("%llu bytes were told, %llu are taken", (unsigned long long)all, (unsigned long long)taken);
    return taken;
}

/* Opening with less: refused, and nothing is held. */
static void refused_below(struct dataset *dataset, plim_budget *budget, struct grant grant, uint64_t all,
                          uint64_t missing)
{
    uint64_t held = budget_usage(budget->inner).now;
    struct iterator *iterator;
    plim_error error = {0};
    CHECK(budget_limit(budget->inner, held + all - missing, NULL) == PLIM_OK);
    plim_status status =
        iterator_open(&iterator, dataset, &(struct data_run){budget->inner, NULL, SEED}, grant, NULL, &error);
    if (status != PLIM_OVER_BUDGET)
        FAIL("%llu of %llu bytes are missing: %d, '%s'", (unsigned long long)missing, (unsigned long long)all, status,
             error.message);
    CHECK(error.message[0] && error.code == PLIM_OVER_BUDGET);
}

/* A program is told what it needs. */
static void told_the_floor(struct dataset *dataset, plim_budget *budget, struct dice *dice)
{
    uint64_t cost[TAG_COUNT], floor = cost_of(cost, dataset, dataset_least_grant(dataset));
    uint64_t held = budget_usage(budget->inner).now;
    plim_iterator *iterator;
    plim_error error = {0};
    plim_iterator_options options = {.threads = (int)between(dice, 0, 3)};
    CHECK(floor > 4096);
    CHECK(budget_limit(budget->inner, held + 2048 + roll(dice, floor - 2048), NULL) == PLIM_OK);
    plim_status status = plim_iterator_open(&iterator, outside(dataset), budget, &options, &error);
    if (status != PLIM_OVER_BUDGET || !strstr(error.message, "needs >="))
        FAIL("below the floor of %llu: %d, '%s'", (unsigned long long)floor, status, error.message);
}

static void refuses_less(struct grant grant, uint64_t all, struct dice *dice)
{
    plim_budget *budget = budget_of(BUDGET_UNLIMITED);
    struct dataset *dataset = grow_again(budget);
    uint64_t held = budget_usage(budget->inner).now;
    uint64_t least = now.caches ? 16384 : 1; /* a cache that was finished meanwhile holds other blocks */
    refused_below(dataset, budget, grant, all, least);
    refused_below(dataset, budget, grant, all, least + roll(dice, all - least));
    told_the_floor(dataset, budget, dice);
    dataset_unref(dataset);
    end_of(budget);
    /* From the first byte on: building may fail, opening may. */
    budget = budget_of(16384 + roll(dice, held + all - 16384));
    dataset = grow_again(budget);
    struct iterator *iterator;
    plim_error error = {0};
    plim_status status =
        iterator_open(&iterator, dataset, &(struct data_run){budget->inner, NULL, SEED}, grant, NULL, &error);
    if (status != PLIM_OVER_BUDGET)
        FAIL("with a part of %llu bytes: %d, '%s'", (unsigned long long)(held + all), status, error.message);
    dataset_unref(dataset);
    end_of(budget);
}

/* What it gives with one slot and no thread; false: it cannot be run at all. */
static bool record_it(struct record expected[EPOCHS])
{
    plim_budget *budget = budget_of(BUDGET_UNLIMITED);
    struct dataset *dataset = grow_again(budget);
    struct iterator *iterator;
    plim_error error = {0};
    plim_status status = dataset_runs(dataset, &error);
    CHECK(status != PLIM_OVER_BUDGET && status != PLIM_INTERNAL);
    if (status == PLIM_OK) {
        if (iterator_open(&iterator, dataset, &(struct data_run){budget->inner, NULL, SEED}, (struct grant){.slots = 1},
                          NULL, &error) != PLIM_OK)
            FAIL("%s", error.message);
        run_epochs(expected, iterator, dataset);
        iterator_close(iterator);
    } else {
        print_message("pipeline %d: %s: %s\n", number, now.words, error.message);
    }
    dataset_unref(dataset);
    end_of(budget);
    forget_files();
    return status == PLIM_OK;
}

static bool check_pipeline(int64_t *batches, int64_t *errors)
{
    static struct record expected[EPOCHS];
    struct dice dice = {.key = random_key(seed, (uint64_t)number, 1)};
    struct grant grant = {.slots = (int)between(&dice, 1, 6), .workers = (int)between(&dice, 0, 3)};
    if (!record_it(expected))
        return false;
    uint64_t bytes = runs_in_its_cost(expected, grant, &dice);
    forget_files();
    refuses_less(grant, bytes, &dice);
    forget_files(); /* what was opened in part may have been quick */
    for (int e = 0; e < EPOCHS; e++) {
        if (expected[e].error.code != PLIM_OK && getenv("PLIM_TEST_SEED"))
            print_message("pipeline %d, epoch %d: %s: %s\n", number, e, expected[e].error.where,
                          expected[e].error.message);
        *batches += expected[e].count;
        *errors += expected[e].error.code != PLIM_OK;
    }
    if (getenv("PLIM_TEST_PIPELINE"))
        print_message("%s; %s\n", now.words, expected[0].error.message);
    return true;
}

static void by_chance(void **state)
{
    const char *told = getenv("PLIM_TEST_SEED"), *one = getenv("PLIM_TEST_PIPELINE");
    int64_t run = 0, batches = 0, errors = 0;
    (void)state;
    seed = told ? strtoull(told, NULL, 10) : 20261115;
    int first = one ? (int)strtol(one, NULL, 10) : 0, end = one ? first + 1 : PIPELINES;
    for (number = first; number < end; number++)
        run += check_pipeline(&batches, &errors);
    print_message("seed %llu: %lld pipelines, %lld batches, %lld epochs that ended with an error\n", seed,
                  (long long)run, (long long)batches, (long long)errors);
    if (!one)
        assert_true(run > PIPELINES * 9 / 10);
}

static int make_files(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    write_random_files(folder);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    forget_files();
    remove_random_files(folder);
    return rmdir(folder); /* fails when something half-written is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_chance)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
