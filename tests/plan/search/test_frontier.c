/* test_frontier.c - plans that trade time for memory: random graphs train with the same bits whatever is dropped or
   spilled, the model of a step says what the program then takes, and the search finds nearly the best of all choices.

   `test_frontier N` tries N random graphs instead of a few. */
#include <errno.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/numbers/count.h"
#include "base/numbers/random.h"
#include "ops/elementwise/noise.h"
#include "plan/search/drop_search.h"
#include "plan/search/frontier.h"
#include "plan/search/op_time.h"
#include "training_run.h"

#define BATCH       1024
#define WIDTH       64 /* so many rows of it are worth dropping */
#define MOST_VALUES 24
#define CHOICE_SEED 5 /* of a graph that has a choice */

static int graphs = 12;
static const struct technique_rules any_value = {.spill = SPILL_NEVER};
static const struct technique_rules with_disk = {.disk_bytes = UINT64_MAX};
static const struct technique_rules disk_alone = {.recompute = {.kind = RECOMPUTE_NEVER}, .disk_bytes = UINT64_MAX};
static const struct technique_rules all_on_disk = {.spill = SPILL_ALWAYS, .disk_bytes = UINT64_MAX};
static const struct step_freedom may_drop = {.may_drop = true};

/* ---- random graphs ----------------------------------------------------- */

struct random {
    uint64_t seed;
    int count;
};

static int below(struct random *random, int n)
{
    return (int)(random_key(random->seed, (uint64_t)random->count++, 1) % (uint64_t)n);
}

static struct tensor *dropout(struct graph *graph, struct tensor *x, int number)
{
    struct dropout_attributes attributes = {.rate = 0.25, .scale = 1 / 0.75, .seed = (uint64_t)number};
    struct tensor *iteration = graph_named(graph, "optimizer/iteration");
    return graph_add(graph, &op_dropout, (struct tensor *[]){x, iteration}, 2, &attributes, sizeof attributes);
}

static struct tensor *layer_normal(struct made *made, struct graph *graph, const char *name, struct tensor *x)
{
    struct layer_normalize_attributes attributes = {.epsilon = 1e-3, .axes = 1, .kind = NORMAL_LAYER};
    struct tensor *gamma = made_weight(made, graph, name, rank_1(WIDTH));
    return graph_add(graph, &op_layer_normalize, (struct tensor *[]){x, gamma, NULL}, 3, &attributes,
                     sizeof attributes);
}

static struct tensor *batch_normal(struct made *made, struct graph *graph, const char *name, struct tensor *x)
{
    struct batch_normalize_attributes normal = {.epsilon = 1e-3};
    struct batch_statistics_attributes f32 = {.type = TYPE_F32};
    struct tensor *moments = graph_add(graph, &op_batch_moments, &x, 1, NULL, 0);
    struct tensor *statistics = graph_add(graph, &op_batch_statistics,
                                          (struct tensor *[]){moments, graph_output(moments, 1)}, 2, &f32, sizeof f32);
    struct tensor *gamma = made_weight(made, graph, name, rank_1(WIDTH));
    return graph_add(graph, &op_batch_normalize,
                     (struct tensor *[]){x, statistics, graph_output(statistics, 1), gamma, NULL}, 5, &normal,
                     sizeof normal);
}

/* One more value from values that are there. */
static struct tensor *next_value(struct made *made, struct graph *graph, struct tensor *const *value, int count,
                                 struct random *random)
{
    char name[32];
    struct tensor *x = value[count - 1 - below(random, count < 2 ? count : 2)];
    snprintf(name, sizeof name, "value_%d", count);
    graph->layer = "value";
    switch (below(random, made->weight_count + 2 < MOST_MADE ? 7 : 4)) {
    case 0:
        return unary(graph, &op_gelu, x);
    case 1:
        return binary(graph, &op_add, x, value[below(random, count)]);
    case 2:
        return binary(graph, &op_multiply, x, value[below(random, count)]);
    case 3:
        return dropout(graph, x, count);
    case 4:
        return layer_normal(made, graph, name, x);
    case 5:
        return batch_normal(made, graph, name, x);
    default:
        return made_dense(made, graph, name, x, WIDTH);
    }
}

/* A graph of so many random values over (x, label), as a model is built: with what is encoded and cheap to compute
   again. */
static void build(struct run *run, uint64_t seed, int values)
{
    struct graph *graph = &run->graph;
    struct made *made = &run->made;
    struct random random = {.seed = seed};
    struct tensor *value[MOST_VALUES];
    plim_error error = {0};
    graph_init(graph, run->budget, BATCH);
    made->plain = true;
    value[0] = graph_input(graph, "x", 0, TYPE_F32, rank_2(BATCH, WIDTH));
    struct tensor *label = graph_input(graph, "label", 1, TYPE_F32, rank_1(BATCH));
    graph_state(graph, "optimizer/iteration", TYPE_I64, rank_1(1));
    value[0] = made_dense(made, graph, "first", value[0], WIDTH);
    for (int i = 1; i < values; i++)
        value[i] = next_value(made, graph, value, i, &random);
    struct tensor *y = made_dense(made, graph, "last", value[values - 1], 1);
    made_finish(made, graph, binary(graph, &op_sigmoid_crossentropy, y, label), true);
    if (graph_check(graph, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    assert_int_equal(prune(graph, &error), PLIM_OK);
    assert_int_equal(encode_kept(graph, &error), PLIM_OK);
    assert_int_equal(recompute(graph, &error), PLIM_OK);
}

static void open_graph(struct run *run, uint64_t seed, int values, const struct frontier_point *point, int threads)
{
    plim_error error = {0};
    begin_run(run);
    build(run, seed, values);
    run->last_batch = BATCH - 100;
    run->spilled = point ? point->spilled : NULL;
    run->spilled_count = point ? point->spilled_count : 0;
    if (point && frontier_apply(&run->graph, point, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    open_run(run, threads);
}

static uint8_t *train(struct run *run)
{
    static const int64_t counts[] = {BATCH, BATCH - 100};
    return train_run(run, counts, COUNT(counts));
}

/* ---- the same bits ----------------------------------------------------- */

/* What the model says of a point against what its program is made of. */
struct accuracy {
    int points, bytes, seconds; /* points; those within 5 % */
    int moves;                  /* transfers of all points */
};

/* Of what is computed: not of the disk. */
static double graph_seconds(const struct graph *graph)
{
    double seconds = 0;
    for (int n = 0; n < graph->node_count; n++)
        seconds += node_seconds(NULL, graph->node[n]);
    return seconds;
}

/* seconds: of the graph that drops nothing. */
static void compare_point(struct accuracy *accuracy, uint64_t seed, const struct frontier_point *point,
                          const uint8_t *bits, double seconds)
{
    struct run run;
    open_graph(&run, seed, MOST_VALUES, point, 1 + (int)(seed % 3));
    const struct phase *phase = &run.program->phase[PHASE_TRAIN];
    uint8_t *other = train(&run);
    double time = graph_seconds(&run.graph) / seconds;
    assert_memory_equal(bits, other, run.program->persistent_bytes);
    accuracy->points++;
    accuracy->bytes += (double)phase->max_live <= 1.05 * (double)point->peak;
    accuracy->seconds += point->spilled_count
                             ? time <= 1.05 * point->relative_time
                             : time <= 1.05 * point->relative_time && time >= 0.95 * point->relative_time;
    accuracy->moves += phase->transfer_count;
    assert_true(phase->transfer_count <= point->spilled_count);
    test_free(other);
    close_run(&run);
}

/* The points of one random graph. */
static void compare_points(struct accuracy *accuracy, uint64_t seed, const struct technique_rules *rules)
{
    struct run run;
    struct frontier frontier;
    struct arena tables;
    plim_error error = {0};
    open_graph(&run, seed, MOST_VALUES, NULL, 2);
    arena_init(&tables, run.budget, TAG_PLANNER);
    assert_int_equal(frontier_find(&frontier, run.program, rules, &tables, &error), PLIM_OK);
    uint8_t *bits = train(&run);
    for (int k = 0; k < frontier.count; k += 1 + frontier.count / 5)
        if (frontier_point_changes(&frontier.point[k]))
            compare_point(accuracy, seed, &frontier.point[k], bits, graph_seconds(&run.graph));
    for (int k = 1; k < frontier.count; k++) {
        assert_true(frontier.point[k].peak < frontier.point[k - 1].peak);
        assert_true(frontier.point[k].relative_time > frontier.point[k - 1].relative_time);
    }
    test_free(bits);
    arena_release(&tables);
    close_run(&run);
}

static void compare_graphs(const struct technique_rules *rules, int least, bool moves)
{
    struct accuracy accuracy = {0};
    for (int g = 0; g < graphs; g++)
        compare_points(&accuracy, (uint64_t)g, rules);
    printf("frontier: %d points, %d within 5 %% of the bytes and %d of the time that the model said; %d transfers\n",
           accuracy.points, accuracy.bytes, accuracy.seconds, accuracy.moves);
    assert_true(accuracy.points >= least);
    assert_true(accuracy.bytes * 10 >= accuracy.points * 9);
    assert_true(accuracy.seconds * 10 >= accuracy.points * 9);
    assert_int_equal(accuracy.moves > 0, moves);
}

static void dropping_keeps_the_bits(void **state)
{
    (void)state;
    compare_graphs(&any_value, graphs + 1, false);
}

static void dropping_and_spilling_keep_the_bits(void **state)
{
    (void)state;
    compare_graphs(&with_disk, graphs + 1, true);
}

static void spilling_keeps_the_bits(void **state)
{
    (void)state;
    compare_graphs(&disk_alone, graphs / 2, true);
    compare_graphs(&all_on_disk, graphs / 2, true);
}

/* ---- rules of the user's ------------------------------------------------ */

static bool is_made_in(const char *layer, const struct run *run, int tensor)
{
    return recompute_names_layer(layer, run->graph.tensor[tensor]->producer->name);
}

/* Of a layer that is named all large values are dropped, and none of others; the bits are the same. */
static void drop_layer(struct run *run, const struct frontier *any, const uint8_t *bits, struct arena *tables)
{
    const struct frontier_point *last = &any->point[any->count - 1];
    const char *layer = run->graph.tensor[last->dropped[0]]->producer->name;
    const struct technique_rules named = {.recompute = {RECOMPUTE_LAYERS, &layer, 1}, .spill = SPILL_NEVER};
    struct accuracy accuracy = {0};
    struct frontier frontier;
    assert_int_equal(frontier_find(&frontier, run->program, &named, tables, NULL), PLIM_OK);
    assert_int_equal(frontier.count, 1);
    assert_true(frontier.point[0].dropped_count >= 1);
    assert_true(frontier.point[0].peak < any->point[0].peak || frontier.point[0].relative_time > 1);
    for (int d = 0; d < frontier.point[0].dropped_count; d++)
        assert_true(is_made_in(layer, run, frontier.point[0].dropped[d]));
    compare_point(&accuracy, CHOICE_SEED, &frontier.point[0], bits, graph_seconds(&run->graph));
}

static void rules_are_kept(void **state)
{
    struct run run;
    struct frontier any, none;
    struct arena tables;
    const struct technique_rules never = {.recompute = {.kind = RECOMPUTE_NEVER}, .spill = SPILL_NEVER};
    struct frontier_point point;
    (void)state;
    open_graph(&run, CHOICE_SEED, MOST_VALUES, NULL, 1);
    arena_init(&tables, run.budget, TAG_PLANNER);
    assert_int_equal(frontier_find(&any, run.program, &any_value, &tables, NULL), PLIM_OK);
    assert_true(any.count > 1);
    assert_int_equal(frontier_find(&none, run.program, &never, &tables, NULL), PLIM_OK);
    assert_int_equal(none.count, 1);
    assert_int_equal(none.point[0].dropped_count, 0);
    assert_int_equal(frontier_reach(&point, run.program, &never, any.point[1].peak, &tables, NULL), PLIM_OK);
    assert_int_equal(point.dropped_count, 0);
    uint8_t *bits = train(&run);
    drop_layer(&run, &any, bits, &tables);
    test_free(bits);
    arena_release(&tables);
    close_run(&run);
}

static void names_stand_for_what_is_inside(void **state)
{
    (void)state;
    assert_true(recompute_names_layer("block", "block"));
    assert_true(recompute_names_layer("block", "block/relu"));
    assert_false(recompute_names_layer("block", "block_1"));
    assert_false(recompute_names_layer("block/relu", "block"));
    assert_false(recompute_names_layer("b", "block/relu"));
}

/* ---- depth ------------------------------------------------------------- */

#define BLOCKS 24

/* x += dense(relu(dense(relu(x)))): the backward pass reads no x, so each is made of all before it. */
static void build_deep(struct run *run)
{
    struct graph *graph = &run->graph;
    struct made *made = &run->made;
    plim_error error = {0};
    char name[32];
    graph_init(graph, run->budget, BATCH);
    made->plain = true;
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, rank_2(BATCH, WIDTH));
    struct tensor *label = graph_input(graph, "label", 1, TYPE_F32, rank_1(BATCH));
    for (int i = 0; i < BLOCKS; i++) {
        snprintf(name, sizeof name, "a_%d", i);
        struct tensor *y = made_dense(made, graph, name, unary(graph, &op_relu, x), WIDTH);
        snprintf(name, sizeof name, "b_%d", i);
        y = made_dense(made, graph, name, unary(graph, &op_relu, y), WIDTH);
        x = i ? binary(graph, &op_add, x, y) : y;
    }
    x = made_dense(made, graph, "last", x, 1);
    made_finish(made, graph, binary(graph, &op_sigmoid_crossentropy, x, label), true);
    assert_int_equal(graph_check(graph, &error), PLIM_OK);
    assert_int_equal(encode_kept(graph, &error), PLIM_OK);
    assert_int_equal(recompute(graph, &error), PLIM_OK);
    for (int n = 0; n < graph->node_count; n++) /* such small layers would all be one chain */
        graph->node[n]->begins_chain = graph->node[n]->op == &op_matmul;
}

/* The first relu of each block is dropped: x is made of the one before it, once and not for each block behind it. */
static void work_is_linear_in_depth(void **state)
{
    struct run run;
    struct step_model model;
    struct arena work;
    int forward = 0, again = 0, count = 0;
    (void)state;
    begin_run(&run);
    build_deep(&run);
    open_run(&run, 1);
    arena_init(&work, run.budget, TAG_PLANNER);
    assert_int_equal(step_model_make(&model, run.program, may_drop, &work, NULL), PLIM_OK);
    bool *dropped = arena_array(&work, (size_t)run.graph.tensor_count, sizeof *dropped);
    for (int d = 0; d < model.value_count; d++) {
        const struct node *relu = run.graph.tensor[model.value[d].tensor]->producer;
        dropped[model.value[d].tensor] = relu->input[0]->producer && relu->input[0]->producer->op == &op_add;
        count += dropped[model.value[d].tensor];
    }
    assert_true(count >= BLOCKS - 4);
    for (int n = 0; n < run.graph.node_count; n++)
        forward += !run.graph.node[n]->backward;
    assert_int_equal(rematerialize(&run.graph, dropped, NULL), PLIM_OK);
    for (int n = 0; n < run.graph.node_count; n++)
        again += run.graph.node[n]->again;
    assert_true(again >= 2 * count && again <= 2 * forward);
    arena_release(&work);
    close_run(&run);
}

/* ---- faults ------------------------------------------------------------- */

static struct frontier_point last_point(const struct frontier *frontier)
{
    return frontier->point[frontier->count - 1];
}

/* With the n-th allocation failing; returns whether it came to that. */
static bool find_with_fault(struct run *run, int64_t nth)
{
    struct frontier frontier;
    struct arena tables;
    plim_error error = {0};
    uint64_t before = budget_usage(run->budget).now;
    arena_init(&tables, run->budget, TAG_PLANNER);
    fault_arm(FAULT_ALLOCATE, nth, false, ENOMEM);
    plim_status status = frontier_find(&frontier, run->program, &with_disk, &tables, &error);
    bool reached = fault_disarm();
    assert_int_equal(status, reached ? PLIM_NO_MEMORY : PLIM_OK);
    assert_true(!reached || error.message[0]);
    arena_release(&tables);
    assert_int_equal(budget_usage(run->budget).now, before);
    return reached;
}

static bool apply_with_fault(const struct frontier_point *point, int64_t nth)
{
    struct run run;
    plim_error error = {0};
    begin_run(&run);
    uint64_t before = budget_usage(run.budget).now;
    build(&run, CHOICE_SEED, MOST_VALUES);
    fault_arm(FAULT_ALLOCATE, nth, false, ENOMEM);
    plim_status status = frontier_apply(&run.graph, point, &error);
    bool reached = fault_disarm();
    assert_int_equal(status, reached ? PLIM_NO_MEMORY : PLIM_OK);
    assert_true(!reached || error.message[0]);
    graph_release(&run.graph);
    assert_int_equal(budget_usage(run.budget).now, before);
    run.backend->type->close(run.backend);
    budget_free(run.budget);
    return reached;
}

static void every_allocation_may_fail(void **state)
{
    struct run run;
    struct frontier frontier;
    struct arena tables;
    int64_t found = 0, applied = 0;
    (void)state;
    open_graph(&run, CHOICE_SEED, MOST_VALUES, NULL, 1);
    arena_init(&tables, run.budget, TAG_PLANNER);
    assert_int_equal(frontier_find(&frontier, run.program, &any_value, &tables, NULL), PLIM_OK);
    assert_true(frontier.count > 1);
    struct frontier_point point = last_point(&frontier);
    while (find_with_fault(&run, found + 1))
        found++;
    while (apply_with_fault(&point, applied + 1))
        applied++;
    assert_true(found >= 2 && applied >= 1);
    arena_release(&tables);
    close_run(&run);
}

/* ---- the best choice --------------------------------------------------- */

#define MOST_EXHAUSTIVE 14

/* Of all choices that keep the limit, the least seconds; a huge number if there is none. ways: 2: kept or dropped; 4:
   spilled, too, with or without a wait. */
static double best_of_all(struct step_model *model, struct step_choice *choice, uint64_t limit, unsigned ways)
{
    double best = 1e30;
    uint64_t choices = 1;
    for (int d = 0; d < model->value_count; d++)
        choices *= ways;
    for (uint64_t number = 0; number < choices; number++) {
        uint64_t rest = number;
        bool allowed = true;
        for (int d = 0; d < model->value_count; d++, rest /= ways) {
            int tensor = model->value[d].tensor;
            choice->dropped[tensor] = rest % ways == 1;
            choice->spilled[tensor] = rest % ways >= 2;
            choice->waits[tensor] = rest % ways == 3;
            allowed &= (rest % ways != 1 || model->value[d].may_drop) && (rest % ways < 2 || model->value[d].may_spill);
        }
        struct step_cost cost = allowed ? step_model_try(model, choice) : (struct step_cost){.peak = UINT64_MAX};
        if (cost.peak <= limit && cost.seconds < best)
            best = cost.seconds;
    }
    return best;
}

static void keep_all(struct step_choice *choice, const struct step_model *model)
{
    memset(choice->dropped, 0, (size_t)model->graph->tensor_count);
    memset(choice->spilled, 0, (size_t)model->graph->tensor_count);
    memset(choice->waits, 0, (size_t)model->graph->tensor_count);
}

static int compare_searches(struct step_model *model, struct arena *work, unsigned ways)
{
    struct drop_search *search;
    struct drop_choice choice;
    struct step_choice tried;
    int compared = 0;
    assert_int_equal(step_choice_make(&choice.values, model, work, NULL), PLIM_OK);
    assert_int_equal(step_choice_make(&tried, model, work, NULL), PLIM_OK);
    assert_int_equal(drop_search_make(&search, model, work, NULL), PLIM_OK);
    uint64_t peak = step_model_try(model, &tried).peak;
    for (int part = 95; part >= 40; part -= 5) {
        uint64_t limit = peak * (uint64_t)part / 100;
        double best = best_of_all(model, &tried, limit, ways);
        keep_all(&choice.values, model);
        drop_search_run(&choice, search, limit);
        assert_int_equal(choice.found, best < 1e30);
        assert_true(choice.steps <= 1.01 * drop_search_bound(model));
        if (!choice.found)
            break;
        assert_true(choice.cost.peak <= limit && choice.cost.seconds <= 1.02 * best);
        compared++;
    }
    return compared;
}

/* How many searches were compared with all choices of graphs with at most `most` values. */
static int compare_graph(uint64_t seed, struct step_freedom freedom, int most)
{
    struct run run;
    struct step_model model;
    struct arena work;
    int compared = 0;
    open_graph(&run, seed, MOST_VALUES / 2, NULL, 1);
    arena_init(&work, run.budget, TAG_PLANNER);
    assert_int_equal(step_model_make(&model, run.program, freedom, &work, NULL), PLIM_OK);
    if (model.value_count && model.value_count <= most)
        compared = compare_searches(&model, &work, freedom.disk_bytes ? 4 : 2);
    arena_release(&work);
    close_run(&run);
    return compared;
}

static void searches_find_the_best(void **state)
{
    const struct step_freedom with_disk_too = {.may_drop = true, .may_spill = true, .disk_bytes = UINT64_MAX};
    int dropping = 0, spilling = 0;
    (void)state;
    for (int g = 0; g < 3 * graphs; g++) {
        dropping += compare_graph((uint64_t)g, may_drop, MOST_EXHAUSTIVE);
        spilling += compare_graph((uint64_t)g, with_disk_too, MOST_EXHAUSTIVE / 2);
    }
    printf("frontier: %d and %d searches within 2 %% of the best choice\n", dropping, spilling);
    assert_true(dropping >= graphs && spilling >= graphs / 4);
}

int main(int count, char **argument)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropping_keeps_the_bits),        cmocka_unit_test(dropping_and_spilling_keep_the_bits),
        cmocka_unit_test(spilling_keeps_the_bits),        cmocka_unit_test(rules_are_kept),
        cmocka_unit_test(names_stand_for_what_is_inside), cmocka_unit_test(work_is_linear_in_depth),
        cmocka_unit_test(every_allocation_may_fail),      cmocka_unit_test(searches_find_the_best),
    };
    if (count > 1)
        graphs = atoi(argument[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
