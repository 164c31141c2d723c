/* plim.c - the program: finds the command, runs it, prints the one line of an
   error. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "commands.def"
#undef COMMAND
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static int print_help(void)
{
    printf("Plimsoll %s - trains neural networks inside a memory budget that you state\n\nusage: plim COMMAND ...\n\n",
           plim_version());
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    printf("\nplim COMMAND --help tells more. Exit codes: 0 done, 1 our fault, 2 usage, 3 bad data, 4 over budget,\n"
           "5 no memory, 6 I/O, 7 stopped (training: with a checkpoint).\n");
    return 0;
}

static int print_command_help(const struct command *command)
{
    printf("usage: %s\n\n%s\n", command->usage, command->help);
    arguments_help(command);
    return 0;
}

#define LAST_WAIT_MS 100

/* A line of an error is worth waiting for, but not after a stop was asked for. */
static bool error_output_waits(void)
{
    return signals_asked() && poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, LAST_WAIT_MS) == 0;
}

/* "where: message; hint", in one line. */
static int print_error(struct reports *reports, const plim_error *error)
{
    if (!error_output_waits())
        fprintf(stderr, "plim: %s%s%s%s%s\n", error->where, error->where[0] ? ": " : "", error->message,
                error->hint[0] ? "; try: " : "", error->hint);
    if (reports->programs)
        plim_report_error(reports->programs, error);
    return plim_status_exit(error->code);
}

void reports_watch(struct reports *reports, const plim_job *job)
{
    plim_report_watch(reports->people, job);
    if (reports->programs)
        plim_report_watch(reports->programs, job);
}

void reports_listen(void *context, const plim_event *event)
{
    struct reports *reports = context;
    plim_report_listen(reports->people, event);
    if (reports->programs)
        plim_report_listen(reports->programs, event);
}

/* One that understands moving back to the start of a line. */
static bool terminal(int descriptor)
{
    const char *kind = getenv("TERM");
    return isatty(descriptor) && !(kind && strcmp(kind, "dumb") == 0);
}

static plim_status make_reports(struct reports *out, const struct arguments *arguments, plim_error *error)
{
    int people = arguments->json ? 2 : 1;
    plim_status status =
        plim_report_make(&out->people, terminal(people) ? PLIM_REPORT_TERMINAL : PLIM_REPORT_PLAIN, people, error);
    if (status == PLIM_OK && arguments->json)
        status = plim_report_make(&out->programs, arguments->json_steps ? PLIM_REPORT_JSON_STEPS : PLIM_REPORT_JSON, 1,
                                  error);
    return status;
}

/* Tells once that lines for standard output did not arrive. What was to be done was done nevertheless: whoever started
   us learns from the exit code that the lines do not say all of it. */
static bool tell_lost(const struct reports *reports, bool json)
{
    const plim_report *output = json ? reports->programs : reports->people;
    int lost = output ? plim_report_lost(output) : 0;
    if (lost && !error_output_waits())
        fprintf(stderr, "plim: standard output: %s; lines were lost\n",
                lost == EAGAIN ? "nobody reads it" : strerror(lost));
    return lost != 0;
}

static int run(const struct command *command, int count, char **values)
{
    struct arguments arguments;
    struct reports reports = {0};
    plim_error error = {0};
    plim_status status = arguments_read(&arguments, command, count, values, &error);
    if (status == PLIM_OK && arguments.help)
        return print_command_help(command);
    if (status == PLIM_OK)
        status = make_reports(&reports, &arguments, &error);
    if (status == PLIM_OK)
        status = command->run(&arguments, &reports, &error);
    int code = status == PLIM_OK ? 0 : print_error(&reports, &error);
    if (tell_lost(&reports, arguments.json) && code == 0)
        code = plim_status_exit(PLIM_IO);
    plim_report_free(reports.programs);
    plim_report_free(reports.people);
    return code;
}

/* One malloc arena: threads would otherwise map one each. Blocks that oneDNN
   frees go back to the system early. */
static void settle_malloc(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, 64 * 1024);
}

/* A file that is opened where standard output was closed would get our lines. */
static void fill_standard_streams(void)
{
    int descriptor;
    do
        descriptor = open("/dev/null", O_RDWR);
    while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor >= 0)
        close(descriptor);
}

static int unknown_command(const char *word)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    const char *near = nearest_word(word, names, (int)COMMAND_COUNT);
    char hint[64];
    plim_error error;
    snprintf(hint, sizeof hint, "plim %s", near ? near : "--help");
    bad_usage(&error, hint, "unknown command '%s'", word);
    return print_error(&(struct reports){0}, &error);
}

static int choose(int count, char **values)
{
    if (count < 2 || strcmp(values[1], "--help") == 0 || strcmp(values[1], "-h") == 0 || strcmp(values[1], "help") == 0)
        return count < 2 ? print_help(), 2 : print_help();
    if (strcmp(values[1], "--version") == 0) {
        printf("plim %s\n", plim_version());
        return 0;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(values[1], commands[i]->name) == 0)
            return run(commands[i], count - 2, values + 2);
    return unknown_command(values[1]);
}

int main(int count, char **values)
{
    fill_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a reader that is gone must not end a run: it is an error number then */
    settle_malloc();
    int code = choose(count, values);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "plim: standard output: not all of it could be written\n");
    return code ? code : plim_status_exit(PLIM_IO);
}
