/* settings.h - reads a YAML map into a struct by a table of keys.

   Each struct has one table, which lists the key, the type of its value and the field that stores it. A key that is not
   in the table is an error that names its position and, if there is one, the nearest valid key, so no reader checks
   keys by hand. */
#ifndef BASE_TEXT_SETTINGS_H
#define BASE_TEXT_SETTINGS_H

#include "base/numbers/count.h"
#include "base/text/yaml.h"

enum setting_kind {
    SETTING_WHOLE,     /* int64_t, at least `least` */
    SETTING_NUMBER,    /* double within the range of float32; "1/255" is valid, too */
    SETTING_BOOL,      /* bool: true or false */
    SETTING_WORD,      /* const char *: any scalar; with `least` 1 (paths) it is not empty */
    SETTING_NODE,      /* const struct yaml *: any YAML node */
    SETTING_ELSEWHERE, /* nothing is stored: the key is valid here, and other code reads it */
};

struct setting {
    const char *word;
    enum setting_kind kind;
    size_t offset;
    int64_t least;
};

/* Fields whose key is absent keep their values. A list of one-key maps is read like a map (a pipeline is not, because
   the order of its entries matters). */
plim_status settings_read(void *out, const struct setting *settings, int count, const char *job, const struct yaml *map,
                          plim_error *error);

/* Reads one value, for a scalar without a map (`Dense: 100`). */
plim_status setting_value(void *out, const struct setting *setting, const char *job, const struct yaml *value,
                          plim_error *error);
bool setting_number(double *out, const char *text);
bool setting_whole(int64_t *out, const char *text);

/* The words that a setting, or a key, may be; those of `later` are known and refused as not offered yet. */
struct word_choices {
    const char *what;
    const char *const *names;
    size_t count;
    const char *const *later;
    size_t later_count;
};

#endif
