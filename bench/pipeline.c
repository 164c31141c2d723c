/* pipeline.c - what the engine of the data pipeline costs an element, all in one process: range, map, exact shuffle.
   Prints one line of JSON a measurement. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/random.h"
#include "base/threads/clock.h"
#include "base/threads/workers.h"
#include "pipeline/maps/map_functions.h"

#define ELEMENTS ((int64_t)10000000)

static plim_status twice_infer(struct spec *spec, const void *options, plim_error *error)
{
    (void)spec, (void)options, (void)error;
    return PLIM_OK;
}

static plim_status twice(const struct map_call *call, plim_error *error)
{
    int64_t *x = call->to[0];
    (void)error;
    for (int64_t i = 0; i < call->count; i++)
        x[i] *= 2;
    return PLIM_OK;
}

static const struct map_function map_twice = {.name = "twice", .infer = twice_infer, .run = twice};

static void die(const plim_error *error)
{
    fprintf(stderr, "%s: %s\n", error->where, error->message);
    exit(1);
}

static struct dataset *range(struct budget *budget, int64_t n)
{
    struct source *source;
    plim_error error;
    if (range_open(&source, budget, n, &error) != PLIM_OK)
        die(&error);
    return dataset_from_source(source);
}

/* Takes the dataset over. */
static void measure(const char *name, struct dataset *dataset, struct budget *budget, struct grant grant)
{
    struct iterator *iterator;
    struct batch *batch;
    plim_error error = {0};
    int64_t sum = 0, count = 0;
    const struct data_run run = {.budget = budget, .seed = 1};
    if (iterator_open(&iterator, dataset, &run, grant, NULL, &error) != PLIM_OK)
        die(&error);
    uint64_t start = clock_ns();
    for (;;) {
        if (iterator_next(&batch, iterator, &error) != PLIM_OK)
            die(&error);
        if (!batch)
            break;
        for (int64_t i = 0; i < batch->count; i++)
            sum += ((int64_t *)batch->column[0])[i];
        count += batch->count;
    }
    double ns = (double)(clock_ns() - start) / (double)count;
    printf("{\"event\":\"pipeline\",\"name\":\"%s\",\"workers\":%d,\"elements\":%" PRId64 ",\"sum\":%" PRId64
           ",\"ns_per_element\":%.2f}\n",
           name, grant.workers, count, sum, ns);
    iterator_close(iterator);
    dataset_unref(dataset);
}

static void measure_permutation(void)
{
    struct permutation permutation;
    uint64_t sum = 0, n = 1000000000;
    permutation_init(&permutation, n, 1, 2);
    uint64_t start = clock_ns();
    for (uint64_t i = 0; i < (uint64_t)ELEMENTS; i++)
        sum += permutation_at(&permutation, i);
    double ns = (double)(clock_ns() - start) / (double)ELEMENTS;
    printf("{\"event\":\"pipeline\",\"name\":\"exact shuffle index, n = 1e9\",\"state_bytes\":%zu,\"sum\":%" PRIu64
           ",\"ns_per_element\":%.2f}\n",
           sizeof permutation, sum, ns);
}

int main(void)
{
    struct budget *budget;
    plim_error error = {0};
    if (budget_make(&budget, BUDGET_UNLIMITED, &error) != PLIM_OK)
        die(&error);
    for (int workers = 0; workers < 2; workers++) {
        struct grant grant = {.slots = 3, .workers = workers};
        measure("range.map.prefetch", dataset_map(range(budget, ELEMENTS), &map_twice, NULL), budget, grant);
        measure("range.shuffle(exact).map.batch(32).prefetch",
                dataset_batch(dataset_map(dataset_shuffle(range(budget, ELEMENTS), 1), &map_twice, NULL), 32, false),
                budget, grant);
    }
    measure_permutation();
    budget_free(budget);
    return 0;
}
