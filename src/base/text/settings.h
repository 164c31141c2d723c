/* settings.h - a yaml map read into a struct by a table of words.

   One table a struct: the word, what it must be, and where it goes. A word
   that is not in the table is an error with its place and the nearest right one,
   so no reader checks keys by hand. */
#ifndef BASE_TEXT_SETTINGS_H
#define BASE_TEXT_SETTINGS_H

#include "base/text/yaml.h"

enum setting_kind {
    SETTING_WHOLE,     /* int64_t, at least `least` */
    SETTING_NUMBER,    /* double within float32's range; "1/255" too */
    SETTING_BOOL,      /* bool: true, false */
    SETTING_WORD,      /* const char *: any scalar */
    SETTING_NODE,      /* const struct yaml *: whatever stands there */
    SETTING_ELSEWHERE, /* nothing: the word may stand here, and somebody else reads it */
};

struct setting {
    const char *word;
    enum setting_kind kind;
    size_t offset;
    int64_t least;
};

/* Fields whose word is absent stay as they are. A list of one-key maps is
   read like a map (a pipeline is not: its order means something). */
plim_status settings_read(void *out, const struct setting *settings, int count, const char *job, const struct yaml *map,
                          plim_error *error);

/* One value, for a scalar that stands alone (`Dense: 100`). */
plim_status setting_value(void *out, const struct setting *setting, const char *job, const struct yaml *value,
                          plim_error *error);
bool setting_number(double *out, const char *text);
bool setting_whole(int64_t *out, const char *text);

#endif
