/* map_parse.h - records into columns: parse_example. */
#ifndef PIPELINE_MAPS_MAP_PARSE_H
#define PIPELINE_MAPS_MAP_PARSE_H

#include "formats/records/example.h"
#include "pipeline/core/dataset.h"

/* The string column `column` ("" is the first) becomes the features, in their order, under their names; other columns
   stay in front of them. sequence: records are SequenceExamples. Everything is copied. */
struct dataset *dataset_parse_example(struct dataset *dataset, const char *column, const struct feature *features,
                                      int count, bool sequence);

#endif
