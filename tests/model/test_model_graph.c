/* test_model_graph.c - models that are more than a list: several inputs, names, layers used again, models inside
   models; what is refused, and that size costs no stack and no squares. */
#include <stdio.h>

#include "base/text/text.h"
#include "base/threads/clock.h"
#include "golden_text.h"
#include "model_bench.h"
#include "ops/ops.h"
#include "plan/plan.h"

static struct column_spec spec(const char *name, int rank, const int64_t *dim)
{
    return (struct column_spec){.name = name, .type = TYPE_F32, .shape = shape_of(rank, dim)};
}

static plim_status build(struct bench *bench, const struct column_spec *columns, int count)
{
    graph_release(&bench->graph);
    graph_init(&bench->graph, bench->budget, 4);
    return model_build(
        &bench->tensors, &bench->graph, bench->model,
        &(struct step_spec){.column = columns, .column_count = count, .training = &bench->training, .backward = true},
        &bench->error);
}

/* x of five numbers, and a label. */
static plim_status build_plain(struct bench *bench)
{
    const struct column_spec columns[] = {spec("x", 1, (int64_t[]){5}), spec("y", 0, NULL)};
    train_with(bench, "binary_crossentropy", "sgd");
    return build(bench, columns, COUNT(columns));
}

/* ---- what is built ---- */

static void a_branch_comes_together_again(void **state)
{
    struct bench *bench = *state;
    good(bench, read_model(bench, "- Dense: {units: 4, name: stem}\n"
                                  "- Dense: {units: 4, name: left}\n"
                                  "- Dense: {units: 4, name: right, inputs: stem}\n"
                                  "- Add: [left, right]\n"
                                  "- Dense: {units: 1, activation: sigmoid}\n"));
    good(bench, build_plain(bench));
    assert_int_equal(bench->model->layer_count, 5);
    assert_int_equal(bench->graph.build->weight_count, 8);
    assert_string_equal(bench->graph.build->weight[4].name, "right/kernel");
    assert_string_equal(bench->model->name, "functional");
    /* The sum, and the sum of the two gradients of the stem. */
    assert_int_equal(nodes_of(&bench->graph, &op_add), 2);
    assert_int_equal(nodes_of(&bench->graph, &op_sigmoid), 0);
}

static void a_layer_used_again_shares_its_weights(void **state)
{
    struct bench *bench = *state;
    good(bench, read_model(bench, "- Input: {shape: [5], name: a}\n"
                                  "- Input: {shape: [5], name: b}\n"
                                  "- Dense: {units: 3, name: tower, inputs: a}\n"
                                  "- tower: b\n"
                                  "- Multiply: [tower, 'tower:1']\n"
                                  "- Dense: 1\n"));
    const struct column_spec columns[] = {spec("label", 0, NULL), spec("b", 1, (int64_t[]){5}),
                                          spec("a", 1, (int64_t[]){5})};
    train_with(bench, "binary_crossentropy", "sgd");
    good(bench, build(bench, columns, COUNT(columns)));
    assert_int_equal(bench->graph.build->weight_count, 4);
    assert_int_equal(figures_of(bench->graph.build, &bench->model->layer[2])->parameters, 18);
    assert_int_equal(nodes_of(&bench->graph, &op_sgd), 4);
    /* Columns by name. */
    assert_int_equal(bench->graph.build->feed[0].tensor->column, 2);
    assert_int_equal(bench->graph.build->feed[1].tensor->column, 1);
    assert_int_equal(bench->tensors.output[0].label->column, 0);
}

/* Keras draws anew at each use; a model inside that is used twice is no other case. */
static void each_use_draws_for_itself(void **state)
{
    struct bench *bench = *state;
    uint64_t seeds[4];
    int count = 0;
    good(bench, read_model(bench, "- Dense: {units: 4, name: stem}\n"
                                  "- Dropout: {rate: 0.5, name: drop}\n"
                                  "- drop: stem\n"
                                  "- Sequential: {name: inside, inputs: stem, layers: [GaussianNoise: 0.1]}\n"
                                  "- inside: stem\n"
                                  "- Add: [drop, 'drop:1', inside, 'inside:1']\n"
                                  "- Dense: {units: 1, activation: sigmoid}\n"));
    good(bench, build_plain(bench));
    for (int i = 0; i < bench->graph.node_count; i++) {
        const struct node *node = bench->graph.node[i];
        if (node->op == &op_dropout && !node->backward)
            seeds[count++] = ((const struct dropout_attributes *)node->attributes)->seed;
        else if (node->op == &op_gaussian_noise && !node->backward)
            seeds[count++] = ((const struct noise_attributes *)node->attributes)->seed;
    }
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            assert_true(seeds[i] != seeds[k]);
    /* The first use is not counted: it draws as one in a model without the second. */
    good(bench, read_model(bench, "- Dense: {units: 4, name: stem}\n- Dropout: {rate: 0.5, name: drop}\n"
                                  "- Dense: {units: 1, activation: sigmoid}\n"));
    good(bench, build_plain(bench));
    for (int i = 0; i < bench->graph.node_count; i++)
        if (bench->graph.node[i]->op == &op_dropout && !bench->graph.node[i]->backward)
            assert_true(((const struct dropout_attributes *)bench->graph.node[i]->attributes)->seed == seeds[0]);
}

static void a_layer_named_like_a_class_is_used_again(void **state)
{
    struct bench *bench = *state;
    good(bench, read_model(bench, "- Dense: {units: 5, name: Dense}\n"
                                  "- Use: {layer: Dense, name: twice}\n"
                                  "- Use: {layer: Dense, inputs: Dense}\n"
                                  "- Add: [twice, 'Dense:2']\n"
                                  "- Dense: {units: 1, activation: sigmoid}\n"));
    good(bench, build_plain(bench));
    assert_int_equal(bench->model->layer_count, 3);
    assert_int_equal(bench->model->use_count, 5);
    assert_int_equal(bench->graph.build->weight_count, 4);
    assert_int_equal(read_model(bench, "- Dense: 5\n- Use: {inputs: dense}\n"), PLIM_BAD_JOB);
    assert_non_null(strstr(bench->error.message, "'layer' is missing"));
    assert_int_equal(read_model(bench, "- Dense: 5\n- Use: {layer: dens}\n"), PLIM_BAD_JOB);
    assert_non_null(strstr(bench->error.message, "'dens'"));
}

static void models_inside_models(void **state)
{
    struct bench *bench = *state;
    good(bench,
         read_model(bench, "- Input: {shape: [5], name: a}\n"
                           "- Sequential: {name: encoder, trainable: false, layers: [Dense: 3, ReLU, Dense: 2]}\n"
                           "- encoder: {inputs: a, name: again}\n"
                           "- Functional: {layers: [Input: {shape: [2], name: l}, Input: {shape: [2], name: r}, "
                           "Add: {inputs: [l, r], name: sum}], inputs: [encoder, again], name: pair}\n"
                           "- Dense: 1\n"));
    good(bench, build_plain(bench));
    assert_int_equal(bench->graph.build->weight_count, 6);
    assert_string_equal(bench->graph.build->weight[0].name, "encoder/dense/kernel");
    assert_string_equal(bench->graph.build->weight[2].name, "encoder/dense_1/kernel");
    assert_string_equal(bench->graph.build->weight[4].name, "dense_2/kernel");
    assert_int_equal(nodes_of(&bench->graph, &op_sgd), 2); /* the encoder is frozen */
    assert_int_equal(nodes_of(&bench->graph, &op_matmul_weight_gradient), 1);
}

static void order_of_the_text_does_not_matter(void **state)
{
    struct bench *bench = *state;
    good(bench, read_model(bench, "layers:\n"
                                  "- Input: {shape: [5], name: x}\n"
                                  "- Dense: {units: 1, inputs: sum, name: out}\n"
                                  "- Add: {inputs: [p, q], name: sum}\n"
                                  "- Dense: {units: 2, inputs: x, name: p}\n"
                                  "- Dense: {units: 2, inputs: x, name: q}\n"
                                  "outputs: out\nname: turned\n"));
    good(bench, build_plain(bench));
    assert_string_equal(bench->model->use[bench->model->use_count - 1].name, "out");
    assert_string_equal(bench->model->name, "turned");
    assert_string_equal(bench->graph.build->weight[0].name, "p/kernel");
}

/* ---- masks ---- */

static const struct node *node_of(const struct graph *graph, const struct op *op)
{
    for (int i = 0; i < graph->node_count; i++)
        if (graph->node[i]->op == op)
            return graph->node[i];
    return NULL;
}

static void masks_travel_with_their_tensors(void **state)
{
    struct bench *bench = *state;
    const struct column_spec columns[] = {spec("x", 2, (int64_t[]){7, 3}), spec("y", 0, NULL)};
    train_with(bench, "binary_crossentropy", "sgd");
    good(bench, read_model(bench, "[Masking: {mask_value: 2}, ReLU, GlobalAveragePooling1D, Dense: 1]"));
    good(bench, build(bench, columns, COUNT(columns)));
    const struct node *made = node_of(&bench->graph, &op_mask_of), *mean = node_of(&bench->graph, &op_sum_time);
    assert_non_null(made);
    assert_non_null(mean);
    assert_ptr_equal(mean->input[1], made->output[0]);
    assert_int_equal(made->output[0]->type, TYPE_BOOL);
    assert_null(use_made(bench->graph.build, &bench->model->use[2], 0)->mask);
    assert_null(bench->tensors.output[0].mask);
    /* What does not know masks loses them; without one every step counts. */
    good(bench, read_model(bench, "[Masking, Flatten, Dense: 1]"));
    good(bench, build(bench, columns, COUNT(columns)));
    assert_null(use_made(bench->graph.build, &bench->model->use[1], 0)->mask);
    good(bench, read_model(bench, "[ReLU, {GlobalAveragePooling1D: {keepdims: true}}, Flatten, Dense: 1]"));
    good(bench, build(bench, columns, COUNT(columns)));
    assert_null(node_of(&bench->graph, &op_sum_time)->input[1]);
    assert_int_equal(figures_of(bench->graph.build, &bench->model->layer[1])->output.rank, 3);
}

/* As Keras has it: where any input is; no mask where one input has none. */
static void merged_masks(void **state)
{
    struct bench *bench = *state;
    const struct column_spec columns[] = {spec("x", 2, (int64_t[]){7, 3}), spec("y", 0, NULL)};
    train_with(bench, "binary_crossentropy", "sgd");
    good(bench, read_model(bench, "[Input: {shape: [7, 3], name: i}, Masking: {name: a}, "
                                  "Masking: {name: b, inputs: i, mask_value: 1}, Maximum: {inputs: [a, b], name: m}, "
                                  "Add: [m, m], GlobalAveragePooling1D, Dense: 1]"));
    good(bench, build(bench, columns, COUNT(columns)));
    assert_int_equal(nodes_of(&bench->graph, &op_logical_or), 1);
    assert_ptr_equal(node_of(&bench->graph, &op_sum_time)->input[1], node_of(&bench->graph, &op_logical_or)->output[0]);
    good(bench, read_model(bench, "[Input: {shape: [7, 3], name: i}, Masking: {name: a}, Minimum: [a, i], "
                                  "GlobalAveragePooling1D, Dense: 1]"));
    good(bench, build(bench, columns, COUNT(columns)));
    assert_null(node_of(&bench->graph, &op_sum_time)->input[1]);
}

static void steps_share_the_layer(void **state)
{
    struct bench *bench = *state;
    const struct column_spec columns[] = {spec("x", 3, (int64_t[]){3, 5, 2}), spec("y", 0, NULL)};
    train_with(bench, "binary_crossentropy", "sgd");
    good(bench,
         read_model(bench, "[TimeDistributed: {layer: {Conv1D: {filters: 4, kernel_size: 2}}}, "
                           "TimeDistributed: Flatten, TimeDistributed: {layer: {Dense: 2}, name: last}, Flatten, "
                           "Dense: 1]"));
    for (int i = 0; i < 2; i++) { /* a second build counts the same */
        good(bench, build(bench, columns, COUNT(columns)));
        assert_int_equal(bench->graph.build->weight_count, 6);
        assert_int_equal(figures_of(bench->graph.build, &bench->model->layer[0])->parameters, 2 * 2 * 4 + 4);
        assert_string_equal(bench->graph.build->weight[0].name, "time_distributed/conv1d/kernel");
        assert_string_equal(bench->graph.build->weight[2].name, "last/dense/kernel");
    }
    const struct shape *shape = &figures_of(bench->graph.build, &bench->model->layer[1])->output;
    assert_int_equal(shape->rank, 3);
    assert_int_equal(shape->dim[1], 3);
    assert_int_equal(shape->dim[2], 16);
    good(bench, read_model(bench, "[TimeDistributed: Add, Flatten, Dense: 1]"));
    assert_int_equal(build(bench, columns, COUNT(columns)), PLIM_BAD_JOB);
    assert_non_null(strstr(bench->error.message, "time_distributed/add: takes at least 2 inputs"));
    assert_int_equal(read_model(bench, "[TimeDistributed: Input, Dense: 1]"), PLIM_BAD_JOB);
    assert_int_equal(read_model(bench, "[TimeDistributed, Dense: 1]"), PLIM_BAD_JOB);
    assert_int_equal(read_model(bench, "[TimeDistributed: {layer: {Desne: 3}}]"), PLIM_BAD_JOB);
    assert_non_null(strstr(bench->error.hint, "Dense"));
}

/* A model in it, used twice; several outputs; layers that stand behind their readers. */
static void models_inside_steps(void **state)
{
    struct bench *bench = *state;
    const struct column_spec columns[] = {spec("x", 3, (int64_t[]){3, 5, 2}), spec("y", 0, NULL)};
    train_with(bench, "binary_crossentropy", "sgd");
    good(bench, read_model(bench, "- TimeDistributed:\n"
                                  "    layer:\n"
                                  "      Functional:\n"
                                  "        name: m\n"
                                  "        outputs: again\n"
                                  "        layers:\n"
                                  "        - Add: {inputs: [l, s], name: a}\n"
                                  "        - Input: {shape: [5, 2], name: i}\n"
                                  "        - LSTM: {units: 4, return_state: true, name: l, inputs: i}\n"
                                  "        - Sequential: {layers: [Dense: 3, Dense: 4], name: s, inputs: l/1}\n"
                                  "        - s: {inputs: a, name: again}\n"
                                  "- Flatten\n"
                                  "- Dense: 1"));
    for (int i = 0; i < 2; i++) {
        good(bench, build(bench, columns, COUNT(columns)));
        assert_int_equal(bench->graph.build->weight_count, 3 + 4 + 2);
        assert_string_equal(bench->graph.build->weight[0].name, "time_distributed/m/l/lstm_cell/kernel");
        assert_string_equal(bench->graph.build->weight[3].name, "time_distributed/m/s/dense/kernel");
        assert_string_equal(bench->graph.build->weight[5].name, "time_distributed/m/s/dense_1/kernel");
        assert_int_equal(figures_of(bench->graph.build, &bench->model->layer[0])->parameters,
                         (2 + 4 + 1) * 16 + (4 + 1) * 3 + (3 + 1) * 4);
    }
    const struct shape *shape = &figures_of(bench->graph.build, &bench->model->layer[0])->output;
    assert_int_equal(shape->rank, 3);
    assert_int_equal(shape->dim[2], 4);
}

/* Models of nothing but an Input, ten times in each other: no layers, but 10^8 ways to them. */
static void models_of_nothing_are_counted(void **state)
{
    struct bench *bench = *state;
    char text[8192] = "- TimeDistributed: {layer: {Sequential: [";
    for (int level = 8; level >= 0; level--) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "Sequential: {name: s%d, layers: [%s", level,
                 level ? "" : "Input: {shape: [5]}]}");
    }
    for (int level = 1; level <= 8; level++) {
        for (int i = 0; i < 9; i++) {
            size_t length = strlen(text);
            snprintf(text + length, sizeof text - length, ", s%d: {name: u%d_%d}", level - 1, level, i);
        }
        strcat(text, "]}");
    }
    strcat(text, ", Dense: 2]}}");
    assert_int_equal(read_model(bench, text), PLIM_BAD_JOB);
    assert_non_null(strstr(bench->error.message, "counting those that are used again"));
}

/* A frozen layer or model freezes what is inside; `reverse:` is the use's own. */
static void words_reach_layers_inside(void **state)
{
    struct bench *bench = *state;
    const struct column_spec columns[] = {spec("x", 2, (int64_t[]){3, 5}), spec("y", 0, NULL)};
    train_with(bench, "binary_crossentropy", "sgd");
    good(bench,
         read_model(bench, "[Sequential: {trainable: false, layers: [TimeDistributed: {layer: {Sequential: [Dense: 4, "
                           "Dense: 3]}}, Bidirectional: {layer: {GRU: 2}}]}, Dense: 1]"));
    good(bench, build(bench, columns, COUNT(columns)));
    for (int i = 0; i < bench->graph.build->weight_count; i++)
        assert_int_equal(bench->graph.build->weight[i].trainable, i >= bench->graph.build->weight_count - 2);
    good(bench,
         read_model(bench, "[TimeDistributed: {layer: {Functional: [ReversibleEmbedding: {input_dim: 7, output_dim: 4, "
                           "name: t}, t: {reverse: true, name: back}]}}, Flatten, Dense: 1]"));
    good(bench, build(bench, columns, COUNT(columns)));
    const struct shape *shape = &figures_of(bench->graph.build, &bench->model->layer[0])->output;
    assert_int_equal(shape->dim[shape->rank - 1], 7);
}

/* Text of 64 tokens a sample, and the next token at each place: 256 in a batch. */
static void build_language_in(struct bench *bench, const char *model, bool accuracy, enum type compute)
{
    const struct column_spec columns[] = {
        {.name = "tokens", .type = TYPE_I32, .shape = shape_of(1, (int64_t[]){64})},
        {.name = "next", .type = TYPE_I32, .shape = shape_of(1, (int64_t[]){64})},
    };
    train_with(bench, "sparse_categorical_crossentropy", "sgd");
    bench->training.metric_count = accuracy;
    good(bench, read_model(bench, model));
    model_set_policy(bench->model, compute);
    good(bench, build(bench, columns, COUNT(columns)));
}

static void build_language(struct bench *bench, const char *model, bool accuracy)
{
    build_language_in(bench, model, accuracy, TYPE_F32);
}

static bool by_blocks(const struct bench *bench)
{
    int fused = nodes_of(&bench->graph, &op_vocabulary_crossentropy);
    assert_int_equal(nodes_of(&bench->graph, &op_vocabulary_crossentropy_gradient), fused);
    assert_int_equal(nodes_of(&bench->graph, &op_softmax_crossentropy), 1 - fused);
    return fused == 1;
}

static void scores_of_many_classes_are_made_by_blocks(void **state)
{
    struct bench *bench = *state;
    const char *dense = "- Embedding: {input_dim: 9000, output_dim: 4}\n"
                        "- Dense: {units: 9000, activation: softmax}\n";
    const char *few = "- Embedding: {input_dim: 9000, output_dim: 4}\n"
                      "- Dense: {units: 8000, activation: softmax}\n";
    const char *tied = "- ReversibleEmbedding: {input_dim: 9000, output_dim: 4, name: table}\n"
                       "- Dense: {units: 4, name: middle}\n"
                       "- table: {inputs: middle, reverse: true}\n"
                       "- Softmax\n";
    build_language(bench, dense, false);
    assert_true(by_blocks(bench));
    build_language(bench, dense, true); /* the accuracy comes from the same blocks */
    assert_true(by_blocks(bench));
    assert_int_equal(nodes_of(&bench->graph, &op_sparse_accuracy), 0);
    build_language(bench, few, false);
    assert_false(by_blocks(bench));
    build_language(bench, tied, false);
    assert_true(by_blocks(bench));
    assert_int_equal(bench->graph.build->weight_count, 3);
    assert_int_equal(nodes_of(&bench->graph, &op_matmul), 2); /* middle, and its dx */
    build_language_in(bench, tied, false, TYPE_BF16);
    assert_true(by_blocks(bench)); /* through the cast that the loss reads them by */
    build_language_in(bench, dense, false, TYPE_F16);
    assert_true(by_blocks(bench));
    build_language_in(bench, dense, true, TYPE_BF16);
    assert_true(by_blocks(bench));
    assert_int_equal(nodes_of(&bench->graph, &op_sparse_accuracy), 0);
}

/* 400 x 400 floats of a kernel are a copy of 320,000 bytes in bf16. */
static void copies_of_weights_are_not_kept(void **state)
{
    struct bench *bench = *state;
    const struct column_spec columns[] = {{.name = "x", .type = TYPE_F32, .shape = shape_of(1, (int64_t[]){400})},
                                          {.name = "y", .type = TYPE_I32, .shape = {.rank = 0}}};
    struct chains chains;
    train_with(bench, "sparse_categorical_crossentropy", "sgd");
    good(bench, read_model(bench, "[Dense: 400, Dense: 400, Dense: 400, Dense: {units: 3, activation: softmax}]"));
    model_set_policy(bench->model, TYPE_BF16);
    good(bench, build(bench, columns, COUNT(columns)));
    good(bench, chain_find(&chains, &bench->graph, &bench->error));
    int waiting = 0, most = 0, large = 0;
    for (int n = 0; n < chains.node_count; n++) {
        const struct node *node = chains.order[n];
        const struct tensor *x = node->input_count ? node->input[0] : NULL;
        bool copy = node->op == &op_cast && x->kind == KIND_WEIGHT && shape_count(&x->shape) == 160000;
        large += copy;
        waiting += copy;
        for (int i = 0; i < node->input_count; i++)
            waiting -= node->input[i] && node->input[i]->producer && node->input[i]->producer->op == &op_cast &&
                       node->input[i]->producer->input[0]->kind == KIND_WEIGHT &&
                       shape_count(&node->input[i]->shape) == 160000;
        most = waiting > most ? waiting : most;
    }
    assert_int_equal(large, 5); /* three in forward, and again for the dx of the last two */
    assert_int_equal(waiting, 0);
    assert_int_equal(most, 1);
}

/* ---- what is refused ---- */

/* In Keras an op has no policy: what is float16 stays so until a layer reads it. */
static void ops_keep_their_type(void **state)
{
    struct bench *bench = *state;
    good(bench,
         read_model(bench,
                    "[Op: {op: cast, arguments: {dtype: float16}}, Op: {op: multiply, arguments: {b: 2}}, Dense: 1]"));
    good(bench, build_plain(bench));
    int found = 0;
    for (int i = 0; i < bench->graph.node_count; i++) {
        const struct node *node = bench->graph.node[i];
        if (node->op != &op_multiply || node->backward)
            continue;
        assert_int_equal(node->output[0]->type, TYPE_F16);
        found++;
    }
    assert_int_equal(found, 1);
}

static void bad_graphs_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"- Dense: {units: 3, name: first}\n- Dense: {units: 1, inputs: frist}", PLIM_BAD_JOB, "job.yaml:2:29",
         "no layer named 'frist'", "did you mean 'first'?"},
        {"- Dense: {units: 3, name: tower}\n- towr", PLIM_BAD_JOB, "job.yaml:2:3", "unknown layer 'towr'", "'tower'"},
        {"- Input: {shape: [5], name: x}\n- Add: {inputs: [x, b], name: a}\n- Add: {inputs: [x, a], name: b}",
         PLIM_BAD_JOB, "job.yaml:2:3", "circle: 'a' reads 'b', which reads 'a'", ""},
        {"- Dense: {units: 3, name: a, inputs: a}", PLIM_BAD_JOB, "job.yaml:1:3", "circle: 'a' reads 'a'", ""},
        {"- Dense: {units: 3, name: a}\n- Dense: {units: 3, name: b}\n- Dense: {units: 1, inputs: a}", PLIM_BAD_JOB,
         "job.yaml:2:3", "reads layer 'b'", "take it out"},
        {"- Dense: {units: 3, name: a}\n- Dense: {units: 1, inputs: [a, a]}", PLIM_BAD_JOB, "job.yaml:2:3",
         "takes 1 input, got 2", ""},
        {"layers: [Dense: {units: 3, name: a}]\noutputs: b", PLIM_BAD_JOB, "job.yaml:2:10", "no layer named 'b'",
         "'a'"},
        {"- Dense: {units: 3, name: a}\n- a: {inputs: a, reverse: true}", PLIM_BAD_JOB, "job.yaml:2", "'a' has none",
         "ReversibleEmbedding"},
        {"- ReversibleEmbedding: {input_dim: 3, output_dim: 2, reverse: true}", PLIM_BAD_JOB, "job.yaml:1",
         "first use cannot be reverse", "second use"},
        {"- Op: {op: split}", PLIM_BAD_JOB, "job.yaml:1:3", "1 to 64 parts", "indices_or_sections: 2"},
        {"- Op: {op: split, arguments: {indices_or_sections: 2, axs: 1}}", PLIM_BAD_JOB, "job.yaml:1:3",
         "unknown argument of split 'axs'", "'axis'"},
        {"- Op: {arguments: 3}", PLIM_BAD_JOB, "job.yaml:1:3", "'op' is missing", "op: mean"},
        {"- Op: {op: add, arguments: {b: [1, [2]]}}", PLIM_BAD_JOB, "job.yaml:1:", "different lengths", ""},
        {"- Op: {op: add, arguments: {a: {value: [1, 2], dtype: text}}}", PLIM_BAD_JOB, "job.yaml:1:", "dtype 'text'",
         ""},
        {"- Op: {op: add, arguments: {a: {value: [1, 2], type: int8}}}", PLIM_BAD_JOB,
         "job.yaml:1:", "unknown key 'type'", "dtype"},
        {"- Op: {op: add, arguments: {a: {value: '0000', dtype: int64, shape: [1048576]}}}", PLIM_BAD_JOB,
         "job.yaml:1:", "16777216 hexadecimal digits", ""},
        {"- Op: {op: add, arguments: {a: {value: '0000c07f', dtype: float32, shape: [1]}}}", PLIM_BAD_JOB,
         "job.yaml:1:", "element 0 is not finite", ""},
        {"- Op: {op: add, arguments: {a: {value: [9007199254740993], dtype: int64}}}", PLIM_BAD_JOB,
         "job.yaml:1:", "9007199254740993 is no int64", ""},
        {"layer: [Dense: 3]", PLIM_BAD_JOB, "job.yaml:1:1", "unknown key 'layer'", "layers"},
        {"layers: []", PLIM_BAD_JOB, "job.yaml:1", "list of layers", ""},
        {"- Sequential: []", PLIM_BAD_JOB, "job.yaml:1", "list of layers", ""},
        {"- Sequential:", PLIM_BAD_JOB, "job.yaml:1", "list of layers", ""},
        {"- Dense: {units: 3, inputs: {a: b}}", PLIM_BAD_JOB, "job.yaml:1", "names of layers", ""},
        {"- Input: {shape: [3], name: a}\n- Input: {shape: [3], inputs: a}", PLIM_BAD_JOB, "job.yaml:2",
         "reads the data", ""},
        {"- Dense: {units: 3, name: a}\n- a: {inputs: a, units: 4}", PLIM_BAD_JOB, "job.yaml:2", "unknown key 'units'",
         ""},
        {"- Functional: [Input: {shape: [5], name: a}, Input: {shape: [5], name: b}, Add: [a, b]]\n- Dense: 1",
         PLIM_BAD_JOB, "job.yaml:1", "functional: takes 2 inputs, got 1", ""},
    };
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(refusals); i++)
        expect(bench, read_model(bench, refusals[i].text), &refusals[i]);
}

static void bad_steps_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"- TimeDistributed: {layer: {Functional: {layers: [Dense: 3], outputs: a}}}", PLIM_BAD_JOB, "job.yaml:1",
         "outputs: there is no layer named 'a'", ""},
        {"- TimeDistributed: {layer: {Functional: {layers: [Dense: 3, Add: [dense, dence]]}}}", PLIM_BAD_JOB,
         "job.yaml:1", "there is no layer named 'dence'", "did you mean 'dense'?"},
        {"- TimeDistributed: {layer: {Functional: {layers: [Add: {inputs: [b, b], name: a}, Add: {inputs: [a, a], name: b}]}}}",
         PLIM_BAD_JOB, "job.yaml:1", "in a circle", ""},
        {"- TimeDistributed: {layer: {Functional: {layers: [Dense: 3, Dense: {units: 2, inputs: [dense, dense]}]}}}",
         PLIM_BAD_JOB, "job.yaml:1", "takes 1 input, got 2", ""},
        {"- TimeDistributed: {layer: {Functional: {layers: [Use: {layer: a}]}}}", PLIM_BAD_JOB, "job.yaml:1",
         "no layer above is named 'a'", ""},
        {"- TimeDistributed: {layer: {Functional: {layers: [Dense: 3, Use: {layer: dense, reverse: true}]}}}",
         PLIM_BAD_JOB, "job.yaml:1", "reverse", ""},
        {"- TimeDistributed: {layer: {Functional: {layers: [Dense: 3], output: dense}}}", PLIM_BAD_JOB, "job.yaml:1",
         "output", "outputs"},
        {"- TimeDistributed: {layer: {Functional: [Dense: {units: 3, name: a}, a: {name: b}, Dense: {units: 3, name: b}]}}",
         PLIM_BAD_JOB, "job.yaml:1", "two layers are named 'b'", ""},
        {"- TimeDistributed: {layer: {Functional: [Dense: 3, {Flatten: {}, Use: {layer: dense}}]}}", PLIM_BAD_JOB,
         "job.yaml:1", "one layer an entry", ""},
        {"- TimeDistributed: {layer: {Functional: {layers: [Dense: 3], outputs: [dense, dense]}}}", PLIM_UNSUPPORTED,
         "job.yaml:1", "'dense' twice", ""},
        {"- TimeDistributed: {layer: {Functional: {layers: [Input: {shape: [3]}, Input: {shape: [3]}, Add: [input_layer, input_layer_1]]}}}",
         PLIM_UNSUPPORTED, "job.yaml:1", "one Input and one output, not of 2 and 1", ""},
        {"- TimeDistributed: {layer: {Functional: [Dense: 3, Dense: {units: 4, inputs: dense, name: b}, Flatten: {inputs: dense}]}}",
         PLIM_BAD_JOB, "job.yaml:1", "reads layer 'b'", ""},
        {"- TimeDistributed: {layer: {Sequential: [Input: {shape: [3]}]}}", PLIM_BAD_JOB, "job.yaml:1", "hands on", ""},
        {"- TimeDistributed: {layer: {Sequential: [Functional: [Input: {shape: [3], name: a}, Input: {shape: [3], name: b}, Add: [a, b]]]}}",
         PLIM_BAD_JOB, "job.yaml:1", "functional: takes 2 inputs, got 1", ""},
        {"- TimeDistributed: {layer: {Sequential: [Sequential: [Dense: {units: 3, nmae: a}]]}}", PLIM_BAD_JOB,
         "job.yaml:1", "unknown key 'nmae'", "name"},
        {"- TimeDistributed: {layer: {LSTM: {units: 3, return_state: true}}}", PLIM_UNSUPPORTED, "job.yaml:1",
         "several outputs", ""},
        {"- TimeDistributed: {layer: {Sequential: []}}", PLIM_BAD_JOB, "job.yaml:1", "expected a list of layers", ""},
        {"- TimeDistributed: {layer: {Sequential: [Dense: {units: 3, name: a}, Dense: {units: 4, name: a}]}}",
         PLIM_BAD_JOB, "job.yaml:1", "two layers are named", ""},
    };
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(refusals); i++)
        expect(bench, read_model(bench, refusals[i].text), &refusals[i]);
}

static void shapes_name_layer_and_inputs(void **state)
{
    static const struct refusal refusals[] = {
        {"- Dense: {units: 3, name: a}\n- Dense: {units: 4, name: b}\n- Add: {inputs: [a, b], name: sum}\n- Dense: 1",
         PLIM_BAD_JOB, "job.yaml:3:3", "sum, fed with a (None, 3) and b (None, 4)", ""},
        {"- Dense: {units: 3, name: a}\n- a\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3",
         "a/kernel is (5, 3) after the layer's first use; this one wants (3, 3)", ""},
        {"- Dense: {units: 3, name: a}\n- Subtract: [a, a, a]\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:2:3",
         "takes 2 inputs, got 3", ""},
        {"- Input: {shape: [5], name: x}\n- Input: {shape: [5], name: left}\n- Add: [x, left]\n- Dense: 1",
         PLIM_BAD_JOB, "job.yaml", "no column for the input 'left'", "columns are x, y"},
        {"- Input: {shape: [5], name: p}\n- Input: {shape: [5], name: q}\n- Add: [p, q]\n- Dense: 1", PLIM_BAD_JOB,
         "job.yaml", "has 2 inputs and a label; the data has 2 columns", ""},
        {"- Dense: 1\n- Op: {op: stop_gradient}", PLIM_BAD_JOB, "job.yaml", "no weight gets a gradient", ""},
        {"- Op: {op: meen}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "no op 'meen'", "'mean'"},
        {"- Op: {op: flip, arguments: {axs: 1}}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "unknown key 'axs'",
         "'axis'"},
        {"- Op: {op: add}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "one and a number", ""},
        {"- Op: {op: add, arguments: {b: [1, 2, 3]}}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "do not broadcast",
         ""},
        {"- Op: {op: matmul, arguments: {b: 3}}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "matmul", ""},
        {"- Op: {op: resize, arguments: {size: [3, 3]}}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "pictures", ""},
        {"- Op: {op: get_item, arguments: {key: [0]}}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "the batch stays",
         ""},
        {"- Op: {op: get_item, arguments: {key: [':', 5]}}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "no such place",
         ""},
        {"- Op: {op: get_item, arguments: {key: [':', 9223372036854775807]}}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3",
         "no such place", ""},
        {"- Op: {op: get_item, arguments: {key: [':', '1:2:3:4']}}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3",
         "a key is a place", ""},
        {"- Op: {op: get_item, arguments: {key: [':', ':', ':']}}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3",
         "more keys than axes", ""},
        {"- Op: {op: einsum, arguments: 'bi->bj'}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "that no input has", ""},
        {"- Op: {op: einsum, arguments: 'bii->b'}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "each once", ""},
        {"- Op: {op: einsum, arguments: 'bij->bi'}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3", "a letter an axis", ""},
        {"- Op: {op: split, arguments: {indices_or_sections: 2}, name: s}\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:1:3",
         "cannot be cut so", ""},
        {"- Op: {op: split, arguments: {indices_or_sections: [3, 2]}, name: s}\n- Dense: 1", PLIM_BAD_JOB,
         "job.yaml:1:3", "cannot be cut so", ""},
    };
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(refusals); i++) {
        good(bench, read_model(bench, refusals[i].text));
        expect(bench, build_plain(bench), &refusals[i]);
    }
}

/* Two uses of each model inside the next: 2^n layers out of a short text. */
static void a_bomb_of_models_is_refused(void **state)
{
    struct bench *bench = *state;
    struct text text;
    text_init(&text, bench->budget, TAG_PLANNER);
    for (int i = 0; i < 15; i++)
        text_add(&text, "[Sequential: {name: m, layers: ");
    text_add(&text, "[Dense: {units: 5, name: d}, d, d, d]");
    for (int i = 0; i < 15; i++)
        text_add(&text, "}, m, m, m]");
    assert_int_equal(read_model(bench, text.data), PLIM_BAD_JOB);
    assert_non_null(strstr(bench->error.message, "layers, counting those that are used again; at most 200000"));
    text_clear(&text);
    for (int i = 0; i < 17; i++)
        text_add(&text, "[Sequential: ");
    text_add(&text, "[Dense: 5]");
    for (int i = 0; i < 17; i++)
        text_add(&text, "]");
    assert_int_equal(read_model(bench, text.data), PLIM_BAD_JOB);
    assert_non_null(strstr(bench->error.message, "one inside the other"));
    text_release(&text);
}

/* ---- several outputs ---- */

#define SEQUENCES "- Input: {shape: [7, 5], name: source}\n- Input: {shape: [6, 3], name: target}\n"

static plim_status build_sequences(struct bench *bench)
{
    const struct column_spec columns[] = {
        spec("source", 2, (int64_t[]){7, 5}), spec("target", 2, (int64_t[]){6, 3}), {.name = "y", .type = TYPE_I32}};
    train_with(bench, "sparse_categorical_crossentropy", "sgd");
    return build(bench, columns, COUNT(columns));
}

/* Gradients flow through both states: every weight of the encoder has one. */
static void states_go_from_layer_to_layer(void **state)
{
    struct bench *bench = *state;
    struct text text;
    text_init(&text, bench->budget, TAG_PLANNER);
    good(bench, read_model(bench, SEQUENCES "- LSTM: {units: 4, return_state: true, name: encoder, inputs: source}\n"
                                            "- LSTM: {units: 4, inputs: [target, encoder/1, encoder/2]}\n"
                                            "- Dense: {units: 3, activation: softmax}\n"));
    good(bench, build_sequences(bench));
    assert_int_equal(bench->model->layer[2].outputs, 3);
    assert_int_equal(nodes_of(&bench->graph, &op_lstm), 2);
    assert_int_equal(nodes_of(&bench->graph, &op_lstm_gradient), 2);
    assert_true(bench->model->use[3].input[1].part == 1 && bench->model->use[3].input[2].part == 2);
    good(bench, model_summary(&text, bench->graph.build, 120));
    assert_non_null(strstr(text.data, "[(None, 4), (None, 4), (None, 4)]"));
    assert_non_null(strstr(text.data, "encoder[0][2]"));
    text_release(&text);
}

/* Outputs of the model may be states: a label for each. */
static void states_may_be_outputs(void **state)
{
    struct bench *bench = *state;
    const struct column_spec columns[] = {spec("x", 2, (int64_t[]){7, 5}), spec("a", 1, (int64_t[]){4}),
                                          spec("b", 1, (int64_t[]){4})};
    good(bench,
         read_model(bench, "layers: [{LSTM: {units: 4, return_state: true, name: rnn}}]\noutputs: [rnn/2, rnn]"));
    train_with(bench, "binary_crossentropy", "sgd");
    bench->training.metric_count = 0;
    good(bench, build(bench, columns, COUNT(columns)));
    assert_string_equal(output_name(bench->model, 0), "rnn/2");
    assert_string_equal(output_name(bench->model, 1), "rnn");
    assert_ptr_not_equal(bench->tensors.output[0].value, bench->tensors.output[1].value);
    assert_int_equal(nodes_of(&bench->graph, &op_lstm_gradient), 1);
}

/* What a model inside makes is called likewise; each use of it has outputs of its own. */
static void models_inside_have_several_outputs(void **state)
{
    struct bench *bench = *state;
    good(bench,
         read_model(bench, SEQUENCES
                    "- Functional: {name: encoder, inputs: source, outputs: [rnn/2, rnn/1],\n"
                    "    layers: [{Input: {shape: [7, 5]}}, {LSTM: {units: 4, return_state: true, name: rnn}}]}\n"
                    "- encoder: source\n"
                    "- LSTM: {units: 4, name: decoder, inputs: [target, 'encoder:1/1', encoder/0]}\n"
                    "- Dense: {units: 3, activation: softmax}\n"));
    good(bench, build_sequences(bench));
    const struct use *decoder = &bench->model->use[6];
    assert_string_equal(decoder->name, "decoder");
    assert_int_equal(decoder->input[1].from, 5);
    assert_int_equal(decoder->input[1].part, 1);
    assert_int_equal(decoder->input[2].from, 3);
    assert_int_equal(decoder->input[2].part, 2);
}

static void outputs_that_are_not_there_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"- Dense: {units: 3, name: a}\n- Dense: {units: 3, inputs: a/1}", PLIM_BAD_JOB, "job.yaml:2:29",
         "layer 'a' has 1 output, no 'a/1'", ""},
        {"- LSTM: {units: 3, name: a, return_state: true}\n- Dense: {units: 3, inputs: a/3}", PLIM_BAD_JOB,
         "job.yaml:2:29", "layer 'a' has 3 outputs, no 'a/3'", "the last one is a/2"},
        {"- GRU: {units: 3, name: a, return_state: true}\n- Dense: {units: 3, inputs: a/-1}", PLIM_BAD_JOB,
         "job.yaml:2:29", "no 'a/-1'", ""},
        {"- GRU: {units: 3, name: a, return_state: true}\n- Dense: {units: 3, inputs: a/99999999999999999999}",
         PLIM_BAD_JOB, "job.yaml:2:29", "no layer named", ""},
        {"- GRU: {units: 3, name: a, return_state: true}\n- Dense: {units: 3, inputs: b/1}", PLIM_BAD_JOB,
         "job.yaml:2:29", "no layer named 'b'", ""},
        {"layers: [{GRU: {units: 3, name: a, return_state: true}}]\noutputs: [a, a/0]", PLIM_UNSUPPORTED,
         "job.yaml:2:14", "outputs: 'a/0' twice", ""},
    };
    static const struct refusal misfits[] = {
        {SEQUENCES "- LSTM: {units: 4, return_state: true, name: encoder, inputs: source}\n"
                   "- LSTM: {units: 5, name: decoder, inputs: [target, encoder/1, encoder/2]}\n- Dense: 3",
         PLIM_BAD_JOB, "job.yaml:4:3", "decoder: a state must be (batch, 5), got encoder/1 (None, 4)", ""},
        {SEQUENCES "- LSTM: {units: 4, return_state: true, name: encoder, inputs: source}\n"
                   "- LSTM: {units: 4, name: decoder, inputs: [target, encoder/1]}\n- Dense: 3",
         PLIM_BAD_JOB, "job.yaml:4:3", "decoder: takes a sequence, or one and 2 states, got 2 inputs", ""},
    };
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(refusals); i++)
        expect(bench, read_model(bench, refusals[i].text), &refusals[i]);
    for (int i = 0; i < COUNT(misfits); i++) {
        good(bench, read_model(bench, misfits[i].text));
        expect(bench, build_sequences(bench), &misfits[i]);
    }
}

/* ---- size ---- */

/* Written backwards, so that the order has to be found from the far end. */
static void many_layers_are_quick(void **state)
{
    struct bench *bench = *state;
    struct text text;
    text_init(&text, bench->budget, TAG_PLANNER);
    text_add(&text, "layers:\n- Input: {shape: [5], name: x}\n- Dense: {units: 1, inputs: r0, name: out}\n");
    for (int i = 0; i < 2999; i++)
        text_add(&text, "- ReLU: {inputs: r%d, name: r%d}\n", i + 1, i);
    text_add(&text, "- ReLU: {inputs: x, name: r2999}\noutputs: out\n");
    uint64_t begin = clock_ns();
    good(bench, read_model(bench, text.data));
    good(bench, build_plain(bench));
    double seconds = (double)(clock_ns() - begin) * 1e-9;
    assert_int_equal(bench->model->use_count, 3002);
    assert_string_equal(bench->model->use[1].name, "r2999");
    assert_true(seconds < 5); /* it takes a tenth of one; squares would not do */
    text_release(&text);
}

/* 5,000 layers: graph, gradients and plan. The time is a tenth of this on an idle machine; squares would take ten times
   as long. The bytes are everything but weights and values: they do not depend on the machine. */
static void five_thousand_layers_are_planned(void **state)
{
    struct bench *bench = *state;
    struct text text;
    struct backend *backend = NULL;
    struct program *program = NULL;
    const struct column_spec columns[] = {spec("x", 1, (int64_t[]){100}), spec("y", 0, NULL)};
    text_init(&text, bench->budget, TAG_PLANNER);
    for (int i = 0; i < 5000; i++)
        text_add(&text, "- Dense: 100\n");
    text_add(&text, "- Dense: 1\n");
    uint64_t begin = clock_ns(), before = budget_usage(bench->budget).now;
    good(bench, read_model(bench, text.data));
    train_with(bench, "binary_crossentropy", "sgd");
    good(bench, build(bench, columns, COUNT(columns)));
    good(bench, cpu_backend.open(&backend, bench->budget, &bench->error));
    backend_threads(backend, 2);
    struct program_input input = {.budget = bench->budget, .backend = backend, .threads = 2, .train = &bench->graph};
    good(bench, program_make(&program, &input, &bench->error));
    double seconds = (double)(clock_ns() - begin) * 1e-9;
    uint64_t held = budget_usage(bench->budget).now - before, peak = budget_usage(bench->budget).peak - before;
    print_message("%.2f s, %.1f MiB, at most %.1f MiB\n", seconds, (double)held / 0x1p20, (double)peak / 0x1p20);
    assert_true(seconds < 5);
    assert_true(held < (uint64_t)24 << 20);
    assert_true(peak < (uint64_t)32 << 20);
    program_free(program);
    backend->type->close(backend);
    text_release(&text);
}

/* ---- summary ---- */

static void summary_says_what_is_connected(void **state)
{
    struct bench *bench = *state;
    struct text text;
    text_init(&text, bench->budget, TAG_PLANNER);
    good(bench, read_model(bench, "- Input: {shape: [5], name: x}\n"
                                  "- Sequential: {name: encoder, layers: [Dense: 3, ReLU]}\n"
                                  "- encoder: x\n"
                                  "- Add: {inputs: [encoder, 'encoder:1'], name: sum}\n"
                                  "- Dense: {units: 1, trainable: false}\n"));
    good(bench, build_plain(bench));
    good(bench, model_summary(&text, bench->graph.build, 100));
    compare_golden("summary_graph.txt", text.data);
    text_release(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_branch_comes_together_again),
        TEST(a_layer_used_again_shares_its_weights),
        TEST(each_use_draws_for_itself),
        TEST(a_layer_named_like_a_class_is_used_again),
        TEST(models_inside_models),
        TEST(order_of_the_text_does_not_matter),
        TEST(masks_travel_with_their_tensors),
        TEST(merged_masks),
        TEST(steps_share_the_layer),
        TEST(models_inside_steps),
        TEST(words_reach_layers_inside),
        TEST(models_of_nothing_are_counted),
        TEST(scores_of_many_classes_are_made_by_blocks),
        TEST(copies_of_weights_are_not_kept),
        TEST(ops_keep_their_type),
        TEST(bad_graphs_are_refused),
        TEST(bad_steps_are_refused),
        TEST(shapes_name_layer_and_inputs),
        TEST(states_go_from_layer_to_layer),
        TEST(states_may_be_outputs),
        TEST(models_inside_have_several_outputs),
        TEST(outputs_that_are_not_there_are_refused),
        TEST(a_bomb_of_models_is_refused),
        TEST(many_layers_are_quick),
        TEST(five_thousand_layers_are_planned),
        TEST(summary_says_what_is_connected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
