/* test_stage_table.c - a pipeline stage by stage: no byte is told twice or left out, and time goes to who takes it. */
#include "made_source.h"
#include "pipeline/core/stage.h"
#include "pipeline/core/stage_table.h"

static struct dataset *range(struct budget *budget, int64_t n)
{
    struct source *source;
    assert_int_equal(range_open(&source, budget, n, NULL), PLIM_OK);
    return dataset_from_source(source);
}

static struct dataset *unstaged(struct budget *budget)
{
    return range(budget, 1000);
}

static struct dataset *mapped(struct budget *budget)
{
    const struct cast_options cast = {.type = TYPE_F64};
    return dataset_prefetch(
        dataset_batch(dataset_map(dataset_shuffle(range(budget, 1000), 1), &map_cast, &cast), 32, false), 2);
}

/* Streams between flows, and several inputs. */
static struct dataset *joined(struct budget *budget)
{
    const struct cast_options cast = {.type = TYPE_F64};
    struct dataset *buffered = dataset_shuffle_with(
        range(budget, 1000), &(struct shuffle_options){.kind = SHUFFLE_BUFFER, .seed = 1, .buffer_size = 100});
    struct dataset *both[] = {dataset_map(buffered, &map_cast, &cast), dataset_enumerate(range(budget, 500), 3, NULL)};
    return dataset_prefetch(dataset_batch(dataset_unique(dataset_zip(both, 2), NULL, 65536), 16, true), PREFETCH_AUTO);
}

static struct dataset *(*const made[])(struct budget *budget) = {unstaged, mapped, joined};

static void bytes_add_up(void **unused)
{
    static struct stage_table table;
    (void)unused;
    for (int m = 0; m < 3; m++)
        for (int workers = 0; workers < 4; workers++) {
            struct budget *budget;
            uint64_t by_tag[TAG_COUNT] = {0}, all = 0, told = 0;
            const struct grant grant = {.slots = workers + 1, .workers = workers};
            assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
            struct dataset *dataset = made[m](budget);
            assert_int_equal(dataset_error(dataset, NULL), PLIM_OK);
            dataset_cost(by_tag, NULL, dataset, grant);
            stage_table_fill(&table, dataset, grant);
            for (int tag = 0; tag < TAG_COUNT; tag++)
                all += by_tag[tag];
            for (int i = 0; i < table.count; i++)
                told += table.line[i].bytes;
            assert_int_equal(told, all);
            dataset_unref(dataset);
            budget_free(budget);
        }
}

static plim_status slow_infer(struct spec *spec, const void *options, plim_error *error)
{
    (void)spec, (void)options, (void)error;
    return PLIM_OK;
}

static plim_status slow_run(const struct map_call *call, plim_error *error)
{
    (void)error;
    nanosleep(&(struct timespec){.tv_nsec = 1000 * call->count}, NULL);
    return PLIM_OK;
}

static const struct map_function slow = {.name = "slow", .infer = slow_infer, .run = slow_run};

static void time_goes_to_who_takes_it(void **unused)
{
    static struct stage_table table;
    (void)unused;
    for (int timed = 0; timed < 2; timed++) {
        struct budget *budget;
        struct iterator *iterator;
        struct batch *batch;
        struct scratch_disk scratch = {0};
        char name[96];
        const struct grant grant = {.slots = 2, .workers = 1, .timed = timed};
        assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
        struct dataset *dataset =
            dataset_batch(dataset_map(dataset_shuffle(range(budget, 2000), 1), &slow, NULL), 64, false);
        assert_int_equal(
            iterator_open(&iterator, dataset, &(struct data_run){budget, &scratch, SEED}, grant, NULL, NULL), PLIM_OK);
        do
            assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        while (batch);
        stage_table_fill(&table, dataset, grant);
        stage_table_time(&table, iterator);
        const struct stage_line *line = stage_table_bottleneck(&table, 2);
        if (timed) {
            stage_line_name(name, line);
            assert_string_equal(name, "map slow");
            assert_true(line->elements >= 2000);
            assert_true(line->busy_ns / line->elements >= 1000);
        } else {
            assert_null(line);
        }
        iterator_close(iterator);
        dataset_unref(dataset);
        budget_free(budget);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_add_up),
        cmocka_unit_test(time_goes_to_who_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
