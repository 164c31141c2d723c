/* job_techniques.c - the key `plan:` of a job file: which techniques the planner may use. */
#include <string.h>

#include "base/memory/budget_stop.h"
#include "job/job.h"

/* In the order of enum recompute, and of enum spill. */
static const char *const words[] = {"auto", "never", "always"};

static plim_status bad_recompute(const struct plim_job *job, const struct yaml *value, plim_error *error)
{
    plim_status status =
        value->kind == YAML_SCALAR
            ? yaml_fail(error, PLIM_BAD_JOB, job->path, value, "recompute: unknown word '%s'", value->text)
            : yaml_fail(error, PLIM_BAD_JOB, job->path, value, "recompute: expected a word or a list of layers");
    const char *near = value->kind == YAML_SCALAR ? text_nearest(value->text, words, COUNT(words)) : NULL;
    return hint(error, status, "%s", near ? near : "auto, never, always, or a list of layers: [conv2d, conv2d_1]");
}

static plim_status read_layers(struct plim_job *job, const struct yaml *list, plim_error *error)
{
    const char **layer = arena_array(&job->arena, (size_t)list->count, sizeof *layer);
    int count = 0;
    if (!layer)
        return arena_refused(&job->arena, error);
    for (const struct yaml *entry = list->first; entry; entry = entry->next) {
        if (entry->kind != YAML_SCALAR || !entry->text[0])
            return yaml_fail(error, PLIM_BAD_JOB, job->path, entry, "recompute: expected the name of a layer");
        layer[count++] = entry->text;
    }
    job->recompute = (struct recompute_rule){RECOMPUTE_LAYERS, layer, count};
    job->recompute_layers = list;
    return PLIM_OK;
}

static plim_status read_recompute(struct plim_job *job, const struct yaml *value, plim_error *error)
{
    if (value->kind == YAML_LIST && value->count)
        return read_layers(job, value, error);
    for (int i = 0; i < COUNT(words) && value->kind == YAML_SCALAR; i++)
        if (strcmp(value->text, words[i]) == 0) {
            job->recompute.kind = (enum recompute)i;
            return PLIM_OK;
        }
    return bad_recompute(job, value, error);
}

static plim_status read_spill(struct plim_job *job, const struct yaml *value, plim_error *error)
{
    for (int i = 0; i < COUNT(words) && value->kind == YAML_SCALAR; i++)
        if (strcmp(value->text, words[i]) == 0) {
            job->spill = (enum spill)i;
            return PLIM_OK;
        }
    bool word = value->kind == YAML_SCALAR;
    plim_status status = word
                             ? yaml_fail(error, PLIM_BAD_JOB, job->path, value, "spill: unknown word '%s'", value->text)
                             : yaml_fail(error, PLIM_BAD_JOB, job->path, value, "spill: expected a word");
    const char *near = word ? text_nearest(value->text, words, COUNT(words)) : NULL;
    return hint(error, status, "%s", near ? near : "auto, never or always");
}

/* In the order of enum page, and of PAGE_WEIGHTS and PAGE_STATES. */
static const char *const page_words[] = {"auto", "never"}, *const paged_kinds[] = {"weights", "optimizer"};

static plim_status bad_page(const struct plim_job *job, const struct yaml *value, plim_error *error)
{
    bool word = value->kind == YAML_SCALAR;
    plim_status status = word ? yaml_fail(error, PLIM_BAD_JOB, job->path, value, "page: unknown word '%s'", value->text)
                              : yaml_fail(error, PLIM_BAD_JOB, job->path, value, "page: expected a word or a list");
    return hint(error, status, "auto, never, or a list: [weights, optimizer]");
}

static bool read_kind(struct page_rule *out, const struct yaml *entry)
{
    for (int k = 0; k < COUNT(paged_kinds) && entry->kind == YAML_SCALAR; k++)
        if (strcmp(entry->text, paged_kinds[k]) == 0)
            return out->stated[k] = true;
    return false;
}

static plim_status read_page(struct plim_job *job, const struct yaml *value, plim_error *error)
{
    for (int i = 0; i < COUNT(page_words) && value->kind == YAML_SCALAR; i++)
        if (strcmp(value->text, page_words[i]) == 0) {
            job->page.kind = (enum page)i;
            return PLIM_OK;
        }
    if (value->kind != YAML_LIST || !value->count)
        return bad_page(job, value, error);
    job->page.kind = PAGE_STATED;
    for (const struct yaml *entry = value->first; entry; entry = entry->next)
        if (!read_kind(&job->page, entry))
            return bad_page(job, entry, error);
    return PLIM_OK;
}

struct technique_keys {
    const struct yaml *recompute, *spill, *page;
};
static const struct setting settings[] = {{"recompute", SETTING_NODE, offsetof(struct technique_keys, recompute), 0},
                                          {"spill", SETTING_NODE, offsetof(struct technique_keys, spill), 0},
                                          {"page", SETTING_NODE, offsetof(struct technique_keys, page), 0}};

plim_status job_techniques_read(struct plim_job *job, const struct yaml *plan, plim_error *error)
{
    struct technique_keys keys = {0};
    if (yaml_absent(plan))
        return PLIM_OK;
    TRY(settings_read(&keys, settings, COUNT(settings), job->path, plan, error));
    if (!yaml_absent(keys.spill))
        TRY(read_spill(job, keys.spill, error));
    if (!yaml_absent(keys.page))
        TRY(read_page(job, keys.page, error));
    return yaml_absent(keys.recompute) ? PLIM_OK : read_recompute(job, keys.recompute, error);
}

/* ---- names, once the graph is there ---- */

/* A layer of the model, or one inside of it; some have no nodes of their own. */
static bool is_layer(const struct plim_job *job, const struct graph *graph, const char *name)
{
    for (int i = 0; i < job->model->layer_count; i++)
        if (strcmp(job->model->layer[i].name, name) == 0)
            return true;
    for (int n = 0; n < graph->node_count; n++)
        if (recompute_names_layer(name, graph->node[n]->name))
            return true;
    return false;
}

#define MOST_NAMES 256 /* among which the nearest is looked for */

static plim_status unknown_layer(const struct plim_job *job, const struct yaml *entry, plim_error *error)
{
    const char *names[MOST_NAMES];
    size_t count = 0;
    for (int i = 0; i < job->model->layer_count && count < MOST_NAMES; i++)
        names[count++] = job->model->layer[i].name;
    plim_status status =
        yaml_fail(error, PLIM_BAD_JOB, job->path, entry, "recompute: no layer is named '%s'", entry->text);
    const char *near = text_nearest(entry->text, names, count);
    return near ? hint(error, status, "%s", near) : hint(error, status, "plim summary %s", job->path);
}

plim_status job_techniques_check(const struct plim_job *job, const struct graph *graph, plim_error *error)
{
    const struct yaml *list = job->recompute_layers;
    for (const struct yaml *entry = list ? list->first : NULL; entry; entry = entry->next) {
        TRY(budget_go_on(job->budget, error)); /* there may be many, of many layers */
        if (!is_layer(job, graph, entry->text))
            return unknown_layer(job, entry, error);
    }
    return PLIM_OK;
}
