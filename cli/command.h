/* command.h - a command as one table entry, and what commands share.
   Commands use the public API and nothing else. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "plimsoll.h"

#define MOST_OVERRIDES 64
#define MOST_WORDS 8

struct arguments {
    const char *words[MOST_WORDS]; /* what is not an option */
    int word_count;
    plim_job_options job;
    const char *overrides[MOST_OVERRIDES];
    long long steps;               /* bench */
    bool json, json_steps, help;
};

/* What people read, and what programs read. With --json the first goes to
   standard error and the second to standard output; else there is only the first. */
struct reports {
    plim_report *people, *programs;
};
/* A plim_listener; context is a struct reports. */
void reports_listen(void *reports, const plim_event *event);

struct command {
    const char *name;
    const char *usage;   /* "plim train JOB.yaml [options]" */
    const char *summary; /* one line */
    const char *help;    /* with an example that works */
    bool works_unheard;  /* its work is worth the same when its output is lost: no failure then */
    /* Returns the status; the error is printed by main. */
    plim_status (*run)(struct arguments *arguments, struct reports *reports, plim_error *error);
};

#define COMMAND(name) extern const struct command command_##name;
#include "commands.def"
#undef COMMAND

/* Fills arguments from argv (after the command's name). */
plim_status arguments_read(struct arguments *out, int count, char **values, plim_error *error);
extern const char arguments_help[];

/* Opens the job that the first word names; refuses other words. */
plim_status open_job(plim_job **job, struct arguments *arguments, plim_error *error);

#endif
