/* generator.c - a data set that a function makes, through maps and batches, stopped and gone on.

   cc generator.c -lplimsoll -o generator && ./generator */
#include <plimsoll.h>

#include <stdio.h>

/* A noisy line: x and 3 x + 1. Each epoch is the same. */
struct line {
    uint32_t state;
    int64_t at;
};

static float noise(struct line *line)
{
    line->state = line->state * 1664525u + 1013904223u;
    return (float)(line->state >> 8) / 16777216.0f - 0.5f;
}

static plim_status line_next(bool *more, void *context, void *const *row, plim_error *error)
{
    struct line *line = context;
    (void)error;
    *more = line->at++ < 1000;
    if (*more) {
        float x = noise(line);
        *(float *)row[0] = x;
        *(float *)row[1] = 3 * x + 1 + 0.01f * noise(line);
    }
    return PLIM_OK;
}

static plim_status line_rewind(void *context, int64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    *(struct line *)context = (struct line){.state = 1};
    return PLIM_OK;
}

/* For every element; others come through plim_map's chunk, many at a time. */
static plim_status scale(void *context, void *const *from, void *const *to, int64_t index, plim_error *error)
{
    (void)context, (void)from, (void)index, (void)error;
    *(float *)to[0] *= 10;
    return PLIM_OK;
}

/* Sums up to `batches` batches of both columns (-1: to the end of the epoch). */
static plim_status sum(double sums[2], plim_iterator *iterator, int batches, plim_error *error)
{
    const plim_batch *batch;
    for (int b = 0; b != batches; b++) {
        plim_status status = plim_iterator_next(&batch, iterator, error);
        if (status != PLIM_OK || !batch)
            return status;
        for (int64_t i = 0; i < batch->count; i++)
            for (int c = 0; c < 2; c++)
                sums[c] += (double)((const float *)batch->column[c])[i];
    }
    return PLIM_OK;
}

static plim_status run(plim_budget *budget, plim_error *error)
{
    static const plim_column columns[] = {{.name = "x", .type = PLIM_FLOAT32}, {.name = "y", .type = PLIM_FLOAT32}};
    struct line line;
    const plim_generator generator = {.next = line_next, .rewind = line_rewind, .context = &line, .count = 1000};
    const plim_map map = {.name = "scale", .element = scale};
    plim_dataset *dataset = plim_dataset_from_generator(budget, columns, 2, &generator);
    dataset = plim_dataset_shuffle_buffer(plim_dataset_map(dataset, &map), 100, 7);
    dataset = plim_dataset_prefetch(plim_dataset_batch(dataset, 32, false), PLIM_AUTO);

    double whole[2] = {0}, parts[2] = {0};
    plim_iterator *iterator = NULL;
    plim_iterator_state state;
    plim_status status = plim_iterator_open(&iterator, dataset, budget, NULL, error);
    if (status == PLIM_OK)
        status = sum(whole, iterator, -1, error);
    plim_iterator_close(iterator);

    /* The same again, stopped after ten batches and gone on in another iterator. */
    iterator = NULL;
    if (status == PLIM_OK)
        status = plim_iterator_open(&iterator, dataset, budget, &(plim_iterator_options){.threads = 1}, error);
    if (status == PLIM_OK)
        status = sum(parts, iterator, 10, error);
    if (status == PLIM_OK)
        plim_iterator_state_take(&state, iterator);
    plim_iterator_close(iterator);
    iterator = NULL;
    if (status == PLIM_OK)
        status = plim_iterator_open(&iterator, dataset, budget, &(plim_iterator_options){.state = &state}, error);
    if (status == PLIM_OK)
        status = sum(parts, iterator, -1, error);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    if (status == PLIM_OK)
        printf("mean of x %.4f, of y %.4f; in two parts %.4f, %.4f\n", whole[0] / 1000, whole[1] / 1000,
               parts[0] / 1000, parts[1] / 1000);
    return status;
}

int main(void)
{
    plim_budget *budget;
    plim_error error = {0};
    plim_status status = plim_budget_make(&budget, 4 << 20, &error);
    if (status == PLIM_OK) {
        status = run(budget, &error);
        plim_budget_free(budget);
    }
    if (status != PLIM_OK)
        fprintf(stderr, "generator: %s\n", error.message);
    return plim_status_exit(status);
}
