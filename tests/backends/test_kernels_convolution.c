/* test_kernels_convolution.c - kernels of convolutions in sizes that their examples do not have, and those of
   models. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/gemm/gemm_tiles.h"
#include "backends/cpu/gemm/tile_pairs.h"
#include "base/numbers/count.h"
#include "base/threads/workers.h"
#include "kernel_check.h"
#include "model_convolutions.h"
#include "transform/transform.h"

/* ---- convolutions as in the CNN ----------------------------------------- */

static void build_convolution(struct fixture *fixture, const struct op *op, int64_t in, int64_t out)
{
    struct graph *graph = &fixture->graph;
    struct conv_attributes conv = {{1, 1}, {0, 0, 0, 0}, {0}, op == &op_conv2d ? ACTIVATION_RELU : ACTIVATION_NONE};
    struct conv_gradient_attributes back = {conv, {9, 11}, {3, 3}, true, 1};
    fixture_begin(fixture, 3);
    struct tensor *k = graph_weight(graph, "k", TYPE_F32, SHAPE(3, 3, in, out), true);
    struct tensor *bias = graph_weight(graph, "bias", TYPE_F32, SHAPE(out), true);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(3, 9, 11, in));
    struct tensor *dy = graph_input(graph, "dy", 1, TYPE_F32, SHAPE(3, 7, 9, out));
    if (op == &op_conv2d)
        graph_add(graph, op, (struct tensor *[]){x, k, bias}, 3, &conv, sizeof conv);
    else if (op == &op_conv2d_input_gradient)
        graph_add(graph, op, (struct tensor *[]){dy, k}, 2, &back, sizeof back);
    else
        graph_add(graph, op, (struct tensor *[]){x, dy}, 2, &back, sizeof back);
    fixture_end(fixture);
}

static const struct op *const convolutions[] = {&op_conv2d, &op_conv2d_input_gradient, &op_conv2d_weight_gradient};
static const int64_t channels[][2] = {{3, 32}, {32, 64}, {1, 32}};

static void convolutions_are_compiled(void **state)
{
    (void)state;
    struct bench bench;
    struct fixture fast, exact;
    bench_open(&bench, NULL, 2);
    const bool library = cpu_convolution_count > 0; /* else it was built without */
    for (int i = 0; i < 9; i++) {
        build_convolution(&fast, convolutions[i / 3], channels[i % 3][0], channels[i % 3][1]);
        build_convolution(&exact, convolutions[i / 3], channels[i % 3][0], channels[i % 3][1]);
        const char *how = kernel_of(&bench, fast.node, 2, 3)->implementation;
        /* No gradient flows to the picture: the library may have nothing good there. Weights over few channels are our
           own (weights_of_many_taps). */
        bool free = i / 3 == 1 && i % 3 != 1, ours = !library || (i / 3 == 2 && i % 3 != 1);
        if (!strstr(how, "jit") && !strstr(how, "brg") && !free && !(ours && strncmp(how, "own ", 4) == 0))
            fail_msg("%s with %d channels is run by %s", convolutions[i / 3]->name, (int)channels[i % 3][0], how);
        check_pair(&bench, &fast, &exact, 2, 3);
        check_pair(&bench, &fast, &exact, 0, 3);
        fixture_release(&fast);
        fixture_release(&exact);
    }
    bench_close(&bench);
}

/* ---- kernels of one cell and many channels ------------------------------- */

struct point_case {
    int64_t height, width, stride_down, stride, in, out;
    bool bias;
};

static void build_points(struct fixture *fixture, const struct op *op, const struct point_case *c)
{
    struct graph *graph = &fixture->graph;
    struct conv_gradient_attributes back = {
        {{c->stride_down, c->stride}, {0}, {0}, ACTIVATION_NONE}, {c->height, c->width}, {1, 1}, true, 1};
    fixture_begin(fixture, 3);
    struct tensor *k = graph_weight(graph, "k", TYPE_F32, SHAPE(1, 1, c->in, c->out), true);
    struct tensor *bias = graph_weight(graph, "bias", TYPE_F32, SHAPE(c->in), true);
    struct tensor *bias_of_y = graph_weight(graph, "bias_of_y", TYPE_F32, SHAPE(c->out), true);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(3, c->height, c->width, c->in));
    struct tensor *dy =
        graph_input(graph, "dy", 1, TYPE_F32, SHAPE(3, c->height / c->stride_down, c->width / c->stride, c->out));
    if (op == &op_conv2d)
        graph_add(graph, op, (struct tensor *[]){x, k, bias_of_y}, c->bias ? 3 : 2, &back.conv, sizeof back.conv);
    else if (op == &op_conv2d_input_gradient)
        graph_add(graph, op, (struct tensor *[]){dy, k, bias}, c->bias ? 3 : 2, &back, sizeof back);
    else
        graph_add(graph, op, (struct tensor *[]){x, dy}, 2, &back, sizeof back);
    fixture_end(fixture);
}

static void check_points(const struct cpu_variant *variant, const struct op *op, const struct point_case *c,
                         int64_t count)
{
    struct bench bench;
    struct fixture fast, exact;
    bench_open(&bench, variant, 2);
    build_points(&fast, op, c);
    build_points(&exact, op, c);
    assert_string_equal(kernel_of(&bench, fast.node, 2, 3)->implementation, variant->implementation);
    check_pair(&bench, &fast, &exact, 2, count);
    fixture_release(&fast);
    fixture_release(&exact);
    bench_close(&bench);
}

/* The same bits for samples one by one and all at once. */
static void expect_bits_of_any_cut(const struct cpu_variant *variant, const struct op *op, const struct point_case *c)
{
    struct bench bench;
    struct fixture one, all;
    bench_open(&bench, variant, 2);
    build_points(&one, op, c);
    build_points(&all, op, c);
    fixture_fill(&one, 3);
    fixture_fill(&all, 3);
    run_kernel(&bench, &one, one.node, 1, 3);
    run_kernel(&bench, &all, all.node, 3, 3);
    int y = one.node->output[0]->id;
    assert_memory_equal(one.data[y], all.data[y], one.bytes[y]);
    fixture_release(&one);
    fixture_release(&all);
    bench_close(&bench);
}

/* Runs as long as tiles, shorter and longer; ragged channels; more steps than a block has. */
static void points_of_many_channels(void **state)
{
    (void)state;
    static const struct point_case cases[] = {
        {4, 6, 2, 2, 520, 1030, false},
        {7, 2, 1, 1, 1030, 520, true},
        {2, 34, 2, 2, 512, 1024, true},
        {6, 5, 3, 1, 800, 700, false},
    };
    for (int v = 0; v < cpu_variant_count; v++)
        for (size_t i = 0; cpu_variants[v].supported() && i < COUNT(cases); i++) {
            const struct cpu_variant *variant = cpu_variants[v].variant;
            check_points(variant, &op_conv2d_input_gradient, &cases[i], i ? 3 : 2);
            check_points(variant, &op_conv2d_weight_gradient, &cases[i], i ? 3 : 2);
            if (cases[i].stride_down > 1) {
                check_points(variant, &op_conv2d, &cases[i], i ? 3 : 2);
                expect_bits_of_any_cut(variant, &op_conv2d, &cases[i]);
            }
        }
}

/* Products line by line: lines of a tile, of several and a rest; lines that are left out; ragged channels. */
static void lines_that_a_stride_leaves(void **state)
{
    (void)state;
    static const struct point_case cases[] = {
        {4, 28, 2, 2, 128, 160, true},
        {6, 14, 3, 2, 270, 128, false},
        {2, 62, 1, 2, 150, 130, true},
    };
    for (int v = 0; v < cpu_variant_count; v++)
        for (size_t i = 0; cpu_variants[v].supported() && i < COUNT(cases); i++)
            check_points(cpu_variants[v].variant, &op_conv2d_input_gradient, &cases[i], i ? 3 : 2);
}

/* One vector and a half of columns: ours in all three roles, where the library would leave lanes empty. */
static void a_vector_and_a_half_of_channels(void **state)
{
    (void)state;
    static const struct {
        const struct cpu_variant *variant;
        int64_t lanes;
    } widths[] = {{&cpu_variant_avx512, 16}, {&cpu_variant_avx2, 8}, {&cpu_variant_plain, 4}};
    for (int v = 0; v < cpu_variant_count; v++) {
        const struct cpu_variant *variant = cpu_variants[v].variant;
        int64_t lanes = 0;
        for (size_t i = 0; i < COUNT(widths); i++)
            lanes = widths[i].variant == variant ? widths[i].lanes : lanes;
        assert_true(lanes > 0);
        const struct point_case few = {5, 7, 1, 1, 4 * lanes, lanes * 3 / 2, true};
        const struct point_case many = {5, 7, 1, 1, lanes * 3 / 2, 4 * lanes, true};
        if (!cpu_variants[v].supported())
            continue;
        check_points(variant, &op_conv2d, &few, 3);
        check_points(variant, &op_conv2d_input_gradient, &many, 3);
        check_points(variant, &op_conv2d_weight_gradient, &few, 3);
        expect_bits_of_any_cut(variant, &op_conv2d, &few);
        expect_bits_of_any_cut(variant, &op_conv2d_input_gradient, &many);
    }
}

/* ---- weights of kernels with many taps ----------------------------------- */

struct taps_case {
    int64_t height, width, kernel[2], in, out;
    struct conv_attributes conv;
    bool bias;
};

static int64_t cells_of(const struct taps_case *c, int axis)
{
    int64_t reach = (c->kernel[axis] - 1) * (c->conv.gap[axis] + 1) + 1;
    int64_t extent = (axis ? c->width : c->height) + c->conv.pad[2 * axis] + c->conv.pad[2 * axis + 1];
    return (extent - reach) / c->conv.stride[axis] + 1;
}

static void build_taps(struct fixture *fixture, const struct taps_case *c)
{
    struct graph *graph = &fixture->graph;
    struct conv_gradient_attributes back = {c->conv, {c->height, c->width}, {c->kernel[0], c->kernel[1]}, c->bias, 1};
    fixture_begin(fixture, 3);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_F32, SHAPE(3, c->height, c->width, c->in));
    struct tensor *dy = graph_input(graph, "dy", 1, TYPE_F32, SHAPE(3, cells_of(c, 0), cells_of(c, 1), c->out));
    graph_add(graph, &op_conv2d_weight_gradient, (struct tensor *[]){x, dy}, 2, &back, sizeof back);
    fixture_end(fixture);
}

/* The reference runs once for all instruction sets: it takes seconds. */
static void check_taps(const struct taps_case *c, int64_t count)
{
    struct fixture fast, exact;
    struct bench bench;
    build_taps(&exact, c);
    fixture_fill(&exact, 3);
    fixture_run(&exact, exact.node, 0, count);
    for (int v = 0; v < cpu_variant_count; v++) {
        const struct cpu_variant *variant = cpu_variants[v].variant;
        if (!cpu_variants[v].supported())
            continue;
        bench_open(&bench, variant, 2);
        build_taps(&fast, c);
        fixture_fill(&fast, 3);
        fixture_spoil(&fast, count);
        assert_string_equal(kernel_of(&bench, fast.node, 2, 3)->implementation, variant->implementation);
        run_kernel(&bench, &fast, fast.node, 2, count);
        for (int k = 0; k < fast.node->op->outputs; k++)
            compare(&fast, &exact, fast.node->output[k]->id, count);
        fixture_release(&fast);
        bench_close(&bench);
    }
    fixture_release(&exact);
}

/* Few channels: taps of one tile, of several, of less than one; blocks of lines, and ragged channels of y. Many
   channels: lines that a tap does not meet, all of them too, strides and gaps; more samples than are taken at once. */
static void weights_of_many_taps(void **state)
{
    (void)state;
    static const struct taps_case cases[] = {
        {33, 70, {7, 7}, 3, 64, {{2, 2}, {3, 3, 3, 3}, {0}, ACTIVATION_NONE}, false},
        {14, 131, {3, 3}, 3, 32, {{2, 2}, {0, 1, 0, 1}, {0}, ACTIVATION_NONE}, true},
        {9, 8, {5, 2}, 1, 17, {{1, 3}, {5, 1, 0, 2}, {1, 0}, ACTIVATION_NONE}, true},
        {6, 40, {1, 11}, 4, 50, {{1, 2}, {0, 0, 4, 9}, {0}, ACTIVATION_NONE}, false},
        {3, 3, {3, 3}, 520, 512, {{1, 1}, {1, 1, 1, 1}, {0}, ACTIVATION_NONE}, true},
        {5, 9, {2, 3}, 300, 896, {{2, 3}, {6, 0, 0, 4}, {0, 1}, ACTIVATION_NONE}, false},
        {29, 9, {1, 2}, 1024, 256, {{1, 1}, {0, 0, 1, 0}, {0}, ACTIVATION_NONE}, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_taps(&cases[i], i % 2 ? 3 : 2);
}

static void build_small_taps(struct fixture *fixture, const struct taps_case *c, const struct op *op)
{
    struct graph *graph = &fixture->graph;
    struct conv_gradient_attributes back = {c->conv, {c->height, c->width}, {c->kernel[0], c->kernel[1]}, c->bias, 1};
    fixture_begin(fixture, 3);
    struct tensor *k = graph_weight(graph, "k", TYPE_BF16, SHAPE(c->kernel[0], c->kernel[1], c->in, c->out), true);
    struct tensor *x = graph_input(graph, "x", 0, TYPE_BF16, SHAPE(3, c->height, c->width, c->in));
    struct tensor *dy = graph_input(graph, "dy", 1, TYPE_BF16, SHAPE(3, cells_of(c, 0), cells_of(c, 1), c->out));
    if (op == &op_conv2d)
        graph_add(graph, op, (struct tensor *[]){x, k}, 2, &c->conv, sizeof c->conv);
    else if (op == &op_conv2d_input_gradient)
        graph_add(graph, op, (struct tensor *[]){dy, k}, 2, &back, sizeof back);
    else
        graph_add(graph, op, (struct tensor *[]){x, dy}, 2, &back, sizeof back);
    fixture_end(fixture);
}

/* Zeros that are a row's and its neighbour's: of either side, more than a block of them, more on one side than on the
   other, more than a kernel has cells. Columns of dy that are packed in several goes. */
static void small_floats_with_zeros_around(void **state)
{
    (void)state;
    static const struct taps_case cases[] = {
        {7, 7, {3, 3}, 40, 24, {{1, 1}, {1, 1, 1, 1}, {0}, ACTIVATION_NONE}, true},
        {6, 8, {3, 3}, 8, 16, {{1, 1}, {40, 40, 40, 40}, {39, 39}, ACTIVATION_NONE}, false},
        {5, 6, {2, 4}, 33, 50, {{1, 1}, {0, 1, 2, 1}, {0}, ACTIVATION_NONE}, true},
        {9, 11, {3, 3}, 16, 34, {{2, 1}, {1, 1, 1, 1}, {0}, ACTIVATION_NONE}, false},
        {8, 6, {1, 4}, 18, 20, {{1, 1}, {0, 0, 3, 0}, {0}, ACTIVATION_NONE}, false},
        {30, 30, {1, 1}, 6, 640, {{1, 1}, {0}, {0}, ACTIVATION_NONE}, false},
        {24, 24, {2, 2}, 4, 1090, {{1, 1}, {1, 0, 1, 0}, {0}, ACTIVATION_NONE}, true},
        {2, 200, {1, 3}, 128, 16, {{1, 1}, {0, 0, 130, 130}, {0, 129}, ACTIVATION_NONE}, false},
        {6, 7, {1, 1}, 8, 16, {{1, 1}, {1, 1, 1, 1}, {0}, ACTIVATION_NONE}, false},
        {6, 9, {3, 3}, 4, 8, {{1, 1}, {1, 1, 4, 1}, {0}, ACTIVATION_NONE}, true},
    };
    static const struct op *const ops[] = {&op_conv2d, &op_conv2d_input_gradient, &op_conv2d_weight_gradient};
    struct bench bench;
    struct fixture fast, exact;
    bench_open(&bench, NULL, 2);
    for (size_t i = 0; i < 3 * COUNT(cases); i++) {
        build_small_taps(&fast, &cases[i / 3], ops[i % 3]);
        build_small_taps(&exact, &cases[i / 3], ops[i % 3]);
#ifdef __x86_64__
        if (tiles_allowed())
            assert_string_equal(kernel_of(&bench, fast.node, 2, 3)->implementation, tiles_name());
#endif
        check_pair(&bench, &fast, &exact, i % 2 ? 2 : 3, i % 5 ? 3 : 2);
        fixture_release(&fast);
        fixture_release(&exact);
    }
    bench_close(&bench);
}

/* Paddings and gaps of 2^30 cells: sizes of blocks are not multiplied before they are compared. */
static void far_paddings_take_no_room(void **state)
{
    (void)state;
    const int64_t far = (int64_t)1 << 30;
    const struct taps_case c = {1,    2, {3, 2}, 4, 16, {{1, far}, {far, far, 0, far}, {far - 1, 0}, ACTIVATION_NONE},
                                false};
    struct bench bench;
    struct fixture fixture;
    for (int v = 0; v < cpu_variant_count; v++) {
        if (!cpu_variants[v].supported())
            continue;
        bench_open(&bench, cpu_variants[v].variant, 1);
        build_taps(&fixture, &c);
        assert_true(kernel_of(&bench, fixture.node, 2, 3)->scratch_bytes < 1 << 24);
        fixture_release(&fixture);
        bench_close(&bench);
    }
}

#ifdef __x86_64__
/* Element (i, j) of a block, as tile_pairs.h has it. */
static double pairs_sum(const struct tile_pairs *t, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t s = 0; s < t->steps; s++) {
        int64_t pairs = t->every && s % t->every == t->every - 1 ? t->last : t->pairs;
        for (int64_t e = 0; e < 2 * pairs; e++) {
            int64_t from = (t->at ? t->at[s] : s * t->next) + i * t->a_row + e;
            int64_t with = ((s * 2 + j / 16) * t->pairs + e / 2) * 32 + j % 16 * 2 + e % 2;
            sum += element_get(t->a, TYPE_BF16, from) * element_get(t->b, TYPE_BF16, with);
        }
    }
    return sum;
}

/* Steps at places of their own or one behind the other, of 1 to 16 pairs: as tiles would have them. Rows, columns and
   pairs that nobody wants are left alone. */
static void blocks_of_pairs(void **state)
{
    (void)state;
    enum { ROW = 40, STEPS = 3 };
    static const int64_t at[STEPS] = {5, 0, 3}, pairs[] = {1, 5, 16};
    static const struct {
        bool half;
        int64_t every, last;
        int first, rows;
    } wanted[] = {{false, 0, 0, 0, 0}, {true, 0, 0, 0, 0},  {false, 0, 0, 3, 0},  {false, 0, 0, 0, 17},
                  {true, 0, 0, 5, 1},  {true, 2, 1, 0, 31}, {false, 3, 1, 7, 23}, {false, 1, 1, 0, 12}};
    uint16_t a[33 * ROW + STEPS * 32], b[STEPS * 2 * 16 * 32];
    float sums[32 * 32];
    if (!__builtin_cpu_supports("avx512bf16"))
        skip();
    for (size_t i = 0; i < COUNT(a); i++)
        a[i] = (uint16_t)((i % 3 ? 0x3f80 : 0xbf00) + i * 7 % 64); /* about 1 and -1/2 */
    for (size_t i = 0; i < COUNT(b); i++)
        b[i] = (uint16_t)((i % 5 ? 0x3f00 : 0xbf80) + i * 5 % 64);
    for (size_t k = 0; k < 6 * COUNT(wanted); k++) {
        size_t w = k / 6;
        const struct tile_pairs t = {a,
                                     ROW,
                                     k % 2 ? at : NULL,
                                     4,
                                     STEPS,
                                     pairs[k / 2 % 3],
                                     b,
                                     wanted[w].half,
                                     wanted[w].every,
                                     wanted[w].last,
                                     wanted[w].first,
                                     wanted[w].rows};
        int64_t end = t.rows ? t.first + t.rows : 32;
        memset(sums, POISON, sizeof sums);
        tile_pairs_run(sums, &t);
        for (int64_t i = 0; i < 32; i++)
            for (int64_t j = 0; j < 32; j++)
                if (i >= t.first && i < end && j < (t.half ? 16 : 32))
                    assert_float_equal(sums[i * 32 + j], pairs_sum(&t, i, j), 1e-4);
                else
                    assert_int_equal(*(unsigned char *)&sums[i * 32 + j], POISON);
    }
}
#endif

static void expect_fast(struct bench *bench, const struct model_convolution *c, enum conv_role role)
{
    struct fixture fixture;
    struct chains chains;
    fixture_begin(&fixture, 32);
    model_convolution_add(&fixture.graph, c, role, TYPE_F32);
    fixture_end(&fixture);
    assert_int_equal(chain_find(&chains, &fixture.graph, NULL), PLIM_OK);
    struct cut cut;
    fixture.node->op->cut(&cut, fixture.node);
    struct sum_order sums = sum_order(fixture.node, &cut);
    int64_t slice = sums.leaves ? piece_most(cut.extent, sum_grain(&cut), sums.leaves) : chain_slice(&chains.chain[0]);
    const char *how = kernel_of(bench, fixture.node, slice, 32)->implementation;
    if (strcmp(how, "reference") == 0 || strncmp(how, "onednn ref", 10) == 0 || strncmp(how, "onednn gemm", 11) == 0)
        fail_msg("%s: %s of %lldx%lld, %lld -> %lld, %lldx%lld is run by %s", c->model, fixture.node->op->name,
                 (long long)c->kernel, (long long)c->kernel, (long long)c->in, (long long)c->out, (long long)c->size,
                 (long long)c->size, how);
    fixture_release(&fixture);
}

/* Never a silent fall to a slow path: every convolution of two well-known models, in the slices that a plan takes. */
static void models_run_on_fast_kernels(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, NULL, 2);
    for (int i = 0; i < model_convolutions_count; i++)
        for (int role = 0; role < 3; role++)
            if (!model_convolutions[i].first || role != CONV_INPUT_GRADIENT)
                expect_fast(&bench, &model_convolutions[i], (enum conv_role)role);
    bench_close(&bench);
}

/* bf16 as it lies against the same through copies in f32 and other kernels: sizes that are done in several shares. */
static void check_small_convolution(struct bench *own, struct bench *other, const struct model_convolution *c,
                                    enum conv_role role)
{
    struct fixture fast, exact;
    struct fixture *const both[] = {&fast, &exact};
    for (int i = 0; i < 2; i++) {
        fixture_begin(both[i], 3);
        model_convolution_add(&both[i]->graph, c, role, TYPE_BF16);
        fixture_end(both[i]);
        fixture_fill(both[i], 3);
        run_kernel(i ? other : own, both[i], both[i]->node, 2, 3);
    }
    for (int k = 0; k < fast.node->output_count; k++)
        compare(&fast, &exact, fast.node->output[k]->id, 3);
    fixture_release(&fast);
    fixture_release(&exact);
}

static void models_in_bf16_are_the_same_as_they_lie(void **state)
{
    (void)state;
    if (cpu_convolution_count == 0)
        /* Built without oneDNN, the other kernel is the reference: minutes for what test_kernels compares small. */
        skip();
    struct bench own, other;
    const struct cpu_choice *choice = &cpu_variants[cpu_variant_count > 2 && cpu_variants[1].supported() ? 1 : 0];
    struct cpu_variant library = *choice->variant; /* without its own kernels: oneDNN's, or columns */
    library.entry_count = 0;
    bench_open(&own, NULL, 2);
    bench_open(&other, &library, 2);
    for (int i = 0; i < model_convolutions_count; i++)
        for (int role = 0; role < 3; role++)
            if (!model_convolutions[i].first || role != CONV_INPUT_GRADIENT)
                check_small_convolution(&own, &other, &model_convolutions[i], (enum conv_role)role);
    bench_close(&own);
    bench_close(&other);
}

/* More threads than contexts, all with one kernel, each with numbers of its
   own: what each gets is what it gets alone. */
#define CROWD 8

struct crowd {
    const struct kernel *kernel;
    struct call call[CROWD];
    const struct crowd *expected;
    size_t bytes; /* of output 0 */
    atomic_int wrong;
};

static void crowd_run(void *context, int unit, int worker)
{
    (void)worker;
    struct crowd *crowd = context;
    for (int i = 0; i < 1000; i++) {
        crowd->kernel->run(crowd->kernel, &crowd->call[unit]);
        crowd->wrong += memcmp(crowd->call[unit].output[0], crowd->expected->call[unit].output[0], crowd->bytes) != 0;
    }
}

static void crowd_take(struct bench *bench, struct crowd *crowd, const struct fixture *fixture)
{
    const struct node *node = fixture->node;
    for (int unit = 0; unit < CROWD; unit++) {
        struct call *call = &crowd->call[unit];
        fixture_call(call, fixture, node, 0, 3, 3);
        call->scratch = budget_take(bench->budget, TAG_SCRATCH, crowd->kernel->scratch_bytes);
        float *x = budget_take(bench->budget, TAG_SCRATCH, fixture->bytes[node->input[0]->id]);
        memcpy(x, call->input[0], fixture->bytes[node->input[0]->id]);
        for (int64_t i = 0; i < shape_count(&node->input[0]->shape); i++)
            x[i] *= (float)(unit + 1);
        call->input[0] = x;
        for (int k = 0; k < 2; k++)
            call->output[k] = budget_take(bench->budget, TAG_SCRATCH, fixture->bytes[node->output[k]->id]);
    }
}

static void crowd_give(struct bench *bench, struct crowd *crowd, const struct fixture *fixture)
{
    const struct node *node = fixture->node;
    for (int unit = 0; unit < CROWD; unit++) {
        struct call *call = &crowd->call[unit];
        budget_give(bench->budget, TAG_SCRATCH, call->scratch, crowd->kernel->scratch_bytes);
        budget_give(bench->budget, TAG_SCRATCH, call->input[0], fixture->bytes[node->input[0]->id]);
        for (int k = 0; k < 2; k++)
            budget_give(bench->budget, TAG_SCRATCH, call->output[k], fixture->bytes[node->output[k]->id]);
    }
}

static void threads_share_a_convolution(void **state)
{
    (void)state;
    struct bench bench;
    struct fixture fixture;
    struct crowd alone = {0}, together = {.expected = &alone};
    struct team *team;
    bench_open(&bench, NULL, 2);
    backend_threads(bench.backend, 1);
    assert_int_equal(team_make(&team, bench.budget, 4, NULL, NULL), PLIM_OK);
    build_convolution(&fixture, &op_conv2d_weight_gradient, 32, 64);
    fixture_fill(&fixture, 4);
    alone.kernel = together.kernel = kernel_of(&bench, fixture.node, 3, 3);
    crowd_take(&bench, &alone, &fixture);
    crowd_take(&bench, &together, &fixture);
    for (int unit = 0; unit < CROWD; unit++)
        alone.kernel->run(alone.kernel, &alone.call[unit]);
    together.bytes = fixture.bytes[fixture.node->output[0]->id];
    team_run(team, CROWD, crowd_run, &together);
    assert_int_equal(together.wrong, 0);
    crowd_give(&bench, &alone, &fixture);
    crowd_give(&bench, &together, &fixture);
    team_free(team);
    fixture_release(&fixture);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_are_compiled),
        cmocka_unit_test(threads_share_a_convolution),
        cmocka_unit_test(points_of_many_channels),
        cmocka_unit_test(lines_that_a_stride_leaves),
        cmocka_unit_test(a_vector_and_a_half_of_channels),
#ifdef __x86_64__
        cmocka_unit_test(blocks_of_pairs),
#endif
        cmocka_unit_test(weights_of_many_taps),
        cmocka_unit_test(far_paddings_take_no_room),
        cmocka_unit_test(models_run_on_fast_kernels),
        cmocka_unit_test(small_floats_with_zeros_around),
        cmocka_unit_test(models_in_bf16_are_the_same_as_they_lie),
    };
    return cmocka_run_group_tests_name("kernels_convolution", tests, NULL, NULL);
}
