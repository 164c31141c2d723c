/* labels.h - the check that dataset_expect asks for, on rows of a batch. */
#ifndef PIPELINE_CORE_LABELS_H
#define PIPELINE_CORE_LABELS_H

#include "pipeline/core/stage.h"

struct label_rows {
    const void *rows;     /* of the rule's column, packed */
    const int64_t *index; /* their source indices */
    int64_t count;
};
/* *bad is set to the row that is refused. */
plim_status labels_check(int64_t *bad, const struct dataset *dataset, const struct label_rule *rule,
                         const struct label_rows *rows, plim_error *error);

#endif
