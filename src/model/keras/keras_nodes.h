/* keras_nodes.h - what keras_config.c (objects, layers, models), keras_nodes.c (nodes, calls), keras_index.c (names)
   and keras_masks.c share. */
#ifndef MODEL_KERAS_KERAS_NODES_H
#define MODEL_KERAS_KERAS_NODES_H

#include "base/text/settings.h"
#include "base/text/yaml.h"

struct translation {
    struct arena *arena; /* of what is made */
    struct arena *work;  /* gone at the end, as the document is */
    uint64_t *steps;     /* nodes and names that were looked at: they grow with the text, and no faster */
    const char *name;    /* for places */
    plim_error *error;
};

__attribute__((format(printf, 4, 5))) plim_status node_refuse(const struct translation *t, const struct yaml *at,
                                                              plim_status code, const char *format, ...);
/* Made at the place of `at`. */
plim_status node_make(struct yaml **out, const struct translation *t, enum yaml_kind kind, const struct yaml *at);
plim_status node_text(struct yaml **out, const struct translation *t, const char *text, const struct yaml *at);
/* To a map, of a few dozen words. */
plim_status node_append(const struct translation *t, struct yaml *parent, const char *key, struct yaml *child);
/* To a list, whose end the caller keeps: &list->first at the beginning. */
void list_append(struct yaml *list, struct yaml ***end, struct yaml *child);
bool node_is_null(const struct yaml *node);
/* A text of the document (a class's, a layer's or a policy's name), or NULL. */
const char *node_word(const struct yaml *node);

/* keras_index.c: what the layers of one graph say of a name. */
struct keras_name {
    const char *name;
    const struct yaml *layer; /* the first so named, or NULL */
    int64_t last_use;         /* the largest number of [name, number, ...] anywhere; -1: there is none */
    bool read;                /* an output, or a layer is called with it that does not only make masks */
    bool masked;              /* of a name that keras_masks.c makes of a tensor and a value: a layer masks those */
    bool masks_only;          /* makes_masks_only */
};
struct keras_index {
    struct arena *arena;
    struct keras_name *entry; /* hashed; NULL names are free */
    int entry_count, name_count;
    uint64_t *steps;
};
/* Of a model's config, which has layers. */
plim_status keras_index_init(struct keras_index *index, const struct translation *t, const struct yaml *config);
/* NULL: nobody mentioned it. */
const struct keras_name *keras_index_find(const struct keras_index *index, const char *name);
/* Found or new; NULL: no room. The name is not copied. */
struct keras_name *keras_index_add(struct keras_index *index, const char *name);

/* keras_masks.c: ops that only make masks which travel by themselves; and a tensor that is one. */
bool is_mask_op(const struct yaml *object);
bool makes_masks_only(const struct keras_index *index, const struct yaml *object);
bool is_travelling_mask(const struct keras_index *index, const struct yaml *tensor);
/* For the index; false: no room. First what each layer masks, then which ops make no more than that. */
bool add_masks(struct keras_index *index, const struct yaml *layer);
bool find_masks_only(struct keras_index *index, const struct yaml *object);

/* keras_ops.c: what Python's operators and functions on tensors are saved as. */
bool is_op(const struct yaml *object);
/* Keys of the layer Op: op, arguments, name. */
plim_status add_op_keys(const struct translation *t, struct yaml *options, const struct yaml *object);
/* Argument number `place` of a call, which is no tensor. */
struct keras_call;
plim_status add_op_value(const struct translation *t, struct keras_call *call, const struct yaml *value, int place);

/* keras_config.c: any value. */
plim_status translate(struct yaml **out, const struct translation *t, const struct yaml *node);

struct keras_call {
    struct yaml *inputs;  /* a list of names */
    struct yaml **end;    /* of the list */
    struct yaml *options; /* of the layer: switches of the call go there */
    const struct keras_index *index;
    const char *layer;
    const char *op; /* of an op's first call, and where what is no tensor goes; else NULL */
    struct yaml *arguments;
};
/* One entry of inbound_nodes. */
plim_status call_add(const struct translation *t, struct keras_call *call, const struct yaml *node);
/* [layer, node, tensor] as the name of a value. */
plim_status value_name(struct yaml **out, const struct translation *t, const struct yaml *history,
                       const struct keras_index *index);

#endif
