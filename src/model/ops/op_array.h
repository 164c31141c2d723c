/* op_array.h - tensors of numbers among the words of an op: x + [1, 2, 3]. */
#ifndef MODEL_OPS_OP_ARRAY_H
#define MODEL_OPS_OP_ARRAY_H

#include "base/text/yaml.h"
#include "graph/tensor.h"

#define ARRAY_MOST ((int64_t)1 << 20) /* elements */

struct array {
    enum type type;
    struct shape shape;
    void *data;
};

/* Whether it is true or false, not quoted: 1 or 0. */
bool truth_of(double *value, const struct yaml *node);
/* A list, or a map with `value`: anything but a number. */
bool is_array(const struct yaml *node);
/* [[1, 2], [3, 4]]; {value: that or a number, dtype: int8}; or, as array_text writes it, {value: hexadecimal digits,
   dtype: int8, shape: [2, 2]}. Without a dtype whole numbers are int32, others float32; float64 is float32, as data
   are. The elements are in `arena`. */
plim_status array_read(struct array *out, struct arena *arena, const char *job, const struct yaml *node,
                       plim_error *error);
/* The bytes of the elements as hexadecimal digits; NULL: no room. */
const char *array_text(struct arena *arena, const struct array *array);

#endif
