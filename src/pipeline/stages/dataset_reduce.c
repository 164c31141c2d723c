/* dataset_reduce.c - a pipeline run to its end. */
#include "pipeline/core/stage.h"

static plim_status visit_all(void *state, struct iterator *iterator, const struct dataset *dataset, batch_visit *visit,
                             plim_error *error)
{
    for (;;) {
        struct batch *batch;
        TRY(iterator_next(&batch, iterator, error));
        if (!batch)
            return PLIM_OK;
        TRY(visit(state, batch, dataset->spec, error));
    }
}

plim_status dataset_reduce(void *state, struct dataset *dataset, const struct data_run *run, batch_visit *visit,
                           plim_error *error)
{
    struct iterator *iterator;
    TRY(dataset_error(dataset, error));
    if (dataset->cardinality == CARDINALITY_INFINITE)
        return hint(error, fail(error, PLIM_UNSUPPORTED, "reduce: this data never ends"), "take a number of elements");
    if (dataset->cardinality == 0) /* the state stays as it is */
        return PLIM_OK;
    /* The least grant has no optional caches: in one epoch nothing would be given from them. */
    TRY(iterator_open(&iterator, dataset, run, dataset_least_grant(dataset), NULL, error));
    plim_status status = visit_all(state, iterator, dataset, visit, error);
    iterator_close(iterator);
    return status;
}
