/* job_digest.c - what makes two jobs one run: a checkpoint is resumed only by
   the job that wrote it.

   Counted: seed, model, optimizer, loss, steps_per_epoch, and how the training
   data is made and ordered. Not counted: what changes time or place only
   (memory, threads, paths, prefetch, words of speed), how long to train (epochs), validation.
   Of a model in a file its layers count, not where the file lies: another
   activation is another run, a folder that was moved is not. */
#include "base/numbers/digest.h"
#include "job/job.h"
#include "pipeline/keys/source_key.h"

#include <string.h>

static void add_text(struct sha256 *sha, const char *text)
{
    sha256_add(sha, text ? text : "", text ? strlen(text) + 1 : 1);
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; word && *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

/* A node and everything below it, except entries with these keys. */
static void add_except(struct sha256 *sha, const struct yaml *node, const char *const *except)
{
    if (!node || is_one_of(node->key, except))
        return;
    sha256_add(sha, &(uint8_t){(uint8_t)node->kind}, 1);
    add_text(sha, node->key);
    add_text(sha, node->text);
    for (const struct yaml *child = node->first; child; child = child->next)
        add_except(sha, child, except);
    add_text(sha, "end");
}

static void add_node(struct sha256 *sha, const struct yaml *node)
{
    static const char *const none[] = {NULL};
    add_except(sha, node, none);
}

static bool is_prefetch(const struct yaml *stage)
{
    const char *word = stage->kind == YAML_MAP && stage->first ? stage->first->key : stage->text;
    return word && strcmp(word, "prefetch") == 0;
}

static void add_data(struct sha256 *sha, const struct yaml *split);

/* Lists of splits, and what is said beside them. */
static void add_splits(struct sha256 *sha, const struct yaml *node)
{
    bool split = false;
    for (const struct yaml *entry = node->kind == YAML_MAP ? node->first : NULL; entry; entry = entry->next)
        split = split || source_key_find(entry->key);
    if (split) {
        add_data(sha, node);
        return;
    }
    if (node->kind == YAML_SCALAR) {
        add_node(sha, node);
        return;
    }
    add_text(sha, node->key);
    for (const struct yaml *child = node->first; child; child = child->next)
        add_splits(sha, child);
    add_text(sha, "end");
}

/* Files may have moved: of a source everything counts but where they lie; what is in them is the fingerprint's business
   (pipeline/core/fingerprint.h). A source that is no map is nothing but paths. Sources without files are their words,
   sources of sources those of all. */
static void add_source(struct sha256 *sha, const struct yaml *source)
{
    const struct source_key *kind = source_key_find(source->key);
    enum origin origin = kind ? kind->origin : OF_WORDS;
    static const char *const places[] = {"files", "file", "folder", NULL};
    static const char *const speed[] = {"num_parallel_calls", "buffer_size", NULL};
    add_text(sha, source->key);
    if (origin == OF_SOURCES)
        add_splits(sha, source);
    else if (origin == OF_WORDS)
        add_node(sha, source);
    else if (source->kind == YAML_MAP)
        for (const struct yaml *word = source->first; word; word = word->next)
            if (!is_one_of(word->key, places))
                add_except(sha, word, speed);
}

static void add_data(struct sha256 *sha, const struct yaml *split)
{
    for (const struct yaml *entry = split ? split->first : NULL; entry; entry = entry->next) {
        if (!entry->key || strcmp(entry->key, "pipeline") != 0) {
            add_source(sha, entry);
            continue;
        }
        for (const struct yaml *stage = entry->first; stage; stage = stage->next)
            if (!is_prefetch(stage))
                add_node(sha, stage);
    }
}

/* Of the job, or else of the model's file, as job_read.c takes them. */
static void add_compiled(struct sha256 *sha, const struct plim_job *job, const struct yaml *train)
{
    const struct yaml *compiled = job->model->compiled, *loss = yaml_get(train, "loss");
    const struct yaml *optimizer = yaml_get(train, "optimizer"), *weights = yaml_get(train, "loss_weights");
    add_node(sha, optimizer || !compiled ? optimizer : yaml_get(compiled, "optimizer"));
    add_node(sha, loss || !compiled ? loss : yaml_get(compiled, "loss"));
    add_node(sha, weights || loss || !compiled ? weights : yaml_get(compiled, "loss_weights"));
}

void job_digest(char out[65], const struct plim_job *job)
{
    struct sha256 sha;
    uint8_t digest[32];
    const struct yaml *train = yaml_get(job->yaml, "train");
    sha256_init(&sha);
    add_node(&sha, yaml_get(job->yaml, "seed"));
    add_node(&sha, job->model_yaml ? job->model_yaml : yaml_get(job->yaml, "model"));
    add_compiled(&sha, job, train);
    add_node(&sha, yaml_get(train, "class_weight"));
    add_node(&sha, yaml_get(train, "steps_per_epoch"));
    add_node(&sha, yaml_get(train, yaml_get(train, "precision") ? "precision" : "policy"));
    add_data(&sha, job->train.yaml);
    sha256_end(&sha, digest);
    sha256_text(out, digest);
}
