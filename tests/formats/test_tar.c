/* test_tar.c - tar files that Python wrote, and WebDataset's samples in them; damaged ones, lying ones. */
#include "golden_files.h"

#include <errno.h>

#include "base/numbers/count.h"
#include "formats/containers/tar.h"

#define LONG                                                                                                           \
    "set/"                                                                                                             \
    "longxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
    "xxxxxxxxxxxx"

static const char *const sets[] = {"set_pax.tar", "set_gnu.tar", "set.tar.gz"};

static void members_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t bytes;
    } want[] = {{"__meta__.json", 2},  {"set/000000.jpg", 0},    {"set/000000.cls", 1}, {"set/000001.jpg", 700},
                {"set/000001.cls", 2}, {"set/000002.jpg", 1400}, {"set/000002.cls", 2}, {LONG ".seg.PNG", 3},
                {LONG ".json", 2},     {"README", 12},           {"set/last.txt", 3}};
    for (int s = 0; s < 3; s++) {
        struct budget *budget = new_budget();
        struct tar *tar;
        struct tar_member member;
        bool more;
        uint64_t end = 0;
        assert_int_equal(tar_open(&tar, budget, golden(sets[s]), COMPRESSION_AUTO, NULL), PLIM_OK);
        for (int i = 0; i < 11; i++) {
            uint8_t data[2000];
            size_t got;
            assert_int_equal(tar_next(&more, &member, tar, NULL), PLIM_OK);
            assert_true(more);
            assert_string_equal(member.name, want[i].name);
            assert_int_equal(member.bytes, want[i].bytes);
            /* The first of its headers: a long name has one of its own. */
            bool long_name = strlen(member.name) > 100;
            assert_true(member.header_at >= end && member.header_at % 512 == 0);
            assert_true((member.at - member.header_at > 512) == long_name);
            end = (member.at + member.bytes + 511) / 512 * 512;
            if (i % 3 == 0)
                continue; /* not read, or not all of it */
            assert_int_equal(tar_read(&got, tar, data, i % 3 == 1 ? sizeof data : 1, NULL), PLIM_OK);
            if (i % 3 == 1)
                assert_int_equal(got, member.bytes);
            if (i == 5)
                assert_true(data[0] == 2);
        }
        assert_int_equal(tar_next(&more, &member, tar, NULL), PLIM_OK);
        assert_false(more);
        assert_int_equal(tar_next(&more, &member, tar, NULL), PLIM_OK);
        assert_false(more);
        tar_close(tar);
        end_budget(budget);
    }
}

static void names_with_a_prefix(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct tar *tar;
    struct tar_member member;
    bool more;
    assert_int_equal(tar_open(&tar, budget, golden("set_ustar.tar"), COMPRESSION_NONE, NULL), PLIM_OK);
    assert_int_equal(tar_next(&more, &member, tar, NULL), PLIM_OK);
    assert_int_equal(strlen(member.name), 100 + 1 + 40 + 9);
    assert_string_equal(member.name + 100, "/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee/name.txt");
    tar_close(tar);
    end_budget(budget);
}

static void keys_and_extensions(void **state)
{
    (void)state;
    static const struct {
        const char *name, *key, *extension; /* NULL: belongs to no sample */
    } rows[] = {{"a.jpg", "a", "jpg"},
                {"d/a.b.seg.png", "d/a", "b.seg.png"},
                {"d.x/a.y", "d.x/a", "y"},
                {"a", NULL, NULL},
                {"d.x/a", NULL, NULL},
                {".hidden", NULL, NULL},
                {"d/.hidden.x", NULL, NULL},
                {"__meta__", NULL, NULL},
                {"__meta__/a.jpg", NULL, NULL},
                {"__a__.json", "__a__", "json"},
                {"a.", "a", ""},
                {"__a.jpg", "__a", "jpg"}};
    for (size_t r = 0; r < COUNT(rows); r++) {
        size_t bytes;
        const char *extension;
        bool found = wds_key(rows[r].name, &bytes, &extension);
        assert_true(found == (rows[r].key != NULL));
        if (!found)
            continue;
        assert_int_equal(bytes, strlen(rows[r].key));
        assert_memory_equal(rows[r].name, rows[r].key, bytes);
        assert_string_equal(extension, rows[r].extension);
    }
}

static void samples_of_webdataset(void **state)
{
    (void)state;
    static const char *const keys[] = {"__meta__", "set/000000", "set/000001", "set/000002", LONG, "set/last"};
    for (int s = 0; s < 3; s++) {
        struct budget *budget = new_budget();
        struct wds *wds;
        const struct wds_sample *sample;
        uint8_t memory[1500];
        struct value_buffer values;
        struct string image, label;
        bool more, fits;
        value_buffer_init(&values, memory, sizeof memory);
        assert_int_equal(wds_open(&wds, budget, golden(sets[s]), COMPRESSION_AUTO, 2000, NULL), PLIM_OK);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(wds_next(&more, &sample, wds, NULL), PLIM_OK);
            assert_true(more);
            assert_string_equal(sample->key, keys[i]);
            assert_int_equal(sample->field_count, i == 0 || i == 5 ? 1 : 2);
            value_buffer_empty(&values);
            assert_int_equal(wds_take(&fits, &image, wds, "jpg;seg.png", &values, NULL), PLIM_OK);
            assert_true(fits);
            assert_true((image.data != NULL) == (i > 0 && i < 5));
            assert_int_equal(wds_take(&fits, &label, wds, "cls;json;txt", &values, NULL), PLIM_OK);
            if (i == 3) {
                assert_int_equal(image.bytes, 1400);
                assert_true(image.data[1399] == 2);
                assert_memory_equal(label.data, "22", 2);
                /* The value buffer is full now: again with an empty one. */
                assert_int_equal(wds_take(&fits, &image, wds, "jpg", &values, NULL), PLIM_OK);
                assert_false(fits);
                assert_int_equal(values.wanted, 1402 + 1400);
                value_buffer_empty(&values);
                assert_int_equal(wds_take(&fits, &image, wds, "jpg", &values, NULL), PLIM_OK);
                assert_true(fits && image.data[0] == 2);
            }
        }
        assert_int_equal(wds_next(&more, &sample, wds, NULL), PLIM_OK);
        assert_false(more);
        wds_close(wds);
        end_budget(budget);
    }
}

/* A sample larger than its buffer, in a compressed tar: named, passed over. */
static void samples_too_large(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct wds *wds;
    const struct wds_sample *sample;
    bool more;
    plim_error error = {0};
    assert_int_equal(wds_open(&wds, budget, golden("set.tar.gz"), COMPRESSION_AUTO, 1000, NULL), PLIM_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wds_next(&more, &sample, wds, NULL), PLIM_OK);
    assert_int_equal(wds_next(&more, &sample, wds, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "set/000002.jpg: with 1400 bytes its sample takes more than the 1000"));
    assert_int_equal(wds_next(&more, &sample, wds, NULL), PLIM_OK);
    assert_string_equal(sample->key, LONG);
    wds_close(wds);
    end_budget(budget);
}

/* ---- made by hand ---------------------------------------------------------------- */

static void seal(uint8_t *block)
{
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
}

static size_t add(uint8_t *to, const char *name, char kind, const char *data)
{
    size_t bytes = strlen(data);
    memset(to, 0, 512 + (bytes + 511) / 512 * 512);
    snprintf((char *)to, 100, "%s", name);
    memcpy(to + 100, "0000644\0", 8);
    snprintf((char *)to + 124, 12, "%011o", (unsigned)bytes);
    to[156] = (uint8_t)kind;
    memcpy(to + 257,
           "ustar\0"
           "00",
           8);
    seal(to);
    memcpy(to + 512, data, bytes);
    return 512 + (bytes + 511) / 512 * 512;
}

/* All members and samples. */
static plim_status try_tar(struct budget *budget, const char *path, plim_error *error)
{
    struct wds *wds;
    const struct wds_sample *sample;
    struct string out;
    uint8_t memory[4096];
    struct value_buffer values;
    bool more = true, fits;
    plim_status status;
    TRY(wds_open(&wds, budget, path, COMPRESSION_AUTO, 4096, error));
    while (!(status = wds_next(&more, &sample, wds, error)) && more) {
        value_buffer_init(&values, memory, sizeof memory);
        if ((status = wds_take(&fits, &out, wds, "txt;jpg", &values, error)))
            break;
    }
    wds_close(wds);
    return status;
}

static void damaged_files(void **state)
{
    (void)state;
    uint8_t data[4096];
    size_t bytes = add(data, "x", 'x', "19 path=long/a.txt\n");
    bytes += add(data + bytes, "a", '0', "hello");
    bytes += add(data + bytes, "b.txt", '0', "");
    memset(data + bytes, 0, 512);
    assert_true(sweep(try_tar, data, bytes + 512) > 8 * 1000);
    size_t packed;
    char *seed = load_golden("set.tar.gz", &packed);
    assert_true(sweep(try_tar, seed, packed) > 8 * 300);
    free(seed);
}

static void expect(const uint8_t *data, size_t bytes, plim_status status, const char *what)
{
    struct budget *budget = new_budget();
    plim_error error = {0};
    const char *path = write_file("odd.tar", data, bytes);
    plim_status got = try_tar(budget, path, &error);
    if (got != status || !strstr(error.message, what))
        print_error("%s: %s (want %s)\n", error.where, error.message, what);
    assert_int_equal(got, status);
    assert_non_null(strstr(error.message, what));
    assert_non_null(strstr(error.where, "odd.tar"));
    assert_true(budget_usage(budget).peak <= bytes + SLACK_BYTES);
    end_budget(budget);
    unlink(path);
}

static void lying_files(void **state)
{
    (void)state;
    static uint8_t data[16384];
    char pax[64];
    size_t bytes = add(data, "a.txt", '0', "x");
    bytes += add(data + bytes, "a.TXT", '0', "y");
    memset(data + bytes, 0, 512);
    expect(data, bytes + 512, PLIM_BAD_DATA, "has this extension already");
    bytes = add(data, "a.txt", '0', "x");
    expect(data, bytes, PLIM_BAD_DATA, "without its end mark");
    memcpy(data + 124, "77777777777\0", 12);
    seal(data);
    expect(data, bytes, PLIM_BAD_DATA, "ends here, inside the member");
    memset(data + 124, 0xff, 12); /* minus one */
    seal(data);
    expect(data, bytes, PLIM_BAD_DATA, "no valid size");
    memcpy(data + 124, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
    seal(data);
    expect(data, bytes, PLIM_BAD_DATA, "cannot be");
    add(data, "x", 'S', "");
    expect(data, 512, PLIM_BAD_DATA, "sparse");
    bytes = add(data, "x", 'x', "22 GNU.sparse.major=1\n");
    expect(data, bytes, PLIM_BAD_DATA, "sparse");
    static const char *const bad[] = {"99 path=a\n", "9 path=a\n", "path=a\n",      "10 path=a\n\n",
                                      "9 pathxa\n",  "0 =\n",      "12 size=12x\n", "99999999999999999999 path=a\n"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        bytes = add(data, "x", 'x', bad[i]);
        bytes += add(data + bytes, "a.txt", '0', "");
        memset(data + bytes, 0, 512);
        if (i != 1)
            expect(data, bytes + 512, PLIM_BAD_DATA, "pax header");
    }
    /* A size of pax beats the header's; one beyond the file is seen. */
    snprintf(pax, sizeof pax, "29 size=99999999999999999999\n");
    bytes = add(data, "x", 'x', pax);
    expect(data, bytes + add(data + bytes, "a.txt", '0', ""), PLIM_BAD_DATA, "pax header has no valid size");
    bytes = add(data, "x", 'x', "19 size=9999999999\n");
    expect(data, bytes + add(data + bytes, "a.txt", '0', ""), PLIM_BAD_DATA, "inside the member");
    /* A long name that is too long. */
    char name[5000];
    memset(name, 'n', sizeof name);
    name[4999] = 0;
    bytes = add(data, "././@LongLink", 'L', name);
    expect(data, bytes, PLIM_BAD_DATA, "a name of 4999 bytes");
}

static void faults_come_through(void **state)
{
    (void)state;
    static const unsigned sites[] = {FAULT_OPEN, FAULT_READ, FAULT_STAT, FAULT_ALLOCATE};
    for (int file = 0; file < 3; file += 2)
        for (size_t s = 0; s < COUNT(sites); s++)
            for (int nth = 1;; nth++) {
                struct budget *budget = new_budget();
                fault_arm(sites[s], nth, true, sites[s] == FAULT_ALLOCATE ? ENOMEM : EIO);
                plim_status status = try_tar(budget, golden(sets[file]), NULL);
                bool reached = fault_disarm();
                assert_int_equal(status, !reached ? PLIM_OK : sites[s] == FAULT_ALLOCATE ? PLIM_NO_MEMORY : PLIM_IO);
                end_budget(budget);
                if (!reached)
                    break;
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_in_order),    cmocka_unit_test(names_with_a_prefix),
        cmocka_unit_test(keys_and_extensions), cmocka_unit_test(samples_of_webdataset),
        cmocka_unit_test(samples_too_large),   cmocka_unit_test(damaged_files),
        cmocka_unit_test(lying_files),         cmocka_unit_test(faults_come_through),
    };
    return cmocka_run_group_tests_name("tar", tests, make_folder, remove_folder);
}
