/* backend.c - how a kernel says that it could not do its work. */
#include "backends/backend.h"

void backend_fail(struct backend *backend, plim_status status)
{
    int none = PLIM_OK;
    atomic_compare_exchange_strong(&backend->failed, &none, (int)status);
}

plim_status backend_check(struct backend *backend, plim_error *error)
{
    plim_status status = (plim_status)atomic_load(&backend->failed);
    if (status == PLIM_OK)
        return PLIM_OK;
    fail(error, status, "a kernel of the %s backend could not run; the results of this step are void",
         backend->type->name);
    if (status == PLIM_NO_MEMORY)
        hint(error, status, "raise the limit on address space (ulimit -v), or end other programs");
    return status;
}
