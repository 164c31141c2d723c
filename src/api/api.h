/* api.h - what the files behind plimsoll.h's data sets share. */
#ifndef API_API_H
#define API_API_H

#include "base/memory/arena.h"
#include "base/numbers/floats.h"
#include "pipeline/core/stage.h"

_Static_assert(PLIM_MOST_COLUMNS == MOST_COLUMNS && PLIM_MOST_AXES == MOST_AXES, "as the header says");
_Static_assert(PLIM_INFINITE == CARDINALITY_INFINITE && PLIM_UNKNOWN == CARDINALITY_UNKNOWN, "as the header says");
_Static_assert(sizeof(plim_string) == sizeof(struct string) && sizeof(plim_cell) == sizeof(struct cell), "the same");
_Static_assert(sizeof(plim_batch) == sizeof(struct batch) && offsetof(plim_batch, step) == offsetof(struct batch, step),
               "a plim_batch is a struct batch");

/* Where sources are unpacked unless the caller says. */
#define API_SCRATCH "/var/tmp"
#define API_DISK    ((uint64_t)10 << 30)

struct plim_budget {
    struct budget *inner;
    uint64_t own_bytes; /* of the two themselves */
};

/* A plim_dataset is a struct dataset under a public name. */
static inline struct dataset *inside(plim_dataset *dataset)
{
    return (struct dataset *)dataset;
}

static inline plim_dataset *outside(struct dataset *dataset)
{
    return (plim_dataset *)dataset;
}

/* A data set that carries an error in the place of this one, which is taken over. */
plim_dataset *api_dataset_fail(plim_dataset *dataset, const plim_error *error);
/* The same for an argument that is NULL; an error that it carries already is kept. */
plim_dataset *api_dataset_null(plim_dataset *dataset, const char *what);

/* What a data set holds for the caller's functions and for texts it was read from. */
struct api_kept {
    plim_test *test;
    plim_dataset *(*make)(void *context, const plim_chunk *element, plim_budget *budget);
    plim_status (*scan)(void *context, void *state, void *const *from, void *const *to, plim_error *error);
    void *context;
    struct arena arena; /* owned; budget NULL: none */
};
/* A node that holds a copy; *kept, which lives as long as the node, is NULL where the result carries an error. */
struct dataset *api_keep(const struct api_kept **kept, struct dataset *dataset, const struct api_kept *what);

/* Columns of the public header into ours, checked, and back. Bytes of an element are not added up. */
plim_status api_spec(struct spec *out, const plim_column *columns, int count, plim_error *error);
void api_column(plim_column *out, const struct column *column);
/* Types of the public header and ours; false: there is no such type. */
bool api_type(enum type *out, plim_type type);
plim_type api_type_outside(enum type type);

#endif
