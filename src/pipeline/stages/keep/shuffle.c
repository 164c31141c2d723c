/* shuffle.c - exact global shuffle: a keyed permutation of positions, anew each epoch; and what job files say.

   O(1) memory for any number of elements. The key is hash(seed, node, epoch), so
   that two shuffles of one pipeline differ, and nothing but the position is state. */
#include "pipeline/stages/keep/shuffle.h"

#include <string.h>

#include "base/text/text.h"
#include "pipeline/core/pipeline_digest.h"

uint64_t shuffle_key(const struct dataset *dataset, uint64_t epoch)
{
    const struct shuffle_options *options = dataset->options;
    return random_key(dataset->seed, (uint64_t)dataset->node, options->same_each_epoch ? 0 : epoch);
}

static plim_status shuffle_build(struct dataset *dataset, plim_error *error)
{
    if (dataset->cardinality >= 0)
        return PLIM_OK;
    fail(error, PLIM_UNSUPPORTED, "shuffle: an exact shuffle of data without end is not possible");
    return hint(error, PLIM_UNSUPPORTED, "put shuffle before repeat: each repetition gets an order of its own");
}

/* The epoch may differ within a chunk (a repeat lies after us): the permutation is made anew where it changes. */
static void shuffle_locate(struct stage_state *state, const struct dataset *dataset, int64_t *position, uint64_t *epoch,
                           int64_t count)
{
    for (int64_t i = 0, run; i < count; i += run) {
        if (!state->ready || state->epoch != epoch[i]) {
            permutation_init(&state->permutation, (uint64_t)dataset->cardinality, shuffle_key(dataset, epoch[i]), 0);
            state->epoch = epoch[i];
            state->ready = true;
        }
        for (run = 1; i + run < count && epoch[i + run] == epoch[i];)
            run++;
        permutation_map(&state->permutation, position + i, run);
    }
}

/* ---- building ---- */

/* Only a buffer can mix what comes one after another: refused with what to write instead. */
static struct dataset *without_index(struct dataset *dataset, enum shuffle_kind kind)
{
    plim_error error = {0};
    const char *word = kind == SHUFFLE_BLOCKS ? "blocks" : "exact";
    bool stream = dataset->source->type->reader_open != NULL;
    const char *advice = dataset->source->type->index_advice;
    fail(&error, PLIM_UNSUPPORTED, "shuffle: '%s' needs data with an index; here elements come one after another%s",
         word, dataset->batch_size || dataset->stacked ? ", after batch" : "");
    if (dataset->batch_size || dataset->stacked)
        hint(&error, PLIM_UNSUPPORTED, "put shuffle before batch, or shuffle batches with {buffer_size: 100}");
    else if (stream)
        hint(&error, PLIM_UNSUPPORTED,
             advice ? "shuffle: {buffer_size: 10000}, or %s" : "shuffle: {buffer_size: 10000}", advice);
    else
        hint(&error, PLIM_UNSUPPORTED, "put shuffle right behind the source, or use {buffer_size: 10000}");
    return dataset_refuse(dataset, &error);
}

struct dataset *dataset_shuffle_with(struct dataset *dataset, const struct shuffle_options *options)
{
    static const struct stage *const stages[] = {[SHUFFLE_EXACT] = &stage_shuffle,
                                                 [SHUFFLE_BLOCKS] = &stage_shuffle_blocks,
                                                 [SHUFFLE_BUFFER] = &stage_shuffle_buffer};
    bool indexed = dataset->indexed && !dataset->batch_size;
    if (!dataset->error && !indexed && options->kind != SHUFFLE_BUFFER)
        return without_index(dataset, options->kind);
    const int64_t numbers[] = {options->kind,  options->same_each_epoch, options->block_size,
                               options->group, options->buffer_size,     (int64_t)options->bytes};
    bool plain = !options->kind && !options->same_each_epoch;
    return dataset_add(dataset, stages[options->kind],
                       (struct stage_arguments){.options = options,
                                                .options_bytes = sizeof *options,
                                                .number = plain ? 0 : digest_number(numbers, sizeof numbers),
                                                .seed = options->seed});
}

struct dataset *dataset_shuffle(struct dataset *dataset, uint64_t seed)
{
    return dataset_shuffle_with(dataset, &(struct shuffle_options){.kind = SHUFFLE_EXACT, .seed = seed});
}

/* ---- job files ---- */

struct shuffle_keys {
    int64_t buffer_size, seed, block_size, group;
    bool reshuffle;
    const char *bytes;
    const struct yaml *exact, *blocks;
};

static plim_status read_blocks(struct shuffle_keys *keys, const char *job, const struct yaml *value, plim_error *error)
{
    static const struct setting settings[] = {
        {"block_size", SETTING_WHOLE, offsetof(struct shuffle_keys, block_size), 1},
        {"group", SETTING_WHOLE, offsetof(struct shuffle_keys, group), 1},
    };
    if (value->is_null)
        return PLIM_OK;
    return settings_read(keys, settings, COUNT(settings), job, value, error);
}

static plim_status read_map(struct shuffle_options *out, const struct stage_entry *entry, plim_error *error)
{
    struct shuffle_keys keys = {.reshuffle = true, .seed = -1};
    static const struct setting settings[] = {
        {"buffer_size", SETTING_WHOLE, offsetof(struct shuffle_keys, buffer_size), 1},
        {"bytes", SETTING_WORD, offsetof(struct shuffle_keys, bytes), 0},
        {"seed", SETTING_WHOLE, offsetof(struct shuffle_keys, seed), 0},
        {"reshuffle_each_iteration", SETTING_BOOL, offsetof(struct shuffle_keys, reshuffle), 0},
        {"exact", SETTING_NODE, offsetof(struct shuffle_keys, exact), 0},
        {"blocks", SETTING_NODE, offsetof(struct shuffle_keys, blocks), 0},
    };
    TRY(settings_read(&keys, settings, COUNT(settings), entry->job, entry->value, error));
    if ((keys.buffer_size != 0) + (keys.exact != NULL) + (keys.blocks != NULL) > 1)
        return fail_at(error, PLIM_BAD_JOB, entry->where, "shuffle: one of buffer_size, blocks and exact");
    if (keys.blocks)
        TRY(read_blocks(&keys, entry->job, keys.blocks, error));
    if (keys.bytes && (!keys.buffer_size || !text_parse_size(&out->bytes, keys.bytes) || !out->bytes))
        return stage_bad(entry, "bytes: expected a size, beside buffer_size", "{buffer_size: 10000, bytes: 16MiB}",
                         error);
    out->kind = keys.buffer_size ? SHUFFLE_BUFFER : keys.blocks ? SHUFFLE_BLOCKS : SHUFFLE_EXACT;
    out->buffer_size = keys.buffer_size;
    out->block_size = keys.block_size;
    out->group = keys.group;
    out->same_each_epoch = !keys.reshuffle;
    if (keys.seed >= 0)
        out->seed = (uint64_t)keys.seed;
    return PLIM_OK;
}

static plim_status read_word(struct shuffle_options *out, const struct stage_entry *entry, plim_error *error)
{
    const char *text = entry->value->text;
    if (strcmp(text, "exact") == 0)
        out->kind = SHUFFLE_EXACT;
    else if (strcmp(text, "blocks") == 0)
        out->kind = SHUFFLE_BLOCKS;
    else if (setting_whole(&out->buffer_size, text))
        out->kind = SHUFFLE_BUFFER;
    else {
        fail_at(error, PLIM_BAD_JOB, entry->where, "shuffle: expected 'exact', 'blocks' or a buffer size, got '%s'",
                text);
        return hint(error, PLIM_BAD_JOB, "shuffle: exact");
    }
    if (out->kind == SHUFFLE_BUFFER && out->buffer_size < 1)
        return fail_at(error, PLIM_BAD_JOB, entry->where, "shuffle: a buffer of at least 1 element; got %lld",
                       (long long)out->buffer_size);
    return PLIM_OK;
}

static plim_status shuffle_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct shuffle_options options = {.seed = entry->seed};
    TRY((entry->value->kind == YAML_SCALAR ? read_word : read_map)(&options, entry, error));
    *dataset = dataset_shuffle_with(*dataset, &options);
    return PLIM_OK;
}

const struct stage stage_shuffle = {
    .name = "shuffle",
    .build = shuffle_build,
    .locate = shuffle_locate,
    .by_epoch = true,
    .read = shuffle_read,
};
