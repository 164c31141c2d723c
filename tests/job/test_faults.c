/* test_faults.c - every allocation, file call and thread start of a whole run
   fails, once and for ever.

   The run: train, stop in the middle of the second epoch (checkpoint), resume
   to the end, save the weights; all of it with the n-th call failing, for
   n = 1, 2, ... until a run does not reach its fault any more. After each:

   1. an error with a code that fits the fault and a message, or the right
      result (the call was advice, or was tried again);
   2. no file, thread, descriptor or block of memory is left over (of blocks
      budget_free is sure in builds with assertions, and LeakSanitizer);
   3. a checkpoint that was there before the fault is still there: a clean
      resume does not begin before it, and ends with the same weights. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "await.h"
#include "base/fault.h"
#include "base/numbers/count.h"
#include "base/threads/clock.h"
#include "base/threads/workers.h"
#include "folder_entries.h"
#include "plimsoll.h"

#define ELEMENTS    20
#define SIDE        28 /* of an image */
#define STEPS       10 /* 2 epochs of 5 */
#define STOP_AT     7
#define SAVE_EVERY  3
#define PATH_BYTES  512
#define MOST_FAULTS 100000 /* a sweep that does not end is an error */

/* ---- what is run ------------------------------------------------------- */

struct job_kind {
    const char *name;
    const char *text;
    bool wide; /* with the less usual error numbers too */
};

#define TRAIN                                                                                                          \
    "train: {optimizer: adam, loss: sparse_categorical_crossentropy, metrics: [accuracy], epochs: 2,\n"                \
    "        callbacks: [checkpoint: {every: 3}], save_weights: weights.safetensors}\n"

static const struct job_kind random_job = {
    "random",
    "memory: 64GiB\n"
    "seed: 7\n"
    "data:\n"
    "  train: {random: {elements: 20, shape: [6], classes: 3, seed: 1},\n"
    "          pipeline: [shuffle: exact, batch: 4, prefetch: 2]}\n"
    "  validation: {random: {elements: 6, shape: [6], classes: 3, seed: 2}, pipeline: [batch: 4]}\n"
    "model: [Dense: {units: 8, activation: relu}, Dense: {units: 3, activation: softmax}]\n" TRAIN,
    false};

static const struct job_kind npy_job = {
    "npy",
    "memory: auto\n"
    "data:\n"
    "  train: {npy: [x.npy, y.npy], pipeline: [shuffle: exact, batch: 4, prefetch: 2]}\n"
    "model: [Dense: {units: 3, activation: softmax}]\n" TRAIN,
    true};

/* Enough work for a second worker, and for a kernel of oneDNN. */
static const struct job_kind idx_job = {
    "idx",
    "memory: 64GiB\n"
    "data:\n"
    "  train: {idx: [x.idx.gz, y.idx.gz], pipeline: [map: {rescale: 1/255}, shuffle: exact, batch: 4]}\n"
    "model: [Conv2D: {filters: 96, kernel_size: 3, activation: relu}, MaxPooling2D: 2, Flatten,\n"
    "        Dense: {units: 3, activation: softmax}]\n" TRAIN,
    false};

/* What one batch leaves for the next is in the checkpoint too. */
static const struct job_kind states_job = {
    "states",
    "memory: 64GiB\n"
    "seed: 7\n"
    "data:\n"
    "  train: {random: {elements: 20, shape: [2, 5, 4, 2], classes: 3, seed: 1}, pipeline: [shuffle: exact, batch: 4]}\n"
    "  validation: {random: {elements: 8, shape: [2, 5, 4, 2], classes: 3, seed: 2}, pipeline: [batch: 4]}\n"
    "model: [ConvLSTM2D: {filters: 3, kernel_size: 3, padding: same, return_sequences: true, stateful: true},\n"
    "        TimeDistributed: {layer: {Functional: [Flatten, Dropout: 0.5, Add: [flatten, dropout]]}},\n"
    "        GRU: {units: 4, stateful: true},\n"
    "        SpectralNormalization: {layer: {Dense: 3}}, Softmax]\n" TRAIN,
    false};

/* ---- files ------------------------------------------------------------- */

static char folder[256]; /* of the group: made in set_up */

static void path_in(char out[PATH_BYTES], const char *name)
{
    snprintf(out, PATH_BYTES, "%s/%s", folder, name);
}

static void write_file(const char *name, const void *data, size_t bytes)
{
    char path[PATH_BYTES];
    path_in(path, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, bytes, out), bytes);
    assert_int_equal(fclose(out), 0);
}

static void write_npy(const char *name, const char *type, const char *shape, const void *data, size_t bytes)
{
    char file[4096] = "\x93NUMPY\x01", header[119];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(file + 10, ' ', 118);
    memcpy(file + 10, header, strlen(header));
    file[8] = 118;
    file[127] = '\n';
    assert_true(128 + bytes <= sizeof file);
    memcpy(file + 128, data, bytes);
    write_file(name, file, 128 + bytes);
}

static void write_idx_gz(const char *name, const unsigned char *header, unsigned header_bytes, const void *data,
                         unsigned bytes)
{
    char path[PATH_BYTES];
    path_in(path, name);
    gzFile out = gzopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(gzwrite(out, header, header_bytes), header_bytes);
    assert_int_equal(gzwrite(out, data, bytes), bytes);
    assert_int_equal(gzclose(out), Z_OK);
}

static void write_data(void)
{
    float x[ELEMENTS][6];
    int32_t y[ELEMENTS];
    unsigned char image[ELEMENTS][SIDE * SIDE], label[ELEMENTS];
    static const unsigned char image_header[] = {0, 0, 8, 3, 0, 0, 0, ELEMENTS, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    static const unsigned char label_header[] = {0, 0, 8, 1, 0, 0, 0, ELEMENTS};
    for (int i = 0; i < ELEMENTS; i++) {
        y[i] = label[i] = (unsigned char)(i % 3);
        for (int j = 0; j < 6; j++)
            x[i][j] = (float)((i * 7 + j * 3) % 11) / 11.0f;
        for (int j = 0; j < SIDE * SIDE; j++)
            image[i][j] = (unsigned char)(i * 37 + j * 11);
    }
    write_npy("x.npy", "<f4", "(20, 6)", x, sizeof x);
    write_npy("y.npy", "<i4", "(20,)", y, sizeof y);
    write_idx_gz("x.idx.gz", image_header, sizeof image_header, image, sizeof image);
    write_idx_gz("y.idx.gz", label_header, sizeof label_header, label, sizeof label);
}

/* A disk would take ten times as long: thousands of runs, each with a dozen fsyncs. */
static int set_up(void **state)
{
    const char *temporary = getenv("TMPDIR");
    (void)state;
    if (!temporary || !*temporary)
        temporary = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%.200s/plim-faults-XXXXXX", temporary);
    if (!mkdtemp(folder))
        return 1;
    write_data();
    return 0;
}

/* Calls `visit` for every file of a folder below ours. */
static void each_file(const char *below, void (*visit)(const char *path, void *context), void *context)
{
    char path[PATH_BYTES], file[2 * PATH_BYTES];
    path_in(path, below);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
            visit(file, context);
        }
    if (dir)
        closedir(dir);
}

static void remove_file(const char *path, void *context)
{
    (void)context;
    unlink(path);
}

/* As before any training. */
static void forget_runs(void)
{
    char path[PATH_BYTES];
    each_file("job.plim", remove_file, NULL);
    path_in(path, "job.plim");
    rmdir(path);
    path_in(path, "weights.safetensors");
    unlink(path);
}

static int tear_down(void **state)
{
    (void)state;
    forget_runs();
    each_file(".", remove_file, NULL);
    return rmdir(folder);
}

static void find_leftover(const char *path, void *context)
{
    static const char *const ours[] = {"job.yaml",
                                       "x.npy",
                                       "y.npy",
                                       "weights.safetensors",
                                       "x.idx.gz",
                                       "y.idx.gz",
                                       "job.plim",
                                       "checkpoint.safetensors",
                                       "checkpoint.previous.safetensors",
                                       "calibration.json",
                                       "lock"};
    const char *name = strrchr(path, '/') + 1;
    for (int i = 0; i < COUNT(ours); i++)
        if (strcmp(name, ours[i]) == 0)
            return;
    snprintf(context, PATH_BYTES, "%s", name);
}

/* The name of a file that nobody should have left here, or "". */
static void leftover(char name[PATH_BYTES])
{
    name[0] = '\0';
    each_file(".", find_leftover, name);
    each_file("job.plim", find_leftover, name);
}

/* ---- one run ----------------------------------------------------------- */

struct told {
    plim_job *job;
    int64_t stop_at;
    int64_t first_step, last_step; /* of the whole training, from 1; 0: none */
    char weights[65];
    bool unkept; /* a note says that the calibration was not written */
};

static void listen(void *context, const plim_event *event)
{
    struct told *told = context;
    if (event->kind == PLIM_EVENT_STEP) {
        told->last_step = event->progress->total_steps;
        if (!told->first_step)
            told->first_step = told->last_step;
        if (told->last_step == told->stop_at)
            plim_job_stop(told->job);
    }
    if (event->kind == PLIM_EVENT_END && event->end->note && strstr(event->end->note, "was not kept"))
        told->unkept = true;
    if (event->kind == PLIM_EVENT_END && event->end->weights_digest)
        snprintf(told->weights, sizeof told->weights, "%s", event->end->weights_digest);
}

static plim_status run(struct told *told, bool resume, int64_t stop_at, plim_error *error)
{
    char path[PATH_BYTES];
    plim_job_options options = {.threads = "compute=2,data=1", .resume = resume, .digest = true};
    *told = (struct told){.stop_at = stop_at, .unkept = told->unkept};
    *error = (plim_error){0};
    path_in(path, "job.yaml");
    plim_status status = plim_job_open(&told->job, path, &options, error);
    if (status != PLIM_OK)
        return status;
    status = plim_job_train(told->job, listen, told, error);
    plim_job_close(told->job);
    return status;
}

/* Train, stop, resume. *saved_step is the last step known to be in a checkpoint. */
static plim_status run_twice(struct told *told, int64_t *saved_step, plim_error *error)
{
    plim_status status = run(told, false, STOP_AT, error);
    /* A step that was told after a save says that the save went well. */
    *saved_step = told->last_step ? (told->last_step - 1) / SAVE_EVERY * SAVE_EVERY : 0;
    if (status != PLIM_INTERRUPTED)
        return status;
    *saved_step = STOP_AT;
    return run(told, true, 0, error);
}

/* ---- a sweep ----------------------------------------------------------- */

struct fault_kind {
    const char *name;
    unsigned site;
    int number;
    plim_status code;                                  /* what a failed run says */
    enum { ANY_WAY, MUST_FAIL, MUST_GO_WELL } outcome; /* the last one: when it happens once */
    bool unusual;
};

static const struct fault_kind fault_kinds[] = {
    {"allocate: ENOMEM", FAULT_ALLOCATE, ENOMEM, PLIM_NO_MEMORY, MUST_FAIL, false},
    {"open: EMFILE", FAULT_OPEN, EMFILE, PLIM_IO, ANY_WAY, false},
    {"open: EINTR", FAULT_OPEN, EINTR, PLIM_IO, MUST_GO_WELL, true},
    {"read: EIO", FAULT_READ, EIO, PLIM_IO, ANY_WAY, false},
    {"read: EINTR", FAULT_READ, EINTR, PLIM_IO, MUST_GO_WELL, true},
    {"read: short", FAULT_READ, 0, PLIM_OK, MUST_GO_WELL, false},
    {"write: ENOSPC", FAULT_WRITE, ENOSPC, PLIM_IO, MUST_FAIL, false},
    {"write: EIO", FAULT_WRITE, EIO, PLIM_IO, MUST_FAIL, true},
    {"write: EINTR", FAULT_WRITE, EINTR, PLIM_IO, MUST_GO_WELL, true},
    {"write: short", FAULT_WRITE, 0, PLIM_OK, MUST_GO_WELL, false},
    {"sync: EIO", FAULT_SYNC, EIO, PLIM_IO, MUST_FAIL, false},
    {"sync: ENOSPC", FAULT_SYNC, ENOSPC, PLIM_IO, MUST_FAIL, true},
    {"rename: EACCES", FAULT_RENAME, EACCES, PLIM_IO, ANY_WAY, false},
    {"rename: ENOSPC", FAULT_RENAME, ENOSPC, PLIM_IO, ANY_WAY, true},
    {"stat: EIO", FAULT_STAT, EIO, PLIM_IO, ANY_WAY, false},
    {"thread: EAGAIN", FAULT_THREAD, EAGAIN, PLIM_NO_MEMORY, MUST_FAIL, false},
};

struct held;

struct sweep {
    const struct job_kind *job;
    const struct fault_kind *fault;
    bool forever;
    char name[64];
    const struct held *held; /* before the first run */
};

/* What the process holds outside of runs. */
struct held {
    int descriptors, threads;
};

static struct held held_now(void)
{
    return (struct held){entries("/proc/self/fd"), entries("/proc/self/task")};
}

static void nothing_is_held(const struct held *before, int nth)
{
    struct held now = held_now();
    /* The kernel lists a joined thread for a moment longer. */
    for (int i = 0; i < 1000 && now.threads > before->threads; i++) {
        usleep(1000);
        now = held_now();
    }
    if (now.descriptors != before->descriptors || now.threads > before->threads)
        fail_msg("fault %d: %d descriptors and %d threads are left over", nth, now.descriptors - before->descriptors,
                 now.threads - before->threads);
}

static void check_outcome(const struct sweep *sweep, int nth, plim_status status, const plim_error *error,
                          const struct told *told, const char *want)
{
    const struct fault_kind *fault = sweep->fault;
    if (status == PLIM_OK) {
        if (strcmp(told->weights, want) != 0)
            fail_msg("fault %d: went well with other weights", nth);
        if (fault->outcome == MUST_FAIL && !told->unkept)
            fail_msg("fault %d: nobody noticed", nth);
        return;
    }
    if (status != fault->code || (fault->outcome == MUST_GO_WELL && !sweep->forever))
        fail_msg("fault %d: %s: %s: %s", nth, plim_status_name(status), error->where, error->message);
    if (error->code != status || !error->message[0])
        fail_msg("fault %d: %s, but the error says %s '%s'", nth, plim_status_name(status),
                 plim_status_name(error->code), error->message);
}

static void check_files(const struct sweep *sweep, int nth)
{
    char name[PATH_BYTES];
    leftover(name);
    /* Where no file can be removed any more, a temporary one has to stay. */
    if (name[0] && !(sweep->fault->site == FAULT_RENAME && sweep->forever))
        fail_msg("fault %d leaves %s behind", nth, name);
}

static void check_resumes(int nth, int64_t saved_step, const char *want)
{
    struct told told = {0};
    plim_error error;
    char name[PATH_BYTES];
    plim_status status = run(&told, true, 0, &error);
    if (status != PLIM_OK)
        fail_msg("after fault %d: %s: %s", nth, error.where, error.message);
    if (told.first_step && told.first_step <= saved_step)
        fail_msg("after fault %d: step %d was in a checkpoint, but is done again", nth, (int)told.first_step);
    if (strcmp(told.weights, want) != 0)
        fail_msg("after fault %d: a clean resume ends with other weights", nth);
    leftover(name);
    if (name[0])
        fail_msg("after fault %d: a clean resume leaves %s behind", nth, name);
}

/* One value of n; whether its fault was reached. */
static bool fail_one(const struct sweep *sweep, int nth, const char *want, int *harmless)
{
    struct told told = {0};
    plim_error error;
    int64_t saved_step;
    forget_runs();
    fault_arm(sweep->fault->site, nth, sweep->forever, sweep->fault->number);
    plim_status status = run_twice(&told, &saved_step, &error);
    bool reached = fault_disarm();
    if (!reached && status != PLIM_OK)
        fail_msg("without a fault: %s: %s", error.where, error.message);
    nothing_is_held(sweep->held, nth);
    if (reached)
        check_outcome(sweep, nth, status, &error, &told, want);
    check_files(sweep, nth);
    check_resumes(nth, saved_step, want);
    *harmless += reached && status == PLIM_OK;
    return reached;
}

static void whole_run(char weights[65], const struct job_kind *job)
{
    struct told told = {0};
    plim_error error;
    forget_runs();
    write_file("job.yaml", job->text, strlen(job->text));
    if (run(&told, false, 0, &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    assert_int_equal(told.last_step, STEPS);
    assert_int_equal(strlen(told.weights), 64);
    memcpy(weights, told.weights, 65);
}

/* Short transfers from the n-th on: every n would repeat what `once` has shown. */
static int stride_of(const struct sweep *sweep)
{
    return sweep->forever && sweep->fault->number == 0 ? 16 : 1;
}

static void sweeps(void **state)
{
    const struct sweep *sweep = *state;
    char want[65];
    int nth = 1, stride = stride_of(sweep), runs = 0, harmless = 0;
    whole_run(want, sweep->job);
    uint64_t begin = clock_ns();
    for (; fail_one(sweep, nth, want, &harmless); nth += stride, runs++)
        if (nth > MOST_FAULTS)
            fail_msg("no end after %d faults", MOST_FAULTS);
    print_message("  %d faults%s, %d of them harmless, %.1f s\n", runs, stride > 1 ? " (every 16th)" : "", harmless,
                  (double)(clock_ns() - begin) * 1e-9);
    assert_true(runs > 0);
}

/* With a word: only the sweeps of that name, as in 'idx, *'. */
static void tell_id(void *context)
{
    *(pid_t *)context = (pid_t)syscall(SYS_gettid);
}

/* What a process holds from its first thread on is not left over by a run: a sanitizer has a thread of its own. */
static struct held held_at_first(void)
{
    struct budget *budget;
    struct thread *thread;
    pid_t id = 0;
    if (budget_make(&budget, BUDGET_UNLIMITED, NULL) != PLIM_OK)
        exit(1);
    if (thread_start(&thread, budget, tell_id, &id, NULL) != PLIM_OK)
        exit(1);
    thread_join(thread);
    budget_free(budget);
    if (!await(thread_is_gone, &id))
        exit(1);
    return held_now();
}

int main(int argument_count, char **arguments)
{
    static const struct job_kind *const jobs[] = {&random_job, &npy_job, &idx_job, &states_job};
    static struct sweep list[2 * COUNT(jobs) * COUNT(fault_kinds)];
    static struct CMUnitTest tests[COUNT(list)];
    struct held held = held_at_first();
    size_t count = 0;
    for (int job = 0; job < COUNT(jobs); job++)
        for (int kind = 0; kind < COUNT(fault_kinds); kind++)
            for (int forever = 0; forever < 2; forever++) {
                struct sweep *sweep = &list[count];
                if (fault_kinds[kind].unusual && !jobs[job]->wide)
                    continue;
                *sweep =
                    (struct sweep){.job = jobs[job], .fault = &fault_kinds[kind], .forever = forever, .held = &held};
                snprintf(sweep->name, sizeof sweep->name, "%s, %s, %s", jobs[job]->name, fault_kinds[kind].name,
                         forever ? "for ever" : "once");
                tests[count++] = (struct CMUnitTest){sweep->name, sweeps, NULL, NULL, sweep};
            }
    if (argument_count > 1)
        cmocka_set_test_filter(arguments[1]);
    return _cmocka_run_group_tests("faults", tests, count, set_up, tear_down);
}
