/* test_optimizers.c - ten steps of every optimizer against real Keras
   (golden/optimizers.txt, made by make_optimizers.py), by references and by
   kernels; schedules; and steps that are skipped. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "base/text/yaml.h"
#include "model/build.h"
#include "op_fixture.h"
#include "ops/ops.h"

#define NUMBERS 15
#define KERNEL  12 /* of them */
#define STEPS   10
#define BAR     1e-6

struct bench {
    struct fixture f;
    struct arena arena;
    struct training training;
    struct backend *backend;
    struct tensor *w[2], *g[2];
};

static struct yaml *parse(struct bench *bench, const char *text)
{
    struct yaml *yaml = NULL;
    plim_error error = {0};
    if (yaml_parse(&yaml, &bench->arena, "job.yaml", text, strlen(text), &error))
        fail_msg("%s: %s", text, error.message);
    return yaml;
}

/* A graph of updates alone: two weights, and gradients that the test gives. */
static void open_sized(struct bench *bench, const char *words, const struct backend_type *backend, struct shape kernel)
{
    static const struct layer layer = {.name = "dense"};
    struct graph *graph = &bench->f.graph;
    struct weight weight[2] = {{.name = "dense/kernel", .trainable = true, .layer = &layer},
                               {.name = "dense/bias", .trainable = true, .layer = &layer}};
    struct build build = {.weight = weight, .weight_count = 2, .training = &bench->training};
    struct model_tensors tensors = {0};
    plim_error error = {0};
    *bench = (struct bench){0};
    assert_int_equal(budget_make(&bench->f.budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    arena_init(&bench->arena, bench->f.budget, TAG_PLANNER);
    graph_init(graph, bench->f.budget, 1);
    if (optimizer_read(&bench->training.optimizer, "job.yaml", parse(bench, words), &error))
        fail_msg("%s: %s", words, error.message);
    const struct shape shape[2] = {kernel, {1, {3}}};
    struct tensor *scale = updates_scale(graph, &bench->training.optimizer);
    for (int i = 0; i < 2; i++) {
        weight[i].tensor = bench->w[i] = graph_weight(graph, i ? "bias" : "kernel", TYPE_F32, shape[i], true);
        bench->g[i] = graph_state(graph, i ? "g1" : "g0", TYPE_F32, shape[i]);
    }
    graph->build = &build;
    updates_add(&tensors, graph, bench->g, scale);
    graph->build = NULL;
    if (graph_check(graph, &error))
        fail_msg("%s: %s", words, error.message);
    assert_int_equal(backend->open(&bench->backend, bench->f.budget, NULL), PLIM_OK);
    fixture_fill(&bench->f, 0);
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct tensor *tensor = graph->tensor[t];
        for (int64_t i = 0; tensor->kind == KIND_STATE && i < shape_count(&tensor->shape); i++)
            element_set(bench->f.data[t], tensor->type, i, tensor->initial);
    }
    for (int i = 0; i < NUMBERS; i++)
        ((float *)bench->f.data[bench->w[i >= KERNEL]->id])[i < KERNEL ? i : i - KERNEL] = (float)((3 * i) % 7 - 3) / 4;
}

static void open_bench(struct bench *bench, const char *words, const struct backend_type *backend)
{
    open_sized(bench, words, backend, (struct shape){2, {4, 3}});
}

static void close_bench(struct bench *bench)
{
    bench->backend->type->close(bench->backend);
    arena_release(&bench->arena);
    fixture_release(&bench->f);
}

static float *data(struct bench *bench, const char *name)
{
    for (int t = 0; t < bench->f.graph.tensor_count; t++)
        if (strcmp(bench->f.graph.tensor[t]->name, name) == 0)
            return bench->f.data[t];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void run_nodes(struct bench *bench);

static void run_step(struct bench *bench, int t, float factor)
{
    for (int i = 0; i < NUMBERS; i++)
        ((float *)bench->f.data[bench->g[i >= KERNEL]->id])[i < KERNEL ? i : i - KERNEL] =
            (float)((7 * i + 5 * t) % 11 - 5) / 8 * factor;
    run_nodes(bench);
}

static void run_nodes(struct bench *bench)
{
    const struct graph *graph = &bench->f.graph;
    for (int n = 0; n < graph->node_count; n++) {
        const struct kernel *kernel;
        struct cut cut;
        struct call call;
        graph->node[n]->op->cut(&cut, graph->node[n]);
        assert_int_equal(
            bench->backend->type->prepare(&kernel, bench->backend,
                                          &(struct kernel_request){.node = graph->node[n], .slice = cut.extent}, NULL),
            PLIM_OK);
        static _Alignas(64) unsigned char scratch[1 << 16];
        assert_true(kernel->scratch_bytes <= sizeof scratch);
        fixture_call(&call, &bench->f, graph->node[n], 0, cut.extent, 1);
        call.scratch = scratch;
        kernel->run(kernel, &call);
    }
}

static double weight(const struct bench *bench, int i)
{
    return fixture_get(&bench->f, bench->w[i >= KERNEL], i < KERNEL ? i : i - KERNEL);
}

/* ---- against Keras ------------------------------------------------------ */

static FILE *open_golden(void)
{
    char path[4096];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/optimizers.txt");
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s is not there", path);
    return file;
}

/* The next "WORD ..." and its line of numbers; false at the end. */
static bool next_case(FILE *file, const char *word, char *words, double *numbers, int *count)
{
    static char line[8192];
    size_t length = strlen(word);
    while (fgets(line, sizeof line, file)) {
        bool ours = strncmp(line, word, length) == 0;
        snprintf(words, 1024, "%s", line + length + 1);
        words[strcspn(words, "\n")] = 0;
        if (!fgets(line, sizeof line, file))
            return false;
        if (!ours)
            continue;
        *count = 0;
        for (char *at = strtok(line, " \n"); at; at = strtok(NULL, " \n"))
            numbers[(*count)++] = strtod(at, NULL);
        return true;
    }
    return false;
}

static void check_optimizer(const char *words, const double *expected, const struct backend_type *backend)
{
    struct bench bench;
    double most = 0;
    open_bench(&bench, words, backend);
    for (int t = 0; t < STEPS; t++)
        run_step(&bench, t, 1);
    for (int i = 0; i < NUMBERS; i++)
        most = fmax(most, fabs(expected[i]));
    for (int i = 0; i < NUMBERS; i++)
        if (!(fabs(weight(&bench, i) - expected[i]) <= BAR * most))
            fail_msg("%s: [%d] is %.9g, Keras has %.9g (%s)", words, i, weight(&bench, i), expected[i], backend->name);
    close_bench(&bench);
}

static void optimizers_are_keras(void **state)
{
    char words[1024];
    double numbers[64];
    int count, cases = 0;
    FILE *file = open_golden();
    (void)state;
    for (; next_case(file, "case", words, numbers, &count); cases++) {
        assert_int_equal(count, NUMBERS);
        check_optimizer(words, numbers, &reference_backend);
        check_optimizer(words, numbers, &cpu_backend);
    }
    fclose(file);
    assert_true(cases >= 30);
}

static void schedules_are_keras(void **state)
{
    static const double at[] = {0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 14, 15, 20, 29, 30, 31, 50, 100};
    char words[1024];
    double numbers[64];
    int count, cases = 0;
    FILE *file = open_golden();
    struct bench bench;
    (void)state;
    open_bench(&bench, "sgd", &reference_backend);
    for (; next_case(file, "rate", words, numbers, &count); cases++) {
        struct schedule schedule;
        plim_error error = {0};
        assert_int_equal(count, COUNT(at));
        if (schedule_read(&schedule, "job.yaml", parse(&bench, words), &error))
            fail_msg("%s: %s", words, error.message);
        for (int i = 0; i < count; i++)
            if (!(fabs(schedule_rate(&schedule, at[i]) - numbers[i]) <= 1e-7))
                fail_msg("%s at %g: %.9g, Keras has %.9g", words, at[i], schedule_rate(&schedule, at[i]), numbers[i]);
    }
    close_bench(&bench);
    fclose(file);
    assert_true(cases >= 10);
}

/* ---- loss scaling ------------------------------------------------------- */

static void check_skipped(const struct backend_type *backend)
{
    struct bench scaled, plain;
    open_bench(&plain, "{adam: 0.01}", backend);
    open_bench(&scaled,
               "{LossScaleOptimizer: {inner_optimizer: {adam: 0.01}, initial_scale: 8, dynamic_growth_steps: 3}}",
               backend);
    float *scale = data(&scaled, "optimizer/dynamic_scale");
    const int64_t *skipped = (int64_t *)data(&scaled, "optimizer/skipped_steps"),
                  *iteration = (int64_t *)data(&scaled, "optimizer/iteration");
    for (int t = 0; t < 4; t++) {
        run_step(&plain, t, 1);
        run_step(&scaled, t, *scale);
    }
    assert_true(*scale == 16 && *skipped == 0 && *iteration == 4);
    float before = data(&scaled, "optimizer/kernel/velocity")[3];
    run_step(&scaled, 4, INFINITY); /* 0 * infinity: NaN as well */
    assert_true(*scale == 8 && *skipped == 1 && *iteration == 4);
    assert_true(data(&scaled, "optimizer/kernel/velocity")[3] == before);
    for (int i = 0; i < NUMBERS; i++) /* by powers of two: the same bits */
        assert_true(weight(&scaled, i) == weight(&plain, i));
    run_step(&plain, 4, 1);
    run_step(&scaled, 4, *scale);
    for (int i = 0; i < NUMBERS; i++)
        assert_true(weight(&scaled, i) == weight(&plain, i));
    close_bench(&plain);
    close_bench(&scaled);
}

static void bad_gradients_skip_the_step(void **state)
{
    (void)state;
    check_skipped(&reference_backend);
    check_skipped(&cpu_backend);
}

/* ---- states in a byte --------------------------------------------------- */

#define SIZE 1200

/* Down a bowl whose axes differ a thousandfold in steepness, with noise; returns how high it still is. */
static double descend(struct bench *bench, const char *words, const struct backend_type *backend)
{
    open_sized(bench, words, backend, (struct shape){2, {4, SIZE / 4}});
    float *w = bench->f.data[bench->w[0]->id], *g = bench->f.data[bench->g[0]->id];
    double height = 0;
    memset(bench->f.data[bench->g[1]->id], 0, bench->f.bytes[bench->g[1]->id]);
    for (int i = 0; i < SIZE; i++)
        w[i] = (float)(i % 17) / 8 - 1;
    for (int t = 0; t < 400; t++) {
        for (int i = 0; i < SIZE; i++)
            g[i] = powf(10, (float)(i % 4) - 3) * (w[i] - 0.25f + (float)((i * 31 + t * 17) % 23 - 11) / 44);
        run_nodes(bench);
    }
    for (int i = 0; i < SIZE; i++)
        height += (double)((w[i] - 0.25f) * (w[i] - 0.25f)) / SIZE;
    return height;
}

/* The error of small states, shown: how far weights are from Adam's own after 400 steps of 0.01. */
static void small_states_stay_close(void **state)
{
    struct bench exact, small;
    double difference = 0, most = 0;
    (void)state;
    double height = descend(&exact, "{adam: 0.01}", &cpu_backend);
    double small_height = descend(&small, "{adam: {learning_rate: 0.01, states: 8bit}}", &cpu_backend);
    const float *a = exact.f.data[exact.w[0]->id], *b = small.f.data[small.w[0]->id];
    for (int i = 0; i < SIZE; i++) {
        difference += fabs((double)(a[i] - b[i])) / SIZE;
        most = fmax(most, fabs((double)(a[i] - b[i])));
    }
    print_message("8bit states: weights differ by %.2g on average, %.2g at most; heights %.4g and %.4g\n", difference,
                  most, small_height, height);
    assert_true(difference < 0.01 && most < 0.1 && small_height < 2 * height + 1e-3);
    close_bench(&exact);
    close_bench(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_are_keras),
        cmocka_unit_test(schedules_are_keras),
        cmocka_unit_test(bad_gradients_skip_the_step),
        cmocka_unit_test(small_states_stay_close),
    };
    return cmocka_run_group_tests_name("optimizers", tests, NULL, NULL);
}
