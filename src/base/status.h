/* status.h - how a function says that it failed.

   What is written into an error is valid UTF-8 in one line, whatever the arguments quote: control characters and bytes
   that are no UTF-8 become \xNN. Nobody writes into its fields but these functions. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "plimsoll.h"

/* Runs expr; on failure returns its status. Only in functions that hold
   nothing; those that do use `if ((status = ...)) goto out;`. */
#define TRY(expr)                                                                                                      \
    do {                                                                                                               \
        plim_status try_status_ = (expr);                                                                              \
        if (try_status_ != PLIM_OK)                                                                                    \
            return try_status_;                                                                                        \
    } while (0)

/* Writes code and message into error (which may be NULL) and returns code.
   (In parentheses because cmocka has a macro of that name.) */
__attribute__((format(printf, 3, 4))) plim_status(fail)(plim_error *error, plim_status code, const char *format, ...);
/* The same with a place: a file, "file: byte 12", "job.yaml:3:7". */
__attribute__((format(printf, 4, 5)))
plim_status(fail_at)(plim_error *error, plim_status code, const char *where, const char *format, ...);
/* As macros they show the compiler the code: after a TRY it then knows what was set. (The tests see cmocka's own
 * `fail`.) */
#define KNOWN_CODE(call, code)                                                                                         \
    __extension__({                                                                                                    \
        (void)(call);                                                                                                  \
        (plim_status)(code);                                                                                           \
    })
#ifndef fail
#define fail(error, code, ...) KNOWN_CODE((fail)(error, code, __VA_ARGS__), code)
#endif
#define fail_at(error, code, ...) KNOWN_CODE((fail_at)(error, code, __VA_ARGS__), code)
/* Adds what to try. Returns error->code, so `return hint(error, ...)` works;
   with error == NULL it returns `code`. */
__attribute__((format(printf, 3, 4))) plim_status hint(plim_error *error, plim_status code, const char *format, ...);
/* Another code and message; the place and what to try stay. */
__attribute__((format(printf, 3, 4))) plim_status reword(plim_error *error, plim_status code, const char *format, ...);
/* Adds a place to an error that has none yet (a caller knows the file). */
plim_status error_at(plim_error *error, plim_status code, const char *where);

/* PLIM_USAGE where an argument of a public call is NULL: "the report is NULL". */
plim_status need_argument(const void *argument, const char *what, plim_error *error);

/* How a function that opens something ends: `return OPENED(out, it, it_close, expr)`. Where expr succeeds *out becomes
   `it`, else `it` is closed again; the value is expr's. */
#define OPENED(out, it, close, expr)                                                                                   \
    __extension__({                                                                                                    \
        plim_status opened_status_ = (expr);                                                                           \
        if (opened_status_ == PLIM_OK)                                                                                 \
            *(out) = (it);                                                                                             \
        else                                                                                                           \
            close(it);                                                                                                 \
        opened_status_;                                                                                                \
    })

#endif
