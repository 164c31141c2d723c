/* inputs.c - data sets inside a data set: a list of splits, each with a source and perhaps a pipeline. */
#include "pipeline/keys/split.h"

plim_status reader_inputs(struct dataset **all, int *count, int most, struct data_reader *reader,
                          const struct yaml *list, plim_error *error)
{
    *count = 0;
    if (list->kind != YAML_LIST || !list->count)
        return hint(error, reader_bad(reader, list, "expected a list of data sets", error),
                    "[{npy: a.npy}, {npy: b.npy, pipeline: [take: 100]}]");
    if (list->count > most)
        return reader_bad(reader, list, "too many data sets in one", error);
    plim_status status = PLIM_OK;
    for (const struct yaml *item = list->first; item && status == PLIM_OK; item = item->next) {
        status = split_open_nested(&all[*count], reader, item, error);
        *count += status == PLIM_OK;
    }
    if (status == PLIM_OK)
        return PLIM_OK;
    inputs_unref(all, *count);
    return status;
}

void inputs_unref(struct dataset *const *all, int count)
{
    for (int i = 0; i < count; i++)
        dataset_unref(all[i]);
}
