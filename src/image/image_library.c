/* image_library.c - opens libjpeg and libpng. */
#include "image/image_library.h"

#include <dlfcn.h>

#include "base/memory/budget.h"
#include "base/numbers/count.h"

struct library {
    const char *file, *package; /* Debian's */
};

struct function {
    const char *name;
    void **to;
};

static const struct library jpeg = {"libjpeg.so.62", "libjpeg62-turbo"}, png = {"libpng16.so.16", "libpng16-16"};

#define LIBRARY_BYTES ((size_t)2 << 20) /* of mappings, with room to spare */

static plim_status open_library(void **handle, const struct library *library, plim_error *error)
{
    *handle = dlopen(library->file, RTLD_LAZY | RTLD_LOCAL);
    if (*handle)
        return PLIM_OK;
    const char *why = dlerror();
    if (!budget_probe(LIBRARY_BYTES))
        return fail(error, PLIM_NO_MEMORY, "the system has no memory to open %s", library->file);
    fail(error, PLIM_UNSUPPORTED, "%s, which decodes images, cannot be opened: %s", library->file, why ? why : "?");
    return hint(error, PLIM_UNSUPPORTED, "apt-get install %s", library->package);
}

static plim_status find(const struct library *library, const struct function *functions, size_t count,
                        plim_error *error)
{
    void *handle = NULL;
    TRY(open_library(&handle, library, error));
    for (size_t i = 0; i < count; i++) {
        *functions[i].to = dlsym(handle, functions[i].name);
        if (!*functions[i].to) {
            fail(error, PLIM_UNSUPPORTED, "%s lacks the function %s", library->file, functions[i].name);
            return hint(error, PLIM_UNSUPPORTED, "apt-get install %s", library->package);
        }
    }
    return PLIM_OK;
}

plim_status jpeg_library(struct jpeg_functions *out, plim_error *error)
{
    const struct function functions[] = {
#define X(name) {#name, (void **)&out->name},
        JPEG_FUNCTIONS(X)
#undef X
    };
    return find(&jpeg, functions, COUNT(functions), error);
}

plim_status png_library(struct png_functions *out, plim_error *error)
{
    const struct function functions[] = {
#define X(name) {#name, (void **)&out->name},
        PNG_FUNCTIONS(X)
#undef X
    };
    return find(&png, functions, COUNT(functions), error);
}
