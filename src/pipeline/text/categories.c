/* categories.c - category numbers as Keras's output modes lay them out. */
#include "pipeline/text/categories.h"

#include <string.h>

#include "base/text/text.h"

plim_status category_output_from_name(enum category_output *out, const char *name, plim_error *error)
{
    static const char *const names[] = {"int", "one_hot", "multi_hot", "count"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum category_output)i;
            return PLIM_OK;
        }
    if (strcmp(name, "tf_idf") == 0)
        return fail(error, PLIM_UNSUPPORTED, "output_mode 'tf_idf' is not offered yet");
    const char *near = text_nearest(name, names, 4);
    fail(error, PLIM_BAD_JOB, "unknown output_mode '%s'", name);
    return near ? hint(error, PLIM_BAD_JOB, "did you mean '%s'?", near)
                : hint(error, PLIM_BAD_JOB, "int, one_hot, multi_hot or count");
}

bool category_shape(struct shape *out, const struct shape *row, enum category_output output, int64_t depth)
{
    struct shape shape = *row;
    if (output == CATEGORY_INT) {
        *out = shape;
        return true;
    }
    bool replaces = shape.rank > 0 && (output != CATEGORY_ONE_HOT || shape.dim[shape.rank - 1] == 1);
    shape.rank -= replaces;
    if (shape.rank == MOST_AXES)
        return false;
    shape.dim[shape.rank++] = depth;
    *out = shape;
    return true;
}

/* multi_hot and count take the last axis together; a scalar is an axis of one. */
void category_begin(struct category_row *row, const struct shape *shape)
{
    int64_t last = shape->rank ? shape->dim[shape->rank - 1] : 1;
    row->each = row->output == CATEGORY_ONE_HOT || row->output == CATEGORY_INT ? 1 : last;
    if (row->output == CATEGORY_INT)
        return;
    struct shape lines = *shape;
    lines.rank -= row->output != CATEGORY_ONE_HOT && shape->rank > 0;
    memset(row->to, 0, (size_t)(shape_count(&lines) * row->depth) * type_bytes(row->type));
}

#define PUT(name, element)                                                                                             \
    static void name(const struct category_row *row, int64_t first, const int64_t *numbers, int64_t count)             \
    {                                                                                                                  \
        element *to = row->to;                                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            int64_t number = numbers[i];                                                                               \
            element *line = to + (first + i) / row->each * row->depth;                                                 \
            if (row->output == CATEGORY_INT)                                                                           \
                to[first + i] = (element)number;                                                                       \
            else if (number >= 0 && number < row->depth)                                                               \
                line[number] = row->output == CATEGORY_COUNT ? line[number] + 1 : 1;                                   \
        }                                                                                                              \
    }
PUT(put_i64, int64_t)
PUT(put_i32, int32_t)
PUT(put_f32, float)

void category_put(const struct category_row *row, int64_t first, const int64_t *numbers, int64_t count)
{
    if (row->type == TYPE_F32)
        put_f32(row, first, numbers, count);
    else if (row->type == TYPE_I32)
        put_i32(row, first, numbers, count);
    else
        put_i64(row, first, numbers, count);
}

int64_t category_element(const void *row, enum type type, int64_t i)
{
    int64_t value = 0;
    if (type == TYPE_I64)
        return ((const int64_t *)row)[i];
    element_set(&value, TYPE_I64, 0, element_get(row, type, i));
    return value;
}
