/* model_file.h - a model from a file that Keras wrote. */
#ifndef MODEL_KERAS_MODEL_FILE_H
#define MODEL_KERAS_MODEL_FILE_H

#include "model/model.h"

/* A .keras file (*keras) or a config.json. *yaml: its layers as a job file has them, in the arena. */
plim_status model_file_read(struct model **out, struct yaml **yaml, bool *keras, struct arena *arena, const char *path,
                            plim_error *error);

#endif
