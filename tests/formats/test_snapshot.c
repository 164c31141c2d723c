/* test_snapshot.c - snapshots as files: every byte missing, every bit turned. */
#include "format_files.h"
#include "formats/records/snapshot.h"

static const struct spec small_spec = {.column_count = 3,
                                       .element_bytes = 8 + sizeof(struct string) + sizeof(struct cell),
                                       .column = {{"id", TYPE_I32, {0, {0}}, 4, 0},
                                                  {"text", TYPE_STRING, {0, {0}}, sizeof(struct string), 0},
                                                  {"cell", TYPE_STRING, {2, {-1, 2}}, sizeof(struct cell), 0}}};

/* Three rows: texts of 0, 1, 2 letters, and as many pairs of texts. */
static void write_small(const char *path)
{
    struct budget *budget = new_budget();
    struct snapshot *snapshot;
    int32_t id[3] = {7, 8, 9};
    struct string text[3], inner[4];
    struct cell cell[3];
    for (int i = 0; i < 3; i++) {
        text[i] = (struct string){(const uint8_t *)"ab", (uint64_t)i};
        cell[i] = (struct cell){.data = inner, .dim = {i, 2}};
    }
    for (int i = 0; i < 4; i++)
        inner[i] = (struct string){(const uint8_t *)"wxyz" + i, 1};
    const void *from[3] = {id, text, cell};
    const uint64_t stride[3] = {sizeof id[0], sizeof text[0], sizeof cell[0]};
    struct spec spec = small_spec;
    assert_int_equal(snapshot_create(&snapshot, budget, path, &spec, "cafe", NULL), PLIM_OK);
    assert_int_equal(snapshot_add(snapshot, from, stride, 3, NULL), PLIM_OK);
    assert_int_equal(snapshot_finish(snapshot, NULL), PLIM_OK);
    snapshot_close(snapshot);
    end_budget(budget);
}

static plim_status read_all(int64_t *sum, struct budget *budget, const char *path, plim_error *error)
{
    struct snapshot *snapshot;
    _Alignas(64) uint8_t bytes[4096], rows[MOST_COLUMNS][256];
    struct value_buffer values;
    void *to[MOST_COLUMNS];
    uint64_t stride[MOST_COLUMNS];
    TRY(snapshot_open(&snapshot, budget, path, error));
    const struct spec *spec = &snapshot_head(snapshot)->spec;
    plim_status status = PLIM_OK;
    bool fits = true;
    for (int c = 0; c < spec->column_count; c++) {
        to[c] = rows[c];
        stride[c] = spec->column[c].bytes;
        fits = fits && stride[c] <= sizeof rows[0];
    }
    const struct row_target target = {.to = to, .stride = stride, .values = &values};
    for (int64_t i = 0; fits && i < snapshot_head(snapshot)->count && status == PLIM_OK; i++) {
        int64_t done;
        value_buffer_init(&values, bytes, sizeof bytes);
        status = snapshot_read(&done, snapshot, &i, 1, &target, error);
        for (uint64_t k = 0; status == PLIM_OK && k < values.used; k++)
            *sum += bytes[k]; /* all of it may be read */
    }
    snapshot_close(snapshot);
    return status;
}

static size_t load(uint8_t *out, size_t most, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t bytes = fread(out, 1, most, file);
    fclose(file);
    return bytes;
}

static void what_is_written_is_read(void **state)
{
    struct budget *budget = new_budget();
    struct snapshot *snapshot;
    const int64_t index[3] = {2, 0, 1};
    int64_t done;
    int32_t id[3];
    struct string text[3];
    struct cell cell[3];
    _Alignas(64) uint8_t bytes[4096];
    struct value_buffer values;
    (void)state;
    write_small(path_of("small"));
    assert_int_equal(snapshot_open(&snapshot, budget, path_of("small"), NULL), PLIM_OK);
    assert_int_equal(snapshot_head(snapshot)->count, 3);
    assert_string_equal(snapshot_head(snapshot)->digest, "cafe");
    assert_int_equal(snapshot_head(snapshot)->spec.column[2].shape.dim[0], -1);
    void *to[3] = {id, text, cell};
    const uint64_t stride[3] = {sizeof id[0], sizeof text[0], sizeof cell[0]};
    const struct row_target target = {.to = to, .stride = stride, .values = &values};
    value_buffer_init(&values, bytes, sizeof bytes);
    assert_int_equal(snapshot_read(&done, snapshot, index, 3, &target, NULL), PLIM_OK);
    assert_int_equal(done, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(id[i], 7 + index[i]);
        assert_int_equal(text[i].bytes, index[i]);
        assert_memory_equal(text[i].data, "ab", (size_t)index[i]);
        assert_int_equal(cell[i].dim[0], index[i]);
        for (int64_t k = 0; k < index[i] * 2; k++)
            assert_int_equal(((struct string *)cell[i].data)[k].data[0], "wxyz"[k]);
    }
    value_buffer_init(&values, bytes, 64); /* the first does not fit, and says how much would do */
    assert_int_equal(snapshot_read(&done, snapshot, index, 3, &target, NULL), PLIM_OK);
    assert_int_equal(done, 0);
    assert_true(values.wanted > 64);
    assert_int_equal(values.used, 0);
    snapshot_close(snapshot);
    unlink(path_of("small"));
    unlink(path_of("small.values"));
    end_budget(budget);
}

static plim_status try_rows(struct budget *budget, const char *path, plim_error *error)
{
    int64_t sum = 0;
    return read_all(&sum, budget, path, error);
}

static void damaged_rows(void **state)
{
    uint8_t seed[4096], values[4096];
    (void)state;
    write_small(path_of("small"));
    size_t bytes = load(seed, sizeof seed, path_of("small"));
    size_t value_count = load(values, sizeof values, path_of("small.values"));
    assert_true(bytes < 1024);
    write_file("damaged.values", values, value_count);
    assert_true(sweep(try_rows, seed, bytes) > 1000);
    unlink(path_of("damaged.values"));
    unlink(path_of("small"));
    unlink(path_of("small.values"));
}

/* The values are the damaged ones. */
static void damaged_values(void **state)
{
    uint8_t values[4096];
    int64_t sum = 0;
    (void)state;
    write_small(path_of("small"));
    size_t bytes = load(values, sizeof values, path_of("small.values"));
    for (size_t cut = 0; cut < bytes; cut++) {
        struct budget *budget = new_budget();
        write_file("small.values", values, cut);
        assert_int_equal(read_all(&sum, budget, path_of("small"), NULL), PLIM_BAD_DATA);
        end_budget(budget);
    }
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        struct budget *budget = new_budget();
        values[bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_file("small.values", values, bytes);
        plim_status status = read_all(&sum, budget, path_of("small"), NULL);
        assert_true(status == PLIM_OK || status == PLIM_BAD_DATA);
        values[bit / 8] ^= (uint8_t)(1 << bit % 8);
        end_budget(budget);
    }
    unlink(path_of("small"));
    unlink(path_of("small.values"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(damaged_rows),
        cmocka_unit_test(damaged_values),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
