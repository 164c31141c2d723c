/* option_unknown.c - what a wrong word is answered with. A file of its own: tests come between it and its callers to
   learn which words there are. */
#include <stdio.h>
#include <string.h>

#include "base/text/aliases.h"
#include "model/option_table.h"

/* All of them, or the page that lists them where they are too many for a line. */
static plim_status hint_offered(const char *what, const struct choices *choices, plim_status status, plim_error *error)
{
    char offered[200] = "";
    size_t length = 0;
    for (int i = 0; i < choices->count && length < sizeof offered; i++)
        length += (size_t)snprintf(offered + length, sizeof offered - length, "%s%s", i ? ", " : "", choices->words[i]);
    if (length < sizeof offered)
        return hint(error, status, "there are %s", offered);
    bool layer = strcmp(what, "layer") == 0;
    return hint(error, status, "doc/%s.md lists those that there are", layer ? "layers" : "training");
}

plim_status option_unknown(const char *what, const char *word, const char *where, const struct choices *choices,
                           plim_error *error)
{
    const char *near = habit_word(word, choices->words, (size_t)choices->count), *instead = habit_instead(word);
    for (int i = 0; i < choices->keras_count; i++)
        if (same_word(word, choices->keras[i])) { /* no slip: what is spelled like it is not meant */
            plim_status later = fail_at(error, PLIM_UNSUPPORTED, where, "%s '%s' is not supported yet", what, word);
            return instead ? hint(error, later, "%s", instead) : hint_offered(what, choices, later, error);
        }
    plim_status status = fail_at(error, PLIM_BAD_JOB, where, "unknown %s '%s'", what, word);
    return near ? hint(error, status, "did you mean '%s'?", near) : hint_offered(what, choices, status, error);
}
