/* workers.c - threads on stacks of the budget, and the team that runs slices.

   How a run is handed out:
   1. The caller writes task, context and units, sets `pending` to the number
      of units and then publishes `todo` (release). Nothing of this changes
      before pending is 0 again.
   2. A worker owns a unit when it has lowered `todo` by one (acquire). Only
      then does it read the task: so a worker that is late by a whole run takes
      a unit of the new one, and takes it rightly.
   3. A worker that finds no more units lowers `pending` by what it has done;
      at 0 the run is over.
   4. Who finds nothing spins for SPIN_NS, then says that it sleeps, looks once
      more, and sleeps. The other side publishes first and looks for sleepers
      after. Both orders are sequentially consistent, so one of the two sees
      the other: no wake-up is lost. */
#include "base/threads/workers.h"

#include "base/numbers/floats.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/numbers/count.h"
#include "base/threads/clock.h"

#define SPIN_NS      20000
#define SPIN_LOOKS   64 /* looks between two looks at the clock */
#define WORKERS_MOST 1024
#define CACHE_LINE   64

/* ---- a thread --------------------------------------------------------- */

struct thread {
    struct budget *budget;
    pthread_t id;
    void *stack;
    size_t stack_bytes; /* with the guard page at its low end */
    void (*run)(void *context);
    void *context;
};

static void *thread_main(void *argument)
{
    struct thread *thread = argument;
    floats_enter(); /* a new thread has its maker's mode, C's default: denormals are numbers there */
    thread->run(thread->context);
    return NULL;
}

/* Our threads take no signals of the host's; those that a fault of our own
   raises stay open, so that it is not silent. */
static void block_signals(sigset_t *before)
{
    static const int open_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < COUNT(open_signals); i++)
        sigdelset(&blocked, open_signals[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

static int create(struct thread *thread)
{
    pthread_attr_t attributes;
    size_t guard = thread->stack_bytes - THREAD_STACK_BYTES;
    int error_number = fault_at(FAULT_THREAD);
    if (error_number)
        return error_number;
    if (mprotect(thread->stack, guard, PROT_NONE) != 0)
        return errno;
    if ((error_number = pthread_attr_init(&attributes)))
        return error_number;
    error_number = pthread_attr_setstack(&attributes, (char *)thread->stack + guard, THREAD_STACK_BYTES);
    if (!error_number) {
        sigset_t before;
        block_signals(&before);
        error_number = pthread_create(&thread->id, &attributes, thread_main, thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return error_number;
}

static void thread_free(struct thread *thread)
{
    budget_give(thread->budget, TAG_STACKS, thread->stack, thread->stack_bytes);
    budget_give(thread->budget, TAG_STACKS, thread, sizeof *thread);
}

static size_t stack_bytes_with_guard(void)
{
    long page = sysconf(_SC_PAGESIZE);
    return THREAD_STACK_BYTES + (page > 0 ? (size_t)page : 4096);
}

bool lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    if (pthread_mutexattr_init(&kind) != 0)
        return false;
    bool made =
        pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP) == 0 && pthread_mutex_init(lock, &kind) == 0;
    pthread_mutexattr_destroy(&kind);
    return made;
}

bool thread_is_self(const struct thread *thread)
{
    return pthread_equal(thread->id, pthread_self());
}

uint64_t thread_cost(void)
{
    return budget_charge(stack_bytes_with_guard()) + budget_charge(sizeof(struct thread));
}

plim_status thread_start(struct thread **out, struct budget *budget, void (*run)(void *context), void *context,
                         plim_error *error)
{
    size_t stack_bytes = stack_bytes_with_guard();
    struct thread *thread = budget_take(budget, TAG_STACKS, sizeof *thread);
    if (!thread)
        return budget_refused(budget, TAG_STACKS, sizeof *thread, error);
    *thread = (struct thread){.budget = budget, .stack_bytes = stack_bytes, .run = run, .context = context};
    thread->stack = budget_take(budget, TAG_STACKS, stack_bytes);
    if (!thread->stack) {
        plim_status status = budget_refused(budget, TAG_STACKS, stack_bytes, error); /* while the record still counts */
        thread_free(thread);
        return status;
    }
    int error_number = create(thread);
    if (error_number) {
        char buffer[128];
        thread_free(thread);
        fail(error, PLIM_NO_MEMORY, "the system starts no more threads: %s",
             strerror_r(error_number, buffer, sizeof buffer));
        return hint(error, PLIM_NO_MEMORY, "use fewer threads, or raise the limit on processes (ulimit -u)");
    }
    *out = thread;
    return PLIM_OK;
}

void thread_join(struct thread *thread)
{
    if (!thread)
        return;
    pthread_join(thread->id, NULL);
    thread_free(thread);
}

int cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long count = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than the set has room for */
    return count > 0 ? (int)count : 1;
}

/* ---- sleeping and spinning -------------------------------------------- */

typedef _Atomic uint32_t word;

static void sleep_while(word *at, uint32_t value)
{
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0); /* wakes early at times: callers look again */
}

static void wake(word *at, uint32_t most)
{
    syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE() atomic_signal_fence(memory_order_seq_cst)
#endif

/* ---- the team --------------------------------------------------------- */

struct member {
    struct team *team;
    struct thread *thread;
    int worker;
};

/* One cache line for each word that different sides write. */
struct team {
    _Alignas(CACHE_LINE) word todo;
    _Alignas(CACHE_LINE) word pending;
    word caller_sleeps;
    _Alignas(CACHE_LINE) word sleepers;
    word bell; /* what sleepers sleep on: changes when they are to wake */
    word stop;
    _Alignas(CACHE_LINE) team_task *task;
    void *context;
    int units;
    int workers;
    bool spins;
    struct budget *budget;
    size_t struct_bytes;
    void (*at_start)(void);
    struct member members[]; /* [workers]; the caller is number 0 */
};

static bool has_work(struct team *team)
{
    return atomic_load_explicit(&team->todo, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&team->stop, memory_order_relaxed) != 0;
}

static bool run_is_over(struct team *team)
{
    return atomic_load_explicit(&team->pending, memory_order_acquire) == 0;
}

static bool spin_until(bool (*ready)(struct team *), struct team *team)
{
    if (ready(team))
        return true;
    if (!team->spins)
        return false;
    for (uint64_t end = clock_ns() + SPIN_NS; clock_ns() < end;)
        for (int i = 0; i < SPIN_LOOKS; i++) {
            if (ready(team))
                return true;
            PAUSE();
        }
    return false;
}

static bool take_unit(int *unit, struct team *team)
{
    uint32_t left = atomic_load_explicit(&team->todo, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak_explicit(&team->todo, &left, left - 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            *unit = team->units - (int)left;
            return true;
        }
    return false;
}

/* Runs what there is; returns how many units that were. */
static uint32_t work(struct team *team, int worker)
{
    uint32_t done = 0;
    for (int unit; take_unit(&unit, team); done++)
        team->task(team->context, unit, worker);
    return done;
}

static void sleep_until_work(struct team *team)
{
    atomic_fetch_add(&team->sleepers, 1);
    for (;;) {
        uint32_t bell = atomic_load(&team->bell);
        if (atomic_load(&team->todo) != 0 || atomic_load(&team->stop))
            break;
        sleep_while(&team->bell, bell);
    }
    atomic_fetch_sub(&team->sleepers, 1);
}

static void member_run(void *argument)
{
    struct member *member = argument;
    struct team *team = member->team;
    if (team->at_start)
        team->at_start();
    while (!atomic_load(&team->stop)) {
        uint32_t done = work(team, member->worker);
        if (done > 0 && atomic_fetch_sub(&team->pending, done) == done && atomic_load(&team->caller_sleeps))
            wake(&team->pending, 1);
        if (!spin_until(has_work, team))
            sleep_until_work(team);
    }
}

static void ring(struct team *team, uint32_t most)
{
    if (atomic_load(&team->sleepers) == 0)
        return;
    atomic_fetch_add(&team->bell, 1);
    wake(&team->bell, most);
}

static void wait_for_the_rest(struct team *team)
{
    if (spin_until(run_is_over, team))
        return;
    atomic_store(&team->caller_sleeps, 1);
    for (uint32_t left; (left = atomic_load(&team->pending)) != 0;)
        sleep_while(&team->pending, left);
    atomic_store(&team->caller_sleeps, 0);
}

void team_run(struct team *team, int units, team_task *task, void *context)
{
    if (units <= 1 || team->workers == 1) {
        for (int unit = 0; unit < units; unit++)
            task(context, unit, 0);
        return;
    }
    team->task = task;
    team->context = context;
    team->units = units;
    atomic_store_explicit(&team->pending, (uint32_t)units, memory_order_relaxed);
    atomic_store(&team->todo, (uint32_t)units);
    ring(team, (uint32_t)units - 1);
    uint32_t done = work(team, 0);
    if (atomic_fetch_sub(&team->pending, done) != done)
        wait_for_the_rest(team);
}

static size_t team_bytes(int workers)
{
    return sizeof(struct team) + (size_t)workers * sizeof(struct member);
}

uint64_t team_cost(int workers)
{
    return budget_charge(team_bytes(workers)) + (uint64_t)(workers - 1) * thread_cost();
}

plim_status team_make(struct team **out, struct budget *budget, int workers, void (*at_start)(void), plim_error *error)
{
    if (workers < 1 || workers > WORKERS_MOST)
        return fail(error, PLIM_USAGE, "%d threads: must be 1 to %d", workers, WORKERS_MOST);
    size_t bytes = team_bytes(workers);
    struct team *team = budget_take(budget, TAG_STACKS, bytes);
    if (!team)
        return budget_refused(budget, TAG_STACKS, bytes, error);
    team->budget = budget;
    team->struct_bytes = bytes;
    team->at_start = at_start;
    team->workers = workers;
    team->spins = workers <= cpu_count(); /* else who spins takes the processor from who works */
    for (int i = 1; i < workers; i++) {
        struct member *member = &team->members[i];
        *member = (struct member){.team = team, .worker = i};
        plim_status status = thread_start(&member->thread, budget, member_run, member, error);
        if (status) {
            team_free(team);
            return status;
        }
    }
    *out = team;
    return PLIM_OK;
}

void team_free(struct team *team)
{
    if (!team)
        return;
    atomic_store(&team->stop, 1);
    atomic_fetch_add(&team->bell, 1);
    wake(&team->bell, INT32_MAX);
    for (int i = 1; i < team->workers; i++)
        thread_join(team->members[i].thread);
    budget_give(team->budget, TAG_STACKS, team, team->struct_bytes);
}
