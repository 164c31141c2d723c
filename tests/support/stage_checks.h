/* stage_checks.h - what the tests of stages share: a source whose rows refer to bytes elsewhere, pipelines from job
   text, golden lists of tf.data, and the checks that every stage has to pass. */
#ifndef TESTS_STAGE_CHECKS_H
#define TESTS_STAGE_CHECKS_H

#include <stdlib.h>

#include "made_source.h"

#include "base/text/yaml.h"
#include "pipeline/core/stage.h"

/* ---- a source of texts: id int64, text string, cell float32 (-1) ---- */

struct texts {
    struct source base;
    int64_t count; /* there are so many, whether the source says so or not */
    int64_t bad;   /* this element is bad; -1: none */
};

struct texts_reader {
    struct texts *texts;
    int64_t next;
};

static inline uint64_t text_length(int64_t id)
{
    return (uint64_t)(id * 7919 % 97);
}

static inline int64_t cell_length(int64_t id)
{
    return id * 31 % 23;
}

/* False: no room. */
static inline bool text_row(int64_t id, int64_t row, const struct row_target *target)
{
    uint64_t used = target->values->used;
    struct string *string = (struct string *)((char *)target->to[1] + (uint64_t)row * target->stride[1]);
    struct cell *cell = (struct cell *)((char *)target->to[2] + (uint64_t)row * target->stride[2]);
    uint8_t *bytes = value_buffer_take_bytes(target->values, text_length(id));
    float *numbers = bytes ? value_buffer_take(target->values, (uint64_t)cell_length(id) * sizeof(float)) : NULL;
    if (!numbers) {
        target->values->used = used;
        return false;
    }
    memcpy((char *)target->to[0] + (uint64_t)row * target->stride[0], &id, sizeof id);
    memset(bytes, (int)('a' + id % 26), text_length(id));
    for (int64_t i = 0; i < cell_length(id); i++)
        numbers[i] = (float)(id + i);
    *string = (struct string){bytes, text_length(id)};
    *cell = (struct cell){.data = numbers, .dim = {cell_length(id)}};
    return true;
}

static inline plim_status texts_bad(const struct texts *texts, int64_t id, plim_error *error)
{
    if (id != texts->bad)
        return PLIM_OK;
    return fail_at(error, PLIM_BAD_DATA, "texts: byte 7", "element %lld is bad", (long long)id);
}

static inline plim_status texts_read(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                                     const struct row_target *target, plim_error *error)
{
    for (*done = 0; *done < count; (*done)++) {
        TRY(texts_bad((struct texts *)source, index[*done], error));
        if (!text_row(index[*done], *done, target))
            return PLIM_OK;
    }
    return PLIM_OK;
}

static inline plim_status texts_reader_open(struct reader **out, struct source *source, struct budget *budget,
                                            plim_error *error)
{
    struct texts_reader *reader = budget_take(budget, TAG_FORMATS, sizeof *reader);
    if (!reader)
        return budget_refused(budget, TAG_FORMATS, sizeof *reader, error);
    reader->texts = (struct texts *)source;
    *out = (struct reader *)reader;
    return PLIM_OK;
}

static inline void texts_reader_close(struct reader *reader)
{
    budget_give(((struct texts_reader *)reader)->texts->base.budget, TAG_FORMATS, reader, sizeof(struct texts_reader));
}

static inline plim_status texts_reader_rewind(struct reader *reader, uint64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    ((struct texts_reader *)reader)->next = 0;
    return PLIM_OK;
}

/* Odd numbers of elements at a time: nobody may rely on getting all that was asked for. */
static inline plim_status texts_reader_next(int64_t *got, struct reader *reader, int64_t most,
                                            const struct row_target *target, plim_error *error)
{
    struct texts_reader *self = (struct texts_reader *)reader;
    most = most > 5 ? 5 : most;
    for (*got = 0; *got < most && self->next < self->texts->count; (*got)++) {
        if (self->next == self->texts->bad && *got)
            return PLIM_OK; /* those before it first */
        plim_status status = texts_bad(self->texts, self->next, error);
        self->next += status != PLIM_OK;
        TRY(status);
        if (!text_row(self->next, *got, target))
            return PLIM_OK;
        self->next++;
    }
    return PLIM_OK;
}

static inline void texts_close(struct source *source)
{
    budget_give(source->budget, TAG_FORMATS, source, sizeof(struct texts));
}

static const struct source_type texts_indexed = {.name = "texts", .read_values = texts_read, .close = texts_close};
static const struct source_type texts_stream = {.name = "texts",
                                                .index_advice = "`plim data index FILE` once",
                                                .reader_open = texts_reader_open,
                                                .reader_close = texts_reader_close,
                                                .reader_rewind = texts_reader_rewind,
                                                .reader_next = texts_reader_next,
                                                .close = texts_close};

static inline struct dataset *texts_open(struct budget *budget, const struct source_type *type, int64_t count,
                                         int64_t bad)
{
    struct texts *texts = budget_take(budget, TAG_FORMATS, sizeof *texts);
    plim_error error = {0};
    if (!texts) {
        budget_refused(budget, TAG_FORMATS, sizeof *texts, &error);
        return dataset_failed(budget, &error);
    }
    texts->count = count;
    texts->bad = bad;
    texts->base = (struct source){
        .type = type,
        .budget = budget,
        .count = type == &texts_stream ? CARDINALITY_UNKNOWN : count,
        .value_bytes = 2048,
        .reader_bytes = budget_charge(sizeof(struct texts_reader)),
        .spec = {.column_count = 3,
                 .column = {{"id", TYPE_I64, {0, {0}}, 8, 0},
                            {"text", TYPE_STRING, {0, {0}}, sizeof(struct string), 0},
                            {"cell", TYPE_F32, {1, {-1}}, sizeof(struct cell), 0}}},
    };
    texts->base.spec.element_bytes = 8 + sizeof(struct string) + sizeof(struct cell);
    return dataset_from_source(&texts->base);
}

/* Text and cell of a row are those of its id. */
static inline int64_t check_text(const struct batch *batch, int first)
{
    int64_t id;
    const struct string *string = batch->column[first + 1];
    const struct cell *cell = batch->column[first + 2];
    memcpy(&id, batch->column[first], sizeof id);
    assert_int_equal(string->bytes, text_length(id));
    for (uint64_t i = 0; i < string->bytes; i++)
        assert_int_equal(string->data[i], 'a' + id % 26);
    assert_int_equal(cell->dim[0], cell_length(id));
    for (int64_t i = 0; i < cell->dim[0]; i++)
        assert_true(((const float *)cell->data)[i] == (float)(id + i));
    return id;
}

/* ---- running ---- */

/* The int64 column `name` of the rest of an epoch; texts are checked on the way. */
static inline int64_t collect_column(int64_t *out, struct iterator *iterator, const struct dataset *dataset,
                                     const char *name)
{
    int column = spec_find(dataset_spec(dataset), name), texts = spec_find(dataset_spec(dataset), "id");
    int64_t count = 0;
    for (;;) {
        struct batch *batch;
        plim_error error = {0};
        if (iterator_next(&batch, iterator, &error) != PLIM_OK)
            fail_msg("%s: %s; %s", error.where, error.message, error.hint);
        if (!batch)
            return count;
        if (texts >= 0 && batch->count == 1)
            check_text(batch, texts);
        assert_true(count + batch->count <= MOST);
        memcpy(out + count, batch->column[column], (size_t)batch->count * sizeof *out);
        count += batch->count;
    }
}

static inline int64_t ids_of(int64_t *out, struct dataset *dataset, struct budget *budget, const char *name,
                             int64_t epoch)
{
    plim_error error = {0};
    if (dataset_error(dataset, &error) != PLIM_OK)
        fail_msg("%s: %s", error.message, error.hint);
    struct iterator *iterator = open_iterator(dataset, budget, 1, epoch, 0);
    int64_t count = collect_column(out, iterator, dataset, name);
    iterator_close(iterator);
    dataset_unref(dataset);
    return count;
}

/* What opening takes is what it was said to cost; running takes nothing. */
static inline void check_stage_cost(struct dataset *dataset, struct budget *budget, int slots, const char *name)
{
    uint64_t cost[TAG_COUNT] = {0}, scratch = 0;
    int64_t ids[MOST];
    dataset_cost(cost, &scratch, dataset, GRANT(slots));
    struct budget_usage before = budget_usage(budget);
    struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
    struct budget_usage after = budget_usage(budget);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        assert_int_equal(after.now_by_tag[tag] - before.now_by_tag[tag], cost[tag]);
    collect_column(ids, iterator, dataset, name);
    collect_column(ids, iterator, dataset, name);
    assert_int_equal(budget_usage(budget).takes, after.takes);
    assert_int_equal(budget_usage(budget).now, after.now);
    iterator_close(iterator);
    assert_int_equal(budget_usage(budget).now, before.now);
}

/* Every place of two epochs can be gone to, with any number of slots and workers, and gives the same from there. */
static inline void check_stage(struct dataset *dataset, struct budget *budget, const char *name)
{
    int64_t ids[2][MOST], rest[MOST], count[2];
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    int64_t size = dataset_batch_size(dataset) ? dataset_batch_size(dataset) : 1;
    for (int e = 0; e < 2; e++)
        count[e] = collect_column(ids[e], iterator, dataset, name);
    iterator_close(iterator);
    for (int slots = 1; slots <= 4; slots += slots) {
        iterator = open_iterator(dataset, budget, slots, 0, 0);
        for (int64_t at = 0; at < count[0] + count[1]; at += 1 + at / 3) {
            int64_t e = at >= count[0], step = (at - e * count[0]) / size;
            assert_int_equal(iterator_seek(iterator, e, step, NULL), PLIM_OK);
            int64_t left = collect_column(rest, iterator, dataset, name);
            if (left != count[e] - step * size)
                fail_msg("epoch %lld, step %lld of %lld, %d slots: %lld elements are left", (long long)e,
                         (long long)step, (long long)count[e], slots, (long long)left);
            assert_true(same(rest, ids[e] + step * size, count[e] - step * size));
        }
        iterator_close(iterator);
        check_stage_cost(dataset, budget, slots, name);
    }
}

/* ---- job files ---- */

struct studio {
    struct budget *budget;
    struct arena arena;
    struct dataset *dataset;
    plim_error error;
};

/* Reads a list of stages around a source; the first error ends it. */
static inline plim_status read_stages(struct studio *room, struct dataset *source, struct budget *budget,
                                      const char *text)
{
    struct yaml *list;
    *room = (struct studio){.budget = budget, .dataset = source};
    arena_init(&room->arena, budget, TAG_PLANNER);
    plim_status status = yaml_parse(&list, &room->arena, "job.yaml", text, strlen(text), &room->error);
    for (struct yaml *entry = status == PLIM_OK ? list->first : NULL; entry && status == PLIM_OK; entry = entry->next)
        status = stage_read(&room->dataset, "job.yaml", entry, SEED, &room->error);
    arena_release(&room->arena);
    return status;
}

/* The dataset that a job's text makes of `source`. */
static inline struct dataset *staged(struct dataset *source, struct budget *budget, const char *text)
{
    struct studio room;
    if (read_stages(&room, source, budget, text) != PLIM_OK)
        fail_msg("%s: %s: %s; %s", text, room.error.where, room.error.message, room.error.hint);
    return room.dataset;
}

static inline void stage_refused(const char *text, plim_status code, const char *message, const char *tip)
{
    struct studio room;
    struct budget *budget = open_budget();
    plim_status status = read_stages(&room, counting(budget, 100), budget, text);
    if (status != code || !strstr(room.error.message, message) || !strstr(room.error.hint, tip))
        fail_msg("%s: %d '%s; %s' is not %d '%s; %s'", text, status, room.error.message, room.error.hint, code, message,
                 tip);
    assert_true(room.error.where[0]);
    dataset_unref(room.dataset);
    close_budget(budget);
}

/* ---- what tf.data printed ---- */

/* The numbers of the line `name:` in golden/stages.txt. */
static inline int64_t golden_list(int64_t *out, const char *name)
{
    char path[512], line[4096];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/stages.txt");
    FILE *file = fopen(path, "r");
    size_t length = strlen(name);
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, name, length) != 0 || line[length] != ':')
            continue;
        int64_t count = 0;
        char *at = line + length + 1, *end;
        for (long long value = strtoll(at, &end, 10); end != at; value = strtoll(at, &end, 10)) {
            out[count++] = value;
            at = end;
        }
        fclose(file);
        return count;
    }
    fclose(file);
    fail_msg("golden/stages.txt has no '%s'", name);
    return 0;
}

static inline void check_golden(const char *name, struct dataset *dataset, struct budget *budget, const char *column)
{
    int64_t ids[MOST], expected[MOST];
    int64_t count = golden_list(expected, name);
    assert_int_equal(ids_of(ids, dataset, budget, column, 0), count);
    if (!same(ids, expected, count))
        fail_msg("%s: not what tf.data gives", name);
}

#endif
