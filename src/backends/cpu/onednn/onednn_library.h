/* onednn_library.h - oneDNN's functions, found at run time, for the two files that call them. */
#ifndef CPU_ONEDNN_LIBRARY_H
#define CPU_ONEDNN_LIBRARY_H

#include <oneapi/dnnl/dnnl.h>

#include "backends/cpu/onednn/onednn.h"

/* What has the same name and meaning in 2.x and 3.x; what has not is in VERSION_FUNCTIONS. */
#define FUNCTIONS(X)                                                                                                   \
    X(dnnl_version)                                                                                                    \
    X(dnnl_get_primitive_cache_capacity)                                                                               \
    X(dnnl_set_primitive_cache_capacity)                                                                               \
    X(dnnl_engine_create)                                                                                              \
    X(dnnl_engine_destroy)                                                                                             \
    X(dnnl_stream_create)                                                                                              \
    X(dnnl_stream_destroy)                                                                                             \
    X(dnnl_memory_desc_get_size)                                                                                       \
    X(dnnl_memory_create)                                                                                              \
    X(dnnl_memory_destroy)                                                                                             \
    X(dnnl_memory_set_data_handle)                                                                                     \
    X(dnnl_reorder_primitive_desc_create)                                                                              \
    X(dnnl_primitive_attr_create)                                                                                      \
    X(dnnl_primitive_attr_destroy)                                                                                     \
    X(dnnl_primitive_attr_set_scratchpad_mode)                                                                         \
    X(dnnl_primitive_attr_set_post_ops)                                                                                \
    X(dnnl_post_ops_create)                                                                                            \
    X(dnnl_post_ops_destroy)                                                                                           \
    X(dnnl_post_ops_append_eltwise)                                                                                    \
    X(dnnl_post_ops_append_sum)                                                                                        \
    X(dnnl_primitive_desc_destroy)                                                                                     \
    X(dnnl_primitive_desc_query)                                                                                       \
    X(dnnl_primitive_desc_query_md)                                                                                    \
    X(dnnl_primitive_create)                                                                                           \
    X(dnnl_primitive_destroy)                                                                                          \
    X(dnnl_primitive_execute)

#if DNNL_VERSION_MAJOR >= 3
#define VERSION_FUNCTIONS(X)                                                                                           \
    X(dnnl_memory_desc_create_with_tag)                                                                                \
    X(dnnl_memory_desc_clone)                                                                                          \
    X(dnnl_memory_desc_destroy)                                                                                        \
    X(dnnl_convolution_forward_primitive_desc_create)                                                                  \
    X(dnnl_convolution_backward_data_primitive_desc_create)                                                            \
    X(dnnl_convolution_backward_weights_primitive_desc_create)
#else
#define VERSION_FUNCTIONS(X)                                                                                           \
    X(dnnl_memory_desc_init_by_tag)                                                                                    \
    X(dnnl_dilated_convolution_forward_desc_init)                                                                      \
    X(dnnl_dilated_convolution_backward_data_desc_init)                                                                \
    X(dnnl_dilated_convolution_backward_weights_desc_init)                                                             \
    X(dnnl_primitive_desc_create)
#endif

struct onednn {
    struct budget *budget;
    void *handle;
    dnnl_engine_t engine;
    void (*set_threads)(int);
    int (*threads)(void);
    char version[16];
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
    VERSION_FUNCTIONS(X)
#undef X
};

/* UNSUPPORTED is for what the library does not offer, and for nothing else: the caller then takes another kernel. */
plim_status onednn_said(dnnl_status_t status);
/* The error of making a convolution that ended so. */
plim_status onednn_explain(plim_status status, plim_error *error);
/* Before each call that makes something: PLIM_NO_MEMORY when there is no room for it. */
plim_status onednn_room(void);

/* What is the process's, or the thread's, while we make or run something. */
int onednn_threads_to_one(const struct onednn *library);
void onednn_threads_back(const struct onednn *library, int before);
struct onednn_host {
    int threads, capacity;
};
struct onednn_host onednn_host_leave(const struct onednn *library);
void onednn_host_back(const struct onednn *library, struct onednn_host host);

#endif
