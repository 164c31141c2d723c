/* value_scale.h - what `rescale` made of a column's values, and brightness that is changed without regard to it. */
#ifndef PIPELINE_MAPS_IMAGES_VALUE_SCALE_H
#define PIPELINE_MAPS_IMAGES_VALUE_SCALE_H

#include "ops/image/value_range.h"
#include "pipeline/core/dataset.h"

/* Of the column as it comes out of the data set. */
struct value_map dataset_value_map(const struct dataset *dataset, int column);
/* The name of the first column whose brightness is changed by parts of a far wider range, or NULL; its values, and the
 * range. */
const char *dataset_outgrown_range(struct value_map *map, double range[2], const struct dataset *dataset);

#endif
