/* api_graph.h - what the files behind plimsoll.h's graphs and programs share. */
#ifndef JOB_API_GRAPH_H
#define JOB_API_GRAPH_H

#include "job/api.h"
#include "model/model.h"

/* A weight that no layer made. */
struct api_weight {
    struct tensor *tensor;
    struct initializer initializer;
    struct api_weight *next;
};

struct plim_layers {
    struct model *model;
    const char *weights; /* a .keras file to begin with, or NULL */
    const plim_graph *owner; /* whose tensors its weights are */
    struct plim_layers *next;
};

struct plim_graph {
    struct graph inner;
    struct budget *budget;
    bool training;
    struct training words; /* what layers ask of a job: its seed */
    int columns;
    const struct tensor *input[MOST_COLUMNS]; /* so many */
    int *unnamed;             /* numbers of layers without a name */
    struct tensor *iteration; /* steps done, once anybody asked */
    struct api_weight *weight, **last_weight;
    struct plim_layers *layers, **last_layers;
    bool counts;         /* something counts the iteration */
    bool fused, written; /* gradients were taken; weights or states are written */
    bool finished;       /* a program has it */
    int users;           /* programs */
    bool given_up;       /* by its owner: goes with the last of them */
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

/* Whether something can still be added; else the graph has failed. */
bool api_open(plim_graph *graph, const char *who);
/* Whether this value can be read by what comes next in the graph; else the graph has failed. */
bool api_usable(plim_graph *graph, const char *who, const plim_value *value);
bool api_usable_all(plim_graph *graph, const char *who, plim_value *const *values, int count);
/* The same after a failure elsewhere: the first one is kept. Returns it. */
plim_status api_keep_error(plim_graph *graph, plim_status status, const plim_error *error);
/* Nothing is added any more: ready to be planned. */
plim_status api_graph_finish(plim_graph *graph, plim_error *error);
/* After the last program. */
void api_graph_leave(plim_graph *graph);
/* The iteration, made when first asked for. */
struct tensor *api_iteration(plim_graph *graph);
/* job_model.c: a .keras file or config.json; its layers in a job's words are in the arena too. */
plim_status model_file_read(struct model **out, struct yaml **words, bool *keras, struct arena *arena,
                            const char *path, plim_error *error);

#endif
