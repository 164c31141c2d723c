/* random_source.c - made-up records, a pure function of seed and index.

   x: f32 in [0, 1), stream `index` of the seed. y: a class number (i32), or
   with one class a target in [0, 1) (f32).
   Learnable: the features fall into one group a class; those of a drawn class
   are lifted, x -> (1 + x) / 2, and the label is the group with the largest
   sum. It is a function of the features that a linear model can express, with a
   signal that does not drown when there are many features. With one class
   the halves are pulled to t and 1 - t, and the target is linear in their means. */
#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/random.h"
#include "formats/tables/rows.h"

/* What the label's numbers are keyed by, apart from those of x. */
#define LABEL_PURPOSE 1

struct random_source {
    struct source base;
    uint64_t seed, label_seed;
    int64_t features, classes;
    bool learnable;
};

static double sum_of(const float *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i];
    return sum;
}

/* Lifts the drawn class's group; label = argmax over groups of sum. Features
   past classes * (features / classes) belong to no group. */
static int32_t learnable_class(float *x, int64_t features, int64_t classes, int64_t drawn)
{
    int64_t group = features / classes;
    for (int64_t i = 0; i < group; i++)
        x[drawn * group + i] = 0.5f * x[drawn * group + i] + 0.5f;
    int32_t best = 0;
    double best_sum = -1;
    for (int64_t c = 0; c < classes; c++) {
        double sum = sum_of(x + c * group, group);
        if (sum > best_sum) {
            best_sum = sum;
            best = (int32_t)c;
        }
    }
    return best;
}

/* target = 1/2 + (mean of first half - mean of second half) / 2. */
static float learnable_target(float *x, int64_t features, float drawn)
{
    int64_t half = (features + 1) / 2, rest = features - half;
    for (int64_t i = 0; i < half; i++)
        x[i] = 0.5f * x[i] + 0.5f * drawn;
    for (int64_t i = half; i < features; i++)
        x[i] = 0.5f * x[i] + 0.5f * (1 - drawn);
    double second = rest ? sum_of(x + half, rest) / (double)rest : 0.5;
    return (float)(0.5 + 0.5 * (sum_of(x, half) / (double)half - second));
}

static void make_element(const struct random_source *random, int64_t index, float *x, void *y)
{
    uint32_t bits[4];
    random_fill_unit(x, (uint64_t)random->features, random->seed, (uint64_t)index, 0);
    random_block(bits, random->label_seed, (uint64_t)index, 0);
    if (random->classes == 1) {
        float target = random_unit(bits[0]);
        if (random->learnable)
            target = learnable_target(x, random->features, target);
        memcpy(y, &target, sizeof target);
        return;
    }
    int32_t label = (int32_t)((uint64_t)bits[0] * (uint64_t)random->classes >> 32);
    if (random->learnable)
        label = learnable_class(x, random->features, random->classes, label);
    memcpy(y, &label, sizeof label);
}

static plim_status random_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                               const uint64_t *stride, plim_error *error)
{
    TRY(source_check(source, index, count, error));
    for (int64_t i = 0; i < count; i++)
        make_element((struct random_source *)source, index[i], (float *)((char *)to[0] + (uint64_t)i * stride[0]),
                     (char *)to[1] + (uint64_t)i * stride[1]);
    source_count_read(source, (uint64_t)count * source->spec.element_bytes);
    return PLIM_OK;
}

static const struct source_type random_type = {.name = "random", .read = random_read};

static plim_status check_options(const struct random_options *options, plim_error *error)
{
    uint64_t bytes, all;
    if (options->elements < 1)
        return fail(error, PLIM_BAD_JOB, "random: elements is %lld: at least 1 is needed",
                    (long long)options->elements);
    if (options->classes < 1 || options->classes > INT32_MAX)
        return fail(error, PLIM_BAD_JOB, "random: classes is %lld: 1 to %d are possible", (long long)options->classes,
                    INT32_MAX);
    for (int i = 0; i < options->shape.rank; i++)
        if (options->shape.dim[i] < 1)
            return fail(error, PLIM_BAD_JOB, "random: axis %d of the shape is %lld: at least 1 is needed", i,
                        (long long)options->shape.dim[i]);
    if (!shape_bytes(&bytes, &options->shape, TYPE_F32) || !mul_u64(&all, bytes, (uint64_t)options->elements))
        return fail(error, PLIM_BAD_JOB, "random: shape and elements are too large");
    if (options->learnable && options->classes > (int64_t)(bytes / sizeof(float))) {
        fail(error, PLIM_BAD_JOB, "random: learnable needs at least as many features as classes (%lld)",
             (long long)options->classes);
        return hint(error, PLIM_BAD_JOB, "a larger shape or fewer classes");
    }
    return PLIM_OK;
}

static plim_status random_columns(struct spec *spec, const struct random_options *options, plim_error *error)
{
    TRY(spec_add(spec, NULL, TYPE_F32, &options->shape, error));
    return spec_add(spec, NULL, options->classes == 1 ? TYPE_F32 : TYPE_I32, &(struct shape){0}, error);
}

plim_status random_open(struct source **out, struct budget *budget, const struct random_options *options,
                        plim_error *error)
{
    TRY(check_options(options, error));
    struct random_source *random;
    TRY(source_make(&random, sizeof *random, &random_type, budget, error));
    random->base.count = options->elements;
    random->seed = options->seed;
    random->label_seed = random_key(options->seed, LABEL_PURPOSE, 0);
    random->features = shape_count(&options->shape);
    random->classes = options->classes;
    random->learnable = options->learnable;
    return source_opened(out, &random->base, random_columns(&random->base.spec, options, error));
}
