/* test_expression.c - expressions over columns: what TensorFlow computes (golden/expression.txt, made by
   golden/make_expression.py), blocks against single rows, messages, hostile texts. */
#include "format_files.h"

#include <math.h>

#include "base/numbers/count.h"
#include "pipeline/expression/expression.h"

#define ROWS      7
#define COLUMNS   16
#define MOST_LINE 8192

struct table {
    struct spec spec;
    void *data[COLUMNS];
    uint64_t stride[COLUMNS];
    uint8_t bytes[COLUMNS][512];
    uint8_t text[512];
};

static void golden_open(FILE **out, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/%s", name);
    *out = fopen(path, "r");
    assert_non_null(*out);
}

static size_t from_hex(uint8_t *out, size_t most, const char *hex)
{
    size_t bytes = 0;
    for (unsigned byte; sscanf(hex + 2 * bytes, "%2x", &byte) == 1; bytes++) {
        assert_true(bytes < most);
        out[bytes] = (uint8_t)byte;
    }
    return bytes;
}

/* "626f62,,c3a9," */
static void from_words(struct string *out, uint8_t *room, const char *hex)
{
    for (int i = 0; i < ROWS; i++) {
        const char *end = strchr(hex, ',');
        assert_non_null(end);
        size_t bytes = (size_t)(end - hex) / 2;
        for (size_t b = 0; b < bytes; b++) {
            unsigned byte;
            assert_int_equal(sscanf(hex + 2 * b, "%2x", &byte), 1);
            room[b] = (uint8_t)byte;
        }
        out[i] = (struct string){.data = room, .bytes = bytes};
        room += bytes;
        hex = end + 1;
    }
}

static struct shape from_dims(const char *text)
{
    struct shape shape = {.rank = 0};
    for (; *text && *text != '-'; text += strspn(text, ","))
        shape.dim[shape.rank++] = strtoll(text, (char **)&text, 10);
    return shape;
}

static void read_column(struct table *table, const char *line)
{
    char type[16], dims[16];
    int at = 0, c = table->spec.column_count++;
    assert_true(c < COLUMNS);
    assert_int_equal(sscanf(line, "%63s %15s %15s %n", table->spec.column[c].name, type, dims, &at), 3);
    struct column *column = &table->spec.column[c];
    column->shape = from_dims(dims);
    assert_true(type_of_column(&column->type, type));
    table->data[c] = table->bytes[c];
    table->stride[c] = type_bytes(column->type) * (uint64_t)shape_count(&column->shape);
    if (column->type == TYPE_STRING)
        from_words((struct string *)(void *)table->bytes[c], table->text, line + at);
    else
        assert_int_equal(from_hex(table->bytes[c], sizeof table->bytes[c], line + at), table->stride[c] * ROWS);
}

/* Steps between two floats; all NaNs are one. */
static double ulps(double a, double b, enum type type)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    double one = type == TYPE_F64 ? 0x1p-52 : 0x1p-23;
    return fabs(a - b) / (fmax(fabs(a), fabs(b)) * one);
}

static void compare(const char *text, const struct column *spec, const uint8_t *want, const uint8_t *got, double most)
{
    int64_t count = ROWS * shape_count(&spec->shape);
    for (int64_t i = 0; i < count; i++) {
        double a = element_get(want, spec->type, i), b = element_get(got, spec->type, i);
        bool same = memcmp(want + (size_t)i * type_bytes(spec->type), got + (size_t)i * type_bytes(spec->type),
                           type_bytes(spec->type)) == 0;
        if (!same && !(type_is_float(spec->type) && ulps(a, b, spec->type) <= most))
            fail_msg("%s: value %lld is %.17g, TensorFlow has %.17g", text, (long long)i, b, a);
    }
}

static void make(struct expression **out, enum type *type, struct shape *shape, struct arena *arena, const char *text,
                 const struct table *table)
{
    plim_error error = {0};
    if (expression_parse(out, arena, text, "job.yaml:3:7", &error) != PLIM_OK ||
        expression_check(type, shape, *out, &table->spec, &error) != PLIM_OK)
        fail_msg("%s: %s", text, error.message);
}

static void check_value(struct budget *budget, const struct table *table, char *line)
{
    char type_text[16], dims[16], *tab = strchr(line, '\t');
    int most, at = 0;
    uint8_t want[1024], got[1024];
    assert_non_null(tab);
    *tab = '\0';
    assert_int_equal(sscanf(tab + 1, "%15s %15s %d %n", type_text, dims, &most, &at), 3);
    struct column spec = {.shape = from_dims(dims)};
    assert_true(type_of_column(&spec.type, type_text));
    struct arena arena;
    struct expression *expression;
    enum type type;
    struct shape shape;
    arena_init(&arena, budget, TAG_PIPELINE);
    make(&expression, &type, &shape, &arena, line, table);
    if (type != spec.type || !shape_equal(&shape, &spec.shape))
        fail_msg("%s: is %s of rank %d, TensorFlow has %s of rank %d", line, type_name(type), shape.rank, type_text,
                 spec.shape.rank);
    uint64_t stride = type_bytes(type) * (uint64_t)shape_count(&shape);
    expression_run(expression, ROWS, table->data, table->stride, got, stride);
    if (type == TYPE_STRING) {
        for (int i = 0; i < ROWS; i++)
            assert_ptr_equal(((struct string *)(void *)got)[i].data, ((struct string *)table->data[13])[i].data);
    } else {
        from_hex(want, sizeof want, tab + 1 + at);
        compare(line, &spec, want, got, most);
    }
    arena_release(&arena);
}

static void computes_as_tensorflow(void **state)
{
    (void)state;
    static struct table table;
    char line[MOST_LINE];
    FILE *in;
    int values = 0;
    golden_open(&in, "expression.txt");
    struct budget *budget = new_budget();
    while (fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "column ", 7) == 0) {
            read_column(&table, line + 7);
        } else {
            assert_int_equal(strncmp(line, "value ", 6), 0);
            check_value(budget, &table, line + 6);
            values++;
        }
    }
    fclose(in);
    assert_true(values > 90);
    end_budget(budget);
}

/* ---- blocks against single rows ---- */

enum { MANY = 1000 };

/* Columns for runs in blocks: filled by fill_columns. */
static struct {
    int64_t age[MANY];
    int32_t label[MANY];
    float price[MANY], x[MANY][5], m[MANY][4][3], v[MANY][3];
} many;
static uint8_t whole[MANY * 64], single[MANY * 64];

static void fill_columns(void)
{
    for (int i = 0; i < MANY; i++) {
        many.age[i] = i * 7919 % 1000;
        many.label[i] = i % 10;
        many.price[i] = (float)i / 3;
        for (int k = 0; k < 5; k++)
            many.x[i][k] = (float)(i * 5 + k) / 7;
        for (int k = 0; k < 12; k++)
            (&many.m[i][0][0])[k] = (float)(i - k);
        for (int k = 0; k < 3; k++)
            many.v[i][k] = (float)(k * i);
    }
}

/* All rows at once, and one by one into rows that are neither dense nor aligned: the same bytes, and nothing taken. */
static void same_rows(const char *text, const struct table *table, struct budget *budget)
{
    struct arena arena;
    struct expression *expression;
    enum type type;
    struct shape shape;
    arena_init(&arena, budget, TAG_PIPELINE);
    make(&expression, &type, &shape, &arena, text, table);
    uint64_t bytes = type_bytes(type) * (uint64_t)shape_count(&shape), stride = bytes + 3; /* not dense, not aligned */
    assert_true(stride <= 64);
    uint64_t takes = budget_usage(budget).takes;
    expression_run(expression, MANY, table->data, table->stride, whole, bytes);
    for (int i = 0; i < MANY; i++) {
        void *rows[6];
        for (int c = 0; c < 6; c++)
            rows[c] = (uint8_t *)table->data[c] + (uint64_t)i * table->stride[c];
        expression_run(expression, 1, rows, table->stride, single + (uint64_t)i * stride, stride);
    }
    assert_int_equal(budget_usage(budget).takes, takes);
    for (uint64_t i = 0; i < MANY; i++)
        if (memcmp(whole + i * bytes, single + i * stride, bytes) != 0)
            fail_msg("%s: row %llu differs", text, (unsigned long long)i);
    arena_release(&arena);
}

static void same_in_blocks(void **state)
{
    (void)state;
    static const char *const texts[] = {"(age - 40) / 12",
                                        "age * 2",
                                        "price * price + 1",
                                        "x - mean(x)",
                                        "x[1] * price",
                                        "m + x[0]",
                                        "m * v",
                                        "sum(m) > age",
                                        "where(age > 400, x, 0)",
                                        "price",
                                        "cast(age, 'uint8')",
                                        "max(m) - x",
                                        "cast(x, 'float16')",
                                        "label / 3",
                                        "v"};
    struct table table = {.spec = {.column_count = 6,
                                   .column = {{"age", TYPE_I64, {0}, 0, 0},
                                              {"label", TYPE_I32, {0}, 0, 0},
                                              {"price", TYPE_F32, {0}, 0, 0},
                                              {"x", TYPE_F32, {1, {5}}, 0, 0},
                                              {"m", TYPE_F32, {2, {4, 3}}, 0, 0},
                                              {"v", TYPE_F32, {1, {3}}, 0, 0}}},
                          .data = {many.age, many.label, many.price, many.x, many.m, many.v},
                          .stride = {8, 4, 4, 20, 48, 12}};
    struct budget *budget = new_budget();
    fill_columns();
    for (size_t t = 0; t < COUNT(texts); t++)
        same_rows(texts[t], &table, budget);
    end_budget(budget);
}

/* Over its own column, and refused where values would be read after they were written. */
static void writes_in_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool allowed;
    } rows[] = {{"x * 2 + 1", true},           {"x - mean(x)", true}, {"x - x[0]", false},  {"x + y", true},
                {"cast(x, 'float64')", false}, {"y", true},           {"x / max(x)", true}, {"sum(x)", false}};
    static float x[MANY][300], kept[MANY][300], want[MANY][300];
    static float y[MANY];
    for (int i = 0; i < MANY * 300; i++)
        (&kept[0][0])[i] = (float)(i % 1009) / 3;
    struct table table = {
        .spec = {.column_count = 2, .column = {{"x", TYPE_F32, {1, {300}}, 0, 0}, {"y", TYPE_F32, {0}, 0, 0}}},
        .data = {x, y},
        .stride = {1200, 4}};
    struct budget *budget = new_budget();
    for (size_t t = 0; t < COUNT(rows); t++) {
        struct arena arena;
        struct expression *expression;
        enum type type;
        struct shape shape;
        arena_init(&arena, budget, TAG_PIPELINE);
        make(&expression, &type, &shape, &arena, rows[t].text, &table);
        bool allowed = expression_in_place(expression, strcmp(rows[t].text, "y") == 0 ? 1 : 0);
        if (allowed != rows[t].allowed)
            fail_msg("%s: in place %d", rows[t].text, allowed);
        if (allowed && shape.rank == 1) {
            memcpy(x, kept, sizeof x);
            expression_run(expression, MANY, table.data, table.stride, want, 1200);
            expression_run(expression, MANY, table.data, table.stride, x, 1200);
            assert_memory_equal(x, want, sizeof x);
        }
        arena_release(&arena);
    }
    end_budget(budget);
}

static void counts_ragged_rows(void **state)
{
    (void)state;
    struct cell tags[3] = {{NULL, {0}}, {NULL, {3}}, {NULL, {7}}};
    struct table table = {.spec = {.column_count = 1, .column = {{"tags", TYPE_STRING, {1, {-1}}, 0, 0}}},
                          .data = {tags},
                          .stride = {sizeof tags[0]}};
    struct budget *budget = new_budget();
    struct arena arena;
    struct expression *expression;
    enum type type;
    struct shape shape;
    int64_t out[3];
    arena_init(&arena, budget, TAG_PIPELINE);
    make(&expression, &type, &shape, &arena, "len(tags) * 2", &table);
    expression_run(expression, 3, table.data, table.stride, out, 8);
    assert_true(out[0] == 0 && out[1] == 6 && out[2] == 14);
    assert_int_equal(expression_parse(&expression, &arena, "tags + 1", "", NULL), PLIM_OK);
    assert_int_equal(expression_check(&type, &shape, expression, &table.spec, NULL), PLIM_BAD_JOB);
    arena_release(&arena);
    end_budget(budget);
}

/* ---- messages ---- */

static plim_status try_text(const char *text, plim_error *error)
{
    static const struct spec spec = {.column_count = 5,
                                     .column = {{"age", TYPE_I64, {0}, 0, 0},
                                                {"name", TYPE_STRING, {0}, 0, 0},
                                                {"x", TYPE_F32, {1, {3}}, 0, 0},
                                                {"w", TYPE_F32, {1, {2}}, 0, 0},
                                                {"petal length", TYPE_F32, {0}, 0, 0}}};
    struct budget *budget = new_budget();
    struct arena arena;
    struct expression *expression;
    enum type type;
    struct shape shape;
    arena_init(&arena, budget, TAG_PIPELINE);
    plim_status status = expression_parse(&expression, &arena, text, "job.yaml:3:7", error);
    if (status == PLIM_OK)
        status = expression_check(&type, &shape, expression, &spec, error);
    arena_release(&arena);
    end_budget(budget);
    return status;
}

static void names_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message, *hint;
    } rows[] = {
        {"agee * 2", "character 1: unknown column 'agee'", "did you mean 'age'?"},
        {"sqrrt(age)", "character 1: unknown function 'sqrrt'", "did you mean 'sqrt'?"},
        {"cast(age, 'flaot32')", "character 11: unknown type 'flaot32'", "did you mean 'float32'?"},
        {"age +", "character 6: a value is missing at the end", ""},
        {"(age", "character 5: ')' is missing at the end", ""},
        {"age 2", "character 5: an operator was expected, not '2'", ""},
        {"age = 2", "character 5: '=' does not compare", "'==' does"},
        {"age > 1 & age < 3", "character 9: '&' is not known here", "write 'and'"},
        {"0 < age < 3", "character 9: comparisons do not chain", "write 'a < b and b < c'"},
        {"age and true", "character 5: 'and' takes bools, not int64", "compare first, as in 'x != 0'"},
        {"name + 1", "character 6: '+' does not take strings", ""},
        {"name == 1", "character 6: a string and a number are compared", ""},
        {"name < 'bob'", "character 6: '< or >' does not take strings", ""},
        {"x + w", "character 3: '+': shapes (3,) and (2,) do not broadcast", ""},
        {"x[3]", "character 1: index 3 is outside an axis of 3", ""},
        {"age[0]", "character 1: 1 indices for 0 axes", ""},
        {"clip(x, 0)", "character 10: clip takes 3 arguments", ""},
        {"sqrt(x, 0)", "character 9: sqrt takes 1 argument", ""},
        {"'abc", "character 1: the quote that begins here has no end", ""},
        {"99999999999999999999", "character 1: 99999999999999999999 does not fit an int64", ""},
        {"12ab", "character 1: a number runs into a word", ""},
        {"'abc'", "character 1: a text alone is no value", ""},
        {"len(x + 1)", "character 1: 'len' takes a column of strings, of arrays or a ragged one", ""},
        {"sum(name)", "character 1: strings cannot be reduced", ""},
        {"", "character 1: a value is missing at the end", ""},
        {"age @ 2", "character 5: an operator was expected, not '@'", ""},
    };
    for (size_t r = 0; r < COUNT(rows); r++) {
        plim_error error = {0};
        assert_int_equal(try_text(rows[r].text, &error), PLIM_BAD_JOB);
        assert_string_equal(error.where, "job.yaml:3:7");
        if (!strstr(error.message, rows[r].message) || strcmp(error.hint, rows[r].hint) != 0)
            fail_msg("%s: %s; %s", rows[r].text, error.message, error.hint);
    }
    assert_int_equal(try_text("`petal length` * 2", NULL), PLIM_OK);
    assert_int_equal(try_text("name == 'it\\'s' or name == \"\"", NULL), PLIM_OK);
}

/* Any depth, any length: a status. */
static void bears_hostile_texts(void **state)
{
    (void)state;
    static const char *const pieces[] = {"(",  "-",      "not ", "sum(", "x+(", "2**",
                                         "x[", "where(", "x+",   "1,",   "'",   "x*x+"};
    for (size_t p = 0; p < COUNT(pieces); p++)
        for (int times = 1; times < 3000; times = times * 3 + 1) {
            char text[EXPRESSION_MOST_BYTES + 64];
            size_t at = 0, bytes = strlen(pieces[p]);
            for (int i = 0; i < times && at + bytes < sizeof text - 2; i++, at += bytes)
                memcpy(text + at, pieces[p], bytes);
            memcpy(text + at, "x", 2);
            plim_status status = try_text(text, NULL);
            assert_true(status == PLIM_OK || status == PLIM_BAD_JOB);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_as_tensorflow), cmocka_unit_test(same_in_blocks),
        cmocka_unit_test(writes_in_place),        cmocka_unit_test(counts_ragged_rows),
        cmocka_unit_test(names_what_is_wrong),    cmocka_unit_test(bears_hostile_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
