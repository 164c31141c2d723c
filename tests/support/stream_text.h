/* stream_text.h - what a data set gives, as Python would print it; and what every stage must hold to. */
#ifndef TESTS_STREAM_TEXT_H
#define TESTS_STREAM_TEXT_H

#include "made_source.h"

#include "pipeline/core/stage.h"

#define TEXT_MOST 16384

struct paper {
    char text[TEXT_MOST];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static inline void print(struct paper *paper, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(paper->text + paper->length, TEXT_MOST - paper->length, format, list);
    va_end(list);
    assert_true(n >= 0 && paper->length + (size_t)n < TEXT_MOST);
    paper->length += (size_t)n;
}

static inline void print_one(struct paper *paper, enum type type, const uint8_t *data, int64_t i)
{
    if (type == TYPE_STRING) {
        struct string string;
        memcpy(&string, data + (size_t)i * sizeof string, sizeof string);
        print(paper, "'%.*s'", (int)string.bytes, (const char *)string.data);
    } else {
        print(paper, "%.7g", element_get(data, type, i));
    }
}

static inline void print_value(struct paper *paper, enum type type, const uint8_t *data, const struct shape *shape,
                               int axis, int64_t *at)
{
    if (axis == shape->rank) {
        print_one(paper, type, data, (*at)++);
        return;
    }
    print(paper, "[");
    for (int64_t i = 0; i < shape->dim[axis]; i++) {
        print(paper, i ? ", " : "");
        print_value(paper, type, data, shape, axis + 1, at);
    }
    print(paper, "]");
}

static inline void print_row(struct paper *paper, const struct chunk *chunk, int64_t row)
{
    int columns = chunk->spec->column_count;
    print(paper, columns > 1 ? "(" : "");
    for (int c = 0; c < columns; c++) {
        const struct column *column = &chunk->spec->column[c];
        const uint8_t *at = chunk_row(chunk, c, row);
        struct shape shape = value_shape(column, at);
        int64_t i = 0;
        print(paper, c ? ", " : "");
        print_value(paper, column->type, column_is_variable(column) ? ((const struct cell *)at)->data : at, &shape, 0,
                    &i);
    }
    print(paper, columns > 1 ? ")" : "");
}

/* ---- running ---- */

struct runner {
    struct stream *stream;
    struct chunk chunk;
    void *block;
    uint64_t bytes;
    struct budget *budget;
};

static inline void run_open(struct runner *runner, const struct dataset *dataset, struct budget *budget, int64_t rows)
{
    plim_error error = {0};
    *runner = (struct runner){.budget = budget};
    const struct stream_run run = {.budget = budget, .seed = SEED};
    uint64_t room = spec_has_values(dataset->spec) ? dataset->value_bytes : 0;
    if (dataset_start(dataset, NULL, &error) != PLIM_OK ||
        stream_open(&runner->stream, dataset, &run, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    runner->bytes = chunk_bytes(dataset->spec, rows, room);
    runner->block = budget_take(budget, TAG_PLANNER, runner->bytes);
    chunk_lay(&runner->chunk, runner->block, dataset->spec, rows, room);
}

static inline void run_close(struct runner *runner)
{
    stream_close(runner->stream);
    budget_give(runner->budget, TAG_PLANNER, runner->block, runner->bytes);
}

/* The rest of the epoch. */
static inline void run_rest(struct paper *paper, struct runner *runner)
{
    plim_error error = {0};
    bool any = false;
    *paper = (struct paper){0};
    print(paper, "[");
    for (;;) {
        if (stream_pull(runner->stream, &runner->chunk, INT64_MAX, &error) != PLIM_OK)
            fail_msg("%s", error.message);
        if (!runner->chunk.count)
            break;
        for (int64_t i = 0; i < runner->chunk.count; i++) {
            print(paper, any ? ", " : "");
            print_row(paper, &runner->chunk, i);
            any = true;
        }
    }
    print(paper, "]");
}

static inline void run_epoch(struct paper *paper, struct runner *runner, uint64_t epoch, int64_t skip)
{
    int64_t passed = 0;
    assert_int_equal(stream_rewind(runner->stream, epoch, NULL), PLIM_OK);
    assert_int_equal(stream_skip(&passed, runner->stream, skip, &runner->chunk, NULL), PLIM_OK);
    run_rest(paper, runner);
}

/* Where element `skip` begins in the text of a list of `count` of them. */
static inline const char *after(const char *text, int64_t skip)
{
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += (*at == '[' || *at == '(') - (*at == ']' || *at == ')');
        if (skip == 0 && at > text)
            return at;
        if (depth == 1 && *at == ',' && --skip == 0)
            return at + 2;
    }
    return "]";
}

/* ---- what every stage must hold to ---- */

typedef struct dataset *maker(struct budget *budget);

static inline void check_costs(struct dataset *dataset, struct budget *budget, int slots)
{
    uint64_t cost[TAG_COUNT] = {0};
    struct batch *batch;
    dataset_cost(cost, NULL, dataset, GRANT(slots));
    struct budget_usage before = budget_usage(budget);
    struct iterator *iterator = open_iterator(dataset, budget, slots, 0, 0);
    struct budget_usage opened = budget_usage(budget);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        assert_int_equal(opened.now_by_tag[tag] - before.now_by_tag[tag], cost[tag]);
    for (int i = 0; i < 20; i++)
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(iterator_seek(iterator, 0, 1, NULL), PLIM_OK);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(budget_usage(budget).takes, opened.takes);
    iterator_close(iterator);
}

/* These elements, however they are asked for, from whichever one on; the costs are as they were told. */
static inline void expect_elements(maker *make, const char *expected, int64_t count)
{
    static struct paper paper;
    static const int64_t rows[] = {64, 1, 3};
    struct budget *budget = open_budget();
    struct dataset *dataset = make(budget);
    plim_error error = {0};
    if (dataset_error(dataset, &error) != PLIM_OK)
        fail_msg("%s", error.message);
    assert_true(dataset->cardinality == count || dataset->cardinality == CARDINALITY_UNKNOWN);
    for (size_t r = 0; r < 3; r++) {
        struct runner runner;
        run_open(&runner, dataset, budget, rows[r]);
        for (int64_t skip = 0; skip <= count + 1; skip++) {
            run_epoch(&paper, &runner, 0, skip);
            if (skip == 0)
                assert_string_equal(paper.text, expected);
            assert_string_equal(skip ? paper.text + 1 : paper.text, skip ? after(expected, skip) : expected);
        }
        run_close(&runner);
    }
    check_costs(dataset, budget, 1);
    check_costs(dataset, budget, 3);
    dataset_unref(dataset);
    close_budget(budget);
}

/* Building fails, and says so. */
static inline void expect_refused(struct dataset *dataset, plim_status status, const char *words)
{
    plim_error error = {0};
    assert_int_equal(dataset_error(dataset, &error), status);
    if (!strstr(error.message, words))
        fail_msg("'%s' is not in '%s'", words, error.message);
    dataset_unref(dataset);
}

/* ---- a source of ragged rows and strings ---- */

struct made_values {
    struct source base;
    const int *length; /* of each element */
    int64_t bad;
};

struct reader {
    struct made_values *source;
    int64_t at;
};

/* x: int32 [None] = 10 i + 1.., s: "s<i>" repeated; false: the room is full. */
static inline bool made_values_row(const struct made_values *made, int64_t i, const struct row_target *to, int64_t row)
{
    int64_t n = made->length[i];
    uint64_t used = to->values->used;
    int32_t *data = value_buffer_take(to->values, (uint64_t)n * sizeof *data);
    char *text = data ? value_buffer_take_bytes(to->values, 3) : NULL;
    if (!text) {
        to->values->used = used;
        return false;
    }
    for (int64_t k = 0; k < n; k++)
        data[k] = (int32_t)(10 * i + k + 1);
    memcpy(text, (char[]){'s', (char)('0' + i / 10), (char)('0' + i % 10)}, 3);
    *(struct cell *)((uint8_t *)to->to[0] + (uint64_t)row * to->stride[0]) = (struct cell){.data = data, .dim = {n}};
    *(struct string *)((uint8_t *)to->to[1] + (uint64_t)row * to->stride[1]) =
        (struct string){.data = (const uint8_t *)text, .bytes = 3};
    return true;
}

static inline plim_status made_read_values(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                                           const struct row_target *target, plim_error *error)
{
    struct made_values *made = (struct made_values *)source;
    for (*done = 0; *done < count; ++*done) {
        if (index[*done] == made->bad)
            return fail_at(error, PLIM_BAD_DATA, "made", "element %lld is bad", (long long)made->bad);
        if (!made_values_row(made, index[*done], target, *done))
            break;
    }
    return PLIM_OK;
}

static inline void made_values_close(struct source *source)
{
    budget_give(source->budget, TAG_FORMATS, source, sizeof(struct made_values));
}

static inline plim_status made_reader_open(struct reader **out, struct source *source, struct budget *budget,
                                           plim_error *error)
{
    *out = budget_take(budget, TAG_FORMATS, sizeof **out);
    if (!*out)
        return budget_refused(budget, TAG_FORMATS, sizeof **out, error);
    (*out)->source = (struct made_values *)source;
    return PLIM_OK;
}

static inline void made_reader_close(struct reader *reader)
{
    budget_give(reader->source->base.budget, TAG_FORMATS, reader, sizeof *reader);
}

static inline plim_status made_reader_rewind(struct reader *reader, uint64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    reader->at = 0;
    return PLIM_OK;
}

/* At most two at a time: an input that gives less than is asked for. */
static inline plim_status made_reader_next(int64_t *got, struct reader *reader, int64_t most,
                                           const struct row_target *target, plim_error *error)
{
    const struct made_values *made = reader->source;
    for (*got = 0; *got < most && *got < 2 && reader->at < made->base.spec.column[0].origin; ++*got, reader->at++) {
        if (reader->at == made->bad && *got)
            break;
        if (reader->at == made->bad) {
            reader->at++;
            return fail_at(error, PLIM_BAD_DATA, "made", "element %lld is bad", (long long)made->bad);
        }
        if (!made_values_row(made, reader->at, target, *got))
            break;
    }
    return PLIM_OK;
}

static const struct source_type made_values_type = {
    .name = "made", .read_values = made_read_values, .close = made_values_close};
static const struct source_type made_stream_type = {
    .name = "made",
    .reader_open = made_reader_open,
    .reader_close = made_reader_close,
    .reader_rewind = made_reader_rewind,
    .reader_next = made_reader_next,
    .close = made_values_close,
};

static inline struct dataset *ragged_with(struct budget *budget, const int *length, int64_t count, bool stream,
                                          int64_t bad)
{
    struct made_values *made = budget_take(budget, TAG_FORMATS, sizeof *made);
    plim_error error = {0};
    if (!made) {
        budget_refused(budget, TAG_FORMATS, sizeof *made, &error);
        return dataset_failed(budget, &error);
    }
    made->length = length;
    made->bad = bad;
    made->base = (struct source){
        .type = stream ? &made_stream_type : &made_values_type,
        .budget = budget,
        .count = stream ? CARDINALITY_UNKNOWN : count,
        .value_bytes = 512,
        .reader_bytes = budget_charge(sizeof(struct reader)),
        .spec = {.column_count = 2,
                 .element_bytes = sizeof(struct cell) + sizeof(struct string),
                 .column = {{"x", TYPE_I32, {1, {-1}}, sizeof(struct cell), (int)count},
                            {"s", TYPE_STRING, {0, {0}}, sizeof(struct string), 0}}},
    };
    return dataset_from_source(&made->base);
}

static inline struct dataset *ragged(struct budget *budget, const int *length, int64_t count, bool stream)
{
    return ragged_with(budget, length, count, stream, -1);
}

/* start, start + 1, ... n of them: one int64 column. */
struct numbers {
    struct source base;
    int64_t first;
};

static inline plim_status numbers_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                                       const uint64_t *stride, plim_error *error)
{
    (void)error;
    for (int64_t i = 0; i < count; i++) {
        int64_t value = ((struct numbers *)source)->first + index[i];
        memcpy((uint8_t *)to[0] + (uint64_t)i * stride[0], &value, sizeof value);
    }
    return PLIM_OK;
}

static inline void numbers_close(struct source *source)
{
    budget_give(source->budget, TAG_FORMATS, source, sizeof(struct numbers));
}

static const struct source_type numbers_type = {.name = "numbers", .read = numbers_read, .close = numbers_close};

static inline struct dataset *numbers(struct budget *budget, int64_t first, int64_t count)
{
    struct numbers *source = budget_take(budget, TAG_FORMATS, sizeof *source);
    plim_error error = {0};
    if (!source) {
        budget_refused(budget, TAG_FORMATS, sizeof *source, &error);
        return dataset_failed(budget, &error);
    }
    source->first = first;
    source->base = (struct source){
        .type = &numbers_type,
        .budget = budget,
        .count = count,
        .spec = {.column_count = 1, .element_bytes = 8, .column = {{"x", TYPE_I64, {0, {0}}, 8, 0}}},
    };
    return dataset_from_source(&source->base);
}

/* The same as elements that come one after another: batches of one, opened again. */
static inline struct dataset *streamed(struct dataset *dataset)
{
    return dataset_unbatch(dataset_batch(dataset, 3, false));
}

/* ---- faults: whatever fails, it is an error, and nothing stays behind ---- */

static inline plim_status run_once(maker *make, struct budget *budget)
{
    struct iterator *iterator;
    struct batch *batch = NULL;
    plim_error error = {0};
    struct dataset *dataset = make(budget);
    plim_status status =
        iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, SEED}, GRANT(2), NULL, &error);
    if (status == PLIM_OK) {
        do
            status = iterator_next(&batch, iterator, &error);
        while (status == PLIM_OK && batch);
        iterator_close(iterator);
    }
    dataset_unref(dataset);
    assert_int_equal(status, error.code);
    return status;
}

static inline void expect_faults(maker *make)
{
    bool reached = true;
    for (int64_t n = 1; reached; n++) {
        struct budget *budget = open_budget();
        fault_arm(FAULT_ALLOCATE, n, n % 2, ENOMEM);
        plim_status status = run_once(make, budget);
        reached = fault_disarm();
        assert_int_equal(status, reached ? PLIM_NO_MEMORY : PLIM_OK);
        close_budget(budget);
        assert_true(n < 100);
    }
}

#endif
