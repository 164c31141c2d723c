/* shuffle.h - the ways to shuffle: each a stage of its own behind the one word. */
#ifndef PIPELINE_STAGES_KEEP_SHUFFLE_H
#define PIPELINE_STAGES_KEEP_SHUFFLE_H

#include "pipeline/core/stage.h"

extern const struct stage stage_shuffle_blocks, stage_shuffle_buffer;

/* The key of an epoch's order: of (seed, stage, epoch), or of the first epoch where it is kept. */
uint64_t shuffle_key(const struct dataset *dataset, uint64_t epoch);

#endif
