/* options.c - tf.data's `options`: what is so already is accepted, all else is refused with what to write instead. */
#include <string.h>

#include "base/numbers/count.h"
#include "base/text/text.h"
#include "pipeline/core/stage.h"

static const struct option_word {
    const char *word;
    const char *already; /* the value that is always so here; NULL: none */
    const char *instead;
} option_words[] = {
    {"deterministic", "true", "the order of elements never depends on time here, and costs nothing: leave it out"},
    {"autotune", "true", "what is tuned never changes elements: set prefetch: 0 and threads: to tune by hand"},
    {"threading", NULL, "say `threads: compute=2,data=1` at the top of the job"},
    {"experimental_threading", NULL, "say `threads: compute=2,data=1` at the top of the job"},
    {"experimental_deterministic", "true", "the order of elements never depends on time here: leave it out"},
    {"experimental_optimization", NULL, "stages are fused always: leave it out"},
    {"experimental_distribute", NULL, "use `shard: {num_shards: 4, index: 0}`"},
    {"experimental_slack", NULL, "say `prefetch: auto`"},
    {"experimental_warm_start", NULL, "reading ahead begins when the pipeline is opened: leave it out"},
    {"experimental_symbolic_checkpoint", "true", "checkpoints hold positions, never elements: leave it out"},
    {"framework_type", NULL, "leave it out"},
};

static plim_status check_word(const struct yaml *entry, const char *job, plim_error *error)
{
    const char *names[COUNT(option_words)];
    char where[256];
    yaml_key_place(where, job, entry);
    for (size_t i = 0; i < COUNT(option_words); i++) {
        const struct option_word *word = &option_words[i];
        names[i] = word->word;
        if (strcmp(word->word, entry->key) != 0)
            continue;
        if (word->already && entry->kind == YAML_SCALAR && strcmp(entry->text, word->already) == 0)
            return PLIM_OK;
        fail_at(error, PLIM_UNSUPPORTED, where, "options: '%s' changes nothing here", word->word);
        return hint(error, PLIM_UNSUPPORTED, "%s", word->instead);
    }
    const struct word_choices choices = {.what = "option", .names = names, .count = COUNT(names)};
    return stage_unknown(&choices, entry->key, where, error);
}

static plim_status options_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    (void)dataset;
    if (entry->value->kind != YAML_MAP)
        return stage_bad(entry, "expected a map", "{deterministic: true}", error);
    for (const struct yaml *word = entry->value->first; word; word = word->next)
        TRY(check_word(word, entry->job, error));
    return PLIM_OK;
}

/* No node of a pipeline: there is nothing to build. */
const struct stage stage_options = {.name = "options", .read = options_read};
