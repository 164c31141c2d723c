/* element_text.h - one element in short form, as people look at it. */
#ifndef JOB_DATA_ELEMENT_TEXT_H
#define JOB_DATA_ELEMENT_TEXT_H

#include "base/text/text.h"
#include "formats/source.h"

/* "x [0.5 0.25 ... (784)]  word 'hello' (5 bytes)"; a record that is an Example by its features. */
void element_text(struct text *out, const struct spec *spec, void *const *row);
/* The features of a serialized Example as a job file would declare them; nothing when it is none. */
void example_text(struct text *out, const struct string *record);

#endif
