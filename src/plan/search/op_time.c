/* op_time.c - a node takes as long as its arithmetic or its traffic on a nominal machine, whichever is longer, times what
   was measured of it. */
#include "plan/search/op_time.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers/hash.h"
#include "transform/in_place.h"

#define MULTIPLY_ADDS 100e9 /* a second */
#define BYTES         25e9  /* a second, read or written */
#define DISK_BYTES    1.5e9

uint64_t op_cost_key(const char *op, const char *layer)
{
    return fnv1a(fnv1a(FNV1A_START, op, strlen(op) + 1), layer, strlen(layer));
}

static int by_key(const void *left, const void *right)
{
    const struct op_cost *a = left, *b = right;
    return a->key < b->key ? -1 : a->key > b->key;
}

void op_costs_settle(struct op_costs *costs)
{
    double measured = 0, nominal = 0;
    int count = 0;
    if (costs->count)
        qsort(costs->cost, (size_t)costs->count, sizeof *costs->cost, by_key);
    for (int i = 0; i < costs->count; i++) {
        const struct op_cost *cost = &costs->cost[i];
        measured += cost->measured;
        nominal += cost->nominal;
        if (count && costs->cost[count - 1].key == cost->key) {
            costs->cost[count - 1].measured += cost->measured;
            costs->cost[count - 1].nominal += cost->nominal;
        } else {
            costs->cost[count++] = *cost;
        }
    }
    costs->count = count;
    costs->others = nominal > 0 ? measured / nominal : 1;
}

/* What the machine took for a nominal second of this node. */
static double ratio_of(const struct op_costs *costs, const struct node *node)
{
    const struct op_cost key = {.key = op_cost_key(node->op->name, node->name)};
    const struct op_cost *cost =
        costs->count ? bsearch(&key, costs->cost, (size_t)costs->count, sizeof key, by_key) : NULL;
    return cost && cost->nominal > 0 ? cost->measured / cost->nominal : costs->others;
}

static double operand_bytes(const struct tensor *tensor)
{
    return tensor ? (double)tensor_bytes(tensor) : 0;
}

double node_seconds(const struct op_costs *costs, const struct node *node)
{
    struct cut cut;
    double bytes = 0;
    node->op->cut(&cut, node);
    for (int i = 0; i < node->input_count; i++)
        bytes += operand_bytes(node->input[i]);
    for (int k = 0; k < node->output_count; k++)
        bytes += operand_bytes(node->output[k]);
    double work = cut.work / MULTIPLY_ADDS, traffic = bytes / BYTES;
    return (work > traffic ? work : traffic) * (costs ? ratio_of(costs, node) : 1);
}

double transfer_seconds(const struct op_costs *costs, uint64_t bytes)
{
    return (double)bytes / (costs && costs->disk_bytes > 0 ? costs->disk_bytes : DISK_BYTES);
}
