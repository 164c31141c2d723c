/* model_scope.h - a list of layers as it was read, before it is laid out as uses: model_read.c (words), model_graph.c
   (names, order), model_summary.

   An entry makes a value, or several that are called NAME, NAME/1, NAME/2, ... It defines a layer or a nested model, or
   uses one again that an entry above it defined. */
#ifndef MODEL_MODEL_SCOPE_H
#define MODEL_MODEL_SCOPE_H

#include "model/layers/layer_options.h"

#define MOST_NESTED_MODELS 16     /* one inside the other */
#define MOST_USES          200000 /* nested models that are used twice inside others that are used twice ... */

struct entry {
    const char *name;    /* of its value */
    int definition;      /* the entry that defined what is used here: itself, or one above */
    int node;            /* which use of it this is, from 0 */
    int again;           /* of a definition: how often others use it */
    struct layer *layer; /* or a nested model: */
    struct scope *inside;
    const struct yaml *inputs; /* as written, or NULL: the entry before */
    struct link *input;        /* entries of this scope, or FEED(i) */
    int input_count;
    bool reverse; /* of this use */
    int line, column;
    const char *origin; /* the override that wrote it, or NULL */
    int use;            /* the use that makes its values, when it was laid out last */
    struct link *made;  /* of a nested model, or an Input that makes no use: its outputs as uses, when laid out last */
};

struct scope {
    const char *name;      /* "encoder", or "functional_1" */
    const char *type_name; /* "Sequential", "Functional" */
    const char *prefix;    /* of its layers' names: "encoder/" */
    const char *group;     /* of a model inside a layer: of its layers' groups in .keras files, "layer/layers/" */
    int *classes;          /* and how many of each class are in such groups, as `unnamed` counts */
    bool frozen;
    struct entry *entry;
    int count;
    int *order; /* entries so that each comes behind its inputs */
    const struct yaml *outputs;
    struct link output[MOST_MODEL_OUTPUTS]; /* entries */
    int output_count;
    int feed_count;
    int64_t entries;              /* with those of models inside, each time that they are used */
    int first_layer, layer_count; /* in the model's table: its own and those of models inside */
    int *name_table;              /* names of entries, hashed: index + 1 */
    int name_table_size;
};

/* While a model is read. */
struct model_reader {
    struct model *model;
    int *unnamed;        /* layers without a name of their own so far, by type; then nested models */
    struct layer *outer; /* of a model inside a layer: that one; else NULL */
    int depth;
    plim_error *error;
};

/* An entry of this name, or -1. */
int scope_find(const struct scope *scope, const char *name);
/* False: the name is taken. */
bool scope_add_name(struct scope *scope, int entry);

/* model_graph.c: inputs by name, order; what is not used, and circles, are refused. */
plim_status scope_connect(struct model_reader *reader, struct scope *scope);
/* The uses of the whole model. */
plim_status model_lay_out(struct model_reader *reader, struct scope *scope);

/* An Input layer of a model inside a layer, and what it is given. */
struct inside_input {
    const struct layer *layer;
    struct link from;
    struct inside_input *next;
};

/* Uses in running order, while they are laid out. */
struct use_table {
    struct use *use;
    int count, capacity;
    bool inside;                /* of a layer: Input layers make none, */
    struct inside_input *input; /* but are kept here */
};
/* model_read.c: a model inside a layer, `word: yaml`. Its layers are the outer one's. */
plim_status scope_read_inside(struct scope **out, struct layer *outer, const char *word, const struct yaml *yaml,
                              plim_error *error);
/* The uses of such a model, of one input, FEED(0), and one output. */
plim_status scope_lay_out_inside(struct use_table *out, struct link *output, struct layer *outer, struct scope *scope,
                                 plim_error *error);

plim_status reader_no_room(const struct model_reader *reader);
void entry_place(char out[256], const struct model_reader *reader, const struct entry *entry);

#endif
