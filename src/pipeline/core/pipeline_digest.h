/* pipeline_digest.h - what makes two pipelines give the same elements, as a digest: for what is kept from run to
   run. */
#ifndef PIPELINE_CORE_PIPELINE_DIGEST_H
#define PIPELINE_CORE_PIPELINE_DIGEST_H

#include "pipeline/core/stage.h"

/* Of the source's kind, columns and count, of each stage's name, number, seed and facts, of maps' names and options,
   and of the run's seed. What it cannot see: which files they are, and what functions of the caller's do. */
void pipeline_digest(char out[65], const struct dataset *dataset, uint64_t seed);
/* For stages whose options are more than a number: a number that stands for them. No pointers, no padding. */
int64_t digest_number(const void *options, size_t bytes);

#endif
