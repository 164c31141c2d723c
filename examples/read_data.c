/* read_data.c - any source of a job file from C: prints the columns, and the batches of one epoch.

   cc read_data.c -lplimsoll -o read_data
   ./read_data "{npy: [x.npy, y.npy], pipeline: [shuffle: exact, batch: 32]}"
   ./read_data "{tfrecord: {files: 'train-*.tfrecord', interleave: {cycle_length: 4}, features: {x: 'float32[100]', y: int64}},
                 pipeline: [batch: 32]}" */
#include <plimsoll.h>

#include <stdio.h>

static plim_status run(plim_budget *budget, const char *text, plim_error *error)
{
    plim_column columns[PLIM_MOST_COLUMNS];
    plim_dataset *dataset = plim_dataset_prefetch(plim_dataset_read(budget, text, 1), PLIM_AUTO);
    plim_iterator *iterator = NULL;
    const plim_batch *batch = NULL;
    long long batches = 0, samples = 0;
    plim_status status = plim_iterator_open(&iterator, dataset, budget, &(plim_iterator_options){.threads = 1}, error);
    for (int c = 0, count = plim_dataset_spec(columns, dataset); c < count; c++)
        printf("%s: %llu bytes a row\n", columns[c].name, (unsigned long long)columns[c].row_bytes);
    while (status == PLIM_OK && (status = plim_iterator_next(&batch, iterator, error)) == PLIM_OK && batch) {
        batches++;
        samples += batch->count;
    }
    if (status == PLIM_OK)
        printf("%lld samples in %lld batches\n", samples, batches);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    return status;
}

int main(int count, char **words)
{
    plim_budget *budget;
    plim_error error = {0};
    plim_status status = plim_budget_make(&budget, 16 << 20, &error);
    if (status == PLIM_OK) {
        status = run(budget, count > 1 ? words[1] : "{range: 100, pipeline: [batch: 32]}", &error);
        plim_budget_free(budget);
    }
    if (status != PLIM_OK)
        fprintf(stderr, "read_data: %s%s%s\n", error.where, error.where[0] ? ": " : "", error.message);
    return plim_status_exit(status);
}
