/* data_report.h - a planned pipeline, stage by stage, as people and programs read it. */
#ifndef JOB_DATA_DATA_REPORT_H
#define JOB_DATA_DATA_REPORT_H

#include "job/job.h"

/* figures->seconds == 0: nothing was run. */
void data_report_text(struct text *out, const struct plim_job *job, const plim_data_figures *figures);
void data_report_json(struct text *out, const struct plim_job *job, const plim_data_figures *figures);

/* "60,000", "infinite", "unknown". */
void cardinality_text(char out[32], int64_t cardinality);
/* "x float32 (28, 28, 1), y int32 ()". */
void spec_text(struct text *out, const struct spec *spec);
struct json_writer;
/* [{"name": "x", "type": "float32", "shape": [28, 28, 1]}], -1 for any extent. */
void spec_json(struct json_writer *json, const char *key, const struct spec *spec);

#endif
