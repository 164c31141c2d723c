/* test_policy.c - Keras's dtype policies: their words, and the types in the graphs that they make. */

#include "model_bench.h"
#include "ops/ops.h"

/* A layer used twice, normalisation in between, and an end that says its own type. */
static const char MODEL[] = "- Dense: {units: 8, activation: relu, name: twice}\n"
                            "- twice\n"
                            "- BatchNormalization\n"
                            "- Dense: {units: 8}\n"
                            "- LayerNormalization\n"
                            "- Dense: {units: 3, activation: softmax, dtype: float32}\n";

static void make_model(struct bench *bench, const char *text, enum type compute)
{
    const struct column_spec columns[2] = {{.type = TYPE_F32, .shape = shape_of(1, (int64_t[]){8})},
                                           {.type = TYPE_I32, .shape = {.rank = 0}}};
    assert_int_equal(read_model(bench, text), PLIM_OK);
    model_set_policy(bench->model, compute);
    train_with(bench, "sparse_categorical_crossentropy", "adam");
    graph_release(&bench->graph);
    graph_init(&bench->graph, bench->budget, 4);
    if (model_build(
            &bench->tensors, &bench->graph, bench->model,
            &(struct step_spec){.column = columns, .column_count = 2, .training = &bench->training, .backward = true},
            &bench->error))
        fail_msg("%s", bench->error.message);
}

static void names_are_keras_s(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        plim_status status;
        enum type type;
    } cases[] = {
        {"float32", PLIM_OK, TYPE_F32},           {"mixed_bfloat16", PLIM_OK, TYPE_BF16},
        {"mixed_float16", PLIM_OK, TYPE_F16},     {"bfloat16", PLIM_UNSUPPORTED, TYPE_F64},
        {"float16", PLIM_UNSUPPORTED, TYPE_F64},  {"float64", PLIM_UNSUPPORTED, TYPE_F64},
        {"mixed_bfloat", PLIM_BAD_JOB, TYPE_F64},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        enum type type = TYPE_F64;
        plim_error error = {0};
        assert_int_equal(policy_read(&type, "precision", "job.yaml:3:5", cases[i].word, &error), cases[i].status);
        assert_int_equal(type, cases[i].type);
        if (cases[i].status)
            assert_non_null(strstr(error.message, cases[i].word));
    }
}

static void layers_say_their_own(void **state)
{
    struct bench *bench = *state;
    assert_int_equal(read_model(bench, "- Dense: {units: 3, dtype: float16}\n"), PLIM_UNSUPPORTED);
    assert_int_equal(read_model(bench, "- Dense: {units: 3, dtype: mixed_float61}\n"), PLIM_BAD_JOB);
    assert_int_equal(read_model(bench, "- Dense: {units: 3, dtype: mixed_float16}\n- Dense: 2\n"), PLIM_OK);
    assert_int_equal(layer_compute(&bench->model->layer[0]), TYPE_F16);
    assert_int_equal(layer_compute(&bench->model->layer[1]), TYPE_F32);
    assert_true(model_computes_in(bench->model, TYPE_F16));
    model_set_policy(bench->model, TYPE_BF16);
    assert_int_equal(layer_compute(&bench->model->layer[0]), TYPE_F16);
    assert_int_equal(layer_compute(&bench->model->layer[1]), TYPE_BF16);
    /* Files of Keras say float32 everywhere: the job's word is for all. */
    assert_int_equal(read_model(bench, "- Dense: {units: 3, dtype: float32}\n- Dense: {units: 2, dtype: float32}\n"),
                     PLIM_OK);
    model_set_policy(bench->model, TYPE_BF16);
    assert_int_equal(layer_compute(&bench->model->layer[1]), TYPE_BF16);
    /* Layers inside others, too. */
    assert_int_equal(
        read_model(bench, "- TimeDistributed: {layer: {Dense: {units: 3, dtype: float32}}, dtype: float32}\n"),
        PLIM_OK);
    model_set_policy(bench->model, TYPE_BF16);
    assert_int_equal(layer_compute(bench->model->inner), TYPE_BF16);
}

/* How many nodes cast a tensor of this name. */
static int casts_of(const struct graph *graph, const char *name)
{
    int count = 0;
    for (int n = 0; n < graph->node_count; n++)
        count += graph->node[n]->op == &op_cast && strcmp(graph->node[n]->input[0]->name, name) == 0;
    return count;
}

static void weights_stay_wide(void **state)
{
    struct bench *bench = *state;
    make_model(bench, MODEL, TYPE_BF16);
    const struct graph *graph = &bench->graph;
    for (int i = 0; i < bench->graph.build->weight_count; i++)
        assert_int_equal(bench->graph.build->weight[i].tensor->type, TYPE_F32);
    int gradients = 0;
    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensor[t]->gradient) {
            assert_int_equal(graph->tensor[t]->type, TYPE_F32);
            gradients++;
        }
    assert_true(gradients >= 10);
    assert_int_equal(bench->tensors.loss->type, TYPE_F32);
    assert_int_equal(bench->tensors.output[0].value->type, TYPE_F32);
}

static void a_weight_is_cast_once(void **state)
{
    struct bench *bench = *state;
    make_model(bench, MODEL, TYPE_BF16);
    assert_int_equal(casts_of(&bench->graph, "twice/kernel"), 1);
    assert_int_equal(casts_of(&bench->graph, "twice/bias"), 0);
    assert_int_equal(casts_of(&bench->graph, "batch_normalization/gamma"), 0);
    assert_int_equal(casts_of(&bench->graph, "dense_1/kernel"), 0); /* it says float32 */
    make_model(bench, MODEL, TYPE_F32);
    assert_int_equal(casts_of(&bench->graph, "twice/kernel"), 0);
}

/* What layers hand on is small; figures of normalisation are not. */
static void values_are_small(void **state)
{
    struct bench *bench = *state;
    make_model(bench, MODEL, TYPE_F16);
    for (int i = 0; i < bench->model->use_count; i++) {
        bool last = i == bench->model->use_count - 1;
        assert_int_equal(use_made(bench->graph.build, &bench->model->use[i], 0)->output->type,
                         last ? TYPE_F32 : TYPE_F16);
    }
    for (int n = 0; n < bench->graph.node_count; n++) {
        const struct node *node = bench->graph.node[n];
        if (node->op == &op_batch_moments)
            assert_int_equal(node->output[0]->type, TYPE_F64);
        if (node->op == &op_layer_normalize)
            assert_int_equal(node->output[1]->type, TYPE_F32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_keras_s),
        cmocka_unit_test_setup_teardown(layers_say_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(weights_stay_wide, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_weight_is_cast_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_are_small, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
