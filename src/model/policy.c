/* policy.c - Keras's dtype policies: what layers compute in, while weights stay float32.

   A layer's inputs are cast to its type where they are floats, and so are weights, once a step each; what it makes is
   in its type. Losses, metrics and updates are float32. */
#include <string.h>

#include "model/layers/layer_options.h"
#include "ops/ops.h"

static const struct {
    const char *name;
    enum type compute;
} policies[] = {{"float32", TYPE_F32}, {"mixed_bfloat16", TYPE_BF16}, {"mixed_float16", TYPE_F16}};

/* Keras's others, whose weights are not float32. */
static const char *const others[] = {"float16", "bfloat16", "float64", "int8", "float8"};

plim_status policy_read(enum type *out, const char *what, const char *where, const char *word, plim_error *error)
{
    const char *names[COUNT(policies)];
    for (int i = 0; i < COUNT(policies); i++) {
        names[i] = policies[i].name;
        if (strcmp(word, names[i]) == 0) {
            *out = policies[i].compute;
            return PLIM_OK;
        }
    }
    for (int i = 0; i < COUNT(others); i++)
        if (strncmp(word, others[i], strlen(others[i])) == 0)
            return hint(error,
                        fail_at(error, PLIM_UNSUPPORTED, where, "%s '%s' is not offered: weights are kept in float32",
                                what, word),
                        "%s",
                        strstr(word, "bf")   ? "mixed_bfloat16"
                        : strstr(word, "16") ? "mixed_float16"
                                             : "float32");
    return option_unknown(what, word, where, CHOICES(names), error);
}

plim_status policy_read_node(enum type *out, bool *said, const char *owner, const char *job, const struct yaml *node,
                             plim_error *error)
{
    char where[256];
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        return PLIM_OK;
    yaml_place(where, job, node);
    if (node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: dtype: expected a policy's name", owner);
    *said = true;
    return policy_read(out, "dtype", where, node->text, error);
}

void model_set_policy(struct model *model, enum type compute)
{
    bool all = true;
    for (int i = 0; i < model->layer_count; i++)
        if (!model->layer[i].type->hidden)
            all = all && model->layer[i].says_compute && model->layer[i].compute == TYPE_F32;
    for (const struct layer *inner = model->inner; inner; inner = inner->next_inner)
        all = all && (!inner->says_compute || inner->compute == TYPE_F32);
    for (int i = 0; i < model->layer_count && all; i++)
        model->layer[i].compute = compute;
    for (struct layer *inner = model->inner; inner && all; inner = inner->next_inner)
        inner->compute = compute;
    model->compute = compute;
}

enum type layer_compute(const struct layer *layer)
{
    if (layer->type->wide)
        return TYPE_F32;
    while (!layer->says_compute && layer->outer)
        layer = layer->outer;
    return layer->says_compute ? layer->compute : layer->model->compute;
}

bool model_computes_in(const struct model *model, enum type type)
{
    for (int i = 0; i < model->layer_count; i++)
        if (!model->layer[i].type->hidden && layer_compute(&model->layer[i]) == type)
            return true;
    return false;
}

struct tensor *policy_cast(struct graph *graph, struct tensor *x, enum type type)
{
    struct cast_attributes to = {type};
    return !x || x->type == type ? x : graph_add(graph, &op_cast, &x, 1, &to, sizeof to);
}
