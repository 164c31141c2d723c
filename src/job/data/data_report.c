/* data_report.c - a planned pipeline, stage by stage, as people and programs read it. */
#include "job/data/data_report.h"
#include "base/text/json.h"
#include "pipeline/core/stage.h"
#include "pipeline/core/stage_table.h"
#include "pipeline/stages/keep/held_blocks.h"

#include <stdio.h>

#define SPEC_COLUMNS 44

/* ---- specs and counts ---- */

void cardinality_text(char out[32], int64_t cardinality)
{
    if (cardinality >= 0)
        text_count(out, cardinality);
    else
        snprintf(out, 32, "%s", cardinality == CARDINALITY_INFINITE ? "infinite" : "unknown");
}

void spec_text(struct text *out, const struct spec *spec)
{
    for (int c = 0; c < spec->column_count; c++) {
        char shape[64];
        const struct column *column = &spec->column[c];
        shape_text(shape, sizeof shape, &column->shape, false);
        text_add(out, "%s%s %s %s", c ? ", " : "", column->name, type_name(column->type), shape);
    }
}

void spec_json(struct json_writer *json, const char *key, const struct spec *spec)
{
    json_array(json, key);
    for (int c = 0; c < spec->column_count; c++) {
        const struct column *column = &spec->column[c];
        json_object(json, NULL);
        json_string(json, "name", column->name);
        json_string(json, "type", type_name(column->type));
        json_array(json, "shape");
        for (int axis = 0; axis < column->shape.rank; axis++)
            json_int(json, NULL, column->shape.dim[axis]);
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
}

/* As tf.data shows it: behind batch, elements are batches. */
static void element_of(struct spec *spec, int64_t *cardinality, const struct dataset *dataset)
{
    *spec = *dataset->spec;
    *cardinality = dataset->cardinality;
    if (!dataset->batch_size)
        return;
    spec_stack(spec, dataset->drop_remainder ? dataset->batch_size : -1, NULL);
    *cardinality = dataset_steps(dataset, NULL);
}

/* ---- what was chosen, and why ---- */

static void why_slots(struct text *out, const struct plim_job *job)
{
    const struct dataset *dataset = job->train.dataset;
    int slots = job->train_grant.slots, wanted = dataset_wanted_grant(dataset, job->data_threads).slots;
    const char *automatic = slots > 3 ? "prefetch auto: rows of held blocks come fast"
                                      : "prefetch auto: one in use, one ready, one being read";
    const char *ask = !dataset->prefetched              ? "no prefetch: one batch at a time"
                      : dataset->depth == PREFETCH_AUTO ? automatic
                                                        : "as prefetch asks: that many and the one in use";
    if (slots == wanted)
        text_add(out, "%s", dataset->prefetched && !job->data_threads ? "no data threads: nothing is read ahead" : ask);
    else
        text_add(out, "%d are wanted, the budget has room for %d", wanted, slots);
}

static void why_workers(struct text *out, const struct plim_job *job)
{
    int workers = job->train_grant.workers,
        wanted = dataset_wanted_grant(job->train.dataset, job->data_threads).workers;
    if (workers < wanted)
        text_add(out, "%d are wanted, the budget has room for %d", wanted, workers);
    else if (!job->data_threads)
        text_add(out, "data threads are turned off");
    else if (!workers)
        text_add(out, "the caller does it all: nothing is read ahead");
    else if (workers < job->data_threads)
        text_add(out, "of %d: light work, more threads would only hand it around", job->data_threads);
    else
        text_add(out, "all there are for data (--threads data=N)");
}

/* NULL: there is none that may be left out. */
static const struct dataset *optional_cache(const struct dataset *dataset)
{
    while (dataset && !(dataset->stage && dataset->stage->may_spare && dataset->stage->may_spare(dataset)))
        dataset = dataset->input;
    return dataset;
}

/* Its bytes tell: it may also be that nobody knows how many there would be. */
static bool cache_is_kept(const struct plim_job *job, const struct dataset *cache)
{
    uint64_t by_tag[TAG_COUNT] = {0};
    cache->stage->stream->cost(by_tag, cache, job->train_grant.caches);
    return job->train_grant.caches && by_tag[TAG_CACHE] > 0;
}

static const char *why_cache(const struct plim_job *job, const struct dataset *cache)
{
    if (job->train_grant.caches && !cache_is_kept(job, cache))
        return "how much it would take is not known beforehand (cache: {memory: SIZE} says it)";
    if (job->train_grant.caches)
        return "all of it fits into the budget";
    return "the budget has no room for all of it: elements are made anew each epoch";
}

static const char *why_held(const struct plim_job *job)
{
    return job->train_grant.held ? "rows are copied from whole blocks"
                                 : "the budget has no room: rows are read one by one";
}

static uint64_t busy_sum(const struct stage_table *table)
{
    uint64_t sum = 0;
    for (int i = 0; i < table->count; i++)
        sum += table->line[i].busy_ns;
    return sum ? sum : 1;
}

/* ---- for people ---- */

static void line_text(struct text *out, const struct stage_line *line, uint64_t busy, bool ran)
{
    char name[96], left[128], size[16] = "-", count[32];
    struct text words;
    struct spec spec;
    int64_t cardinality;
    stage_line_name(name, line);
    snprintf(left, sizeof left, "%*s%s", 2 * line->depth, "", name);
    if (line->bytes)
        text_size(size, line->bytes);
    element_of(&spec, &cardinality, line->node);
    cardinality_text(count, cardinality);
    text_add(out, "  %-18s %10s %14s  ", left, size, count);
    text_init(&words, out->budget, out->tag);
    spec_text(&words, &spec);
    size_t before = out->length;
    text_add_cut(out, words.data ? words.data : "", SPEC_COLUMNS);
    out->failed |= words.failed;
    text_release(&words);
    if (ran && line->elements)
        text_add(out, "%*s %10.1f %5.0f %%", SPEC_COLUMNS - text_columns(out->data + before), "",
                 (double)line->busy_ns / (double)line->elements, 100.0 * (double)line->busy_ns / (double)busy);
    text_add(out, "\n");
}

static void head_text(struct text *out, const struct plim_job *job)
{
    char budget[16], peak[16], least[16];
    text_size(budget, job->report.budget_bytes);
    text_size(peak, job->report.predicted_peak_bytes);
    text_size(least, job->report.smallest_budget_bytes);
    text_add(out, "%s \xc2\xb7 the training data\n", job->path);
    text_add(out, "budget %s (%s)   predicted peak %s   smallest workable budget %s\n", budget,
             job->report.budget_source, peak, least);
}

static void choices_text(struct text *out, const struct plim_job *job)
{
    text_add(out, "  slots %d: ", job->train_grant.slots);
    why_slots(out, job);
    text_add(out, "\n  threads beside the caller %d: ", job->train_grant.workers);
    why_workers(out, job);
    text_add(out, "\n");
    const struct dataset *cache = optional_cache(job->train.dataset);
    if (cache)
        text_add(out, "  cache %s: %s\n", cache_is_kept(job, cache) ? "in memory" : "none", why_cache(job, cache));
    if (held_bytes(job->train.dataset, 1))
        text_add(out, "  blocks %s: %s\n", job->train_grant.held ? "held" : "not held", why_held(job));
    if (job->train.dataset->value_bytes) {
        char room[16];
        text_size(room, job->train.dataset->value_bytes);
        text_add(out, "  room %s: for values of unforeseen size (largest_element: sets it)\n", room);
    }
}

/* Percent: blocks that are still on their way are counted as bytes of the disk, not as elements yet. */
static double direct_share(const struct plim_job *job, const plim_data_figures *figures)
{
    double share = figures->bytes_read ? 100.0 * (double)job->direct_bytes / (double)figures->bytes_read : 0;
    return share < 100 ? share : 100;
}

static void figures_text(struct text *out, const struct plim_job *job, const plim_data_figures *figures)
{
    char name[96], peak[16];
    const struct stage_line *line = stage_table_bottleneck(job->stages, job->train_grant.workers + 1);
    if (line) {
        stage_line_name(name, line);
        text_add(out, "bottleneck %s: %.0f %% of the work%s\n", name,
                 100.0 * (double)line->busy_ns / (double)busy_sum(job->stages),
                 line->alone ? ", on one thread at a time" : "");
    }
    text_size(peak, figures->peak_rss_bytes);
    text_add(out, "%.0f elements/s, %.0f ns each; readiness %.0f %% of %lld batches", figures->elements_per_s,
             figures->ns_per_element, 100 * figures->readiness, (long long)figures->batches);
    if (figures->threads <= job->train_grant.workers)
        text_add(out, "; %d of %d threads were enough", figures->threads, job->train_grant.workers + 1);
    text_add(out, "; peak %s\n", peak);
    if (held_bytes(job->train.dataset, job->train_grant.held))
        text_add(out, "blocks: %.0f %% of the bytes were read past the page cache\n", direct_share(job, figures));
}

void data_report_text(struct text *out, const struct plim_job *job, const plim_data_figures *figures)
{
    const struct stage_table *table = job->stages;
    bool ran = figures->seconds > 0;
    uint64_t busy = busy_sum(table);
    head_text(out, job);
    text_add(out, "  %-18s %10s %14s  %-*s%s\n", "stage", "bytes", "elements", ran ? SPEC_COLUMNS : 0, "spec",
             ran ? "  ns/element   share" : "");
    for (int i = 0; i < table->count; i++)
        line_text(out, &table->line[i], busy, ran);
    choices_text(out, job);
    if (ran)
        figures_text(out, job, figures);
}

/* ---- for programs ---- */

static void line_json(struct json_writer *json, const struct stage_line *line, uint64_t busy, bool ran)
{
    char name[96];
    struct spec spec;
    int64_t cardinality;
    stage_line_name(name, line);
    element_of(&spec, &cardinality, line->node);
    json_object(json, NULL);
    json_string(json, "name", name);
    json_int(json, "depth", line->depth);
    json_uint(json, "bytes", line->bytes);
    json_int(json, "cardinality", cardinality); /* -1: infinite, -2: unknown */
    spec_json(json, "columns", &spec);
    json_bool(json, "one_thread", line->alone);
    if (ran) {
        json_uint(json, "elements", line->elements);
        json_double(json, "ns_per_element", line->elements ? (double)line->busy_ns / (double)line->elements : 0);
        json_double(json, "share", (double)line->busy_ns / (double)busy);
    }
    json_end_object(json);
}

static void choices_json(struct json_writer *json, const struct plim_job *job)
{
    struct text why;
    json_object(json, "chosen");
    json_int(json, "slots", job->train_grant.slots);
    text_init(&why, job->budget, TAG_PLANNER);
    why_slots(&why, job);
    json_string(json, "why_slots", why.data);
    json_int(json, "workers", job->train_grant.workers);
    text_clear(&why);
    why_workers(&why, job);
    json_string(json, "why_workers", why.data);
    const struct dataset *cache = optional_cache(job->train.dataset);
    if (cache) {
        json_string(json, "cache", cache_is_kept(job, cache) ? "memory" : "none");
        json_string(json, "why_cache", why_cache(job, cache));
    }
    if (held_bytes(job->train.dataset, 1)) {
        json_bool(json, "blocks_held", job->train_grant.held > 0);
        json_string(json, "why_blocks", why_held(job));
    }
    json_uint(json, "room_bytes", job->train.dataset->value_bytes);
    json_end_object(json);
    json->text->failed |= why.failed;
    text_release(&why);
}

static void figures_json(struct json_writer *json, const struct plim_job *job, const plim_data_figures *figures)
{
    char name[96] = "";
    const struct stage_line *line = stage_table_bottleneck(job->stages, job->train_grant.workers + 1);
    if (line)
        stage_line_name(name, line);
    json_string(json, "bottleneck", line ? name : NULL);
    json_double(json, "readiness", figures->readiness);
    json_int(json, "threads", figures->threads);
    json_int(json, "elements", figures->elements);
    json_int(json, "batches", figures->batches);
    json_double(json, "seconds", figures->seconds);
    json_double(json, "elements_per_s", figures->elements_per_s);
    json_uint(json, "bytes_read", figures->bytes_read);
    json_uint(json, "direct_bytes", job->direct_bytes);
    json_uint(json, "peak_rss_bytes", figures->peak_rss_bytes);
}

void data_report_json(struct text *out, const struct plim_job *job, const plim_data_figures *figures)
{
    struct json_writer json;
    const struct stage_table *table = job->stages;
    json_init(&json, out);
    json_object(&json, NULL);
    json_string(&json, "event", "explain");
    json_bool(&json, "fits", job->report.fits);
    json_uint(&json, "budget_bytes", job->report.budget_bytes);
    json_string(&json, "budget_source", job->report.budget_source);
    json_uint(&json, "predicted_peak_bytes", job->report.predicted_peak_bytes);
    json_uint(&json, "smallest_budget_bytes", job->report.smallest_budget_bytes);
    json_array(&json, "stages");
    for (int i = 0; i < table->count; i++)
        line_json(&json, &table->line[i], busy_sum(table), figures->seconds > 0);
    json_end_array(&json);
    choices_json(&json, job);
    if (figures->seconds > 0)
        figures_json(&json, job, figures);
    json_end_object(&json);
}
