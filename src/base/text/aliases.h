/* aliases.h - words that people bring along from elsewhere, and what they are called or where they stand here. */
#ifndef BASE_TEXT_ALIASES_H
#define BASE_TEXT_ALIASES_H

#include "base/status.h"

/* Of `count` words that may stand here the one that `word` means; NULL: none. Names that others use come first, then
   the nearest, unless there is a place for the word. */
const char *habit_word(const char *word, const char *const *words, size_t count);
/* What to write instead of a word that stands nowhere or elsewhere; NULL: nothing is known of it. */
const char *habit_place(const char *word);
/* What to write instead of a layer of Keras that is none here; NULL: there is nothing. */
const char *habit_instead(const char *word);

#endif
