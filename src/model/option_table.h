/* option_table.h - options with Keras's names as tables: of layers, losses, metrics, optimizers, schedules.

   An entry of a table names the function that reads the value into its field. Functions for values that several owners
   have are here and in layers/layer_options.h; an owner with a grammar of its own writes one, or takes the node
   (option_node) and reads it afterwards. */
#ifndef MODEL_OPTION_TABLE_H
#define MODEL_OPTION_TABLE_H

#include "base/numbers/count.h"
#include "base/text/settings.h"

struct layer;

/* Where options stand, for error messages. */
struct option_place {
    const char *owner; /* "Dense", "huber" */
    const char *job;
    const struct yaml *map;    /* that holds them, or NULL */
    const struct layer *layer; /* or NULL: they are no layer's */
};

struct model_option;
/* Reads a value into the field `out`. */
typedef plim_status option_reader(void *out, const struct model_option *option, const struct option_place *at,
                                  const struct yaml *node, plim_error *error);
struct model_option {
    const char *word;
    option_reader *read; /* NULL: the word is valid, and other code reads it */
    uint32_t offset;     /* of the field */
    int16_t least;       /* of whole numbers */
    bool required;
    bool nullable;    /* null leaves the default; initializers and activations take null in any case */
    const void *with; /* option_only: the word; option_choice: struct choices */
};
#define MOST_OPTIONS 48 /* of one owner */

/* The options of a map. Unknown keys are refused first, then bad values in the order of the table, then what is
   missing. */
plim_status options_read(void *out, const struct model_option *options, int count, const struct option_place *at,
                         plim_error *error);
/* The same; a scalar, or a list of scalars, is the value of the first option. No map: the defaults. */
plim_status options_read_argument(void *out, const struct model_option *options, int count,
                                  const struct option_place *at, plim_error *error);
/* Whether a node is one that options_read_argument takes for the first option. */
bool is_first_argument(const struct yaml *node);
/* The number of entries before the first without a word, at most `most`. */
int options_length(const struct model_option *options, int most);

/* Words of which one is chosen; `keras`: others of Keras's, which are refused by name. */
struct choices {
    const char *const *words;
    int count;
    const char *const *keras;
    int keras_count;
};
#define CHOICES(array)             (&(const struct choices){array, COUNT(array), NULL, 0})
#define CHOICES_OF(array, refused) (&(const struct choices){array, COUNT(array), refused, COUNT(refused)})
/* The index of a word; `what` is the option. A word of NULL leaves *out alone. */
plim_status choose_word(int *out, const char *what, const char *word, const struct choices *choices, const char *where,
                        plim_error *error);

/* The parameters of an option_reader. */
#define OPTION_READER(name)                                                                                            \
    plim_status name(void *out, const struct model_option *option, const struct option_place *at,                      \
                     const struct yaml *node, plim_error *error)

/* The field is: */
option_reader option_whole;  /* int64_t, from `least` on */
option_reader option_number; /* double */
option_reader option_flag;   /* bool */
option_reader option_text;   /* const char * */
option_reader option_node;   /* const struct yaml * */
option_reader option_choice; /* int: the index of a word of `with` */
option_reader option_only;   /* nothing: Keras has other values than the one in `with`, a word or number, or null */
option_reader option_initializer; /* struct initializer */
option_reader option_activation;  /* const struct activation_type * */

/* `adam`, or `{adam: 0.001}`, `{adam: {learning_rate: 0.001}}`: a name, and its arguments or NULL. False: neither. */
bool named_node(const char **name, const struct yaml **arguments, const struct yaml *node);
/* Looks a word up as Keras does: GlorotUniform is glorot_uniform. */
bool same_word(const char *a, const char *b);
/* "unknown WHAT 'word'", the nearest right one; or PLIM_UNSUPPORTED when
   it is one of `choices->keras`. */
plim_status option_unknown(const char *what, const char *word, const char *where, const struct choices *choices,
                           plim_error *error);

#endif
