/* op_time.c - a node takes as long as its arithmetic or its traffic, whichever is longer.

   The rates are those of a nominal machine, not of this one: plans compare the work of one node with that of another,
   and a plan must be the same in every run. NEEDSWORK: a calibration that is measured once and kept would know kernels
   that are slower than their arithmetic says, and how fast the disk is. */
#include "plan/search/op_time.h"

#include "transform/in_place.h"

#define MULTIPLY_ADDS 100e9 /* a second */
#define BYTES         25e9  /* a second, read or written */
#define DISK_BYTES    1.5e9

static double operand_bytes(const struct tensor *tensor)
{
    return tensor ? (double)tensor_bytes(tensor) : 0;
}

double node_seconds(const struct node *node)
{
    struct cut cut;
    double bytes = 0;
    node->op->cut(&cut, node);
    for (int i = 0; i < node->input_count; i++)
        bytes += operand_bytes(node->input[i]);
    for (int k = 0; k < node->output_count; k++)
        bytes += operand_bytes(node->output[k]);
    double work = cut.work / MULTIPLY_ADDS, traffic = bytes / BYTES;
    return work > traffic ? work : traffic;
}

double transfer_seconds(uint64_t bytes)
{
    return (double)bytes / DISK_BYTES;
}
