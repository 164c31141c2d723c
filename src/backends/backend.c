/* backend.c - the list of backends, and how a kernel says that it could not do its work. */
#include "backends/backend.h"

#include "base/memory/mappings.h"
#include "base/numbers/count.h"

static const struct backend_type *const all_backends[] = {
#define BACKEND(name) &name##_backend,
#include "backends/backends.def"
#undef BACKEND
};

const struct backend_type *backend_standard(void)
{
    return all_backends[0];
}

int backends_unused_code(struct code_range *out, const struct backend *backend)
{
    int count = 0;
    for (int i = 0; i < COUNT(all_backends); i++)
        if (all_backends[i]->unused_code)
            count += all_backends[i]->unused_code(out + count, MOST_UNUSED - count,
                                                  backend && backend->type == all_backends[i] ? backend : NULL);
    return count;
}

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
