/* schedule.c - Keras's learning-rate schedules. Pure functions: a checkpoint
   needs the iteration alone. */
#include "ops/update/schedule.h"

#include <math.h>

#define PI 3.14159265358979323846

static double progress(const struct schedule *s, double iteration)
{
    double p = iteration / (double)s->decay_steps;
    return s->staircase ? floor(p) : p;
}

static double exponential(const struct schedule *s, double iteration)
{
    return s->initial * pow(s->decay_rate, progress(s, iteration));
}

static double inverse_time(const struct schedule *s, double iteration)
{
    return s->initial / (1.0 + s->decay_rate * progress(s, iteration));
}

static double polynomial(const struct schedule *s, double iteration)
{
    double steps = (double)s->decay_steps;
    if (s->cycle)
        steps *= iteration == 0.0 ? 1.0 : ceil(iteration / steps);
    else
        iteration = fmin(iteration, steps);
    return (s->initial - s->end) * pow(1.0 - iteration / steps, s->power) + s->end;
}

static double cosine_between(const struct schedule *s, double from, double done)
{
    double cosine = 0.5 * (1.0 + cos(PI * done / (double)s->decay_steps));
    return from * ((1.0 - s->alpha) * cosine + s->alpha);
}

static double cosine(const struct schedule *s, double iteration)
{
    double steps = (double)s->decay_steps, warm = (double)s->warmup_steps;
    if (!s->warms)
        return cosine_between(s, s->initial, fmin(iteration, steps));
    iteration = fmin(iteration, steps + warm);
    if (iteration < warm)
        return s->initial + (s->warmup_target - s->initial) * iteration / warm;
    return cosine_between(s, s->warmup_target, iteration - warm);
}

/* Which restart it is comes out of a logarithm: in float32, as in Keras, so that a restart is at the same step. */
static double cosine_restarts(const struct schedule *s, double iteration)
{
    float t_mul = (float)s->t_mul, done = (float)iteration / (float)s->decay_steps, restart, left;
    if (t_mul == 1.0f) {
        restart = floorf(done);
        left = done - restart;
    } else {
        restart = floorf(logf(1.0f - done * (1.0f - t_mul)) / logf(t_mul));
        left = (done - (1.0f - powf(t_mul, restart)) / (1.0f - t_mul)) / powf(t_mul, restart);
    }
    double height = 0.5 * pow(s->m_mul, (double)restart) * (1.0 + cos(PI * (double)left));
    return s->initial * ((1.0 - s->alpha) * height + s->alpha);
}

static double piecewise(const struct schedule *s, double iteration)
{
    int64_t i = 0;
    while (i < s->boundary_count && iteration > s->boundary[i])
        i++;
    return s->value[i];
}

static double (*const rates[SCHEDULE_COUNT])(const struct schedule *s, double iteration) = {
    [SCHEDULE_EXPONENTIAL] = exponential, [SCHEDULE_INVERSE_TIME] = inverse_time,
    [SCHEDULE_POLYNOMIAL] = polynomial,   [SCHEDULE_COSINE] = cosine,
    [SCHEDULE_PIECEWISE] = piecewise,     [SCHEDULE_COSINE_RESTARTS] = cosine_restarts,
};

double schedule_rate(const struct schedule *schedule, double iteration)
{
    return rates[schedule->kind] ? rates[schedule->kind](schedule, iteration) : schedule->initial;
}
