/* job_convert.c - streams the training data of a job through its pipeline into files: one, or n in turns. */
#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "job/data/data_sink.h"
#include "job/job.h"
#include "pipeline/core/stage.h"

#include <stdio.h>
#include <string.h>

#define MOST_SHARDS 4096

static const struct sink_type *const sinks[] = {&sink_records, &sink_npy, &sink_tar, &sink_snapshot};

const struct sink_type *sink_find(const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < COUNT(sinks); i++)
        for (size_t k = 0; k < 4 && sinks[i]->suffixes[k]; k++) {
            size_t end = strlen(sinks[i]->suffixes[k]);
            if (length > end && strcmp(path + length - end, sinks[i]->suffixes[k]) == 0)
                return sinks[i];
        }
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return *name && !strchr(name, '.') ? &sink_snapshot : NULL;
}

struct conversion {
    struct plim_job *job;
    const struct sink_type *type;
    struct sink **sink;
    int64_t sink_count;
    struct spec spec;
    struct sink_plan plan;
    plim_meter *meter;
    void *context;
    int64_t written;
};

/* ---- running ---- */

static plim_status add_batch(struct conversion *self, const struct batch *batch, plim_error *error)
{
    for (int64_t i = 0; i < batch->count; i++) {
        void *row[MOST_COLUMNS];
        for (int c = 0; c < self->spec.column_count; c++)
            row[c] = (uint8_t *)batch->column[c] + (uint64_t)i * self->spec.column[c].bytes;
        TRY(self->type->add(self->sink[self->written % self->sink_count], row, error));
        self->written++;
    }
    return PLIM_OK;
}

static plim_status stopped(const struct conversion *self, plim_error *error)
{
    return fail(error, PLIM_INTERRUPTED, "stopped after %lld elements; nothing was left", (long long)self->written);
}

static plim_status report_progress(const struct conversion *self, int64_t total, plim_error *error)
{
    bool go_on = !self->meter || self->meter(self->context, (uint64_t)self->written, total > 0 ? (uint64_t)total : 0);
    if (go_on && !stop_asked(&self->job->stop))
        return PLIM_OK;
    return stopped(self, error);
}

static plim_status run(struct conversion *self, struct iterator *iterator, plim_error *error)
{
    const struct dataset *dataset = self->job->train.dataset;
    int64_t total = dataset->stacked ? CARDINALITY_UNKNOWN : dataset_cardinality(dataset), told = 0;
    for (;;) {
        struct batch *batch;
        plim_status status = iterator_next(&batch, iterator, error);
        if (status != PLIM_OK)
            return status == PLIM_INTERRUPTED ? stopped(self, error) : status;
        if (!batch)
            return report_progress(self, total, error);
        TRY(add_batch(self, batch, error));
        if (self->written - told >= 256) {
            TRY(report_progress(self, total, error));
            told = self->written;
        }
    }
}

/* PREFIX-00003-of-00008.tfrecord, or PATH itself. */
static plim_status open_sinks(struct conversion *self, const char *path, plim_error *error)
{
    for (int64_t i = 0; i < self->sink_count; i++) {
        char name[4096];
        int length = snprintf(name, sizeof name, "%s", path);
        if (self->sink_count > 1)
            length = snprintf(name, sizeof name, "%s-%05lld-of-%05lld.tfrecord", path, (long long)i,
                              (long long)self->sink_count);
        if (length >= (int)sizeof name)
            return fail_at(error, PLIM_USAGE, path, "the name is too long");
        TRY(self->type->open(&self->sink[i], self->job->budget, name, &self->plan, error));
    }
    return PLIM_OK;
}

static plim_status finish_sinks(struct conversion *self, plim_error *error)
{
    for (int64_t i = 0; i < self->sink_count; i++)
        TRY(self->type->finish(self->sink[i], error));
    return PLIM_OK;
}

static plim_status convert(struct conversion *self, const char *path, plim_error *error)
{
    struct plim_job *job = self->job;
    struct iterator *iterator;
    TRY(open_sinks(self, path, error));
    TRY(job_iterate(&iterator, job, job->train_grant, error));
    plim_status status = run(self, iterator, error);
    iterator_close(iterator);
    return status == PLIM_OK ? finish_sinks(self, error) : status;
}

/* ---- planning ---- */

/* Twice: what the files take is part of what is predicted, and depends on what is in the data. */
static plim_status prepare(struct conversion *self, plim_error *error)
{
    struct plim_job *job = self->job;
    TRY(job_data_plan(job, error));
    const struct dataset *dataset = job->train.dataset;
    if (dataset_steps(dataset, NULL) == CARDINALITY_INFINITE)
        return hint(error, fail_at(error, PLIM_BAD_JOB, job->path, "this data never ends"),
                    "end the pipeline with take");
    TRY(job_samples(&self->spec, job, error));
    self->plan =
        (struct sink_plan){.spec = &self->spec, .value_bytes = spec_has_values(&self->spec) ? dataset->value_bytes : 0};
    uint64_t bytes;
    if (!mul_u64(&bytes, self->type->cost(&self->plan), (uint64_t)self->sink_count))
        bytes = UINT64_MAX;
    job_unplan(job);
    job->sink_bytes = bytes;
    plim_status status = job_data_prepare(job, error);
    job->sink_bytes = 0;
    return status;
}

static plim_status run_whole(int64_t *written, struct conversion *self, const char *path, plim_error *error)
{
    struct plim_job *job = self->job;
    size_t bytes = (size_t)self->sink_count * sizeof *self->sink;
    TRY(prepare(self, error));
    TRY(budget_alloc(&self->sink, job->budget, TAG_FORMATS, bytes, error));
    plim_status status = convert(self, path, error);
    for (int64_t i = 0; i < self->sink_count; i++)
        if (self->sink[i])
            self->type->close(self->sink[i]);
    budget_give(job->budget, TAG_FORMATS, self->sink, bytes);
    job_unplan(job);
    if (status == PLIM_OK)
        *written = self->written;
    return status;
}

/* One behind another, for people. */
static plim_status keep_names(struct conversion *self, const char *output, plim_error *error)
{
    struct arena *arena = &self->job->arena;
    const char *names = self->type->file_name ? "" : arena_string(arena, output);
    for (int c = 0; self->type->file_name && c < self->spec.column_count && names; c++) {
        char name[4096];
        self->type->file_name(name, sizeof name, output, &self->spec, c);
        names = arena_format(arena, "%s%s%s", names, c ? ", " : "", name);
    }
    self->job->written = names;
    return names ? PLIM_OK : arena_refused(arena, error);
}

static plim_status convert_one(int64_t *elements, struct conversion *self, const char *output, plim_error *error)
{
    struct plim_job *job = self->job;
    const char *verb = arena_format(&job->arena, "data convert --output %s", output);
    job->verb = verb ? verb : job->verb;
    self->type = sink_find(output);
    if (!self->type) {
        fail_at(error, PLIM_UNSUPPORTED, output,
                "no known format: its name ends with none of .tfrecord, .npy, .tar, /");
        return hint(error, PLIM_UNSUPPORTED, "--output X.tfrecord");
    }
    TRY(run_whole(elements, self, output, error));
    return keep_names(self, output, error);
}

plim_status plim_job_convert(int64_t *elements, plim_job *job, const char *output, plim_meter *meter, void *context,
                             plim_error *error)
{
    struct job_call call;
    struct job_meter host = {meter, context, &call.host};
    struct conversion self = {.job = job, .sink_count = 1, .meter = meter ? job_meter : NULL, .context = &host};
    TRY(need_argument(elements, "data convert: where the number of elements is to go", error));
    TRY(need_argument(output, "data convert: the name of the output", error));
    TRY(job_begin(&call, job, "data convert", error));
    return job_end(&call, convert_one(elements, &self, output, error));
}

plim_status plim_job_converted(const char **names, plim_job *job, plim_error *error)
{
    struct job_call call;
    TRY(need_argument(names, "data convert: where the names are to go", error));
    TRY(job_begin(&call, job, "data convert", error));
    *names = job->written ? job->written : "";
    return job_end(&call, PLIM_OK);
}

static plim_status convert_shards(int64_t *elements, struct conversion *self, const char *prefix, plim_error *error)
{
    struct plim_job *job = self->job;
    const char *verb =
        arena_format(&job->arena, "data shard --shards %lld --output %s", (long long)self->sink_count, prefix);
    job->verb = verb ? verb : job->verb;
    return run_whole(elements, self, prefix, error);
}

plim_status plim_job_shard(int64_t *elements, plim_job *job, const plim_shards *shards, plim_meter *meter,
                           void *context, plim_error *error)
{
    struct job_call call;
    struct job_meter host = {meter, context, &call.host};
    struct conversion self = {.job = job, .type = &sink_records, .meter = meter ? job_meter : NULL, .context = &host};
    TRY(need_argument(shards, "data shard: the shards", error));
    self.sink_count = shards->count;
    if (shards->count < 2 || shards->count > MOST_SHARDS)
        return fail(error, PLIM_USAGE, "2 to %d shards, not %lld", MOST_SHARDS, (long long)shards->count);
    TRY(need_argument(elements, "data shard: where the number of elements is to go", error));
    TRY(need_argument(shards->prefix, "data shard: the prefix", error));
    TRY(job_begin(&call, job, "data shard", error));
    return job_end(&call, convert_shards(elements, &self, shards->prefix, error));
}
