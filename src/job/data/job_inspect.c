/* job_inspect.c - what is in the data of a job: columns, how many elements, the first few of them. */
#include "base/text/json.h"
#include "job/data/data_report.h"
#include "job/data/element_text.h"
#include "pipeline/core/stage.h"

#include <string.h>

#define SHOWN_ELEMENTS 3
#define LINE_COLUMNS   118

struct inspection {
    struct plim_job *job;
    struct spec spec;
    struct text elements[SHOWN_ELEMENTS]; /* in short form */
    struct text features;                 /* of the first record, where it is an Example */
    int count;
};

static bool is_record(const struct spec *spec)
{
    const struct column *first = &spec->column[0];
    return spec->column_count == 1 && first->type == TYPE_STRING && first->shape.rank == 0 &&
           strcmp(first->name, "record") == 0;
}

static void keep_rows(struct inspection *self, const struct batch *batch)
{
    for (int64_t i = 0; i < batch->count && self->count < SHOWN_ELEMENTS; i++) {
        void *row[MOST_COLUMNS];
        for (int c = 0; c < self->spec.column_count; c++)
            row[c] = (uint8_t *)batch->column[c] + (uint64_t)i * self->spec.column[c].bytes;
        element_text(&self->elements[self->count], &self->spec, row);
        if (!self->count && is_record(&self->spec))
            example_text(&self->features, row[0]);
        self->count++;
    }
}

static plim_status inspect_columns(struct inspection *self, plim_error *error)
{
    struct plim_job *job = self->job;
    struct iterator *iterator;
    struct batch *batch;
    TRY(job_iterate(&iterator, job, dataset_least_grant(job->train.dataset), error));
    plim_status status = PLIM_OK;
    while (status == PLIM_OK && self->count < SHOWN_ELEMENTS) {
        status = iterator_next(&batch, iterator, error);
        if (status != PLIM_OK || !batch)
            break;
        keep_rows(self, batch);
    }
    iterator_close(iterator);
    return status;
}

/* ---- printing ---- */

static const char *source_name(const struct plim_job *job)
{
    return job->train.dataset->source->type->name;
}

/* The name of a class of the source's labels; NULL behind the last. */
static const char *class_at(const struct plim_job *job, int64_t label)
{
    const struct source *source = job->train.dataset->source;
    return source->type->class_name ? source->type->class_name(source, label) : NULL;
}

static void classes_text(struct text *out, const struct plim_job *job)
{
    struct text names;
    text_init(&names, out->budget, out->tag);
    for (int64_t i = 0; class_at(job, i) && names.length < LINE_COLUMNS; i++)
        text_add(&names, "%s%s", i ? ", " : "", class_at(job, i));
    if (names.length) {
        text_add(out, "  classes: ");
        text_add_cut(out, names.data, LINE_COLUMNS - 11);
        text_add(out, "\n");
    }
    out->failed |= names.failed;
    text_release(&names);
}

static void inspection_text(struct text *out, const struct inspection *self)
{
    const struct plim_job *job = self->job;
    char count[32], size[16];
    cardinality_text(count, dataset_cardinality(job->train.dataset));
    text_add(out, "%s", job->path);
    if (job->file_count > 1)
        text_add(out, " and %d more", job->file_count - 1);
    text_add(out, " \xc2\xb7 %s \xc2\xb7 %s elements", source_name(job), count);
    if (!spec_has_values(&self->spec)) {
        text_size(size, self->spec.element_bytes);
        text_add(out, " of %s", size);
    }
    text_add(out, "\n");
    for (int c = 0; c < self->spec.column_count; c++) {
        char shape[64];
        const struct column *column = &self->spec.column[c];
        shape_text(shape, sizeof shape, &column->shape, false);
        text_add(out, "  %-16s %-8s %s\n", column->name, type_name(column->type), shape);
    }
    classes_text(out, job);
    for (int i = 0; i < self->count; i++) {
        text_add(out, "  %d: ", i);
        text_add_cut(out, self->elements[i].data ? self->elements[i].data : "", LINE_COLUMNS - 5);
        text_add(out, "\n");
    }
    if (self->features.data && self->features.length)
        text_add(out, "  record 0 is an Example: features: %s\n", self->features.data);
}

static void inspection_json(struct text *out, const struct inspection *self)
{
    struct json_writer json;
    const struct plim_job *job = self->job;
    json_init(&json, out);
    json_object(&json, NULL);
    json_string(&json, "event", "inspect");
    json_string(&json, "path", job->path);
    json_int(&json, "files", job->file_count ? job->file_count : 1);
    json_string(&json, "source", source_name(job));
    json_int(&json, "cardinality", dataset_cardinality(job->train.dataset)); /* -1: infinite, -2: unknown */
    spec_json(&json, "columns", &self->spec);
    json_array(&json, "classes"); /* by label; empty where the source has no names for them */
    for (int64_t i = 0; class_at(job, i); i++)
        json_string(&json, NULL, class_at(job, i));
    json_end_array(&json);
    json_array(&json, "first");
    for (int i = 0; i < self->count; i++)
        json_string(&json, NULL, self->elements[i].data ? self->elements[i].data : "");
    json_end_array(&json);
    json_string(&json, "example", self->features.data && self->features.length ? self->features.data : NULL);
    json_end_object(&json);
}

static plim_status inspect(struct inspection *self, plim_error *error)
{
    struct plim_job *job = self->job;
    TRY(job_data_prepare(job, error));
    TRY(job_samples(&self->spec, job, error));
    TRY(inspect_columns(self, error));
    job_text_clear(&job->data_text);
    inspection_text(&job->data_text.text, self);
    inspection_json(&job->data_text.json, self);
    for (int i = 0; i < SHOWN_ELEMENTS; i++)
        job->data_text.text.failed |= self->elements[i].failed;
    job->data_text.text.failed |= self->features.failed;
    return job_text_done(&job->data_text, error);
}

plim_status plim_job_inspect_data(const char **text, const char **json, plim_job *job, plim_error *error)
{
    struct inspection self = {.job = job};
    struct job_call call;
    TRY(need_argument(text, "data inspect: where the text is to go", error));
    TRY(need_argument(json, "data inspect: where the JSON is to go", error));
    TRY(job_begin(&call, job, "data inspect", error));
    text_init(&self.features, job->budget, TAG_PLANNER);
    for (int i = 0; i < SHOWN_ELEMENTS; i++)
        text_init(&self.elements[i], job->budget, TAG_PLANNER);
    plim_status status = inspect(&self, error);
    text_release(&self.features);
    for (int i = 0; i < SHOWN_ELEMENTS; i++)
        text_release(&self.elements[i]);
    if (status != PLIM_OK)
        return job_end(&call, error_at(error, status, job->path));
    *text = job->data_text.text.data;
    *json = job->data_text.json.data;
    return job_end(&call, PLIM_OK);
}
