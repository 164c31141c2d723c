/* test_idx.c - IDX files: good ones, damaged ones, lying ones. */
#include "format_files.h"

#include <errno.h>
#include <zlib.h>

#include "base/numbers/count.h"
#include "formats/containers/gzip.h"
#include "formats/source.h"
#include "pipeline/core/dataset.h"

/* 2 images of 3 x 2. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};

/* One gzip member. */
static size_t pack(uint8_t *out, size_t capacity, const void *data, size_t bytes)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (uint8_t *)data;
    stream.avail_in = (unsigned)bytes;
    stream.next_out = out;
    stream.avail_out = (unsigned)capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

static struct scratch_disk disk(void)
{
    return (struct scratch_disk){.folder = folder, .limit_bytes = (uint64_t)64 << 20};
}

static plim_status try_idx(struct budget *budget, const char *path, plim_error *error)
{
    struct source *source;
    struct scratch_disk scratch = disk();
    int64_t index[] = {1, 0};
    TRY(idx_open(&source, budget, &path, 1, error));
    uint8_t *x = malloc(1 << 20);
    void *to[] = {x};
    uint64_t stride[] = {source->spec.column[0].bytes};
    plim_status status = source->type->start(source, &scratch, error);
    if (status == PLIM_OK && source->count >= 2 && 2 * stride[0] <= 1 << 20)
        status = source->type->read(source, index, 2, to, stride, error);
    source_close(source);
    free(x);
    return status;
}

static void check_pair(const char *const *paths, bool packed)
{
    struct budget *budget = new_budget();
    struct source *source;
    struct scratch_disk scratch = disk();
    plim_error error;
    assert_int_equal(idx_open(&source, budget, paths, 2, &error), PLIM_OK);
    assert_int_equal(source->count, 2);
    assert_int_equal(source->spec.column_count, 2);
    assert_string_equal(source->spec.column[0].name, "x");
    assert_string_equal(source->spec.column[1].name, "y");
    struct shape shape = {.rank = 3, .dim = {3, 2, 1}};
    assert_true(shape_equal(&source->spec.column[0].shape, &shape));
    assert_int_equal(source->spec.column[1].shape.rank, 0);
    assert_int_equal(source->spec.element_bytes, 7);
    assert_int_equal(source->scratch_bytes, packed ? sizeof images + sizeof labels : 0);
    uint64_t before = budget_usage(budget).now;
    assert_int_equal(source->type->start(source, &scratch, &error), PLIM_OK);
    assert_int_equal(scratch.used_bytes, source->scratch_bytes);
    assert_true(budget_usage(budget).peak - before <= source->start_bytes);
    assert_int_equal(source->type->start(source, &scratch, &error), PLIM_OK); /* again: nothing to do */
    assert_int_equal(scratch.used_bytes, source->scratch_bytes);
    int64_t index[] = {1, 0, 1};
    uint8_t x[3][8] = {{0}}, y[3];
    assert_int_equal(source->type->read(source, index, 3, (void *[]){x, y}, (uint64_t[]){8, 1}, &error), PLIM_OK);
    assert_memory_equal(x[0], images + 22, 6);
    assert_memory_equal(x[1], images + 16, 6);
    assert_memory_equal(x[2], images + 22, 6);
    assert_memory_equal(y, ((uint8_t[]){9, 7, 9}), 3);
    assert_int_equal(source->bytes_read, 21);
    source_close(source);
    end_budget(budget);
}

static void reads_plain(void **state)
{
    (void)state;
    const char *paths[] = {write_file("images", images, sizeof images), write_file("labels", labels, sizeof labels)};
    check_pair(paths, false);
    unlink(paths[0]);
    unlink(paths[1]);
}

static void reads_gzip(void **state)
{
    (void)state;
    uint8_t first[200], second[200];
    size_t first_bytes = pack(first, sizeof first, images, 20); /* two members make one stream */
    first_bytes += pack(first + first_bytes, sizeof first - first_bytes, images + 20, sizeof images - 20);
    const char *paths[] = {write_file("images.gz", first, first_bytes),
                           write_file("labels.gz", second, pack(second, sizeof second, labels, sizeof labels))};
    check_pair(paths, true);
    unlink(paths[0]);
    unlink(paths[1]);
}

/* Several buffers' worth, so that unpacking goes round; start takes what it said. */
static void unpacks_large(void **state)
{
    (void)state;
    enum { COUNT = 3000, ROW = 100, HEAD = 12 };
    static uint8_t plain[HEAD + COUNT * ROW], packed[sizeof plain + 1000];
    memcpy(plain, (uint8_t[]){0, 0, 8, 2, 0, 0, COUNT >> 8, COUNT & 255, 0, 0, 0, ROW}, HEAD);
    uint32_t seed = 1;
    for (size_t i = HEAD; i < sizeof plain; i++)
        plain[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
    const char *path = write_file("large.gz", packed, pack(packed, sizeof packed, plain, sizeof plain));
    struct budget *budget = new_budget();
    struct source *source;
    struct scratch_disk scratch = disk();
    assert_int_equal(idx_open(&source, budget, &path, 1, NULL), PLIM_OK);
    assert_int_equal(source->spec.column[0].shape.rank, 1);
    uint64_t before = budget_usage(budget).now;
    assert_int_equal(source->type->start(source, &scratch, NULL), PLIM_OK);
    uint64_t took = budget_usage(budget).peak - before;
    assert_true(took <= source->start_bytes && took + 32 * 1024 > source->start_bytes);
    static uint8_t out[COUNT * ROW];
    static int64_t index[COUNT];
    for (int i = 0; i < COUNT; i++)
        index[i] = i;
    assert_int_equal(source->type->read(source, index, COUNT, (void *[]){out}, (uint64_t[]){ROW}, NULL), PLIM_OK);
    assert_memory_equal(out, plain + HEAD, sizeof out);
    source_close(source);
    end_budget(budget);
    unlink(path);
}

/* The first byte of every row, in the order of a shuffle by blocks. */
static void shuffled_rows(uint8_t out[400], struct dataset *dataset, struct budget *budget, bool held)
{
    struct iterator *iterator;
    struct batch *batch;
    struct scratch_disk scratch = disk();
    struct grant grant = {.slots = 1, .held = held};
    int64_t at = 0;
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, &scratch, 1}, grant, NULL, NULL),
                     PLIM_OK);
    for (;;) {
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        if (!batch)
            break;
        for (int64_t i = 0; i < batch->count; i++)
            out[at++] = ((const uint8_t *)batch->column[0])[2 * i];
    }
    assert_int_equal(at, 400);
    iterator_close(iterator);
}

/* Rows are announced, so blocks of them may be held; packed or not, they are the same. */
static void announces_rows(void **state)
{
    (void)state;
    static uint8_t plain[12 + 800] = {0, 0, 8, 2, 0, 0, 400 >> 8, 400 & 255, 0, 0, 0, 2}, packed[1024], out[2][400];
    for (int i = 0; i < 800; i++)
        plain[12 + i] = (uint8_t)(i / 2 * 3);
    const char *paths[] = {write_file("rows", plain, sizeof plain),
                           write_file("rows.gz", packed, pack(packed, sizeof packed, plain, sizeof plain))};
    for (int i = 0; i < 2; i++) {
        struct budget *budget = new_budget();
        struct source *source;
        struct shuffle_options options = {.kind = SHUFFLE_BLOCKS, .block_size = 8, .group = 4, .seed = 3};
        assert_int_equal(idx_open(&source, budget, &paths[i], 1, NULL), PLIM_OK);
        source->type->expect(source, 0, 400); /* before it is unpacked there is nothing to expect */
        struct dataset *dataset = dataset_batch(dataset_shuffle_with(dataset_from_source(source), &options), 32, false);
        assert_true(dataset_wanted_grant(dataset, 0).held);
        shuffled_rows(out[0], dataset, budget, false);
        shuffled_rows(out[1], dataset, budget, true);
        assert_memory_equal(out[0], out[1], sizeof out[0]);
        assert_memory_not_equal(out[0], plain, 8);
        dataset_unref(dataset);
        end_budget(budget);
        unlink(paths[i]);
    }
}

static void swaps_big_endian(void **state)
{
    (void)state;
    static const struct {
        uint8_t code, size;
        enum type type;
    } rows[] = {{0x09, 1, TYPE_I8}, {0x0b, 2, TYPE_I16}, {0x0c, 4, TYPE_I32}, {0x0d, 4, TYPE_F32}, {0x0e, 8, TYPE_F64}};
    for (size_t r = 0; r < COUNT(rows); r++) {
        uint8_t file[8 + 16] = {0, 0, rows[r].code, 1, 0, 0, 0, 2};
        double value[] = {-2, 3};
        for (int i = 0; i < 2; i++) {
            uint8_t little[8];
            element_set(little, rows[r].type, 0, value[i]);
            for (int b = 0; b < rows[r].size; b++)
                file[8 + i * rows[r].size + b] = little[rows[r].size - 1 - b];
        }
        const char *path = write_file("numbers", file, 8 + 2 * rows[r].size);
        struct budget *budget = new_budget();
        struct source *source;
        uint64_t out[2];
        assert_int_equal(idx_open(&source, budget, &path, 1, NULL), PLIM_OK);
        assert_int_equal(source->spec.column[0].type, rows[r].type);
        uint64_t stride = rows[r].size;
        assert_int_equal(source->type->read(source, (int64_t[]){0, 1}, 2, (void *[]){out}, &stride, NULL), PLIM_OK);
        assert_true(element_get(out, rows[r].type, 0) == -2 && element_get(out, rows[r].type, 1) == 3);
        source_close(source);
        end_budget(budget);
        unlink(path);
    }
}

/* Neighbours are one read; gaps in memory or in the file are not. */
static void coalesces(void **state)
{
    (void)state;
    const char *path = write_file("labels", labels, sizeof labels);
    struct budget *budget = new_budget();
    struct source *source;
    uint8_t out[8];
    static const struct {
        int64_t index[2];
        uint64_t stride;
        int calls;
    } cases[] = {{{0, 1}, 1, 1}, {{1, 0}, 1, 2}, {{0, 1}, 4, 2}};
    assert_int_equal(idx_open(&source, budget, &path, 1, NULL), PLIM_OK);
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t takes = budget_usage(budget).takes;
        fault_arm(FAULT_READ, 1000, false, EIO);
        assert_int_equal(source->type->read(source, cases[i].index, 2, (void *[]){out}, &cases[i].stride, NULL),
                         PLIM_OK);
        assert_int_equal(fault_calls(), cases[i].calls);
        fault_disarm();
        assert_int_equal(budget_usage(budget).takes, takes);
    }
    source_close(source);
    end_budget(budget);
    unlink(path);
}

static void damaged_files(void **state)
{
    (void)state;
    uint8_t packed[200];
    assert_true(sweep(try_idx, images, sizeof images) >= 8 * 16 - 1); /* nearly all of the header's bits */
    size_t bytes = pack(packed, sizeof packed, images, sizeof images);
    assert_true(sweep(try_idx, packed, bytes) >= (int)(8 * (bytes - 10))); /* all but those of gzip's own header */
}

static void expect(const char *name, const void *data, size_t bytes, plim_status status, const char *where,
                   const char *what)
{
    const char *path = write_file(name, data, bytes);
    struct budget *budget = new_budget();
    plim_error error = {0};
    assert_int_equal(try_idx(budget, path, &error), status);
    if (!strstr(error.where, where) || !strstr(error.message, what))
        print_error("%s: %s\n", error.where, error.message);
    assert_non_null(strstr(error.where, where));
    assert_non_null(strstr(error.message, what));
    assert_true(budget_usage(budget).peak <= bytes + SLACK_BYTES);
    end_budget(budget);
    unlink(path);
}

static void lying_files(void **state)
{
    (void)state;
    uint8_t packed[2000], longer[sizeof images + 1] = {0};
    memcpy(longer, images, sizeof images);
    expect("long", longer, sizeof longer, PLIM_BAD_DATA, "long: byte 28", "1 bytes more");
    expect("short", images, 27, PLIM_BAD_DATA, "short: byte 27", "declares 28 bytes");
    expect("type", "\0\0\7\1\0\0\0\1", 8, PLIM_BAD_DATA, "byte 2", "type");
    expect("axes", "\0\0\10\0", 4, PLIM_BAD_DATA, "byte 3", "no axes");
    expect("many", "\0\0\10\7\0\0\0\1", 8, PLIM_BAD_DATA, "byte 3", "7 axes");
    expect("none", "\0\0\10\1\0\0\0\0", 8, PLIM_BAD_DATA, "byte 4", "no elements");
    expect("text", "hello", 5, PLIM_BAD_DATA, "byte 0", "not an IDX file");
    expect("overflow", "\0\0\16\3\377\377\377\377\377\377\377\377\377\377\377\377", 16, PLIM_BAD_DATA, "byte 4",
           "any file");
    /* gzip: more and fewer than declared, 4 GiB in a few bytes, and something behind. */
    size_t bytes = pack(packed, sizeof packed, longer, sizeof longer);
    expect("long.gz", packed, bytes, PLIM_BAD_DATA, "long.gz: byte", "more than the 28 bytes");
    bytes = pack(packed, sizeof packed, images, 27);
    expect("short.gz", packed, bytes, PLIM_BAD_DATA, "short.gz: byte", "27 bytes; its header declares 28");
    bytes = pack(packed, sizeof packed, "\0\0\10\2\0\1\0\0\0\1\0\0", 12);
    expect("bomb.gz", packed, bytes, PLIM_BAD_DATA, "bomb.gz: byte", "declares 4294967308 bytes");
    bytes = pack(packed, sizeof packed, images, sizeof images);
    packed[bytes] = 'x';
    expect("tail.gz", packed, bytes + 1, PLIM_BAD_DATA, "tail.gz: byte", "not gzip");
}

static void counts_must_agree(void **state)
{
    (void)state;
    const char *paths[] = {write_file("images", images, sizeof images), write_file("other", "\0\0\10\1\0\0\0\1\5", 9)};
    struct budget *budget = new_budget();
    struct source *source;
    plim_error error;
    assert_int_equal(idx_open(&source, budget, paths, 2, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.where, "other"));
    assert_non_null(strstr(error.message, "images"));
    assert_int_equal(idx_open(&source, budget, paths, 0, &error), PLIM_BAD_JOB);
    assert_int_equal(idx_open(&source, budget, (const char *[]){"no/such/file"}, 1, &error), PLIM_IO);
    end_budget(budget);
    unlink(paths[0]);
    unlink(paths[1]);
}

static void scratch_is_bounded(void **state)
{
    (void)state;
    uint8_t packed[200];
    const char *path = write_file("images.gz", packed, pack(packed, sizeof packed, images, sizeof images));
    struct budget *budget = new_budget();
    struct source *source;
    plim_error error;
    uint8_t out[16];
    struct scratch_disk scratch = {.folder = folder, .limit_bytes = 2 * sizeof images - 1, .used_bytes = sizeof images};
    assert_int_equal(idx_open(&source, budget, &path, 1, &error), PLIM_OK);
    assert_int_equal(source->type->read(source, (int64_t[]){0}, 1, (void *[]){out}, (uint64_t[]){6}, &error),
                     PLIM_INTERNAL);
    fault_arm(FAULT_WRITE, 1, true, EIO);
    assert_int_equal(source->type->start(source, &scratch, &error), PLIM_OVER_DISK);
    assert_int_equal(fault_calls(), 0); /* refused before the first byte */
    fault_disarm();
    assert_non_null(strstr(error.hint, "--disk"));
    struct scratch_disk memory = {.folder = "/dev/shm", .limit_bytes = 1 << 20};
    if (access("/dev/shm", W_OK) == 0) {
        assert_int_equal(source->type->start(source, &memory, &error), PLIM_OVER_DISK);
        assert_non_null(strstr(error.hint, "--scratch"));
    }
    scratch.limit_bytes++;
    assert_int_equal(source->type->start(source, &scratch, &error), PLIM_OK);
    assert_int_equal(source->type->read(source, (int64_t[]){2}, 1, (void *[]){out}, (uint64_t[]){6}, &error),
                     PLIM_INTERNAL);
    assert_int_equal(source->type->read(source, (int64_t[]){-1}, 1, (void *[]){out}, (uint64_t[]){6}, &error),
                     PLIM_INTERNAL);
    source_close(source);
    end_budget(budget);
    unlink(path);
}

/* Every call that can fail fails once, and from then on: an error, nothing kept. Short reads are no error. */
static void faults(void **state)
{
    (void)state;
    uint8_t packed[200];
    const char *path = write_file("images.gz", packed, pack(packed, sizeof packed, images, sizeof images));
    static const int numbers[] = {EIO, ENOSPC, EINTR, 0};
    for (size_t n = 0; n < COUNT(numbers); n++)
        for (int forever = 0; forever < 2; forever++) {
            bool reached = true;
            for (int64_t nth = 1; reached && nth < 100; nth++) {
                struct budget *budget = new_budget();
                plim_error error = {0};
                unsigned sites = numbers[n] ? FAULT_ANY & ~FAULT_SYNC : FAULT_READ | FAULT_WRITE;
                fault_arm(sites, nth, forever, numbers[n]);
                plim_status status = try_idx(budget, path, &error);
                reached = fault_disarm();
                assert_true(status == PLIM_OK || status == error.code);
                if (!reached || numbers[n] == 0)
                    assert_int_equal(status, PLIM_OK);
                else if (numbers[n] != EINTR)
                    assert_true(status == PLIM_IO || status == PLIM_NO_MEMORY);
                end_budget(budget);
            }
            assert_false(reached);
        }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_plain),        cmocka_unit_test(reads_gzip),       cmocka_unit_test(unpacks_large),
        cmocka_unit_test(announces_rows),     cmocka_unit_test(swaps_big_endian), cmocka_unit_test(coalesces),
        cmocka_unit_test(damaged_files),      cmocka_unit_test(lying_files),      cmocka_unit_test(counts_must_agree),
        cmocka_unit_test(scratch_is_bounded), cmocka_unit_test(faults),
    };
    return cmocka_run_group_tests_name("idx", tests, make_folder, remove_folder);
}
