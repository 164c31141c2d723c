/* join.h - stages with several inputs: their nodes, and elements of several streams in one spec. */
#ifndef PIPELINE_STAGES_JOIN_JOIN_H
#define PIPELINE_STAGES_JOIN_JOIN_H

#include "pipeline/core/stage.h"

#define MOST_INPUTS 256

/* A node over datasets[0..count), all of which are taken over, with `extra` bytes of its own in *rest. Open batches are
   closed. NULL: *failed is what to return. The caller goes on with dataset_built. */
struct dataset *join_stage(struct dataset **failed, const struct stage *stage, struct dataset *const *datasets,
                           int count, size_t extra, void **rest);
void join_unref(struct dataset *const *datasets, int count);

static inline int join_count(const struct dataset *dataset)
{
    return dataset->other_count + 1;
}

static inline const struct dataset *join_input(const struct dataset *dataset, int i)
{
    return i ? dataset->others[i - 1] : dataset->input;
}

/* The columns of `more` behind those of `spec`. A name that is taken becomes x, y, c2... by its place, or name_2. */
plim_status spec_beside(struct spec *spec, const struct spec *more, plim_error *error);
/* Lets `spec` hold elements of `other` (input number `which` of the stage `name`) too: names, types and ranks must be
   the same, an extent that differs becomes -1. */
plim_status spec_widen(struct spec *spec, const struct spec *other, const char *name, int which, plim_error *error);
/* Whether rows of one are rows of the other. */
bool spec_rows_alike(const struct spec *a, const struct spec *b);

/* Facts of elements that come from any one of the inputs: spec and bytes of values. */
plim_status join_widen(struct dataset *dataset, int count, plim_error *error);
/* Elements of such an input. `block`: widen_bytes for rows that are not cells yet, which `to` refers to afterwards. */
uint64_t widen_bytes(const struct dataset *dataset, int count);
plim_status widen_pull(struct stream *stream, int input, void *block, struct chunk *to, int64_t most,
                       plim_error *error);
plim_status widen_skip(int64_t *passed, struct stream *stream, int input, void *block, int64_t count, struct chunk *by,
                       plim_error *error);

/* joined_source.c: zip and concatenate of data that can be read by index, as one source. NULL: these cannot be. */
bool joined_possible(struct dataset *const *datasets, int count, bool beside);
struct dataset *joined_open(struct dataset *const *datasets, int count, bool beside);
/* Of what such a source is made; 0 of any other. */
int joined_count(const struct source *source);
const struct dataset *joined_child(const struct source *source, int i);

#endif
