/* job_read.c - the job file's keys into a struct plim_job. */
#include "job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAVE_BUFFER_BYTES  ((uint64_t)64 * 1024)
#define DEFAULT_DISK_BYTES ((uint64_t)10 << 30)

struct top {
    const char *memory, *disk, *scratch, *threads;
    int64_t seed;
    const struct yaml *data, *model, *train, *plan;
};

static const struct setting top_settings[] = {
    {"memory", SETTING_WORD, offsetof(struct top, memory), 0},
    {"disk", SETTING_WORD, offsetof(struct top, disk), 0},
    {"scratch", SETTING_WORD, offsetof(struct top, scratch), 1},
    {"threads", SETTING_WORD, offsetof(struct top, threads), 0},
    {"seed", SETTING_WHOLE, offsetof(struct top, seed), 0},
    {"data", SETTING_NODE, offsetof(struct top, data), 0},
    {"model", SETTING_NODE, offsetof(struct top, model), 0},
    {"train", SETTING_NODE, offsetof(struct top, train), 0},
    {"plan", SETTING_NODE, offsetof(struct top, plan), 0},
};

struct train_keys {
    const struct yaml *optimizer, *metrics, *weighted_metrics, *callbacks, *loss, *loss_weights, *class_weight;
    const struct yaml *precision, *policy;
    const char *save_weights, *load_weights;
    int64_t epochs, steps_per_epoch, validation_steps;
};

static const struct setting train_settings[] = {
    {"optimizer", SETTING_NODE, offsetof(struct train_keys, optimizer), 0},
    {"loss", SETTING_NODE, offsetof(struct train_keys, loss), 0},
    {"loss_weights", SETTING_NODE, offsetof(struct train_keys, loss_weights), 0},
    {"class_weight", SETTING_NODE, offsetof(struct train_keys, class_weight), 0},
    {"metrics", SETTING_NODE, offsetof(struct train_keys, metrics), 0},
    {"weighted_metrics", SETTING_NODE, offsetof(struct train_keys, weighted_metrics), 0},
    {"callbacks", SETTING_NODE, offsetof(struct train_keys, callbacks), 0},
    {"precision", SETTING_NODE, offsetof(struct train_keys, precision), 0},
    {"policy", SETTING_NODE, offsetof(struct train_keys, policy), 0}, /* Keras's word for it */
    {"epochs", SETTING_WHOLE, offsetof(struct train_keys, epochs), 1},
    {"steps_per_epoch", SETTING_WHOLE, offsetof(struct train_keys, steps_per_epoch), 1},
    {"validation_steps", SETTING_WHOLE, offsetof(struct train_keys, validation_steps), 1},
    {"save_weights", SETTING_WORD, offsetof(struct train_keys, save_weights), 1},
    {"load_weights", SETTING_WORD, offsetof(struct train_keys, load_weights), 1},
};

struct data_keys {
    const struct yaml *train, *validation;
};

static const struct setting data_settings[] = {
    {"train", SETTING_NODE, offsetof(struct data_keys, train), 0},
    {"validation", SETTING_NODE, offsetof(struct data_keys, validation), 0},
};

static plim_status missing_key(const struct plim_job *job, const char *word, const char *example, plim_error *error)
{
    plim_status status = fail_at(error, PLIM_BAD_JOB, job->path, "'%s:' is missing", word);
    return hint(error, status, "add %s", example);
}

plim_status job_lacks(const struct plim_job *job, plim_error *error)
{
    return missing_key(job, job->lacks, job->lacks_example, error);
}

/* What is not said, of the job file or by --set: at the place where it is. */
static plim_status at_word(const struct plim_job *job, const char *word, const char *option, plim_status status,
                           plim_error *error)
{
    char where[256];
    const struct yaml *node = yaml_get(job->yaml, word);
    if (option)
        snprintf(where, sizeof where, "--%s %s", word, option);
    else if (node)
        yaml_place(where, job->path, node);
    return status == PLIM_OK ? PLIM_OK : error_at(error, status, option || node ? where : job->path);
}

/* ---- threads ---- */

#define MOST_THREADS 256

/* A number in [least, MOST_THREADS]; *at moves behind it. */
static bool read_count(int *out, const char **at, long least)
{
    char *end;
    errno = 0;
    long number = strtol(*at, &end, 10);
    if (end == *at || errno || number < least || number > MOST_THREADS)
        return false;
    *out = (int)number;
    *at = end;
    return true;
}

/* "compute=2" or "data=1". */
static bool read_kind(struct plim_job *job, const char **at)
{
    static const char compute[] = "compute=", data[] = "data=";
    if (strncmp(*at, compute, sizeof compute - 1) == 0) {
        *at += sizeof compute - 1;
        return read_count(&job->compute_threads, at, 1);
    }
    if (strncmp(*at, data, sizeof data - 1) != 0)
        return false;
    *at += sizeof data - 1;
    return read_count(&job->data_threads, at, 0);
}

/* "2", "compute=2,data=1" */
static plim_status read_threads(struct plim_job *job, const char *text, plim_error *error)
{
    job->compute_threads = cpu_count();
    job->data_threads = 1;
    if (!text)
        return PLIM_OK;
    const char *at = text;
    bool good = read_count(&job->compute_threads, &at, 1);
    if (!good && at == text) {
        good = read_kind(job, &at);
        while (good && *at == ',') {
            at++;
            good = read_kind(job, &at);
        }
    }
    if (good && !*at)
        return PLIM_OK;
    plim_status status =
        fail(error, PLIM_USAGE, "threads: '%s' is not a number of threads (1 to %d)", text, MOST_THREADS);
    return hint(error, status, "--threads 2 or --threads compute=2,data=1");
}

/* ---- train ---- */

/* NULL stays NULL; no memory is an error, not "no path". */
static plim_status take_path(const char **out, struct plim_job *job, const char *path, plim_error *error)
{
    *out = path ? job_path(job, path) : NULL;
    return path && !*out ? arena_refused(&job->arena, error) : PLIM_OK;
}

static plim_status read_checkpoint(struct plim_job *job, const struct yaml *value, plim_error *error)
{
    struct {
        int64_t every;
        const char *path;
    } keys = {0};
    const struct setting settings[] = {{"every", SETTING_WHOLE, 0, 1}, {"path", SETTING_WORD, sizeof(int64_t), 1}};
    if (value->kind == YAML_SCALAR && strcmp(value->text, "none") == 0) {
        job->options.checkpoint_folder = NULL;
        return PLIM_OK;
    }
    if (value->kind == YAML_SCALAR)
        TRY(setting_value(&keys.every, &settings[0], job->path, value, error));
    else
        TRY(settings_read(&keys, settings, COUNT(settings), job->path, value, error));
    job->options.checkpoint_every = keys.every;
    return keys.path ? take_path(&job->options.checkpoint_folder, job, keys.path, error) : PLIM_OK;
}

static plim_status read_callbacks(struct plim_job *job, const struct yaml *list, plim_error *error)
{
    const struct yaml *checkpoint = NULL;
    const struct setting settings[] = {{"checkpoint", SETTING_NODE, 0, 0}};
    for (const struct yaml *entry = list->first; entry; entry = entry->next) {
        const char *word = entry->kind == YAML_MAP && entry->first ? entry->first->key : entry->text;
        if (word)
            TRY(job_callback_check(job, entry, word, error));
    }
    TRY(settings_read(&checkpoint, settings, COUNT(settings), job->path, list, error));
    return checkpoint ? read_checkpoint(job, checkpoint, error) : PLIM_OK;
}

/* Keras's: float16's small gradients are scaled up, unless the optimizer says how itself. */
static plim_status read_policy(struct plim_job *job, const struct yaml *word, plim_error *error)
{
    enum type compute = TYPE_F32;
    bool said = false;
    TRY(policy_read_node(&compute, &said, "train", job->path, word, error));
    if (said)
        model_set_policy(job->model, compute);
    if (model_computes_in(job->model, TYPE_F16))
        job->training.optimizer.scales_loss = true;
    return PLIM_OK;
}

/* What the job says, or else the model's file. */
static struct compile_key compile_key(const struct plim_job *job, const struct yaml *said, const char *word,
                                      bool of_file)
{
    const struct yaml *compiled = job->model->compiled;
    if (said || !compiled || !of_file)
        return (struct compile_key){said, job->path};
    return (struct compile_key){yaml_get(compiled, word), job->model->job};
}

static plim_status read_train(struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    struct train_keys keys = {.epochs = 1};
    TRY(settings_read(&keys, train_settings, COUNT(train_settings), job->path, yaml, error));
    const struct compile_key optimizer = compile_key(job, keys.optimizer, "optimizer", true);
    const struct compile_keys compile = {
        .loss = compile_key(job, keys.loss, "loss", true),
        .loss_weights = compile_key(job, keys.loss_weights, "loss_weights", !keys.loss),
        .metrics = compile_key(job, keys.metrics, "metrics", !keys.loss),
        .weighted_metrics = compile_key(job, keys.weighted_metrics, "weighted_metrics", !keys.loss),
        .class_weight = {keys.class_weight, job->path},
    };
    if (!compile.loss.node)
        return missing_key(job, "train.loss", "train: {loss: sparse_categorical_crossentropy}", error);
    if (!optimizer.node)
        return missing_key(job, "train.optimizer", "train: {optimizer: adam}", error);
    TRY(compile_read(&job->training, job->model, &job->arena, &compile, error));
    TRY(optimizer_read(&job->training.optimizer, optimizer.job, optimizer.node, error));
    if (keys.callbacks)
        TRY(read_callbacks(job, keys.callbacks, error));
    TRY(read_policy(job, keys.precision ? keys.precision : keys.policy, error));
    job->options.epochs = keys.epochs;
    job->options.steps_per_epoch = keys.steps_per_epoch;
    job->options.validation_steps = keys.validation_steps;
    TRY(take_path(&job->options.save_weights, job, keys.save_weights, error));
    return take_path(&job->options.load_weights, job, keys.load_weights, error);
}

/* ---- the whole ---- */

/* The text of a job that has no file: made of the files it was opened with. */
static plim_status load_made(struct plim_job *job, const plim_job_options *options, plim_error *error)
{
    plim_status status = yaml_parse(&job->yaml, &job->arena, job->path, job->made_text, strlen(job->made_text), error);
    if (status == PLIM_OK)
        yaml_forget_places(job->yaml);
    for (size_t i = 0; status == PLIM_OK && i < options->overrides_count; i++)
        status = yaml_override(job->yaml, &job->arena, options->overrides[i], error);
    return status;
}

/* ---- the budget, before the file is parsed ---- */

plim_status job_bind_early(struct plim_job *job, const char *memory, plim_error *error)
{
    uint64_t bytes;
    const char *source;
    char place[256];
    plim_status status = limits_parse(&bytes, &source, place, memory, job->budget, error);
    if (status == PLIM_USAGE) /* job_read reports the error with its place */
        status = limits_parse(&bytes, &source, place, NULL, job->budget, error);
    TRY(status);
    if (budget_bind_process(job->budget, bytes, NULL) != PLIM_OK)
        budget_unbind_process(job->budget); /* job_read refuses later, when it can name the command */
    return PLIM_OK;
}

#define MEMORY_WORD_BYTES 32

/* The text behind `at`, without blanks and quotes, up to the end of a value. */
static void copy_word(char out[MEMORY_WORD_BYTES], const char *at, const char *end)
{
    size_t used = 0;
    while (at < end && strchr(" \t\"'", *at))
        at++;
    while (at < end && used + 1 < MEMORY_WORD_BYTES && !strchr(" \t\r\n\"',}#", *at))
        out[used++] = *at++;
    out[used] = 0;
}

/* Of a job in block style: a line that begins with `memory:`. */
static bool find_line(char out[MEMORY_WORD_BYTES], const char *text, size_t bytes)
{
    static const char word[] = "memory:";
    const char *end = text + bytes;
    for (const char *line = text; line && line < end; line = memchr(line, '\n', (size_t)(end - line))) {
        line += *line == '\n';
        if ((size_t)(end - line) < sizeof word || memcmp(line, word, sizeof word - 1) != 0)
            continue;
        copy_word(out, line + sizeof word - 1, end);
        return true;
    }
    return false;
}

/* Of a job in JSON: "memory" outside of all braces but the first. */
static bool find_key(char out[MEMORY_WORD_BYTES], const char *text, size_t bytes)
{
    static const char word[] = "\"memory\":";
    int depth = 0;
    bool quoted = false;
    for (size_t at = 0; at < bytes; at++) {
        bool here = !quoted && depth == 1 && bytes - at >= sizeof word;
        if (here && memcmp(text + at, word, sizeof word - 1) == 0) {
            copy_word(out, text + at + sizeof word - 1, text + bytes);
            return true;
        }
        quoted ^= text[at] == '"';
        at += quoted && text[at] == '\\';
        depth +=
            !quoted && at < bytes ? (text[at] == '{' || text[at] == '[') - (text[at] == '}' || text[at] == ']') : 0;
    }
    return false;
}

/* The parser's memory is bound by what the job states, too: it is looked for in the text. What is not found in these
   two forms binds once it is parsed. */
static plim_status bind_stated(struct plim_job *job, const char *text, size_t bytes, const plim_job_options *options,
                               plim_error *error)
{
    static const char set[] = "memory=";
    char word[MEMORY_WORD_BYTES];
    const char *stated = NULL;
    if (options->memory)
        return PLIM_OK;                                   /* it binds already */
    for (size_t i = 0; i < options->overrides_count; i++) /* the last one counts */
        if (strncmp(options->overrides[i], set, sizeof set - 1) == 0)
            stated = options->overrides[i] + sizeof set - 1;
    if (!stated && (find_line(word, text, bytes) || (bytes && text[0] == '{' && find_key(word, text, bytes))))
        stated = word;
    job->memory_seen = stated != NULL;
    return stated ? job_bind_early(job, stated, error) : PLIM_OK;
}

static plim_status load(struct plim_job *job, const plim_job_options *options, plim_error *error)
{
    struct file_content file;
    if (job->made_text)
        return load_made(job, options, error);
    plim_status status = file_load(&file, job->budget, TAG_PLANNER, job->path, YAML_MOST_BYTES, error);
    if (status == PLIM_BAD_DATA) /* too long, or a folder: it is no job file */
        return error ? error->code = PLIM_BAD_JOB : PLIM_BAD_JOB;
    TRY(status);
    status = bind_stated(job, file.text, file.bytes, options, error);
    if (status == PLIM_OK)
        status = yaml_parse(&job->yaml, &job->arena, job->path, file.text, file.bytes, error);
    budget_give(job->budget, TAG_PLANNER, file.text, file.bytes + 1);
    for (size_t i = 0; status == PLIM_OK && i < options->overrides_count; i++)
        status = yaml_override(job->yaml, &job->arena, options->overrides[i], error);
    return status;
}

/* In single quotes where a shell would see more than a word. */
static void add_word(struct text *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+@%";
    if (word[strspn(word, plain)] == 0) {
        text_add(out, "%s", word);
        return;
    }
    text_add(out, "'");
    for (const char *c = word; *c; c++)
        text_add(out, *c == '\'' ? "'\\''" : "%c", *c);
    text_add(out, "'");
}

static void add_option(struct text *out, const char *name, const char *value)
{
    if (!value)
        return;
    text_add(out, " %s ", name);
    add_word(out, value);
}

static plim_status read_command(struct plim_job *job, const plim_job_options *options, plim_error *error)
{
    struct text text;
    text_init(&text, job->budget, TAG_PLANNER);
    add_word(&text, job->path);
    for (int i = 1; i < job->file_count; i++) {
        text_add(&text, " ");
        add_word(&text, job->files[i]);
    }
    for (size_t i = 0; i < options->overrides_count; i++)
        add_option(&text, "--set", options->overrides[i]);
    add_option(&text, "--threads", options->threads);
    add_option(&text, "--checkpoint", options->checkpoint);
    add_option(&text, "--disk", options->disk);
    add_option(&text, "--scratch", options->scratch);
    job->command = text.failed ? NULL : arena_string(&job->arena, text.data);
    job->memory_option = options->memory ? arena_string(&job->arena, options->memory) : NULL;
    text_release(&text);
    return job->command && (job->memory_option || !options->memory) ? PLIM_OK : arena_refused(&job->arena, error);
}

/* JOB.yaml keeps its checkpoints in JOB.plim beside it unless another folder is stated. */
static const char *default_checkpoints(struct plim_job *job)
{
    size_t length = strlen(job->path);
    size_t stem = length > 5 && strcmp(job->path + length - 5, ".yaml") == 0 ? length - 5 : length;
    return arena_format(&job->arena, "%.*s.plim", (int)stem, job->path);
}

static plim_status read_disk(struct plim_job *job, const char *disk, const char *folder, plim_error *error)
{
    const char *temporary = getenv("TMPDIR");
    job->scratch.limit_bytes = DEFAULT_DISK_BYTES;
    if (disk && text_lacks_unit(disk))
        return hint(error, fail(error, PLIM_USAGE, "disk: '%s' is a number of bytes, and very few", disk), "%sGiB",
                    disk);
    if (disk && !text_parse_size(&job->scratch.limit_bytes, disk))
        return hint(error, fail(error, PLIM_USAGE, "disk: '%s' is not a size", disk), "2GiB");
    job->scratch.folder = folder ? folder : temporary && *temporary ? temporary : "/var/tmp";
    return PLIM_OK;
}

/* stated: of the job file, or NULL. */
static plim_status read_memory(struct plim_job *job, const char *stated, const plim_job_options *options,
                               plim_error *error)
{
    const char *memory = options->memory ? options->memory : stated;
    plim_status status =
        limits_parse(&job->plan.limit_bytes, &job->memory_source, job->memory_place, memory, job->budget, error);
    TRY(at_word(job, "memory", options->memory, status, error));
    return budget_bind_process(job->budget, job->plan.limit_bytes, error);
}

static plim_status read_places(struct plim_job *job, const struct top *top, const plim_job_options *options,
                               plim_error *error)
{
    TRY(read_memory(job, top->memory, options, error));
    plim_status status = read_threads(job, options->threads ? options->threads : top->threads, error);
    TRY(at_word(job, "threads", options->threads, status, error));
    const char *scratch = options->scratch;
    if (!scratch)
        TRY(take_path(&scratch, job, top->scratch, error));
    status = read_disk(job, options->disk ? options->disk : top->disk, scratch, error);
    TRY(at_word(job, "disk", options->disk, status, error));
    job->options.checkpoint_folder = default_checkpoints(job);
    if (!job->options.checkpoint_folder)
        return arena_refused(&job->arena, error);
    job->options.save_buffer_bytes = SAVE_BUFFER_BYTES;
    return PLIM_OK;
}

/* The first of them. */
static void note_missing(struct plim_job *job, const struct top *top, const struct data_keys *data)
{
    const struct {
        bool there;
        const char *word, *example;
    } parts[] = {{top->data != NULL, "data", "data: {train: {npy: [x.npy, y.npy], pipeline: [batch: 32]}}"},
                 {data->train != NULL, "data.train", "data: {train: ...}"},
                 {top->train || job->data_only, "train", "train: {optimizer: adam, loss: ...}"}};
    for (int i = COUNT(parts) - 1; i >= 0; i--)
        if (!parts[i].there) {
            job->lacks = parts[i].word;
            job->lacks_example = parts[i].example;
        }
}

plim_status job_read(struct plim_job *job, const plim_job_options *options, plim_error *error)
{
    struct top top = {.seed = 0};
    struct data_keys data = {0};
    job->data_only |= options->data_only;
    job->model_only = !job->data_only && !job->made_text && job_is_model(job);
    job->verb = options->command ? arena_string(&job->arena, options->command) : "train";
    if (!job->verb)
        return arena_refused(&job->arena, error);
    TRY(read_command(job, options, error));
    if (job->model_only) {
        TRY(read_memory(job, NULL, options, error));
        return job_model_file(job, job->path, error);
    }
    TRY(load(job, options, error));
    TRY(settings_read(&top, top_settings, COUNT(top_settings), job->path, job->yaml, error));
    if (!top.model && !job->data_only)
        return missing_key(job, "model", "model: [Dense: 10]", error);
    TRY(read_places(job, &top, options, error));
    TRY(job_techniques_read(job, top.plan, error));
    if (top.data)
        TRY(settings_read(&data, data_settings, COUNT(data_settings), job->path, top.data, error));
    note_missing(job, &top, &data);
    if (job->data_only && job->lacks)
        return job_lacks(job, error);
    job->train = (struct job_data){.split = "train", .yaml = data.train};
    job->validation = (struct job_data){.split = "validation", .yaml = data.validation};
    if (!job->data_only) {
        TRY(job_model_read(job, top.model, error));
        if (top.train)
            TRY(read_train(job, top.train, error));
        if (!job->options.load_weights)
            job->options.load_weights = job->model_weights;
    }
    if (options->checkpoint && !(job->options.checkpoint_folder = arena_string(&job->arena, options->checkpoint)))
        return arena_refused(&job->arena, error);
    job->seed = (uint64_t)top.seed;
    job->options.seed = job->seed;
    job->training.seed = job->seed;
    job->options.resume = options->resume;
    job->options.digest = options->digest;
    job->options.data_changed = options->data_changed;
    return PLIM_OK;
}
