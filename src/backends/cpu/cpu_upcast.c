/* cpu_upcast.c - nodes with operands of the small floats, through the kernels of f32.

   The node has a twin in which every small operand is f32; its kernel does the work. What is cut is copied to f32, what
   is read whole once an instruction (pack), and results are rounded on their way back. Sums over slices are f32 in the
   graph already.

   Where the kernel takes elements alone, or does little with each of a row, a slice goes through in pieces whose copies
   stay in the nearest cache. */
#include "backends/cpu/cpu.h"

#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "base/numbers/minmax.h"
#include "base/status.h"
#include "ops/ops.h"

#define LINE        64
#define PACK_UNITS  16
#define PIECE       2048 /* elements of a piece */
#define LITTLE_WORK 32   /* multiply-adds an element, at most, of what goes in pieces of rows */

/* Where the f32 copy of an operand lies. */
enum where { AS_IT_IS, IN_SCRATCH, IN_PACK };
struct copy {
    enum where where;
    uint64_t at;
    int64_t row; /* elements of a row of the cut axis */
};

struct widened {
    const struct cpu_variant *variant;
    const struct kernel *inner;
    struct node node; /* the twin */
    struct tensor tensor[MOST_INPUTS + MOST_OUTPUTS];
    struct copy input[MOST_INPUTS], output[MOST_OUTPUTS];
    struct cut cut;
    bool flat;                          /* the inner kernel takes elements, as rows of one */
    int64_t piece;                      /* rows that go through at once */
    uint64_t inner_scratch, inner_pack; /* where the twin's own begin */
    void (*round_back)(const struct widened *widened, const struct call *call); /* of outputs that are written whole */
};

static bool any_small(const struct node *node)
{
    bool small = false;
    for (int i = 0; i < node->input_count; i++)
        small |= node->input[i] && cpu_small_type(node->input[i]->type);
    for (int k = 0; k < node->output_count; k++)
        small |= cpu_small_type(node->output[k]->type);
    return small;
}

static struct tensor *twin_of(struct tensor *copy, const struct tensor *tensor)
{
    if (!tensor)
        return NULL;
    *copy = *tensor;
    if (cpu_small_type(tensor->type))
        copy->type = TYPE_F32;
    return copy;
}

static void make_twin(struct widened *widened, const struct node *node)
{
    widened->node = *node;
    for (int i = 0; i < node->input_count; i++)
        widened->node.input[i] = twin_of(&widened->tensor[i], node->input[i]);
    for (int k = 0; k < node->output_count; k++)
        widened->node.output[k] = twin_of(&widened->tensor[MOST_INPUTS + k], node->output[k]);
}

/* ---- outputs that slices write parts of ----------------------------------- */

/* Rows of `width` elements, `stride` apart, from the pack's copy of output k to the output itself. */
static void round_rows(const struct widened *widened, const struct call *call, int k, int64_t first, int64_t width,
                       int64_t stride, int64_t rows)
{
    enum type type = call->node->output[k]->type;
    const float *from = (const float *)((const char *)call->pack + widened->output[k].at) + first;
    char *to = (char *)call->output[k] + first * (int64_t)type_bytes(type);
    for (int64_t row = 0; row < rows && widened->output[k].where == IN_PACK; row++)
        widened->variant->narrow(to + row * stride * (int64_t)type_bytes(type), from + row * stride, type, width);
}

/* Columns begin..end of all rows. */
static void round_columns(const struct widened *widened, const struct call *call)
{
    const struct matmul_attributes *attributes = call->node->attributes;
    const struct shape *y = &call->node->output[0]->shape, *w = &call->node->input[1]->shape;
    int64_t columns = 1;
    int inner = attributes->inner_axes ? attributes->inner_axes : 1;
    for (int i = attributes->transposed ? 0 : inner; i < (attributes->transposed ? inner : w->rank); i++)
        columns *= w->dim[i];
    round_rows(widened, call, 0, call->begin, call->end - call->begin, columns, call->count * shape_row(y) / columns);
}

static void round_matrices(const struct widened *widened, const struct call *call)
{
    struct batch_matmul_sizes z = batch_matmul_sizes(call->node);
    int64_t end = min_i64(call->end, call->count * z.inner), each = z.m * z.n;
    if (end > call->begin)
        round_rows(widened, call, 0, call->begin * each, (end - call->begin) * each, 0, 1);
}

/* Heads begin..end of output k, [samples, rows, all * width]: `width` of each row are a head's. */
static void round_heads(const struct widened *widened, const struct call *call, int k, int64_t all, int64_t width)
{
    int64_t rows = call->node->output[k]->shape.dim[1], end = min_i64(call->end, call->count * all);
    for (int64_t i = call->begin; i < end; i++)
        round_rows(widened, call, k, ((i / all) * rows * all + i % all) * width, width, all * width, rows);
}

static void round_attention(const struct widened *widened, const struct call *call)
{
    struct attention_sizes z = attention_sizes(call->node);
    round_heads(widened, call, 0, z.heads, z.value_depth);
}

static void round_attention_gradient(const struct widened *widened, const struct call *call)
{
    struct attention_sizes z = attention_sizes(call->node);
    round_heads(widened, call, 0, z.groups, z.heads / z.groups * z.depth);
    round_heads(widened, call, 1, z.groups, z.depth);
    round_heads(widened, call, 2, z.groups, z.value_depth);
}

/* In one slice. */
static void round_all(const struct widened *widened, const struct call *call)
{
    for (int k = 0; k < call->node->output_count; k++)
        round_rows(widened, call, k, 0, shape_count(&call->node->output[k]->shape), 0, 1);
}

static const struct {
    const struct op *op;
    void (*round_back)(const struct widened *widened, const struct call *call);
} whole_outputs[] = {
    {&op_matmul, round_columns},
    {&op_batch_matmul, round_matrices},
    {&op_attention, round_attention},
    {&op_attention_gradient, round_attention_gradient},
};

static bool find_round_back(struct widened *widened, const struct node *node, const struct cut *cut)
{
    for (size_t i = 0; i < COUNT(whole_outputs); i++)
        if (whole_outputs[i].op == node->op)
            widened->round_back = whole_outputs[i].round_back;
    if (!widened->round_back && cut->extent == 1)
        widened->round_back = round_all;
    return widened->round_back != NULL;
}

/* ---- making --------------------------------------------------------------- */

static void place_copy(struct copy *copy, const struct widened *widened, const struct tensor *tensor, enum part part,
                       uint64_t *scratch, uint64_t *pack)
{
    bool cut = part == PART_CUT;
    copy->row = tensor && !widened->flat ? shape_row(&tensor->shape) : 1;
    if (!tensor || !cpu_small_type(tensor->type))
        return;
    int64_t count = cut ? widened->piece * copy->row : shape_count(&tensor->shape);
    uint64_t *at = cut ? scratch : pack;
    copy->where = cut ? IN_SCRATCH : IN_PACK;
    copy->at = *at;
    *at += round_up((uint64_t)count * sizeof(float), LINE);
}

/* False where an output is neither cut nor one whose written part is known, or is a sum in a small type. */
static bool place_copies(struct widened *widened, const struct node *node, const struct cut *cut)
{
    for (int i = 0; i < node->input_count; i++)
        place_copy(&widened->input[i], widened, node->input[i], cut->input[i], &widened->inner_scratch,
                   &widened->inner_pack);
    for (int k = 0; k < node->output_count; k++) {
        place_copy(&widened->output[k], widened, node->output[k], cut->output[k], &widened->inner_scratch,
                   &widened->inner_pack);
        bool small = widened->output[k].where != AS_IT_IS;
        if (small &&
            (cut->output[k] == PART_SUM || (cut->output[k] == PART_WHOLE && !find_round_back(widened, node, cut))))
            return false;
    }
    for (int i = 0; i < node->input_count; i++)
        if (node->op->updates >> i & 1 && widened->input[i].where == IN_PACK && cut->extent > 1)
            return false;
    return true;
}

static void pack_widened(const struct kernel *kernel, const struct call *whole, int unit, void *pack);
static void run_widened(const struct kernel *kernel, const struct call *call);

static bool same_cut(const struct cut *a, const struct node *twin)
{
    struct cut b;
    twin->op->cut(&b, twin);
    return a->extent == b.extent && a->by_sample == b.by_sample && a->grain == b.grain &&
           memcmp(a->output, b.output, sizeof b.output) == 0;
}

static const struct tensor *rows_tensor(const struct node *node)
{
    return node->output_count ? node->output[0] : node->input[0];
}

/* Rows of the largest operand that is cut, of which a piece takes as many as fit; at least one grain. */
static int64_t rows_of_piece(const struct node *node, const struct cut *cut, int64_t slice)
{
    int64_t most = 1;
    bool cuts = true;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && cut->input[i] == PART_CUT && shape_row(&node->input[i]->shape) > most)
            most = shape_row(&node->input[i]->shape);
    for (int k = 0; k < node->output_count; k++) {
        cuts = cuts && cut->output[k] != PART_WHOLE;
        if (cut->output[k] == PART_CUT && shape_row(&node->output[k]->shape) > most)
            most = shape_row(&node->output[k]->shape);
    }
    int64_t grains = PIECE / most / cut->grain, rows = (grains > 1 ? grains : 1) * cut->grain;
    return !cuts || cut->work > LITTLE_WORK * (double)(most * cut->extent) || rows > slice ? slice : rows;
}

/* What goes through at once: elements, some rows, or the slice. */
static void choose_piece(struct widened *widened, const struct node *node, int64_t slice)
{
    const struct cpu_kernel *inner = cpu_kernel_of(widened->inner);
    bool plain = inner->kernel.implementation == widened->variant->implementation && !inner->kernel.pack_bytes;
    widened->piece = plain ? rows_of_piece(node, &widened->cut, slice) : slice;
    if (!plain || !inner->kernel.each)
        return;
    widened->flat = true;
    widened->inner = inner->kernel.each;
    widened->piece = PIECE;
}

bool cpu_make_widened(struct cpu_kernel *out, const struct node *node, struct cpu_request *request)
{
    struct cpu_backend *backend = request->backend;
    if (!any_small(node))
        return false;
    struct widened *widened = arena_take(&backend->arena, sizeof *widened);
    if (!widened)
        return cpu_refused(request);
    widened->variant = backend->variant;
    make_twin(widened, node);
    node->op->cut(&widened->cut, node);
    if (!same_cut(&widened->cut, &widened->node))
        return false;
    struct kernel_request asked = *request->asked;
    asked.node = &widened->node;
    request->status = cpu_prepare(&widened->inner, &backend->backend, &asked, request->error);
    if (request->status != PLIM_OK || strcmp(widened->inner->implementation, "reference") == 0)
        return false;
    choose_piece(widened, node, request->asked->slice);
    if (!place_copies(widened, node, &widened->cut))
        return false;
    if (widened->flat) {
        out->flat = true;
        out->size[0] = shape_row(&rows_tensor(node)->shape);
    }
    out->own = widened;
    out->kernel.implementation = widened->inner->implementation;
    out->kernel.run = run_widened;
    out->kernel.scratch_bytes = widened->inner_scratch + widened->inner->scratch_bytes;
    size_t pack_bytes = widened->inner_pack + widened->inner->pack_bytes;
    if (pack_bytes) /* the inner kernel packs what we copy, so its packs wait for all copies */
        cpu_set_pack(out, pack_widened, widened->inner->pack_bytes ? 1 : PACK_UNITS, pack_bytes);
    return true;
}

/* ---- running -------------------------------------------------------------- */

static void *copy_at(const struct copy *copy, const void *operand, void *scratch, const void *pack)
{
    if (copy->where == AS_IT_IS)
        return (void *)operand;
    return (char *)(copy->where == IN_SCRATCH ? scratch : (void *)pack) + copy->at;
}

/* The twin's call; nothing is copied yet. */
static struct call twin_call(const struct widened *widened, const struct call *call, const void *pack)
{
    struct call twin = *call;
    twin.node = &widened->node;
    for (int i = 0; i < call->node->input_count; i++)
        twin.input[i] = copy_at(&widened->input[i], call->input[i], call->scratch, pack);
    for (int k = 0; k < call->node->output_count; k++)
        twin.output[k] = copy_at(&widened->output[k], call->output[k], call->scratch, pack);
    twin.scratch = call->scratch ? (char *)call->scratch + widened->inner_scratch : NULL;
    twin.pack = widened->inner->pack_bytes ? (const char *)pack + widened->inner_pack : NULL;
    return twin;
}

static void pack_widened(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    const struct widened *widened = cpu_kernel_of(kernel)->own;
    struct call twin = twin_call(widened, whole, pack);
    for (int i = 0; i < whole->node->input_count; i++) {
        const struct tensor *tensor = whole->node->input[i];
        if (widened->input[i].where != IN_PACK)
            continue;
        int64_t rows = tensor->batched ? whole->count : tensor->shape.rank ? tensor->shape.dim[0] : 1;
        int64_t count = rows * widened->input[i].row;
        int64_t first = count * unit / kernel->pack_units, end = count * (unit + 1) / kernel->pack_units;
        widened->variant->widen((float *)twin.input[i] + first, (const char *)whole->input[i] + first * 2, tensor->type,
                                end - first);
    }
    for (int part = 0; part < widened->inner->pack_units; part++)
        widened->inner->pack(widened->inner, &twin, part, (char *)pack + widened->inner_pack);
}

/* Operands that are cut, from row `row` of the slice on. */
static struct call piece_of(const struct widened *widened, const struct call *call, int64_t row)
{
    const struct cut *cut = &widened->cut;
    struct call piece = *call;
    for (int i = 0; i < call->node->input_count; i++)
        if (call->input[i] && cut->input[i] == PART_CUT)
            piece.input[i] =
                (char *)call->input[i] + row * widened->input[i].row * (int64_t)type_bytes(call->node->input[i]->type);
    for (int k = 0; k < call->node->output_count; k++)
        if (cut->output[k] == PART_CUT)
            piece.output[k] = (char *)call->output[k] +
                              row * widened->output[k].row * (int64_t)type_bytes(call->node->output[k]->type);
    piece.begin = widened->flat ? 0 : call->begin + row;
    piece.add = call->add || row > 0;
    return piece;
}

static void run_piece(const struct widened *widened, const struct call *call, int64_t rows)
{
    const struct node *node = call->node;
    struct call twin = twin_call(widened, call, call->pack);
    for (int i = 0; i < node->input_count; i++)
        if (widened->input[i].where == IN_SCRATCH)
            widened->variant->widen(twin.input[i], call->input[i], node->input[i]->type, rows * widened->input[i].row);
    widened->inner->run(widened->inner, &twin);
    for (int i = 0; i < node->input_count; i++)
        if (widened->input[i].where == IN_SCRATCH && node->op->updates >> i & 1)
            widened->variant->narrow(call->input[i], twin.input[i], node->input[i]->type, rows * widened->input[i].row);
    for (int k = 0; k < node->output_count; k++)
        if (widened->output[k].where == IN_SCRATCH)
            widened->variant->narrow(call->output[k], twin.output[k], node->output[k]->type,
                                     rows * widened->output[k].row);
}

static void run_widened(const struct kernel *kernel, const struct call *call)
{
    const struct widened *widened = cpu_kernel_of(kernel)->own;
    int64_t rows = cpu_rows(kernel, call);
    if (widened->flat)
        rows *= cpu_kernel_of(kernel)->size[0];
    for (int64_t row = 0; row == 0 || row < rows; row += widened->piece) {
        struct call piece = piece_of(widened, call, row);
        int64_t some = rows - row < widened->piece ? rows - row : widened->piece;
        piece.end = row + widened->piece < rows || widened->flat ? piece.begin + some : call->end;
        run_piece(widened, &piece, some);
    }
    if (widened->round_back)
        widened->round_back(widened, call);
    for (int i = 0; i < call->node->input_count; i++) { /* updates of what is read whole, in one slice */
        const struct tensor *x = call->node->input[i];
        if (call->node->op->updates >> i & 1 && widened->input[i].where == IN_PACK)
            widened->variant->narrow(call->input[i], (const float *)((const char *)call->pack + widened->input[i].at),
                                     x->type, shape_count(&x->shape));
    }
}
