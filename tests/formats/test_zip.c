/* test_zip.c - zip and npz files that Python and numpy wrote; damaged ones, lying ones; arrays in Fortran order. */
#include "golden_files.h"

#include <errno.h>

#include "base/numbers/count.h"
#include "formats/containers/zip.h"
#include "formats/source.h"
#include "formats/tables/npy_fortran.h"

static void find(struct npz_array *out, struct zip *zip, const char *name)
{
    plim_error error = {0};
    if (npz_find(out, zip, name, &error) != PLIM_OK)
        print_error("%s: %s\n", error.where, error.message);
    assert_int_equal(npz_find(out, zip, name, NULL), PLIM_OK);
}

/* The array's data, from behind its header, wherever they lie. */
static void load(void *to, struct zip *zip, const struct npz_array *array)
{
    uint8_t whole[1024];
    assert_true(array->member.bytes <= sizeof whole);
    assert_int_equal(zip_read(zip, &array->member, whole, NULL), PLIM_OK);
    uint64_t head = array->member.bytes - array->header.data_bytes;
    memcpy(to, whole + head, array->header.data_bytes);
    if (npz_is_stored(array)) {
        uint8_t place[1024];
        assert_int_equal(file_read(zip->file, array->header.at, place, array->header.data_bytes, NULL), PLIM_OK);
        assert_memory_equal(place, to, array->header.data_bytes);
    } else {
        assert_int_equal(array->header.at, head);
    }
}

static void arrays_of_numpy(void **state)
{
    (void)state;
    static const char *const names[] = {"arrays.npz", "arrays_packed.npz"};
    for (int packed = 0; packed < 2; packed++) {
        struct budget *budget = new_budget();
        struct zip *zip;
        struct npz_array array;
        float x[12];
        int64_t y[4];
        assert_int_equal(zip_open(&zip, budget, golden(names[packed]), NULL), PLIM_OK);
        find(&array, zip, "x");
        assert_true(npz_is_stored(&array) == !packed);
        assert_int_equal(array.header.type, TYPE_F32);
        assert_int_equal(array.header.shape.dim[0], 4);
        assert_false(array.header.fortran);
        load(x, zip, &array);
        for (int i = 0; i < 12; i++)
            assert_true(x[i] == 1.5f * (float)i);
        find(&array, zip, "y");
        load(y, zip, &array);
        assert_true(y[0] == 7 && y[1] == -8 && y[3] == (int64_t)1 << 40);
        find(&array, zip, "f");
        assert_true(array.header.fortran);
        assert_int_equal(npz_find(&array, zip, "z", NULL), PLIM_BAD_DATA);
        /* And all in turn. */
        struct zip_position walk = {0};
        char seen[16] = "";
        bool more;
        while (npz_next(&more, &array, &walk, zip, NULL) == PLIM_OK && more)
            strncat(seen, array.member.name, array.name_bytes);
        assert_string_equal(seen, packed ? "xyf" : "xyfb");
        zip_close(zip);
        end_budget(budget);
    }
}

/* Written to a pipe: sizes behind the data, zip64 fields, a comment at the end. */
static void written_to_a_pipe(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct zip *zip;
    struct zip_member member;
    struct npz_array array;
    char text[241] = "";
    float x[12];
    assert_int_equal(zip_open(&zip, budget, golden("stream.zip"), NULL), PLIM_OK);
    assert_int_equal(zip_find(&member, zip, "notes.txt", NULL), PLIM_OK);
    assert_int_equal(member.bytes, 240);
    assert_int_equal(zip_read(zip, &member, text, NULL), PLIM_OK);
    assert_memory_equal(text + 234, "hello ", 6);
    find(&array, zip, "x");
    load(x, zip, &array);
    assert_true(x[11] == 16.5f);
    zip_close(zip);
    end_budget(budget);
}

/* ---- Fortran order ----------------------------------------------------------- */

/* f[i][j][k] = 6 i + 2 j + k of shape (4, 3, 2), stored with i fastest. */
static void rows_in_fortran_order(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct file *file;
    struct npy_header header;
    double rows[4][8];
    assert_int_equal(file_open(&file, budget, golden("fortran.npy"), FILE_READ, NULL), PLIM_OK);
    assert_int_equal(npy_header_read(&header, file, budget, NULL), PLIM_OK);
    assert_true(header.fortran);
    struct npy_fortran array = npy_fortran_of(file, &header);
    uint64_t takes = budget_usage(budget).takes;
    fault_arm(FAULT_READ, 1000, false, EIO);
    assert_int_equal(npy_fortran_read(&(struct npy_fortran_part){&array, 0, 6}, (int64_t[]){1, 2, 3, 0}, 4, rows,
                                      sizeof rows[0], NULL),
                     PLIM_OK);
    assert_int_equal(fault_calls(), 12); /* a run of three and one alone, six elements each */
    fault_disarm();
    assert_int_equal(budget_usage(budget).takes, takes);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 6; k++)
            assert_true(rows[i][k] == 6 * (i + 1) % 24 + k);
    assert_int_equal(npy_fortran_read(&(struct npy_fortran_part){&array, 4, 2}, (int64_t[]){3}, 1, rows, 64, NULL),
                     PLIM_OK);
    assert_true(rows[0][0] == 22 && rows[0][1] == 23);
    file_close(file);
    /* Big-endian, inside a zip. */
    struct zip *zip;
    struct npz_array found;
    int16_t b[2];
    assert_int_equal(zip_open(&zip, budget, golden("arrays.npz"), NULL), PLIM_OK);
    find(&found, zip, "b");
    array = npy_fortran_of(zip->file, &found.header);
    assert_int_equal(npy_fortran_read(&(struct npy_fortran_part){&array, 0, 2}, (int64_t[]){2}, 1, b, 4, NULL),
                     PLIM_OK);
    assert_true(b[0] == 4 && b[1] == 5);
    zip_close(zip);
    end_budget(budget);
}

/* ---- damage -------------------------------------------------------------------- */

/* Everything in it, read whole. */
static plim_status try_zip(struct budget *budget, const char *path, plim_error *error)
{
    struct zip *zip;
    struct npz_array array;
    struct zip_member member;
    struct zip_position walk = {0};
    uint8_t data[1024];
    bool more = true;
    TRY(zip_open(&zip, budget, path, error));
    plim_status status = PLIM_OK;
    while (status == PLIM_OK) {
        status = zip_next(&more, &member, &walk, zip, error);
        if (status != PLIM_OK || !more)
            break;
        if (member.bytes <= sizeof data)
            status = zip_read(zip, &member, data, error);
    }
    if (status == PLIM_OK)
        status = npz_find(&array, zip, "x", error);
    zip_close(zip);
    return status;
}

static void damaged_files(void **state)
{
    (void)state;
    static const char *const names[] = {"arrays.npz", "arrays_packed.npz", "stream.zip"};
    for (int i = 0; i < 3; i++) {
        size_t bytes;
        char *seed = load_golden(names[i], &bytes);
        assert_true(sweep(try_zip, seed, bytes) > (int)bytes);
        free(seed);
    }
}

static void put(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

/* Where the directory's entry number `n` begins. */
static uint8_t *entry(uint8_t *data, size_t bytes, int n)
{
    for (size_t at = 0; at + 46 < bytes; at++)
        if (memcmp(data + at, "PK\1\2", 4) == 0 && n-- == 0)
            return data + at;
    fail_msg("there is no entry %d", n);
    return data;
}

static void expect(const uint8_t *data, size_t bytes, plim_status status, const char *what)
{
    struct budget *budget = new_budget();
    plim_error error = {0};
    const char *path = write_file("odd.zip", data, bytes);
    plim_status got = try_zip(budget, path, &error);
    if (got != status || !strstr(error.message, what))
        print_error("%s: %s (want %s)\n", error.where, error.message, what);
    assert_int_equal(got, status);
    assert_non_null(strstr(error.message, what));
    assert_non_null(strstr(error.where, "odd.zip: byte "));
    assert_true(budget_usage(budget).peak <= bytes + SLACK_BYTES);
    end_budget(budget);
    unlink(path);
}

static void lying_files(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *seed = (uint8_t *)load_golden("arrays_packed.npz", &bytes), data[2048];
#define AGAIN memcpy(data, seed, bytes)
    AGAIN;
    put(entry(data, bytes, 0) + 24, 0xfffffff0u, 4); /* a bomb: 4 GiB out of 100 bytes */
    expect(data, bytes, PLIM_BAD_DATA, "cannot unpack to as many");
    AGAIN;
    put(entry(data, bytes, 0) + 24, 1000, 4);
    expect(data, bytes, PLIM_BAD_DATA, "unpacks to fewer");
    AGAIN;
    put(entry(data, bytes, 0) + 24, 100, 4);
    expect(data, bytes, PLIM_BAD_DATA, "unpacks to more");
    AGAIN;
    put(entry(data, bytes, 1) + 42, 0, 4); /* the second member is the first one */
    expect(data, bytes, PLIM_BAD_DATA, "overlaps");
    AGAIN;
    put(entry(data, bytes, 2) + 20, 0x7fffffff, 4);
    expect(data, bytes, PLIM_BAD_DATA, "outside the file");
    AGAIN;
    put(entry(data, bytes, 0) + 8, 1, 2);
    expect(data, bytes, PLIM_BAD_DATA, "encrypted");
    AGAIN;
    put(entry(data, bytes, 0) + 10, 12, 2);
    put(data + 8, 12, 2);
    expect(data, bytes, PLIM_BAD_DATA, "compression 12");
    AGAIN;
    put(entry(data, bytes, 0) + 16, 1, 4);
    expect(data, bytes, PLIM_BAD_DATA, "checksum");
    AGAIN;
    put(data + bytes - 22 + 10, 60000, 2);
    put(data + bytes - 22 + 8, 60000, 2);
    expect(data, bytes, PLIM_BAD_DATA, "more members are declared");
    AGAIN;
    put(data + bytes - 22 + 4, 1, 2);
    expect(data, bytes, PLIM_BAD_DATA, "in parts");
    AGAIN;
    memcpy(entry(data, bytes, 1) + 46, "x", 1); /* two of a name */
    *(char *)memmem(data, bytes, "y.npy", 5) = 'x';
    expect(data, bytes, PLIM_BAD_DATA, "two members of the name x.npy");
    expect((const uint8_t *)"PK", 2, PLIM_BAD_DATA, "too short");
#undef AGAIN
    free(seed);
}

static void faults_come_through(void **state)
{
    (void)state;
    static const unsigned sites[] = {FAULT_OPEN, FAULT_READ, FAULT_STAT, FAULT_ALLOCATE};
    for (size_t s = 0; s < COUNT(sites); s++)
        for (int nth = 1;; nth++) {
            struct budget *budget = new_budget();
            fault_arm(sites[s], nth, true, sites[s] == FAULT_ALLOCATE ? ENOMEM : EIO);
            plim_status status = try_zip(budget, golden("stream.zip"), NULL);
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
        cmocka_unit_test(arrays_of_numpy), cmocka_unit_test(written_to_a_pipe), cmocka_unit_test(rows_in_fortran_order),
        cmocka_unit_test(damaged_files),   cmocka_unit_test(lying_files),       cmocka_unit_test(faults_come_through),
    };
    return cmocka_run_group_tests_name("zip", tests, make_folder, remove_folder);
}
