/* option_table.c - reads options by tables. */
#include "model/option_table.h"

#include <ctype.h>
#include <string.h>

#include "model/layers/layer_options.h"

/* ---- tables ---- */

int options_length(const struct model_option *options, int most)
{
    int count = 0;
    while (count < most && options[count].word)
        count++;
    return count;
}

static plim_status find_nodes(const struct yaml **node, const struct model_option *options, int count,
                              const struct option_place *at, plim_error *error)
{
    struct setting settings[MOST_OPTIONS];
    for (int i = 0; i < count; i++)
        settings[i] = (struct setting){options[i].word, SETTING_NODE, (size_t)i * sizeof *node, 0};
    return settings_read(node, settings, count, at->job, at->map, error);
}

static plim_status missing_option(const struct option_place *at, const char *word, plim_error *error)
{
    if (at->layer)
        return layer_missing(at->layer, word, error);
    return yaml_fail(error, PLIM_BAD_JOB, at->job, at->map, "%s: '%s' is missing", at->owner, word);
}

static plim_status read_nodes(void *out, const struct model_option *options, int count, const struct yaml *const *node,
                              const struct option_place *at, plim_error *error)
{
    for (int i = 0; i < count; i++)
        if (node[i] && options[i].read && !(options[i].nullable && yaml_absent(node[i])))
            TRY(options[i].read((char *)out + options[i].offset, &options[i], at, node[i], error));
    for (int i = 0; i < count; i++)
        if (options[i].required && (options[i].nullable ? yaml_absent(node[i]) : !node[i]))
            return missing_option(at, options[i].word, error);
    return PLIM_OK;
}

plim_status options_read(void *out, const struct model_option *options, int count, const struct option_place *at,
                         plim_error *error)
{
    const struct yaml *node[MOST_OPTIONS] = {NULL};
    TRY(find_nodes(node, options, count, at, error));
    return read_nodes(out, options, count, node, at, error);
}

/* List entries that are scalars: `MaxPooling2D: [2, 2]`, not a list of maps. */
bool is_first_argument(const struct yaml *node)
{
    if (node->kind == YAML_LIST)
        return node->first && node->first->kind == YAML_SCALAR;
    return node->kind == YAML_SCALAR && !node->is_null;
}

plim_status options_read_argument(void *out, const struct model_option *options, int count,
                                  const struct option_place *at, plim_error *error)
{
    const struct yaml *node[MOST_OPTIONS] = {NULL};
    if (at->map && is_first_argument(at->map))
        node[0] = at->map;
    else if (at->map)
        TRY(find_nodes(node, options, count, at, error));
    return read_nodes(out, options, count, node, at, error);
}

/* ---- values ---- */

static plim_status read_as(enum setting_kind kind, void *out, const struct model_option *option,
                           const struct option_place *at, const struct yaml *node, plim_error *error)
{
    const struct setting setting = {option->word, kind, 0, option->least};
    return setting_value(out, &setting, at->job, node, error);
}

OPTION_READER(option_whole)
{
    return read_as(SETTING_WHOLE, out, option, at, node, error);
}

OPTION_READER(option_number)
{
    return read_as(SETTING_NUMBER, out, option, at, node, error);
}

OPTION_READER(option_flag)
{
    return read_as(SETTING_BOOL, out, option, at, node, error);
}

OPTION_READER(option_text)
{
    return read_as(SETTING_WORD, out, option, at, node, error);
}

OPTION_READER(option_node)
{
    return read_as(SETTING_NODE, out, option, at, node, error);
}

OPTION_READER(option_only)
{
    const char *only = option->with;
    double value, wanted;
    if (yaml_absent(node))
        return PLIM_OK;
    if (node->kind == YAML_LIST && node->first) {
        for (const struct yaml *entry = node->first; entry; entry = entry->next)
            TRY(option_only(out, option, at, entry, error));
        return PLIM_OK;
    }
    if (node->kind == YAML_SCALAR) {
        if (strcmp(node->text, only) == 0)
            return PLIM_OK;
        if (setting_number(&wanted, only) && setting_number(&value, node->text) && value == wanted)
            return PLIM_OK;
    }
    return yaml_fail(error, PLIM_UNSUPPORTED, at->job, node, "%s: %s other than %s is not supported yet", at->owner,
                     option->word, only);
}

/* ---- one of several words ---- */

plim_status choose_word(int *out, const char *what, const char *word, const struct choices *choices, const char *where,
                        plim_error *error)
{
    for (int i = 0; word && i < choices->count; i++)
        if (same_word(word, choices->words[i])) {
            *out = i;
            return PLIM_OK;
        }
    return word ? option_unknown(what, word, where, choices, error) : PLIM_OK;
}

OPTION_READER(option_choice)
{
    char where[256];
    yaml_place(where, at->job, node);
    if (node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected a word, got a %s", option->word, yaml_kind_name(node));
    return choose_word(out, option->word, node->is_null ? "null" : node->text, option->with, where, error);
}

bool named_node(const char **name, const struct yaml **arguments, const struct yaml *node)
{
    bool map = node->kind == YAML_MAP && node->count == 1;
    *arguments = map ? node->first : NULL;
    *name = map ? node->first->key : node->text;
    return map || (node->kind == YAML_SCALAR && !node->is_null);
}

bool same_word(const char *a, const char *b)
{
    for (;;) {
        a += *a == '_';
        b += *b == '_';
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
        a++;
        b++;
    }
}
