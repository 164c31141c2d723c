/* process.c - another program, whose standard output we read.

   1. posix_spawn, not fork: the host has threads, and its memory must not be counted twice.
   2. The program has the signals of a fresh one, whatever the host's thread blocks or ignores.
   3. No descriptor of ours is below 3 or outlives an exec. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file_own.h"

#define INTERRUPTS_MOST 10000

/* ---- starting ---- */

/* Above the standard streams, so that a host that has closed one of its own is not mistaken for ours. */
static int lift(int descriptor)
{
    if (descriptor < 0 || descriptor > 2)
        return descriptor;
    int lifted = fcntl(descriptor, F_DUPFD_CLOEXEC, 3), error_number = errno;
    close(descriptor);
    errno = error_number;
    return lifted;
}

static bool make_pipe(int ends[2])
{
    if (file_faulted(FAULT_OPEN) || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    ends[0] = lift(ends[0]);
    int error_number = errno;
    ends[1] = lift(ends[1]);
    error_number = ends[1] < 0 ? errno : error_number;
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    errno = error_number;
    return false;
}

static int set_actions(posix_spawn_file_actions_t *actions, int output, const char *folder)
{
    int error_number = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error_number)
        error_number = posix_spawn_file_actions_adddup2(actions, output, 1);
    if (!error_number && folder)
        error_number = posix_spawn_file_actions_addchdir_np(actions, folder);
    return error_number;
}

static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error_number = posix_spawnattr_setsigmask(attributes, &none);
    if (!error_number)
        error_number = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error_number)
        error_number = posix_spawnattr_setpgroup(attributes, 0);
    if (!error_number)
        error_number = posix_spawnattr_setflags(attributes,
                                                POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    return error_number;
}

static int spawn(pid_t *id, const char *command, const char *folder, const char *argument, int output)
{
    char *const arguments[] = {
        (char *)"sh", (char *)"-c", (char *)(uintptr_t)command, (char *)"plim", (char *)(uintptr_t)argument, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error_number = fault_at(FAULT_THREAD);
    if (error_number > 0)
        return error_number;
    if ((error_number = posix_spawn_file_actions_init(&actions)))
        return error_number;
    if (!(error_number = posix_spawnattr_init(&attributes))) {
        error_number = set_actions(&actions, output, folder);
        if (!error_number)
            error_number = set_signals(&attributes);
        if (!error_number)
            error_number = posix_spawn(id, "/bin/sh", &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error_number;
}

plim_status process_open(struct process *process, const char *command, const char *folder, const char *argument,
                         plim_error *error)
{
    int ends[2];
    size_t shown = strnlen(command, PROCESS_NAME_BYTES - 1);
    *process = (struct process){.descriptor = -1};
    memcpy(process->name, command, shown);
    if (!make_pipe(ends))
        return file_io_error(error, process->name, "start the command", errno);
    int error_number = spawn(&process->id, command, folder, argument, ends[1]);
    close(ends[1]);
    if (error_number) {
        close(ends[0]);
        return file_io_error(error, process->name, "start the command", error_number);
    }
    process->descriptor = ends[0];
    return PLIM_OK;
}

/* ---- reading ---- */

plim_status process_read(size_t *got, struct process *process, void *to, size_t bytes, plim_error *error)
{
    ssize_t n = -1;
    int times = 0, fault = fault_at(FAULT_READ);
    if (fault > 0)
        return file_io_error(error, process->name, "read from the command", fault);
    if (fault == FAULT_SHORT && bytes > 1)
        bytes = 1;
    do
        n = read(process->descriptor, to, bytes);
    while (n < 0 && errno == EINTR && ++times < INTERRUPTS_MOST);
    if (n < 0)
        return file_io_error(error, process->name, "read from the command", errno);
    *got = (size_t)n;
    return PLIM_OK;
}

/* ---- ending ---- */

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

plim_status process_wait(struct process *process, plim_error *error)
{
    if (!process->id)
        return PLIM_OK;
    int status = wait_for(process->id);
    process->id = 0;
    if (status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return PLIM_OK;
    if (WIFSIGNALED(status))
        return fail_at(error, PLIM_IO, process->name, "the command was ended by signal %d", WTERMSIG(status));
    return fail_at(error, PLIM_IO, process->name, "the command ended with status %d",
                   WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

void process_close(struct process *process)
{
    close(process->descriptor);
    if (process->id > 1) { /* a group of 0 or 1 would be ours, or everybody */
        kill(-process->id, SIGKILL); /* with what it has started itself */
        wait_for(process->id);
    }
    *process = (struct process){.descriptor = -1};
}
