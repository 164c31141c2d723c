/* job_data.c - a split of the job file (`train:`, `validation:`) into a data
   set: one source word, then the pipeline's stages in their order.

   A source word is one entry of the table below. */
#include "job/job.h"
#include "pipeline/stage.h"

#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define MOST_FILES 64

struct source_word {
    const char *word;
    plim_status (*open)(struct source **out, struct plim_job *job, const struct yaml *yaml, plim_error *error);
};

static plim_status bad(struct plim_job *job, const struct yaml *at, const char *what, plim_error *error)
{
    char where[256];
    yaml_place(where, job->path, at);
    return fail_at(error, PLIM_BAD_JOB, where, "%s", what);
}

/* A file name, or a list of them. */
/* A file that is not there is a mistake in the job file: it is told with its line. */
static plim_status check_exists(struct plim_job *job, const struct yaml *item, const char *path, plim_error *error)
{
    char where[256];
    bool exists;
    TRY(file_exists(&exists, path, error));
    if (exists)
        return PLIM_OK;
    yaml_place(where, job->path, item);
    plim_status status = fail_at(error, PLIM_BAD_DATA, where, "there is no file '%s'", path);
    return hint(error, status, "paths are relative to the job file");
}

static plim_status read_paths(const char **paths, int *count, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    *count = 0;
    if (yaml->kind == YAML_MAP)
        return bad(job, yaml, "expected a file name or a list of them", error);
    for (const struct yaml *item = yaml->kind == YAML_SCALAR ? yaml : yaml->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR || item->is_null || !*item->text)
            return bad(job, item, "expected a file name", error);
        if (*count == MOST_FILES)
            return bad(job, item, "too many files", error);
        paths[*count] = job_path(job, item->text);
        if (!paths[*count])
            return budget_refused(job->budget, TAG_PLANNER, job->arena.block_bytes, error);
        TRY(check_exists(job, item, paths[(*count)++], error));
        if (item == yaml)
            break;
    }
    return *count ? PLIM_OK : bad(job, yaml, "expected a file name or a list of them", error);
}

static plim_status open_idx(struct source **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    const char *paths[MOST_FILES];
    int count;
    TRY(read_paths(paths, &count, job, yaml, error));
    return idx_open(out, job->budget, paths, count, error);
}

/* {x: [0, 100], y: 100}: a range of columns, or one. */
static plim_status read_ranges(struct npy_range *ranges, int *count, struct plim_job *job, const struct yaml *columns, plim_error *error)
{
    *count = 0;
    if (columns->kind != YAML_MAP || !columns->first)
        return bad(job, columns, "columns: expected {name: [first, end]} or {name: number}", error);
    for (const struct yaml *column = columns->first; column; column = column->next) {
        struct npy_range *range = &ranges[*count];
        if (*count == MOST_COLUMNS)
            return bad(job, columns, "columns: expected at most 8 of {name: [first, end]} or {name: number}", error);
        range->name = column->key;
        range->scalar = column->kind == YAML_SCALAR;
        if (!range->scalar && (column->kind != YAML_LIST || column->count != 2))
            return bad(job, column, "expected [first, end] or a column number", error);
        const struct yaml *first = range->scalar ? column : column->first;
        const struct yaml *end = range->scalar ? column : first ? first->next : NULL;
        if (!first || !end || first->kind != YAML_SCALAR || end->kind != YAML_SCALAR || !setting_whole(&range->first, first->text) ||
            !setting_whole(&range->end, end->text) || range->first < 0 || range->first == INT64_MAX)
            return bad(job, column, "expected [first, end] or a column number", error);
        if (range->scalar)
            range->end = range->first + 1;
        (*count)++;
    }
    return PLIM_OK;
}

static plim_status open_npy(struct source **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    const char *paths[MOST_FILES];
    struct npy_range ranges[MOST_COLUMNS];
    int count, range_count = 0;
    const struct yaml *words[2] = {yaml, NULL};
    const struct setting settings[] = {{"files", SETTING_NODE, 0, 0}, {"columns", SETTING_NODE, sizeof words[0], 0}};
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(words, settings, COUNT(settings), job->path, yaml, error));
    if (words[0] == yaml && yaml->kind == YAML_MAP)
        return bad(job, yaml, "npy: 'files:' is missing", error);
    TRY(read_paths(paths, &count, job, words[0], error));
    if (words[1])
        TRY(read_ranges(ranges, &range_count, job, words[1], error));
    return npy_open(out, job->budget, paths, count, ranges, range_count, error);
}

struct random_words {
    int64_t elements, classes, seed;
    const struct yaml *shape;
    bool learnable;
};

static const struct setting random_settings[] = {
    {"elements", SETTING_WHOLE, offsetof(struct random_words, elements), 1},
    {"classes", SETTING_WHOLE, offsetof(struct random_words, classes), 1},
    {"seed", SETTING_WHOLE, offsetof(struct random_words, seed), 0},
    {"shape", SETTING_NODE, offsetof(struct random_words, shape), 0},
    {"learnable", SETTING_BOOL, offsetof(struct random_words, learnable), 0},
};

static plim_status read_shape(struct shape *shape, struct plim_job *job, const struct yaml *list, plim_error *error)
{
    const struct setting extent = {"shape", SETTING_WHOLE, 0, 1};
    uint64_t bytes;
    if (list->kind != YAML_LIST || list->count > MOST_AXES - 1)
        return bad(job, list, "shape: expected a list of at most 5 whole numbers", error);
    for (const struct yaml *item = list->first; item; item = item->next)
        TRY(setting_value(&shape->dim[shape->rank++], &extent, job->path, item, error));
    if (!shape_bytes(&bytes, shape, TYPE_F32))
        return bad(job, list, "shape: too large", error);
    return PLIM_OK;
}

static plim_status open_random(struct source **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    struct random_words words = {.elements = 0, .classes = 2};
    struct random_options options = {0};
    TRY(settings_read(&words, random_settings, COUNT(random_settings), job->path, yaml, error));
    if (!words.elements || !words.shape)
        return bad(job, yaml, "random: needs 'elements:' and 'shape:'", error);
    TRY(read_shape(&options.shape, job, words.shape, error));
    options.elements = words.elements;
    options.classes = words.classes;
    options.seed = (uint64_t)words.seed;
    options.learnable = words.learnable;
    return random_open(out, job->budget, &options, error);
}

static plim_status open_range(struct source **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    const struct setting setting = {"range", SETTING_WHOLE, 0, 1};
    int64_t n;
    TRY(setting_value(&n, &setting, job->path, yaml, error));
    return range_open(out, job->budget, n, error);
}

static plim_status open_later(struct source **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    char where[256];
    (void)out;
    yaml_place(where, job->path, yaml);
    plim_status status = fail_at(error, PLIM_UNSUPPORTED, where, "the source '%s' is not offered yet", yaml->key);
    return hint(error, status, "offered: idx, npy, random, range");
}

static const struct source_word source_words[] = {
    {"idx", open_idx},       {"npy", open_npy},    {"random", open_random}, {"range", open_range},
    {"tfrecord", open_later}, {"csv", open_later},  {"images", open_later},  {"tar", open_later},
    {"tfds", open_later},    {"text", open_later}, {"command", open_later},
};

static plim_status unknown_word(struct plim_job *job, const struct yaml *entry, plim_error *error)
{
    char where[256];
    const char *words[COUNT(source_words) + 1] = {"pipeline"};
    for (int i = 0; i < COUNT(source_words); i++)
        words[i + 1] = source_words[i].word;
    yaml_key_place(where, job->path, entry);
    const char *near = text_nearest(entry->key, words, COUNT(words));
    plim_status status = fail_at(error, PLIM_BAD_JOB, where, "unknown key '%s'", entry->key);
    return near ? hint(error, status, "did you mean '%s'?", near) : hint(error, status, "a source: idx, npy, random or range");
}

static const struct source_word *find_word(const char *key)
{
    for (int i = 0; i < COUNT(source_words); i++)
        if (strcmp(source_words[i].word, key) == 0)
            return &source_words[i];
    return NULL;
}

/* Checks every key before anything is opened. */
static plim_status find_source(const struct yaml **source, const struct yaml **pipeline, struct plim_job *job, const struct yaml *split, plim_error *error)
{
    *source = *pipeline = NULL;
    if (split->kind != YAML_MAP)
        return bad(job, split, "expected a source and a pipeline, as in {npy: [x.npy, y.npy], pipeline: [batch: 32]}", error);
    for (const struct yaml *entry = split->first; entry; entry = entry->next) {
        if (strcmp(entry->key, "pipeline") == 0)
            *pipeline = entry;
        else if (!find_word(entry->key))
            return unknown_word(job, entry, error);
        else if (*source)
            return bad(job, entry, "a second source: one split has one", error);
        else
            *source = entry;
    }
    return *source ? PLIM_OK : bad(job, split, "no source: idx, npy, random or range", error);
}

plim_status job_data_open(struct plim_job *job, struct job_data *data, plim_error *error)
{
    const struct yaml *source_yaml, *pipeline;
    struct source *source;
    TRY(find_source(&source_yaml, &pipeline, job, data->yaml, error));
    if (!pipeline || pipeline->kind != YAML_LIST)
        return bad(job, pipeline ? pipeline : data->yaml, "'pipeline:' must be a list of stages, as in [batch: 32]", error);
    char where[256];
    yaml_place(where, job->path, source_yaml);
    plim_status status = find_word(source_yaml->key)->open(&source, job, source_yaml, error);
    if (status != PLIM_OK)
        return place(error, status, where);
    data->dataset = dataset_from_source(source);
    for (const struct yaml *stage = pipeline->first; stage; stage = stage->next)
        TRY(stage_read(&data->dataset, job->path, stage, job->seed, error));
    yaml_place(where, job->path, pipeline);
    status = dataset_check(data->dataset, error);
    if (status != PLIM_OK)
        return place(error, status, where);
    if (dataset_spec(data->dataset)->column_count < 2)
        return bad(job, source_yaml, "the data has one column; training needs an input and a label", error);
    return PLIM_OK;
}

/* ---- both splits together ---- */

static plim_status bad_data_words(struct plim_job *job, const struct job_data *data, const char *what, const char *advice, plim_error *error)
{
    char where[256];
    yaml_place(where, job->path, data->yaml);
    return hint(error, fail_at(error, PLIM_BAD_JOB, where, "%s", what), "%s", advice);
}

static plim_status check_ends(struct plim_job *job, const struct job_data *data, int64_t steps, const char *advice, plim_error *error)
{
    int64_t last;
    if (!data->dataset || steps > 0 || dataset_steps(data->dataset, &last) >= 0)
        return PLIM_OK;
    return bad_data_words(job, data, "this data never ends", advice, error);
}

/* Both splits feed one model. */
static plim_status check_alike(struct plim_job *job, plim_error *error)
{
    if (!job->validation.dataset)
        return PLIM_OK;
    if (shape_equal(&dataset_spec(job->train.dataset)->column[0].shape, &dataset_spec(job->validation.dataset)->column[0].shape))
        return PLIM_OK;
    return bad_data_words(job, &job->validation, "validation elements have another shape than training elements",
                          "give both the same shape", error);
}

static plim_status check_disk(struct plim_job *job, plim_error *error)
{
    uint64_t by_tag[TAG_COUNT] = {0}, bytes = 0;
    dataset_cost(by_tag, &bytes, job->train.dataset, 1);
    if (job->validation.dataset)
        dataset_cost(by_tag, &bytes, job->validation.dataset, 1);
    if (bytes <= job->scratch.limit_bytes)
        return PLIM_OK;
    char need[16], limit[16];
    text_size(need, bytes);
    text_size(limit, job->scratch.limit_bytes);
    plim_status status = fail_at(error, PLIM_OVER_DISK, job->path, "unpacked sources take %s of disk, the limit is %s", need, limit);
    return hint(error, status, "--disk %lluKiB", (unsigned long long)(bytes / 1024 + 1));
}

plim_status job_data_check(struct plim_job *job, plim_error *error)
{
    TRY(check_ends(job, &job->train, job->options.steps_per_epoch, "set train.steps_per_epoch", error));
    TRY(check_ends(job, &job->validation, job->options.validation_steps, "set train.validation_steps", error));
    TRY(check_alike(job, error));
    return check_disk(job, error);
}
