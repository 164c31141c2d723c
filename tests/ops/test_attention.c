/* test_attention.c - attention against softmax(q . k^T) . v made of other ops, forward and backward, in blocks of every
   kind; and the same bits whichever heads a slice has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu.h"
#include "base/numbers/count.h"
#include "op_fixture.h"
#include "ops/ops.h"
#include "transform/transform.h"

struct sizes {
    int64_t batch, queries, keys, heads, depth, value_depth;
    bool causal;
    bool blind; /* the first sample is all padding: its queries see no key, and take the mean of all */
};

static struct tensor *swap_heads(struct graph *graph, struct tensor *x)
{
    return transpose(graph, x, (int[]){0, 2, 1, 3});
}

/* Adds -1e9 above the diagonal through a product with 0 and a mask that is an input. */
static struct tensor *plain_attention(struct graph *graph, struct tensor *const x[3], struct tensor *hide, double scale)
{
    struct batch_matmul_attributes turned = {0, 1, 0}, straight = {0, 0, 0};
    struct scale_attributes by = {scale};
    struct tensor *q = swap_heads(graph, x[0]), *k = swap_heads(graph, x[1]), *v = swap_heads(graph, x[2]);
    struct tensor *s = graph_add(graph, &op_batch_matmul, (struct tensor *[]){q, k}, 2, &turned, sizeof turned);
    s = graph_add(graph, &op_scale, &s, 1, &by, sizeof by);
    s = unary(graph, &op_softmax, binary(graph, &op_add, s, hide));
    s = graph_add(graph, &op_batch_matmul, (struct tensor *[]){s, v}, 2, &straight, sizeof straight);
    return swap_heads(graph, s);
}

/* mean over the batch of sum(y * r). */
static struct tensor *loss_of(struct graph *graph, struct tensor *y, struct tensor *r)
{
    struct reduce_attributes row = {.axes = 1 << 1};
    struct tensor *flat = unary(graph, &op_flatten, binary(graph, &op_multiply, y, r));
    return unary(graph, &op_batch_mean, graph_add(graph, &op_reduce_sum, &flat, 1, &row, sizeof row));
}

#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

/* y and d of q, k, v. The same tensors come in the same order, so that both have the same inputs. */
static void build(struct fixture *fixture, struct tensor *out[4], const struct sizes *z, bool fused)
{
    struct graph *graph = &fixture->graph;
    plim_error error = {0};
    *fixture = (struct fixture){0};
    assert_int_equal(budget_make(&fixture->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(graph, fixture->budget, z->batch);
    struct tensor *x[5] = {
        graph_input(graph, "q", 0, TYPE_F32, SHAPE(z->batch, z->queries, z->heads, z->depth)),
        graph_input(graph, "k", 1, TYPE_F32, SHAPE(z->batch, z->keys, z->heads, z->depth)),
        graph_input(graph, "v", 2, TYPE_F32, SHAPE(z->batch, z->keys, z->heads, z->value_depth)),
    };
    struct tensor *r = graph_input(graph, "r", 3, TYPE_F32, SHAPE(z->batch, z->queries, z->heads, z->value_depth));
    struct tensor *hide = graph_input(graph, "hide", 4, TYPE_F32, SHAPE(z->batch, z->heads, z->queries, z->keys));
    struct tensor *mask = z->blind ? graph_input(graph, "mask", 5, TYPE_BOOL, SHAPE(z->batch, z->keys)) : NULL;
    struct attention_attributes attributes = {.scale = 0.7, .causal = z->causal};
    x[3] = mask;
    out[0] = fused ? graph_add(graph, &op_attention, x, 5, &attributes, sizeof attributes)
                   : plain_attention(graph, x, hide, 0.7);
    struct tensor *gradients[3];
    if (gradient_append(graph, loss_of(graph, out[0], r), x, 3, gradients, &error))
        fail_msg("%s", error.message);
    for (int i = 0; i < 3; i++)
        out[i + 1] = gradients[i];
    fixture_fill(fixture, 11);
    int64_t of_sample = shape_row(&hide->shape);
    for (int64_t i = 0; i < shape_count(&hide->shape); i++) {
        bool hidden = (z->causal && i % z->keys > i / z->keys % z->queries) || (z->blind && i < of_sample);
        ((float *)fixture->data[hide->id])[i] = hidden ? -1e9f : 0;
    }
    for (int64_t i = 0; mask && i < shape_count(&mask->shape); i++)
        ((uint8_t *)fixture->data[mask->id])[i] = i >= z->keys;
}

/* Every node by the CPU backend's kernels, in slices of `slice` (0: in one). */
static void run_all(struct fixture *fixture, struct backend *backend, int64_t slice)
{
    for (int n = 0; n < fixture->graph.node_count; n++) {
        const struct node *node = fixture->graph.node[n];
        const struct kernel *kernel = NULL;
        struct call call;
        struct cut cut;
        node->op->cut(&cut, node);
        int64_t step = slice && !cut.by_sample ? slice * cut.grain : cut.extent, rest = cut.extent % step;
        const struct kernel_request request = {.node = node, .slice = step, .short_rows = &rest, .short_count = 1};
        assert_int_equal(cpu_backend.prepare(&kernel, backend, &request, NULL), PLIM_OK);
        assert_string_not_equal(kernel->implementation, "reference");
        void *scratch = budget_take(fixture->budget, TAG_SCRATCH, kernel->scratch_bytes);
        void *pack = budget_take(fixture->budget, TAG_SCRATCH, kernel->pack_bytes);
        fixture_call(&call, fixture, node, 0, cut.extent, fixture->graph.batch);
        for (int unit = kernel->pack_units - 1; unit >= 0; unit--)
            kernel->pack(kernel, &call, unit, pack);
        for (int64_t begin = 0; begin < cut.extent; begin += step) {
            int64_t end = begin + step < cut.extent ? begin + step : cut.extent;
            fixture_call(&call, fixture, node, begin, end, fixture->graph.batch);
            call.scratch = scratch;
            call.pack = kernel->pack_bytes ? pack : NULL;
            memset(scratch, POISON, kernel->scratch_bytes);
            kernel->run(kernel, &call);
        }
        budget_give(fixture->budget, TAG_SCRATCH, scratch, kernel->scratch_bytes);
        budget_give(fixture->budget, TAG_SCRATCH, pack, kernel->pack_bytes);
    }
}

static double distance(const struct fixture *a, const struct tensor *x, const struct fixture *b, const struct tensor *y)
{
    double most = 0, apart = 0;
    assert_true(shape_equal(&x->shape, &y->shape));
    for (int64_t i = 0; i < shape_count(&x->shape); i++) {
        most = fmax(most, fabs(fixture_get(b, y, i)));
        double d = fabs(fixture_get(a, x, i) - fixture_get(b, y, i));
        apart = d <= apart ? apart : d; /* NaN stays */
    }
    return apart / most;
}

static const struct sizes cases[] = {
    {1, 300, 300, 3, 64, 64, true, false},  {1, 130, 517, 2, 20, 33, false, false},
    {2, 225, 111, 2, 17, 5, true, false},   {5, 57, 449, 2, 8, 16, false, false},
    {1, 1, 700, 4, 64, 64, false, false},   {3, 260, 3, 1, 33, 70, true, false},
    {1, 17, 240, 2, 128, 96, false, false}, {2, 9, 70, 2, 16, 16, false, true},
};

static void it_is_softmax_of_products_times_values(void **state)
{
    (void)state;
    struct fixture fused, plain;
    struct tensor *ours[4], *theirs[4];
    struct budget *budget;
    struct backend *backend;
    static const char *const names[] = {"out", "dq", "dk", "dv"};
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    for (int choice = 0; choice < cpu_variant_count; choice++) {
        if (!cpu_variants[choice].supported())
            continue;
        assert_int_equal(cpu_backend.open(&backend, budget, NULL), PLIM_OK);
        ((struct cpu_backend *)backend)->variant = cpu_variants[choice].variant;
        for (size_t i = 0; i < COUNT(cases); i++) {
            build(&fused, ours, &cases[i], true);
            build(&plain, theirs, &cases[i], false);
            run_all(&fused, backend, 0);
            run_all(&plain, backend, 0);
            for (int k = 0; k < 4; k++) {
                double error = distance(&fused, ours[k], &plain, theirs[k]);
                bool lost = cases[i].blind && (k == 1 || k == 2); /* a score of -1e9 has no digits left for q and k */
                if (!lost && !(error <= 1e-5))
                    fail_msg("%s, case %zu: %s is %g away", cpu_variants[choice].variant->name, i, names[k], error);
            }
            fixture_release(&fused);
            fixture_release(&plain);
        }
        cpu_backend.close(backend);
    }
    budget_free(budget);
}

static void heads_alone_give_the_same_bits(void **state)
{
    (void)state;
    struct fixture whole, cut;
    struct tensor *a[4], *b[4];
    struct budget *budget;
    struct backend *backend;
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    assert_int_equal(cpu_backend.open(&backend, budget, NULL), PLIM_OK);
    build(&whole, a, &cases[0], true);
    build(&cut, b, &cases[0], true);
    run_all(&whole, backend, 0);
    run_all(&cut, backend, 1);
    for (int k = 0; k < 4; k++)
        assert_memory_equal(whole.data[a[k]->id], cut.data[b[k]->id], whole.bytes[a[k]->id]);
    fixture_release(&whole);
    fixture_release(&cut);
    cpu_backend.close(backend);
    budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_softmax_of_products_times_values),
        cmocka_unit_test(heads_alone_give_the_same_bits),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
