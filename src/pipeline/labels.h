/* labels.h - the check that dataset_expect asks for, on rows of a batch. */
#ifndef PIPELINE_LABELS_H
#define PIPELINE_LABELS_H

#include "pipeline/stage.h"

/* `count` packed rows of the rule's column; index: their source indices. */
plim_status labels_check(const struct dataset *dataset, const struct label_rule *rule, const void *rows, const int64_t *index, int64_t count,
                         plim_error *error);

#endif
