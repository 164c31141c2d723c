/* sink_npy.c - elements into npy files: PATH for one column, one file a column beside it for several.

   set.npy of the columns x and y becomes set.x.npy and set.y.npy. How many elements there are is known at the end:
   the head has a fixed size and is written again then. */
#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "base/numbers/numbers.h"
#include "formats/files/partial_file.h"
#include "job/data/data_sink.h"

struct sink {
    struct budget *budget;
    struct spec spec;
    int64_t count;
    int open_count;
    struct partial_file file[MOST_COLUMNS];
};

static const char *code_of(enum type type)
{
    static const char *const codes[TYPE_COUNT] = {
        [TYPE_F32] = "<f4", [TYPE_F64] = "<f8", [TYPE_F16] = "<f2", [TYPE_I8] = "|i1",   [TYPE_I16] = "<i2",
        [TYPE_I32] = "<i4", [TYPE_I64] = "<i8", [TYPE_U8] = "|u1",  [TYPE_BOOL] = "|b1",
    };
    return type < TYPE_COUNT ? codes[type] : NULL;
}

bool npy_head(char out[NPY_HEAD_BYTES], enum type type, const struct shape *shape, int64_t count)
{
    const char *code = code_of(type);
    char *text = out + 10;
    size_t room = NPY_HEAD_BYTES - 10 + 1, length;
    char copy[NPY_HEAD_BYTES + 1] = "";
    if (!code)
        return false;
    length = (size_t)snprintf(copy, room, "{'descr': '%s', 'fortran_order': False, 'shape': (", code);
    if (count >= 0)
        length += (size_t)snprintf(copy + length, room - length, "%lld,%s", (long long)count, shape->rank ? " " : "");
    for (int axis = 0; axis < shape->rank && length < room; axis++)
        length += (size_t)snprintf(copy + length, room - length, "%lld%s", (long long)shape->dim[axis],
                                   axis + 1 < shape->rank          ? ", "
                                   : shape->rank == 1 && count < 0 ? ","
                                                                   : "");
    if (length < room)
        length += (size_t)snprintf(copy + length, room - length, "), }");
    if (length >= room - 1)
        return false; /* six axes of 20 digits */
    memset(out, ' ', NPY_HEAD_BYTES);
    memcpy(text, copy, length);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = NPY_HEAD_BYTES - 10;
    out[9] = 0;
    out[NPY_HEAD_BYTES - 1] = '\n';
    return true;
}

static uint64_t npy_cost(const struct sink_plan *plan)
{
    return sizeof(struct sink) + 8192 + (uint64_t)plan->spec->column_count * PARTIAL_FILE_BYTES;
}

static void npy_close(struct sink *sink)
{
    for (int c = 0; c < sink->open_count; c++)
        partial_abandon(&sink->file[c]);
    budget_give(sink->budget, TAG_FORMATS, sink, sizeof *sink);
}

static plim_status check_column(const struct column *column, plim_error *error)
{
    char head[NPY_HEAD_BYTES];
    if (!column_has_values(column) && npy_head(head, column->type, &column->shape, INT64_MAX))
        return PLIM_OK;
    fail(error, PLIM_UNSUPPORTED, "npy: column '%s' (%s) is not of numbers of one shape that npy has", column->name,
         type_name(column->type));
    return hint(error, PLIM_UNSUPPORTED, "--output X.tfrecord holds it");
}

static int npy_file_name(char *out, size_t capacity, const char *path, const struct spec *spec, int c)
{
    int stem = (int)strlen(path) - 4; /* .npy */
    return snprintf(out, capacity, spec->column_count > 1 ? "%.*s.%s.npy" : "%.*s.npy", stem, path,
                    spec->column[c].name);
}

static plim_status open_column(struct sink *sink, const char *path, int c, plim_error *error)
{
    char own[4096], head[NPY_HEAD_BYTES];
    const struct column *column = &sink->spec.column[c];
    int length = npy_file_name(own, sizeof own, path, &sink->spec, c);
    if (length >= (int)sizeof own || strchr(column->name, '/'))
        return fail_at(error, PLIM_UNSUPPORTED, path, "no file name can be made of column '%s'", column->name);
    TRY(partial_open(&sink->file[c], sink->budget, own, error));
    sink->open_count = c + 1;
    npy_head(head, column->type, &column->shape, 0);
    return partial_put(&sink->file[c], head, sizeof head, error);
}

static plim_status npy_sink_open(struct sink **out, struct budget *budget, const char *path,
                                 const struct sink_plan *plan, plim_error *error)
{
    plim_status status = PLIM_OK;
    for (int c = 0; c < plan->spec->column_count; c++)
        TRY(check_column(&plan->spec->column[c], error));
    struct sink *sink;
    TRY(budget_alloc(&sink, budget, TAG_FORMATS, sizeof *sink, error));
    sink->budget = budget;
    sink->spec = *plan->spec;
    for (int c = 0; c < sink->spec.column_count && status == PLIM_OK; c++)
        status = open_column(sink, path, c, error);
    return OPENED(out, sink, npy_close, status);
}

static plim_status npy_add(struct sink *sink, void *const *row, plim_error *error)
{
    for (int c = 0; c < sink->spec.column_count; c++)
        TRY(partial_put(&sink->file[c], row[c], sink->spec.column[c].bytes, error));
    sink->count++;
    return PLIM_OK;
}

static plim_status npy_finish(struct sink *sink, plim_error *error)
{
    for (int c = 0; c < sink->spec.column_count; c++) {
        char head[NPY_HEAD_BYTES];
        npy_head(head, sink->spec.column[c].type, &sink->spec.column[c].shape, sink->count);
        TRY(partial_patch(&sink->file[c], 0, head, sizeof head, error));
    }
    for (int c = 0; c < sink->spec.column_count; c++)
        TRY(partial_commit(&sink->file[c], error));
    return PLIM_OK;
}

const struct sink_type sink_npy = {
    .suffixes = {".npy"},
    .cost = npy_cost,
    .open = npy_sink_open,
    .add = npy_add,
    .finish = npy_finish,
    .close = npy_close,
    .file_name = npy_file_name,
};
