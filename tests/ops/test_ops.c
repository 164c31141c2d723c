/* test_ops.c - what every op must keep, from ops.def: its gradient agrees
   with finite differences (or its absence is declared), slices give what the whole gives,
   f32 is close to f64, and its facts are true. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/numbers/count.h"
#include "op_fixture.h"
#include "ops/ops.h"
#include "transform/transform.h"

#define BATCH       5
#define MOST_WANTED MOST_INPUTS

/* ---- gradients --------------------------------------------------------- */

#define EPSILON      1e-6
#define ABSOLUTE     1e-5
#define RELATIVE     1e-3
#define MOST_CHECKED 24 /* elements a tensor */

static bool label_like(const struct tensor *tensor)
{
    return strncmp(tensor->name, "label:", 6) == 0 || strncmp(tensor->name, "index:", 6) == 0;
}

/* Leaves only: what a node before the one under test made is a function of them. Weights that are not
   trained are constants. */
static bool differentiated(const struct tensor *tensor)
{
    bool fixed = tensor->kind == KIND_WEIGHT && !tensor->trainable;
    return tensor->type == TYPE_F64 && !label_like(tensor) && !tensor->producer && !fixed;
}

static int collect_wanted(struct tensor **wanted, const struct node *node)
{
    int count = 0;
    for (int i = 0; i < node->input_count; i++) {
        struct tensor *tensor = node->input[i];
        if (tensor && differentiated(tensor))
            wanted[count++] = tensor;
    }
    return count;
}

/* mean over the batch of sum(y * r), r random: every element of y counts. */
static struct tensor *to_loss(struct graph *graph, struct tensor *y)
{
    struct reduce_attributes row = {.axes = 1 << 1};
    if (y->producer->op == &op_batch_mean)
        return y;
    if (!y->batched) { /* broadcast over a batch, with other weights for each sample */
        struct shape shape = {.rank = y->shape.rank + 1, .dim = {graph->batch}};
        for (int k = 0; k < y->shape.rank; k++)
            shape.dim[k + 1] = y->shape.dim[k];
        y = binary(graph, &op_multiply, graph_input(graph, "broadcast", 8, y->type, shape), y);
    }
    struct tensor *flat = unary(graph, &op_flatten, y);
    struct tensor *r = graph_input(graph, "r", 9, y->type, flat->shape);
    struct tensor *product = binary(graph, &op_multiply, flat, r);
    return unary(graph, &op_batch_mean, graph_add(graph, &op_reduce_sum, &product, 1, &row, sizeof(row)));
}

static double loss_with(struct fixture *fixture, struct tensor *loss, double *at, double value)
{
    double before = *at;
    *at = value;
    fixture_run_all(fixture, false);
    *at = before;
    return fixture_get(fixture, loss, 0);
}

static void check_elements(struct fixture *fixture, struct tensor *loss, struct tensor *of, struct tensor *gradient)
{
    double *x = fixture->data[of->id];
    int64_t count = shape_count(&of->shape), step = (count + MOST_CHECKED - 1) / MOST_CHECKED;
    assert_true(shape_equal(&of->shape, &gradient->shape));
    for (int64_t i = 0; i < count; i += step) {
        double up = loss_with(fixture, loss, &x[i], x[i] + EPSILON);
        double down = loss_with(fixture, loss, &x[i], x[i] - EPSILON);
        double expected = (up - down) / (2 * EPSILON), got = fixture_get(fixture, gradient, i);
        if (!(fabs(got - expected) <= ABSOLUTE + RELATIVE * fabs(expected)))
            fail_msg("%s: d(loss)/d(%s)[%lld] is %.9g, finite differences say %.9g", fixture->node->op->name, of->name,
                     (long long)i, got, expected);
    }
}

/* What backward reads of the node under test, as bit masks. */
static void find_reads(unsigned *inputs, unsigned *outputs, const struct fixture *fixture)
{
    for (int n = 0; n < fixture->graph.node_count; n++) {
        const struct node *node = fixture->graph.node[n];
        for (int i = 0; i < node->input_count && node->backward; i++) {
            for (int k = 0; k < fixture->node->input_count; k++)
                *inputs |= node->input[i] && node->input[i] == fixture->node->input[k] ? 1u << k : 0;
            for (int k = 0; k < fixture->node->output_count; k++)
                *outputs |= node->input[i] == fixture->node->output[k] ? 1u << k : 0;
        }
    }
}

/* Returns whether there was something to differentiate. */
static bool check_variant(struct fixture *fixture, unsigned *inputs, unsigned *outputs)
{
    struct tensor *wanted[MOST_WANTED], *gradients[MOST_WANTED];
    int count = collect_wanted(wanted, fixture->node);
    plim_error error = {0};
    if (count == 0)
        return false;
    struct tensor *loss = to_loss(&fixture->graph, fixture->output);
    if (gradient_append(&fixture->graph, loss, wanted, count, gradients, &error))
        fail_msg("%s: %s", fixture->node->op->name, error.message);
    fixture_fill(fixture, 1);
    fixture_run_all(fixture, true);
    for (int i = 0; i < count; i++) {
        if (!gradients[i])
            fail_msg("%s: no gradient reaches %s", fixture->node->op->name, wanted[i]->name);
        check_elements(fixture, loss, wanted[i], gradients[i]);
    }
    find_reads(inputs, outputs, fixture);
    return true;
}

static void check_gradient(const struct op *op)
{
    struct fixture fixture;
    unsigned inputs = 0, outputs = 0;
    int checked = 0;
    if (!op_has_gradient(op)) {
        assert_non_null(op->no_gradient);
        assert_true(strlen(op->no_gradient) > 0);
        return;
    }
    assert_null(op->no_gradient);
    for (int variant = 0; fixture_init(&fixture, op, variant, TYPE_F64, BATCH); variant++) {
        checked += check_variant(&fixture, &inputs, &outputs);
        fixture_release(&fixture);
    }
    assert_true(checked > 0);
    assert_int_equal(inputs, op->keeps_inputs);
    assert_int_equal(outputs, op->keeps_outputs);
}

/* ---- slices ------------------------------------------------------------ */

/* Elements of the first `rows` rows of a batched tensor, all of another. */
static int64_t elements(const struct tensor *tensor, int64_t rows)
{
    return tensor->batched ? rows * shape_row(&tensor->shape) : shape_count(&tensor->shape);
}

static void compare(const struct fixture *a, const struct fixture *b, int id, int64_t rows, double tolerance)
{
    const struct tensor *first = a->graph.tensor[id], *second = b->graph.tensor[id];
    for (int64_t i = 0; i < elements(first, rows); i++) {
        double x = fixture_get(a, first, i), y = fixture_get(b, second, i), stored;
        element_set(&stored, first->type, 0, y);
        if (isinf(x) && x == element_get(&stored, first->type, 0)) /* too large for the type */
            continue;
        if (!(fabs(x - y) <= tolerance * (1 + fabs(y))))
            fail_msg("%s: %s[%lld] is %.17g, not %.17g", a->node->op->name, first->name, (long long)i, x, y);
    }
}

static void check_untouched(const struct fixture *fixture, const struct tensor *tensor, int64_t rows)
{
    const unsigned char *bytes = fixture->data[tensor->id];
    size_t from = (size_t)elements(tensor, rows) * type_bytes(tensor->type);
    for (size_t i = from; i < fixture->bytes[tensor->id]; i++)
        assert_int_equal(bytes[i], POISON);
}

/* `count` of BATCH samples in slices, against a graph of just that batch. */
static void check_slices(const struct op *op, int variant, int64_t slice, int64_t count)
{
    struct fixture cut, whole;
    struct cut facts;
    assert_true(fixture_init(&cut, op, variant, TYPE_F64, BATCH));
    assert_true(fixture_init(&whole, op, variant, TYPE_F64, count));
    fixture_fill(&cut, 2);
    fixture_fill(&whole, 2);
    fixture_spoil(&cut, count);
    fixture_run_before(&cut, count);
    fixture_run_before(&whole, count);
    fixture_run(&cut, cut.node, slice, count);
    fixture_run(&whole, whole.node, 0, count);
    for (int i = 0; i < op->inputs; i++) {
        if (op->updates >> i & 1 && cut.node->input[i])
            compare(&cut, &whole, cut.node->input[i]->id, count, 0);
    }
    op->cut(&facts, cut.node);
    for (int k = 0; k < op->outputs; k++) {
        bool exact = cut.node->output[k]->batched && facts.output[k] != PART_SUM;
        compare(&cut, &whole, cut.node->output[k]->id, count, exact ? 0 : 1e-12);
        check_untouched(&cut, cut.node->output[k], count);
    }
    fixture_release(&cut);
    fixture_release(&whole);
}

static void check_cut_facts(const struct op *op, int variant)
{
    struct fixture fixture;
    struct cut cut;
    assert_true(fixture_init(&fixture, op, variant, TYPE_F64, BATCH));
    op->cut(&cut, fixture.node);
    assert_true(cut.extent > 0 && cut.grain > 0 && cut.work > 0);
    for (int i = 0; i < op->inputs; i++) {
        const struct tensor *tensor = fixture.node->input[i];
        assert_int_not_equal(cut.input[i], PART_SUM);
        if (tensor && cut.input[i] == PART_CUT) {
            assert_int_equal(tensor->batched, cut.by_sample);
            assert_int_equal(tensor->shape.dim[0], cut.extent);
        }
    }
    for (int k = 0; k < op->outputs; k++) {
        if (cut.output[k] == PART_CUT)
            assert_int_equal(fixture.node->output[k]->shape.dim[0], cut.extent);
    }
    fixture_release(&fixture);
}

static int variants(const struct op *op)
{
    struct fixture fixture;
    int count = 0;
    while (fixture_init(&fixture, op, count, TYPE_F64, BATCH)) {
        fixture_release(&fixture);
        count++;
    }
    return count;
}

static void check_cutting(const struct op *op)
{
    int count = variants(op);
    assert_true(count > 0);
    for (int variant = 0; variant < count; variant++) {
        check_cut_facts(op, variant);
        for (int64_t samples = BATCH; samples >= BATCH - 2; samples -= 2) {
            check_slices(op, variant, 0, samples);
            check_slices(op, variant, 1, samples);
            check_slices(op, variant, 3, samples);
        }
    }
}

/* ---- types and places -------------------------------------------------- */

/* Small floats: what is stored is rounded once. Tensors of other types may have been made of rounded ones. */
static const struct {
    enum type type;
    double tolerance;
} types[] = {{TYPE_F32, 1e-5}, {TYPE_F16, 0x1p-11 + 1e-5}, {TYPE_BF16, 0x1p-8 + 1e-5}};

static void check_type(const struct op *op, enum type type, double tolerance)
{
    struct fixture narrow, wide;
    for (int variant = 0; fixture_init(&narrow, op, variant, type, BATCH); variant++) {
        assert_true(fixture_init(&wide, op, variant, TYPE_F64, BATCH));
        if (op == &op_vocabulary_crossentropy_gradient) /* what it rounds on the way hangs on these alone */
            wide.node->attributes = narrow.node->attributes;
        fixture_fill(&narrow, 3);
        fixture_fill(&wide, 3);
        fixture_copy(&wide, &narrow);
        fixture_run_before(&narrow, BATCH);
        fixture_run_before(&wide, BATCH);
        fixture_run(&narrow, narrow.node, 0, BATCH);
        fixture_run(&wide, wide.node, 0, BATCH);
        for (int t = 0; t < wide.graph.tensor_count; t++)
            compare(&narrow, &wide, t, BATCH, tolerance);
        fixture_release(&narrow);
        fixture_release(&wide);
    }
}

static void check_types(const struct op *op)
{
    for (size_t i = 0; i < (op->wide_only ? 1 : COUNT(types)); i++)
        check_type(op, types[i].type, types[i].tolerance);
}

static void check_in_place_variant(const struct op *op, int variant)
{
    struct fixture apart, together;
    struct call call;
    assert_true(fixture_init(&apart, op, variant, TYPE_F64, BATCH));
    assert_true(fixture_init(&together, op, variant, TYPE_F64, BATCH));
    const struct tensor *from = together.node->input[op_in_place(op)], *to = together.node->output[0];
    fixture_fill(&apart, 4);
    fixture_fill(&together, 4);
    fixture_run_before(&apart, BATCH);
    fixture_run_before(&together, BATCH);
    if (apart.bytes[from->id] == apart.bytes[to->id]) {
        struct cut cut;
        op->cut(&cut, together.node);
        fixture_call(&call, &together, together.node, 0, cut.extent, BATCH);
        call.output[0] = call.input[op_in_place(op)];
        op->reference(&call);
        memcpy(together.data[to->id], together.data[from->id], together.bytes[to->id]);
        fixture_run(&apart, apart.node, 0, BATCH);
        compare(&together, &apart, to->id, BATCH, 0);
    }
    fixture_release(&apart);
    fixture_release(&together);
}

static void check_in_place(const struct op *op)
{
    int count = op->in_place ? variants(op) : 0;
    for (int variant = 0; variant < count; variant++)
        check_in_place_variant(op, variant);
}

static void check_names(void **state)
{
    (void)state;
    for (int i = 0; i < all_ops_count; i++) {
        assert_ptr_equal(op_by_name(all_ops[i]->name), all_ops[i]);
        assert_true(all_ops[i]->inputs <= MOST_INPUTS && all_ops[i]->outputs <= MOST_OUTPUTS);
    }
    assert_null(op_by_name("no such op"));
}

/* ---- there is no list here to forget ----------------------------------- */

#define OP(name)                                                                                                       \
    static void gradient_of_##name(void **state)                                                                       \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_gradient(&op_##name);                                                                                    \
    }                                                                                                                  \
    static void cutting_of_##name(void **state)                                                                        \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_cutting(&op_##name);                                                                                     \
        check_in_place(&op_##name);                                                                                    \
    }                                                                                                                  \
    static void types_of_##name(void **state)                                                                          \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_types(&op_##name);                                                                                       \
    }
#include "ops/ops.def"
#undef OP

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_names),
#define OP(name)                                                                                                       \
    cmocka_unit_test(gradient_of_##name), cmocka_unit_test(cutting_of_##name), cmocka_unit_test(types_of_##name),
#include "ops/ops.def"
#undef OP
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
