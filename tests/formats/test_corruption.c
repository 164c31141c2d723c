/* test_corruption.c - damaged files through whole pipelines that pass over what is bad: TFRecord, CSV, tar. What comes
   and how often something was passed over is what the reader alone finds, with any number of threads; limits hold. */
#include "format_files.h"
#include "random_pipeline.h"

#include "base/numbers/hash.h"
#include "formats/containers/tar.h"
#include "formats/records/record_frame.h"
#include "formats/records/tfrecord_reader.h"
#include "formats/tables/csv.h"

#define RECORDS   200
#define MOST_FILE 65536

/* ---- what came ---- */

struct list {
    int64_t count, errors;
    uint64_t element[2 * RECORDS]; /* a hash of each */
    plim_error first;              /* error */
};

static void add(struct list *list, uint64_t hash)
{
    assert_true(list->count < 2 * RECORDS);
    list->element[list->count++] = hash;
}

static void add_error(struct list *list, const plim_error *error)
{
    assert_int_equal(error->code, PLIM_BAD_DATA);
    assert_true(list->errors < 10000);
    if (!list->errors++)
        list->first = *error;
}

/* ---- a kind of file ---- */

struct kind {
    const char *source; /* the job file's words; %s: the path */
    size_t (*make)(uint8_t *out);
    void (*read)(struct list *out, const char *path); /* with the reader alone */
    const char *name;
};

/* Bytes overwritten, lost or added; [*from, *to) is what it touched. */
static size_t damage(uint8_t *file, size_t bytes, struct dice *dice, size_t *from, size_t *to)
{
    size_t at = roll(dice, bytes), size = 1 + roll(dice, roll(dice, 2) ? 4 : 200);
    uint64_t kind = roll(dice, 4);
    size = size < bytes - at ? size : bytes - at;
    *from = at;
    *to = at + size;
    if (kind == 0) {
        memmove(file + at, file + at + size, bytes - at - size);
        return bytes - size;
    }
    if (kind == 1) {
        memmove(file + at + size, file + at, bytes - at);
        bytes += size;
        *to = at;
    }
    for (size_t i = 0; i < size; i++)
        file[at + i] = kind == 2 ? 0 : (uint8_t)(file[at + i] ^ (1 + roll(dice, 255)));
    return bytes;
}

/* ---- through a pipeline ---- */

struct passage {
    int64_t batch;
    struct grant grant;
    const char *policy; /* "": the first bad one ends it */
};

static uint64_t hash_row(const struct batch *batch, const struct spec *spec, int64_t row)
{
    uint64_t hash = FNV1A_START;
    for (int c = 0; c < spec->column_count; c++) {
        const struct column *column = &spec->column[c];
        const uint8_t *at = (const uint8_t *)batch->column[c] + (uint64_t)row * column->bytes;
        const struct string *string = (const struct string *)(const void *)at;
        hash = column->type == TYPE_STRING ? fnv1a(hash, string->data, string->bytes) : fnv1a(hash, at, column->bytes);
    }
    return hash;
}

static struct dataset *open_passage(plim_budget *budget, const struct kind *kind, const char *path,
                                    const struct passage *passage)
{
    char text[512];
    snprintf(text, sizeof text, kind->source, path);
    plim_dataset *dataset = plim_dataset_read(budget, text, 0);
    if (*passage->policy)
        dataset = plim_dataset_stage(dataset, passage->policy, 0);
    return inside(plim_dataset_batch(dataset, passage->batch, false));
}

/* All that comes, and how it ended; -1 in *skipped where the pipeline could not even be opened. */
static plim_status pass_through(struct list *out, int64_t *skipped, const struct kind *kind, const char *path,
                                const struct passage *passage, plim_error *error)
{
    plim_budget *budget;
    struct iterator *iterator;
    struct batch *batch;
    *out = (struct list){0};
    *skipped = -1;
    assert_int_equal(plim_budget_make(&budget, (uint64_t)64 << 20, NULL), PLIM_OK);
    struct dataset *dataset = open_passage(budget, kind, path, passage);
    plim_status status =
        iterator_open(&iterator, dataset, &(struct data_run){budget->inner, NULL, SEED}, passage->grant, NULL, error);
    if (status == PLIM_OK) {
        struct iterator_figures figures;
        while ((status = iterator_next(&batch, iterator, error)) == PLIM_OK && batch)
            for (int64_t i = 0; i < batch->count; i++)
                add(out, hash_row(batch, dataset->spec, i));
        iterator_figures(&figures, iterator);
        *skipped = (int64_t)figures.skipped;
        iterator_close(iterator);
    }
    dataset_unref(dataset);
    assert_int_equal(budget_usage(budget->inner).now, budget->own_bytes);
    plim_budget_free(budget);
    return status;
}

static void compare(const struct list *got, int64_t skipped, const struct list *expected, int round)
{
    if (got->count != expected->count || skipped != expected->errors)
        fail_msg("round %d: %lld came and %lld were passed over; the reader finds %lld and %lld", round,
                 (long long)got->count, (long long)skipped, (long long)expected->count, (long long)expected->errors);
    if (memcmp(got->element, expected->element, (size_t)got->count * sizeof got->element[0]) != 0)
        fail_msg("round %d: other elements than the reader's", round);
}

/* The limits: as many as there are, one fewer, none at all. */
static void check_policies(const struct kind *kind, const char *path, const struct list *expected)
{
    static struct list got;
    int64_t skipped;
    char most[64];
    plim_error error = {0};
    struct passage passage = {.batch = 3, .grant = {.slots = 3, .workers = 1}, .policy = most};
    snprintf(most, sizeof most, "ignore_errors: %lld", (long long)expected->errors);
    assert_int_equal(pass_through(&got, &skipped, kind, path, &passage, &error), PLIM_OK);
    compare(&got, skipped, expected, -1);
    snprintf(most, sizeof most, "ignore_errors: %lld", (long long)expected->errors - 1);
    assert_int_equal(pass_through(&got, &skipped, kind, path, &passage, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.hint, "too many"));
    assert_non_null(strstr(error.where, "damaged"));
    snprintf(most, sizeof most, "ignore_errors: {rate: 1}");
    assert_int_equal(pass_through(&got, &skipped, kind, path, &passage, &error), PLIM_OK);
    snprintf(most, sizeof most, "ignore_errors: {rate: 0}"); /* but one is always forgiven */
    assert_int_equal(pass_through(&got, &skipped, kind, path, &passage, &error),
                     expected->errors > 1 ? PLIM_BAD_DATA : PLIM_OK);
    passage.policy = "";
    assert_int_equal(pass_through(&got, &skipped, kind, path, &passage, &error), PLIM_BAD_DATA);
    assert_string_equal(error.where, expected->first.where); /* file and byte */
    assert_string_equal(error.message, expected->first.message);
    assert_non_null(strstr(error.where, ": byte "));
    for (int64_t i = 0; i < got.count; i++) /* those before it are as they were */
        assert_true(got.element[i] == expected->element[i]);
}

typedef void look(const struct list *list, size_t from, size_t to, int round);

static void corrupt(const struct kind *kind, int rounds, look *check)
{
    static uint8_t seed_file[MOST_FILE], file[MOST_FILE + 256];
    static struct list expected, got;
    struct dice dice = {.key = random_key(42, (uint64_t)strlen(kind->source), 0)};
    size_t bytes = kind->make(seed_file);
    int64_t errors = 0, skipped, opened = 0;
    for (int round = 0; round < rounds; round++) {
        size_t from, to;
        plim_error error = {0};
        struct passage passage = {.batch = between(&dice, 1, 9),
                                  .grant = {.slots = (int)between(&dice, 1, 4), .workers = round % 3},
                                  .policy = "ignore_errors"};
        memcpy(file, seed_file, bytes);
        const char *path = write_file("damaged", file, damage(file, bytes, &dice, &from, &to));
        expected = (struct list){0};
        plim_status status = pass_through(&got, &skipped, kind, path, &passage, &error);
        if (skipped >= 0) {
            kind->read(&expected, path);
            assert_int_equal(status, PLIM_OK);
            compare(&got, skipped, &expected, round);
            if (check)
                check(&expected, from, to, round);
            if (expected.errors && round % 10 == 0)
                check_policies(kind, path, &expected);
            opened++;
        } else {
            assert_int_equal(status, PLIM_BAD_DATA); /* its head is bad: columns cannot be told */
            assert_non_null(strstr(error.where, "damaged"));
        }
        errors += expected.errors;
        unlink(path);
    }
    print_message("%s: %d corruptions, %lld could be opened, %lld errors passed over\n", kind->name, rounds,
                  (long long)opened, (long long)errors);
    assert_true(errors > rounds / 4 && opened > rounds / 2);
}

/* ---- TFRecord ---- */

static size_t record_size(int64_t i)
{
    return (size_t)(i * 37 % 113);
}

static void record_bytes(uint8_t *out, int64_t i)
{
    for (size_t b = 0; b < record_size(i); b++)
        out[b] = (uint8_t)(random_key((uint64_t)i, b, 9));
}

static size_t load(uint8_t *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    size_t bytes = fread(out, 1, MOST_FILE, in);
    fclose(in);
    unlink(path);
    return bytes;
}

static size_t make_tfrecord(uint8_t *out)
{
    struct budget *budget = new_budget();
    struct record_writer *writer;
    uint8_t data[128];
    const char *path = path_of("seed");
    assert_int_equal(record_writer_open(&writer, budget, path, RECORDS_RAW, NULL), PLIM_OK);
    for (int64_t i = 0; i < RECORDS; i++) {
        record_bytes(data, i);
        assert_int_equal(record_writer_add(writer, data, record_size(i), NULL), PLIM_OK);
    }
    assert_int_equal(record_writer_finish(writer, NULL), PLIM_OK);
    record_writer_close(writer);
    end_budget(budget);
    return load(out, path);
}

static void read_tfrecord(struct list *out, const char *path)
{
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct string records[16];
    int64_t count;
    uint64_t passed;
    plim_error error = {0};
    assert_int_equal(tfrecord_reader_open(&reader, budget, path, RECORD_BUFFER_BYTES, &error), PLIM_OK);
    for (;;) {
        if (tfrecord_reader_read(&count, records, reader, 16, NULL, &error) != PLIM_OK) {
            add_error(out, &error);
            assert_int_equal(tfrecord_reader_resync(&passed, reader, &error), PLIM_OK);
            continue;
        }
        if (!count)
            break;
        for (int64_t i = 0; i < count; i++)
            add(out, fnv1a(FNV1A_START, records[i].data, records[i].bytes));
    }
    tfrecord_reader_close(reader);
    end_budget(budget);
}

/* Records that the damage did not touch have come, all of them. One that is lost was found out, unless whole ones were
   taken away, which nobody can see. */
static void undamaged_arrive(const struct list *list, size_t from, size_t to, int round)
{
    uint8_t data[128];
    size_t begin = 0;
    int64_t at = 0, lost = 0;
    int edges = 0;
    for (int64_t i = 0; i < RECORDS; i++) {
        size_t end = begin + record_size(i) + RECORD_FRAME_BYTES;
        bool touched = from == to ? from > begin && from < end : from < end && to > begin;
        record_bytes(data, i);
        uint64_t hash = fnv1a(FNV1A_START, data, record_size(i));
        bool came = at < list->count && list->element[at] == hash;
        if (!came && !touched)
            fail_msg("round %d: record %lld is lost", round, (long long)i);
        at += came;
        lost += !came;
        edges += (begin == from) + (end == to);
        begin = end;
    }
    assert_int_equal(at, list->count);
    assert_true(!lost || list->errors || edges == 2);
}

static void tfrecord_survives(void **state)
{
    static const struct kind kind = {"{tfrecord: '%s'}", make_tfrecord, read_tfrecord, "tfrecord"};
    (void)state;
    corrupt(&kind, 1000, undamaged_arrive);
}

/* ---- CSV ---- */

static size_t make_csv(uint8_t *out)
{
    size_t bytes = (size_t)sprintf((char *)out, "id,price,name\n");
    for (int i = 0; i < RECORDS; i++)
        bytes += (size_t)sprintf((char *)out + bytes, "%d,%d.25,\"ship, %d\"\n", i, i * 3, i);
    return bytes;
}

#define CSV_SOURCE                                                                                                     \
    "{csv: {files: '%s', types: {id: int64, price: float32, name: string}, column_names: [id, price, name]}}"

static void read_csv(struct list *out, const char *path)
{
    static const struct csv_column columns[] = {
        {.type = TYPE_I64, .required = true}, {.type = TYPE_F32, .required = true}, {.type = TYPE_STRING, .text = ""}};
    static uint8_t memory[MOST_FILE];
    struct csv_options options = {.columns = columns, .column_count = 3, .header = true};
    struct budget *budget = new_budget();
    struct csv *csv;
    int64_t got;
    plim_error error = {0};
    assert_int_equal(csv_open(&csv, budget, path, &options, &error), PLIM_OK);
    for (;;) {
        struct {
            int64_t id;
            float price;
            struct string name;
        } row;
        void *to[] = {&row.id, &row.price, &row.name};
        const uint64_t stride[] = {8, 4, 16};
        struct value_buffer values;
        const struct row_target target = {.to = to, .stride = stride, .values = &values};
        value_buffer_init(&values, memory, sizeof memory);
        if (csv_read(&got, csv, 1, &target, &error) != PLIM_OK) {
            add_error(out, &error);
            continue;
        }
        if (!got)
            break;
        uint64_t hash = fnv1a(fnv1a(FNV1A_START, &row.id, 8), &row.price, 4);
        add(out, fnv1a(hash, row.name.data, row.name.bytes));
    }
    csv_close(csv);
    end_budget(budget);
}

static void csv_survives(void **state)
{
    static const struct kind kind = {CSV_SOURCE, make_csv, read_csv, "csv"};
    (void)state;
    corrupt(&kind, 100, NULL);
}

/* ---- tar ---- */

static size_t put_member(uint8_t *out, const char *name, const char *data)
{
    unsigned sum = 0;
    size_t bytes = strlen(data);
    memset(out, 0, 1024);
    snprintf((char *)out, 100, "%s", name);
    memcpy(out + 100, "0000644\0000000000\0000000000\000", 24);
    snprintf((char *)out + 124, 12, "%011o", (unsigned)bytes);
    memcpy(out + 136, "00000000000\0        0", 21);
    memcpy(out + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += out[i];
    snprintf((char *)out + 148, 8, "%06o", sum);
    memcpy(out + 512, data, bytes);
    return 1024;
}

static size_t make_tar(uint8_t *out)
{
    size_t bytes = 0;
    char name[32], data[64];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "set/%03d.cls", i);
        snprintf(data, sizeof data, "%d", i);
        bytes += put_member(out + bytes, name, data);
        snprintf(name, sizeof name, "set/%03d.txt", i);
        snprintf(data, sizeof data, "the %d. of them", i);
        bytes += put_member(out + bytes, name, data);
    }
    memset(out + bytes, 0, 1024);
    return bytes + 1024;
}

static void read_tar(struct list *out, const char *path)
{
    static uint8_t memory[MOST_FILE];
    struct budget *budget = new_budget();
    struct wds *wds;
    const struct wds_sample *sample;
    plim_error error = {0};
    assert_int_equal(wds_open(&wds, budget, path, COMPRESSION_NONE, 1 << 20, &error), PLIM_OK);
    for (bool more = true, fits;;) {
        struct value_buffer values;
        struct string text = {0}, digits = {0};
        value_buffer_init(&values, memory, sizeof memory);
        uint64_t at = wds_stream(wds)->at;
        if (wds_next(&more, &sample, wds, &error) != PLIM_OK) {
            add_error(out, &error);
            if (wds_stream(wds)->at == at)
                break;
            continue;
        }
        if (!more)
            break;
        if (wds_take(&fits, &digits, wds, "cls", &values, &error) != PLIM_OK ||
            wds_take(&fits, &text, wds, "txt", &values, &error) != PLIM_OK) {
            add_error(out, &error);
            continue;
        }
        if (!digits.data || !text.data)
            out->errors++; /* the source misses it */
        else
            add(out, fnv1a(fnv1a(FNV1A_START, digits.data, digits.bytes), text.data, text.bytes));
    }
    wds_close(wds);
    end_budget(budget);
}

static void tar_survives(void **state)
{
    static const struct kind kind = {"{tar: {files: '%s', columns: {cls: {name: label, dtype: string}, txt: text}}}",
                                     make_tar, read_tar, "tar"};
    (void)state;
    corrupt(&kind, 100, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tfrecord_survives), cmocka_unit_test(csv_survives),
                                       cmocka_unit_test(tar_survives)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
