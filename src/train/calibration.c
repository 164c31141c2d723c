/* calibration.c - one JSON object: of which machine it is, and for each op of each layer the seconds that its instruction
   took and those of the nominal machine. */
#include "train/calibration.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/budget_stop.h"
#include "base/numbers/count.h"
#include "base/numbers/numbers.h"
#include "base/text/json.h"

#define FORMAT     "plimsoll calibration 1"
#define MOST_BYTES ((size_t)4 << 20)
#define MOST_NAME  256 /* ops of layers with longer names are left out */

/* What is beyond these was not measured on any machine. */
#define LEAST_SECONDS 1e-12
#define MOST_SECONDS  1e4
#define LEAST_DISK    1e6 /* bytes a second */
#define MOST_DISK     1e11

/* ---- writing ---- */

/* "avx512" of "avx512 onednn-2.6.3": a library that a later plan may not open yet is no part of it. */
static int features_length(const char *features)
{
    return (int)strcspn(features, " ");
}

struct writing {
    struct partial_file file;
    struct text text;
    struct json_writer json;
};

static plim_status flush(struct writing *writing, plim_error *error)
{
    struct text *text = &writing->text;
    if (text->failed)
        return budget_refused(text->budget, text->tag, text->length, error);
    TRY(partial_put(&writing->file, text->data, text->length, error));
    text_clear(text);
    return PLIM_OK;
}

static void add_head(struct json_writer *json, const struct machine *machine)
{
    const struct program *program = machine->program;
    char features[64];
    const char *all = program->backend->type->features(program->backend);
    snprintf(features, sizeof features, "%.*s", features_length(all), all);
    json_string(json, "format", FORMAT);
    json_string(json, "features", features);
    json_int(json, "threads", program->backend->threads);
    json_double(json, "disk_bytes", machine->disk_bytes); /* a second; 0: the run had none */
}

static bool is_likely(double seconds)
{
    return seconds >= LEAST_SECONDS && seconds <= MOST_SECONDS;
}

/* [op, layer, seconds, nominal seconds]; the time of a chain is shared out as the nominal machine would take it. */
static void add_task(struct json_writer *json, const struct task *task, double ratio, double share)
{
    double nominal = share * node_seconds(NULL, task->node);
    if (strlen(task->node->name) >= MOST_NAME || !is_likely(ratio * nominal) || !is_likely(nominal))
        return;
    json_array(json, NULL);
    json_string(json, NULL, task->node->op->name);
    json_string(json, NULL, task->node->name);
    json_double(json, NULL, ratio * nominal);
    json_double(json, NULL, nominal);
    json_end_array(json);
}

static plim_status add_instruction(struct writing *writing, const struct phase *phase, int i, plim_error *error)
{
    const struct instruction *instruction = &phase->instruction[i];
    double share = 0, nominal = 0;
    if (instruction->kind != INSTRUCTION_COMPUTE || phase->seconds[i] <= 0)
        return PLIM_OK;
    share = (double)(instruction->end_unit - instruction->first_unit) / instruction->chain.units;
    for (int t = 0; t < instruction->task_count; t++)
        nominal += share * node_seconds(NULL, instruction->task[t].node);
    for (int t = 0; t < instruction->task_count && nominal > 0; t++) {
        add_task(&writing->json, &instruction->task[t], phase->seconds[i] / nominal, share);
        TRY(flush(writing, error));
    }
    return PLIM_OK;
}

static plim_status write_all(struct writing *writing, const struct machine *machine, plim_error *error)
{
    const struct phase *phase = &machine->program->phase[PHASE_TRAIN];
    struct json_writer *json = &writing->json;
    json_init(json, &writing->text);
    json_object(json, NULL);
    add_head(json, machine);
    json_array(json, "ops");
    for (int i = 0; i < phase->instruction_count; i++)
        TRY(add_instruction(writing, phase, i, error));
    json_end_array(json);
    json_end_object(json);
    text_add(&writing->text, "\n");
    return flush(writing, error);
}

/* What a run that was killed may have left. */
static plim_status forget_partial(const char *folder, plim_error *error)
{
    char path[CHECKPOINT_PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s.partial", folder, CALIBRATION_NAME) >= (int)sizeof path)
        return PLIM_OK;
    return file_remove(path, error);
}

plim_status calibration_write(const struct machine *machine, const char *folder, plim_error *error)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct writing writing = {.json.text = NULL};
    if (machine->timed_steps < 1)
        return forget_partial(folder, error);
    if (snprintf(path, sizeof path, "%s/%s", folder, CALIBRATION_NAME) >= (int)sizeof path)
        return fail_at(error, PLIM_IO, folder, "the path is too long");
    TRY(partial_open(&writing.file, machine->budget, path, error));
    text_init(&writing.text, machine->budget, TAG_CHECKPOINT);
    plim_status status = write_all(&writing, machine, error);
    text_release(&writing.text);
    if (status == PLIM_OK)
        return partial_commit(&writing.file, error);
    partial_abandon(&writing.file);
    return status;
}

/* ---- reading ---- */

struct reading {
    struct json_reader json;
    struct json_token token;
    const struct calibration_place *place;
    struct op_costs costs;
    bool ours; /* of this machine */
    int seen;  /* fields, as bits */
};

static plim_status next(struct reading *reading, plim_error *error)
{
    return json_next(&reading->token, &reading->json, error);
}

static plim_status not_one(plim_error *error)
{
    return fail(error, PLIM_BAD_DATA, "is no calibration");
}

static bool token_is(const struct json_token *token, enum json_kind kind, const char *text, int length)
{
    return token->kind == kind && token->text_bytes == (size_t)length && memcmp(token->text, text, (size_t)length) == 0;
}

/* Below 0: it is none, or none that is meant. */
static double number_of(const struct json_token *token)
{
    char text[32], *end;
    if (token->kind != JSON_NUMBER || token->text_bytes >= sizeof text)
        return -1;
    memcpy(text, token->text, token->text_bytes);
    text[token->text_bytes] = '\0';
    double number = number_parse(text, &end);
    return *end == '\0' && number >= 0 ? number : -1;
}

/* Behind the bracket of an entry. */
static plim_status read_entry(struct op_cost *out, struct reading *reading, plim_error *error)
{
    char name[2][MOST_NAME];
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        TRY(next(reading, error));
        const struct json_token *token = &reading->token;
        if (token->kind != JSON_STRING || !json_unescape(name[i], sizeof name[i], token->text, token->text_bytes))
            return not_one(error);
    }
    for (int i = 0; i < 2; i++) {
        TRY(next(reading, error));
        seconds[i] = number_of(&reading->token);
        if (!is_likely(seconds[i]))
            return not_one(error);
    }
    TRY(next(reading, error));
    *out = (struct op_cost){op_cost_key(name[0], name[1]), seconds[0], seconds[1]};
    return reading->token.kind == JSON_ARRAY_END ? PLIM_OK : not_one(error);
}

/* Behind the bracket of the list. Entries are only counted where there is no table yet. */
static plim_status read_entries(struct reading *reading, plim_error *error)
{
    struct op_cost *table = reading->costs.cost;
    reading->costs.count = 0;
    for (;;) {
        struct op_cost cost;
        TRY(next(reading, error));
        if (reading->token.kind == JSON_ARRAY_END)
            return PLIM_OK;
        if (reading->token.kind != JSON_ARRAY)
            return not_one(error);
        TRY(read_entry(&cost, reading, error));
        if (table)
            table[reading->costs.count] = cost; /* as many as were counted: it is the same text */
        reading->costs.count++;
    }
}

enum { SEEN_FORMAT = 1, SEEN_FEATURES = 2, SEEN_THREADS = 4, SEEN_DISK = 8, SEEN_OPS = 16, SEEN_ALL = 31 };

static int field_of(const struct json_token *token)
{
    static const char *const names[] = {"format", "features", "threads", "disk_bytes", "ops"};
    for (int i = 0; i < COUNT(names); i++)
        if (json_is(token->key, token->key_bytes, names[i]))
            return 1 << i;
    return 0;
}

/* Each field once. */
static plim_status read_field(struct reading *reading, plim_error *error)
{
    const struct json_token *token = &reading->token;
    const struct calibration_place *place = reading->place;
    int field = field_of(token);
    int64_t threads;
    double disk;
    if (!field || reading->seen & field)
        return not_one(error);
    reading->seen |= field;
    switch (field) {
    case SEEN_FORMAT:
        return token_is(token, JSON_STRING, FORMAT, (int)strlen(FORMAT)) ? PLIM_OK : not_one(error);
    case SEEN_FEATURES:
        reading->ours &= token_is(token, JSON_STRING, place->features, features_length(place->features));
        return PLIM_OK;
    case SEEN_THREADS:
        reading->ours &= json_whole(&threads, token) && threads == place->threads;
        return PLIM_OK;
    case SEEN_DISK:
        disk = number_of(token);
        reading->costs.disk_bytes = disk >= LEAST_DISK && disk <= MOST_DISK ? disk : 0;
        return disk < 0 ? not_one(error) : PLIM_OK;
    default:
        return token->kind == JSON_ARRAY ? read_entries(reading, error) : not_one(error);
    }
}

static plim_status read_all(struct reading *reading, const struct file_content *file, plim_error *error)
{
    json_read_init(&reading->json, file->text, file->bytes);
    reading->ours = true;
    reading->seen = 0;
    TRY(next(reading, error));
    if (reading->token.kind != JSON_OBJECT)
        return not_one(error);
    for (;;) {
        TRY(next(reading, error));
        if (reading->token.kind == JSON_OBJECT_END && reading->seen != SEEN_ALL)
            return not_one(error);
        if (reading->token.kind == JSON_OBJECT_END)
            return next(reading, error); /* nothing is behind it */
        TRY(read_field(reading, error));
    }
}

plim_status calibration_parse(bool *found, struct op_costs *out, const struct calibration_place *place,
                              const struct file_content *file, struct arena *tables, plim_error *error)
{
    struct reading reading = {.place = place};
    *found = false;
    TRY(read_all(&reading, file, error));
    if (!reading.ours || !reading.costs.count)
        return PLIM_OK;
    reading.costs.cost = arena_array(tables, (size_t)reading.costs.count, sizeof *reading.costs.cost);
    if (!reading.costs.cost)
        return arena_refused(tables, error);
    TRY(read_all(&reading, file, error));
    op_costs_settle(&reading.costs);
    *out = reading.costs;
    *found = true;
    return PLIM_OK;
}

/* Reading takes no more than planning has taken before: else the peak of planning, and with it the smallest budget, would
   depend on whether the job has run. */
static bool has_room(struct budget *budget, uint64_t bytes)
{
    struct budget_usage usage = budget_usage(budget);
    return bytes <= MOST_BYTES && 2 * bytes + 4096 <= usage.peak - usage.now;
}

plim_status calibration_read(bool *found, struct op_costs *out, const struct calibration_place *place,
                             struct arena *tables, plim_error *error)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct file_content file;
    plim_error why;
    uint64_t bytes = 0;
    *found = false;
    if (snprintf(path, sizeof path, "%s/%s", place->folder, CALIBRATION_NAME) >= (int)sizeof path ||
        file_size_at(&bytes, path, &why) != PLIM_OK || !bytes || !has_room(tables->budget, bytes))
        return budget_go_on(tables->budget, error);
    plim_status status = file_load(&file, tables->budget, TAG_PLANNER, path, MOST_BYTES, &why);
    if (status == PLIM_OK) {
        status = calibration_parse(found, out, place, &file, tables, &why);
        budget_give(tables->budget, TAG_PLANNER, file.text, file.bytes + 1);
    }
    if (status == PLIM_NO_MEMORY && error)
        *error = why;
    return status == PLIM_NO_MEMORY ? status : budget_go_on(tables->budget, error);
}
