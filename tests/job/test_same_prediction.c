/* test_same_prediction.c - a plan that is asked for (plim_job_plan) and a run that plans for itself (plim_job_train)
   predict the same bytes: in all, and by tag.

   Each is a child of this process, so that both have the same addresses, and with them the same page tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "plimsoll.h"

#define DATA(shape, classes, pipeline)                                                                                 \
    "data:\n  train: {random: {elements: 500, shape: " shape ", classes: " classes ", seed: 1}, pipeline: " pipeline   \
    "}\n"
#define VALIDATION "  validation: {random: {elements: 50, shape: [20], classes: 4, seed: 2}, pipeline: [batch: 25]}\n"
#define TRAIN      "train: {optimizer: adam, loss: sparse_categorical_crossentropy}\n"

/* One that keeps nothing, one with validation and a cache, many layers (planning itself is the peak), convolutions
   (oneDNN), a recurrent layer. */
static const struct {
    const char *name, *text;
} jobs[] = {
    {"dense", DATA("[20]", "4", "[batch: 25]") "model: [Dense: 30, Dense: 4]\n" TRAIN},
    {"validation", DATA("[20]", "4", "[shuffle: exact, cache, batch: 25, prefetch: auto]") VALIDATION
     "model: [Dense: 30, Dense: 4]\n" TRAIN},
    {"layers", DATA("[8]", "4", "[batch: 4]") "model: [%s Dense: 4]\n" TRAIN},
    {"convolutions",
     DATA("[16, 16, 3]", "4", "[batch: 8]") "model: [Conv2D: {filters: 8, kernel_size: 3, activation: relu}, "
                                            "MaxPooling2D, Flatten, Dense: 4]\n" TRAIN},
    {"recurrent", DATA("[10, 8]", "4", "[batch: 8]") "model: [LSTM: 16, Dense: 4]\n" TRAIN},
};
static const char *const budgets[] = {"24MiB", "64MiB", "1GiB"};

static void write_job(const char *path, const char *text)
{
    char layers[16384] = "";
    for (size_t i = 0, length = 0; i < 400; i++)
        length += (size_t)snprintf(layers + length, sizeof layers - length, "Dense: 8, ");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    const char *many = strstr(text, "%s");
    fprintf(file, "%.*s%s%s", many ? (int)(many - text) : (int)strlen(text), text, many ? layers : "",
            many ? many + 2 : "");
    fclose(file);
}

/* The JSON of the plan on its way out of the run: nothing is trained. */
static void send_plan(void *context, const plim_event *event)
{
    int out = *(int *)context;
    if (event->kind != PLIM_EVENT_PLAN)
        return;
    size_t bytes = strlen(event->plan->json);
    _exit(write(out, event->plan->json, bytes) == (ssize_t)bytes ? 0 : 1);
}

static void plan_in_child(const char *path, const char *memory, bool run, int out)
{
    plim_job *job;
    plim_plan_report report;
    plim_error error = {0};
    plim_job_options options = {.memory = memory};
    if (plim_job_open(&job, path, &options, &error) == PLIM_OK && run)
        (void)plim_job_train(job, send_plan, &out, &error);
    else if (error.code == PLIM_OK && plim_job_plan(&report, job, &error) == PLIM_OK)
        send_plan(&out, &(plim_event){.kind = PLIM_EVENT_PLAN, .plan = &report});
    fprintf(stderr, "%s: %s\n", error.where, error.message);
    _exit(2);
}

static void plan(char *json, size_t capacity, const char *path, const char *memory, bool run)
{
    int ends[2], status = 0;
    size_t length = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        plan_in_child(path, memory, run, ends[1]);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], json + length, capacity - 1 - length)) > 0;)
        length += (size_t)got;
    json[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The number, or the object, behind a key. */
static void copy_value(char out[1024], const char *json, const char *key)
{
    const char *at = strstr(json, key);
    assert_non_null(at);
    at += strlen(key);
    snprintf(out, 1024, "%.*s", (int)(*at == '{' ? strcspn(at, "}") : strcspn(at, ",}")), at);
}

static void plans_and_runs_predict_the_same(void **state)
{
    static char planned[16384], run[16384];
    static const char *const keys[] = {"\"predicted_peak_bytes\":", "\"smallest_budget_bytes\":", "\"by_tag\":",
                                       "\"techniques\":", "\"arena_bytes\":"};
    char path[256], one[1024], other[1024];
    (void)state;
    memset(planned, ' ', sizeof planned);
    memset(run, ' ', sizeof run);
    snprintf(path, sizeof path, "%s/plim-same-prediction-%ld.yaml", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (long)getpid());
    int differences = 0;
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        write_job(path, jobs[j].text);
        for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++) {
            plan(run, sizeof run, path, budgets[b], false); /* whatever this process touches is touched now */
            plan(planned, sizeof planned, path, budgets[b], false);
            plan(run, sizeof run, path, budgets[b], true);
            for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
                copy_value(one, planned, keys[k]);
                copy_value(other, run, keys[k]);
                if (strcmp(one, other) == 0)
                    continue;
                print_error("%s in %s: %s\n  plan  %s\n  train %s\n", jobs[j].name, budgets[b], keys[k], one, other);
                differences++;
            }
        }
    }
    unlink(path);
    assert_int_equal(differences, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_and_runs_predict_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
