/* onednn_library.c - opens oneDNN, and leaves alone what it shares with the host.

   1. A library that is not there is no error: convolutions are then run by
      the reference. One that is there and cannot be opened is.
   2. It does not survive a failed allocation: there is to be room before
      each call that makes something. */
#include "backends/cpu/onednn/onednn_library.h"

#include <dlfcn.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/count.h"
#include "base/status.h"

/* The library whose headers this was built with: another major version has other types. */
#if DNNL_VERSION_MAJOR >= 3
#define LIBRARY_NAME  "libdnnl.so.3"
#define LIBRARY_BYTES ((size_t)96 << 20) /* of mappings, with the libraries that it needs */
#else
#define LIBRARY_NAME  "libdnnl.so.2"
#define LIBRARY_BYTES ((size_t)48 << 20)
#endif
#define CREATE_BYTES   ((size_t)8 << 20) /* more than one call takes while it makes something */
#define MEMORY_MISSING "raise the limit on address space (ulimit -v), or end other programs"

static bool find_functions(struct onednn *library)
{
    struct {
        const char *name;
        void **to;
    } functions[] = {
#define X(name) {#name, (void **)&library->name},
        FUNCTIONS(X) VERSION_FUNCTIONS(X)
#undef X
        /* Its own OpenMP; a library built without one needs neither. */
        {"omp_set_num_threads", (void **)&library->set_threads},
        {"omp_get_max_threads", (void **)&library->threads},
    };
    int count = COUNT(functions);
    for (int i = 0; i < count; i++) {
        *functions[i].to = dlsym(library->handle, functions[i].name);
        if (!*functions[i].to && i < count - 2)
            return false;
    }
    return true;
}

plim_status onednn_said(dnnl_status_t status)
{
    if (status == dnnl_success)
        return PLIM_OK;
    if (status == dnnl_unimplemented || status == dnnl_invalid_arguments)
        return PLIM_UNSUPPORTED;
    return status == dnnl_out_of_memory ? PLIM_NO_MEMORY : PLIM_INTERNAL;
}

plim_status onednn_explain(plim_status status, plim_error *error)
{
    if (status == PLIM_UNSUPPORTED)
        return fail(error, status, "oneDNN has no such convolution");
    if (status != PLIM_NO_MEMORY)
        return fail(error, status, "oneDNN could not make a convolution");
    fail(error, status, "the system has no memory for the code of a convolution (oneDNN)");
    return hint(error, status, MEMORY_MISSING);
}

plim_status onednn_room(void)
{
    return budget_probe(CREATE_BYTES) ? PLIM_OK : PLIM_NO_MEMORY;
}

/* A library that is not there is one thing; one that is there and cannot be opened must not go unnoticed.
   Only the words say which, so they are asked for in English. */
static plim_status not_opened(plim_error *error)
{
    locale_t english = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(english);
    const char *why = dlerror();
    uselocale(before);
    why = why ? why : "unknown reason";
    if (strstr(why, "No such file"))
        return fail(error, PLIM_UNSUPPORTED, "%s is not on this machine: %s", LIBRARY_NAME, why);
    if (strstr(why, "memory"))
        return hint(error, fail(error, PLIM_NO_MEMORY, "%s cannot be opened: %s", LIBRARY_NAME, why), MEMORY_MISSING);
    fail(error, PLIM_IO, "%s cannot be opened: %s", LIBRARY_NAME, why);
    return hint(error, PLIM_IO, "repair it or remove it: without it convolutions run in plain C, slowly");
}

static plim_status open_library(void **handle, plim_error *error)
{
    *handle = dlopen(LIBRARY_NAME, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (*handle) /* the host's, or ours of an earlier job */
        return PLIM_OK;
    if (!budget_probe(LIBRARY_BYTES)) {
        fail(error, PLIM_NO_MEMORY, "the system has no %d MiB of address space to open oneDNN (%s)",
             (int)(LIBRARY_BYTES >> 20), LIBRARY_NAME);
        return hint(error, PLIM_NO_MEMORY, MEMORY_MISSING);
    }
    *handle = dlopen(LIBRARY_NAME, RTLD_LAZY | RTLD_LOCAL);
    return *handle ? PLIM_OK : not_opened(error);
}

static plim_status start(struct onednn *library, plim_error *error)
{
    if (!find_functions(library))
        return fail(error, PLIM_UNSUPPORTED, "%s lacks a function", LIBRARY_NAME);
    plim_status status = onednn_room();
    if (status == PLIM_OK)
        status = onednn_said(library->dnnl_engine_create(&library->engine, dnnl_cpu, 0));
    if (status != PLIM_OK)
        return onednn_explain(status, error);
    const dnnl_version_t *version = library->dnnl_version();
    snprintf(library->version, sizeof library->version, "%d.%d.%d", version->major, version->minor, version->patch);
    return PLIM_OK;
}

/* Whether a job of this process has opened the library: it is never unloaded. */
static atomic_bool taken;

plim_status onednn_open(struct onednn **out, struct budget *budget, plim_error *error)
{
    void *handle;
    if (!atomic_load(&taken)) /* else its bytes are among those of the process already */
        TRY(budget_outside(budget, ONEDNN_BYTES, "oneDNN, which convolves,", error));
    TRY(open_library(&handle, error));
    struct onednn *library = budget_take(budget, TAG_PLANNER, sizeof *library);
    if (!library) {
        dlclose(handle);
        return budget_refused(budget, TAG_PLANNER, sizeof *library, error);
    }
    library->budget = budget;
    library->handle = handle;
    plim_status status = start(library, error);
    if (status != PLIM_OK) {
        onednn_close(library);
        return status;
    }
    atomic_store(&taken, true);
    *out = library;
    return PLIM_OK;
}

const char *onednn_version(const struct onednn *library)
{
    return library->version;
}

void onednn_close(struct onednn *library)
{
    if (!library)
        return;
    if (library->engine)
        library->dnnl_engine_destroy(library->engine);
    /* Not dlclose: its OpenMP keeps data of threads that are still there. */
    budget_give(library->budget, TAG_PLANNER, library, sizeof *library);
}

int onednn_threads_to_one(const struct onednn *library)
{
    if (!library->set_threads || !library->threads)
        return 0;
    int before = library->threads();
    if (before != 1)
        library->set_threads(1);
    return before;
}

void onednn_threads_back(const struct onednn *library, int before)
{
    if (before > 1)
        library->set_threads(before);
}

struct onednn_host onednn_host_leave(const struct onednn *library)
{
    struct onednn_host host = {.threads = onednn_threads_to_one(library)};
    if (library->dnnl_get_primitive_cache_capacity(&host.capacity) != dnnl_success)
        host.capacity = 0;
    if (host.capacity)
        library->dnnl_set_primitive_cache_capacity(0);
    return host;
}

void onednn_host_back(const struct onednn *library, struct onednn_host host)
{
    if (host.capacity)
        library->dnnl_set_primitive_cache_capacity(host.capacity);
    onednn_threads_back(library, host.threads);
}
