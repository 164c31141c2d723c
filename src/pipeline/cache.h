/* cache.h - what the two caches share. */
#ifndef PIPELINE_CACHE_H
#define PIPELINE_CACHE_H

#include "pipeline/stage.h"

extern const struct stage stage_cache_file;

#endif
