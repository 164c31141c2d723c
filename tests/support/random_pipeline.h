/* random_pipeline.h - pipelines made by chance: one number, one pipeline, and the words it is written in.

   All choices are functions of that number and of the columns there are, so that the same pipeline can be built
   again under another budget. A stage that is refused where it stands is left out; a budget that is in the way
   ends the building. */
#ifndef TESTS_RANDOM_PIPELINE_H
#define TESTS_RANDOM_PIPELINE_H

#include "stage_checks.h"

#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "base/numbers/count.h"
#include "formats/records/example.h"
#include "formats/records/record_writer.h"

#define MOST_WORDS 4096

struct dice {
    uint64_t key, rolls;
};

static inline uint64_t roll(struct dice *dice, uint64_t sides)
{
    uint32_t block[4];
    random_block(block, dice->key, 1, dice->rolls++);
    return block[0] % sides;
}

static inline int64_t between(struct dice *dice, int64_t least, int64_t most)
{
    return least + (int64_t)roll(dice, (uint64_t)(most - least + 1));
}

struct grower {
    struct dice dice;
    plim_budget *budget;
    struct dataset *dataset;
    const char *folder;
    int depth;              /* of data sets inside one another */
    int named;              /* columns that were given names here */
    int caches;             /* files */
    int functions;          /* that make elements, for one iterator at a time */
    char words[MOST_WORDS]; /* what was built, as one would write it */
};

__attribute__((format(printf, 2, 3))) static inline void tell(struct grower *grower, const char *format, ...)
{
    size_t length = strlen(grower->words);
    va_list list;
    va_start(list, format);
    vsnprintf(grower->words + length, MOST_WORDS - length, format, list);
    va_end(list);
}

static inline bool over_budget(const struct dataset *dataset)
{
    return dataset->error && dataset->error->code == PLIM_OVER_BUDGET;
}

/* ---- files ---- */

static inline void write_numbers(const char *where)
{
    char path[256], head[128];
    snprintf(path, sizeof path, "%s/numbers.npy", where);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    int bytes = snprintf(head, sizeof head, "{'descr': '<i4', 'fortran_order': False, 'shape': (41, 3), }");
    memset(head + bytes, ' ', sizeof head - (size_t)bytes);
    head[117] = '\n';
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, out);
    fwrite(head, 1, 118, out);
    for (int32_t i = 0; i < 41 * 3; i++)
        fwrite(&i, sizeof i, 1, out);
    assert_int_equal(fclose(out), 0);
}

static inline void write_table(const char *where)
{
    char path[256];
    snprintf(path, sizeof path, "%s/table.csv", where);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fprintf(out, "id,price,name\n");
    for (int i = 0; i < 37; i++)
        fprintf(out, "%d,%.2f,\"%.*s, %d\"\n", i, i * 1.25, i % 9, "whale boat", i);
    assert_int_equal(fclose(out), 0);
}

/* Examples: id int64, x float32[3], list of int64. */
static inline void write_records(const char *where, const char *name, enum record_packing packing, int64_t first,
                                 int64_t count)
{
    struct budget *budget = open_budget();
    struct record_writer *writer;
    char path[256];
    uint8_t memory[1024];
    snprintf(path, sizeof path, "%s/%s", where, name);
    assert_int_equal(record_writer_open(&writer, budget, path, packing, NULL), PLIM_OK);
    for (int64_t id = first; id < first + count; id++) {
        float x[3] = {(float)id, (float)id / 2, 1};
        int64_t list[8] = {id, id + 1, id + 2, id * id};
        struct example_column columns[] = {
            {"id", TYPE_I64, &id, 1}, {"x", TYPE_F32, x, 3}, {"list", TYPE_I64, list, id % 8}};
        struct value_buffer values;
        struct string record;
        value_buffer_init(&values, memory, sizeof memory);
        assert_int_equal(example_write(&record, columns, 3, &values, NULL), PLIM_OK);
        assert_int_equal(record_writer_add(writer, record.data, record.bytes, NULL), PLIM_OK);
    }
    assert_int_equal(record_writer_finish(writer, NULL), PLIM_OK);
    record_writer_close(writer);
    close_budget(budget);
}

static inline void write_random_files(const char *where)
{
    write_numbers(where);
    write_table(where);
    write_records(where, "a.tfrecord", RECORDS_RAW, 0, 23);
    write_records(where, "b.tfrecord", RECORDS_GZIP, 23, 9);
    write_records(where, "c.tfrecord", RECORDS_RAW, 32, 17);
}

static inline void remove_random_files(const char *where)
{
    static const char *const names[] = {"numbers.npy", "table.csv", "a.tfrecord", "b.tfrecord", "c.tfrecord"};
    char path[256];
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", where, names[i]);
        assert_int_equal(unlink(path), 0);
    }
}

/* ---- functions of a program ---- */

static inline struct dataset *make_texts(const struct chunk *elements, int64_t row, void *context,
                                         struct budget *budget)
{
    int64_t i;
    (void)context;
    memcpy(&i, chunk_row(elements, 0, row), sizeof i);
    return texts_open(budget, i % 2 ? &texts_stream : &texts_indexed, 1 + i * 5 % 9, -1);
}

/* Elements that a function makes: a number and its text. */
struct telling {
    int64_t next, end;
    char text[32];
};

static inline plim_status tell_next(bool *more, void *context, void *const *row, plim_error *error)
{
    struct telling *telling = context;
    (void)error;
    *more = telling->next < telling->end;
    if (!*more)
        return PLIM_OK;
    struct string string = {(const uint8_t *)telling->text,
                            (uint64_t)snprintf(telling->text, sizeof telling->text, "%.*s%lld",
                                               (int)(telling->next % 5), "ahoyahoy", (long long)telling->next)};
    memcpy(row[0], &telling->next, sizeof telling->next);
    memcpy(row[1], &string, sizeof string);
    telling->next++;
    return PLIM_OK;
}

static inline plim_status tell_rewind(void *context, int64_t epoch, plim_error *error)
{
    (void)error;
    ((struct telling *)context)->next = epoch % 2; /* epochs of different lengths */
    return PLIM_OK;
}

static inline plim_status keep_most(bool *keep, const struct chunk *chunk, void *context, plim_error *error)
{
    (void)context, (void)error;
    for (int64_t i = 0; i < chunk->count; i++)
        keep[i] = chunk->index[i] % 4 != 2;
    return PLIM_OK;
}

/* Counts in a state, and adds it to the first column of int64, if there is one. */
static inline plim_status run_count(void *state, struct chunk *to, const struct chunk *from, int64_t row, void *context,
                                    plim_error *error)
{
    int64_t *count = state;
    (void)context;
    ++*count;
    for (int c = 0; c < to->spec->column_count; c++) {
        const struct column *column = &to->spec->column[c];
        uint8_t *at = chunk_row(to, c, to->count);
        memcpy(at, chunk_row(from, c, row), column->bytes);
        if (column_has_values(column) && !value_own(&to->values, column, at))
            return fail_at(error, PLIM_OVER_BUDGET, "scan", "the room is full");
        if (column->type == TYPE_I64 && column->shape.rank == 0)
            *(int64_t *)(void *)at += *count;
    }
    return PLIM_OK;
}

/* ---- sources ---- */

static inline void grow(struct grower *grower);

static inline void from_words(struct grower *grower, const char *format)
{
    char text[512];
    snprintf(text, sizeof text, format, grower->folder, grower->folder);
    tell(grower, "%s", text);
    grower->dataset = inside(plim_dataset_read(grower->budget, text, grower->dice.key));
}

static inline void from_made(struct grower *grower)
{
    struct budget *budget = grower->budget->inner;
    const struct source_type *types[] = {&texts_indexed, &texts_stream};
    int64_t count = between(&grower->dice, 1, 60);
    uint64_t kind = roll(&grower->dice, 4);
    tell(grower, kind >= 2 ? "made(%lld)" : kind ? "stream of texts(%lld)" : "texts(%lld)", (long long)count);
    grower->dataset = kind >= 2 ? counting(budget, count) : texts_open(budget, types[kind], count, -1);
}

static inline void from_function(struct grower *grower)
{
    static struct telling all[8];
    struct telling *telling = &all[grower->functions++ % 8];
    telling->end = between(&grower->dice, 2, 40);
    tell(grower, "generator(%lld)", (long long)telling->end);
    struct generator generator = {.next = tell_next, .rewind = tell_rewind, .context = telling, .value_bytes = 64};
    struct spec spec = {.column_count = 2,
                        .column = {{"id", TYPE_I64, {0, {0}}, 8, 0}, {"text", TYPE_STRING, {0, {0}}, 16, 0}}};
    grower->dataset = dataset_from_generator(grower->budget->inner, &spec, &generator);
}

static inline void from_turns(struct grower *grower)
{
    struct source *source;
    plim_error error = {0};
    struct interleave_options options = {
        .make = make_texts,
        .spec = {.column_count = 3,
                 .column = {{"id", TYPE_I64, {0, {0}}, 8, 0},
                            {"text", TYPE_STRING, {0, {0}}, sizeof(struct string), 0},
                            {"cell", TYPE_F32, {1, {-1}}, sizeof(struct cell), 0}}},
        .value_bytes = 2048,
        .reserve_bytes = 192 * 1024,
        .cycle_length = between(&grower->dice, 1, 4),
        .block_length = between(&grower->dice, 1, 3),
    };
    int64_t count = between(&grower->dice, 1, 9);
    bool flat = roll(&grower->dice, 2);
    tell(grower, "range(%lld).%s(%lld, %lld)", (long long)count, flat ? "flat_map" : "interleave",
         (long long)options.cycle_length, (long long)options.block_length);
    if (range_open(&source, grower->budget->inner, count, &error) != PLIM_OK) {
        grower->dataset = dataset_failed(grower->budget->inner, &error);
        return;
    }
    struct dataset *range = dataset_from_source(source);
    grower->dataset = flat ? dataset_flat_map(range, &options) : dataset_interleave(range, &options);
}

static inline void from_source(struct grower *grower)
{
    char text[64];
    int64_t count = between(&grower->dice, 1, 80);
    switch (roll(&grower->dice, 12)) {
    case 0:
        from_words(grower, "{npy: %s/numbers.npy}");
        break;
    case 1:
        from_words(grower, "{csv: {files: %s/table.csv}}");
        break;
    case 2:
        from_words(grower, "{tfrecord: '%s/?.tfrecord'}");
        break;
    case 3:
        from_words(grower, "{tfrecord: {files: '%s/?.tfrecord', interleave: {cycle_length: 2, block_length: 3}, "
                           "features: {id: int64, x: 'float32[3]', list: {var: int64}}}}");
        break;
    case 4:
        from_words(grower, "{tfrecord: {files: '%s/?.tfrecord', shuffle_files: true, features: {id: int64}}}");
        break;
    case 5:
        from_words(grower, "{text: {files: ['%s/table.csv', '%s/table.csv']}}");
        break;
    case 6:
        from_function(grower);
        break;
    case 7:
        from_turns(grower);
        break;
    case 8:
        from_words(grower, "{random: {elements: 50, shape: [2, 3], classes: 3}}");
        break;
    case 9:
        snprintf(text, sizeof text, roll(&grower->dice, 2) ? "{range: %lld}" : "{counter: {start: 3, count: %lld}}",
                 (long long)count);
        from_words(grower, text);
        break;
    default:
        from_made(grower);
    }
}

/* Another pipeline beside this one. */
static inline struct dataset *grow_another(struct grower *grower)
{
    struct dataset *own = grower->dataset;
    tell(grower, " & (");
    grower->depth++;
    grow(grower);
    grower->depth--;
    tell(grower, ")");
    struct dataset *other = grower->dataset;
    grower->dataset = own;
    return other;
}

/* ---- stages ---- */

/* Takes the new one, or stays where it was. */
static inline bool settle(struct grower *grower, struct dataset *next, const char *words)
{
    if (next->error && next->error->code != PLIM_OVER_BUDGET) {
        dataset_unref(next);
        return false;
    }
    dataset_unref(grower->dataset);
    grower->dataset = next;
    tell(grower, ", %s", words);
    return true;
}

__attribute__((format(printf, 2, 3))) static inline bool put(struct grower *grower, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (grower->dataset->error)
        return false;
    plim_dataset *next = plim_dataset_stage(outside(dataset_ref(grower->dataset)), text, grower->dice.key);
    return settle(grower, inside(next), text);
}

static inline void join_another(struct grower *grower)
{
    struct dataset *both[2] = {dataset_ref(grower->dataset), NULL};
    bool single = grower->caches || grower->functions;
    bool alike = roll(&grower->dice, 2) && !single; /* the same twice: its columns are */
    both[1] = alike ? dataset_ref(grower->dataset) : grow_another(grower);
    if (over_budget(both[1])) {
        dataset_unref(both[0]);
        settle(grower, both[1], "");
        return;
    }
    switch (roll(&grower->dice, alike ? 3 : 1)) {
    case 0:
        settle(grower, dataset_zip(both, 2), "zip");
        break;
    case 1:
        settle(grower, dataset_concatenate(both, 2), "concatenate");
        break;
    default:
        settle(grower, dataset_sample_from_datasets(both, 2, NULL, grower->dice.key, roll(&grower->dice, 2)), "sample");
    }
}

static inline void map_numbers(struct grower *grower, const struct column *column)
{
    static const char *const types[] = {"float32", "float64", "int32", "uint8", "float16"};
    char name[64];
    snprintf(name, sizeof name, "%s", column->name);
    bool image = column->shape.rank == 3 && roll(&grower->dice, 2);
    switch (image ? 8 : roll(&grower->dice, 9)) {
    case 0:
        put(grower, "map: {%s: \"%s * 2 + 1\"}", name, name);
        break;
    case 1:
        put(grower, "map: {n%d: \"%s - 3\"}", grower->named++, name);
        break;
    case 2:
        put(grower, "map: {%s: [cast: %s]}", name, types[roll(&grower->dice, 5)]);
        break;
    case 3:
        put(grower, "map: {%s: [rescale: 1/4]}", name);
        break;
    case 4:
        if (put(grower, "map: {%s: \"%s // 1 %% 5\"}", name, name) && put(grower, "map: {%s: [cast: int64]}", name))
            put(grower, "map: {%s: [one_hot: 5]}", name);
        break;
    case 5:
        put(grower, "map: {%s: [expand_dims: 0]}", name);
        break;
    case 6:
        put(grower, "map: {%s: [hashing: 100]}", name);
        break;
    case 7:
        put(grower, "map: {%s: [random_brightness: 0.3]}", name);
        break;
    default:
        if (put(grower, "map: {%s: [random_flip: horizontal, random_rotation: 0.2]}", name))
            put(grower, "map: {%s: [resize: [4, 4]]}", name);
    }
}

static inline void map_texts(struct grower *grower, const struct column *column)
{
    static const char *const functions[] = {
        "upper",       "lower",
        "strip",       "split: \"e\"",
        "hashing: 50", "string_lookup: [\"aaaa\", \"ahoy1\"]",
        "split",       "split: \"a\", to_dense: {shape: [4], value: \"-\"}",
    };
    char name[64];
    snprintf(name, sizeof name, "%s", column->name);
    put(grower, "map: {%s: [%s]}", name, functions[roll(&grower->dice, 8)]);
}

static inline void map_cells(struct grower *grower, const struct column *column)
{
    static const char *const functions[] = {"pad: 6", "truncate: 3", "to_dense: {shape: [5], value: 0}",
                                            "cast: float64", "rescale: 2"};
    char name[64];
    snprintf(name, sizeof name, "%s", column->name);
    put(grower, "map: {%s: [%s]}", name, functions[roll(&grower->dice, 5)]);
}

static inline void map_something(struct grower *grower)
{
    const struct spec *spec = dataset_spec(grower->dataset);
    const struct column *column = &spec->column[roll(&grower->dice, (uint64_t)spec->column_count)];
    if (column->type == TYPE_STRING)
        map_texts(grower, column);
    else if (column_is_variable(column))
        map_cells(grower, column);
    else
        map_numbers(grower, column);
}

static inline void choose_columns(struct grower *grower)
{
    const struct spec *spec = dataset_spec(grower->dataset);
    char name[64];
    snprintf(name, sizeof name, "%s", spec->column[roll(&grower->dice, (uint64_t)spec->column_count)].name);
    if (roll(&grower->dice, 2))
        put(grower, "rename: {%s: r%d}", name, grower->named++);
    else if (roll(&grower->dice, 3) == 0)
        put(grower, "select: [%s]", name);
}

static inline void pass_some(struct grower *grower)
{
    const struct spec *spec = dataset_spec(grower->dataset);
    char name[64];
    snprintf(name, sizeof name, "%s", spec->column[roll(&grower->dice, (uint64_t)spec->column_count)].name);
    switch (roll(&grower->dice, 6)) {
    case 0:
        put(grower, "filter: \"%s %% 3 != 1\"", name);
        break;
    case 1:
        put(grower, "filter: \"len(%s) > 4\"", name);
        break;
    case 2:
        put(grower, "take_while: \"%s < 30\"", name);
        break;
    case 3:
        put(grower, "unique: {column: %s, memory: 64KiB}", name);
        break;
    case 4:
        put(grower, "rejection_resample: {column: %s, target_dist: [0.3, 0.3, 0.4]}", name);
        break;
    default:
        settle(grower, dataset_filter(dataset_ref(grower->dataset), keep_most, NULL), "filter(function)");
    }
}

static inline void shuffle_some(struct grower *grower)
{
    switch (roll(&grower->dice, 5)) {
    case 0:
        put(grower, "shuffle: blocks");
        break;
    case 1:
        put(grower, "shuffle: {blocks: {block_size: 4, group: 3}, seed: 9}");
        break;
    case 2:
        put(grower, "shuffle: {buffer_size: %d, reshuffle_each_iteration: false}", (int)between(&grower->dice, 1, 20));
        break;
    case 3:
        put(grower, "shuffle: {buffer_size: %d, bytes: 16KiB}", (int)between(&grower->dice, 1, 40));
        break;
    default:
        if (!put(grower, "shuffle: exact"))
            put(grower, "shuffle: %d", (int)between(&grower->dice, 1, 20));
    }
}

static inline void count_some(struct grower *grower)
{
    struct dice *dice = &grower->dice;
    switch (roll(dice, 6)) {
    case 0:
        put(grower, "take: %d", (int)between(dice, 1, 40));
        break;
    case 1:
        put(grower, "skip: %d", (int)between(dice, 0, 9));
        break;
    case 2:
        put(grower, "repeat: %d", (int)between(dice, 1, 3));
        break;
    case 3:
        put(grower, "shard: {num_shards: 3, index: %d}", (int)between(dice, 0, 2));
        break;
    case 4:
        put(grower, "enumerate: {start: 5, name: e%d}", grower->named++);
        break;
    default:
        put(grower, "repeat");
        put(grower, "take: %d", (int)between(dice, 20, 90));
    }
}

static inline void stack_some(struct grower *grower)
{
    struct dice *dice = &grower->dice;
    const struct spec *spec = dataset_spec(grower->dataset);
    const char *drop = roll(dice, 3) ? "false" : "true";
    char name[64];
    snprintf(name, sizeof name, "%s", spec->column[roll(dice, (uint64_t)spec->column_count)].name);
    switch (roll(dice, 8)) {
    case 0:
        put(grower, "batch: {size: %d, drop_remainder: %s}", (int)between(dice, 1, 9), drop);
        break;
    case 1:
        put(grower, "padded_batch: {size: %d, drop_remainder: %s}", (int)between(dice, 1, 9), drop);
        break;
    case 2:
        put(grower, "window: {size: %d, shift: %d, stride: 2}", (int)between(dice, 1, 5), (int)between(dice, 1, 6));
        break;
    case 3:
        put(grower, "group_by_window: {key: %s, window_size: %d, room: 64KiB}", name, (int)between(dice, 1, 6));
        break;
    case 4:
        put(grower, "bucket_by_sequence_length: {length: %s, boundaries: [3, 9], batch_sizes: [4, 3, 2], room: 64KiB}",
            name);
        break;
    case 5:
        put(grower, "rebatch: [%d, 2]", (int)between(dice, 1, 7));
        break;
    default:
        put(grower, "unbatch");
    }
}

static inline void keep_some(struct grower *grower)
{
    static const int64_t zero = 0;
    struct scan_options scan = {.state = &zero, .state_bytes = sizeof zero, .run = run_count};
    switch (roll(&grower->dice, 4)) {
    case 0:
        if (!put(grower, "cache"))
            put(grower, "cache: {memory: 512KiB}");
        break;
    case 1:
        put(grower, "cache: {file: %s/kept%d}", grower->folder, grower->caches++);
        break;
    case 2:
        settle(grower, dataset_scan(dataset_ref(grower->dataset), &scan), "scan(function)");
        break;
    default:
        put(grower, "ignore_errors");
    }
}

static inline void add_stage(struct grower *grower)
{
    static void (*const kinds[])(struct grower *) = {
        map_something, map_something, map_something, choose_columns, pass_some,  pass_some, shuffle_some,
        shuffle_some,  count_some,    count_some,    stack_some,     stack_some, keep_some, join_another};
    uint64_t kind = roll(&grower->dice, COUNT(kinds));
    if (kinds[kind] == join_another && grower->depth >= 2)
        return;
    kinds[kind](grower);
}

static inline void grow(struct grower *grower)
{
    from_source(grower);
    int64_t stages = between(&grower->dice, 0, grower->depth ? 3 : 8);
    for (int64_t i = 0; i < stages && !grower->dataset->error; i++)
        add_stage(grower);
}

/* A whole pipeline of at most a few hundred elements. It may carry an error: of the budget, or of the source. */
static inline void grow_pipeline(struct grower *grower, uint64_t key, plim_budget *budget, const char *where)
{
    *grower = (struct grower){.dice = {.key = key}, .budget = budget, .folder = where};
    grow(grower);
    int64_t cardinality = grower->dataset->error ? 0 : dataset_cardinality(grower->dataset);
    if (cardinality < 0 || cardinality > 150)
        put(grower, "take: %d", (int)between(&grower->dice, 30, 150));
    if (!grower->dataset->error && !dataset_batch_size(grower->dataset) && roll(&grower->dice, 4))
        put(grower, "batch: %d", (int)between(&grower->dice, 1, 12));
    if (roll(&grower->dice, 2))
        put(grower, "prefetch: %d", (int)between(&grower->dice, 1, 4));
}

#endif
