/* api_words.c - data sets from the words of a job file: everything that job files know, for C programs. */
#include "api/api.h"
#include "pipeline/core/stage.h"
#include "pipeline/keys/split.h"

#include <string.h>

#define PLACE "text"

/* The tree, and what was read from it, live as long as the data set. */
static struct dataset *keep_arena(struct dataset *dataset, struct arena *arena)
{
    const struct api_kept *kept, what = {.arena = *arena};
    return api_keep(&kept, dataset, &what); /* the arena is released with it, or now where it cannot be kept */
}

static plim_status read_split(struct dataset **out, struct data_reader *reader, const char *text, plim_error *error)
{
    struct dataset *dataset = NULL;
    struct split split;
    struct yaml *yaml;
    TRY(yaml_parse(&yaml, reader->arena, PLACE, text, strlen(text), error));
    TRY(split_read(&split, reader, yaml, error));
    char where[256];
    yaml_place(where, PLACE, split.pipeline ? split.pipeline : yaml);
    plim_status status = split_open(&dataset, reader, &split, error);
    if (status == PLIM_OK)
        status = dataset_runs(dataset, error);
    if (status != PLIM_OK)
        error_at(error, status, where);
    return OPENED(out, dataset, dataset_unref, status);
}

plim_dataset *plim_dataset_read(plim_budget *budget, const char *text, uint64_t seed)
{
    struct dataset *dataset = NULL;
    struct arena arena;
    plim_error error = {0};
    HOST_FLOATS;
    if (!budget)
        return NULL;
    struct budget *inner = budget->inner;
    if (need_argument(text, "the text of the data set", &error) != PLIM_OK)
        return outside(dataset_failed(inner, &error));
    arena_init(&arena, inner, TAG_PIPELINE);
    struct data_reader reader = {.budget = inner, .arena = &arena, .path = PLACE, .folder = ".", .seed = seed};
    if (read_split(&dataset, &reader, text, &error) == PLIM_OK)
        return outside(keep_arena(dataset, &arena));
    arena_release(&arena);
    return outside(dataset_failed(inner, &error));
}

plim_dataset *plim_dataset_stage(plim_dataset *public, const char *text, uint64_t seed)
{
    struct dataset *dataset = inside(public);
    struct arena arena;
    struct yaml *yaml;
    plim_error error = {0};
    HOST_FLOATS;
    if (!dataset || dataset->error)
        return public;
    if (!text)
        return api_dataset_null(public, "the text of the stage");
    struct budget *budget = dataset->budget;
    arena_init(&arena, budget, TAG_PIPELINE);
    plim_status status = yaml_parse(&yaml, &arena, PLACE, text, strlen(text), &error);
    if (status == PLIM_OK) {
        dataset = keep_arena(dataset, &arena);
        status = dataset_error(dataset, &error);
        if (status == PLIM_OK)
            status = stage_read(&dataset, PLACE, yaml, seed, &error);
    } else {
        arena_release(&arena);
    }
    if (status == PLIM_OK)
        return outside(dataset);
    dataset_unref(dataset);
    return outside(dataset_failed(budget, &error));
}
