/* test_plan_growth.c - planning takes n log n steps in the size of the model, over families of growing models.

   Steps are counted (base/memory/work.h), not timed: nodes, names, readers, blocks and accesses that the planners look
   at. Each family is planned at n, 2n, 4n and 8n; steps / (n log n) may not grow. The table is printed. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory/work.h"
#include "job/job.h"

#define MOST_TEXT   ((size_t)900 * 1024)
#define DOUBLINGS   4
#define SMALL_STACK ((size_t)256 * 1024)
#define MOST_GROWTH 1.5 /* of steps / (n log n), from n to 8n; n^2 would be 4.6 at the least */

/* ---- families ---------------------------------------------------------- */

struct text_of {
    char *text;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text_of *out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(out->text + out->length, MOST_TEXT - out->length, format, list);
    va_end(list);
    assert_true(length >= 0 && out->length + (size_t)length < MOST_TEXT);
    out->length += (size_t)length;
}

static void repeat(struct text_of *out, int n, const char *entry)
{
    for (int i = 0; i < n; i++)
        add(out, "  - %s\n", entry);
}

static void chain(struct text_of *out, int n)
{
    repeat(out, n, "Dense: {units: 8, activation: relu}");
}

/* No two layers are of one shape. */
static void shapes(struct text_of *out, int n)
{
    for (int i = 0; i < n; i++)
        add(out, "  - Dense: %d\n", 8 + i % 200 + (i / 200) * 7);
}

static void operations(struct text_of *out, int n)
{
    repeat(out, n, "Rescaling: 0.5");
    repeat(out, n, "Activation: gelu");
}

static void normalized(struct text_of *out, int n)
{
    for (int i = 0; i < n; i++)
        add(out, "  - Dense: {units: 8, kernel_regularizer: l2}\n  - BatchNormalization\n  - Dropout: 0.1\n");
}

static void shared_layer(struct text_of *out, int n)
{
    add(out, "  - Dense: {units: 8, name: a}\n");
    repeat(out, n, "a");
}

static void shared_model(struct text_of *out, int n)
{
    add(out, "  - Sequential: {name: m, layers: [Dense: 8, Dense: {units: 8, activation: relu}]}\n");
    repeat(out, n, "m");
}

/* n = 2^depth uses of one layer, by models that use a model twice. */
static void nested_uses(struct text_of *out, int n)
{
    int depth = 0;
    while (1 << (depth + 1) <= n)
        depth++;
    add(out, "  - Sequential: {layers: ");
    for (int level = depth - 1; level > 0; level--)
        add(out, "[Sequential: {name: l%d, layers: ", level);
    add(out, "[Dense: {units: 8, name: l0}, l0]");
    for (int level = 1; level < depth; level++)
        add(out, "}, l%d]", level);
    add(out, "}\n");
}

/* Models of one layer each, side by side. */
static void nested_width(struct text_of *out, int n)
{
    repeat(out, n, "Sequential: [Sequential: [Dense: 8]]");
}

static void names(struct text_of *out, const char *class, const char *prefix, int n)
{
    add(out, "  - %s: {inputs: [", class);
    for (int i = 0; i < n; i++)
        add(out, "%s%s%d", i ? ", " : "", prefix, i);
    add(out, "]}\n");
}

static void branches(struct text_of *out, int n, const char *class, const char *options)
{
    add(out, "  - Input: {name: x, shape: [8]}\n");
    for (int i = 0; i < n; i++)
        add(out, "  - Dense: {units: 8, name: b%d, inputs: x%s}\n", i, options);
    names(out, class, "b", n);
}

static void wide_concatenate(struct text_of *out, int n)
{
    branches(out, n, "Concatenate", "");
}

static void wide_add(struct text_of *out, int n)
{
    branches(out, n, "Add", ", activation: relu");
}

/* More bytes of weights than slices may walk through together. */
static void wide_heavy(struct text_of *out, int n)
{
    add(out, "  - Dense: {units: 600, name: x}\n");
    for (int i = 0; i < n; i++)
        add(out, "  - Dense: {units: 300, name: b%d, inputs: x}\n", i);
    names(out, "Add", "b", n);
}

static void wide_shared(struct text_of *out, int n)
{
    add(out, "  - Input: {name: x, shape: [8]}\n  - Dense: {units: 8, name: s, inputs: x}\n");
    for (int i = 0; i < n; i++)
        add(out, "  - s: {inputs: x, name: u%d}\n", i);
    names(out, "Add", "u", n);
    add(out, "  - Add: {inputs: [add, s]}\n");
}

static void residual(struct text_of *out, int n)
{
    add(out, "  - Dense: {units: 8, name: y0}\n");
    for (int i = 0; i < n; i++)
        add(out,
            "  - Dense: {units: 8, name: d%d, activation: relu}\n"
            "  - Add: {inputs: [y%d, d%d], name: y%d}\n",
            i, i, i, i + 1);
}

/* n sums of 20 inputs. */
static void sums(struct text_of *out, int n)
{
    add(out, "  - Dense: {units: 8, name: a0}\n");
    for (int i = 0; i < n; i++) {
        add(out, "  - Add: {name: a%d, inputs: [a%d", i + 1, i);
        for (int k = 1; k < 20; k++)
            add(out, ", a%d", i);
        add(out, "]}\n");
    }
}

/* Gradients of weights that are all ready at once, in turns such as have sums of one part and of several. */
static void wide_parts(struct text_of *out, int n)
{
    add(out, "  - Dense: 1024\n  - Reshape: [8, 8, 16]\n  - Conv2D: {filters: 256, kernel_size: 1, name: x}\n"
             "  - MaxPooling2D: {pool_size: 4, name: pool, inputs: x}\n"
             "  - Conv2D: {filters: 128, kernel_size: 1, name: small, inputs: pool}\n");
    for (int i = 0; i < n; i++)
        add(out,
            "  - Conv2D: {filters: 128, kernel_size: 3, padding: same, name: a%d, inputs: small}\n"
            "  - GlobalAveragePooling2D: {name: b%d, inputs: a%d}\n"
            "  - Conv2D: {filters: 400, kernel_size: 1, name: c%d, inputs: x}\n"
            "  - GlobalAveragePooling2D: {name: b%d, inputs: c%d}\n",
            i, 2 * i, i, i, 2 * i + 1, i);
    names(out, "Concatenate", "b", 2 * n);
}

/* Each layer reads all before it: n edges, of sqrt(2 n) layers. */
static void dense_blocks(struct text_of *out, int n)
{
    int layers = (int)sqrt(2.0 * n);
    add(out, "  - Dense: {units: 8, name: y0}\n  - Dense: {units: 8, name: y1}\n");
    for (int i = 2; i < layers; i++) {
        add(out, "  - Add: {name: c%d, inputs: [y0", i);
        for (int k = 1; k < i; k++)
            add(out, ", y%d", k);
        add(out, "]}\n  - Dense: {units: 8, name: y%d, activation: relu}\n", i);
    }
}

/* ---- counting ---------------------------------------------------------- */

struct family {
    const char *name;
    void (*write)(struct text_of *out, int n);
    int n;
};

static const struct family families[] = {
    {"chain", chain, 100},
    {"chain, no shape twice", shapes, 200}, /* from where packings are repaired: rounds times instances are bounded */
    {"operations", operations, 100},
    {"normalised, regularised", normalized, 40},
    {"shared layer", shared_layer, 100},
    {"shared model", shared_model, 100},
    {"nested, used twice", nested_uses, 128},
    {"nested, side by side", nested_width, 100},
    {"wide, Concatenate", wide_concatenate, 100},
    {"wide, Add", wide_add, 100},
    {"wide, large weights", wide_heavy, 25},
    {"wide, one layer", wide_shared, 100},
    {"wide, one and many parts", wide_parts, 25},
    {"residual", residual, 60},
    {"sums of 20", sums, 15},
    {"each reads all before", dense_blocks, 300},
};

static char path[] = "/tmp/plim_growth_XXXXXX";

static plim_status plan(uint64_t *steps, const struct text_of *model, plim_error *error)
{
    plim_job *job = NULL;
    plim_plan_report report;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "memory: 32GiB\n"
            "data:\n"
            "  train: {random: {elements: 8, shape: [8], classes: 3, seed: 1}, pipeline: [batch: 4]}\n"
            "  validation: {random: {elements: 8, shape: [8], classes: 3, seed: 2}, pipeline: [batch: 4]}\n"
            "model:\n%s  - Dense: 3\n"
            "train: {optimizer: adam, loss: sparse_categorical_crossentropy, metrics: [accuracy], epochs: 1}\n",
            model->text);
    assert_int_equal(fclose(file), 0);
    plim_status status = plim_job_open(&job, path, NULL, error);
    if (status == PLIM_OK) {
        status = plim_job_plan(&report, job, error);
        *steps = work_counted(job->budget);
    }
    plim_job_close(job);
    return status;
}

static uint64_t steps_of(const struct family *family, int n)
{
    struct text_of model = {.text = calloc(1, MOST_TEXT)};
    plim_error error = {0};
    uint64_t steps = 0;
    assert_non_null(model.text);
    family->write(&model, n);
    plim_status status = plan(&steps, &model, &error);
    free(model.text);
    if (status != PLIM_OK)
        fail_msg("%s of %d: %s: %s", family->name, n, error.where, error.message);
    return steps;
}

static void families_grow_as_n_log_n(void **state)
{
    int wrong = 0;
    (void)state;
    printf("%-26s %8s %12s %16s\n", "family", "n", "steps", "steps/(n log n)");
    for (int f = 0; f < COUNT(families); f++) {
        double first = 0, last = 0;
        for (int k = 0, n = families[f].n; k < DOUBLINGS; k++, n *= 2) {
            uint64_t steps = steps_of(&families[f], n);
            last = (double)steps / (n * log2(n));
            first = k ? first : last;
            printf("%-26s %8d %12llu %16.2f\n", families[f].name, n, (unsigned long long)steps, last);
        }
        if (last > MOST_GROWTH * first) {
            printf("%s: grows %.2f times as fast as n log n\n", families[f].name, last / first);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* Sixteen models one inside the other, each used four times: counted, and refused with the figure, before any is laid
   out. */
static void uses_are_counted_before_they_are_laid_out(void **state)
{
    struct text_of model = {.text = calloc(1, MOST_TEXT)};
    plim_error error = {0};
    uint64_t steps = 0;
    (void)state;
    assert_non_null(model.text);
    add(&model, "  - Sequential: {layers: ");
    for (int level = 14; level > 0; level--)
        add(&model, "[Sequential: {name: l%d, layers: ", level);
    add(&model, "[Dense: {units: 8, name: l0}, l0, l0, l0]");
    for (int level = 1; level < 15; level++)
        add(&model, "}, l%d, l%d, l%d]", level, level, level);
    add(&model, "}\n");
    plim_status status = plan(&steps, &model, &error);
    free(model.text);
    assert_int_equal(status, PLIM_BAD_JOB);
    assert_non_null(strstr(error.message, "349524 layers, counting those that are used again; at most 200000"));
}

/* One inside the other without end: refused, however deep the text is. */
static void depth_has_an_end(void **state)
{
    static const int depths[] = {17, 40, 100, 20000};
    (void)state;
    for (int d = 0; d < COUNT(depths); d++) {
        struct text_of model = {.text = calloc(1, MOST_TEXT)};
        plim_error error = {0};
        uint64_t steps = 0;
        assert_non_null(model.text);
        add(&model, "  - ");
        for (int level = 0; level < depths[d]; level++)
            add(&model, "{Sequential: [");
        add(&model, "Dense: 8");
        for (int level = 0; level < depths[d]; level++)
            add(&model, "]}");
        add(&model, "\n");
        assert_int_equal(plan(&steps, &model, &error), PLIM_BAD_JOB);
        assert_true(error.message[0]);
        free(model.text);
    }
}

struct deep {
    struct text_of model;
    plim_status status;
    plim_error error;
};

static void *plan_deep(void *context)
{
    struct deep *deep = context;
    uint64_t steps = 0;
    deep->status = plan(&steps, &deep->model, &deep->error);
    return NULL;
}

/* 4,000 values, each made again of the one before it: the stack of a thread is enough, however many there are. */
static void chains_take_no_stack(void **state)
{
    struct deep deep = {.model = {.text = calloc(1, MOST_TEXT)}, .status = PLIM_INTERNAL};
    pthread_attr_t attributes;
    pthread_t thread;
    (void)state;
    assert_non_null(deep.model.text);
    add(&deep.model, "  - Dense: 16384\n");
    repeat(&deep.model, 4000, "Activation: gelu");
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, plan_deep, &deep), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
    free(deep.model.text);
    if (deep.status != PLIM_OK)
        fail_msg("%s: %s", deep.error.where, deep.error.message);
}

static int set_up(void **state)
{
    (void)state;
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_grow_as_n_log_n),
        cmocka_unit_test(uses_are_counted_before_they_are_laid_out),
        cmocka_unit_test(depth_has_an_end),
        cmocka_unit_test(chains_take_no_stack),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
