/* test_csv.c - CSV files against TensorFlow's CsvDataset, and numbers against the C library. */
#include "golden_files.h"

#include <errno.h>
#include <math.h>

#include "base/numbers/count.h"
#include "base/numbers/decimal.h"
#include "formats/tables/csv.h"

enum { ROWS = 7 };

static enum type type_of(char letter)
{
    switch (letter | 32) {
    case 'i':
        return TYPE_I32;
    case 'l':
        return TYPE_I64;
    case 'f':
        return TYPE_F32;
    case 'd':
        return TYPE_F64;
    default:
        return TYPE_STRING;
    }
}

static void add_value(char *out, size_t capacity, enum type type, const void *at)
{
    size_t length = strlen(out);
    uint32_t half;
    uint64_t full;
    struct string text;
    if (type == TYPE_STRING) {
        memcpy(&text, at, sizeof text);
        add_hex(out, capacity, text.data, text.bytes);
    } else if (type == TYPE_I32 || type == TYPE_I64) {
        snprintf(out + length, capacity - length, "%lld",
                 (long long)(type == TYPE_I32 ? *(const int32_t *)at : *(const int64_t *)at));
    } else if (isnan(element_get(at, type, 0))) {
        snprintf(out + length, capacity - length, "nan");
    } else if (type == TYPE_F32) {
        memcpy(&half, at, sizeof half);
        snprintf(out + length, capacity - length, "%08x", half);
    } else {
        memcpy(&full, at, sizeof full);
        snprintf(out + length, capacity - length, "%016llx", (unsigned long long)full);
    }
}

/* All records as "1,61;!;2,62", `most` at a time; "none" without any. */
static plim_status all_records(char *out, size_t capacity, struct budget *budget, const char *path,
                               const struct csv_options *options, int64_t most, uint64_t value_bytes)
{
    static uint8_t room_memory[65536];
    _Alignas(16) uint8_t cells[8][ROWS * 16];
    void *to[8];
    uint64_t stride[8];
    struct value_buffer values;
    struct csv *csv;
    int64_t got = 0;
    for (int64_t c = 0; c < options->column_count; c++) {
        to[c] = cells[c];
        stride[c] = 16;
    }
    value_buffer_init(&values, room_memory, value_bytes);
    out[0] = 0;
    TRY(csv_open(&csv, budget, path, options, NULL));
    uint64_t takes = budget_usage(budget).takes;
    for (;;) {
        plim_error error = {0};
        plim_status status = csv_read(&got, csv, most, &(struct row_target){to, stride, &values}, &error);
        if (status != PLIM_OK) {
            assert_int_equal(status, PLIM_BAD_DATA);
            assert_non_null(strstr(error.where, ": byte "));
            assert_non_null(strstr(error.message, "record "));
            snprintf(out + strlen(out), capacity - strlen(out), "%s!", out[0] ? ";" : "");
            continue;
        }
        if (got == 0 && !values.wanted)
            break;
        assert_true(got || values.used == 0);
        for (int64_t i = 0; i < got; i++) {
            snprintf(out + strlen(out), capacity - strlen(out), "%s", out[0] ? ";" : "");
            for (int64_t c = 0; c < options->column_count; c++) {
                if (c)
                    snprintf(out + strlen(out), capacity - strlen(out), ",");
                add_value(out, capacity, options->columns[c].type, cells[c] + i * 16);
            }
        }
        if (got == 0)
            values.capacity *= 2; /* one record that does not fit: a larger room */
        value_buffer_empty(&values);
    }
    assert_int_equal(budget_usage(budget).takes, takes);
    csv_close(csv);
    if (!out[0])
        snprintf(out, capacity, "none");
    return PLIM_OK;
}

/* One line of the golden file: types na header select delimiter quotes data expected. */
static void check_case(char *line)
{
    static char got[65536];
    uint8_t na[64], delimiter[8], data[4096];
    char *types = strsep(&line, " "), *na_hex = strsep(&line, " "), *header = strsep(&line, " ");
    char *select_text = strsep(&line, " "), *delimiter_hex = strsep(&line, " "), *quotes = strsep(&line, " ");
    size_t bytes = unhex(data, strsep(&line, " "));
    int64_t select[8];
    struct csv_column columns[8] = {0};
    na[unhex(na, na_hex)] = 0;
    unhex(delimiter, delimiter_hex);
    struct csv_options options = {.columns = columns,
                                  .column_count = (int64_t)strlen(types),
                                  .delimiter = (char)delimiter[0],
                                  .no_quotes = *quotes == '0',
                                  .header = *header == '1',
                                  .na_value = (const char *)na};
    for (int64_t c = 0; c < options.column_count; c++)
        columns[c] = (struct csv_column){
            .type = type_of(types[c]), .required = types[c] < 'a', .whole = 7, .real = 7, .text = "D"};
    if (*select_text != '-') {
        options.select = select;
        for (int c = 0; select_text; c++)
            select[c] = atol(strsep(&select_text, ","));
    }
    const char *path = write_file("a.csv", data, bytes);
    static const struct {
        size_t buffer;
        int64_t most;
        uint64_t values;
    } ways[] = {{0, ROWS, 60000}, {0, 1, 60000}, {64, ROWS, 60000}, {65, 3, 8}};
    for (size_t w = 0; w < COUNT(ways); w++) {
        struct budget *budget = new_budget();
        options.buffer_bytes = ways[w].buffer;
        assert_int_equal(all_records(got, sizeof got, budget, path, &options, ways[w].most, ways[w].values), PLIM_OK);
        if (strcmp(got, line) != 0)
            print_error("%s %.*s (way %zu):\n got  %s\n want %s\n", types, (int)bytes, data, w, got, line);
        assert_string_equal(got, line);
        end_budget(budget);
    }
    unlink(path);
}

static void check_types(char *line)
{
    uint8_t data[1024];
    enum type want, types[2];
    struct csv_options options = {.na_value = "NA"};
    struct budget *budget = new_budget();
    const char *path = write_file("t.csv", data, unhex(data, strsep(&line, " ")));
    assert_true(type_of_column(&want, line));
    const struct csv_probe file = {.budget = budget, .path = path, .options = &options};
    assert_int_equal(csv_infer(types, 2, 100, &file, NULL), PLIM_OK);
    if (types[0] != want)
        print_error("%s: got %s, want %s\n", (char *)data, type_name(types[0]), line);
    assert_int_equal(types[0], want);
    assert_int_equal(types[1], TYPE_STRING);
    end_budget(budget);
    unlink(path);
}

static void records_as_tensorflow_reads_them(void **state)
{
    (void)state;
    size_t bytes;
    char *text = load_golden("csv.txt", &bytes), *line, *rest = text;
    int cases = 0, types = 0;
    while ((line = strsep(&rest, "\n")) && *line && *line != '#') {
        check_case(line);
        cases++;
    }
    while ((line = strsep(&rest, "\n")) && *line) {
        check_types(line);
        types++;
    }
    assert_true(cases > 60 && types > 15);
    free(text);
}

static void errors_name_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *what;
    } rows[] = {
        {"1,2\n3,x\n", ": byte 6", "line 2, record 1: field 1 is not a valid float: x"},
        {"1,\n", ": byte 2", "line 1, record 0: field 1 is required but missing in record!"},
        {"1,2\n1\n", ": byte 4", "record 1: has fewer fields than columns"},
        {"1,2,3\n", ": byte 4", "record 0: has more fields than there are columns"},
        {"1,\"2\n", ": byte 2", "record 0: field 1 reached the end of the file"},
        {"1,2\"\n", ": byte 3", "record 0: field 1 a field without quotes"},
    };
    struct csv_column columns[] = {{.type = TYPE_I32, .required = true}, {.type = TYPE_F32, .required = true}};
    struct csv_options options = {.columns = columns, .column_count = 2};
    for (size_t r = 0; r < COUNT(rows); r++) {
        int32_t a[4];
        float b[4];
        const struct row_target target = {.to = (void *[]){a, b}, .stride = (uint64_t[]){4, 4}};
        int64_t got;
        struct csv *csv;
        plim_error error = {0};
        plim_status status = PLIM_OK;
        struct budget *budget = new_budget();
        const char *path = write_file("e.csv", rows[r].text, strlen(rows[r].text));
        assert_int_equal(csv_open(&csv, budget, path, &options, NULL), PLIM_OK);
        for (int i = 0; i < 3 && status == PLIM_OK; i++)
            status = csv_read(&got, csv, 4, &target, &error);
        assert_int_equal(status, PLIM_BAD_DATA);
        if (!strstr(error.where, rows[r].where) || !strstr(error.message, rows[r].what))
            print_error("%s: %s\n", error.where, error.message);
        assert_non_null(strstr(error.where, rows[r].where));
        assert_non_null(strstr(error.message, rows[r].what));
        csv_close(csv);
        end_budget(budget);
        unlink(path);
    }
}

static void options_that_cannot_be(void **state)
{
    (void)state;
    struct csv *csv;
    struct budget *budget = new_budget();
    struct csv_column columns[] = {{.type = TYPE_I32}, {.type = TYPE_F16}};
    struct csv_options options = {.columns = columns, .column_count = 2};
    const char *path = write_file("o.csv", "", 0);
    assert_int_equal(csv_open(&csv, budget, path, &options, NULL), PLIM_BAD_JOB);
    options.column_count = 1;
    options.delimiter = '\n';
    assert_int_equal(csv_open(&csv, budget, path, &options, NULL), PLIM_BAD_JOB);
    options.delimiter = ';';
    options.select = (int64_t[]){-1};
    assert_int_equal(csv_open(&csv, budget, path, &options, NULL), PLIM_BAD_JOB);
    options.select = NULL;
    options.header = true;
    assert_int_equal(csv_open(&csv, budget, path, &options, NULL), PLIM_BAD_DATA);
    end_budget(budget);
    unlink(path);
}

static void names_and_places(void **state)
{
    (void)state;
    const char text[] = "a,\"b \"\"c\"\"\",d\n1,2,3\n4,5,6\n";
    uint8_t memory[64];
    struct value_buffer values;
    struct string names[3];
    struct csv_column columns[3] = {{.type = TYPE_I32}, {.type = TYPE_I32}, {.type = TYPE_I32}};
    struct csv_options options = {.columns = columns, .column_count = 3, .header = true};
    struct csv *csv;
    struct budget *budget = new_budget();
    int64_t count, got;
    int32_t row[3];
    void *to[] = {&row[0], &row[1], &row[2]};
    const struct row_target target = {.to = to, .stride = (uint64_t[3]){0}};
    const char *path = write_file("n.csv", text, sizeof text - 1);
    const struct csv_probe file = {.budget = budget, .path = path, .options = &options};
    value_buffer_init(&values, memory, sizeof memory);
    assert_int_equal(csv_names(names, &count, 3, &file, &values, NULL), PLIM_OK);
    assert_int_equal(count, 3);
    assert_int_equal(names[1].bytes, 5);
    assert_memory_equal(names[1].data, "b \"c\"", 5);
    assert_int_equal(csv_names(names, &count, 2, &file, &values, NULL), PLIM_BAD_DATA);
    value_buffer_init(&values, memory, 3);
    assert_int_equal(csv_names(names, &count, 3, &file, &values, NULL), PLIM_BAD_DATA);
    assert_int_equal(csv_open(&csv, budget, path, &options, NULL), PLIM_OK);
    assert_int_equal(csv_read(&got, csv, 1, &target, NULL), PLIM_OK);
    assert_int_equal(csv_at(csv), sizeof text - 1 - 6);
    assert_int_equal(csv_read(&got, csv, 1, &target, NULL), PLIM_OK);
    assert_int_equal(row[1], 5);
    assert_int_equal(csv_read(&got, csv, 1, &target, NULL), PLIM_OK);
    assert_int_equal(got, 0);
    assert_int_equal(row[2], 6);
    csv_close(csv);
    end_budget(budget);
    unlink(path);
}

/* A quote that is never closed must not take the file into memory. */
static void records_without_end(void **state)
{
    (void)state;
    static char text[4096];
    struct csv_column column = {.type = TYPE_STRING};
    struct csv_options options = {.columns = &column, .column_count = 1, .buffer_bytes = 1024};
    struct csv *csv;
    struct value_buffer values;
    struct string out[4];
    const struct row_target target = {.to = (void *[]){out}, .stride = &(uint64_t){sizeof *out}, .values = &values};
    uint8_t memory[2048];
    int64_t got;
    plim_error error = {0};
    struct budget *budget = new_budget();
    memset(text, '\n', sizeof text);
    memcpy(text, "ok\n\"open", 8);
    const char *path = write_file("q.csv", text, sizeof text);
    value_buffer_init(&values, memory, sizeof memory);
    assert_int_equal(csv_open(&csv, budget, path, &options, NULL), PLIM_OK);
    assert_int_equal(csv_read(&got, csv, 4, &target, NULL), PLIM_OK);
    assert_int_equal(got, 1);
    assert_int_equal(csv_read(&got, csv, 4, &target, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "record 1 is longer than 1024 bytes"));
    assert_int_equal(csv_read(&got, csv, 4, &target, NULL), PLIM_OK);
    assert_int_equal(got, 0);
    csv_close(csv);
    end_budget(budget);
    unlink(path);
}

/* Cut at every byte, every bit turned: never a crash, whatever comes out. */
static void damaged_files(void **state)
{
    (void)state;
    const char seed[] = "a,b,c\n1,2.5,\"x \"\"y\"\" z\"\r\n-7,1e-5,\n3,,q\n";
    struct csv_column columns[] = {{.type = TYPE_I32}, {.type = TYPE_F64}, {.type = TYPE_STRING}};
    struct csv_options options = {.columns = columns, .column_count = 3, .header = true};
    char text[sizeof seed], got[1024];
    struct budget *budget = new_budget();
    for (size_t i = 1; i < 9 * (sizeof seed - 1); i++) {
        size_t bytes = i < sizeof seed ? i : sizeof seed - 1;
        memcpy(text, seed, sizeof seed);
        if (i >= sizeof seed)
            text[(i - sizeof seed) / 8] ^= (char)(1 << (i - sizeof seed) % 8);
        const char *path = write_file("d.csv", text, bytes);
        plim_status status = all_records(got, sizeof got, budget, path, &options, 3, 4096);
        assert_true(status == PLIM_OK || status == PLIM_BAD_DATA);
        unlink(path);
    }
    end_budget(budget);
}

static void faults_come_through(void **state)
{
    (void)state;
    static const unsigned sites[] = {FAULT_OPEN, FAULT_READ, FAULT_ALLOCATE};
    struct csv_column columns[] = {{.type = TYPE_I32}, {.type = TYPE_STRING, .text = "none"}};
    struct csv_options options = {.columns = columns, .column_count = 2, .select = (int64_t[]){0, 1}, .na_value = "NA"};
    for (size_t s = 0; s < COUNT(sites); s++)
        for (int nth = 1;; nth++) {
            struct budget *budget = new_budget();
            struct csv *csv;
            enum type types[2];
            const char *path = write_file("f.csv", "1,a\n", 4);
            fault_arm(sites[s], nth, true, sites[s] == FAULT_ALLOCATE ? ENOMEM : EIO);
            plim_status status = csv_open(&csv, budget, path, &options, NULL);
            if (status == PLIM_OK)
                csv_close(csv);
            if (status == PLIM_OK)
                status = csv_infer(types, 2, 0, &(struct csv_probe){budget, path, &options}, NULL);
            bool reached = fault_disarm();
            assert_int_equal(status, !reached ? PLIM_OK : sites[s] == FAULT_ALLOCATE ? PLIM_NO_MEMORY : PLIM_IO);
            end_budget(budget);
            unlink(path);
            if (!reached)
                break;
        }
}

/* Numbers of every size and length, half-way cases among them, as strtod and strtof have them. */
static void numbers_are_exact(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        char text[64];
        double real, want;
        float narrow, narrow_want, near;
        uint32_t half;
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        half = (uint32_t)(seed >> 16);
        memcpy(&real, &seed, sizeof real);
        memcpy(&near, &half, sizeof near);
        if (!isfinite(real) || !isfinite(near))
            continue;
        int length =
            i % 5 == 0   ? snprintf(text, sizeof text, "%.17g", real)
            : i % 5 == 1 ? snprintf(text, sizeof text, "%.9g", (double)near)
            : i % 5 == 2 ? snprintf(text, sizeof text, "%.25g", ((double)near + (double)nextafterf(near, INFINITY)) / 2)
            : i % 5 == 3
                ? snprintf(text, sizeof text, "%.6f", (double)(int64_t)seed / 9.3e18)
                : snprintf(text, sizeof text, "%llu.%ue%d", (unsigned long long)(seed >> i % 64), half, i % 161 - 80);
        want = strtod(text, NULL);
        narrow_want = strtof(text, NULL);
        assert_true(decimal_double(&real, text, (size_t)length));
        assert_true(decimal_float(&narrow, text, (size_t)length));
        if (memcmp(&real, &want, sizeof real) != 0 || memcmp(&narrow, &narrow_want, sizeof narrow) != 0)
            print_error("%s: %.17g %.17g %.9g %.9g\n", text, real, want, (double)narrow, (double)narrow_want);
        assert_memory_equal(&real, &want, sizeof real);
        assert_memory_equal(&narrow, &narrow_want, sizeof narrow);
    }
    double value;
    static const char *const bad[] = {"", " 1", "1 ", "1x", "e5", ".", "+-1", "1e", "--1", "0x", "1e5.5"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(decimal_double(&value, bad[i], strlen(bad[i])));
    char many[1500];
    memset(many, '9', sizeof many);
    assert_false(decimal_double(&value, many, sizeof many));
    assert_true(decimal_double(&value, many, 900));
    assert_true(isinf(value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_as_tensorflow_reads_them),
        cmocka_unit_test(errors_name_the_place),
        cmocka_unit_test(options_that_cannot_be),
        cmocka_unit_test(names_and_places),
        cmocka_unit_test(records_without_end),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(faults_come_through),
        cmocka_unit_test(numbers_are_exact),
    };
    return cmocka_run_group_tests_name("csv", tests, make_folder, remove_folder);
}
