/* log.h - lines for whoever wants to read them. The caller brings the sink:
   there is no log that everybody shares. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#define LOG_LINE_BYTES 1024 /* longer lines are cut */

struct log {
    void (*sink)(void *context, const char *line); /* line without newline; NULL: nobody listens */
    void *context;
};

/* log may be NULL. Allocates nothing. */
__attribute__((format(printf, 2, 3))) void log_line(const struct log *log, const char *format, ...);

#endif
