/* snapshot.c - elements in files: written from beginning to end, read by index. */
#include "formats/records/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/files/partial_file.h"
#include "formats/tables/rows.h"

#define BUFFER_BYTES SNAPSHOT_HEAD_BYTES
#define TAG          TAG_FORMATS

struct snapshot {
    struct budget *budget;
    size_t bytes;
    struct snapshot_head head;
    struct row_part part[MOST_COLUMNS];
    uint64_t row_bytes;
    bool values, writing;
    bool values_named;                 /* the values have their name already, the rows not yet */
    struct write_buffer rows, strings; /* strings: all values; no file where there are none */
    struct file *lock;                 /* while writing: two writers would take each other's files for their own */
    char *path, *path_partial, *values_path, *values_partial, *lock_path;
};

/* ---- opening ---- */

#define VALUES_SUFFIX  ".values"
#define PARTIAL_SUFFIX ".partial"
#define LOCK_SUFFIX    ".lock"

static size_t paths_bytes(const char *path)
{
    return 5 * (strlen(path) + sizeof VALUES_SUFFIX + sizeof PARTIAL_SUFFIX);
}

static size_t own_bytes(const char *path)
{
    return round_up(sizeof(struct snapshot), 64) + 2 * BUFFER_BYTES + paths_bytes(path);
}

/* The struct, and three open files. */
uint64_t snapshot_bytes(const char *path)
{
    return budget_charge(own_bytes(path)) + 3 * budget_charge(512 + strlen(path));
}

/* There is room: own_bytes has counted five of the longest. */
static char *add_path(char **at, const char *path, const char *suffix, const char *more)
{
    char *out = *at;
    size_t bytes = strlen(path) + strlen(suffix) + strlen(more) + 1;
    snprintf(out, bytes, "%s%s%s", path, suffix, more);
    *at += bytes;
    return out;
}

static plim_status make(struct snapshot **out, struct budget *budget, const char *path, plim_error *error)
{
    struct snapshot *snapshot;
    TRY(budget_alloc(&snapshot, budget, TAG, own_bytes(path), error));
    snapshot->budget = budget;
    snapshot->bytes = own_bytes(path);
    snapshot->rows.bytes = (uint8_t *)snapshot + round_up(sizeof *snapshot, 64);
    snapshot->strings.bytes = snapshot->rows.bytes + BUFFER_BYTES;
    snapshot->rows.capacity = snapshot->strings.capacity = BUFFER_BYTES;
    char *at = (char *)snapshot->strings.bytes + BUFFER_BYTES;
    snapshot->path = add_path(&at, path, "", "");
    snapshot->path_partial = add_path(&at, path, "", PARTIAL_SUFFIX);
    snapshot->values_path = add_path(&at, path, VALUES_SUFFIX, "");
    snapshot->values_partial = add_path(&at, path, VALUES_SUFFIX, PARTIAL_SUFFIX);
    snapshot->lock_path = add_path(&at, path, LOCK_SUFFIX, "");
    *out = snapshot;
    return PLIM_OK;
}

static void lay_rows(struct snapshot *snapshot)
{
    uint64_t at[MOST_COLUMNS];
    snapshot->row_bytes = snapshot_columns(at, &snapshot->head.spec);
    for (int c = 0; c < snapshot->head.spec.column_count; c++)
        snapshot->part[c] = (struct row_part){.offset = at[c], .bytes = snapshot->head.spec.column[c].bytes};
    snapshot->values = spec_has_values(&snapshot->head.spec);
}

void snapshot_close(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    if (snapshot->writing && snapshot->rows.file)
        file_remove(snapshot->path_partial, NULL);
    if (snapshot->writing && snapshot->strings.file)
        file_remove(snapshot->values_named ? snapshot->values_path : snapshot->values_partial, NULL);
    file_close(snapshot->rows.file);
    file_close(snapshot->strings.file);
    file_close(snapshot->lock);
    budget_give(snapshot->budget, TAG, snapshot, snapshot->bytes);
}

static plim_status create_files(struct snapshot *snapshot, plim_error *error)
{
    TRY(file_check_target(snapshot->path, error));
    TRY(file_open(&snapshot->lock, snapshot->budget, snapshot->lock_path, FILE_LOCK, error));
    TRY(file_open(&snapshot->rows.file, snapshot->budget, snapshot->path_partial, FILE_CREATE, error));
    if (snapshot->values)
        TRY(file_open(&snapshot->strings.file, snapshot->budget, snapshot->values_partial, FILE_CREATE, error));
    return snapshot_head_write(&snapshot->head, snapshot->rows.file, snapshot->rows.bytes, error);
}

plim_status snapshot_create(struct snapshot **out, struct budget *budget, const char *path, const struct spec *spec,
                            const char *digest, plim_error *error)
{
    struct snapshot *snapshot;
    TRY(make(&snapshot, budget, path, error));
    snapshot->writing = true;
    snapshot->head.spec = *spec;
    snprintf(snapshot->head.digest, sizeof snapshot->head.digest, "%s", digest);
    lay_rows(snapshot);
    plim_status status = snapshot->row_bytes ? create_files(snapshot, error)
                                             : fail_at(error, PLIM_UNSUPPORTED, path, "elements have no bytes to keep");
    if (status != PLIM_OK) {
        snapshot_close(snapshot);
        return status;
    }
    snapshot_restart(snapshot);
    *out = snapshot;
    return PLIM_OK;
}

static plim_status open_files(struct snapshot *snapshot, plim_error *error)
{
    uint64_t size;
    TRY(file_open(&snapshot->rows.file, snapshot->budget, snapshot->path, FILE_READ, error));
    TRY(snapshot_head_read(&snapshot->head, snapshot->rows.file, snapshot->budget, error));
    lay_rows(snapshot);
    if (!snapshot->values)
        return PLIM_OK;
    TRY(file_open(&snapshot->strings.file, snapshot->budget, snapshot->values_path, FILE_READ, error));
    TRY(file_size(&size, snapshot->strings.file, error));
    if (size < snapshot->head.values_bytes)
        return fail_at(error, PLIM_BAD_DATA, snapshot->values_path, "%llu bytes; the snapshot speaks of %llu",
                       (unsigned long long)size, (unsigned long long)snapshot->head.values_bytes);
    return PLIM_OK;
}

plim_status snapshot_open(struct snapshot **out, struct budget *budget, const char *path, plim_error *error)
{
    struct snapshot *snapshot;
    TRY(make(&snapshot, budget, path, error));
    return OPENED(out, snapshot, snapshot_close, open_files(snapshot, error));
}

const struct snapshot_head *snapshot_head(const struct snapshot *snapshot)
{
    return &snapshot->head;
}

const char *snapshot_path(const struct snapshot *snapshot)
{
    return snapshot->path;
}

const char *snapshot_values_path(const struct snapshot *snapshot)
{
    return snapshot->values_path;
}

/* ---- writing ---- */

uint64_t snapshot_size(const struct snapshot *snapshot)
{
    return snapshot->rows.at + snapshot->rows.held + snapshot->head.values_bytes;
}

void snapshot_restart(struct snapshot *snapshot)
{
    snapshot->head.count = 0;
    snapshot->head.values_bytes = 0;
    snapshot->rows.held = snapshot->strings.held = 0;
    snapshot->rows.at = snapshot->head.rows_at;
    snapshot->strings.at = 0;
}

/* The bytes of strings, then, where they are an array elsewhere, the array with places instead of addresses. */
static plim_status put_strings(struct snapshot *snapshot, struct string *strings, int64_t count, bool array,
                               plim_error *error)
{
    uint64_t at = snapshot->head.values_bytes;
    for (int64_t i = 0; i < count; i++) {
        TRY(write_buffer_put(&snapshot->strings, strings[i].data, strings[i].bytes, error));
        snapshot->head.values_bytes += strings[i].bytes;
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t pair[2] = {at, strings[i].bytes};
        at += strings[i].bytes;
        if (array)
            TRY(write_buffer_put(&snapshot->strings, pair, sizeof pair, error));
        else
            memcpy(&strings[i], pair, sizeof pair);
    }
    snapshot->head.values_bytes += array ? (uint64_t)count * sizeof(struct string) : 0;
    return PLIM_OK;
}

static struct shape shape_in(const struct column *column, const struct cell *cell)
{
    return column_is_variable(column) ? shape_of(column->shape.rank, cell->dim) : column->shape;
}

/* `row` is our own copy: the address in it becomes a place of the values file. */
static plim_status put_cell(struct snapshot *snapshot, const struct column *column, struct cell *cell,
                            plim_error *error)
{
    struct shape shape = shape_in(column, cell);
    int64_t count = shape_count(&shape);
    uint64_t bytes = (uint64_t)count * type_bytes(column->type), at;
    if (column->type == TYPE_STRING) {
        TRY(put_strings(snapshot, cell->data, count, true, error));
        at = snapshot->head.values_bytes - bytes;
    } else {
        at = snapshot->head.values_bytes;
        TRY(write_buffer_put(&snapshot->strings, cell->data, bytes, error));
        snapshot->head.values_bytes += bytes;
    }
    memcpy(&cell->data, &at, sizeof at);
    return PLIM_OK;
}

#define MOST_FIXED_STRINGS 256 /* of one row: copied on the stack */

static plim_status put_value(struct snapshot *snapshot, const struct column *column, const void *row, plim_error *error)
{
    if (column_is_variable(column)) {
        struct cell cell;
        memcpy(&cell, row, sizeof cell);
        TRY(put_cell(snapshot, column, &cell, error));
        return write_buffer_put(&snapshot->rows, &cell, sizeof cell, error);
    }
    struct string strings[MOST_FIXED_STRINGS];
    int64_t count = shape_count(&column->shape);
    for (int64_t first = 0; first < count; first += MOST_FIXED_STRINGS) {
        int64_t some = count - first < MOST_FIXED_STRINGS ? count - first : MOST_FIXED_STRINGS;
        memcpy(strings, (const struct string *)row + first, (size_t)some * sizeof *strings);
        TRY(put_strings(snapshot, strings, some, false, error));
        TRY(write_buffer_put(&snapshot->rows, strings, (uint64_t)some * sizeof *strings, error));
    }
    return PLIM_OK;
}

static plim_status put_row(struct snapshot *snapshot, const void *const *from, const uint64_t *stride, int64_t row,
                           plim_error *error)
{
    static const uint8_t zeros[8];
    const struct spec *spec = &snapshot->head.spec;
    for (int c = 0; c < spec->column_count; c++) {
        const struct column *column = &spec->column[c];
        const uint8_t *at = (const uint8_t *)from[c] + (uint64_t)row * stride[c];
        if (column_has_values(column))
            TRY(put_value(snapshot, column, at, error));
        else
            TRY(write_buffer_put(&snapshot->rows, at, column->bytes, error));
        TRY(write_buffer_put(&snapshot->rows, zeros, -column->bytes & 7, error));
    }
    return PLIM_OK;
}

plim_status snapshot_add(struct snapshot *snapshot, const void *const *from, const uint64_t *stride, int64_t count,
                         plim_error *error)
{
    for (int64_t row = 0; row < count; row++)
        TRY(put_row(snapshot, from, stride, row, error));
    snapshot->head.count += count;
    return PLIM_OK;
}

plim_status snapshot_finish(struct snapshot *snapshot, plim_error *error)
{
    TRY(write_buffer_flush(&snapshot->rows, error));
    if (snapshot->values) {
        TRY(write_buffer_flush(&snapshot->strings, error));
        TRY(file_sync(snapshot->strings.file, error));
    }
    TRY(snapshot_head_write(&snapshot->head, snapshot->rows.file, snapshot->rows.bytes, error));
    TRY(file_sync(snapshot->rows.file, error));
    TRY(file_remove(snapshot->path, error)); /* an older one and newer values do not go together */
    if (snapshot->values)
        TRY(file_rename(snapshot->values_partial, snapshot->values_path, error));
    snapshot->values_named = true;
    TRY(file_rename(snapshot->path_partial, snapshot->path, error));
    snapshot->writing = false;
    file_close(snapshot->lock);
    snapshot->lock = NULL;
    return partial_sync_folder(snapshot->path, error);
}

/* ---- reading ---- */

/* Bytes of the values file into the value buffer; NULL in *out: it is full. */
static plim_status fetch(void **out, const struct snapshot *snapshot, uint64_t at, uint64_t bytes, bool aligned,
                         struct value_buffer *values, plim_error *error)
{
    uint64_t all = snapshot->head.values_bytes;
    if (at > all || bytes > all - at)
        return fail_at(error, PLIM_BAD_DATA, snapshot->path, "a value of %llu bytes from byte %llu of %llu on",
                       (unsigned long long)bytes, (unsigned long long)at, (unsigned long long)all);
    *out = aligned ? value_buffer_take(values, bytes) : value_buffer_take_bytes(values, bytes);
    return *out && bytes ? file_read(snapshot->strings.file, at, *out, bytes, error) : PLIM_OK;
}

static plim_status get_strings(bool *full, const struct snapshot *snapshot, struct string *strings, int64_t count,
                               struct value_buffer *values, plim_error *error)
{
    for (int64_t i = 0; i < count && !*full; i++) {
        uint64_t pair[2];
        void *data = NULL;
        memcpy(pair, &strings[i], sizeof pair);
        TRY(fetch(&data, snapshot, pair[0], pair[1], false, values, error));
        strings[i] = (struct string){.data = data, .bytes = pair[1]};
        *full = !data;
    }
    return PLIM_OK;
}

static plim_status get_cell(bool *full, const struct snapshot *snapshot, const struct column *column, struct cell *cell,
                            struct value_buffer *values, plim_error *error)
{
    uint64_t at, bytes;
    memcpy(&at, &cell->data, sizeof at);
    struct shape shape = shape_in(column, cell);
    bool fits = shape_bytes(&bytes, &shape, column->type);
    for (int i = 0; i < column->shape.rank; i++)
        fits = fits && (column->shape.dim[i] < 0 || column->shape.dim[i] == cell->dim[i]);
    if (!fits)
        return fail_at(error, PLIM_BAD_DATA, snapshot->path,
                       "bytes of a row give a value of column '%s' extents that it cannot have", column->name);
    TRY(fetch(&cell->data, snapshot, at, bytes, true, values, error));
    *full = !cell->data;
    if (*full || column->type != TYPE_STRING)
        return PLIM_OK;
    return get_strings(full, snapshot, cell->data, shape_count(&shape), values, error);
}

/* What a row that was read refers to. *full: the value buffer is as it was. */
static plim_status get_values(bool *full, const struct snapshot *snapshot, const struct row_target *target, int64_t row,
                              plim_error *error)
{
    const struct spec *spec = &snapshot->head.spec;
    uint64_t used = target->values->used;
    for (int c = 0; c < spec->column_count && !*full; c++) {
        const struct column *column = &spec->column[c];
        void *at = (uint8_t *)target->to[c] + (uint64_t)row * target->stride[c];
        if (column_is_variable(column))
            TRY(get_cell(full, snapshot, column, at, target->values, error));
        else if (column->type == TYPE_STRING)
            TRY(get_strings(full, snapshot, at, shape_count(&column->shape), target->values, error));
    }
    if (*full)
        target->values->used = used;
    return PLIM_OK;
}

plim_status snapshot_read(int64_t *done, const struct snapshot *snapshot, const int64_t *index, int64_t count,
                          const struct row_target *target, plim_error *error)
{
    const struct rows rows = {
        .file = snapshot->rows.file, .at = snapshot->head.rows_at, .row_bytes = snapshot->row_bytes, .swap = 1};
    const struct cut_rows cut = {.rows = &rows, .part = snapshot->part, .part_count = snapshot->head.spec.column_count};
    bool full = false;
    *done = 0;
    TRY(rows_read_parts(&cut, index, count, target->to, target->stride, error));
    while (snapshot->values && *done < count) {
        TRY(get_values(&full, snapshot, target, *done, error));
        if (full)
            return PLIM_OK;
        (*done)++;
    }
    *done = count;
    return PLIM_OK;
}
