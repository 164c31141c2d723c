/* fuzz_tfds.c - any bytes as dataset_info.json and as features.json; the names of files that come of them stay in their
   folder. */
#include <stdlib.h>
#include <string.h>

#include "formats/records/tfds_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void use_splits(const struct tfds_info *info)
{
    char name[1024];
    struct tfds_slice slice;
    const char *after;
    for (int i = 0; i < info->split_count; i++) {
        if (tfds_file_name(name, sizeof name, info, &info->split[i], 3) && (name[0] == '/' || strstr(name, "..")))
            abort();
        if (tfds_read_slice(&slice, &after, info, info->split[i].name, NULL) == PLIM_OK &&
            (slice.begin < 0 || slice.end > slice.split->count))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    if (budget_make(&budget, 64 * bytes + ((uint64_t)4 << 20), NULL) != PLIM_OK)
        return 0;
    for (int features = 0; features < 2; features++) {
        struct tfds_info *info = budget_take(budget, TAG_FORMATS, sizeof *info);
        if (!info)
            abort();
        arena_init(&info->arena, budget, TAG_FORMATS);
        plim_status status = features ? tfds_parse_features(info, (const char *)data, bytes, "fuzz", NULL)
                                      : tfds_parse_info(info, (const char *)data, bytes, "fuzz", NULL);
        if (status == PLIM_OK)
            use_splits(info);
        else if (status != PLIM_BAD_DATA)
            abort();
        tfds_info_free(info);
    }
    budget_free(budget);
    return 0;
}
