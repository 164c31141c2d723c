/* reference.c - the backend that is the specification: each op's own plain C.
   One kernel serves every node; it has neither scratch nor packs. */
#include "backends/backend.h"

struct reference {
    struct backend backend; /* first: a backend is a reference */
    struct budget *budget;
};

static void run(const struct kernel *kernel, const struct call *call)
{
    (void)kernel;
    call->node->op->reference(call);
}

static const struct kernel reference_kernel = {.implementation = "reference", .run = run};

static plim_status reference_open(struct backend **out, struct budget *budget, plim_error *error)
{
    struct reference *reference = budget_take(budget, TAG_PLANNER, sizeof(*reference));
    if (!reference)
        return budget_refused(budget, TAG_PLANNER, sizeof(*reference), error);
    reference->backend.type = &reference_backend;
    reference->budget = budget;
    *out = &reference->backend;
    return PLIM_OK;
}

static void reference_close(struct backend *backend)
{
    struct reference *reference = (struct reference *)backend;
    if (reference)
        budget_give(reference->budget, TAG_PLANNER, reference, sizeof(*reference));
}

static plim_status reference_prepare(const struct kernel **out, struct backend *backend,
                                     const struct kernel_request *request, plim_error *error)
{
    (void)backend, (void)request, (void)error;
    *out = &reference_kernel;
    return PLIM_OK;
}

static const char *reference_features(const struct backend *backend)
{
    (void)backend;
    return "plain C";
}

const struct backend_type reference_backend = {
    .name = "reference",
    .open = reference_open,
    .close = reference_close,
    .prepare = reference_prepare,
    .features = reference_features,
};
