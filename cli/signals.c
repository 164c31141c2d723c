/* signals.c - INT, TERM and HUP ask for an end; before and after they do what they always do.

   The first signal asks: the job ends by itself, with a checkpoint where it trains. An INT or TERM that comes seconds
   later ends the process as usual; one right behind the first is the same request once more, because shells, terminals
   that are closed and timeout(1) send it to the process and to its group. HUP only asks. Who started us with a signal
   ignored (nohup) meant it. */
#include "command.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static const int asking[] = {SIGINT, SIGTERM, SIGHUP};
#define ASKING_COUNT (sizeof asking / sizeof *asking)

/* For the handler only. */
static plim_job *volatile watched;
static volatile sig_atomic_t asked;
static volatile sig_atomic_t asked_at; /* seconds; set before `asked` */

#define AGAIN_S 2

/* clock_gettime, signal and raise are allowed in a handler. */
static void on_signal(int number)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!asked) {
        asked_at = (sig_atomic_t)now.tv_sec;
        asked = 1;
    } else if (number != SIGHUP && now.tv_sec - asked_at >= AGAIN_S) {
        signal(number, SIG_DFL);
        raise(number); /* delivered when this returns */
    }
    if (watched)
        plim_job_stop(watched);
}

static bool is_ignored(int number)
{
    struct sigaction before;
    return sigaction(number, NULL, &before) != 0 || before.sa_handler == SIG_IGN;
}

static void handle(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ASKING_COUNT; i++)
        if (!is_ignored(asking[i]))
            sigaction(asking[i], &action, NULL);
}

void signals_watch(plim_job *job)
{
    watched = job;
    handle(on_signal, SA_RESTART);
}

void signals_release(void)
{
    handle(SIG_DFL, 0);
    watched = NULL;
}

bool signals_asked(void)
{
    return asked != 0;
}
