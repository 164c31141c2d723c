/* shape_options.c - options of layers that move things about. */
#include "model/layers/shape_options.h"

#include <string.h>

OPTION_READER(option_shape)
{
    struct shape *shape = out;
    if (node->kind == YAML_SCALAR && !node->is_null) {
        shape->rank = 1;
        return option_whole(&shape->dim[0], option, at, node, error);
    }
    if (node->kind != YAML_LIST || node->count >= MOST_AXES)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "%s: expected a list of at most %d whole numbers",
                         option->word, MOST_AXES - 1);
    for (const struct yaml *entry = node->first; entry; entry = entry->next)
        TRY(option_extent(&shape->dim[shape->rank++], option, at, entry, error));
    return PLIM_OK;
}

OPTION_READER(option_open_shape)
{
    struct shape *shape = out;
    for (const struct yaml *entry = node->first; entry; entry = entry->next) {
        int64_t *dim = &shape->dim[shape->rank++];
        *dim = -1;
        if (entry->kind != YAML_SCALAR || (!entry->is_null && strcmp(entry->text, "None") != 0))
            TRY(option_whole(dim, option, at, entry, error));
    }
    return PLIM_OK;
}

static plim_status wrong_count(const struct model_option *option, const struct option_place *at,
                               const struct yaml *node, int count, plim_error *error)
{
    return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "%s: expected a whole number or %d, got a %s of %d",
                     option->word, count, yaml_kind_name(node), node->count);
}

/* `count` numbers; one alone counts for all. */
static plim_status read_wholes(int64_t *out, int count, const struct model_option *option,
                               const struct option_place *at, const struct yaml *node, plim_error *error)
{
    if (yaml_absent(node))
        return PLIM_OK;
    if (node->kind != YAML_SCALAR && (node->kind != YAML_LIST || node->count != count))
        return wrong_count(option, at, node, count, error);
    const struct yaml *entry = node->kind == YAML_LIST ? node->first : NULL;
    for (int i = 0; i < count; i++, entry = entry ? entry->next : NULL)
        TRY(option_extent(&out[i], option, at, entry ? entry : node, error));
    return PLIM_OK;
}

OPTION_READER(option_sizes)
{
    return read_wholes(out, at->layer->type->axes, option, at, node, error);
}

OPTION_READER(option_borders)
{
    int64_t(*border)[2] = out;
    int axes = at->layer->type->axes;
    if (yaml_absent(node))
        return PLIM_OK;
    if (node->kind == YAML_SCALAR || axes == 1) {
        TRY(read_wholes(border[0], 2, option, at, node, error));
        for (int i = 1; i < axes; i++)
            memcpy(border[i], border[0], sizeof border[i]);
        return PLIM_OK;
    }
    if (node->kind != YAML_LIST || node->count != axes)
        return wrong_count(option, at, node, axes, error);
    const struct yaml *entry = node->first;
    for (int i = 0; i < axes; i++, entry = entry->next)
        TRY(read_wholes(border[i], 2, option, at, entry, error));
    return PLIM_OK;
}
