/* settings.c - a yaml map read into a struct by a table of keys. */
#include "base/text/settings.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/numbers.h"
#include "base/text/aliases.h"

bool setting_whole(int64_t *out, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return false;
    *out = value;
    return true;
}

/* "0.5", "1e-3", and the quotients that people write for scales: "1/255". */
bool setting_number(double *out, const char *text)
{
    char *end;
    double value = number_parse(text, &end);
    if (end == text)
        return false;
    if (*end == '/') {
        const char *below = end + 1;
        double divisor = number_parse(below, &end);
        if (end == below || divisor == 0)
            return false;
        value /= divisor;
    }
    if (*end || !isfinite(value))
        return false;
    *out = value;
    return true;
}

static plim_status wrong_value(const char *expected, const struct setting *setting, const char *job,
                               const struct yaml *value, plim_error *error)
{
    if (value->kind != YAML_SCALAR)
        return yaml_fail(error, PLIM_BAD_JOB, job, value, "%s: expected %s, got a %s", setting->word, expected,
                         yaml_kind_name(value));
    return yaml_fail(error, PLIM_BAD_JOB, job, value, "%s: expected %s, got '%s'", setting->word, expected,
                     value->text);
}

/* What people write is computed with in float32: beyond that it would be infinite. */
static plim_status read_number(double *out, const struct setting *setting, const char *job, const struct yaml *value,
                               plim_error *error)
{
    double number;
    if (value->kind != YAML_SCALAR || !setting_number(&number, value->text))
        return wrong_value("a number", setting, job, value, error);
    if (fabs(number) > (double)FLT_MAX)
        return wrong_value("a number of at most 3.4e38 (float32)", setting, job, value, error);
    *out = number;
    return PLIM_OK;
}

static plim_status read_whole(int64_t *out, const struct setting *setting, const char *job, const struct yaml *value,
                              plim_error *error)
{
    int64_t whole;
    if (value->kind != YAML_SCALAR || !setting_whole(&whole, value->text))
        return wrong_value("a whole number", setting, job, value, error);
    if (whole < setting->least)
        return yaml_fail(error, PLIM_BAD_JOB, job, value, "%s: must be at least %lld, got %lld", setting->word,
                         (long long)setting->least, (long long)whole);
    *out = whole;
    return PLIM_OK;
}

plim_status setting_value(void *out, const struct setting *setting, const char *job, const struct yaml *value,
                          plim_error *error)
{
    bool scalar = value->kind == YAML_SCALAR;
    switch (setting->kind) {
    case SETTING_WHOLE:
        return read_whole(out, setting, job, value, error);
    case SETTING_NUMBER:
        return read_number(out, setting, job, value, error);
    case SETTING_BOOL:
        if (!scalar || (strcmp(value->text, "true") != 0 && strcmp(value->text, "false") != 0))
            return wrong_value("true or false", setting, job, value, error);
        *(bool *)out = value->text[0] == 't';
        return PLIM_OK;
    case SETTING_WORD:
        if (!scalar)
            return wrong_value("a word", setting, job, value, error);
        if (setting->least > 0 && !value->text[0])
            return yaml_fail(error, PLIM_BAD_JOB, job, value, "%s: must not be empty", setting->word);
        *(const char **)out = value->text;
        return PLIM_OK;
    case SETTING_NODE:
        *(const struct yaml **)out = value;
        return PLIM_OK;
    case SETTING_ELSEWHERE:
        return PLIM_OK;
    }
    return fail(error, PLIM_INTERNAL, "settings: kind %d", setting->kind);
}

static plim_status unknown(const struct setting *settings, int count, const char *job, const struct yaml *entry,
                           plim_error *error)
{
    char where[256];
    const char *words[64];
    size_t used = 0;
    for (int i = 0; i < count && used < 64; i++)
        words[used++] = settings[i].word;
    yaml_key_place(where, job, entry);
    const char *near = habit_word(entry->key, words, used), *instead = near ? NULL : habit_place(entry->key);
    plim_status status = fail_at(error, PLIM_BAD_JOB, where, "unknown key '%s'", entry->key);
    if (instead)
        return hint(error, status, "%s", instead);
    return near ? hint(error, status, "did you mean '%s'?", near) : status;
}

static plim_status read_entry(void *out, const struct setting *settings, int count, const char *job,
                              const struct yaml *entry, plim_error *error)
{
    for (int i = 0; i < count; i++)
        if (strcmp(settings[i].word, entry->key) == 0)
            return setting_value((char *)out + settings[i].offset, &settings[i], job, entry, error);
    return unknown(settings, count, job, entry, error);
}

plim_status settings_read(void *out, const struct setting *settings, int count, const char *job, const struct yaml *map,
                          plim_error *error)
{
    for (const struct yaml *entry = map->first; entry; entry = entry->next) {
        const struct yaml *pair = map->kind == YAML_LIST && entry->kind == YAML_MAP ? entry->first : entry;
        if (!pair || !pair->key || (pair != entry && entry->count != 1))
            return yaml_fail(error, PLIM_BAD_JOB, job, entry, "expected 'word: value'");
        TRY(read_entry(out, settings, count, job, pair, error));
    }
    if (map->kind == YAML_SCALAR && !map->is_null)
        return yaml_fail(error, PLIM_BAD_JOB, job, map, "expected a map of settings, got '%s'", map->text);
    return PLIM_OK;
}
