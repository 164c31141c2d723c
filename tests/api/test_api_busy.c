/* test_api_busy.c - calls out of order: on a job from the listener of its own training, on a program, a graph or an
   iterator from a second thread or from a function that its data set calls; and the host's floating-point environment,
   which comes back from all of them. */
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "api/api_graph.h"
#include "api_graph_support.h"

static char path[256], output[256];

static void write_job(void)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    snprintf(path, sizeof path, "%s/plim-busy-%ld.yaml", folder, (long)getpid());
    snprintf(output, sizeof output, "%s/plim-busy-%ld.tfrecord", folder, (long)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(
        fputs("memory: 1GiB\nthreads: 2\nseed: 7\ndata:\n"
              "  train: {random: {elements: 64, shape: [6], classes: 3}, pipeline: [map: [rescale: 1/3], batch: 8]}\n"
              "  validation: {random: {elements: 16, shape: [6], classes: 3}, pipeline: [batch: 8]}\n"
              "model: [Dense: {units: 8, activation: relu}, Dense: {units: 3, activation: softmax}]\n"
              "train: {optimizer: adam, loss: sparse_categorical_crossentropy, metrics: [accuracy], epochs: 2, "
              "callbacks: [checkpoint: none]}\n",
              file) >= 0 &&
        fclose(file) == 0);
}

static plim_job *open_job(void)
{
    plim_job *job = NULL;
    good(plim_job_open(&job, path, &(plim_job_options){.digest = true}, &told));
    return job;
}

/* ---- jobs ---- */

struct listening {
    plim_job *job;
    int refused, steps;
    bool close, thread;
    char digest[80];
    fenv_t seen;
};

static void *intrude(void *context)
{
    struct listening *self = context;
    plim_plan_report report;
    plim_data_figures figures;
    plim_step_figures steps;
    plim_error error;
    const char *text, *json;
    int64_t elements;
    self->refused += plim_job_plan(&report, self->job, &error) == PLIM_USAGE;
    assert_non_null(strstr(error.message, "is at work already"));
    self->refused += plim_job_plan_plot(self->job, output, &error) == PLIM_USAGE;
    self->refused += plim_job_plan_page(self->job, output, &error) == PLIM_USAGE;
    self->refused += plim_job_train(self->job, NULL, NULL, &error) == PLIM_USAGE;
    self->refused += plim_job_summary(&text, &json, self->job, &error) == PLIM_USAGE;
    self->refused += plim_job_bench_data(&figures, self->job, &error) == PLIM_USAGE;
    self->refused += plim_job_explain_data(&text, &json, self->job, 0.1, &error) == PLIM_USAGE;
    self->refused += plim_job_inspect_data(&text, &json, self->job, &error) == PLIM_USAGE;
    self->refused += plim_job_convert(&elements, self->job, output, NULL, NULL, &error) == PLIM_USAGE;
    self->refused += plim_job_shard(&elements, self->job, &(plim_shards){.prefix = output, .count = 2}, NULL, NULL,
                                    &error) == PLIM_USAGE;
    self->refused += plim_job_bench_step(&steps, self->job, 1, &error) == PLIM_USAGE;
    return NULL;
}

static void hear(void *context, const plim_event *event)
{
    struct listening *self = context;
    fegetenv(&self->seen);
    if (event->kind == PLIM_EVENT_STEP && ++self->steps == 3) {
        pthread_t thread;
        if (self->thread) {
            assert_int_equal(pthread_create(&thread, NULL, intrude, self), 0);
            pthread_join(thread, NULL);
        } else {
            intrude(self);
        }
        if (self->close)
            plim_job_close(self->job);
    }
    if (event->kind == PLIM_EVENT_END && event->end->weights_digest)
        snprintf(self->digest, sizeof self->digest, "%s", event->end->weights_digest);
}

static void a_job_at_work_refuses(void **state)
{
    struct listening alone = {.steps = 100};
    (void)state;
    plim_job *job = open_job();
    good(plim_job_train(job, hear, &alone, &told));
    plim_job_close(job);
    for (int thread = 0; thread < 2; thread++) {
        struct listening self = {.job = open_job(), .thread = thread};
        good(plim_job_train(self.job, hear, &self, &told));
        assert_int_equal(self.refused, 11);
        assert_string_equal(self.digest, alone.digest);
        plim_job_close(self.job);
    }
}

static void a_job_that_is_closed_at_work_goes_at_its_end(void **state)
{
    struct listening self = {.job = open_job(), .close = true};
    (void)state;
    assert_int_equal(plim_job_train(self.job, hear, &self, NULL), PLIM_INTERRUPTED);
    assert_int_equal(self.steps, 3);
}

static void texts_stay_valid(void **state)
{
    plim_plan_report first, second;
    const char *text, *json, *others[2];
    int64_t elements;
    char plan[4096], summary[4096];
    (void)state;
    plim_job *job = open_job();
    good(plim_job_plan(&first, job, &told));
    snprintf(plan, sizeof plan, "%s", first.json);
    good(plim_job_summary(&text, &json, job, &told));
    snprintf(summary, sizeof summary, "%s", text);
    good(plim_job_convert(&elements, job, output, NULL, NULL, &told));
    good(plim_job_inspect_data(&others[0], &others[1], job, &told));
    good(plim_job_plan(&second, job, &told));
    assert_memory_equal(plan, first.json, strnlen(plan, sizeof plan - 1));
    assert_memory_equal(summary, text, strnlen(summary, sizeof summary - 1));
    plim_job_close(job);
    unlink(output);
}

/* ---- programs, graphs, iterators, budgets ---- */

struct racing {
    plim_program *program;
    plim_graph *graph;
    plim_value *x;
    atomic_int done, refused, others;
};

static void *race_program(void *context)
{
    struct racing *self = context;
    static const float rows[16];
    const plim_batch batch = {.count = 4, .column = {(void *)(uintptr_t)rows}};
    for (int i = 0; i < 300; i++) {
        plim_status status = plim_program_run(self->program, 0, &batch, NULL);
        atomic_fetch_add(status == PLIM_OK ? &self->done : status == PLIM_USAGE ? &self->refused : &self->others, 1);
    }
    return NULL;
}

static void *race_graph(void *context)
{
    struct racing *self = context;
    for (int i = 0; i < 100; i++)
        atomic_fetch_add(plim_op(self->graph, "exp", &self->x, 1, NULL) ? &self->done : &self->refused, 1);
    return NULL;
}

static void race(void *(*run)(void *), struct racing *self)
{
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run, self), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

static void programs_and_graphs_serve_one_thread(void **state)
{
    plim_budget *budget = budget_of(32 * MIB);
    struct racing self = {.graph = graph_of(budget, 4, true)};
    (void)state;
    self.x = plim_graph_input(self.graph, "x", PLIM_FLOAT32, SHAPE(4));
    race(race_graph, &self);
    assert_int_equal(self.done + self.refused, 200);
    assert_int_equal(plim_graph_check(self.graph, NULL), self.refused ? PLIM_USAGE : PLIM_OK);
    plim_graph_free(self.graph);

    struct racing other = {.graph = graph_of(budget, 4, true)};
    plim_value *x = plim_graph_input(other.graph, "x", PLIM_FLOAT32, SHAPE(4));
    plim_graph_result(other.graph, plim_op(other.graph, "exp", &x, 1, NULL), "y");
    good(plim_program_make(&other.program, &other.graph, 1, &(plim_program_options){.threads = 1}, &told));
    assert_int_equal(plim_budget_free(budget), PLIM_USAGE);
    race(race_program, &other);
    assert_int_equal(other.others, 0);
    assert_true(other.done > 0);
    plim_program_free(other.program);
    plim_graph_free(other.graph);
    assert_int_equal(plim_budget_free(budget), PLIM_OK);
    assert_int_equal(plim_budget_free(NULL), PLIM_OK);
}

/* Held as by another thread in the middle of a call. */
static void a_graph_at_work(void **state)
{
    (void)state;
    plim_budget *budget = budget_of(32 * MIB);
    plim_graph *graph = graph_of(budget, 4, true);
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(4));
    struct graph_call call;
    assert_true(graph_call_begin(&call, graph, true));
    assert_int_equal(plim_graph_check(graph, NULL), PLIM_USAGE);
    assert_int_equal(plim_graph_weight_count(graph), 0);
    graph_call_end(&call);
    assert_int_equal(plim_graph_check(graph, NULL), PLIM_OK); /* who only asks leaves no gap */
    assert_true(graph_call_begin(&call, graph, true));
    assert_null(plim_op(graph, "exp", &x, 1, NULL));
    graph_call_end(&call);
    assert_int_equal(plim_graph_check(graph, NULL), PLIM_USAGE); /* what was to be added is missing */
    plim_graph_free(graph);
    assert_int_equal(plim_budget_free(budget), PLIM_OK);
}

struct own_source {
    _Atomic(plim_iterator *) iterator; /* NULL: not told yet */
    int64_t made;
    atomic_int refused;
    bool close;
};

/* Asks its own iterator for a batch, which waits for this very element. */
static plim_status next_of_itself(bool *more, void *context, void *const *row, plim_error *error)
{
    struct own_source *self = context;
    const plim_batch *batch;
    plim_iterator_state state;
    (void)error;
    if (self->iterator) {
        self->refused += plim_iterator_next(&batch, self->iterator, NULL) == PLIM_USAGE;
        plim_iterator_state_take(&state, self->iterator);
        self->refused += state.epoch == -1;
        if (self->close)
            plim_iterator_close(self->iterator);
    }
    *(int64_t *)row[0] = self->made++;
    *more = self->made <= 2000;
    return PLIM_OK;
}

static plim_status rewind_source(void *context, int64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    ((struct own_source *)context)->made = 0;
    return PLIM_OK;
}

static void an_iterator_serves_no_function_of_its_own(void **state)
{
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        plim_budget *budget = budget_of(32 * MIB);
        struct own_source source = {.made = 0};
        const plim_generator generator = {.next = next_of_itself, .rewind = rewind_source, .context = &source};
        const plim_column column = {.name = "x", .type = PLIM_INT64};
        plim_dataset *data = plim_dataset_batch(plim_dataset_from_generator(budget, &column, 1, &generator), 8, false);
        plim_iterator *iterator;
        const plim_batch *batch = NULL;
        good(plim_iterator_open(&iterator, data, budget, &(plim_iterator_options){.threads = threads}, &told));
        plim_iterator_state beginning;
        plim_iterator_state_take(&beginning, iterator);
        source.iterator = iterator;
        good(plim_iterator_restore(iterator, &beginning, &told)); /* from here on every element asks */
        good(plim_iterator_next(&batch, iterator, &told));
        assert_true(source.refused >= 16);
        if (!threads) {
            source.close = true;
            for (int i = 0; i < 300 && source.made <= 2000 && plim_iterator_next(&batch, iterator, NULL) == PLIM_OK;
                 i++)
                continue;
        } else {
            plim_iterator_close(iterator);
        }
        plim_dataset_unref(data);
        assert_int_equal(plim_budget_free(budget), PLIM_OK);
    }
}

/* ---- the host's floating-point environment ---- */

static bool same_environment(const fenv_t *a, const fenv_t *b)
{
#if defined(__x86_64__)
    return a->__mxcsr == b->__mxcsr && a->__control_word == b->__control_word && a->__status_word == b->__status_word;
#else
    return memcmp(a, b, sizeof *a) == 0;
#endif
}

static void run_all(struct listening *self)
{
    plim_plan_report report;
    plim_data_figures figures;
    const char *text, *json;
    int64_t elements;
    self->steps = 100;
    plim_job *job = open_job();
    good(plim_job_plan(&report, job, &told));
    good(plim_job_summary(&text, &json, job, &told));
    good(plim_job_train(job, hear, self, &told));
    plim_job_close(job);
    job = open_job();
    good(plim_job_bench_data(&figures, job, &told));
    good(plim_job_explain_data(&text, &json, job, 0.01, &told));
    good(plim_job_inspect_data(&text, &json, job, &told));
    good(plim_job_convert(&elements, job, output, NULL, NULL, &told));
    plim_job_close(job);
    unlink(output);
}

static void run_program(float out[4])
{
    static const float rows[16] = {1, 3, 5, 7, 11, 13, 0, 0, 1e30f, 1e38f, -1e38f, 1e-40f};
    const plim_batch batch = {.count = 4, .column = {(void *)(uintptr_t)rows}};
    plim_budget *budget = budget_of(32 * MIB);
    plim_graph *graph = graph_of(budget, 4, true);
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(4));
    plim_value *odd = plim_op(graph, "divide", LIST(x, x), NULL); /* 0 / 0 among others */
    plim_value *third = plim_op(graph, "sum", LIST(plim_op(graph, "divide", &x, 1, "3")), "{axis: -1}");
    plim_program *program;
    plim_graph_result(graph, odd, "odd");
    plim_graph_result(graph, third, "third");
    good(plim_program_make(&program, &graph, 1, &(plim_program_options){.threads = 1}, &told));
    good(plim_program_run(program, 0, &batch, &told));
    good(plim_program_read(out, 4 * sizeof *out, program, third, &told));
    plim_program_free(program);
    plim_graph_free(graph);
    assert_int_equal(plim_budget_free(budget), PLIM_OK);
}

static void the_hosts_floats_come_back(void **state)
{
    struct listening plain = {0}, odd = {0};
    float usual[4], same[4];
    fenv_t usual_environment, before, after;
    (void)state;
    run_all(&plain);
    run_program(usual);
    fegetenv(&usual_environment);
    fesetround(FE_UPWARD);
    feraiseexcept(FE_INEXACT | FE_UNDERFLOW);
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    fegetenv(&before);
    run_all(&odd);
    run_program(same);
    fegetenv(&after);
    fesetenv(&usual_environment);
    assert_true(same_environment(&before, &after));
    assert_true(same_environment(&before, &odd.seen));
    assert_string_equal(plain.digest, odd.digest);
    assert_memory_equal(usual, same, sizeof usual);
}

/* ---- what the header says of numbers and counts ---- */

static void a_constant_broadcasts_and_weights_are_counted(void **state)
{
    plim_budget *budget = budget_of(32 * MIB);
    plim_graph *graph = graph_of(budget, 4, true);
    static const float rows[4];
    const plim_batch batch = {.count = 1, .column = {(void *)(uintptr_t)rows}};
    plim_value *list[2] = {NULL, NULL};
    float seen[6];
    plim_program *program;
    (void)state;
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(4));
    plim_layers_apply(graph, plim_layers_read(graph, "[Dense: 3, Dense: 2]"), &x, 1);
    assert_int_equal(plim_graph_weights(list, 1, graph), 1);
    assert_null(list[1]);
    assert_int_equal(plim_graph_weight_count(graph), 4);
    assert_int_equal(plim_graph_weights(list, -5, graph), 0);
    plim_value *s = plim_graph_state(graph, "s", PLIM_FLOAT32, SHAPE(2, 3), 1);
    plim_graph_assign(graph, s, plim_graph_constant(graph, PLIM_FLOAT32, 2.5));
    plim_graph_assign_add(graph, s, plim_graph_constant(graph, PLIM_FLOAT32, 0.25));
    good(plim_program_make(&program, &graph, 1, &(plim_program_options){.threads = 2}, &told));
    good(plim_program_run(program, 0, &batch, &told));
    good(plim_program_read(seen, sizeof seen, program, s, &told));
    for (int i = 0; i < 6; i++)
        assert_float_equal(seen[i], 2.75f, 0);
    plim_program_free(program);
    plim_graph_free(graph);
    assert_int_equal(plim_budget_free(budget), PLIM_OK);
}

static int start(void **state)
{
    (void)state;
    write_job();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_at_work_refuses),
        cmocka_unit_test(a_job_that_is_closed_at_work_goes_at_its_end),
        cmocka_unit_test(texts_stay_valid),
        cmocka_unit_test(programs_and_graphs_serve_one_thread),
        cmocka_unit_test(a_graph_at_work),
        cmocka_unit_test(an_iterator_serves_no_function_of_its_own),
        cmocka_unit_test(the_hosts_floats_come_back),
        cmocka_unit_test(a_constant_broadcasts_and_weights_are_counted),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
