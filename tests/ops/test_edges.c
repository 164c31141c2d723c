/* test_edges.c - kernels stay inside their operands: every kernel of the CPU backend runs with each operand, its
   scratch and its pack between two pages that nobody may touch, at the first and at the last bytes of what lies
   between. Sanitizers see loads of compiled code only; these pages stop tiles and the code that libraries
   generate too. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/numbers/count.h"
#include "kernel_bench.h"
#include "model_convolutions.h"
#include "op_fixture.h"
#include "ops/ops.h"

#define BATCH 5
#define GRAIN 64 /* bytes: the arena places operands at multiples, so the rest of the last one is nobody's */

enum edge { FRONT, BACK };

/* Of the kernel that runs, for the one who finds the page. */
static struct {
    const char *op, *implementation, *type, *edge;
} now;

static void touched(int signal_number)
{
    char line[240];
    (void)signal_number;
    int length = snprintf(line, sizeof line, "%s (%s, %s) leaves its operands at the %s\n", now.op, now.implementation,
                          now.type, now.edge);
    _exit(write(STDERR_FILENO, line, (size_t)length) == length ? 1 : 2);
}

/* ---- pages -------------------------------------------------------------- */

struct guarded {
    char *pages;
    size_t page_bytes; /* guards included */
    void *data;
};

static struct guarded guarded_take(size_t bytes, enum edge edge)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    size_t inside = used ? (used + page - 1) / page * page : page;
    struct guarded g = {.page_bytes = inside + 2 * page};
    g.pages = mmap(NULL, g.page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(g.pages, MAP_FAILED);
    assert_int_equal(mprotect(g.pages, page, PROT_NONE), 0);
    assert_int_equal(mprotect(g.pages + page + inside, page, PROT_NONE), 0);
    g.data = g.pages + page + (edge == BACK ? inside - used : 0);
    memset(g.pages + page, POISON, inside);
    return g;
}

static void guarded_give(struct guarded *g)
{
    assert_int_equal(munmap(g->pages, g->page_bytes), 0);
}

/* The fixture's own bytes make room for guarded ones; what it gives back in the end is none of these. */
static void guard_all(struct guarded *guards, struct fixture *fixture, enum edge edge)
{
    for (int t = 0; t < fixture->graph.tensor_count; t++) {
        const struct tensor *tensor = fixture->graph.tensor[t];
        guards[t] = guarded_take((size_t)shape_count(&tensor->shape) * type_bytes(tensor->type), edge);
        fixture->data[t] = guards[t].data;
    }
}

static void unguard_all(struct guarded *guards, struct fixture *fixture)
{
    for (int t = 0; t < fixture->graph.tensor_count; t++) {
        guarded_give(&guards[t]);
        fixture->data[t] = NULL;
        fixture->bytes[t] = 0;
    }
}

/* ---- running ------------------------------------------------------------ */

/* Slice after slice of `step` rows, as the executor does it. */
static void run_slices(const struct kernel *kernel, const struct fixture *fixture, int64_t end, int64_t step,
                       const struct guarded *scratch, const struct guarded *pack)
{
    struct call call;
    int64_t count = fixture->graph.batch;
    fixture_call(&call, fixture, fixture->node, 0, end, count);
    for (int unit = 0; unit < kernel->pack_units; unit++)
        kernel->pack(kernel, &call, unit, pack->data);
    for (int64_t begin = 0; begin < end; begin += step) {
        fixture_call(&call, fixture, fixture->node, begin, begin + step < end ? begin + step : end, count);
        call.scratch = scratch->data;
        call.pack = kernel->pack_bytes ? pack->data : NULL;
        kernel->run(kernel, &call);
    }
}

static void check_edge(struct bench *bench, struct fixture *fixture, int64_t grains, enum edge edge)
{
    const struct kernel *kernel = NULL;
    struct guarded guards[FIXTURE_TENSORS];
    struct cut cut;
    const struct node *node = fixture->node;
    node->op->cut(&cut, node);
    int64_t step = grains && grains * cut.grain < cut.extent ? grains * cut.grain : cut.extent;
    int64_t shorter[1] = {cut.extent % step};
    guard_all(guards, fixture, edge);
    fixture_fill(fixture, 3);
    fixture_run_before(fixture, fixture->graph.batch);
    const struct kernel_request request = {.node = node, .slice = step, .short_rows = shorter, .short_count = 1};
    assert_int_equal(cpu_backend.prepare(&kernel, bench->backend, &request, NULL), PLIM_OK);
    struct guarded scratch = guarded_take(kernel->scratch_bytes, edge), pack = guarded_take(kernel->pack_bytes, edge);
    now.op = node->op->name;
    now.implementation = kernel->implementation;
    now.type = type_name(fixture->output->type);
    now.edge = edge == FRONT ? "front" : "back";
    signal(SIGSEGV, touched); /* cmocka has its own, which does not say who */
    run_slices(kernel, fixture, cut.extent, step, &scratch, &pack);
    guarded_give(&scratch);
    guarded_give(&pack);
    unguard_all(guards, fixture);
}

static void check_edges(struct bench *bench, struct fixture *fixture)
{
    for (int64_t grains = 0; grains < 3; grains++)
        for (int edge = FRONT; edge <= BACK; edge++)
            check_edge(bench, fixture, grains, edge);
}

static const enum type types[] = {TYPE_F32, TYPE_F16, TYPE_BF16};

static void check_op(struct bench *bench, const struct op *op)
{
    struct fixture fixture;
    for (size_t k = 0; k < (op->wide_only ? 1 : COUNT(types)); k++)
        for (int variant = 0; fixture_init(&fixture, op, variant, types[k], BATCH); variant++) {
            check_edges(bench, &fixture);
            fixture_release(&fixture);
        }
}

static void examples_stay_inside(void **state)
{
    struct bench bench;
    (void)state;
    for (int i = 0; i < cpu_variant_count; i++) {
        if (!cpu_variants[i].supported())
            continue;
        for (int n = 0; n < all_ops_count; n++) {
            bench_open(&bench, cpu_variants[i].variant, 1);
            check_op(&bench, all_ops[n]);
            bench_close(&bench);
        }
    }
}

/* One graph of one convolution, as the examples have it. */
static void convolution_init(struct fixture *fixture, const struct model_convolution *c, enum conv_role role,
                             enum type type)
{
    *fixture = (struct fixture){0};
    assert_int_equal(budget_make(&fixture->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(&fixture->graph, fixture->budget, 2);
    fixture->output = model_convolution_add(&fixture->graph, c, role, type);
    assert_non_null(fixture->output);
    fixture->node = fixture->graph.node[fixture->graph.node_count - 1];
}

/* Rows so long that a few of them are walked at a time, under a kernel that leaves less than a block of each: the block
   that ends with the first of them has to begin inside x. */
static void long_rows_stay_inside(void **state)
{
    struct bench bench;
    struct fixture fixture = {0};
    struct conv_attributes attributes = {.stride = {1, 1}};
    (void)state;
    assert_int_equal(budget_make(&fixture.budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    graph_init(&fixture.graph, fixture.budget, 1);
    struct tensor *x = graph_input(&fixture.graph, "x", 0, TYPE_BF16, shape_of(4, (const int64_t[]){1, 3, 65, 4096}));
    struct tensor *k =
        graph_weight(&fixture.graph, "k", TYPE_BF16, shape_of(4, (const int64_t[]){1, 40, 4096, 32}), true);
    fixture.output =
        graph_add(&fixture.graph, &op_conv2d, (struct tensor *[]){x, k, NULL}, 3, &attributes, sizeof attributes);
    assert_int_equal(graph_check(&fixture.graph, NULL), PLIM_OK);
    fixture.node = fixture.graph.node[0];
    bench_open(&bench, cpu_variant_here(), 1);
    check_edge(&bench, &fixture, 1, FRONT);
    bench_close(&bench);
    fixture_release(&fixture);
}

/* Pictures this large have the layouts of the larger ones. */
#define MOST_SIZE 56

static void convolutions_of_models_stay_inside(void **state)
{
    struct bench bench;
    struct fixture fixture;
    (void)state;
    for (int i = 0; i < model_convolutions_count; i++) {
        if (model_convolutions[i].size > MOST_SIZE)
            continue;
        bench_open(&bench, cpu_variant_here(), 1);
        for (int role = 0; role < 3; role++)
            for (int k = 0; k < 2; k++) {
                convolution_init(&fixture, &model_convolutions[i], (enum conv_role)role, k ? TYPE_BF16 : TYPE_F32);
                for (int edge = FRONT; edge <= BACK; edge++)
                    check_edge(&bench, &fixture, 1, edge);
                fixture_release(&fixture);
            }
        bench_close(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_stay_inside),
        cmocka_unit_test(convolutions_of_models_stay_inside),
        cmocka_unit_test(long_rows_stay_inside),
    };
    return cmocka_run_group_tests_name("edges", tests, NULL, NULL);
}
