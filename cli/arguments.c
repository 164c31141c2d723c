/* arguments.c - options: one table, of which each command takes a part. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_kind { TEXT, OVERRIDE, NUMBER, FLAG, JSON };

static const struct option {
    const char *name, *value; /* value: what stands for it in the help, NULL when it has none */
    const char *help;
    unsigned bit;
    enum option_kind kind;
    size_t offset; /* in struct arguments; TEXT: a const char *, FLAG: a bool */
} options[] = {
#define AT(field) offsetof(struct arguments, field)
    {"--memory", "SIZE", "the budget of the whole process: 48MiB, 80%, auto", TAKES_MEMORY, TEXT, AT(job.memory)},
    {"--threads", "N", "or compute=2,data=1", TAKES_MEMORY, TEXT, AT(job.threads)},
    {"--set", "PATH=VALUE", "overrides a value of the job file: train.epochs=1", TAKES_SET, OVERRIDE, 0},
    {"--resume", NULL, "goes on from the newest checkpoint that is whole", TAKES_TRAIN, FLAG, AT(job.resume)},
    {"--data-changed", NULL, "with --resume: goes on with other data than the checkpoint's", TAKES_TRAIN, FLAG,
     AT(job.data_changed)},
    {"--checkpoint", "DIR", "where checkpoints are kept", TAKES_TRAIN, TEXT, AT(job.checkpoint)},
    {"--disk", "SIZE", "most bytes of unpacked sources and caches", TAKES_DISK, TEXT, AT(job.disk)},
    {"--scratch", "DIR", "where they lie", TAKES_DISK, TEXT, AT(job.scratch)},
    {"--steps", "N", "how many; ten seconds' worth, at most 1000, unless told", TAKES_STEPS, NUMBER, AT(steps)},
    {"--output", "PATH", "convert: X.tfrecord, X.npy, X.tar, a folder; shard: a prefix", TAKES_OUTPUT, TEXT,
     AT(output)},
    {"--shards", "N", "how many files", TAKES_SHARDS, NUMBER, AT(shards)},
    {"--plan", NULL, "explain: without running anything", TAKES_PLAN, FLAG, AT(plan)},
    {"--plot", "FILE", "budgets against time, as SVG", TAKES_VIEWS, TEXT, AT(plot)},
    {"--html", "FILE", "what lies in memory when, as a page for a browser", TAKES_VIEWS, TEXT, AT(html)},
    {"--digest", NULL, "prints SHA-256 of weights and optimizer at the end", TAKES_TRAIN, FLAG, AT(job.digest)},
    {"--json", NULL, "JSON lines on standard output", TAKES_JSON, JSON, 0},
    {"--json=steps", NULL, "and every step too", TAKES_TRAIN, JSON, 0},
    {"--help", NULL, "this", ~0u, FLAG, AT(help)},
#undef AT
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

void arguments_help(const struct command *command)
{
    printf("Options:\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options[i];
        char left[32];
        snprintf(left, sizeof left, "%s%s%s", option->name, option->value ? " " : "",
                 option->value ? option->value : "");
        if (option->bit & command->takes)
            printf("  %-18s  %s\n", left, option->help);
    }
}

/* Bytes of the character of UTF-8 that the text begins with; 0: none, or one that a terminal obeys (controls, and those
   that turn the direction of writing). */
static size_t printable(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x80)
        return c[0] >= 0x20 && c[0] != 0x7f;
    size_t length = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    unsigned long code = c[0] & (0xffu >> (length + 1));
    static const unsigned long least[] = {0, 0, 0xa0, 0x800, 0x10000}; /* of two bytes those behind C1 */
    for (size_t i = 1; i < length; code = code << 6 | (c[i++] & 0x3fu))
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool turns = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    bool exists = c[0] >= 0xc2 && code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return exists && !turns ? length : 0;
}

void put_clean(char *to, size_t capacity, const char *from)
{
    size_t used = 0;
    while (*from && used + 5 < capacity) {
        size_t length = printable(from);
        used += (size_t)(length ? snprintf(to + used, capacity - used, "%.*s", (int)length, from)
                                : snprintf(to + used, capacity - used, "\\x%02x", (unsigned char)*from));
        from += length ? length : 1;
    }
    to[used] = '\0';
}

plim_status bad_usage(plim_error *error, const char *hint, const char *format, const char *word)
{
    if (error) {
        *error = (plim_error){.code = PLIM_USAGE};
        char clean[320]; /* and room for the words around it */
        put_clean(clean, sizeof clean, word);
        snprintf(error->message, sizeof error->message, format, clean);
        snprintf(error->hint, sizeof error->hint, "%s", hint);
    }
    return PLIM_USAGE;
}

/* ---- one option ---- */

static bool read_number(long long *out, const char *text)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno || number < 1)
        return false;
    *out = number;
    return true;
}

static plim_status is_empty(const struct option *option, plim_error *error)
{
    char hint[64];
    snprintf(hint, sizeof hint, "%s %s", option->name, option->value);
    return bad_usage(error, hint, "%s: its value is empty", option->name);
}

static plim_status keep(struct arguments *out, const struct option *option, const char *value, plim_error *error)
{
    char *field = (char *)out + option->offset;
    switch (option->kind) {
    case TEXT:
        if (!*value)
            return is_empty(option, error);
        *(const char **)field = value;
        return PLIM_OK;
    case OVERRIDE:
        if (out->job.overrides_count == MOST_OVERRIDES)
            return bad_usage(error, "put them into the job file", "too many of --set: '%s'", value);
        out->overrides[out->job.overrides_count++] = value;
        return PLIM_OK;
    case NUMBER:
        if (read_number((long long *)(void *)field, value))
            return PLIM_OK;
        bad_usage(error, "a whole number, at least 1", "'%s' is not a number", value);
        snprintf(error->where, sizeof error->where, "%s", option->name);
        return PLIM_USAGE;
    case FLAG:
        *(bool *)field = true;
        return PLIM_OK;
    case JSON:
        out->json = true;
        out->json_steps |= strcmp(option->name, "--json") != 0;
        return PLIM_OK;
    }
    return PLIM_OK;
}

/* "--name", "--name=value"; the name alone is `length` long. */
static const struct option *find(const char *word, size_t *length)
{
    *length = strcspn(word, "=");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options[i];
        if (strcmp(word, option->name) == 0)
            return option;
        if (option->value && strlen(option->name) == *length && strncmp(word, option->name, *length) == 0)
            return option;
    }
    return NULL;
}

static plim_status unknown(const struct command *command, const char *word, plim_error *error)
{
    const char *names[OPTION_COUNT], *near;
    char hint[128];
    int count = 0;
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options[i].bit & command->takes)
            names[count++] = options[i].name;
    near = nearest_word(word, names, count);
    snprintf(hint, sizeof hint, "plim %s --help", command->name);
    return bad_usage(error, near ? near : hint, "unknown option '%s'", word);
}

static plim_status read_option(struct arguments *out, const struct command *command, int count, char **values, int *i,
                               plim_error *error)
{
    const char *word = strcmp(values[*i], "-h") == 0 ? "--help" : values[*i], *value = NULL;
    size_t length;
    char hint[128];
    const struct option *option = find(word, &length);
    if (!option)
        return unknown(command, word, error);
    snprintf(hint, sizeof hint, "plim %s --help", command->name);
    if (!(option->bit & command->takes))
        return bad_usage(error, hint, "this command takes no '%s'", option->name);
    if (option->value && word[length] == '=')
        value = word + length + 1;
    else if (option->value && *i + 1 < count)
        value = values[++*i];
    if (option->value && !value)
        return bad_usage(error, hint, "the value of '%s' is missing", option->name);
    return keep(out, option, value, error);
}

plim_status arguments_read(struct arguments *out, const struct command *command, int count, char **values,
                           plim_error *error)
{
    *out = (struct arguments){0};
    out->job.overrides = out->overrides;
    out->job.command = command->name;
    for (int i = 0; i < count; i++) {
        if (values[i][0] == '-') {
            plim_status status = read_option(out, command, count, values, &i, error);
            if (status != PLIM_OK)
                return status;
        } else if (out->word_count == MOST_WORDS) {
            return bad_usage(error, command->usage, "one word too many: '%s'", values[i]);
        } else {
            out->words[out->word_count++] = values[i];
        }
    }
    return PLIM_OK;
}

plim_status open_job(plim_job **job, struct arguments *arguments, plim_error *error)
{
    if (arguments->word_count < 1)
        return bad_usage(error, "plim --help", "which job? a file is missing%s", "");
    if (arguments->word_count > 1)
        return bad_usage(error, "plim --help", "one word too many: '%s'", arguments->words[1]);
    return plim_job_open(job, arguments->words[0], &arguments->job, error);
}
