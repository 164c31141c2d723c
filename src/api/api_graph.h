/* api_graph.h - what the files behind plimsoll.h's graphs and programs share. */
#ifndef API_API_GRAPH_H
#define API_API_GRAPH_H

#include "api/api.h"
#include "base/threads/busy.h"
#include "model/build.h"

/* A weight that no layer made. */
struct api_weight {
    struct tensor *tensor;
    struct initializer initializer;
    struct api_weight *next;
};

struct plim_layers {
    struct model *model;
    struct build *build;     /* of its graph: one, however often the layers are applied */
    const char *weights;     /* a .keras file to begin with, or NULL */
    const plim_graph *owner; /* whose tensors its weights are */
    struct plim_layers *next;
};

struct plim_graph {
    struct busy busy;  /* a public call works on it */
    atomic_bool mixed; /* two calls worked on it at once: one of them did nothing */
    struct graph inner;
    struct budget *budget;
    bool training;
    struct training layer_training; /* what layers ask of a job: its seed */
    int columns;
    const struct tensor *input[MOST_COLUMNS]; /* so many */
    int *unnamed;                             /* numbers of layers without a name */
    struct tensor *iteration;                 /* steps done, once anybody asked */
    struct api_weight *weight, **last_weight;
    struct plim_layers *layers, **last_layers;
    bool counts;           /* something counts the iteration */
    bool fused, written;   /* gradients were taken; weights or states are written */
    bool finished;         /* a program has it */
    atomic_int references; /* its owner's, and one of each program */
};

/* A plim_value is a struct tensor under a public name. */
static inline struct tensor *tensor_of(const plim_value *value)
{
    return (struct tensor *)(uintptr_t)value;
}

static inline plim_value *value_of(struct tensor *tensor)
{
    return (plim_value *)tensor;
}

/* A public call on a graph: nobody else works on it meanwhile, and the host's floating-point environment comes back. */
struct graph_call {
    plim_graph *graph; /* NULL: it could not begin */
    struct host_floats host;
};
/* false: the graph is NULL, or another thread works on it, which plim_graph_check will tell. */
bool graph_call_begin(struct graph_call *call, plim_graph *graph, bool builds);
void graph_call_end(struct graph_call *call);
/* A declaration, at the head of such a call: to the end of the block. Where it cannot begin, the function returns. */
#define GRAPH_CALL(graph, otherwise)                                                                                   \
    __attribute__((cleanup(graph_call_end))) struct graph_call graph_call;                                             \
    if (!graph_call_begin(&graph_call, graph, true))                                                                   \
    return otherwise
/* The same for who adds nothing: a call that was refused is then not missing. */
#define GRAPH_ASKS(graph, otherwise)                                                                                   \
    __attribute__((cleanup(graph_call_end))) struct graph_call graph_call;                                             \
    if (!graph_call_begin(&graph_call, graph, false))                                                                  \
    return otherwise
/* The error of the graph; that two threads worked on it at once is one. */
plim_status api_graph_error(const plim_graph *graph, plim_error *error);

/* Whether something can still be added; else the graph has failed. */
bool api_open(plim_graph *graph, const char *who);
/* Whether this value can be read by what comes next in the graph; else the graph has failed. */
bool api_usable(plim_graph *graph, const char *who, const plim_value *value);
bool api_usable_all(plim_graph *graph, const char *who, plim_value *const *values, int count);
/* The same after a failure elsewhere: the first one is kept. Returns it. */
plim_status api_keep_error(plim_graph *graph, plim_status status, const plim_error *error);
/* Nothing is added any more: ready to be planned. */
plim_status api_graph_finish(plim_graph *graph, plim_error *error);
/* One that is given up: by its owner, or by a program. The last one frees it. */
void api_graph_unref(plim_graph *graph);
/* The iteration, made when first asked for. */
struct tensor *api_iteration(plim_graph *graph);

#endif
