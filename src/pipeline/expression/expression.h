/* expression.h - small expressions over the columns of a row, as job files write them:
   "(age - 40) / 12", "log1p(price) * (label == 2)", "where(age > 18, 1, 0)", "name == 'bob'".

   Python's operators and precedence: or, and, not, comparisons (which do not chain), + -, * / // %, unary -, **;
   x[3] and x[1, -1] index a column; `petal length` in backquotes is a column whose name is no word.
   Types: whole numbers and bools become int64 under + - * // %; / gives float32, or float64 when a float64 column
   takes part; float16 and bfloat16 are computed in float32. Numbers in the text never widen a column's type, and what
   is made of them alone is computed in float64. A column alone, an index of it and cast() keep their type.
   Whole numbers wrap; // and % by a whole 0 give 0. Arrays broadcast as in numpy, inside the row.
   len() counts the bytes of a string, the first axis of an array, and that of a cell (extents of -1), which nothing
   else reads. One operation is one rounding in the operands' type; sums and means add up in float64 and round once. */
#ifndef PIPELINE_EXPRESSION_EXPRESSION_H
#define PIPELINE_EXPRESSION_EXPRESSION_H

#include "base/memory/arena.h"
#include "formats/source.h"

#define EXPRESSION_MOST_BYTES 4096

struct expression;

/* Everything lives in the arena. `where` is the place of errors (PLIM_BAD_JOB, which name the character, from 1). */
plim_status expression_parse(struct expression **out, struct arena *arena, const char *text, const char *where,
                             plim_error *error);
/* What the expression gives a row; makes it ready to run. Once an expression; the spec is not needed afterwards. */
plim_status expression_check(enum type *type, struct shape *shape, struct expression *expression,
                             const struct spec *spec, plim_error *error);
/* True when the result may be written over column c: each value is read before it is overwritten. Rows must then
   have the same stride on both sides. */
bool expression_in_place(const struct expression *expression, int column);
/* True when the result depends on column c. */
bool expression_reads(const struct expression *expression, int column);
/* Row i of column c lies at from[c] + i * from_stride[c]; its result goes to `to` + i * to_stride. Columns that the
   expression does not name may be NULL. `to` overlaps no column but as expression_in_place allows. Takes no memory
   but about 80 KiB of stack; thread-safe. A string result is a reference to the column's own bytes. */
void expression_run(const struct expression *expression, int64_t count, void *const *from, const uint64_t *from_stride,
                    void *to, uint64_t to_stride);

#endif
