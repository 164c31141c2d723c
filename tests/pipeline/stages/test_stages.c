/* test_stages.c - the entries of `pipeline:` in a job file, right and wrong ones. */
#include "made_source.h"

#include "base/text/yaml.h"
#include "pipeline/core/stage.h"

struct studio {
    struct budget *budget;
    struct arena arena;
    struct dataset *dataset;
    plim_error error;
};

/* Reads a list of stages around a source of 100 elements; the first error ends it. */
static plim_status read_pipeline(struct studio *room, const char *text)
{
    struct yaml *list;
    memset(room, 0, sizeof *room);
    room->budget = open_budget();
    arena_init(&room->arena, room->budget, TAG_PLANNER);
    room->dataset = counting(room->budget, 100);
    plim_status status = yaml_parse(&list, &room->arena, "job.yaml", text, strlen(text), &room->error);
    if (status != PLIM_OK)
        fail_msg("%s: %s", room->error.where, room->error.message);
    for (struct yaml *entry = list->first; entry && status == PLIM_OK; entry = entry->next)
        status = stage_read(&room->dataset, "job.yaml", entry, SEED, &room->error);
    return status;
}

static void leave(struct studio *room)
{
    dataset_unref(room->dataset);
    arena_release(&room->arena);
    close_budget(room->budget);
}

static void expect(const char *text, int64_t cardinality, int64_t size, int slots, int64_t steps)
{
    struct studio room;
    if (read_pipeline(&room, text) != PLIM_OK)
        fail_msg("%s: %s", text, room.error.message);
    assert_int_equal(dataset_cardinality(room.dataset), cardinality);
    assert_int_equal(dataset_batch_size(room.dataset), size);
    assert_int_equal(dataset_wanted_grant(room.dataset, 1).slots, slots);
    assert_int_equal(dataset_steps(room.dataset, NULL), steps);
    leave(&room);
}

static void stages_are_read(void **state)
{
    (void)state;
    expect("[shuffle: exact, batch: 32]", 100, 32, 1, 4);
    expect("- shuffle: exact\n- batch: {size: 32, drop_remainder: true}\n- prefetch: auto\n", 100, 32, 3, 3);
    expect("[take: 10, repeat: 3, batch: 7, prefetch: 4]", 30, 7, 5, 5);
    expect("[skip: 90, repeat, batch: 7]", -1, 7, 1, -1);
    expect("[repeat: -1, take: 250, batch: 100]", 250, 100, 1, 3);
    expect("- batch: {size: 8, drop_remainder: false}\n- prefetch\n", 100, 8, 3, 13);
    expect("- repeat:\n- batch: 1\n- prefetch: 0\n", -1, 1, 1, -1);
    /* Before batch it counts elements. */
    expect("[prefetch: auto, batch: 32]", 100, 32, 3, 4);
    expect("[prefetch: 33, repeat: 2, batch: 32]", 200, 32, 3, 7);
    expect("[prefetch: 0, batch: 32]", 100, 32, 1, 4);
    expect("[prefetch: 9999999999, batch: 1]", 100, 1, 1025, 100);
    expect("[prefetch: 8, batch: 4, prefetch: 1]", 100, 4, 2, 25);
}

static void the_seed_is_the_jobs(void **state)
{
    struct studio room;
    int64_t read[MOST], built[MOST];
    (void)state;
    assert_int_equal(read_pipeline(&room, "[shuffle: exact, batch: 9]"), PLIM_OK);
    epoch_of(built, dataset_batch(dataset_shuffle(counting(room.budget, 100), SEED), 9, false), room.budget, 5);
    epoch_of(read, room.dataset, room.budget, 5);
    assert_true(same(read, built, 100));
    room.dataset = NULL;
    leave(&room);
}

static void check_spec(const char *text, enum type image, enum type y, uint64_t y_bytes)
{
    struct studio room;
    if (read_pipeline(&room, text) != PLIM_OK)
        fail_msg("%s: %s: %s", text, room.error.where, room.error.message);
    const struct spec *spec = dataset_spec(room.dataset);
    assert_int_equal(spec->column[0].type, image);
    assert_int_equal(spec->column[1].type, y);
    assert_int_equal(spec->column[1].bytes, y_bytes);
    leave(&room);
}

static void maps_are_read(void **state)
{
    (void)state;
    check_spec("[map: [cast: float32]]", TYPE_F32, TYPE_U8, 1);
    check_spec("[map: {cast: float32}]", TYPE_F32, TYPE_U8, 1);
    check_spec("[map: [random_flip: horizontal, rescale: 1/255, cast: float64], batch: 4]", TYPE_F64, TYPE_U8, 1);
    check_spec("[batch: 4, map: {image: [rescale: {scale: 2, offset: -1}], y: [one_hot: 10]}]", TYPE_F32, TYPE_F32, 40);
    check_spec("[map: {y: [cast: int64, one_hot: {classes: 3}]}]", TYPE_U8, TYPE_F32, 12);
}

static void map_values_are_used(void **state)
{
    struct studio room;
    struct batch *batch;
    (void)state;
    assert_int_equal(read_pipeline(&room, "[map: [rescale: {scale: 1/2, offset: 3}], batch: 4]"), PLIM_OK);
    struct iterator *iterator = open_iterator(room.dataset, room.budget, 1, 0, 0);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    for (int i = 0; i < 24; i++)
        assert_true(((float *)batch->column[0])[i] == pixel(i / 6, i % 6) * 0.5f + 3);
    iterator_close(iterator);
    leave(&room);
}

/* where: what the place must be; message and hint: what they must say. */
static void refused(const char *text, plim_status code, const char *where, const char *message, const char *tip)
{
    struct studio room;
    assert_int_equal(read_pipeline(&room, text), code);
    assert_int_equal(room.error.code, code);
    assert_string_equal(room.error.where, where);
    if (!strstr(room.error.message, message) || !strstr(room.error.hint, tip))
        fail_msg("%s: '%s; %s' does not say '%s; %s'", text, room.error.message, room.error.hint, message, tip);
    leave(&room);
}

static void wrong_words_have_a_place_and_the_nearest(void **state)
{
    (void)state;
    refused("- shuffle: exact\n- bacth: 32\n", PLIM_BAD_JOB, "job.yaml:2:3", "'bacth'", "'batch'");
    refused("- repaet\n", PLIM_BAD_JOB, "job.yaml:1:3", "'repaet'", "'repeat'");
    refused("- batch: {size: 3, drop_remaindr: true}\n", PLIM_BAD_JOB, "job.yaml:1:20", "'drop_remaindr'",
            "'drop_remainder'");
    refused("- map: [csat: float32]\n", PLIM_BAD_JOB, "job.yaml:1:9", "'csat'", "'cast'");
    refused("- map: [cast: float23]\n", PLIM_BAD_JOB, "job.yaml:1:15", "'float23'", "'float32'");
    refused("- map: {imag: [cast: float32]}\n", PLIM_BAD_JOB, "job.yaml:1:16", "'imag'", "'image'");
    refused("- qwertyuiop: 3\n", PLIM_BAD_JOB, "job.yaml:1:3", "'qwertyuiop'", "");
}

static void wrong_values_have_a_place(void **state)
{
    (void)state;
    refused("- batch: many\n", PLIM_BAD_JOB, "job.yaml:1:10", "whole number", "");
    refused("- batch: 0\n", PLIM_BAD_JOB, "job.yaml:1:10", "at least 1", "");
    refused("- batch: {drop_remainder: true}\n", PLIM_BAD_JOB, "job.yaml:1:10", "'size' is missing", "size: 32");
    refused("- batch: {size: 2, drop_remainder: 7}\n", PLIM_BAD_JOB, "job.yaml:1:36", "true or false", "");
    refused("- batch\n", PLIM_BAD_JOB, "job.yaml:1:3", "value is missing", "");
    refused("- take: -5\n", PLIM_BAD_JOB, "job.yaml:1:9", "at least -1", "");
    refused("- skip: -1\n", PLIM_BAD_JOB, "job.yaml:1:9", "at least 0", "");
    refused("- repeat: 0\n", PLIM_BAD_JOB, "job.yaml:1:3", "at least 1", "");
    refused("- repeat: [1]\n", PLIM_BAD_JOB, "job.yaml:1:11", "whole number", "");
    refused("- batch: 2\n- prefetch: 100000\n", PLIM_BAD_JOB, "job.yaml:2:3", "prefetch", "");
    refused("- shuffle: wild\n", PLIM_BAD_JOB, "job.yaml:1:12", "'wild'", "shuffle: exact");
    refused("- {batch: 3, prefetch: 2}\n", PLIM_BAD_JOB, "job.yaml:1:14", "one stage an entry", "");
    refused("- []\n", PLIM_BAD_JOB, "job.yaml:1:3", "word", "");
    refused("- map: []\n", PLIM_BAD_JOB, "job.yaml:1:8", "list of functions", "cast");
    refused("- map: [cast]\n", PLIM_BAD_JOB, "job.yaml:1:9", "value is missing", "");
    refused("- map: [one_hot: 0]\n", PLIM_BAD_JOB, "job.yaml:1:18", "at least 1", "");
    refused("- map: [rescale: x]\n", PLIM_BAD_JOB, "job.yaml:1:18", "number", "");
    refused("- map: {y: [random_flip: horizontal]}\n", PLIM_BAD_JOB, "job.yaml:1:13", "height", "");
}

static void what_comes_later_is_refused_by_name(void **state)
{
    (void)state;
    refused("- interleave: {cycle_length: 4}\n", PLIM_UNSUPPORTED, "job.yaml:1:3", "'interleave'", "");
    refused("- map: [decode_jpeg]\n", PLIM_BAD_JOB, "job.yaml:1:9", "not the bytes of an image", "");
    refused("- map: [random_flip: sideways]\n", PLIM_BAD_JOB, "job.yaml:1:22", "'sideways'", "");
    refused("- batch: 3\n- shuffle: exact\n", PLIM_UNSUPPORTED, "job.yaml:2:3", "one after another", "");
    refused("- repeat\n- shuffle: exact\n", PLIM_UNSUPPORTED, "job.yaml:2:3", "without end", "before repeat");
}

/* Every allocation of a reading failed once: an error or success, and nothing left behind. */
static void faults_are_errors(void **state)
{
    bool reached = true;
    (void)state;
    for (int64_t n = 1; reached; n++) {
        struct studio room = {.budget = open_budget()};
        struct yaml *list;
        const char *text = "[shuffle: exact, map: {image: [cast: float32], y: [one_hot: 10]}, batch: 4, prefetch: 2]";
        arena_init(&room.arena, room.budget, TAG_PLANNER);
        assert_int_equal(yaml_parse(&list, &room.arena, "job.yaml", text, strlen(text), &room.error), PLIM_OK);
        fault_arm(FAULT_ALLOCATE, n, n % 2, ENOMEM);
        room.dataset = counting(room.budget, 100);
        plim_status status = PLIM_OK;
        for (struct yaml *entry = list->first; entry && status == PLIM_OK; entry = entry->next)
            status = stage_read(&room.dataset, "job.yaml", entry, SEED, &room.error);
        reached = fault_disarm();
        assert_int_equal(status, reached ? PLIM_NO_MEMORY : PLIM_OK);
        leave(&room);
        assert_true(n < 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_are_read),
        cmocka_unit_test(the_seed_is_the_jobs),
        cmocka_unit_test(maps_are_read),
        cmocka_unit_test(map_values_are_used),
        cmocka_unit_test(wrong_words_have_a_place_and_the_nearest),
        cmocka_unit_test(wrong_values_have_a_place),
        cmocka_unit_test(what_comes_later_is_refused_by_name),
        cmocka_unit_test(faults_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
