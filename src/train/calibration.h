/* calibration.h - what a run took, kept beside its checkpoints for the next plan of the job.

   Written when a run ends. Read by whoever plans the job, in `plan` as in `train`: so both make the same plan. It changes
   estimates and the choice between plans, never a result, nor which budgets work: a file that is missing, damaged, of
   another instruction set or number of threads is as none. */
#ifndef TRAIN_CALIBRATION_H
#define TRAIN_CALIBRATION_H

#include "formats/files/partial_file.h"
#include "plan/search/op_time.h"
#include "train/trainer.h"

#define CALIBRATION_NAME "calibration.json"
/* The most that calibration_write takes from the budget. */
#define CALIBRATION_BYTES (PARTIAL_FILE_BYTES + 8 * 1024)

/* Into the folder, if at least one step was timed. */
plim_status calibration_write(const struct machine *machine, const char *folder, plim_error *error);

/* What a calibration has to be of. */
struct calibration_place {
    const char *folder;
    const char *features; /* backend_type.features */
    int threads;
};
/* *found false: there is none of this machine. The table is in `tables`. */
plim_status calibration_read(bool *found, struct op_costs *out, const struct calibration_place *place,
                             struct arena *tables, plim_error *error);
/* The same of a file's text; PLIM_BAD_DATA: it is none. */
plim_status calibration_parse(bool *found, struct op_costs *out, const struct calibration_place *place,
                              const struct file_content *file, struct arena *tables, plim_error *error);

#endif
