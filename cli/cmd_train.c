/* cmd_train.c - plim train: plans, then trains inside the budget. */
#include "command.h"

#include <signal.h>
#include <stddef.h>

static plim_job *running; /* for the signal handler only */

static void on_signal(int number)
{
    (void)number;
    if (running)
        plim_job_stop(running);
}

/* The first signal asks for a checkpoint; a second one ends the process as usual.
   Who started us with a signal ignored (nohup) meant it. */
static void catch_signals(void)
{
    static const int asked[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (sigaction(asked[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(asked[i], &action, NULL);
}

static plim_status train(struct arguments *arguments, struct reports *reports, plim_error *error)
{
    plim_job *job;
    plim_status status = open_job(&job, arguments, error);
    if (status != PLIM_OK)
        return status;
    running = job;
    catch_signals();
    status = plim_job_train(job, reports_listen, reports, error);
    running = NULL;
    plim_job_close(job);
    return status;
}

const struct command command_train = {
    .name = "train",
    .usage = "plim train JOB.yaml [options]",
    .summary = "trains a job inside its memory budget",
    .help = "Plans first; a job that does not fit is refused with the budget that would do, before any\n"
            "record is read. Ctrl-C writes a checkpoint; --resume goes on from it with the same bits.\n\n"
            "  plim train examples/mlp.yaml --memory 16MiB\n",
    .takes = TAKES_JOB | TAKES_TRAIN,
    .works_unheard = true,
    .run = train,
};
