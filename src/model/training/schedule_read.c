/* schedule_read.c - learning-rate schedules by Keras's class names and
   arguments. */
#include "model/layers/layer_options.h"

struct schedule_keys {
    struct schedule schedule;
    int64_t values; /* numbers in schedule.value */
};

static plim_status read_list(double *out, int64_t *count, int64_t most, const struct model_option *option,
                             const struct option_place *at, const struct yaml *list, plim_error *error)
{
    *count = 0;
    if (list->kind != YAML_LIST || list->count > most)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, list, "%s: expected a list of at most %lld numbers",
                         option->word, (long long)most);
    for (const struct yaml *entry = list->first; entry; entry = entry->next)
        TRY(option_number(&out[(*count)++], option, at, entry, error));
    return PLIM_OK;
}

static OPTION_READER(read_boundaries)
{
    struct schedule *schedule = out;
    return read_list(schedule->boundary, &schedule->boundary_count, MOST_PIECES, option, at, node, error);
}

/* Behind the boundaries in the table. */
static OPTION_READER(read_values)
{
    struct schedule_keys *keys = out;
    struct schedule *schedule = &keys->schedule;
    TRY(read_list(schedule->value, &keys->values, MOST_PIECES + 1, option, at, node, error));
    if (yaml_absent(yaml_get(at->map, "boundaries")))
        return PLIM_OK; /* they are missing, which is what is said */
    if (schedule->boundary_count < 1 || keys->values != schedule->boundary_count + 1)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node,
                         "values: there must be one more than boundaries, %lld and %lld", (long long)keys->values,
                         (long long)schedule->boundary_count);
    return PLIM_OK;
}

static OPTION_READER(read_warmup_target)
{
    struct schedule *schedule = out;
    schedule->warms = true;
    return option_number(&schedule->warmup_target, option, at, node, error);
}

static OPTION_READER(read_t_mul)
{
    const double *factor = out;
    TRY(option_number(out, option, at, node, error));
    if (*factor < 1.0)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, at->map, "t_mul: must be at least 1, got %g", *factor);
    return PLIM_OK;
}

#define TO(field) .offset = offsetof(struct schedule_keys, schedule.field)
#define INITIAL   "initial_learning_rate", option_number, TO(initial), .required = true
#define STEPS     "decay_steps", option_whole, TO(decay_steps), .least = 1, .required = true
#define RATE      "decay_rate", option_number, TO(decay_rate), .required = true
#define STAIRS    "staircase", option_flag, TO(staircase)
#define ALPHA     "alpha", option_number, TO(alpha)
#define NAME      .word = "name"

static const struct schedule_word {
    const char *name;
    enum schedule_kind kind;
    struct model_option option[8];
} words[] = {
    {"ExponentialDecay", SCHEDULE_EXPONENTIAL, {{INITIAL}, {STEPS}, {RATE}, {STAIRS}, {NAME}}},
    {"InverseTimeDecay", SCHEDULE_INVERSE_TIME, {{INITIAL}, {STEPS}, {RATE}, {STAIRS}, {NAME}}},
    {"PolynomialDecay",
     SCHEDULE_POLYNOMIAL,
     {{INITIAL},
      {STEPS},
      {"end_learning_rate", option_number, TO(end)},
      {"power", option_number, TO(power)},
      {"cycle", option_flag, TO(cycle)},
      {NAME}}},
    {"CosineDecay",
     SCHEDULE_COSINE,
     {{INITIAL},
      {STEPS},
      {ALPHA},
      {"warmup_target", read_warmup_target, .offset = 0, .nullable = true},
      {"warmup_steps", option_whole, TO(warmup_steps)},
      {NAME}}},
    {"CosineDecayRestarts",
     SCHEDULE_COSINE_RESTARTS,
     {{INITIAL},
      {"first_decay_steps", option_whole, TO(decay_steps), .least = 1, .required = true},
      {"t_mul", read_t_mul, TO(t_mul)},
      {"m_mul", option_number, TO(m_mul)},
      {ALPHA},
      {NAME}}},
    {"PiecewiseConstantDecay",
     SCHEDULE_PIECEWISE,
     {{"boundaries", read_boundaries, .required = true}, {"values", read_values, .required = true}, {NAME}}},
};

plim_status schedule_read(struct schedule *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    const char *names[COUNT(words)];
    struct schedule_keys given = {.schedule = {.end = 1e-4, .power = 1, .t_mul = 2, .m_mul = 1}};
    char where[256];
    int found;
    yaml_place(where, job, yaml);
    if (yaml->kind != YAML_MAP || yaml->count != 1)
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "learning_rate: expected a number or one schedule"),
                    "learning_rate: {CosineDecay: {initial_learning_rate: 0.1, decay_steps: 1000}}");
    for (int i = 0; i < COUNT(words); i++)
        names[i] = words[i].name;
    TRY(choose_word(&found, "learning-rate schedule", yaml->first->key, CHOICES(names), where, error));
    const struct schedule_word *word = &words[found];
    const struct option_place at = {word->name, job, yaml->first, NULL};
    if (at.map->kind != YAML_MAP)
        return yaml_fail(error, PLIM_BAD_JOB, job, at.map, "%s: expected its arguments by name", word->name);
    TRY(options_read(&given, word->option, options_length(word->option, COUNT(word->option)), &at, error));
    *out = given.schedule;
    out->kind = word->kind;
    return PLIM_OK;
}
