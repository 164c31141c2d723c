/* keras_nodes.h - what keras_config.c (objects, layers, models) and keras_nodes.c (nodes, calls) share. */
#ifndef MODEL_KERAS_NODES_H
#define MODEL_KERAS_NODES_H

#include "base/yaml.h"

struct translation {
    struct arena *arena; /* of what is made */
    const char *name;    /* for places */
    plim_error *error;
};

__attribute__((format(printf, 4, 5))) plim_status node_refuse(const struct translation *t, const struct yaml *at,
                                                              plim_status code, const char *format, ...);
/* Made at the place of `at`. */
plim_status node_make(struct yaml **out, const struct translation *t, enum yaml_kind kind, const struct yaml *at);
plim_status node_text(struct yaml **out, const struct translation *t, const char *text, const struct yaml *at);
/* key NULL: to a list. */
plim_status node_append(const struct translation *t, struct yaml *parent, const char *key, struct yaml *child);
bool node_is_null(const struct yaml *node);
/* A text of the document (a class's, a layer's or a policy's name), or NULL. */
const char *node_word(const struct yaml *node);

/* Whether [name, number, ...] with a number of at least `least` is anywhere in here. */
bool node_mentions(const struct yaml *node, const char *name, int64_t least);

/* keras_masks.c: ops that only make masks which travel by themselves; and a tensor that is one. */
bool makes_masks_only(const struct yaml *layers, const struct yaml *object);
bool is_travelling_mask(const struct yaml *layers, const struct yaml *tensor);

/* keras_config.c: any value. */
plim_status translate(struct yaml **out, const struct translation *t, const struct yaml *node);

struct call_words {
    struct yaml *inputs;  /* a list of names */
    struct yaml *options; /* of the layer: switches of the call go there */
    const struct yaml *layers;
    const char *layer;
};
/* One entry of inbound_nodes. */
plim_status call_add(const struct translation *t, struct call_words *call, const struct yaml *node);
/* [layer, node, tensor] as the name of a value. */
plim_status value_name(struct yaml **out, const struct translation *t, const struct yaml *history,
                       const struct yaml *layers);

#endif
