/* value_scale.c - see value_scale.h. Columns are followed by name; one that is renamed begins anew. */
#include "pipeline/maps/images/value_scale.h"

#include <string.h>

#include "pipeline/core/stage.h"
#include "pipeline/maps/images/map_image.h"
#include "pipeline/maps/map_functions.h"

/* The column that a function of `map:` changes, or NULL. */
static const char *column_of(const struct dataset *node)
{
    int c = map_column(node->input->spec, node->function, node->options);
    return c >= 0 ? node->input->spec->column[c].name : NULL;
}

static struct value_map map_of(const struct dataset *dataset, const char *column)
{
    struct value_map map = {1, 0};
    for (; dataset && dataset->input; dataset = dataset->input) {
        const struct rescale_options *rescale = dataset->function == &map_rescale ? dataset->options : NULL;
        const char *changed = rescale ? column_of(dataset) : NULL;
        if (changed && strcmp(changed, column) == 0)
            map = value_map_after(map, (struct value_map){rescale->scale, rescale->offset});
    }
    return map;
}

struct value_map dataset_value_map(const struct dataset *dataset, int column)
{
    const struct spec *spec = dataset->spec;
    return column >= 0 && column < spec->column_count ? map_of(dataset, spec->column[column].name)
                                                      : (struct value_map){1, 0};
}

const char *dataset_outgrown_range(struct value_map *map, double range[2], const struct dataset *dataset)
{
    for (; dataset && dataset->input; dataset = dataset->input) {
        const struct color_options *color = dataset->function == &map_random_brightness ? dataset->options : NULL;
        const char *column = color ? column_of(dataset) : NULL;
        if (!column)
            continue;
        bool usual = color->low == 0 && color->high == 0;
        range[0] = color->low;
        range[1] = usual ? 255 : color->high;
        *map = map_of(dataset->input, column);
        if (value_map_is_outgrown(*map, range[0], range[1]))
            return column;
    }
    return NULL;
}
