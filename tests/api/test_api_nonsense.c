/* test_api_nonsense.c - every function of plimsoll.h with NULL for each pointer in turn and nonsense for each number.

   A row of the table is a call with good arguments; argument `at` of it is spoilt. Nothing may crash (the sanitizers'
   builds say more), and a call that returns a status answers PLIM_USAGE to a NULL that it needs.
   tests/tree/test_symbols.py compares the table with the header: no function is missing. */
#include <limits.h>
#include <math.h>
#include <unistd.h>

#include "api_graph_support.h"

#define ROUNDS 5

static int at, spoilt, pass; /* which argument; whether a needed pointer was NULL; which nonsense */
static const int ints[ROUNDS] = {INT_MIN, -1, 0, 1 << 30, INT_MAX};
static const int64_t longs[ROUNDS] = {INT64_MIN, -1, 0, (int64_t)1 << 62, INT64_MAX};
static const uint64_t sizes_of[ROUNDS] = {0, 1, 3, (uint64_t)1 << 63, UINT64_MAX};
static double doubles[ROUNDS];

static bool is_spoilt(int i)
{
    spoilt |= at == i;
    return at == i;
}
#define P(i, x)       (is_spoilt(i) ? NULL : (x)) /* a pointer that is needed */
#define O(i, x)       (at == (i) ? NULL : (x))    /* one that may be NULL */
#define I(i, x)       (at == (i) ? ints[pass] : (x))
#define E(i, x, type) (at == (i) ? (type)ints[pass] : (x))
#define L(i, x)       (at == (i) ? longs[pass] : (x))
#define Z(i, x)       (at == (i) ? sizes_of[pass] : (x))
#define D(i, x)       (at == (i) ? doubles[pass] : (x))

/* ---- good arguments ---- */

static plim_budget *budget;
static char folder[128], job_path[256], output[256];
static plim_error error;
static const plim_column columns[1] = {{.name = "x", .type = PLIM_FLOAT32, .rank = 1, .shape = {2}}};
static const float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static const plim_tensor tensors[1] = {{.type = PLIM_FLOAT32, .rank = 2, .shape = {4, 2}, .data = numbers}};
static const int64_t extents[2] = {2, 3};
static const char *const names[3] = {"/nowhere/x.npy", "/nowhere/y.npy", "/nowhere/z.npy"};

static plim_dataset *data(void)
{
    return plim_dataset_range(budget, 10);
}

static plim_status next(bool *more, void *context, void *const *row, plim_error *told)
{
    (void)context, (void)row, (void)told;
    *more = false;
    return PLIM_OK;
}
static const plim_generator generator = {.next = next};

static plim_status element(void *context, void *const *from, void *const *to, int64_t index, plim_error *told)
{
    (void)context, (void)from, (void)to, (void)index, (void)told;
    return PLIM_OK;
}
static const plim_map map = {.element = element};

static plim_status keep_all(bool *keep, void *context, const plim_chunk *chunk, plim_error *told)
{
    (void)context, (void)told;
    for (int64_t i = 0; i < chunk->count; i++)
        keep[i] = true;
    return PLIM_OK;
}

static plim_status scan_run(void *context, void *state, void *const *from, void *const *to, plim_error *told)
{
    (void)context, (void)state, (void)from, (void)to, (void)told;
    return PLIM_OK;
}
static const plim_scan scan = {.run = scan_run};

static plim_dataset *make_inner(void *context, const plim_chunk *chunk, plim_budget *from)
{
    (void)context, (void)chunk;
    return plim_dataset_range(from, 3);
}
static const plim_interleave interleave = {.make = make_inner, .columns = columns, .column_count = 1};

static plim_status visit(void *state, const plim_batch *batch, plim_error *told)
{
    (void)state, (void)batch, (void)told;
    return PLIM_OK;
}

static bool go_on(void *context, uint64_t done, uint64_t total)
{
    (void)context, (void)done, (void)total;
    return true;
}

static void hear(void *context, const plim_event *event)
{
    (void)context, (void)event;
}

static plim_job *job(void)
{
    plim_job *out = NULL;
    plim_status status = plim_job_open(&out, job_path, NULL, &error);
    if (status != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    return out;
}

/* What a call on a job, a graph, ... works on: made for it, freed behind it. */
static plim_job *a_job;
static plim_graph *a_graph;
static plim_value *a_value;
static plim_layers *a_layers;
static plim_program *a_program;
static plim_iterator *an_iterator;
static plim_report *a_report;

enum wants { JOB = 1, GRAPH = 2, PROGRAM = 4, ITERATOR = 8, REPORT = 16 };

static void set_up(int wants)
{
    if (wants & JOB)
        a_job = job();
    if (wants & (GRAPH | PROGRAM)) {
        a_graph = graph_of(budget, 4, true);
        plim_value *x = plim_graph_input(a_graph, "x", PLIM_FLOAT32, SHAPE(2));
        a_layers = plim_layers_read(a_graph, "[Dense: 2]");
        a_value = plim_op(a_graph, "mean", LIST(plim_layers_apply(a_graph, a_layers, &x, 1)), NULL);
        plim_graph_result(a_graph, a_value, "mean");
    }
    if (wants & PROGRAM)
        assert_int_equal(plim_program_make(&a_program, &a_graph, 1, &(plim_program_options){.threads = 1}, &error), 0);
    if (wants & ITERATOR) {
        plim_dataset *dataset = plim_dataset_batch(data(), 2, false);
        assert_int_equal(plim_iterator_open(&an_iterator, dataset, budget, NULL, &error), 0);
        plim_dataset_unref(dataset);
    }
    if (wants & REPORT)
        assert_int_equal(plim_report_make(&a_report, PLIM_REPORT_JSON, -1, &error), 0);
}

static void tear_down(void)
{
    plim_job_close(a_job);
    plim_program_free(a_program);
    plim_graph_free(a_graph);
    plim_iterator_close(an_iterator);
    plim_report_free(a_report);
    a_job = NULL, a_graph = NULL, a_program = NULL, an_iterator = NULL, a_report = NULL;
}

/* ---- the table ---- */

/* What a call gave back: a status, or something that is freed here. */
static int status_of(plim_status status)
{
    return (int)status;
}

static int drop(plim_dataset *dataset)
{
    plim_column told[PLIM_MOST_COLUMNS];
    plim_dataset_check(dataset, &error);
    plim_dataset_spec(told, dataset);
    plim_dataset_cardinality(dataset);
    plim_dataset_unref(dataset);
    return -1;
}

static int forget(const void *pointer)
{
    (void)pointer;
    return -1;
}

static int number(int64_t any)
{
    (void)any;
    return -1;
}

#define S(call) status_of(call)
#define V(call) ((call), -1)

static plim_job *opened;
static plim_budget *made_budget;
static plim_graph *made_graph;
static plim_program *made_program;
static plim_iterator *opened_iterator;
static plim_report *made_report;
static plim_plan_report plan_report;
static plim_data_figures data_figures;
static plim_step_figures step_figures;
static const char *text, *json;
static int64_t count_of, shape_out[PLIM_MOST_AXES + 1];
static uint64_t now_bytes, peak_bytes;
static plim_value *values[8];
static float room[8];
static const plim_batch *given;
static plim_iterator_state place;
static const double shares[2] = {0.5, 0.5};
static plim_column spec[PLIM_MOST_COLUMNS];

static const plim_batch *batch_of_ours(void)
{
    static plim_batch batch;
    batch = (plim_batch){.count = 4, .column = {(void *)(uintptr_t)numbers}};
    return &batch;
}

static const plim_event *event_of(int kind)
{
    static plim_event event;
    event = (plim_event){.kind = (plim_event_kind)kind};
    return &event;
}

/* name, what it works on, how many arguments can be spoilt, the call */
#define CALLS(CALL)                                                                                                    \
    CALL(plim_version, 0, 0, forget(plim_version()))                                                                   \
    CALL(plim_status_name, 0, 1, forget(plim_status_name(E(0, PLIM_OK, plim_status))))                                 \
    CALL(plim_status_exit, 0, 1, number(plim_status_exit(E(0, PLIM_OK, plim_status))))                                 \
    CALL(plim_job_open, 0, 3, S(plim_job_open(P(0, &opened), P(1, job_path), O(2, NULL), &error)))                     \
    CALL(plim_job_open_files, 0, 3, S(plim_job_open_files(P(0, &opened), P(1, names), Z(2, 1), NULL, &error)))         \
    CALL(plim_job_close, JOB, 1, V(plim_job_close(O(0, NULL))))                                                        \
    CALL(plim_job_plan, JOB, 2, S(plim_job_plan(P(0, &plan_report), P(1, a_job), &error)))                             \
    CALL(plim_job_plan_plot, JOB, 2, S(plim_job_plan_plot(P(0, a_job), P(1, output), &error)))                         \
    CALL(plim_job_plan_page, JOB, 2, S(plim_job_plan_page(P(0, a_job), P(1, output), &error)))                         \
    CALL(plim_job_train, JOB, 2, S(plim_job_train(P(0, a_job), O(1, hear), NULL, &error)))                             \
    CALL(plim_job_summary, JOB, 3, S(plim_job_summary(P(0, &text), P(1, &json), P(2, a_job), &error)))                 \
    CALL(plim_job_stop, JOB, 1, V(plim_job_stop(O(0, a_job))))                                                         \
    CALL(plim_job_bench_data, JOB, 2, S(plim_job_bench_data(P(0, &data_figures), P(1, a_job), &error)))                \
    CALL(plim_job_explain_data, JOB, 4,                                                                                \
         S(plim_job_explain_data(P(0, &text), P(1, &json), P(2, a_job), D(3, 0), &error)))                             \
    CALL(plim_job_inspect_data, JOB, 3, S(plim_job_inspect_data(P(0, &text), P(1, &json), P(2, a_job), &error)))       \
    CALL(plim_job_convert, JOB, 4,                                                                                     \
         S(plim_job_convert(P(0, &count_of), P(1, a_job), P(2, output), O(3, go_on), NULL, &error)))                   \
    CALL(plim_job_converted, JOB, 2, S(plim_job_converted(P(0, &text), P(1, a_job), &error)))                          \
    CALL(plim_job_shard, JOB, 6, S(shard()))                                                                           \
    CALL(plim_records_index, 0, 3, S(plim_records_index(P(0, &count_of), P(1, names[0]), O(2, go_on), NULL, &error)))  \
    CALL(plim_job_bench_step, JOB, 3, S(plim_job_bench_step(P(0, &step_figures), P(1, a_job), L(2, 1), &error)))       \
    CALL(plim_budget_make, 0, 2, S(plim_budget_make(P(0, &made_budget), Z(1, MIB), &error)))                           \
    CALL(plim_budget_free, 0, 1, S(plim_budget_free(O(0, NULL))))                                                      \
    CALL(plim_budget_figures, 0, 3, V(plim_budget_figures(O(0, &now_bytes), O(1, &peak_bytes), O(2, budget))))         \
    CALL(plim_dataset_from_tensors, 0, 3, drop(plim_dataset_from_tensors(P(0, budget), P(1, tensors), I(2, 1))))       \
    CALL(plim_dataset_from_tensor_slices, 0, 3,                                                                        \
         drop(plim_dataset_from_tensor_slices(P(0, budget), P(1, tensors), I(2, 1))))                                  \
    CALL(plim_dataset_from_generator, 0, 4,                                                                            \
         drop(plim_dataset_from_generator(P(0, budget), P(1, columns), I(2, 1), P(3, &generator))))                    \
    CALL(plim_dataset_range, 0, 2, drop(plim_dataset_range(P(0, budget), L(1, 4))))                                    \
    CALL(plim_dataset_counter, 0, 4, drop(plim_dataset_counter(P(0, budget), L(1, 0), L(2, 1), L(3, 4))))              \
    CALL(plim_dataset_list_files, 0, 3, drop(plim_dataset_list_files(P(0, budget), P(1, names), I(2, 1), false, 7)))   \
    CALL(plim_dataset_random, 0, 6,                                                                                    \
         drop(plim_dataset_random(P(0, budget), L(1, 4), P(2, extents), I(3, 2), L(4, 3), Z(5, 7))))                   \
    CALL(plim_dataset_npy, 0, 3, drop(plim_dataset_npy(P(0, budget), P(1, names), I(2, 1))))                           \
    CALL(plim_dataset_idx, 0, 3, drop(plim_dataset_idx(P(0, budget), P(1, names), I(2, 1))))                           \
    CALL(plim_dataset_read, 0, 3, drop(plim_dataset_read(P(0, budget), P(1, "{range: 4}"), Z(2, 7))))                  \
    CALL(plim_dataset_stage, 0, 3, drop(plim_dataset_stage(P(0, data()), P(1, "batch: 2"), Z(2, 7))))                  \
    CALL(plim_dataset_shuffle, 0, 2, drop(plim_dataset_shuffle(P(0, data()), Z(1, 7))))                                \
    CALL(plim_dataset_take, 0, 2, drop(plim_dataset_take(P(0, data()), L(1, 2))))                                      \
    CALL(plim_dataset_skip, 0, 2, drop(plim_dataset_skip(P(0, data()), L(1, 2))))                                      \
    CALL(plim_dataset_repeat, 0, 2, drop(plim_dataset_repeat(P(0, data()), L(1, 2))))                                  \
    CALL(plim_dataset_batch, 0, 2, drop(plim_dataset_batch(P(0, data()), L(1, 2), false)))                             \
    CALL(plim_dataset_prefetch, 0, 2, drop(plim_dataset_prefetch(P(0, plim_dataset_batch(data(), 2, 0)), L(1, 2))))    \
    CALL(plim_dataset_map, 0, 2, drop(plim_dataset_map(P(0, data()), P(1, &map))))                                     \
    CALL(plim_chunk_take, 0, 2, forget(plim_chunk_take(P(0, &(plim_chunk){.count = 0}), Z(1, 8))))                     \
    CALL(plim_dataset_shuffle_blocks, 0, 2, drop(plim_dataset_shuffle_blocks(P(0, data()), Z(1, 7))))                  \
    CALL(plim_dataset_shuffle_buffer, 0, 3, drop(plim_dataset_shuffle_buffer(P(0, data()), L(1, 4), Z(2, 7))))         \
    CALL(plim_dataset_shard, 0, 3, drop(plim_dataset_shard(P(0, data()), L(1, 2), L(2, 1))))                           \
    CALL(plim_dataset_enumerate, 0, 2, drop(plim_dataset_enumerate(P(0, data()), L(1, 0))))                            \
    CALL(plim_dataset_unique, 0, 3, drop(plim_dataset_unique(P(0, data()), O(1, "x"), Z(2, 4096))))                    \
    CALL(plim_dataset_assert_cardinality, 0, 2, drop(plim_dataset_assert_cardinality(P(0, data()), L(1, 10))))         \
    CALL(plim_dataset_ignore_errors, 0, 2, drop(plim_dataset_ignore_errors(P(0, data()), L(1, 3))))                    \
    CALL(plim_dataset_cache, 0, 3, drop(plim_dataset_cache(P(0, data()), Z(1, 4096), O(2, output))))                   \
    CALL(plim_dataset_rejection_resample, 0, 6,                                                                        \
         drop(plim_dataset_rejection_resample(P(0, data()), P(1, "x"), P(2, shares), O(3, shares), I(4, 2), Z(5, 7)))) \
    CALL(plim_dataset_scan, 0, 2, drop(plim_dataset_scan(P(0, data()), P(1, &scan))))                                  \
    CALL(plim_dataset_filter, 0, 2, drop(plim_dataset_filter(P(0, data()), P(1, keep_all), NULL)))                     \
    CALL(plim_dataset_take_while, 0, 2, drop(plim_dataset_take_while(P(0, data()), P(1, keep_all), NULL)))             \
    CALL(plim_dataset_filter_expression, 0, 2, drop(plim_dataset_filter_expression(P(0, data()), P(1, "x < 5"))))      \
    CALL(plim_dataset_take_while_expression, 0, 2,                                                                     \
         drop(plim_dataset_take_while_expression(P(0, data()), P(1, "x < 5"))))                                        \
    CALL(plim_dataset_zip, 0, 2, drop(join(plim_dataset_zip)))                                                         \
    CALL(plim_dataset_concatenate, 0, 2, drop(join(plim_dataset_concatenate)))                                         \
    CALL(plim_dataset_choose_from_datasets, 0, 3, drop(choose()))                                                      \
    CALL(plim_dataset_sample_from_datasets, 0, 4, drop(sample()))                                                      \
    CALL(plim_dataset_interleave, 0, 2, drop(plim_dataset_interleave(P(0, data()), P(1, &interleave))))                \
    CALL(plim_dataset_flat_map, 0, 2, drop(plim_dataset_flat_map(P(0, data()), P(1, &interleave))))                    \
    CALL(plim_dataset_padded_batch, 0, 3, drop(plim_dataset_padded_batch(P(0, data()), L(1, 2), D(2, 0), false)))      \
    CALL(plim_dataset_unbatch, 0, 1, drop(plim_dataset_unbatch(P(0, data()))))                                         \
    CALL(plim_dataset_rebatch, 0, 3, drop(plim_dataset_rebatch(P(0, data()), P(1, extents), I(2, 2), false)))          \
    CALL(plim_dataset_window, 0, 4, drop(plim_dataset_window(P(0, data()), L(1, 2), L(2, 1), L(3, 1), false)))         \
    CALL(plim_dataset_group_by_window, 0, 4,                                                                           \
         drop(plim_dataset_group_by_window(P(0, data()), P(1, "x"), L(2, 2), L(3, 2), false)))                         \
    CALL(plim_dataset_bucket_by_sequence_length, 0, 5,                                                                 \
         drop(plim_dataset_bucket_by_sequence_length(P(0, data()), O(1, "x"), P(2, extents), P(3, extents), I(4, 1),   \
                                                     false)))                                                          \
    CALL(plim_dataset_ref, 0, 1, forget(plim_dataset_ref(P(0, NULL))))                                                 \
    CALL(plim_dataset_unref, 0, 1, V(plim_dataset_unref(P(0, data()))))                                                \
    CALL(plim_dataset_check, 0, 1, S(plim_dataset_check(P(0, NULL), &error)))                                          \
    CALL(plim_dataset_spec, 0, 2, number(plim_dataset_spec(P(0, spec), P(1, NULL))))                                   \
    CALL(plim_dataset_cardinality, 0, 1, number(plim_dataset_cardinality(P(0, NULL))))                                 \
    CALL(plim_dataset_reduce, 0, 3, S(reduce()))                                                                       \
    CALL(plim_dataset_save, 0, 3, S(save()))                                                                           \
    CALL(plim_iterator_open, 0, 4, S(open_iterator()))                                                                 \
    CALL(plim_iterator_close, 0, 1, V(plim_iterator_close(O(0, NULL))))                                                \
    CALL(plim_iterator_next, ITERATOR, 2, S(plim_iterator_next(P(0, &given), P(1, an_iterator), &error)))              \
    CALL(plim_iterator_shape, ITERATOR, 3, number(plim_iterator_shape(P(0, shape_out), P(1, an_iterator), I(2, 0))))   \
    CALL(plim_iterator_state_take, ITERATOR, 2, V(plim_iterator_state_take(P(0, &place), P(1, an_iterator))))          \
    CALL(plim_iterator_restore, ITERATOR, 4, S(restore()))                                                             \
    CALL(plim_graph_make, 0, 4, S(make_graph()))                                                                       \
    CALL(plim_graph_free, 0, 1, V(plim_graph_free(O(0, NULL))))                                                        \
    CALL(plim_graph_check, GRAPH, 1, S(plim_graph_check(P(0, a_graph), &error)))                                       \
    CALL(plim_graph_input, GRAPH, 5,                                                                                   \
         forget(plim_graph_input(P(0, a_graph), P(1, "t"), E(2, PLIM_FLOAT32, plim_type), P(3, extents), I(4, 2))))    \
    CALL(plim_graph_weight, GRAPH, 5,                                                                                  \
         forget(plim_graph_weight(P(0, a_graph), P(1, "w"), P(2, extents), I(3, 2), O(4, "zeros"), true)))             \
    CALL(plim_graph_state, GRAPH, 6,                                                                                   \
         forget(plim_graph_state(P(0, a_graph), P(1, "s"), E(2, PLIM_FLOAT32, plim_type), P(3, extents), I(4, 2),      \
                                 D(5, 0))))                                                                            \
    CALL(plim_graph_constant, GRAPH, 3,                                                                                \
         forget(plim_graph_constant(P(0, a_graph), E(1, PLIM_FLOAT32, plim_type), D(2, 1))))                           \
    CALL(plim_graph_find, GRAPH, 2, forget(plim_graph_find(P(0, a_graph), P(1, "dense/kernel"))))                      \
    CALL(plim_graph_weights, GRAPH, 3, number(plim_graph_weights(P(0, values), I(1, 8), P(2, a_graph))))               \
    CALL(plim_graph_weight_count, GRAPH, 1, number(plim_graph_weight_count(P(0, a_graph))))                            \
    CALL(plim_op, GRAPH, 5, forget(plim_op(P(0, a_graph), P(1, "exp"), P(2, &a_value), I(3, 1), O(4, "2"))))           \
    CALL(plim_op_output, GRAPH, 3, forget(plim_op_output(P(0, a_graph), P(1, a_value), I(2, 0))))                      \
    CALL(plim_op_split, GRAPH, 6,                                                                                      \
         V(plim_op_split(P(0, values), P(1, a_graph), P(2, a_value), I(3, 1), P(4, extents), I(5, 2))))                \
    CALL(plim_loss, GRAPH, 4, forget(plim_loss(P(0, a_graph), P(1, "mse"), P(2, a_value), P(3, a_value))))             \
    CALL(plim_layers_read, GRAPH, 2, forget(plim_layers_read(P(0, a_graph), P(1, "[Dense: 2]"))))                      \
    CALL(plim_layers_apply, GRAPH, 4,                                                                                  \
         forget(plim_layers_apply(P(0, a_graph), P(1, a_layers), P(2, &a_value), I(3, 1))))                            \
    CALL(plim_layers_outputs, GRAPH, 1, number(plim_layers_outputs(P(0, a_layers))))                                   \
    CALL(plim_layers_apply_all, GRAPH, 6,                                                                              \
         V(plim_layers_apply_all(P(0, values), I(1, 1), P(2, a_graph), P(3, a_layers), P(4, &a_value), I(5, 1))))      \
    CALL(plim_layers_penalties, GRAPH, 2, forget(plim_layers_penalties(P(0, a_graph), P(1, a_value))))                 \
    CALL(plim_graph_gradients, GRAPH, 5, S(gradients()))                                                               \
    CALL(plim_graph_update, GRAPH, 6, forget(update()))                                                                \
    CALL(plim_graph_assign, GRAPH, 3, forget(plim_graph_assign(P(0, a_graph), P(1, a_value), P(2, a_value))))          \
    CALL(plim_graph_assign_add, GRAPH, 3, forget(plim_graph_assign_add(P(0, a_graph), P(1, a_value), P(2, a_value))))  \
    CALL(plim_graph_result, GRAPH, 3, V(plim_graph_result(P(0, a_graph), P(1, a_value), P(2, "again"))))               \
    CALL(plim_value_shape, GRAPH, 2, number(plim_value_shape(P(0, shape_out), P(1, a_value))))                         \
    CALL(plim_value_type, GRAPH, 1, number(plim_value_type(P(0, a_value))))                                            \
    CALL(plim_program_make, GRAPH, 4, S(make_program()))                                                               \
    CALL(plim_program_free, 0, 1, V(plim_program_free(O(0, NULL))))                                                    \
    CALL(plim_program_bytes, PROGRAM, 1, number((int64_t)plim_program_bytes(P(0, a_program))))                         \
    CALL(plim_program_run, PROGRAM, 3, S(plim_program_run(P(0, a_program), I(1, 0), P(2, batch_of_ours()), &error)))   \
    CALL(plim_program_read, PROGRAM, 4,                                                                                \
         S(plim_program_read(P(0, room), Z(1, 16), P(2, a_program), P(3, plim_graph_find(a_graph, "dense/kernel")),    \
                             &error)))                                                                                 \
    CALL(plim_program_write, PROGRAM, 4,                                                                               \
         S(plim_program_write(P(0, a_program), P(1, plim_graph_find(a_graph, "dense/kernel")), P(2, room), Z(3, 16),   \
                              &error)))                                                                                \
    CALL(plim_program_save, PROGRAM, 2, S(plim_program_save(P(0, a_program), P(1, output), &error)))                   \
    CALL(plim_program_load, PROGRAM, 2, S(plim_program_load(P(0, a_program), P(1, output), &error)))                   \
    CALL(plim_report_make, 0, 3,                                                                                       \
         S(plim_report_make(P(0, &made_report), E(1, PLIM_REPORT_PLAIN, plim_report_form), I(2, -1), &error)))         \
    CALL(plim_report_free, 0, 1, V(plim_report_free(O(0, NULL))))                                                      \
    CALL(plim_report_listen, REPORT, 3, V(plim_report_listen(P(0, a_report), P(1, event_of(I(2, 1))))))                \
    CALL(plim_report_error, REPORT, 2, V(plim_report_error(P(0, a_report), P(1, &error))))                             \
    CALL(plim_report_watch, REPORT, 2, V(plim_report_watch(P(0, a_report), P(1, a_job))))                              \
    CALL(plim_report_lost, REPORT, 1, number(plim_report_lost(P(0, a_report))))

/* ---- calls that need more than an expression ---- */

static plim_status shard(void)
{
    const plim_shards shards = {.prefix = P(3, output), .count = L(4, 2)};
    return plim_job_shard(P(0, &count_of), P(1, a_job), P(2, &shards), O(5, go_on), NULL, &error);
}

static plim_dataset *join(plim_dataset *(*joins)(plim_dataset *const *datasets, int count))
{
    if (at == 0)
        return joins(NULL, 2);
    if (at == 1 && (ints[pass] < 1 || ints[pass] > 1000)) /* not taken over */
        return joins((plim_dataset *const[]){NULL}, ints[pass]);
    return joins((plim_dataset *const[]){data(), data()}, 2);
}

static plim_dataset *choose(void)
{
    if (at == 0)
        return plim_dataset_choose_from_datasets(NULL, 2, data(), false);
    if (at == 1)
        return plim_dataset_choose_from_datasets((plim_dataset *const[]){NULL}, ints[pass], data(), false);
    return plim_dataset_choose_from_datasets((plim_dataset *const[]){data(), data()}, 2, at == 2 ? NULL : data(),
                                             false);
}

static plim_dataset *sample(void)
{
    double weights[2] = {D(3, 1), 1};
    if (at == 0)
        return plim_dataset_sample_from_datasets(NULL, 2, weights, 7, false);
    if (at == 1)
        return plim_dataset_sample_from_datasets((plim_dataset *const[]){NULL}, ints[pass], weights, 7, false);
    return plim_dataset_sample_from_datasets((plim_dataset *const[]){data(), data()}, 2, at == 2 ? NULL : weights, 7,
                                             false);
}

static plim_status reduce(void)
{
    plim_dataset *dataset = plim_dataset_batch(data(), 2, false);
    plim_status status = plim_dataset_reduce(NULL, P(0, dataset), P(1, budget), P(2, visit), &error);
    plim_dataset_unref(dataset);
    return status;
}

static plim_status save(void)
{
    plim_dataset *dataset = data();
    char into[300];
    snprintf(into, sizeof into, "%s/saved", folder);
    plim_status status = plim_dataset_save(P(0, dataset), P(1, into), P(2, budget), &error);
    plim_dataset_unref(dataset);
    return status;
}

static plim_status open_iterator(void)
{
    plim_dataset *dataset = plim_dataset_batch(data(), 2, false);
    const plim_iterator_options options = {.threads = I(3, 0), .slots = I(3, 0), .disk_bytes = Z(3, 0)};
    plim_status status = plim_iterator_open(P(0, &opened_iterator), P(1, dataset), P(2, budget), &options, &error);
    plim_dataset_unref(dataset);
    return status;
}

static plim_status restore(void)
{
    plim_iterator_state state;
    plim_iterator_state_take(&state, an_iterator);
    state.samples = L(2, state.samples);
    state.epoch = L(3, state.epoch);
    return plim_iterator_restore(P(0, an_iterator), P(1, &state), &error);
}

static plim_status make_graph(void)
{
    const plim_graph_options options = {.batch = L(3, 4), .seed = 7};
    return plim_graph_make(P(0, &made_graph), P(1, budget), P(2, &options), &error);
}

static plim_status gradients(void)
{
    plim_value *of[8], *out[8];
    int count = plim_graph_weights(of, 8, a_graph);
    return plim_graph_gradients(P(0, out), P(1, a_graph), P(2, a_value), P(3, of), I(4, count), &error);
}

static plim_value *update(void)
{
    plim_value *of[8], *out[8];
    int count = plim_graph_weights(of, 8, a_graph);
    assert_int_equal(plim_graph_gradients(out, a_graph, a_value, of, count, &error), PLIM_OK);
    return plim_graph_update(P(0, a_graph), P(1, "sgd"), O(2, NULL), P(3, of), P(4, out), I(5, count));
}

static plim_status make_program(void)
{
    const plim_program_options options = {.threads = at == 3 ? (ints[pass] ? ints[pass] : -7) : 1};
    return plim_program_make(P(0, &made_program), P(1, &a_graph), I(2, 1), &options, &error);
}

/* ---- going over it ---- */

static void give_back(void)
{
    plim_job_close(opened);
    plim_program_free(made_program);
    plim_graph_free(made_graph);
    plim_iterator_close(opened_iterator);
    plim_report_free(made_report);
    assert_int_equal(plim_budget_free(made_budget), PLIM_OK);
    opened = NULL, made_program = NULL, made_graph = NULL, opened_iterator = NULL, made_report = NULL;
    made_budget = NULL;
}

static void tried(const char *name, int status)
{
    if (status >= 0 && spoilt && status != PLIM_USAGE)
        fail_msg("%s: argument %d is NULL, and it answers %s", name, at, plim_status_name((plim_status)status));
    if (status > (int)PLIM_INTERNAL || status == (int)PLIM_INTERNAL)
        fail_msg("%s: argument %d, nonsense %d: status %d: %s", name, at, pass, status, error.message);
    give_back();
    tear_down();
}

#define CALL(name, wants, arguments, expression)                                                                       \
    static void try_##name(void **state)                                                                               \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        for (at = -1; at < (arguments); at++)                                                                          \
            for (pass = 0; pass < (at < 0 ? 1 : ROUNDS); pass++) {                                                     \
                spoilt = 0;                                                                                            \
                error = (plim_error){0};                                                                               \
                set_up(wants);                                                                                         \
                int status = (expression);                                                                             \
                bool pointer = spoilt;                                                                                 \
                tried(#name, status);                                                                                  \
                if (pointer)                                                                                           \
                    break; /* there is one NULL */                                                                     \
            }                                                                                                          \
    }
CALLS(CALL)
#undef CALL

/* ---- lists with a hole, and long names ---- */

static void lists_with_a_hole(void **state)
{
    const char *const holes[2] = {job_path, NULL};
    plim_job *none = NULL;
    (void)state;
    at = -1;
    assert_int_equal(plim_job_open(&none, job_path,
                                   &(plim_job_options){.overrides = (const char *const[]){NULL}, .overrides_count = 1},
                                   &error),
                     PLIM_USAGE);
    assert_string_equal(error.message, "override 0 is NULL");
    assert_int_equal(plim_job_open(&none, job_path, &(plim_job_options){.overrides_count = 3}, &error), PLIM_USAGE);
    assert_int_equal(
        plim_job_open(&none, job_path, &(plim_job_options){.overrides = holes, .overrides_count = SIZE_MAX}, &error),
        PLIM_USAGE);
    assert_int_equal(plim_job_open_files(&none, holes, 2, NULL, &error), PLIM_USAGE);
    plim_dataset *with_hole = plim_dataset_zip((plim_dataset *const[]){data(), NULL, data()}, 3);
    assert_int_equal(plim_dataset_check(with_hole, &error), PLIM_USAGE);
    plim_dataset_unref(with_hole);
    plim_dataset *no_files = plim_dataset_npy(budget, holes, 2);
    assert_int_equal(plim_dataset_check(no_files, &error), PLIM_USAGE);
    plim_dataset_unref(no_files);
    assert_int_equal(plim_program_make(&made_program, (plim_graph *const[]){NULL, NULL}, 2, NULL, &error), PLIM_USAGE);
}

static void long_and_empty_names(void **state)
{
    size_t bytes = 1 << 20;
    char *name = malloc(bytes + 1);
    (void)state;
    assert_non_null(name);
    memset(name, 'n', bytes);
    name[bytes] = 0;
    const char *both[2] = {"", name};
    for (int i = 0; i < 2; i++) {
        const char *it = both[i];
        plim_job *none = NULL;
        assert_int_not_equal(plim_job_open(&none, it, NULL, &error), PLIM_OK);
        assert_int_not_equal(plim_job_open(&none, job_path, &(plim_job_options){.memory = it}, &error), PLIM_OK);
        assert_int_not_equal(plim_job_open_files(&none, &it, 1, NULL, &error), PLIM_OK);
        assert_int_not_equal(plim_records_index(&count_of, it, NULL, NULL, &error), PLIM_OK);
        drop(plim_dataset_read(budget, it, 7));
        drop(plim_dataset_stage(data(), it, 7));
        drop(plim_dataset_filter_expression(data(), it));
        drop(plim_dataset_group_by_window(data(), it, 2, 2, false));
        drop(plim_dataset_unique(data(), it, 0));
        drop(plim_dataset_rejection_resample(data(), it, shares, NULL, 2, 7));
        drop(plim_dataset_map(data(), &(plim_map){.name = it, .element = element}));
        for (int what = 0; what < 8; what++) {
            set_up(GRAPH);
            forget(what == 0   ? plim_graph_input(a_graph, it, PLIM_FLOAT32, SHAPE(2))
                   : what == 1 ? plim_graph_weight(a_graph, it, SHAPE(2), NULL, true)
                   : what == 2 ? plim_graph_weight(a_graph, "w", SHAPE(2), it, true)
                   : what == 3 ? plim_graph_state(a_graph, it, PLIM_FLOAT32, SHAPE(2), 0)
                   : what == 4 ? plim_op(a_graph, it, &a_value, 1, NULL)
                   : what == 5 ? plim_op(a_graph, "exp", &a_value, 1, it)
                   : what == 6 ? plim_loss(a_graph, it, a_value, a_value)
                               : plim_graph_find(a_graph, it));
            plim_graph_result(a_graph, a_value, it);
            plim_layers_read(a_graph, it);
            plim_graph_check(a_graph, &error);
            tear_down();
        }
    }
    free(name);
}

static int start(void **state)
{
    (void)state;
    const double nonsense[ROUNDS] = {NAN, -INFINITY, INFINITY, -1, 1e300};
    memcpy(doubles, nonsense, sizeof nonsense);
    budget = budget_of(64 * MIB);
    snprintf(folder, sizeof folder, "%s/plim-nonsense-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(job_path, sizeof job_path, "%s/job.yaml", folder);
    snprintf(output, sizeof output, "%s/out.npy", folder);
    FILE *file = fopen(job_path, "w");
    if (!file)
        return -1;
    fputs("memory: 1GiB\nthreads: 1\nseed: 7\ndata:\n"
          "  train: {random: {elements: 8, shape: [2], classes: 2}, pipeline: [batch: 4]}\n"
          "model: [Dense: 2]\n"
          "train: {optimizer: sgd, loss: sparse_categorical_crossentropy, epochs: 1, callbacks: [checkpoint: none]}\n",
          file);
    return fclose(file);
}

/* What was made and not given back is still there: the budget says it. */
static int stop(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return plim_budget_free(budget) == PLIM_OK ? system(command) : -1;
}

int main(void)
{
#define CALL(name, wants, arguments, expression) cmocka_unit_test(try_##name),
    const struct CMUnitTest tests[] = {CALLS(CALL) cmocka_unit_test(lists_with_a_hole),
                                       cmocka_unit_test(long_and_empty_names)};
#undef CALL
    return cmocka_run_group_tests(tests, start, stop);
}
