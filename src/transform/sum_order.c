/* sum_order.c - how many parts and leaves a node's sums have.

   Parts let workers share a node; each costs the bytes of its outputs once more. Leaves let a chain have short slices;
   each call of the kernel reads and writes the partial sum. So both are as many as their price allows. */
#include "transform/sum_order.h"

#include "base/numbers/minmax.h"
#include "base/numbers/multiple.h"
#include "transform/in_place.h"

#define MOST_PARTS      64
#define LEAST_PART_WORK 1200.0 /* multiply-adds; with fewer the call itself costs more */

/* The bytes that all partial sums of a node may take: the most that one of these grants. */
#define CHEAP_BYTES (32 * 1024.0)
/* A byte for so many multiply-adds, or for so many bytes of operands, as long as they stay in a cache. */
#define CACHED_BYTES            (512 * 1024.0)
#define WORK_PER_CACHED_BYTE    256.0
#define OPERAND_PER_CACHED_BYTE 16.0
/* A byte for so many multiply-adds; the first division in two is worth more, and one in many parts has a limit. */
#define WORK_PER_BYTE        1024.0
#define WORK_PER_BYTE_OF_TWO 32.0
#define FEW_PARTS            8
#define BYTES_OF_MANY        (1024 * 1024.0)

#define LEAF_BYTES         (256 * 1024) /* of the operands of a leaf that are cut; shorter leaves bring nothing */
#define LEAF_WORK_PER_BYTE 64.0         /* multiply-adds of a leaf for each byte of the sum that it adds to */

#define EVEN_ROWS  8  /* kernels have no ragged edge */
#define MOST_GRAIN 96 /* the grains of heavy gradients divide it */
#define FEW_ROWS   32 /* each is wide (rows of convolution kernels), and worth a piece */
#define MANY_ROWS  512

static int64_t grain_of_extent(const struct cut *cut)
{
    if (cut->by_sample)
        return cut->extent < MANY_ROWS ? 1 : EVEN_ROWS;
    if (cut->extent < FEW_ROWS)
        return 1;
    return cut->extent < 2 * MOST_GRAIN ? EVEN_ROWS : MOST_GRAIN;
}

int64_t sum_grain(const struct cut *cut)
{
    return common_multiple(grain_of_extent(cut), cut->grain);
}

/* What a node adds up. */
struct load {
    double work, sum_bytes, operand_bytes; /* operands: those that are cut */
};

static struct load load_of(const struct node *node, const struct cut *cut)
{
    struct load load = {.work = cut->work};
    for (int k = 0; k < node->output_count; k++)
        if (cut->output[k] == PART_SUM)
            load.sum_bytes += (double)tensor_bytes(node->output[k]);
        else if (cut->output[k] == PART_CUT)
            load.operand_bytes += (double)tensor_bytes(node->output[k]);
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && cut->input[i] == PART_CUT)
            load.operand_bytes += (double)tensor_bytes(node->input[i]);
    return load;
}

static double more(double a, double b)
{
    return a > b ? a : b;
}

static bool parts_pay(int parts, const struct load *load)
{
    double cached = more(load->work / WORK_PER_CACHED_BYTE, load->operand_bytes / OPERAND_PER_CACHED_BYTE);
    double all = load->work / (parts == 2 ? WORK_PER_BYTE_OF_TWO : WORK_PER_BYTE);
    if (parts > FEW_PARTS && all > BYTES_OF_MANY)
        all = BYTES_OF_MANY;
    double allowed = more(more(CHEAP_BYTES, all), cached < CACHED_BYTES ? cached : CACHED_BYTES);
    return load->work >= LEAST_PART_WORK * parts && load->sum_bytes * parts <= allowed;
}

struct sum_order sum_order(const struct node *node, const struct cut *cut)
{
    struct load load = load_of(node, cut);
    int64_t most = min_i64(max_i64(cut->extent / max_i64(sum_grain(cut), cut->least), 1), MOST_CUT_PIECES);
    struct sum_order order = {.parts = 1};
    if (load.sum_bytes == 0)
        return (struct sum_order){0};
    while (2 * order.parts <= min_i64(most, MOST_PARTS) && parts_pay(2 * order.parts, &load))
        order.parts *= 2;
    order.leaves = order.parts;
    while (2 * order.leaves <= most && load.operand_bytes > LEAF_BYTES * (double)order.leaves &&
           load.work >= 2 * LEAF_WORK_PER_BYTE * load.sum_bytes * (double)order.leaves)
        order.leaves *= 2;
    return order;
}
