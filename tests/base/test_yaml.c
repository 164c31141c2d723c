/* test_yaml.c - the tree and its places, what is refused and where, and
   overrides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbers/count.h"
#include "base/numbers/random.h"
#include "base/text/text.h"
#include "base/text/yaml.h"

#include <cmocka.h> /* last: it has a macro fail() */

struct fixture {
    struct budget *budget;
    struct arena arena;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    if (budget_make(&fixture.budget, BUDGET_UNLIMITED, NULL) != PLIM_OK)
        return -1;
    arena_init(&fixture.arena, fixture.budget, TAG_PLANNER);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    arena_release(&fixture->arena);
    budget_free(fixture->budget);
    return 0;
}

static struct yaml *parsed(struct fixture *fixture, const char *text)
{
    struct yaml *root = NULL;
    plim_error error = {0};
    if (yaml_parse(&root, &fixture->arena, "job.yaml", text, strlen(text), &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    return root;
}

/* The tree as one line of flow: quoted scalars in quotes, null as ~. */
static void print(struct text *out, const struct yaml *node)
{
    if (node->kind == YAML_SCALAR) {
        text_add(out, node->quoted ? "\"%s\"" : "%s", node->is_null ? "~" : node->text);
        return;
    }
    int count = 0;
    text_add(out, "%c", node->kind == YAML_MAP ? '{' : '[');
    for (const struct yaml *child = node->first; child; child = child->next, count++) {
        text_add(out, "%s", count > 0 ? ", " : "");
        if (node->kind == YAML_MAP)
            text_add(out, "%s: ", child->key);
        else
            assert_null(child->key);
        print(out, child);
    }
    assert_int_equal(count, node->count);
    text_add(out, "%c", node->kind == YAML_MAP ? '}' : ']');
}

static void check_tree(struct fixture *fixture, const struct yaml *root, const char *expected)
{
    struct text out;
    char tree[2000];
    text_init(&out, fixture->budget, TAG_PLANNER);
    print(&out, root);
    snprintf(tree, sizeof tree, "%s", out.data);
    text_release(&out); /* before the assertion, which does not come back */
    assert_string_equal(tree, expected);
}

static const char job[] = "memory: 48MiB\n"
                          "data:\n"
                          "  train:\n"
                          "    idx: [a.gz, \"b.gz\"]   # side by side\n"
                          "    pipeline: [shuffle: exact, batch: 32]\n"
                          "model:\n"
                          "  - Rescaling: 1/255\n"
                          "  - Flatten\n"
                          "  - Dense: {units: 128, activation: relu}\n"
                          "train:\n"
                          "  epochs: 5\n"
                          "  note:\n"
                          "  scratch: ~\n"
                          "  name: 'null'\n";

static void styles_make_one_tree(void **state)
{
    check_tree(*state, parsed(*state, job),
               "{memory: 48MiB, data: {train: {idx: [a.gz, \"b.gz\"], pipeline: [{shuffle: exact}, {batch: 32}]}}, "
               "model: [{Rescaling: 1/255}, Flatten, {Dense: {units: 128, activation: relu}}], "
               "train: {epochs: 5, note: ~, scratch: ~, name: \"null\"}}");
    check_tree(*state, parsed(*state, "pipeline:\n- shuffle: exact\n- batch: 32\n- map: [random_flip: horizontal]\n"),
               "{pipeline: [{shuffle: exact}, {batch: 32}, {map: [{random_flip: horizontal}]}]}");
    check_tree(*state, parsed(*state, "a: |\n  x\n  y\nb: >\n  c\n  d\n"), "{a: \"x\ny\n\", b: \"c d\n\"}");
    check_tree(*state, parsed(*state, "{\"a\":1,\"b\":[true,null,{}],\"c\":[]}"), "{a: 1, b: [true, ~, {}], c: []}");
    check_tree(*state,
               parsed(*state, "\xef\xbb\xbf"
                              "a: 1\r\nb: x y\r\n"),
               "{a: 1, b: x y}");
    check_tree(*state, parsed(*state, "---\na: 50%\nurl: http://x#y\n..."), "{a: 50%, url: http://x#y}");
    check_tree(*state, parsed(*state, ""), "~");
    check_tree(*state, parsed(*state, "# nothing\n"), "~");
    check_tree(*state, parsed(*state, "'it''s'"), "\"it's\"");
    check_tree(*state, parsed(*state, "\xef\xbb\xbf\xc3\xa9: 'x''''y'\nb: ['''''', '', '''']"),
               "{\xc3\xa9: \"x''y\", b: [\"''\", \"\", \"'\"]}");
    check_tree(*state, parsed(*state, "'a''''''b': 1\nb: \"x\\\"\\\"y\\\\\\\\\""), "{a'''b: 1, b: \"x\"\"y\\\\\"}");
}

static void check_place(const struct yaml *node, const char *value, const char *key)
{
    char place[256];
    assert_non_null(node);
    yaml_place(place, "job.yaml", node);
    assert_string_equal(place, value);
    yaml_key_place(place, "job.yaml", node);
    assert_string_equal(place, key);
}

static void nodes_know_their_places(void **state)
{
    struct yaml *root = parsed(*state, job);
    struct yaml *train = yaml_get(yaml_get(root, "data"), "train");
    check_place(yaml_get(root, "memory"), "job.yaml:1:9", "job.yaml:1:1");
    check_place(train, "job.yaml:4:5", "job.yaml:3:3");
    struct yaml *idx = yaml_get(train, "idx");
    check_place(idx, "job.yaml:4:10", "job.yaml:4:5");
    check_place(idx->first, "job.yaml:4:11", "job.yaml:4:11");
    check_place(idx->first->next, "job.yaml:4:17", "job.yaml:4:17");
    struct yaml *pipeline = yaml_get(train, "pipeline");
    check_place(pipeline->first->next, "job.yaml:5:32", "job.yaml:5:32");
    check_place(pipeline->first->next->first, "job.yaml:5:39", "job.yaml:5:32");
    struct yaml *dense = yaml_get(root, "model")->first->next->next;
    check_place(dense, "job.yaml:9:5", "job.yaml:9:5");
    check_place(dense->first, "job.yaml:9:12", "job.yaml:9:5");
    check_place(yaml_get(yaml_get(root, "train"), "note"), "job.yaml:12:3", "job.yaml:12:3");
    assert_null(yaml_get(root, "epochs"));
    assert_null(yaml_get(idx, "a.gz"));
    assert_null(yaml_get(NULL, "a"));
}

static void refusals_name_the_place(void **state)
{
    static const struct {
        const char *text, *where, *what;
    } bad[] = {
        {"a: 1\nb: 2\na: 3\n", "job.yaml:3:1", "second time"},
        {"{a: 1, a: 2}", "job.yaml:1:8", "second time"},
        {"x:\n  - {a: 1,\n     'a': 2}", "job.yaml:3:6", "second time"},
        {"a: 1\nb: *a\n", "job.yaml:2:4", "aliases"},
        {"a: &x 1\nb: 2\n", "job.yaml:1:4", "anchors"},
        {"a: &x {b: 2}\n", "job.yaml:1:4", "anchors"},
        {"a: !!str 1\n", "job.yaml:1:4", "tags"},
        {"a:\n  - !x [1]\n", "job.yaml:2:5", "tags"},
        {"a:\n  <<: {b: 1}\n", "job.yaml:2:3", "merge"},
        {"a: 1\n---\nb: 2\n", "job.yaml:2:1", "second document"},
        {"a: 1\n...\nb: 2\n", "job.yaml:2:1", "second document"},
        {"%YAML 1.2\n---\na: 1\n", "job.yaml:1:1", "directives"},
        {"---\n%a: 1\nb: 2\n", "job.yaml:2:1", "directives"},
        {"? [a]\n: 1\n", "job.yaml:1:3", "key must be"},
        {"a: 1\n: 2\n", NULL, "key is missing"},
        {"a: b: c\n", "job.yaml:1:5", "nested"},
        {"\ta: 1\n", "job.yaml:1:1", "tab"},
        {"a: 1\n\tb: 2\n", "job.yaml:1:4", "multiline"},
        {"a: @x\n", "job.yaml:1:4", "'@'"},
        {"a: [1, 2\nb: 3\n", NULL, "bracket"},
        {"a: \"x", NULL, ""},
        {"a: 1\nb: \xff\n", "job.yaml:2:4", "UTF-8"},
        {"\xc3\xa9: \xc3\n", "job.yaml:1:4", "UTF-8"},
        {"\xff\xfe"
         "a\0:\0",
         "job.yaml:1:1", "UTF-8"},
        {"a: \x01\n", "job.yaml:1:4", "control"},
        {"a: 'x''''\n  y'\n", "job.yaml:1:4", "double quotes"},
        {"a: \"\\0\"\n", "job.yaml:1:4", "character 0"},
    };
    struct fixture *fixture = *state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct yaml *root = NULL;
        plim_error error = {0};
        plim_status status = yaml_parse(&root, &fixture->arena, "job.yaml", bad[i].text, strlen(bad[i].text), &error);
        if (status != PLIM_BAD_JOB)
            fail_msg("accepted (%s): %s", plim_status_name(status), bad[i].text);
        assert_null(root);
        if (bad[i].where && strcmp(error.where, bad[i].where) != 0)
            fail_msg("%s: expected %s, got %s (%s)", bad[i].text, bad[i].where, error.where, error.message);
        assert_true(strncmp(error.where, "job.yaml:", 9) == 0);
        if (!strstr(error.message, bad[i].what))
            fail_msg("%s: expected %s, got %s", bad[i].text, bad[i].what, error.message);
        assert_null(strchr(error.message, '\n'));
        assert_int_equal(yaml_parse(&root, &fixture->arena, "x", bad[i].text, strlen(bad[i].text), NULL), PLIM_BAD_JOB);
    }
    struct yaml *root;
    assert_int_equal(yaml_parse(&root, &fixture->arena, "x", "a: 1\0b: 2", 10, NULL), PLIM_BAD_JOB);
}

static plim_status parse_repeated(struct fixture *fixture, const char *part, size_t count, plim_error *error)
{
    size_t length = strlen(part), bytes = length * count;
    char *text = malloc(bytes);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * length, part, length);
    struct yaml *root;
    plim_status status = yaml_parse(&root, &fixture->arena, "job.yaml", text, bytes, error);
    free(text);
    return status;
}

static void sizes_have_limits(void **state)
{
    plim_error error = {0};
    assert_int_equal(parse_repeated(*state, "- a\n", YAML_MOST_NODES - 1, &error), PLIM_OK);
    assert_int_equal(parse_repeated(*state, "- a\n", YAML_MOST_NODES, &error), PLIM_BAD_JOB);
    assert_string_equal(error.where, "job.yaml:20000:3");
    assert_int_equal(parse_repeated(*state, "#\n", YAML_MOST_BYTES / 2, &error), PLIM_OK);
    assert_int_equal(parse_repeated(*state, "#\n", YAML_MOST_BYTES / 2 + 1, &error), PLIM_BAD_JOB);
    assert_int_equal(parse_repeated(*state, "[", 100000, &error), PLIM_BAD_JOB);
    assert_int_equal(parse_repeated(*state, "{a: ", 100000, &error), PLIM_BAD_JOB);
    assert_int_equal(parse_repeated(*state, "- ", 1000, &error), PLIM_BAD_JOB);
}

/* Key number `again` is there a second time, in the last line; -1: none is. */
static void check_keys(struct fixture *fixture, int count, int again)
{
    static char text[400000];
    struct yaml *root;
    plim_error error = {0};
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += (size_t)sprintf(text + length, "k%d: 1\n", i == count - 1 && again >= 0 ? again : i * 7919 % count);
    plim_status status = yaml_parse(&root, &fixture->arena, "job.yaml", text, length, &error);
    assert_int_equal(status, again >= 0 ? PLIM_BAD_JOB : PLIM_OK);
    if (again >= 0) {
        char where[64];
        snprintf(where, sizeof where, "job.yaml:%d:1", count);
        assert_string_equal(error.where, where);
        assert_non_null(strstr(error.message, "second time"));
    }
}

static void keys_are_unique_among_many(void **state)
{
    static const int counts[] = {2, 63, 64, 65, 66, 100, 9000};
    for (size_t i = 0; i < COUNT(counts); i++) {
        check_keys(*state, counts[i], -1);
        check_keys(*state, counts[i], 0);
        check_keys(*state, counts[i], (counts[i] - 2) * 7919 % counts[i]);
    }
}

static void the_budget_is_kept(void **state)
{
    (void)state;
    struct budget *budget;
    struct arena arena;
    struct yaml *root = NULL;
    plim_error error = {0};
    assert_int_equal(budget_make(&budget, 20000, NULL), PLIM_OK);
    arena_init(&arena, budget, TAG_PLANNER);
    static char text[30000];
    memset(text, 'a', sizeof text);
    assert_int_equal(yaml_parse(&root, &arena, "x", text, sizeof text, &error), PLIM_OVER_BUDGET);
    assert_null(root);
    arena_release(&arena);
    budget_free(budget);
}

/* libfyaml must not write on the host's standard error. */
static void nothing_is_printed(void **state)
{
    FILE *capture = tmpfile();
    assert_non_null(capture);
    int before = dup(2);
    fflush(stderr);
    dup2(fileno(capture), 2);
    struct yaml *root;
    struct fixture *fixture = *state;
    static const char *const bad[] = {"a: [", "a: b: c", "\t x", "a: *b", "{", "%YAML 9.9\n---\na", "a: \"\\q\""};
    for (size_t i = 0; i < COUNT(bad); i++)
        yaml_parse(&root, &fixture->arena, "x", bad[i], strlen(bad[i]), NULL);
    fflush(stderr);
    dup2(before, 2);
    close(before);
    fseek(capture, 0, SEEK_END);
    assert_int_equal(ftell(capture), 0);
    fclose(capture);
}

/* ---- overrides ------------------------------------------------------- */

static void overrides_set_values(void **state)
{
    static const struct {
        const char *assignment, *tree;
    } sets[] = {
        {"t.epochs=9", "{t: {epochs: 9, o: ~}, p: [{shuffle: exact}, {batch: 32}, Flatten], s: [1, 2]}"},
        {"t.new=x", "{t: {epochs: 5, o: ~, new: x}, p: [{shuffle: exact}, {batch: 32}, Flatten], s: [1, 2]}"},
        {"t.o.adam.rate=0.1",
         "{t: {epochs: 5, o: {adam: {rate: 0.1}}}, p: [{shuffle: exact}, {batch: 32}, Flatten], s: [1, 2]}"},
        {"fresh.deep.key=[1, {a: 2}]", "{t: {epochs: 5, o: ~}, p: [{shuffle: exact}, {batch: 32}, Flatten], s: [1, 2], "
                                       "fresh: {deep: {key: [1, {a: 2}]}}}"},
        {"p.batch=64", "{t: {epochs: 5, o: ~}, p: [{shuffle: exact}, {batch: 64}, Flatten], s: [1, 2]}"},
        {"p.shuffle.buffer=10", NULL},
        {"p.1={take: 3}", "{t: {epochs: 5, o: ~}, p: [{shuffle: exact}, {take: 3}, Flatten], s: [1, 2]}"},
        {"p.1.batch=7", "{t: {epochs: 5, o: ~}, p: [{shuffle: exact}, {batch: 7}, Flatten], s: [1, 2]}"},
        {"p.Flatten.x=1", "{t: {epochs: 5, o: ~}, p: [{shuffle: exact}, {batch: 32}, {Flatten: {x: 1}}], s: [1, 2]}"},
        {"s.1='5'", "{t: {epochs: 5, o: ~}, p: [{shuffle: exact}, {batch: 32}, Flatten], s: [1, \"5\"]}"},
        {"s=[]", "{t: {epochs: 5, o: ~}, p: [{shuffle: exact}, {batch: 32}, Flatten], s: []}"},
        {"t.epochs=", "{t: {epochs: ~, o: ~}, p: [{shuffle: exact}, {batch: 32}, Flatten], s: [1, 2]}"},
        {"t.epochs=a=b", "{t: {epochs: a=b, o: ~}, p: [{shuffle: exact}, {batch: 32}, Flatten], s: [1, 2]}"},
    };
    static const char text[] = "t: {epochs: 5, o: }\np: [shuffle: exact, batch: 32, Flatten]\ns: [1, 2]\n";
    struct fixture *fixture = *state;
    for (size_t i = 0; i < COUNT(sets); i++) {
        struct yaml *root = parsed(fixture, text);
        plim_error error = {0};
        plim_status status = yaml_override(root, &fixture->arena, sets[i].assignment, &error);
        if (status != (sets[i].tree ? PLIM_OK : PLIM_USAGE))
            fail_msg("%s: %s", sets[i].assignment, error.message);
        if (sets[i].tree)
            check_tree(fixture, root, sets[i].tree);
    }
}

static void an_override_of_the_job(void **state)
{
    struct fixture *fixture = *state;
    struct yaml *root = parsed(fixture, job);
    assert_int_equal(yaml_override(root, &fixture->arena, "data.train.pipeline.batch=64", NULL), PLIM_OK);
    struct yaml *batch = yaml_get(yaml_get(yaml_get(root, "data"), "train"), "pipeline")->first->next->first;
    assert_string_equal(batch->key, "batch");
    assert_string_equal(batch->text, "64");
    check_place(batch, "--set data.train.pipeline.batch=64", "--set data.train.pipeline.batch=64");
    assert_int_equal(yaml_override(root, &fixture->arena, "train.ep=1", NULL), PLIM_OK);
    check_place(yaml_get(yaml_get(root, "train"), "ep"), "--set train.ep=1", "--set train.ep=1");
}

static void bad_overrides_are_usage_errors(void **state)
{
    static const struct {
        const char *assignment, *what, *hint;
    } bad[] = {
        {"epochs", "PATH=VALUE", "train.epochs=1"},
        {"=1", "PATH=VALUE", "train.epochs=1"},
        {"", "PATH=VALUE", ""},
        {"trian.epochs=1", "'trian'", "'train'"},
        {"data.train.pipeline.btach=1", "'btach'", "'batch'"},
        {"data.train.pipeline.prefetch=1", "'prefetch'", ""},
        {"model.flaten.x=1", "'flaten'", "'Flatten'"},
        {"model.9=1", "entry 9 in a list of 3", ""},
        {"memory.x=1", "'48MiB'", ""},
        {"train..epochs=1", "empty", ""},
        {"train.epochs.=1", "empty", ""},
        {".a=1", "empty", ""},
        {"train.epochs=[1", "bracket", ""},
        {"train.epochs=*.npy", "quotes", ""},
        {"train.epochs=!x", "tags", ""},
        {"train.epochs={a: 1, a: 2}", "second time", ""},
        {"data.train.idx.99999999999999999999=1", "'99999999999999999999'", ""},
    };
    struct fixture *fixture = *state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct yaml *root = parsed(fixture, job);
        plim_error error = {0};
        if (yaml_override(root, &fixture->arena, bad[i].assignment, &error) != PLIM_USAGE)
            fail_msg("accepted: %s", bad[i].assignment);
        if (!strstr(error.message, bad[i].what) || !strstr(error.hint, bad[i].hint))
            fail_msg("%s: %s; %s", bad[i].assignment, error.message, error.hint);
    }
}

/* ---- damage ---------------------------------------------------------- */

/* Any status will do; what comes out must be a tree or an error with a place. */
static void read_damaged(struct fixture *fixture, const char *text, size_t bytes)
{
    char *copy = malloc(bytes + (bytes == 0));
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    struct yaml *root = NULL;
    plim_error error = {0};
    plim_status status = yaml_parse(&root, &fixture->arena, "j", copy, bytes, &error);
    free(copy);
    if (status == PLIM_OK) {
        struct text out;
        text_init(&out, fixture->budget, TAG_PLANNER);
        print(&out, root);
        text_release(&out);
    } else {
        assert_int_equal(status, PLIM_BAD_JOB);
        assert_true(error.where[0] != 0 && error.message[0] != 0);
    }
    arena_release(&fixture->arena);
}

static void damage_does_no_harm(void **state)
{
    char copy[sizeof job];
    for (size_t cut = 0; cut < sizeof job; cut++)
        read_damaged(*state, job, cut);
    for (uint64_t i = 0; i < 3000; i++) {
        memcpy(copy, job, sizeof job);
        for (uint64_t change = 0; change <= i % 4; change++) {
            uint64_t key = random_key(9, i, change);
            static const char alphabet[] = "{}[]:,-?&*!|>'\"%@#\n \t~<a1\xc3";
            copy[key % (sizeof job - 1)] = alphabet[(key >> 32) % (sizeof alphabet - 1)];
        }
        read_damaged(*state, copy, sizeof job - 1);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(styles_make_one_tree),       TEST(nodes_know_their_places),
        TEST(refusals_name_the_place),    TEST(sizes_have_limits),
        TEST(keys_are_unique_among_many), TEST(the_budget_is_kept),
        TEST(nothing_is_printed),         TEST(overrides_set_values),
        TEST(an_override_of_the_job),     TEST(bad_overrides_are_usage_errors),
        TEST(damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
