/* fuzz_calibration.c - any bytes as a calibration: found or not, and the costs of a node are numbers. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "train/calibration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct calibration_place place = {.folder = ".", .features = "avx512 onednn-2.6.3", .threads = 2};
    struct budget *budget;
    struct arena tables;
    struct op_costs costs;
    plim_error error;
    bool found;
    char *text = malloc(bytes + 1);
    if (!text || budget_make(&budget, 64 << 20, &error) != PLIM_OK)
        abort();
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    arena_init(&tables, budget, TAG_PLANNER);
    plim_status status =
        calibration_parse(&found, &costs, &place, &(struct file_content){text, bytes}, &tables, &error);
    if (status == PLIM_OK && found && !(isfinite(costs.others) && costs.count > 0))
        abort();
    if (status == PLIM_OK && found && !(transfer_seconds(&costs, 1 << 20) < 10))
        abort();
    for (int i = 1; status == PLIM_OK && found && i < costs.count; i++)
        if (costs.cost[i - 1].key >= costs.cost[i].key)
            abort();
    arena_release(&tables);
    budget_free(budget);
    free(text);
    return 0;
}
