/* api_graph_support.h - what the tests of graphs and programs in C share. */
#ifndef TESTS_API_GRAPH_SUPPORT_H
#define TESTS_API_GRAPH_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/numbers/count.h"
#include "plimsoll.h"

#define MIB        ((uint64_t)1024 * 1024)
#define SHAPE(...) (const int64_t[]){__VA_ARGS__}, COUNT(((const int64_t[]){__VA_ARGS__}))
#define SCALAR     NULL, 0
#define LIST(...)  (plim_value *[]){__VA_ARGS__}, COUNT(((plim_value *[]){__VA_ARGS__}))

#define good(call)                                                                                                     \
    do {                                                                                                               \
        plim_error told = {0};                                                                                         \
        plim_status status_ = (call);                                                                                  \
        if (status_ != PLIM_OK)                                                                                        \
            fail_msg("%s: %s: %s; %s", #call, told.where, told.message, told.hint);                                    \
    } while (0)

static inline plim_budget *budget_of(uint64_t bytes)
{
    plim_budget *budget;
    assert_int_equal(plim_budget_make(&budget, bytes, NULL), PLIM_OK);
    return budget;
}

static inline uint64_t held(const plim_budget *budget)
{
    uint64_t now, peak;
    plim_budget_figures(&now, &peak, budget);
    return now;
}

static inline plim_graph *graph_of(plim_budget *budget, int64_t batch, bool training)
{
    plim_graph *graph;
    plim_graph_options options = {.batch = batch, .training = training, .seed = 7};
    assert_int_equal(plim_graph_make(&graph, budget, &options, NULL), PLIM_OK);
    return graph;
}

/* Numbers in [-1, 1) that differ. */
static inline float number_at(uint32_t i)
{
    i = (i + 1) * 2654435761u;
    i ^= i >> 15;
    i *= 2246822519u;
    return (float)((i ^ i >> 13) >> 8) / 8388608.0f - 1.0f;
}

#endif
