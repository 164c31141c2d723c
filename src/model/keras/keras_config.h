/* keras_config.h - a model as Keras writes it into config.json, in the words of a job file.

   Every object there is {module, class_name, config, ...}. What comes out is what a person would have written: a list
   of layers with `name:` and `inputs:`, so model_read reads both, with one table of layers. Classes are a closed list:
   what carries code (Lambda) or is somebody's own is refused by name, and nothing in the file names another file. */
#ifndef MODEL_KERAS_KERAS_CONFIG_H
#define MODEL_KERAS_KERAS_CONFIG_H

#include "base/text/yaml.h"

struct keras_config {
    struct yaml *yaml;     /* for model_read */
    struct yaml *compiled; /* what was said to compile(), {optimizer, loss, loss_weights, metrics}, or NULL */
    uint64_t steps;        /* nodes and names that were looked at: for the test that hostile files cost no squares */
};
/* `name` is for places: "model.keras/config.json". The trees lie in `arena`; `text` is not needed afterwards. */
plim_status keras_config_read(struct keras_config *out, struct arena *arena, const char *name, const char *text,
                              size_t bytes, plim_error *error);

#endif
