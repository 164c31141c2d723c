/* test_option_values.c - bad values for every option of every table, in jobs that are good otherwise.

   The tables are found where they are read: settings_read and option_unknown are wrapped, so that opening a good job
   tells which words each of its maps may have, and a wrong name which names there are. Nothing of them is listed here;
   option_jobs.h has a job for each word of a .def list, which the first tests check. Each job is opened and planned (of
   data alone: inspected; small models are trained for a step), and must give a status and an error of one line.

     test_option_values [SHARE [REST [TEST]]]

   runs the jobs whose number leaves REST (0) when divided by SHARE (1: all of them), of the tests that match TEST. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/json.h"
#include "base/text/settings.h"
#include "model/layers/layer_options.h"
#include "model/ops/op_words.h"
#include "option_jobs.h"

#define DEEP_10 "[[[[[[[[[["
#define DEEP_01 "]]]]]]]]]]"
#define LONG_50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
static const char *const bad_values[] = {
    "[]",
    "[[]]",
    "[[1, 2], [3, 4]]",
    "{}",
    "null",
    "\"\"",
    LONG_50 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50,
    "\"\\x80\\xff\\e[1m\\n\"",
    "\"\\u202e\xc3\xa9\"",
    "-1",
    "0",
    "1",
    "3",
    "-2147483648",
    "2147483647",
    "2147483648",
    "4294967297",
    "9223372036854775807",
    "-9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "1e308",
    "3.4e38",
    "1e-320",
    "nan",
    "inf",
    "-inf",
    "true",
    "[0]",
    "[1, 2, 3, 4, 5, 6, 7, 8, 9]",
    "[-9223372036854775808]",
    "[9223372036854775807, 9223372036854775807]",
    "[2147483647, 2147483647, 2147483647]",
    DEEP_10 DEEP_10 DEEP_10 "1" DEEP_01 DEEP_01 DEEP_01,
    "{a: {b: 1}}",
    "{nonsense: {}}",
    "nonsense",
};

/* ---- what the readers ask for ---- */

#define MOST_WORDS 64
#define MOST_MAPS  64
#define MOST_DEPTH 32

struct table {
    int line, column; /* of the map that it was read from */
    int count;
    const char *word[MOST_WORDS];
};

static struct {
    bool on;
    int table_count;
    struct table table[MOST_MAPS];
    int name_count; /* of the last unknown name: those that there are */
    const char *name[128];
} heard;

plim_status __real_settings_read(void *out, const struct setting *settings, int count, const char *job,
                                 const struct yaml *map, plim_error *error);
plim_status __wrap_settings_read(void *out, const struct setting *settings, int count, const char *job,
                                 const struct yaml *map, plim_error *error);
plim_status __wrap_settings_read(void *out, const struct setting *settings, int count, const char *job,
                                 const struct yaml *map, plim_error *error)
{
    if (heard.on && map->kind != YAML_SCALAR && heard.table_count < MOST_MAPS) {
        struct table *table = &heard.table[heard.table_count++];
        *table = (struct table){.line = map->line, .column = map->column};
        for (int i = 0; i < count && i < MOST_WORDS; i++)
            table->word[table->count++] = settings[i].word;
    }
    return __real_settings_read(out, settings, count, job, map, error);
}

plim_status __real_option_unknown(const char *what, const char *word, const char *where, const struct choices *choices,
                                  plim_error *error);
plim_status __wrap_option_unknown(const char *what, const char *word, const char *where, const struct choices *choices,
                                  plim_error *error);
plim_status __wrap_option_unknown(const char *what, const char *word, const char *where, const struct choices *choices,
                                  plim_error *error)
{
    if (heard.on && strcmp(what, "layer") != 0)
        for (heard.name_count = 0; heard.name_count < choices->count && heard.name_count < COUNT(heard.name);
             heard.name_count++)
            heard.name[heard.name_count] = choices->words[heard.name_count];
    return __real_option_unknown(what, word, where, choices, error);
}

/* ---- one job ---- */

static struct {
    char folder[64], path[128], golden[4096];
    int64_t share, rest, numbered, run, passed, trained, wrong;
    uint64_t small_bytes; /* a plan of so many more than the good job's is trained */
    bool fitted;          /* a job of the same layers was good already */
    plim_status status;   /* of the last one */
    plim_error error;
} state;

static void end_of_patience(int signal)
{
    static const char words[] = "\ntest_option_values: a job took more than two minutes; it stands in job.yaml\n";
    (void)signal;
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0)
        _exit(4);
    _exit(3);
}

static void write_job(const char *text)
{
    int file = open(state.path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    size_t bytes = strlen(text);
    assert_true(file >= 0 && write(file, text, bytes) == (ssize_t)bytes && close(file) == 0);
}

/* Valid UTF-8, and no character that moves the cursor, ends the line or turns the direction of writing. */
static bool is_line(const char *text)
{
    for (size_t length; *text; text += length) {
        length = json_utf8_length(text, strlen(text));
        unsigned char first = (unsigned char)text[0], second = (unsigned char)text[length > 1];
        bool control = length == 1 ? first < 0x20 || first == 0x7f : first == 0xc2 && second < 0xa0;
        bool turns = length == 3 && (memcmp(text, "\xe2\x80\xa8", 3) >= 0 && memcmp(text, "\xe2\x80\xae", 3) <= 0);
        if (length == 0 || control || turns)
            return false;
    }
    return true;
}

static void lines_are_told_from_others(void **unused)
{
    static const char *const wrong[] = {"\x1b", "a\n", "\x7f", "\xff", "caf\xe9", "\xc3", "\xc2\x9b", "x\xe2\x80\xae"};
    (void)unused;
    assert_true(is_line("") && is_line("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\xa2"));
    for (int i = 0; i < COUNT(wrong); i++)
        assert_false(is_line(wrong[i]));
}

/* Whatever is wrong is told in one line, and is not our fault. */
static void check_error(const char *text)
{
    const plim_error *error = &state.error;
    bool told = state.status == error->code && error->message[0] && is_line(error->where) && is_line(error->message) &&
                is_line(error->hint);
    if (state.status == PLIM_INTERNAL || state.status == PLIM_NO_MEMORY || !told)
        if (state.wrong++ < 100)
            print_error("%s\n  %s: %s: %s; %s\n", text, plim_status_name(state.status), error->where, error->message,
                        error->hint);
}

static void nobody_listens(void *context, const plim_event *event)
{
    (void)context, (void)event;
}

enum verb { PLAN, TRAIN, INSPECT };

static uint64_t run_job(const char *text, enum verb verb)
{
    plim_job *job = NULL;
    plim_plan_report report = {0};
    const char *said, *json;
    const plim_job_options options = {.data_only = verb == INSPECT};
    write_job(text);
    state.run++;
    state.error = (plim_error){0};
    alarm(120);
    state.status = plim_job_open(&job, state.path, &options, &state.error);
    if (state.status == PLIM_OK && verb == INSPECT)
        state.status = plim_job_inspect_data(&said, &json, job, &state.error);
    else if (state.status == PLIM_OK)
        state.status = plim_job_plan(&report, job, &state.error);
    if (state.status == PLIM_OK && verb == TRAIN && report.predicted_peak_bytes <= state.small_bytes) {
        state.status = plim_job_train(job, nobody_listens, NULL, &state.error);
        state.trained++;
    }
    plim_job_close(job);
    alarm(0);
    state.passed += state.status == PLIM_OK;
    if (state.status != PLIM_OK)
        check_error(text);
    return report.predicted_peak_bytes;
}

/* ---- a job with one value changed ---- */

static char text_buffer[65536];
static size_t text_length;

static void put(const char *words)
{
    size_t length = strlen(words);
    assert_true(text_length + length < sizeof text_buffer);
    memcpy(text_buffer + text_length, words, length + 1);
    text_length += length;
}

static void put_scalar(const char *text, bool quoted)
{
    if (!quoted) {
        put(text);
        return;
    }
    put("'");
    for (; *text; text++)
        put(*text == '\'' ? "''" : (char[2]){*text, 0});
    put("'");
}

/* What is different: `value` stands for the node; with a word, as that word's value in the node, a map. */
struct change {
    const struct yaml *node;
    const char *word, *value;
};

static void put_added(const struct change *change, bool list, bool first)
{
    put(first ? "" : ", ");
    put(list ? "{" : "");
    put(change->word);
    put(": ");
    put(change->value);
    put(list ? "}" : "");
}

static void put_node(const struct yaml *node, const struct change *change)
{
    bool here = change && change->node == node, list = node->kind == YAML_LIST;
    if (here && !change->word) {
        put(change->value);
        return;
    }
    if (node->kind == YAML_SCALAR) {
        put_scalar(node->is_null ? "null" : node->text, node->quoted || !*node->text);
        return;
    }
    put(list ? "[" : "{");
    for (const struct yaml *child = node->first; child; child = child->next) {
        put(child == node->first ? "" : ", ");
        if (!list) {
            put_scalar(child->key, true);
            put(": ");
        }
        put_node(child, change);
    }
    if (here)
        put_added(change, list, !node->first);
    put(list ? "]" : "}");
}

static const char *changed(const struct yaml *root, const struct change *change)
{
    text_length = 0;
    put_node(root, change);
    return text_buffer;
}

/* ---- a tree that is tried ---- */

struct tree {
    struct budget *budget;
    struct arena arena;
    struct yaml *root;
    enum verb verb;
    bool good;
    int every; /* how many values for one that is tried */
    int table_count;
    struct table table[MOST_MAPS];
};

static void tree_init(struct tree *tree, const char *text, enum verb verb)
{
    plim_error error = {0};
    *tree = (struct tree){.verb = verb};
    assert_int_equal(budget_make(&tree->budget, BUDGET_UNLIMITED, &error), PLIM_OK);
    arena_init(&tree->arena, tree->budget, TAG_PLANNER);
    if (yaml_parse(&tree->root, &tree->arena, "job", text, strlen(text), &error) != PLIM_OK)
        fail_msg("%s\n  %s: %s", text, error.where, error.message);
}

static void tree_release(struct tree *tree)
{
    arena_release(&tree->arena);
    budget_free(tree->budget);
}

/* Runs it as it is, and keeps what was asked for. */
static void tree_listen(struct tree *tree)
{
    uint64_t bytes;
    heard.on = true;
    heard.table_count = 0;
    state.small_bytes = UINT64_MAX;
    bytes = run_job(changed(tree->root, NULL), tree->verb);
    heard.on = false;
    tree->good = state.status == PLIM_OK;
    state.small_bytes = bytes + ((uint64_t)16 << 20);
    memcpy(tree->table, heard.table, sizeof tree->table);
    tree->table_count = heard.table_count;
}

static bool is_ours(void)
{
    return state.numbered++ % state.share == state.rest;
}

static void try_value(const struct tree *tree, const struct change *change)
{
    if (is_ours())
        run_job(changed(tree->root, change), tree->verb);
}

/* All of them, or every so many. */
static void try_values(const struct tree *tree, struct change change)
{
    static int turn;
    for (int i = 0; i < COUNT(bad_values); i++) {
        change.value = bad_values[i];
        if (turn++ % tree->every == 0)
            try_value(tree, &change);
    }
}

static const struct yaml *node_at(const struct yaml *node, int line, int column)
{
    if (node->kind != YAML_SCALAR && node->line == line && node->column == column)
        return node;
    for (const struct yaml *child = node->first; child; child = child->next) {
        const struct yaml *found = node_at(child, line, column);
        if (found)
            return found;
    }
    return NULL;
}

static void try_nodes(const struct tree *tree, const struct yaml *node)
{
    try_values(tree, (struct change){.node = node});
    for (const struct yaml *child = node->first; child; child = child->next)
        try_nodes(tree, child);
}

static bool is_inside(const struct yaml *outer, const struct yaml *node)
{
    bool inside = outer == node;
    for (const struct yaml *child = outer->first; child && !inside; child = child->next)
        inside = is_inside(child, node);
    return inside;
}

/* Names that were met before, by the first of them and how many: they are tried where they are met first. */
static bool are_new(void)
{
    static struct {
        const char *first;
        int count;
    } met[64];
    static int met_count;
    for (int i = 0; i < met_count; i++)
        if (met[i].count == heard.name_count && strcmp(met[i].first, heard.name[0]) == 0)
            return false;
    assert_true(met_count < COUNT(met));
    met[met_count].first = heard.name[0];
    met[met_count++].count = heard.name_count;
    return true;
}

static int column_of(const char *text, const char *part)
{
    const char *at = strstr(text, part);
    assert_non_null(at);
    return (int)(at - text) + 1;
}

/* `word: {name: {}}`: the table that is read from the inner map. */
static void try_name(const struct tree *tree, const struct change *option, const char *name)
{
    struct tree inner;
    char value[128];
    snprintf(value, sizeof value, "{%s: {zzz: 1}}", name);
    const char *text = changed(tree->root, &(struct change){option->node, option->word, value});
    int column = column_of(text, "{zzz: 1}");
    tree_init(&inner, text, tree->verb);
    tree_listen(&inner);
    inner.good = tree->good;
    inner.every = tree->every;
    const struct yaml *map = node_at(inner.root, 1, column);
    assert_non_null(map);
    try_values(&inner, (struct change){.node = map});
    for (int i = 0; i < inner.table_count; i++)
        for (int k = 0; inner.table[i].column == column && k < inner.table[i].count; k++)
            for (int v = 0; v < COUNT(bad_values); v++) {
                char both[1024];
                snprintf(both, sizeof both, "{%s: %s}", inner.table[i].word[k], bad_values[v]);
                try_value(&inner, &(struct change){.node = map, .value = both});
            }
    tree_release(&inner);
}

static void try_names(const struct tree *tree, const struct change *option)
{
    static const char *const wrong[] = {"nonsense", "{nonsense: {}}", "[nonsense]"};
    for (int i = 0; i < COUNT(wrong); i++) {
        if (!is_ours())
            continue;
        struct change change = {option->node, option->word, wrong[i]};
        heard.on = true;
        heard.name_count = 0;
        run_job(changed(tree->root, &change), tree->verb);
        heard.on = false;
        if (!heard.name_count || !are_new())
            continue;
        const char *names[COUNT(heard.name)];
        int count = heard.name_count;
        memcpy(names, heard.name, sizeof names);
        for (int k = 0; k < count; k++)
            try_name(tree, option, names[k]);
    }
}

/* Every node below `focus`, and every word of every table that was read there. */
static void try_tree(struct tree *tree, const struct yaml *focus)
{
    try_nodes(tree, focus);
    for (int i = 0; i < tree->table_count; i++) {
        const struct yaml *map = node_at(tree->root, tree->table[i].line, tree->table[i].column);
        for (int k = 0; map && is_inside(focus, map) && k < tree->table[i].count; k++) {
            const char *word = tree->table[i].word[k];
            const struct yaml *there = map->kind == YAML_MAP ? yaml_get(map, word) : NULL;
            struct change change = {there ? there : map, there ? NULL : word, NULL};
            if (!there)
                try_values(tree, change);
            if (tree->good)
                try_names(tree, &change);
        }
    }
}

static void try_job(const char *text, const struct yaml *(*focus)(const struct yaml *root), enum verb verb)
{
    struct tree first, tree;
    static char whole[sizeof text_buffer];
    tree_init(&first, text, verb);
    snprintf(whole, sizeof whole, "%s", changed(first.root, NULL)); /* in one line, as jobs are written later */
    tree_release(&first);
    tree_init(&tree, whole, verb);
    tree_listen(&tree);
    /* Where data does not fit the model, much is refused for that; where other data fitted, much was seen with it. */
    tree.every = !tree.good ? 20 : state.fitted ? 4 : 1;
    state.fitted |= tree.good;
    try_tree(&tree, focus(tree.root));
    tree_release(&tree);
}

/* ---- the jobs of option_jobs.h ---- */

static const char *with_folder(const char *text)
{
    static char out[16384];
    size_t at = 0;
    for (; *text && at < sizeof out; text++) {
        const char *place = text[1] != '/' ? NULL : *text == '@' ? state.golden : *text == '%' ? state.folder : NULL;
        at += (size_t)(place ? snprintf(out + at, sizeof out - at, "%s", place)
                             : snprintf(out + at, sizeof out - at, "%c", *text));
    }
    assert_true(at < sizeof out);
    return out;
}

#define TOP  "memory: 2GiB, threads: '1', "
#define DATA "data: {train: {random: {elements: 2, shape: %s, classes: 3}, pipeline: [batch: 2]}}, "
#define LOSS "{loss: sparse_categorical_crossentropy, optimizer: sgd, callbacks: [checkpoint: none]}"

static const struct yaml *whole(const struct yaml *root)
{
    return root;
}

static const struct yaml *of_train(const struct yaml *root)
{
    return yaml_get(root, "train");
}

static const struct yaml *of_split(const struct yaml *root)
{
    return yaml_get(yaml_get(root, "data"), "train");
}

/* The layer before the two that end the model. */
static const struct yaml *of_layer(const struct yaml *root)
{
    const struct yaml *layer = yaml_get(root, "model")->first;
    while (layer->next->next->next)
        layer = layer->next;
    return layer;
}

static bool layers_text(char *out, size_t capacity, const char *layers, const char *shape)
{
    return (size_t)snprintf(out, capacity, "{" TOP DATA "model: [%s, Flatten, Dense: 3], train: " LOSS "}", shape,
                            layers) < capacity;
}

static void layers(void **unused)
{
    char text[4096];
    (void)unused;
    for (int i = 0; i < COUNT(layer_jobs); i++, state.fitted = false)
        for (int s = 0; s < COUNT(sample_shapes); s++) {
            assert_true(layers_text(text, sizeof text, layer_jobs[i], sample_shapes[s]));
            try_job(text, of_layer, TRAIN);
        }
}

/* x of a word's example: its type and shape in the words of a model. */
static void op_words_of_models(void **unused)
{
    char layer[512], shape[32], text[4096];
    (void)unused;
    for (int i = 0; i < op_words_count; i++, state.fitted = false) {
        const struct op_word *word = &op_words[i];
        const char *kind = word->inputs, *type = *kind == 'i'   ? "Op: {op: cast, arguments: int32, name: a}"
                                                 : *kind == 'b' ? "Op: {op: greater, arguments: 0.5, name: a}"
                                                                : "Identity: {name: a}";
        size_t at = (size_t)snprintf(shape, sizeof shape, "[");
        for (const char *digit = kind + 1; *digit && *digit != ' '; digit++)
            at += (size_t)snprintf(shape + at, sizeof shape - at, "%s%c", digit == kind + 1 ? "" : ", ", *digit);
        snprintf(shape + at, sizeof shape - at, "]");
        snprintf(layer, sizeof layer, "%s, Op: {op: %s, inputs: [a%s], arguments: %s}", type, word->name,
                 strchr(kind, ' ') ? ", a" : "", word->words ? word->words : "{}");
        assert_true(layers_text(text, sizeof text, layer, shape));
        try_job(text, of_layer, TRAIN);
    }
}

static void sources_stages_and_maps(void **unused)
{
    char text[16384];
    (void)unused;
    for (int i = 0; i < COUNT(split_jobs); i++, state.fitted = false) {
        snprintf(text, sizeof text, "{" TOP "data: {train: %s}}", with_folder(split_jobs[i]));
        try_job(text, of_split, INSPECT);
    }
}

static void words_of_training(void **unused)
{
    char text[16384];
    (void)unused;
    for (int i = 0; i < COUNT(train_jobs); i++, state.fitted = false) {
        snprintf(text, sizeof text, "{" TOP DATA "model: [Dense: 3], train: %s}", "[3]", with_folder(train_jobs[i]));
        try_job(text, of_train, PLAN);
    }
    for (int i = 0; i < COUNT(whole_jobs); i++, state.fitted = false)
        try_job(with_folder(whole_jobs[i]), whole, PLAN);
}

/* ---- nothing is forgotten ---- */

/* Names are learned from option_unknown: from every kind of name whose arguments have tables of their own. */
static void names_are_heard(void **unused)
{
    static const struct {
        const char *layer, *train, *name;
    } wrong[] = {
        {"Dense: 3", "{loss: mse, optimizer: nonsense}", "adam"},
        {"Dense: 3", "{loss: mse, optimizer: {sgd: {learning_rate: {nonsense: {}}}}}", "CosineDecay"},
        {"Dense: 3", "{loss: nonsense, optimizer: sgd}", "huber"},
        {"Dense: 3", "{loss: mse, optimizer: sgd, metrics: [nonsense]}", "AUC"},
        {"Dense: {units: 3, kernel_initializer: nonsense}", "{loss: mse, optimizer: sgd}", "glorot_uniform"},
        {"Dense: {units: 3, kernel_regularizer: nonsense}", "{loss: mse, optimizer: sgd}", "l2"},
        {"Dense: {units: 3, activation: nonsense}", "{loss: mse, optimizer: sgd}", "relu"},
    };
    (void)unused;
    for (int i = 0; i < COUNT(wrong); i++) {
        char text[1024];
        bool found = false;
        snprintf(text, sizeof text, "{" TOP DATA "model: [%s], train: %s}", "[3]", wrong[i].layer, wrong[i].train);
        heard.on = true;
        heard.name_count = 0;
        run_job(text, PLAN);
        heard.on = false;
        for (int k = 0; k < heard.name_count; k++)
            found |= same_word(heard.name[k], wrong[i].name);
        if (!found)
            fail_msg("of %s nobody heard", wrong[i].name);
    }
}

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        char before = at == text ? ' ' : at[-1], after = at[length];
        if (strchr(" [{", before) && (after == ':' || after == ']' || after == ',' || !after))
            return true;
    }
    return false;
}

static void expect_word(const char *word, const char *const *jobs, int count)
{
    for (int i = 0; i < count; i++)
        if (has_word(jobs[i], word))
            return;
    fail_msg("option_jobs.h has no job with '%s'", word);
}

static void every_word_has_a_job(void **unused)
{
    static const char *const of_data[] = {
#define SOURCE(name)       #name,
#define STAGE(name)        #name,
#define MAP_FUNCTION(name) #name,
#include "pipeline/keys/sources.def"
#include "pipeline/maps/map_functions.def"
#include "pipeline/stages/stages.def"
    };
    (void)unused;
    for (int i = 0; i < COUNT(of_data); i++)
        expect_word(of_data[i], split_jobs, COUNT(split_jobs));
    for (int i = 0; i < all_layers_count; i++)
        expect_word(all_layers[i]->name, layer_jobs, COUNT(layer_jobs));
}

/* A job that is refused as it stands would be refused for that, whatever its options are. */
static void jobs_are_good(void **unused)
{
    char text[16384];
    int good = 0, bad = 0;
    (void)unused;
    for (int i = 0; i < COUNT(layer_jobs); i++, good = 0) {
        for (int s = 0; s < COUNT(sample_shapes); s++) {
            assert_true(layers_text(text, sizeof text, layer_jobs[i], sample_shapes[s]));
            run_job(text, PLAN);
            good += state.status == PLIM_OK;
        }
        if (!good) {
            print_error("%s: no shape fits: %s\n", layer_jobs[i], state.error.message);
            bad++;
        }
    }
    for (int i = 0; i < COUNT(split_jobs); i++) {
        snprintf(text, sizeof text, "{" TOP "data: {train: %s}}", with_folder(split_jobs[i]));
        run_job(text, INSPECT);
        if (state.status != PLIM_OK) {
            print_error("%s: %s: %s\n", split_jobs[i], state.error.where, state.error.message);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}

#define LEAST_JOBS 100000 /* in all, of any share: fewer were no test of every option */

static void tell(void **unused)
{
    (void)unused;
    alarm(0);
    printf("option values: %lld jobs, %lld of them good, %lld trained; %lld bad values in all\n", (long long)state.run,
           (long long)state.passed, (long long)state.trained, (long long)state.numbered);
    assert_int_equal(state.wrong, 0);
    assert_true(state.numbered >= LEAST_JOBS);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static int clear_up(void **unused)
{
    (void)unused;
    return nftw(state.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Words may name files that are made: all of them in a folder of our own. */
static int prepare(void **unused)
{
    char kept[96];
    int64_t elements;
    plim_job *job;
    (void)unused;
    snprintf(state.folder, sizeof state.folder, "/tmp/option-values-XXXXXX");
    if (!realpath(TESTS_FOLDER "/golden", state.golden) || !mkdtemp(state.folder) || chdir(state.folder))
        return 1;
    snprintf(state.path, sizeof state.path, "%s/job.yaml", state.folder);
    snprintf(kept, sizeof kept, "%s/kept", state.folder);
    write_job("{" TOP "data: {train: {range: 3}}}");
    if (plim_job_open(&job, state.path, &(plim_job_options){.data_only = true}, &state.error) ||
        plim_job_convert(&elements, job, kept, NULL, NULL, &state.error))
        fail_msg("%s: %s", state.error.where, state.error.message);
    plim_job_close(job);
    signal(SIGALRM, end_of_patience);
    return 0;
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_told_from_others),
        cmocka_unit_test(names_are_heard),
        cmocka_unit_test(every_word_has_a_job),
        cmocka_unit_test(jobs_are_good),
        cmocka_unit_test(layers),
        cmocka_unit_test(op_words_of_models),
        cmocka_unit_test(sources_stages_and_maps),
        cmocka_unit_test(words_of_training),
        cmocka_unit_test(tell),
    };
    state.share = count > 1 ? atoll(arguments[1]) : 1;
    state.rest = count > 2 ? atoll(arguments[2]) : 0;
    if (count > 3)
        cmocka_set_test_filter(arguments[3]);
    return state.share < 1 ? 1 : cmocka_run_group_tests(tests, prepare, clear_up);
}
