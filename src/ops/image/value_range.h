/* value_range.h - where values lie that began as bytes, and brightness that is changed by parts of a far
   wider range. */
#ifndef OPS_IMAGE_VALUE_RANGE_H
#define OPS_IMAGE_VALUE_RANGE_H

#include "graph/graph.h"

/* byte * scale + offset. */
struct value_map {
    double scale, offset;
};

/* `later` after `first`. */
struct value_map value_map_after(struct value_map later, struct value_map first);
/* Whether a range is more than ten times as wide as bytes are after the map. */
bool value_map_is_outgrown(struct value_map map, double low, double high);

/* What became of a column before the graph reads it. */
typedef struct value_map value_map_of(const void *context, int column);

/* The first random_tone that changes the brightness of inputs by parts of such a range, or NULL; what the values are,
   and the range. */
const struct node *graph_outgrown_range(struct value_map *map, double range[2], const struct graph *graph,
                                        value_map_of *of, const void *context);

#endif
