/* map_text.c - what the functions over texts and tokens share: their files, lists and types. */
#include "pipeline/maps/text/map_text.h"

#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "pipeline/core/pipeline_digest.h"

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

plim_status token_list_read(struct token_list *out, const char *job, const struct yaml *value, plim_error *error)
{
    out->job = job;
    if (value->kind == YAML_SCALAR)
        return map_path_read(&out->path, job, value, "vocabulary", error);
    out->list = value;
    for (const struct yaml *item = value->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR || item->is_null || value->kind != YAML_LIST)
            return hint(error,
                        yaml_fail(error, PLIM_BAD_JOB, job, item, "vocabulary: expected a file or a list of tokens"),
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

plim_status token_list_make(struct vocabulary **out, const struct token_list *list, struct budget *budget,
                            const struct vocabulary_options *options, plim_error *error)
{
    char path[MAP_PATH_BYTES];
    if (list->list)
        return make_from_yaml(out, list->list, budget, options, error);
    if (list->tokens)
        return vocabulary_make_from_list(out, budget, list->tokens, list->count, options, error);
    if (!list->path)
        return hint(error, fail(error, PLIM_BAD_JOB, "its vocabulary is missing"), "vocabulary: words.txt");
    if (!map_path(path, list->job, list->path))
        return fail(error, PLIM_BAD_JOB, "the name of the vocabulary is too long");
    return vocabulary_make_from_file(out, budget, path, options, error);
}

static int64_t add_token(int64_t number, const char *token)
{
    const int64_t both[2] = {number, token ? digest_number(token, strlen(token)) : 0};
    return digest_number(both, sizeof both);
}

int64_t token_list_number(const struct token_list *list, const void *options, size_t bytes)
{
    int64_t number = digest_number(options, bytes);
    if (list->path)
        return add_token(number, list->path);
    for (int64_t i = 0; !list->list && i < list->count; i++)
        number = add_token(number, list->tokens[i]);
    for (const struct yaml *item = list->list ? list->list->first : NULL; item; item = item->next)
        number = add_token(number, item->text);
    return number;
}

int64_t token_options_number(const void *options)
{
    return ((const struct token_options *)options)->number;
}

void token_options_content(struct sha256 *sha, const void *options)
{
    const struct token_options *made = options;
    vocabulary_content(sha, made->vocabulary);
    bpe_content(sha, made->bpe);
}

void token_options_release(void *options)
{
    struct token_options *made = options;
    vocabulary_free(made->vocabulary);
    bpe_free(made->bpe);
}

/* ---- options in job files ---- */

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
    int64_t key[2] = {0};
    if (!first || !second || (value->kind == YAML_LIST && value->count != 2)) {
        return yaml_fail(error, PLIM_BAD_JOB, job, value, "salt: expected a whole number, or two");
    }
    TRY(setting_value(&key[0], &setting, job, first, error));
    TRY(setting_value(&key[1], &setting, job, second, error));
    *out = (struct hash_salt){.given = true, .key = {(uint64_t)key[0], (uint64_t)key[1]}};
    return PLIM_OK;
}

/* ---- columns ---- */

plim_status map_category_infer(struct column *column, const char *function, enum type type, enum category_output output,
                               int64_t depth, plim_error *error)
{
    struct shape shape;
    if (!category_shape(&shape, &column->shape, output, depth) || shape.rank > MOST_AXES - 1)
        return fail(error, PLIM_UNSUPPORTED, "%s: column '%s' has %d axes already", function, column->name,
                    column->shape.rank);
    column->shape = shape;
    column->type = type;
    if (output != CATEGORY_INT) /* rows are zeroed first, so the result must not lie over what is read */
        column->origin = -1;
    return PLIM_OK;
}
