/* schedule_read.c - learning-rate schedules by Keras's class names and
   arguments. */
#include <string.h>

#include "model/layers/layer_options.h"

struct schedule_words {
    struct schedule schedule;
    const struct yaml *warmup_target, *boundaries, *values, *name;
};

#define AT(field) offsetof(struct schedule_words, field)
#define INITIAL                                                                                                        \
    {                                                                                                                  \
        "initial_learning_rate", SETTING_NUMBER, AT(schedule.initial), 0                                               \
    }
#define STEPS                                                                                                          \
    {                                                                                                                  \
        "decay_steps", SETTING_WHOLE, AT(schedule.decay_steps), 1                                                      \
    }
#define RATE                                                                                                           \
    {                                                                                                                  \
        "decay_rate", SETTING_NUMBER, AT(schedule.decay_rate), 0                                                       \
    }
#define STAIRS                                                                                                         \
    {                                                                                                                  \
        "staircase", SETTING_BOOL, AT(schedule.staircase), 0                                                           \
    }
#define ALPHA                                                                                                          \
    {                                                                                                                  \
        "alpha", SETTING_NUMBER, AT(schedule.alpha), 0                                                                 \
    }
#define NAME                                                                                                           \
    {                                                                                                                  \
        "name", SETTING_NODE, AT(name), 0                                                                              \
    }

static const struct schedule_word {
    const char *name;
    enum schedule_kind kind;
    int required; /* of the settings, the first so many */
    struct setting setting[8];
} words[] = {
    {"ExponentialDecay", SCHEDULE_EXPONENTIAL, 3, {INITIAL, STEPS, RATE, STAIRS, NAME}},
    {"InverseTimeDecay", SCHEDULE_INVERSE_TIME, 3, {INITIAL, STEPS, RATE, STAIRS, NAME}},
    {"PolynomialDecay",
     SCHEDULE_POLYNOMIAL,
     2,
     {INITIAL,
      STEPS,
      {"end_learning_rate", SETTING_NUMBER, AT(schedule.end), 0},
      {"power", SETTING_NUMBER, AT(schedule.power), 0},
      {"cycle", SETTING_BOOL, AT(schedule.cycle), 0},
      NAME}},
    {"CosineDecay",
     SCHEDULE_COSINE,
     2,
     {INITIAL,
      STEPS,
      ALPHA,
      {"warmup_target", SETTING_NODE, AT(warmup_target), 0},
      {"warmup_steps", SETTING_WHOLE, AT(schedule.warmup_steps), 0},
      NAME}},
    {"CosineDecayRestarts",
     SCHEDULE_COSINE_RESTARTS,
     2,
     {INITIAL,
      {"first_decay_steps", SETTING_WHOLE, AT(schedule.decay_steps), 1},
      {"t_mul", SETTING_NUMBER, AT(schedule.t_mul), 0},
      {"m_mul", SETTING_NUMBER, AT(schedule.m_mul), 0},
      ALPHA,
      NAME}},
    {"PiecewiseConstantDecay",
     SCHEDULE_PIECEWISE,
     2,
     {{"boundaries", SETTING_NODE, AT(boundaries), 0}, {"values", SETTING_NODE, AT(values), 0}, NAME}},
};

static plim_status read_list(double *out, int64_t *count, int64_t most, const char *word, const char *job,
                             const struct yaml *list, plim_error *error)
{
    const struct setting number = {word, SETTING_NUMBER, 0, 0};
    char where[256];
    *count = 0;
    yaml_place(where, job, list);
    if (list->kind != YAML_LIST || list->count > most)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected a list of at most %lld numbers", word,
                       (long long)most);
    for (const struct yaml *entry = list->first; entry; entry = entry->next)
        TRY(setting_value(&out[(*count)++], &number, job, entry, error));
    return PLIM_OK;
}

static plim_status read_pieces(struct schedule *out, const struct schedule_words *given, const char *job,
                               plim_error *error)
{
    int64_t values;
    char where[256];
    TRY(read_list(out->boundary, &out->boundary_count, MOST_PIECES, "boundaries", job, given->boundaries, error));
    TRY(read_list(out->value, &values, MOST_PIECES + 1, "values", job, given->values, error));
    yaml_place(where, job, given->values);
    if (out->boundary_count < 1 || values != out->boundary_count + 1)
        return fail_at(error, PLIM_BAD_JOB, where, "values: there must be one more than boundaries, %lld and %lld",
                       (long long)values, (long long)out->boundary_count);
    return PLIM_OK;
}

static plim_status read_settings(struct schedule *out, const struct schedule_word *word, const char *job,
                                 const struct yaml *map, plim_error *error)
{
    struct schedule_words given = {.schedule = {.kind = word->kind, .end = 1e-4, .power = 1, .t_mul = 2, .m_mul = 1}};
    const struct setting target = {"warmup_target", SETTING_NUMBER, 0, 0};
    char where[256];
    int count = 0;
    while (count < LENGTH(word->setting) && word->setting[count].word)
        count++;
    yaml_place(where, job, map);
    if (map->kind != YAML_MAP)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected its arguments by name", word->name);
    for (int i = 0; i < word->required; i++)
        if (!yaml_get(map, word->setting[i].word))
            return fail_at(error, PLIM_BAD_JOB, where, "%s: '%s' is missing", word->name, word->setting[i].word);
    TRY(settings_read(&given, word->setting, count, job, map, error));
    given.schedule.warms = given.warmup_target && !given.warmup_target->is_null;
    if (given.schedule.warms)
        TRY(setting_value(&given.schedule.warmup_target, &target, job, given.warmup_target, error));
    if (given.boundaries)
        TRY(read_pieces(&given.schedule, &given, job, error));
    if (given.schedule.t_mul < 1.0)
        return fail_at(error, PLIM_BAD_JOB, where, "t_mul: must be at least 1, got %g", given.schedule.t_mul);
    *out = given.schedule;
    return PLIM_OK;
}

plim_status schedule_read(struct schedule *out, const char *job, const struct yaml *yaml, plim_error *error)
{
    const char *names[LENGTH(words)];
    char where[256];
    yaml_place(where, job, yaml);
    if (yaml->kind != YAML_MAP || yaml->count != 1)
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "learning_rate: expected a number or one schedule"),
                    "learning_rate: {CosineDecay: {initial_learning_rate: 0.1, decay_steps: 1000}}");
    for (int i = 0; i < LENGTH(words); i++) {
        names[i] = words[i].name;
        if (same_word(yaml->first->key, words[i].name))
            return read_settings(out, &words[i], job, yaml->first, error);
    }
    return option_unknown("learning-rate schedule", yaml->first->key, where, names, LENGTH(names), NULL, 0, error);
}
