/* test_keras_file.c - models that Keras wrote (tests/golden/keras): what is read of them, where weights are found, what
   is refused by name, and files that are damaged anywhere. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../fuzz/fuzz_file.h"
#include "base/fault.h"
#include "formats/weights/keras_file.h"
#include "model/build.h"
#include "model/keras/keras_config.h"
#include "ops/ops.h"

/* The path of a file of tests/golden/keras, found from this file's own name. */
static const char *golden(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/keras/%s", name);
    return path;
}

struct desk {
    struct budget *budget;
    struct arena arena;
    struct scratch_disk scratch;
    struct keras_file *file;
    struct model *model;
    struct graph graph;
    plim_error error;
};

static void enter(struct desk *desk)
{
    *desk = (struct desk){.scratch = {.folder = "/var/tmp", .limit_bytes = 1 << 20}};
    assert_int_equal(budget_make(&desk->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    arena_init(&desk->arena, desk->budget, TAG_PLANNER);
    graph_init(&desk->graph, desk->budget, 2);
}

static void leave(struct desk *desk)
{
    keras_file_close(desk->file);
    model_free(desk->model);
    graph_release(&desk->graph);
    arena_release(&desk->arena);
    budget_free(desk->budget); /* asserts that it is empty */
}

static plim_status read_text(struct desk *desk, const char *text, size_t bytes)
{
    struct keras_config config;
    struct column_spec columns[4];
    struct model_tensors tensors;
    int count;
    TRY(keras_config_read(&config, &desk->arena, "config.json", text, bytes, &desk->error));
    TRY(model_read(&desk->model, desk->budget, "config.json", config.yaml, &desk->error));
    TRY(model_input_columns(columns, &count, COUNT(columns), desk->model, &desk->error));
    return model_build(&tensors, &desk->graph, desk->model,
                       &(struct step_spec){.column = columns, .column_count = count}, &desk->error);
}

static plim_status read_file(struct desk *desk, const char *path)
{
    char *text;
    size_t bytes;
    TRY(keras_file_open(&desk->file, desk->budget, path, &desk->error));
    TRY(keras_file_config(&text, &bytes, desk->file, &desk->error));
    plim_status status = read_text(desk, text, bytes);
    budget_give(desk->budget, TAG_PLANNER, text, bytes + 1);
    TRY(status);
    return keras_file_weights(desk->file, &desk->scratch, &desk->error);
}

/* Weight i holds i + 1, i + 1 + 1/64, ... */
static plim_status read_weights(struct desk *desk, bool look)
{
    const char **paths;
    char saved[700];
    float values[256];
    TRY(model_saved_paths(&paths, desk->model, &desk->arena, &desk->error));
    for (int i = 0; i < desk->graph.build->weight_count; i++) {
        const struct weight *weight = &desk->graph.build->weight[i];
        struct hdf5_dataset dataset;
        weight_saved_path(saved, sizeof saved, desk->graph.build, paths, weight);
        TRY(keras_file_find(&dataset, desk->file, saved, &desk->error));
        if (!shape_equal(&dataset.shape, &weight->tensor->shape) || dataset.bytes > sizeof values)
            return fail_at(&desk->error, PLIM_BAD_DATA, saved, "another shape");
        TRY(keras_file_read(desk->file, &dataset, values, &desk->error));
        for (int64_t k = 0; look && k < shape_count(&dataset.shape); k++)
            if (values[k] != (float)(i + 1) + (float)k / 64)
                fail_msg("%s (%s): value %lld is %g", weight->name, saved, (long long)k, (double)values[k]);
    }
    return PLIM_OK;
}

static void expect_whole(const char *name, int weights, const char *last)
{
    struct desk desk;
    enter(&desk);
    if (read_file(&desk, golden(name)) != PLIM_OK || read_weights(&desk, true) != PLIM_OK)
        fail_msg("%s: %s: %s", name, desk.error.where, desk.error.message);
    assert_int_equal(desk.graph.build->weight_count, weights);
    assert_string_equal(desk.graph.build->weight[weights - 1].name, last);
    leave(&desk);
}

static void models_and_weights(void **state)
{
    (void)state;
    expect_whole("sequential.keras", 6, "dense/bias");
    expect_whole("packed.keras", 6, "dense/bias");
    expect_whole("graph.keras", 12, "out/bias");
    expect_whole("attention.keras", 21, "out/bias");
}

static void a_graph_is_connected(void **state)
{
    struct desk desk;
    (void)state;
    enter(&desk);
    assert_int_equal(read_file(&desk, golden("graph.keras")), PLIM_OK);
    assert_string_equal(desk.model->name, "two_towers");
    assert_int_equal(desk.model->feed_count, 2);
    assert_string_equal(desk.model->feed[0].name, "a");
    /* Two uses of the tower, and two of the encoder with its Input and its two layers. */
    assert_int_equal(desk.model->use_count, 2 + 2 + 2 * 3 + 5);
    assert_string_equal(desk.graph.build->weight[2].name, "encoder/inner/kernel");
    assert_false(desk.graph.build->weight[6].trainable);
    leave(&desk);
}

#define LAYER_OF(class, config) "{\"class_name\": \"" class "\", \"config\": {" config "}}"
#define SEQUENTIAL(layers)                                                                                             \
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["                                     \
    "{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 3]}}, " layers "]}}"

#define GRAPH_OF(history)                                                                                              \
    "{\"class_name\": \"Functional\", \"config\": {\"layers\": [{\"class_name\": \"InputLayer\", \"name\": \"x\", "    \
    "\"config\": "                                                                                                     \
    "{\"batch_shape\": [null, 4], \"name\": \"x\"}, \"inbound_nodes\": []}, {\"class_name\": \"Dense\", \"name\": "    \
    "\"d\", "                                                                                                          \
    "\"config\": {\"units\": 3, \"name\": \"d\"}, \"inbound_nodes\": [[" history                                       \
    "]]}], \"input_layers\": [[\"x\", 0, 0]], "                                                                        \
    "\"output_layers\": [[\"d\", 0, 0]]}}"

static void hostile_configs_are_refused(void **state)
{
    static const struct {
        const char *text;
        plim_status code;
        const char *message;
    } cases[] = {
        {"", PLIM_BAD_DATA, ""},
        {"[]", PLIM_BAD_MODEL, "not a model"},
        {"{}", PLIM_BAD_MODEL, "class_name"},
        {"{\"class_name\": \"Sequential\"}", PLIM_BAD_MODEL, "config"},
        {"{\"class_name\": \"Sequential\", \"config\": {\"layers\": []}}", PLIM_BAD_JOB, "list of layers"},
        {"{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}", PLIM_UNSUPPORTED, "'Dense' is no model"},
        {SEQUENTIAL(LAYER_OF("Lambda", "\"function\": \"exec\"")), PLIM_UNSUPPORTED, "Lambda carries code"},
        {SEQUENTIAL(LAYER_OF("Dense", "\"units\": 3, \"path\": \"/etc/passwd\"")), PLIM_BAD_JOB, "unknown key 'path'"},
        {SEQUENTIAL(LAYER_OF("Desne", "\"units\": 3")), PLIM_BAD_JOB, "unknown layer 'Desne'"},
        {SEQUENTIAL("{\"class_name\": \"Dense\", \"module\": \"evil\", \"config\": {\"units\": 3}}"), PLIM_UNSUPPORTED,
         "'Dense' of evil"},
        {SEQUENTIAL("{\"class_name\": \"Dense\", \"registered_name\": \"mine>Dense\", \"config\": {\"units\": 3}}"),
         PLIM_UNSUPPORTED, "'mine>Dense'"},
        {SEQUENTIAL(LAYER_OF("Dense", "\"units\": 3, \"units\": 4")), PLIM_BAD_DATA, "twice"},
        {SEQUENTIAL(LAYER_OF("Dense", "\"units\": 3, \"name\": \"a/b\"")), PLIM_BAD_JOB, "'a/b'"},
        {SEQUENTIAL(LAYER_OF("Dense", "\"units\": 3, \"name\": \"a\\u0000b\"")), PLIM_BAD_DATA, "character 0"},
        {SEQUENTIAL(LAYER_OF("Dense", "\"units\": 1e30")), PLIM_BAD_JOB, "units"},
        {SEQUENTIAL(LAYER_OF("Dense", "\"units\": {\"class_name\": \"Dense\", \"config\": null}")), PLIM_BAD_JOB,
         "units"},
        {"{\"class_name\": \"Functional\", \"config\": {\"layers\": [], \"input_layers\": [\"x\", 0, 0], "
         "\"output_layers\": [\"x\", 0, 0]}}",
         PLIM_BAD_MODEL, "'x' is no InputLayer"},
        {"{\"class_name\": \"Functional\", \"config\": {\"layers\": [3], \"output_layers\": [[\"x\", 0, 0]]}}",
         PLIM_BAD_MODEL, "expected a layer"},
        {"{\"class_name\": \"Functional\", \"config\": {\"layers\": [{\"class_name\": \"Dense\", \"name\": \"d\", "
         "\"config\": {\"units\": 3, \"name\": \"d\"}, \"inbound_nodes\": [{\"args\": [2.0], \"kwargs\": {}}]}], "
         "\"output_layers\": [[\"d\", 0, 0]]}}",
         PLIM_UNSUPPORTED, "no tensor"},
        {"{\"class_name\": \"Functional\", \"config\": {\"layers\": [{\"class_name\": \"Dense\", \"name\": \"d\", "
         "\"config\": {\"units\": 3, \"name\": \"d\"}, \"inbound_nodes\": [[[\"d\", 0, 0, {}]]]}], "
         "\"output_layers\": [[\"d\", 0, 0]]}}",
         PLIM_BAD_JOB, "circle"},
        {GRAPH_OF("[\"x\", 0, 1, {}]"), PLIM_BAD_JOB, "layer 'x' has 1 output, no 'x/1'"},
        {GRAPH_OF("[\"x\", 0, -1, {}]"), PLIM_BAD_MODEL, "output -1 of layer 'x'"},
        {GRAPH_OF("[\"x\", 0, 99999999999999999999, {}]"), PLIM_BAD_MODEL, "[layer, node, tensor]"},
        {GRAPH_OF("[\"x\", 0, 9999999999, {}]"), PLIM_BAD_JOB, "no 'x/9999999999'"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        struct desk desk;
        enter(&desk);
        plim_status status = read_text(&desk, cases[i].text, strlen(cases[i].text));
        if (status != cases[i].code || !strstr(desk.error.message, cases[i].message))
            fail_msg("%s\n  gave %s \"%s\": \"%s\"", cases[i].text, plim_status_name(status), desk.error.where,
                     desk.error.message);
        leave(&desk);
    }
}

/* ---- ops ---- */

#define HISTORY(name) "{\"class_name\": \"__keras_tensor__\", \"config\": {\"keras_history\": [\"" name "\", 0, 0]}}"
#define CALL(class, module, name, config, args, kwargs)                                                                \
    "{\"class_name\": \"" class "\", \"module\": \"" module "\", \"name\": \"" name                                    \
                                "\", \"config\": {\"name\": \"" name "\"" config                                       \
                                "}, \"inbound_nodes\": [{\"args\": [" args "], \"kwargs\": {" kwargs "}}]}"
#define NODE(class, module, name, config, args) CALL(class, module, name, config, args, "")
#define OP(class, name, config, args)           NODE(class, "keras.src.ops.numpy", name, config, args)
#define OPS_OF(layers, output)                                                                                         \
    "{\"class_name\": \"Functional\", \"config\": {\"layers\": [{\"class_name\": \"InputLayer\", \"name\": \"x\", "    \
    "\"config\": {\"batch_shape\": [null, 4], \"name\": \"x\"}, \"inbound_nodes\": []}, " layers                       \
    "], \"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"" output "\", 0, 0]]}}"
#define DENSE(from)        NODE("Dense", "keras.layers", "d", ", \"units\": 3", HISTORY(from))
#define EXPAND(name, from) OP("ExpandDims", name, ", \"axis\": 1", HISTORY(from))

/* Ops that masks are made of as well: those that lead to the output stay, through others of them too. */
static void ops_that_masks_are_made_of(void **state)
{
    static const char *const texts[] = {
        OPS_OF(EXPAND("e", "x") ", " EXPAND("f", "x") ", " OP("Concatenate", "c", ", \"axis\": -1",
                                                              "[" HISTORY("e") ", " HISTORY("f") "]") ", " DENSE("c"),
               "d"),
        OPS_OF(DENSE("x") ", " EXPAND("e", "d") ", " EXPAND("f", "e"), "f"),
        OPS_OF(DENSE("x") ", " OP("Round", "r", ", \"decimals\": 0", HISTORY("d")), "r"),
        OPS_OF(EXPAND("e", "x") ", " NODE("MultiHeadAttention", "keras.layers", "m",
                                          ", \"num_heads\": 1, \"key_dim\": 2", HISTORY("e") ", " HISTORY("e")),
               "m"),
    };
    (void)state;
    for (int i = 0; i < COUNT(texts); i++) {
        struct desk desk;
        enter(&desk);
        if (read_text(&desk, texts[i], strlen(texts[i])) != PLIM_OK)
            fail_msg("%s\n %s: %s", texts[i], desk.error.where, desk.error.message);
        leave(&desk);
    }
}

/* Keras writes training= of layers that have it in call(), and overrules it in fit() and evaluate(). */
static void training_of_a_call_is_passed_over(void **state)
{
    static const char *const values[] = {
        OPS_OF(
            CALL("Dropout", "keras.layers", "r", ", \"rate\": 0.5", HISTORY("x"), "\"training\": true") ", " DENSE("r"),
            "d"),
        OPS_OF(CALL("Dropout", "keras.layers", "r", ", \"rate\": 0.5", HISTORY("x"),
                    "\"training\": false") ", " DENSE("r"),
               "d"),
    };
    (void)state;
    for (int i = 0; i < COUNT(values); i++) {
        struct desk desk;
        enter(&desk);
        if (read_text(&desk, values[i], strlen(values[i])) != PLIM_OK)
            fail_msg("%s\n %s: %s", values[i], desk.error.where, desk.error.message);
        leave(&desk);
    }
}

/* What would be something else than in Keras. */
static void ops_without_a_like_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {OPS_OF(OP("Flip", "o", ", \"axis\": null", HISTORY("x")) ", " DENSE("o"), "d"), "flip without axis"},
        {OPS_OF(OP("Roll", "o", ", \"shift\": 1, \"axis\": null", HISTORY("x")) ", " DENSE("o"), "d"),
         "roll without axis"},
        {OPS_OF(OP("Transpose", "o", ", \"axes\": null", HISTORY("x")) ", " DENSE("o"), "d"), "transpose without axes"},
        {OPS_OF(OP("GetItem", "o", "",
                   HISTORY("x") ", [{\"class_name\": \"__slice__\", \"config\": {\"start\": null, \"stop\": null, "
                                "\"step\": null}}, {\"class_name\": \"__slice__\", \"config\": {\"start\": " HISTORY(
                                    "x") ", \"stop\": null, \"step\": null}}]") ", " DENSE("o"),
                "d"),
         "start is no number"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        struct desk desk;
        enter(&desk);
        plim_status status = read_text(&desk, cases[i].text, strlen(cases[i].text));
        if (status != PLIM_UNSUPPORTED || !strstr(desk.error.message, cases[i].message))
            fail_msg("%s\n  gave %s: \"%s\"", cases[i].text, plim_status_name(status), desk.error.message);
        leave(&desk);
    }
}

/* ---- constants ---- */

#define ARRAY(value, dtype)                                                                                            \
    "{\"class_name\": \"__numpy__\", \"config\": {\"value\": " value ", \"dtype\": \"" dtype "\"}}"
#define ADDED(array) OPS_OF(OP("Add", "o", "", HISTORY("x") ", " array) ", " DENSE("o"), "d")

static void constants_are_read(void **state)
{
    static const struct {
        const char *text;
        enum type type;
        int rank;
        double first, last;
    } cases[] = {
        {ADDED(ARRAY("[1.5, 2, 3e0, -4.25]", "float32")), TYPE_F32, 1, 1.5, -4.25},
        {ADDED(ARRAY("[[1.5, 2, 3, 0.1]]", "float64")), TYPE_F32, 2, 1.5, (double)0.1f},
        {ADDED(ARRAY("[1, 2, 3, -128]", "int8")), TYPE_I8, 1, 1, -128},
        {ADDED(ARRAY("[true, false, true, false]", "bool")), TYPE_BOOL, 1, 1, 0},
        {ADDED(ARRAY("[9007199254740992]", "int64")), TYPE_I64, 1, 0x1p53, 0x1p53},
        {ADDED("{\"class_name\": \"__tensor__\", \"config\": {\"value\": 2.5, \"dtype\": \"bfloat16\"}}"), TYPE_BF16, 1,
         2.5, 2.5},
        {ADDED("[1, 2.5, 3, 4]"), TYPE_F32, 1, 1, 4},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        struct desk desk;
        const struct node *node = NULL;
        enter(&desk);
        if (read_text(&desk, cases[i].text, strlen(cases[i].text)) != PLIM_OK)
            fail_msg("%s\n %s: %s", cases[i].text, desk.error.where, desk.error.message);
        for (int n = 0; n < desk.graph.node_count; n++)
            node = desk.graph.node[n]->op == &op_constant ? desk.graph.node[n] : node;
        assert_non_null(node);
        const struct constant_attributes *attributes = node->attributes;
        assert_int_equal(attributes->type, cases[i].type);
        assert_int_equal(attributes->shape.rank, cases[i].rank);
        int64_t last = shape_count(&attributes->shape) - 1;
        assert_true(element_get(attributes->data, cases[i].type, 0) == cases[i].first);
        assert_true(element_get(attributes->data, cases[i].type, last) == cases[i].last);
        leave(&desk);
    }
}

static void hostile_constants_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {ADDED(ARRAY("[]", "float32")), "1 to 1048576 elements"},
        {ADDED(ARRAY("[[], [1]]", "float32")), "1 to 1048576 elements"},
        {ADDED(ARRAY("[[1, 2], [3]]", "float32")), "different lengths"},
        {ADDED(ARRAY("[[1, 2], 3]", "float32")), "different lengths"},
        {ADDED(ARRAY("[1, [2]]", "float32")), "different lengths"},
        {ADDED(ARRAY("[1, null]", "float32")), "different lengths"},
        {ADDED(ARRAY("[[[[[[[1]]]]]]]", "float32")), "at most 6 axes"},
        {ADDED(ARRAY("[1, 2]", "object")), "dtype 'object'"},
        {ADDED(ARRAY("[1, 2]", "complex64")), "dtype 'complex64'"},
        {ADDED(ARRAY("[1, 2]", "string")), "dtype 'string'"},
        {ADDED(ARRAY("[\"a\", 2]", "float32")), "made of numbers"},
        {ADDED(ARRAY("[{\"class_name\": \"x\"}]", "float32")), "different lengths"},
        {ADDED(ARRAY("[256, 2, 3, 4]", "uint8")), "256 is no uint8"},
        {ADDED(ARRAY("[1.5, 2, 3, 4]", "int32")), "1.5 is no int32"},
        {ADDED(ARRAY("[1e39, 2, 3, 4]", "float32")), "is no float32"},
        {ADDED(ARRAY("[9223372036854775807]", "int64")), "is no int64"},
        {ADDED(ARRAY("{\"value\": 1}", "float32")), "a number or a list"},
        {ADDED(ARRAY("null", "float32")), "a number or a list"},
        {ADDED(ARRAY("[1, 2, 3]", "float32")), "do not broadcast"},
        {ADDED(ARRAY("[[1], [2]]", "float32")), "do not broadcast"},
        {ADDED(ARRAY("[[[1, 2, 3, 4]]]", "float32")), "3 axes beside values of 2"},
        {ADDED(
             "{\"class_name\": \"__numpy__\", \"config\": {\"value\": \"0000\", \"dtype\": \"int8\", \"shape\": [3]}}"),
         "6 hexadecimal digits"},
        {ADDED(
             "{\"class_name\": \"__numpy__\", \"config\": {\"value\": \"000g\", \"dtype\": \"int8\", \"shape\": [2]}}"),
         "'g' is no hexadecimal digit"},
        {ADDED(
             "{\"class_name\": \"__numpy__\", \"config\": {\"value\": \"0002\", \"dtype\": \"bool\", \"shape\": [2]}}"),
         "00 or 01"},
        {ADDED("{\"class_name\": \"__numpy__\", \"config\": {\"value\": \"00\", \"dtype\": \"int8\", \"shape\": "
               "[1048576, 1048576, 1048576, 1048576]}}"),
         "at most 1048576 elements"},
        {ADDED("{\"class_name\": \"__numpy__\", \"config\": {\"dtype\": \"int8\"}}"), "no tensor"},
        {ADDED("{\"class_name\": \"__bytes__\", \"config\": {\"value\": [1]}}"), "no tensor"},
        {OPS_OF(OP("Add", "o", "", ARRAY("[1]", "int8") ", " ARRAY("[1]", "int8")) ", " DENSE("o"), "d"), ""},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        struct desk desk;
        enter(&desk);
        plim_status status = read_text(&desk, cases[i].text, strlen(cases[i].text));
        if (status == PLIM_OK || status == PLIM_INTERNAL || !strstr(desk.error.message, cases[i].message))
            fail_msg("%s\n  gave %s: \"%s\"", cases[i].text, plim_status_name(status), desk.error.message);
        leave(&desk);
    }
}

/* The n-th allocation fails, once and for ever, until a reading needs no more: an error each time, nothing kept. */
static void constants_without_room(void **state)
{
    static const char text[] = ADDED(ARRAY("[1.5, 2, 3, -4]", "float32"));
    (void)state;
    for (int forever = 0; forever < 2; forever++)
        for (int64_t nth = 1;; nth++) {
            struct desk desk;
            enter(&desk);
            fault_arm(FAULT_ALLOCATE, nth, forever, ENOMEM);
            plim_status status = read_text(&desk, text, sizeof text - 1);
            bool reached = fault_disarm();
            if (reached ? status == PLIM_OK || status == PLIM_INTERNAL || !desk.error.message[0] : status != PLIM_OK)
                fail_msg("fault %lld: %s \"%s\"", (long long)nth, plim_status_name(status), desk.error.message);
            leave(&desk);
            if (!reached) {
                assert_true(nth > 3);
                break;
            }
        }
}

static void code_in_a_file_is_refused(void **state)
{
    struct desk desk;
    (void)state;
    enter(&desk);
    assert_int_equal(read_file(&desk, golden("lambda.keras")), PLIM_UNSUPPORTED);
    assert_non_null(strstr(desk.error.message, "Lambda"));
    leave(&desk);
}

/* Whatever happened to the bytes: an answer or an error, and nothing kept. */
static void try_bytes(const uint8_t *data, size_t bytes)
{
    struct fuzz_file file;
    struct desk desk;
    enter(&desk);
    assert_true(fuzz_file_open(&file, data, bytes));
    if (read_file(&desk, file.path) == PLIM_OK)
        (void)read_weights(&desk, false);
    fuzz_file_close(&file);
    leave(&desk);
}

static void damaged_files(const char *name, size_t step)
{
    static uint8_t data[65536], changed[65536];
    FILE *file = fopen(golden(name), "rb");
    assert_non_null(file);
    size_t bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    for (size_t i = 0; i < bytes; i += step) {
        try_bytes(data, i);
        memcpy(changed, data, bytes);
        changed[i] ^= (uint8_t)(1u << (i % 8));
        try_bytes(changed, bytes);
        changed[i] = 0xff;
        try_bytes(changed, bytes);
    }
}

static void damage_is_an_error(void **state)
{
    (void)state;
    damaged_files("packed.keras", 7);
    damaged_files("graph.keras", 101);
}

/* A layer that is used twice may have a class's name. */
static void a_shared_layer_is_named_like_a_class(void **state)
{
    static const char text[] =
        "{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": ["
        "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"config\": {\"batch_shape\": [null, 4], \"name\": \"x\"},"
        " \"inbound_nodes\": []},"
        "{\"class_name\": \"Dense\", \"name\": \"Dense\", \"config\": {\"units\": 4, \"name\": \"Dense\"},"
        " \"inbound_nodes\": [[[\"x\", 0, 0, {}]], [[\"Dense\", 0, 0, {}]]]},"
        "{\"class_name\": \"ReLU\", \"name\": \"Use\", \"config\": {\"name\": \"Use\"},"
        " \"inbound_nodes\": [[[\"Dense\", 0, 0, {}]], [[\"Dense\", 1, 0, {}]]]},"
        "{\"class_name\": \"Add\", \"name\": \"Add\", \"config\": {\"name\": \"Add\"},"
        " \"inbound_nodes\": [[[\"Use\", 0, 0, {}], [\"Use\", 1, 0, {}]]]}],"
        "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"Add\", 0, 0]]}}";
    struct desk desk;
    (void)state;
    enter(&desk);
    if (read_text(&desk, text, sizeof text - 1) != PLIM_OK)
        fail_msg("%s: %s", desk.error.where, desk.error.message);
    assert_int_equal(desk.model->layer_count, 4);
    assert_int_equal(desk.model->use_count, 6);
    assert_int_equal(desk.graph.build->weight_count, 2);
    leave(&desk);
}

/* ---- a hostile text costs no squares ---- */

struct long_text {
    char *text;
    size_t bytes, room;
};

__attribute__((format(printf, 2, 3))) static void say(struct long_text *text, const char *format, ...)
{
    va_list arguments;
    if (text->room - text->bytes < 1024) {
        text->room += text->room + 4096;
        text->text = realloc(text->text, text->room);
        assert_non_null(text->text);
    }
    va_start(arguments, format);
    text->bytes += (size_t)vsnprintf(text->text + text->bytes, text->room - text->bytes, format, arguments);
    va_end(arguments);
}

#define TENSOR "{\"class_name\": \"__keras_tensor__\", \"config\": {\"keras_history\": [\"%s%d\", %d, 0]}}"
#define OBJECT "{\"class_name\": \"%s\", \"module\": \"%s\", \"name\": \"%s%d\", \"config\": "

/* Of each kind as many: inputs, embeddings of them, ops that mask them, models that may count a use of themselves, and
   layers that are called with all that; and a layer with as many inputs, and as many outputs. */
static void say_model(struct long_text *text, int count)
{
    say(text, "{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [");
    for (int i = 0; i < count; i++) {
        say(text, OBJECT "{\"batch_shape\": [null, 4]}, \"inbound_nodes\": []},", "InputLayer", "keras", "x", i);
        say(text, OBJECT "{\"mask_zero\": true}, \"inbound_nodes\": [{\"args\": [" TENSOR "]}]},", "Embedding", "keras",
            "e", i, "x", i, 0);
        say(text, OBJECT "{}, \"inbound_nodes\": [{\"args\": [" TENSOR ", 0]}]},", "NotEqual", "keras.src.ops.numpy",
            "n", i, "x", i, 0);
        say(text, OBJECT "{\"layers\": [], \"output_layers\": [\"x\", 0, 0]}, ", "Functional", "keras", "f", i);
        say(text, "\"inbound_nodes\": [{\"args\": [" TENSOR "]}]},", "f", i ? i - 1 : 0, 1);
        say(text, OBJECT "{}, \"inbound_nodes\": [{\"args\": [" TENSOR "], ", "Dense", "keras", "d", i, "e", i, 1);
        say(text, "\"kwargs\": {\"mask\": " TENSOR "}}]},", "n", i, 0);
    }
    say(text, OBJECT "{}, \"inbound_nodes\": [[", "Add", "keras", "a", 0);
    for (int i = 0; i < count; i++)
        say(text, "%s[\"f%d\", 1, 0]", i ? ", " : "", i);
    say(text, "]]}], \"input_layers\": [");
    for (int i = 0; i < count; i++)
        say(text, "%s[\"x%d\", 0, 0]", i ? ", " : "", i);
    say(text, "], \"output_layers\": [");
    for (int i = 0; i < count; i++)
        say(text, "%s[\"f%d\", 1, 0]", i ? ", " : "", i);
    say(text, "]}}");
}

static uint64_t steps_for(int count)
{
    struct long_text text = {0};
    struct desk desk;
    struct keras_config config = {0};
    enter(&desk);
    say_model(&text, count);
    if (keras_config_read(&config, &desk.arena, "config.json", text.text, text.bytes, &desk.error) != PLIM_OK)
        fail_msg("%s: %s", desk.error.where, desk.error.message);
    free(text.text);
    leave(&desk);
    return config.steps;
}

static void work_grows_with_the_text(void **state)
{
    (void)state;
    uint64_t once = steps_for(400), eight_times = steps_for(3200);
    assert_true(once > 0);
    if (eight_times > 10 * once) /* tables that double: not 8 to the last step */
        fail_msg("%llu steps, and %llu for a text that is 8 times as long", (unsigned long long)once,
                 (unsigned long long)eight_times);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_and_weights),
        cmocka_unit_test(a_graph_is_connected),
        cmocka_unit_test(hostile_configs_are_refused),
        cmocka_unit_test(code_in_a_file_is_refused),
        cmocka_unit_test(damage_is_an_error),
        cmocka_unit_test(a_shared_layer_is_named_like_a_class),
        cmocka_unit_test(work_grows_with_the_text),
        cmocka_unit_test(ops_that_masks_are_made_of),
        cmocka_unit_test(training_of_a_call_is_passed_over),
        cmocka_unit_test(ops_without_a_like_are_refused),
        cmocka_unit_test(constants_are_read),
        cmocka_unit_test(hostile_constants_are_refused),
        cmocka_unit_test(constants_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
