/* model_bench.h - what tests of models work with: a budget, a model read from text, and the graph of it. */
#ifndef TESTS_MODEL_BENCH_H
#define TESTS_MODEL_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/build.h"

struct bench {
    struct budget *budget;
    struct arena arena;
    struct model *model;
    struct graph graph;
    struct model_tensors tensors;
    struct training training;
    plim_error error;
};

static inline int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_int_equal(budget_make(&bench->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    arena_init(&bench->arena, bench->budget, TAG_PLANNER);
    graph_init(&bench->graph, bench->budget, 4);
    *state = bench;
    return 0;
}

static inline int tear_down(void **state)
{
    struct bench *bench = *state;
    graph_release(&bench->graph);
    model_free(bench->model);
    arena_release(&bench->arena);
    struct budget_usage usage = budget_usage(bench->budget);
    for (int tag = TAG_PROCESS + 1; tag < TAG_PLANNER; tag++)
        assert_int_equal(usage.now_by_tag[tag], 0);
    budget_free(bench->budget);
    free(bench);
    return 0;
}

static inline struct yaml *parse(struct bench *bench, const char *text)
{
    struct yaml *root = NULL;
    assert_int_equal(yaml_parse(&root, &bench->arena, "job.yaml", text, strlen(text), &bench->error), PLIM_OK);
    return root;
}

static inline plim_status read_model(struct bench *bench, const char *text)
{
    model_free(bench->model);
    bench->model = NULL;
    bench->error = (plim_error){0};
    return model_read(&bench->model, bench->budget, "job.yaml", parse(bench, text), &bench->error);
}

/* One loss for every output, accuracy of the first, and an optimizer. */
static inline void train_with(struct bench *bench, const char *loss, const char *optimizer)
{
    struct training *training = &bench->training;
    struct output_loss all = {.weight = 1.0};
    *training = (struct training){0};
    assert_int_equal(loss_read(&all.loss, &all.kind, "job.yaml", parse(bench, loss), &bench->error), PLIM_OK);
    for (int i = 0; i < MOST_MODEL_OUTPUTS; i++)
        training->output_loss[i] = all;
    assert_int_equal(
        metrics_read(training, &(struct metric_place){0}, &bench->arena, "job.yaml", parse(bench, "accuracy"), NULL),
        PLIM_OK);
    assert_int_equal(optimizer_read(&training->optimizer, "job.yaml", parse(bench, optimizer), &bench->error), PLIM_OK);
}

static inline int nodes_of(const struct graph *graph, const struct op *op)
{
    int count = 0;
    for (int i = 0; i < graph->node_count; i++)
        count += graph->node[i]->op == op;
    return count;
}

static inline void good(const struct bench *bench, plim_status status)
{
    if (status != PLIM_OK)
        fail_msg("%s: %s; %s", bench->error.where, bench->error.message, bench->error.hint);
}

/* A text that is refused, and parts of what is said of it. */
struct refusal {
    const char *text;
    plim_status code;
    const char *where, *message, *hint;
};

static inline void expect(const struct bench *bench, plim_status status, const struct refusal *refusal)
{
    const plim_error *error = &bench->error;
    if (status != refusal->code || !strstr(error->where, refusal->where) || !strstr(error->message, refusal->message) ||
        !strstr(error->hint, refusal->hint))
        fail_msg("%s\n  gave %s \"%s\": \"%s\"; \"%s\"", refusal->text, plim_status_name(status), error->where,
                 error->message, error->hint);
}

#endif
