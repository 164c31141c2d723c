/* inner_layers.c - layers inside a layer: read as a model is (model_scope.h), built one after another as a model's are.

   NEEDSWORK: models of several inputs or outputs. */
#include "model/layers/inner_layers.h"

#include "base/numbers/hash.h"
#include "model/model_scope.h"

static plim_status refuse(struct layer *outer, plim_status status, const struct yaml *at, const char *what,
                          plim_error *error)
{
    char where[256];
    yaml_place(where, outer->model->job, at);
    return fail_at(error, status, where, "%s: %s", outer->type->name, what);
}

/* One layer, whose names are the outer one's. */
static plim_status read_one(struct inner_layers *out, struct layer *outer, const struct yaml *word, plim_error *error)
{
    static const struct link feed = {.from = FEED(0)};
    struct layer *layer;
    TRY(layer_read_inner(&layer, outer, word, error));
    if (layer->type == &layer_input)
        return refuse(outer, PLIM_BAD_JOB, word, "Input is no layer of one input", error);
    if (layer->outputs > 1)
        return refuse(outer, PLIM_UNSUPPORTED, word, "a layer of several outputs is not supported yet", error);
    out->use = arena_take(&outer->model->arena, sizeof *out->use);
    if (!out->use)
        return arena_refused(&outer->model->arena, error);
    *out->use = (struct use){.layer = layer,
                             .input = &feed,
                             .input_count = 1,
                             .output_index = -1,
                             .first_output = outer->model->made_count++};
    out->use_count = 1;
    return PLIM_OK;
}

static plim_status read_model(struct inner_layers *out, struct layer *outer, const struct yaml *model,
                              plim_error *error)
{
    struct scope *scope;
    struct use_table table;
    TRY(scope_read_inside(&scope, outer, model->key, model, error));
    TRY(scope_lay_out_inside(&table, &out->output, outer, scope, error));
    out->use = table.use;
    out->use_count = table.count;
    out->input = table.input;
    return PLIM_OK;
}

plim_status inner_layers_read(struct inner_layers *out, struct layer *outer, const struct yaml *word, plim_error *error)
{
    bool model = word->kind == YAML_MAP && word->count == 1 && is_model_word(word->first->key);
    *out = (struct inner_layers){.by_last_axis = true};
    TRY(model ? read_model(out, outer, word->first, error) : read_one(out, outer, word, error));
    outer->any_type = true; /* whole numbers come as they are where everybody who reads what comes takes them so */
    for (int i = 0; i < out->use_count; i++) {
        const struct use *use = &out->use[i];
        bool any = use->layer->type->any_type || use->layer->any_type;
        out->by_last_axis = out->by_last_axis && use->layer->type->by_last_axis;
        for (int k = 0; k < use->input_count; k++)
            outer->any_type = outer->any_type && (any || use->input[k].from >= 0);
    }
    return PLIM_OK;
}

/* ---- building ---- */

static struct tensor *input_of(struct graph *graph, struct inner_now *now, int i)
{
    struct link link = now->now->input[i];
    const struct layer *layer = now->now->layer;
    if (link.from < 0)
        return layer_takes(graph, &now->feed.real, now->feed.tensor, layer);
    struct use_output *made = use_made(graph->build, &now->use[link.from], link.part);
    return layer_takes(graph, &made->real, made->output, layer);
}

static void build_use(struct graph *graph, struct inner_now *now)
{
    const struct use *use = now->now;
    const struct layer *layer = use->layer;
    struct use_output *made = use_made(graph->build, use, 0);
    struct tensor **x = arena_array(&graph->arena, (size_t)use->input_count, sizeof(struct tensor *));
    if (!x) {
        graph_refused(graph, 0);
        return;
    }
    for (int k = 0; k == 0 || k < layer->outputs; k++)
        made[k] = (struct use_output){0};
    for (int i = 0; i < use->input_count; i++)
        x[i] = input_of(graph, now, i);
    if (graph->failed)
        return;
    made->mask = layer->type->keeps_mask ? layer_mask(graph, 0) : NULL;
    made->output = layer->type->merge ? layer->type->merge(layer, graph, x, use->input_count)
                                      : layer->type->build(layer, graph, x[0]);
    for (int k = 0; !graph->failed && (k == 0 || k < layer->outputs); k++)
        made[k].output = layer_gives(graph, layer, made[k].output);
}

/* The shape that an Input layer inside says. by_last_axis: x has all steps, on axis 1. */
static void check_input(struct graph *graph, const struct layer *layer, const struct tensor *x, bool by_last_axis)
{
    struct column_spec spec;
    char wanted[96], got[96];
    int first = by_last_axis ? 2 : 1;
    struct shape element = shape_of(x->shape.rank - first, x->shape.dim + first);
    input_spec(&spec, layer);
    bool fits = element.rank == spec.shape.rank;
    for (int i = 0; fits && i < element.rank; i++)
        fits = spec.shape.dim[i] < 0 || spec.shape.dim[i] == element.dim[i];
    if (fits)
        return;
    shape_text(wanted, sizeof wanted, &spec.shape, false);
    shape_text(got, sizeof got, &element, false);
    graph_fail(graph, PLIM_BAD_JOB, "%s: says %s, what it is given is %s", layer->name, wanted, got);
}

/* Those that read what comes, before anything is built of it; or the others, behind it. */
static void check_inputs(struct graph *graph, const struct inner_layers *inner, const struct inner_now *now, bool feed)
{
    for (const struct inside_input *input = inner->input; input && !graph->failed; input = input->next) {
        struct link from = input->from;
        if ((from.from < 0) == feed)
            check_input(graph, input->layer,
                        feed ? now->feed.tensor : use_made(graph->build, &inner->use[from.from], from.part)->output,
                        inner->by_last_axis);
    }
}

struct tensor *inner_layers_build(const struct inner_layers *inner, struct graph *graph, struct tensor *x, int64_t step)
{
    struct build *build = graph->build;
    struct inner_now *around = build->inner_now; /* where the outer layer lies inside another itself */
    struct inner_now now = {.use = inner->use, .feed = {.tensor = x}};
    uint64_t before = around ? around->number : FNV1A_START;
    if (x)
        check_inputs(graph, inner, &now, true);
    build->inner_now = &now;
    for (int i = 0; i < inner->use_count && !graph->failed; i++) {
        now.now = &inner->use[i];
        now.number = fnv1a_step(before, (uint64_t)(step * inner->use_count + i));
        build_use(graph, &now);
    }
    build->inner_now = around;
    check_inputs(graph, inner, &now, false);
    return graph->failed ? NULL : use_made(build, &inner->use[inner->output.from], inner->output.part)->output;
}
