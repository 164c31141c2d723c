/* build.c - the tables of a graph that is made of a model, and what layers ask of the use that is being built. */
#include "model/build.h"

#include <stdio.h>
#include <string.h>

#include "base/text/message.h"

plim_status build_make(struct build **out, const struct model *model, struct graph *graph, plim_error *error)
{
    struct arena *arena = &graph->build_arena;
    struct build *build = arena_take(arena, sizeof *build);
    if (!build)
        return arena_refused(arena, error);
    build->model = model;
    build->made = arena_array(arena, (size_t)model->made_count, sizeof *build->made);
    build->feed = arena_array(arena, (size_t)model->feed_count, sizeof *build->feed);
    build->figures = arena_array(arena, (size_t)model->number_count, sizeof *build->figures);
    if (!build->made || !build->feed || !build->figures)
        return arena_refused(arena, error);
    *out = build;
    return PLIM_OK;
}

void build_free(struct graph *graph)
{
    arena_release(&graph->build_arena);
    graph->build = NULL;
}

void build_clear(struct build *build)
{
    memset(build->made, 0, (size_t)build->model->made_count * sizeof *build->made);
    memset(build->feed, 0, (size_t)build->model->feed_count * sizeof *build->feed);
    memset(build->logits, 0, sizeof build->logits);
}

bool output_has_logits(const struct build *build, int output)
{
    const struct use *use = &build->model->use[build->model->output[output].from];
    return use->output_index >= 0 && build->logits[use->output_index];
}

/* ---- the use that is being built ---- */

/* Inside another layer or not; or NULL. */
static const struct use *use_now(const struct build *build)
{
    return build->inner_now ? build->inner_now->now : build->now;
}

bool layer_is_last(const struct layer *layer, const struct graph *graph)
{
    const struct use *now = graph->build->now;
    return now && now->layer == layer && now->output_index >= 0 && !now->read;
}

bool layer_is_reversed(const struct graph *graph)
{
    const struct use *now = use_now(graph->build);
    return now && now->reverse;
}

struct tensor *layer_mask(const struct graph *graph, int i)
{
    const struct build *build = graph->build;
    const struct use *now = use_now(build), *all = build->inner_now ? build->inner_now->use : build->model->use;
    if (!now || i >= now->input_count || now->input[i].from < 0)
        return NULL;
    return use_made(build, &all[now->input[i].from], now->input[i].part)->mask;
}

void layer_set_mask(struct graph *graph, struct tensor *mask)
{
    const struct use *now = use_now(graph->build);
    if (now)
        use_made(graph->build, now, 0)->mask = mask;
}

void layer_set_output(struct graph *graph, int part, struct tensor *y, struct tensor *mask)
{
    const struct use *now = use_now(graph->build);
    if (now && part < now->layer->outputs)
        *use_made(graph->build, now, part) = (struct use_output){.output = y, .mask = mask};
}

/* ---- for errors ---- */

void link_name(char out[96], const struct model *model, struct link link)
{
    const char *name = link.from < 0 ? model->feed[FEED(link.from)].name : model->use[link.from].name;
    message_print(out, 96, "%.60s%s%.0d", name ? name : "the data", link.part ? "/" : "", link.part);
}

void input_name(char out[96], const struct graph *graph, int i)
{
    const struct build *build = graph->build;
    snprintf(out, 96, "input %d", i);
    if (build->now && i < build->now->input_count && !build->inner_now)
        link_name(out, build->model, build->now->input[i]);
}
