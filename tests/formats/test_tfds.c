/* test_tfds.c - folders of TensorFlow Datasets: what tfds itself wrote (tests/golden/tfds), in the order and the parts
   that it gives; and its JSON files cut short and with every bit flipped. */
#include "source_text.h"

#include "base/numbers/count.h"
#include "formats/records/tfds_info.h"

static void golden_split(const char *split)
{
    char text[512];
    snprintf(text, sizeof text, "{tfds: {folder: '@/tfds', split: '%s', columns: [small]}}", split);
    expect_from("tfds/order.txt", text, split);
}

static void parts_of_splits(void **state)
{
    static const char *const splits[] = {"train",       "test",       "train[:50%]",        "train[25%:]",
                                         "train[-3:]",  "train[2:5]", "test[1:]+train[:2]", "train[:12%]",
                                         "train[:-90%]"};
    (void)state;
    for (size_t i = 0; i < COUNT(splits); i++)
        golden_split(splits[i]);
}

static void all_features(void **state)
{
    (void)state;
    expect_from("tfds/order.txt",
                "{tfds: {folder: '@/tfds', columns: [image, label, name, x, many, raw, nested/flag, free]}}", "all");
    expect_from("tfds/order.txt", "{tfds: {folder: '@/tfds', columns: [small], interleave: {cycle_length: 1}}}",
                "train");
}

/* Images of a known shape are rows: a model can be fed with them. Counts are known without reading. */
static void facts(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    asked = "{tfds: {folder: '@/tfds', as_supervised: true, split: test}}";
    struct dataset *dataset = make(budget);
    const struct spec *spec = dataset_spec(dataset);
    assert_int_equal(dataset_cardinality(dataset), 4);
    assert_int_equal(spec->column_count, 2);
    assert_string_equal(spec->column[0].name, "image");
    assert_true(spec->column[0].type == TYPE_U8 && spec->column[0].shape.rank == 3 &&
                spec->column[0].shape.dim[1] == 3);
    assert_true(spec->column[1].type == TYPE_I64 && spec->column[1].shape.rank == 0);
    dataset_unref(dataset);
    asked = "{tfds: {folder: '@/tfds', decode: false}}";
    dataset = make(budget);
    assert_int_equal(dataset_cardinality(dataset), 13);
    assert_int_equal(dataset_spec(dataset)->column_count, 9);
    assert_int_equal(dataset_spec(dataset)->column[spec_find(dataset_spec(dataset), "image")].type, TYPE_STRING);
    dataset_unref(dataset);
    close_budget(budget);
}

static void mistakes(void **state)
{
    (void)state;
    refused("{tfds: {split: train}}", PLIM_BAD_JOB, "folder");
    refused("{tfds: '@/sources'}", PLIM_IO, "");
    refused("{tfds: {folder: '@/tfds', split: validation}}", PLIM_BAD_JOB, "no split 'validation'");
    refused("{tfds: {folder: '@/tfds', split: 'train[5:5]'}}", PLIM_BAD_JOB, "no examples");
    refused("{tfds: {folder: '@/tfds', split: 'train[5'}}", PLIM_BAD_JOB, "not a part");
    refused("{tfds: {folder: '@/tfds', split: 'train[:14]'}}", PLIM_BAD_JOB, "not a part");
    refused("{tfds: {folder: '@/tfds', split: 'train[:101%]'}}", PLIM_BAD_JOB, "not a part");
    refused("{tfds: {folder: '@/tfds', split: 'train[:5]', interleave: auto}}", PLIM_BAD_JOB, "in order");
    refused("{tfds: {folder: '@/tfds', columns: [imag]}}", PLIM_BAD_JOB, "no feature 'imag'");
}

/* ---- the two files, damaged ---- */

typedef plim_status parse_function(struct tfds_info *info, const char *text, size_t bytes, const char *path,
                                   plim_error *error);

static void parse_some(parse_function *parse, const char *text, size_t bytes)
{
    struct budget *budget = open_budget();
    struct tfds_info *info = budget_take(budget, TAG_FORMATS, sizeof *info);
    char name[1024];
    plim_error error = {0};
    arena_init(&info->arena, budget, TAG_FORMATS);
    plim_status status = parse(info, text, bytes, "some.json", &error);
    assert_true(status == PLIM_OK || status == PLIM_BAD_DATA);
    assert_true(status == PLIM_OK || error.where[0]);
    for (int i = 0; i < info->split_count; i++)
        if (tfds_file_name(name, sizeof name, info, &info->split[i], 0))
            assert_true(name[0] != '/' && !strstr(name, ".."));
    tfds_info_free(info);
    close_budget(budget);
}

static void damage(const char *file, parse_function *parse)
{
    static char whole[8192], changed[8192];
    char path[4096];
    snprintf(path, sizeof path, "%s/tfds/%s", folder(), file);
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    size_t bytes = fread(whole, 1, sizeof whole, from);
    fclose(from);
    assert_true(bytes > 100 && bytes < sizeof whole);
    for (size_t i = 0; i < bytes; i++) {
        memcpy(changed, whole, i); /* what lies behind is out of bounds: a copy of its own size would tell ASan */
        parse_some(parse, changed, i);
        if (whole[i] == ' ')
            continue;
        memcpy(changed, whole, bytes);
        for (int bit = 0; bit < 8; bit++) {
            changed[i] = (char)(whole[i] ^ (1 << bit));
            parse_some(parse, changed, bytes);
        }
    }
}

static void damaged_files(void **state)
{
    (void)state;
    damage("dataset_info.json", tfds_parse_info);
    damage("features.json", tfds_parse_features);
}

/* Files that say too much. */
static void lying_files(void **state)
{
    static const char *const lies[] = {
        "{\"name\": \"a\", \"splits\": [{\"name\": \"t\", \"shardLengths\": [\"9223372036854775807\", \"1\"]}]}",
        "{\"name\": \"a\", \"splits\": [{\"name\": \"t\", \"shardLengths\": [\"-1\"]}]}",
        "{\"name\": \"a\", \"splits\": [{\"name\": \"t\", \"shardLengths\": [\"1e9\"]}]}",
        "{\"name\": \"a\", \"splits\": []}",
        "[]",
        "",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(lies); i++) {
        struct budget *budget = open_budget();
        struct tfds_info *info = budget_take(budget, TAG_FORMATS, sizeof *info);
        arena_init(&info->arena, budget, TAG_FORMATS);
        assert_int_equal(tfds_parse_info(info, lies[i], strlen(lies[i]), "lie.json", NULL), PLIM_BAD_DATA);
        tfds_info_free(info);
        close_budget(budget);
    }
    struct tfds_info info = {.name = "a", .file_format = "tfrecord"};
    struct tfds_split split = {.name = "t", .shard_count = 3};
    char name[64];
    assert_true(tfds_file_name(name, sizeof name, &info, &split, 2));
    assert_string_equal(name, "a-t.tfrecord-00002-of-00003");
    snprintf(split.file_template, sizeof split.file_template, "../{DATASET}");
    assert_false(tfds_file_name(name, sizeof name, &info, &split, 2));
    snprintf(split.file_template, sizeof split.file_template, "/etc/{SHARD_INDEX}");
    assert_false(tfds_file_name(name, sizeof name, &info, &split, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_splits), cmocka_unit_test(all_features),  cmocka_unit_test(facts),
        cmocka_unit_test(mistakes),        cmocka_unit_test(damaged_files), cmocka_unit_test(lying_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
