/* command.h - a command as one table entry, and what commands share.
   Commands use the public API and nothing else. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "plimsoll.h"

#define MOST_OVERRIDES 64
#define MOST_WORDS     4096 /* plim data takes files */

struct arguments {
    const char *words[MOST_WORDS]; /* what is not an option */
    int word_count;
    plim_job_options job;
    const char *overrides[MOST_OVERRIDES];
    long long steps;         /* bench */
    const char *output;      /* data convert, data shard */
    long long shards;        /* data shard; 0: not given */
    bool plan;               /* data explain: without running */
    const char *plot, *html; /* plan: files for people */
    char command[256];       /* of plim data: "data bench" */
    bool json, json_steps, help;
};

/* What people read, and what programs read. With --json the first goes to
   standard error and the second to standard output; else there is only the first. */
struct reports {
    plim_report *people, *programs;
};
/* A plim_listener; context is a struct reports. */
void reports_listen(void *reports, const plim_event *event);
/* plim_report_watch of both. */
void reports_watch(struct reports *reports, const plim_job *job);

/* From here on INT, TERM and HUP ask the job (NULL: who looks at signals_asked) to stop; and no longer. Released before
   results are printed: nobody would look at the flag while a reader does not read. */
void signals_watch(plim_job *job);
void signals_release(void);
bool signals_asked(void);

/* Which options a command takes, in groups. */
enum {
    TAKES_SET = 1,
    TAKES_JSON = 2,
    TAKES_MEMORY = 4, /* --threads too */
    TAKES_DISK = 8,   /* --scratch too */
    TAKES_TRAIN = 16,
    TAKES_STEPS = 32,
    TAKES_OUTPUT = 64, /* these three: parts of plim data */
    TAKES_SHARDS = 128,
    TAKES_PLAN = 256,
    TAKES_VIEWS = 512,
    TAKES_JOB = TAKES_SET | TAKES_JSON | TAKES_MEMORY | TAKES_DISK,
};

struct command {
    const char *name;
    const char *usage;   /* "plim train JOB.yaml [options]" */
    const char *summary; /* one line */
    const char *help;    /* with an example that works */
    unsigned takes;      /* TAKES_... */
    /* Returns the status; the error is printed by main. */
    plim_status (*run)(struct arguments *arguments, struct reports *reports, plim_error *error);
};

/* What stands behind `plim data`: a word, a file data_NAME.c, a line in data_commands.def. */
struct data_command {
    const char *name;
    unsigned takes; /* of TAKES_OUTPUT, TAKES_SHARDS, TAKES_PLAN */
    plim_status (*run)(struct arguments *arguments, plim_error *error);
};

#define DATA_COMMAND(name) extern const struct data_command data_command_##name;
#include "data_commands.def"
#undef DATA_COMMAND

/* By its name. */
bool is_job_file(const char *path);
/* The job file or the data files that the words name, for its data alone. */
plim_status open_data(plim_job **job, struct arguments *arguments, plim_error *error);

/* A bar on standard error while something long goes on, when that is a terminal. A plim_meter. */
struct meter {
    char what[64];
    const char *unit;
    bool terminal;
    double begin, drawn; /* seconds */
};
void meter_init(struct meter *meter, const char *what, const char *unit);
bool meter_tell(void *meter, uint64_t done, uint64_t total);
void meter_end(struct meter *meter);

#define COMMAND(name) extern const struct command command_##name;
#include "commands.def"
#undef COMMAND

/* Fills arguments from argv (after the command's name). */
plim_status arguments_read(struct arguments *out, const struct command *command, int count, char **values,
                           plim_error *error);
/* Prints the options that the command takes. */
void arguments_help(const struct command *command);
/* PLIM_USAGE; format has one %s, for the word. */
plim_status bad_usage(plim_error *error, const char *hint, const char *format, const char *word);

/* Arguments are bytes of any kind: what is not printable stands as \xNN. Ends early where `capacity` does. */
void put_clean(char *to, size_t capacity, const char *from);

/* Of `count` words the one that was meant, or NULL when none is near. */
const char *nearest_word(const char *word, const char *const *words, int count);

/* Opens the job that the first word names; refuses other words. */
plim_status open_job(plim_job **job, struct arguments *arguments, plim_error *error);

#endif
