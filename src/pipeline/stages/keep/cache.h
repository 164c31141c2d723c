/* cache.h - what the two caches share. */
#ifndef PIPELINE_STAGES_KEEP_CACHE_H
#define PIPELINE_STAGES_KEEP_CACHE_H

#include "pipeline/core/stage.h"

extern const struct stage stage_cache_file;

#endif
