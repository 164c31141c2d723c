/* onednn_absent.c - built where oneDNN's headers are not: it takes no convolution, and own kernels run. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/onednn/onednn.h"

const struct cpu_entry cpu_convolution_entries[1];
const int cpu_convolution_count = 0;

void onednn_close(struct onednn *library)
{
    (void)library;
}
