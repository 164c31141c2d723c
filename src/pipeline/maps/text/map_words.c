/* map_words.c - what the functions over texts and tokens share: their files, lists, types, and rows. */
#include "pipeline/maps/text/map_words.h"

#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/text/settings.h"
#include "pipeline/core/chain_digest.h"
#include "pipeline/core/chunk.h"

/* ---- files and lists ---- */

bool map_path(char out[MAP_PATH_BYTES], const char *job, const char *path)
{
    const char *slash = job && *path != '/' ? strrchr(job, '/') : NULL;
    int bytes = snprintf(out, MAP_PATH_BYTES, "%.*s%s", slash ? (int)(slash - job + 1) : 0, slash ? job : "", path);
    return bytes >= 0 && bytes < MAP_PATH_BYTES;
}

plim_status map_path_read(const char **out, const char *job, const struct yaml *value, const char *what,
                          plim_error *error)
{
    char path[MAP_PATH_BYTES], where[256];
    bool exists = false;
    yaml_place(where, job, value);
    if (value->kind != YAML_SCALAR || value->is_null || !*value->text || !map_path(path, job, value->text))
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected the name of a file", what);
    TRY(file_exists(&exists, path, error));
    if (!exists)
        return hint(error, fail_at(error, PLIM_BAD_DATA, where, "there is no file '%s'", path),
                    "paths are relative to the job file");
    *out = value->text;
    return PLIM_OK;
}

plim_status word_list_read(struct word_list *out, const char *job, const struct yaml *value, plim_error *error)
{
    char where[256];
    out->job = job;
    if (value->kind == YAML_SCALAR)
        return map_path_read(&out->path, job, value, "vocabulary", error);
    out->list = value;
    for (const struct yaml *item = value->first; item; item = item->next) {
        yaml_place(where, job, item);
        if (item->kind != YAML_SCALAR || item->is_null || value->kind != YAML_LIST)
            return hint(error, fail_at(error, PLIM_BAD_JOB, where, "vocabulary: expected a file or a list of tokens"),
                        "vocabulary: words.txt, or [the, ship]");
    }
    return PLIM_OK;
}

static plim_status make_from_yaml(struct vocabulary **out, const struct yaml *list, struct budget *budget,
                                  const struct vocabulary_options *options, plim_error *error)
{
    size_t bytes = ((size_t)list->count + 1) * sizeof(const char *);
    int64_t count = 0;
    const char **tokens = budget_take(budget, TAG_PLANNER, bytes);
    if (!tokens)
        return budget_refused(budget, TAG_PLANNER, bytes, error);
    for (const struct yaml *item = list->first; item; item = item->next)
        tokens[count++] = item->text;
    plim_status status = vocabulary_make_from_list(out, budget, tokens, count, options, error);
    budget_give(budget, TAG_PLANNER, tokens, bytes);
    return status;
}

plim_status word_list_make(struct vocabulary **out, const struct word_list *words, struct budget *budget,
                           const struct vocabulary_options *options, plim_error *error)
{
    char path[MAP_PATH_BYTES];
    if (words->list)
        return make_from_yaml(out, words->list, budget, options, error);
    if (words->tokens)
        return vocabulary_make_from_list(out, budget, words->tokens, words->count, options, error);
    if (!words->path)
        return hint(error, fail(error, PLIM_BAD_JOB, "its vocabulary is missing"), "vocabulary: words.txt");
    if (!map_path(path, words->job, words->path))
        return fail(error, PLIM_BAD_JOB, "the name of the vocabulary is too long");
    return vocabulary_make_from_file(out, budget, path, options, error);
}

static int64_t add_token(int64_t number, const char *token)
{
    const int64_t both[2] = {number, token ? digest_number(token, strlen(token)) : 0};
    return digest_number(both, sizeof both);
}

int64_t word_list_number(const struct word_list *words, const void *options, size_t bytes)
{
    int64_t number = digest_number(options, bytes);
    if (words->path)
        return add_token(number, words->path);
    for (int64_t i = 0; !words->list && i < words->count; i++)
        number = add_token(number, words->tokens[i]);
    for (const struct yaml *item = words->list ? words->list->first : NULL; item; item = item->next)
        number = add_token(number, item->text);
    return number;
}

/* ---- words of job files ---- */

plim_status map_category_type(enum type *out, const char *dtype, enum type usual, enum category_output output,
                              plim_error *error)
{
    enum type type = usual;
    bool hot = output != CATEGORY_INT;
    bool known = !dtype || type_from_name(&type, dtype);
    if (!known || (type != TYPE_I64 && type != TYPE_I32 && !(hot && type == TYPE_F32)))
        return fail(error, PLIM_BAD_JOB, "dtype '%s' is not offered here: int64%s or int32", dtype,
                    hot ? ", float32" : "");
    *out = type;
    return PLIM_OK;
}

plim_status map_salt_read(struct hash_salt *out, const char *job, const struct yaml *value, plim_error *error)
{
    static const struct setting setting = {"salt", SETTING_WHOLE, 0, INT64_MIN};
    const struct yaml *first = value->kind == YAML_LIST ? value->first : value;
    const struct yaml *second = value->kind == YAML_LIST && first ? first->next : first;
    char where[256];
    int64_t key[2] = {0};
    if (!first || !second || (value->kind == YAML_LIST && value->count != 2)) {
        yaml_place(where, job, value);
        return fail_at(error, PLIM_BAD_JOB, where, "salt: expected a whole number, or two");
    }
    TRY(setting_value(&key[0], &setting, job, first, error));
    TRY(setting_value(&key[1], &setting, job, second, error));
    *out = (struct hash_salt){.given = true, .key = {(uint64_t)key[0], (uint64_t)key[1]}};
    return PLIM_OK;
}

plim_status map_shape_read(struct shape *out, const char *what, const char *job, const struct yaml *value,
                           plim_error *error)
{
    const struct setting extent = {what, SETTING_WHOLE, 0, -1};
    char where[256];
    int64_t count = 0;
    *out = (struct shape){0};
    yaml_place(where, job, value);
    if (value->kind == YAML_MAP || value->count > MOST_AXES - 1)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected at most %d whole numbers", what, MOST_AXES - 1);
    const struct yaml *item = value->kind == YAML_LIST ? value->first : value;
    for (; item; item = value->kind == YAML_LIST ? item->next : NULL) {
        TRY(setting_value(&count, &extent, job, item, error));
        if (count == 0)
            return fail_at(error, PLIM_BAD_JOB, where, "%s: an extent of 0", what);
        out->dim[out->rank++] = count;
    }
    return PLIM_OK;
}

/* ---- columns ---- */

plim_status map_need_text(const struct column *column, const char *function, plim_error *error)
{
    char shape[64];
    if (column->type == TYPE_STRING && column->shape.rank == 0)
        return PLIM_OK;
    shape_text(shape, sizeof shape, &column->shape, false);
    fail(error, PLIM_BAD_JOB, "%s: column '%s' is %s %s, not one text", function, column->name, type_name(column->type),
         column->shape.rank ? shape : "");
    return column->type == TYPE_STRING ? hint(error, PLIM_BAD_JOB, "put map before batch") : PLIM_BAD_JOB;
}

plim_status map_category_infer(struct column *column, const char *function, enum category_output output, int64_t depth,
                               plim_error *error)
{
    struct shape shape;
    if (!category_shape(&shape, &column->shape, output, depth) || shape.rank > MOST_AXES - 1)
        return fail(error, PLIM_UNSUPPORTED, "%s: column '%s' has %d axes already", function, column->name,
                    column->shape.rank);
    column->shape = shape;
    return PLIM_OK;
}

/* ---- rows ---- */

const struct string *map_text(const struct map_call *call, int c, int64_t row)
{
    const uint8_t *at = (const uint8_t *)call->from[c] + (uint64_t)row * call->from_stride[c];
    return (const struct string *)(const void *)at;
}

uint64_t map_category_room(const struct spec *from, const struct spec *to, const void *options)
{
    (void)from;
    return map_values_room(&to->column[map_first_column(to, options)]);
}

/* Axes before the last are the row's own; the last is, too, unless an output mode has put its depth there. */
void *map_category_to(const struct map_call *call, int c, int64_t row, const struct shape *shape)
{
    const struct column *to = &call->to_spec->column[c];
    uint8_t *at = (uint8_t *)call->to[c] + (uint64_t)row * call->to_stride[c];
    struct cell cell = {0};
    struct shape whole = to->shape;
    if (!column_is_variable(to))
        return at;
    for (int i = 0; i < whole.rank; i++)
        cell.dim[i] = whole.dim[i] = whole.dim[i] < 0 ? shape->dim[i] : whole.dim[i];
    uint64_t bytes;
    if (!shape_bytes(&bytes, &whole, to->type))
        bytes = UINT64_MAX;
    cell.data = room_take(call->room, bytes);
    if (cell.data)
        *(struct cell *)(void *)at = cell;
    return cell.data;
}

/* In front of the message: the place may be the file's, which the flow tells. */
plim_status map_bad(const struct map_call *call, int64_t row, plim_status status, plim_error *error)
{
    if (status != PLIM_BAD_DATA || !error)
        return status;
    return reword(error, status, "element %lld: %s", map_element(call, row), error->message);
}
