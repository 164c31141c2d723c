/* nearest.c - of some words the one that was meant. */
#include "command.h"

#include <string.h>

enum { WORD_MOST = 24 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Letters to add, drop or change to get from a to b; row[j]: of a's letters so far and b's first j. */
static int distance(const char *a, const char *b)
{
    int row[WORD_MOST + 1], length = (int)strlen(b);
    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (int i = 1; *a; a++, i++) {
        int before = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int change = before + (*a != b[j - 1]);
            before = row[j];
            row[j] = least(least(row[j], row[j - 1]) + 1, change);
        }
    }
    return row[length];
}

const char *nearest_word(const char *word, const char *const *words, int count)
{
    const char *nearest = NULL;
    size_t length = strlen(word);
    int most = length <= 5 ? 1 : length <= 9 ? 2 : 3; /* slips of the fingers; more is another word */
    for (int i = 0; i < count && length <= WORD_MOST; i++) {
        int letters = distance(word, words[i]);
        if (letters < most || (letters == most && !nearest)) {
            nearest = words[i];
            most = letters;
        }
    }
    return nearest;
}
