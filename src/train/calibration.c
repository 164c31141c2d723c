/* calibration.c - one JSON object: of which machine it is, and for each op of each layer the seconds that its instruction
   took and those of the nominal machine. */
#include "train/calibration.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/numbers.h"
#include "base/text/json.h"

#define FORMAT        "plimsoll calibration 1"
#define MOST_BYTES    ((size_t)8 << 20)
#define MOST_NAME     512
#define LEAST_SECONDS 1e-15
#define MOST_SECONDS  1e6
#define MOST_DISK     1e13

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
    double disk_bytes = machine->disk_bytes > 0 || !program->costs ? machine->disk_bytes : program->costs->disk_bytes;
    char features[64];
    const char *all = program->backend->type->features(program->backend);
    snprintf(features, sizeof features, "%.*s", features_length(all), all);
    json_string(json, "format", FORMAT);
    json_string(json, "features", features);
    json_int(json, "threads", program->backend->threads);
    json_double(json, "disk_bytes", disk_bytes); /* a second; 0: no run has measured it */
}

/* [op, layer, seconds, nominal seconds]; the time of a chain is shared out as the nominal machine would take it. */
static void add_task(struct json_writer *json, const struct task *task, double ratio, double share)
{
    double nominal = share * node_seconds(NULL, task->node);
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
    int capacity; /* entries of costs.cost */
    bool ours;    /* of this machine */
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

/* A number up to `most`; below 0: it is none. */
static double number_of(const struct json_token *token, double most)
{
    char text[32], *end;
    if (token->kind != JSON_NUMBER || token->text_bytes >= sizeof text)
        return -1;
    memcpy(text, token->text, token->text_bytes);
    text[token->text_bytes] = '\0';
    double number = number_parse(text, &end);
    return *end == '\0' && number >= 0 && number <= most ? number : -1;
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
        seconds[i] = number_of(&reading->token, MOST_SECONDS);
        if (seconds[i] < LEAST_SECONDS)
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
        if (table && reading->costs.count == reading->capacity) /* two lists, of which the first is longer */
            return not_one(error);
        if (table)
            table[reading->costs.count] = cost;
        reading->costs.count++;
    }
}

static plim_status read_field(struct reading *reading, plim_error *error)
{
    const struct json_token *token = &reading->token;
    const struct calibration_place *place = reading->place;
    int64_t threads;
    if (json_is(token->key, token->key_bytes, "format"))
        return token_is(token, JSON_STRING, FORMAT, (int)strlen(FORMAT)) ? PLIM_OK : not_one(error);
    if (json_is(token->key, token->key_bytes, "features"))
        reading->ours &= token_is(token, JSON_STRING, place->features, features_length(place->features));
    else if (json_is(token->key, token->key_bytes, "threads"))
        reading->ours &= json_whole(&threads, token) && threads == place->threads;
    else if (json_is(token->key, token->key_bytes, "disk_bytes"))
        reading->costs.disk_bytes = number_of(token, MOST_DISK);
    else if (json_is(token->key, token->key_bytes, "ops") && token->kind == JSON_ARRAY)
        return read_entries(reading, error);
    else
        return not_one(error);
    return PLIM_OK;
}

static plim_status read_all(struct reading *reading, const struct file_content *file, plim_error *error)
{
    json_read_init(&reading->json, file->text, file->bytes);
    reading->ours = true;
    TRY(next(reading, error));
    if (reading->token.kind != JSON_OBJECT)
        return not_one(error);
    for (;;) {
        TRY(next(reading, error));
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
    reading.capacity = reading.costs.count;
    reading.costs.cost = arena_array(tables, (size_t)reading.capacity, sizeof *reading.costs.cost);
    if (!reading.costs.cost)
        return arena_refused(tables, error);
    TRY(read_all(&reading, file, error));
    op_costs_settle(&reading.costs);
    *out = reading.costs;
    *found = true;
    return PLIM_OK;
}

plim_status calibration_read(bool *found, struct op_costs *out, const struct calibration_place *place,
                             struct arena *tables, plim_error *error)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct file_content file;
    *found = false;
    if (snprintf(path, sizeof path, "%s/%s", place->folder, CALIBRATION_NAME) >= (int)sizeof path)
        return PLIM_OK;
    plim_status status = file_load(&file, tables->budget, TAG_PLANNER, path, MOST_BYTES, error);
    if (status == PLIM_OK) {
        status = calibration_parse(found, out, place, &file, tables, error);
        budget_give(tables->budget, TAG_PLANNER, file.text, file.bytes + 1);
    }
    return status == PLIM_INTERRUPTED || status == PLIM_NO_MEMORY ? status : PLIM_OK;
}
