/* schedule.h - learning rates as functions of the step, Keras's schedules. */
#ifndef OPS_UPDATE_SCHEDULE_H
#define OPS_UPDATE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum schedule_kind {
    SCHEDULE_CONSTANT, /* what the learning rate's state says */
    SCHEDULE_EXPONENTIAL,
    SCHEDULE_INVERSE_TIME,
    SCHEDULE_POLYNOMIAL,
    SCHEDULE_COSINE,
    SCHEDULE_COSINE_RESTARTS,
    SCHEDULE_PIECEWISE,
    SCHEDULE_COUNT
};

#define MOST_PIECES 32

struct schedule {
    enum schedule_kind kind;
    bool staircase, cycle, warms; /* warms: warmup_target was given */
    int64_t decay_steps, warmup_steps;
    double initial, decay_rate, end, power, alpha, warmup_target, t_mul, m_mul;
    int64_t boundary_count;
    double boundary[MOST_PIECES], value[MOST_PIECES + 1];
};

/* The rate of the step that is done after `iteration` others. */
double schedule_rate(const struct schedule *schedule, double iteration);

#endif
