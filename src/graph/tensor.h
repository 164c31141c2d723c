/* tensor.h - element types, shapes, and one element at a time. */
#ifndef GRAPH_TENSOR_H
#define GRAPH_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum type {
#define TYPE(name, bytes, keras, safetensors) TYPE_##name,
#include "graph/types.def"
#undef TYPE
    TYPE_COUNT,
    /* Bytes of any length, in columns of data only: no tensor of a graph has this type. */
    TYPE_STRING = TYPE_COUNT
};

/* One element of TYPE_STRING: a reference; who holds the bytes is said where they come from. */
struct string {
    const uint8_t *data;
    uint64_t bytes;
};

size_t type_bytes(enum type type);
const char *type_name(enum type type);             /* "float32" */
const char *type_safetensors_name(enum type type); /* "F32" */
/* By Keras's or by safetensors' name; false when there is none. */
bool type_from_name(enum type *out, const char *name);
/* The same, and "string" besides. */
bool type_of_column(enum type *out, const char *name);
bool type_is_float(enum type type);

#define MOST_AXES 6

struct shape {
    int rank;
    int64_t dim[MOST_AXES];
};

struct shape shape_of(int rank, const int64_t *dim);
bool shape_equal(const struct shape *a, const struct shape *b);
/* Product of all; of all but the first axis (a row). 1 for rank 0. Graph
   building has checked that they fit. */
int64_t shape_count(const struct shape *shape);
int64_t shape_row(const struct shape *shape);
/* Checked: false when the count or the bytes do not fit, or a dim is < 0. */
bool shape_bytes(uint64_t *bytes, const struct shape *shape, enum type type);
/* "(32, 28, 28, 1)"; with_none writes the first axis as None. */
void shape_text(char *out, size_t capacity, const struct shape *shape, bool with_none);

/* Element `i` as a double, and back, whatever the type. Reference kernels
   are written with these: the same code is the oracle in f32 and f64. */
double element_get(const void *data, enum type type, int64_t i);
void element_set(void *data, enum type type, int64_t i, double value);

#endif
