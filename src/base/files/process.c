/* process.c - another program, whose standard output we read.

   1. posix_spawn, not fork: the host has threads, and its memory must not be counted twice.
   2. The program has the signals of a fresh one, whatever the host's thread blocks or ignores.
   3. No descriptor of ours is below 3 or outlives an exec.
   4. A guard leads the process group: a shell that reads from a pipe whose other end we hold (and a host's children
      that never exec), and kills the group when that end is closed, however we ended. What has left the group (timeout,
      setsid) is killed by us alone, so it outlives a kill -9. (PR_SET_PDEATHSIG would kill it when the *thread* that
      started it ends, and not reach what it has started itself.)
   5. The guard is waited for last. Until then nobody else can get the group's number, so killing the group by number
      hits nobody else, unless the host ignores SIGCHLD and the guard was killed.
   6. Nothing blocks: we look at the stop flag every BUDGET_ASK_MS. */
#include "base/files/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/files/file_own.h"
#include "base/memory/budget_stop.h"

/* ---- starting ---- */

static bool make_pipe(int ends[2])
{
    if (file_faulted(FAULT_OPEN) || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    ends[0] = file_lift(ends[0]);
    int error_number = errno;
    ends[1] = file_lift(ends[1]);
    error_number = ends[1] < 0 ? errno : error_number;
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    errno = error_number;
    return false;
}

/* What the child's standard input and output are; -1: /dev/null. */
struct ends {
    int input, output;
};

static int set_end(posix_spawn_file_actions_t *actions, int descriptor, int to)
{
    return descriptor >= 0 ? posix_spawn_file_actions_adddup2(actions, descriptor, to)
                           : posix_spawn_file_actions_addopen(actions, to, "/dev/null", to ? O_WRONLY : O_RDONLY, 0);
}

static int set_actions(posix_spawn_file_actions_t *actions, struct ends ends, const char *folder)
{
    int error_number = set_end(actions, ends.input, 0);
    if (!error_number)
        error_number = set_end(actions, ends.output, 1);
    if (!error_number && folder)
        error_number = posix_spawn_file_actions_addchdir_np(actions, folder);
    return error_number;
}

/* group 0: a new one. */
static int set_signals(posix_spawnattr_t *attributes, pid_t group)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error_number = posix_spawnattr_setsigmask(attributes, &none);
    if (!error_number)
        error_number = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error_number)
        error_number = posix_spawnattr_setpgroup(attributes, group);
    if (!error_number)
        error_number = posix_spawnattr_setflags(attributes,
                                                POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    return error_number;
}

/* A shell with these words. */
static int spawn(pid_t *id, const char *const words[], pid_t group, struct ends ends, const char *folder)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error_number = fault_at(FAULT_THREAD);
    if (error_number > 0)
        return error_number;
    if ((error_number = posix_spawn_file_actions_init(&actions)))
        return error_number;
    if (!(error_number = posix_spawnattr_init(&attributes))) {
        error_number = set_actions(&actions, ends, folder);
        if (!error_number)
            error_number = set_signals(&attributes, group);
        if (!error_number)
            error_number = posix_spawn(id, "/bin/sh", &actions, &attributes, (char *const *)(uintptr_t)words, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error_number;
}

/* -1: nobody knows (the host takes its children's ends away). */
static int wait_for(pid_t id)
{
    int status, times = 0;
    pid_t ended;
    do
        ended = waitpid(id, &status, 0);
    while (ended < 0 && errno == EINTR && ++times < INTERRUPTS_MOST);
    return ended == id ? status : -1;
}

/* First, so that whoever kills us finds it there: a command that is started later joins a group that is guarded, or
   cannot be started, because the guard is gone and the group with it. */
static int start_guard(struct process *process)
{
    static const char *const words[] = {"sh", "-c", "read -r line; kill -9 0", NULL};
    int ends[2];
    if (!make_pipe(ends))
        return errno;
    int error_number = spawn(&process->guard, words, 0, (struct ends){ends[0], -1}, NULL);
    close(ends[0]);
    if (error_number)
        close(ends[1]);
    else
        process->lifeline = ends[1];
    return error_number;
}

static void end_group(struct process *process)
{
    if (process->guard > 1) /* a group of 0 or 1 would be ours, or everybody */
        kill(-process->guard, SIGKILL);
}

static void close_guard(struct process *process)
{
    if (process->guard > 1) {
        end_group(process);
        wait_for(process->guard);
    }
    if (process->lifeline >= 0)
        close(process->lifeline);
    process->guard = 0;
    process->lifeline = -1;
}

static int start_command(struct process *process, const char *command, const char *folder, const char *argument)
{
    const char *const words[] = {"sh", "-c", command, "plim", argument, NULL};
    int ends[2];
    if (!make_pipe(ends))
        return errno;
    /* Ours alone: the two ends of a pipe have flags of their own. */
    int error_number = fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
    if (!error_number)
        error_number = spawn(&process->id, words, process->guard, (struct ends){-1, ends[1]}, folder);
    close(ends[1]);
    if (error_number)
        close(ends[0]);
    else
        process->descriptor = ends[0];
    return error_number;
}

plim_status process_open(struct process *process, struct budget *budget, const char *command, const char *folder,
                         const char *argument, plim_error *error)
{
    size_t shown = strnlen(command, PROCESS_NAME_BYTES - 1);
    *process = (struct process){.budget = budget, .descriptor = -1, .lifeline = -1};
    memcpy(process->name, command, shown);
    int error_number = start_guard(process);
    if (!error_number)
        error_number = start_command(process, command, folder, argument);
    if (!error_number)
        return PLIM_OK;
    close_guard(process);
    return file_io_error(error, process->name, "start the command", error_number);
}

/* ---- reading ---- */

/* Until there is something to read, or a stop is asked for. */
static plim_status wait_readable(const struct process *process, plim_error *error)
{
    int ready = 0;
    while (ready == 0 || (ready < 0 && errno == EINTR)) {
        TRY(budget_go_on(process->budget, error));
        ready = poll(&(struct pollfd){.fd = process->descriptor, .events = POLLIN}, 1, BUDGET_ASK_MS);
    }
    return ready > 0 ? PLIM_OK : file_io_error(error, process->name, "wait for the command", errno);
}

plim_status process_read(size_t *got, struct process *process, void *to, size_t bytes, plim_error *error)
{
    ssize_t n = -1;
    int times = 0, fault = fault_at(FAULT_READ);
    if (fault > 0)
        return file_io_error(error, process->name, "read from the command", fault);
    if (fault == FAULT_SHORT && bytes > 1)
        bytes = 1;
    while ((n = read(process->descriptor, to, bytes)) < 0) {
        if (errno == EAGAIN)
            TRY(wait_readable(process, error));
        else if (errno != EINTR || ++times == INTERRUPTS_MOST)
            return file_io_error(error, process->name, "read from the command", errno);
    }
    *got = (size_t)n;
    return PLIM_OK;
}

/* ---- ending ---- */

/* A command may close its output long before its end. */
static plim_status wait_until_ended(const struct process *process, plim_error *error)
{
    siginfo_t info;
    for (int pause_ms = 1;; pause_ms = pause_ms * 2 < BUDGET_ASK_MS ? pause_ms * 2 : BUDGET_ASK_MS) {
        info.si_pid = 0;
        int answer = waitid(P_PID, (id_t)process->id, &info, WEXITED | WNOHANG | WNOWAIT);
        if (answer == 0 ? info.si_pid != 0 : errno != EINTR) /* ended; or the host takes its ends away */
            return PLIM_OK;
        TRY(budget_go_on(process->budget, error));
        poll(NULL, 0, pause_ms);
    }
}

plim_status process_wait(struct process *process, plim_error *error)
{
    if (!process->id)
        return PLIM_OK;
    TRY(wait_until_ended(process, error));
    int status = wait_for(process->id);
    process->id = 0;
    close_guard(process);
    if (status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return PLIM_OK;
    TRY(budget_go_on(process->budget, error)); /* whoever stopped us may have ended it as well */
    if (WIFSIGNALED(status))
        return fail_at(error, PLIM_IO, process->name, "the command was ended by signal %d", WTERMSIG(status));
    return fail_at(error, PLIM_IO, process->name, "the command ended with status %d",
                   WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* It may have left the group (timeout, setsid). Not where the host has waited for it already: its number may be
   another's by now. */
static void end_command(const struct process *process)
{
    siginfo_t info;
    if (waitid(P_PID, (id_t)process->id, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return;
    kill(-process->id, SIGKILL); /* a group that it leads now; otherwise there is none of this number */
    kill(process->id, SIGKILL);
}

void process_close(struct process *process)
{
    close(process->descriptor);
    if (process->id) {
        end_group(process);
        end_command(process);
        wait_for(process->id);
    }
    close_guard(process);
    *process = (struct process){.descriptor = -1, .lifeline = -1};
}
