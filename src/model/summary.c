/* summary.c - Keras 3's table of a model, with the bytes of each layer's output. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/numbers.h"
#include "base/text/json.h"
#include "model/model_scope.h"

enum { LAYER_COLUMN, SHAPE_COLUMN, PARAM_COLUMN, CONNECTED_COLUMN, BYTES_COLUMN, COLUMNS };

struct table {
    const struct build *build;
    int width[COLUMNS]; /* of the text, without the blanks beside it; 0: this column is not shown */
};

struct row {
    char cell[COLUMNS][160];
};

static const struct row titles = {{"Layer (type)", "Output Shape", "Param #", "Connected to", "Bytes"}};
static const int least_width[COLUMNS] = {25, 16, 9, 17, 9};
static const int shrunk_width[COLUMNS] = {20, 12, 0, 17, 0}; /* as narrow as a cell is made; 0: never */

/* Keras's words for sizes: "1.61 MB" counts in 1024s. */
static void keras_size(char *out, size_t capacity, double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    int unit = 0;
    while (bytes >= 1024.0 && unit < 5) {
        bytes /= 1024.0;
        unit++;
    }
    number_print(out, capacity, "%.2f %s", bytes, units[unit]);
}

/* ---- rows: the entries of the model's own list that define something ---- */

static bool is_shown(const struct model *model, const struct entry *entry)
{
    bool defines = entry == &model->scope->entry[entry->definition];
    return defines && !(model->listed && entry->layer && entry->layer->type->hidden);
}

/* The layer whose output is the entry's. */
static const struct layer *maker_of(const struct entry *entry)
{
    while (entry->inside)
        entry = &entry->inside->entry[entry->inside->output[0].from];
    return entry->layer;
}

static int64_t parameters_of(const struct build *build, const struct entry *entry)
{
    int64_t sum = 0;
    if (entry->layer)
        return figures_of(build, entry->layer)->parameters;
    for (int i = 0; i < entry->inside->layer_count; i++)
        sum += figures_of(build, &build->model->layer[entry->inside->first_layer + i])->parameters;
    return sum;
}

/* "(None, 5)", or of several outputs "[(None, 7, 5), (None, 5)]". */
static void shapes_text(char *out, size_t capacity, const struct build *build, const struct layer *layer)
{
    const struct layer_figures *figures = figures_of(build, layer);
    char shape[96];
    shape_text(shape, sizeof shape, &figures->output, true);
    snprintf(out, capacity, "%s%s", layer->outputs ? "[" : "", shape);
    for (int k = 1; k < layer->outputs; k++) {
        size_t length = strlen(out);
        shape_text(shape, sizeof shape, &figures->further[k - 1], true);
        snprintf(out + length, capacity - length, ", %s%s", shape, k + 1 == layer->outputs ? "]" : "");
    }
}

static void fill_row(struct row *row, const struct build *build, const struct entry *entry)
{
    const struct layer *maker = maker_of(entry);
    char count[32];
    memset(row, 0, sizeof *row);
    snprintf(row->cell[LAYER_COLUMN], sizeof row->cell[0], "%.100s (%s)", entry->name,
             !entry->layer                ? entry->inside->type_name
             : entry->layer->type->hidden ? entry->layer->type->alias
                                          : entry->layer->type->name);
    shapes_text(row->cell[SHAPE_COLUMN], sizeof row->cell[0], build, maker);
    text_count(count, parameters_of(build, entry));
    snprintf(row->cell[PARAM_COLUMN], sizeof row->cell[0], "%s", count);
    keras_size(row->cell[BYTES_COLUMN], sizeof row->cell[0], (double)figures_of(build, maker)->output_bytes);
}

/* Connection number k of what the entry defines, over all its uses: "dense[0][0]". False: there are not so many. */
static bool connection(char out[160], const struct model *model, const struct entry *definition, int k)
{
    const struct scope *scope = model->scope;
    int last = definition->again ? scope->count : definition->definition + 1;
    for (int i = definition->definition; i < last; i++) {
        const struct entry *use = &scope->entry[i];
        if (use->definition != definition->definition)
            continue;
        if (k >= use->input_count) {
            k -= use->input_count;
            continue;
        }
        if (use->input[k].from < 0) {
            snprintf(out, 160, "-");
            return true;
        }
        const struct entry *from = &scope->entry[use->input[k].from];
        snprintf(out, 160, "%.100s[%d][%d]", scope->entry[from->definition].name, from->node, use->input[k].part);
        return true;
    }
    return false;
}

/* Names give way first, then shapes: what does not fit ends in an ellipsis, as in Keras. */
static void shrink(struct table *table, int columns)
{
    int total = 1;
    for (int c = 0; c < COLUMNS; c++)
        total += table->width[c] ? table->width[c] + 3 : 0;
    for (int c = 0; c < COLUMNS; c++)
        while (shrunk_width[c] && total > columns && table->width[c] > shrunk_width[c]) {
            table->width[c]--;
            total--;
        }
}

static void widen(struct table *table, const struct row *row)
{
    for (int c = 0; c < COLUMNS; c++)
        if (table->width[c] && text_columns(row->cell[c]) > table->width[c])
            table->width[c] = text_columns(row->cell[c]);
}

static void measure(struct table *table, const struct build *build, int columns)
{
    const struct model *model = build->model;
    struct row row;
    table->build = build;
    memcpy(table->width, least_width, sizeof table->width);
    if (model->listed)
        table->width[CONNECTED_COLUMN] = 0;
    for (int i = 0; i < model->scope->count; i++) {
        const struct entry *entry = &model->scope->entry[i];
        if (!is_shown(model, entry))
            continue;
        fill_row(&row, build, entry);
        widen(table, &row);
        for (int k = 0; !model->listed && connection(row.cell[CONNECTED_COLUMN], model, entry, k); k++)
            widen(table, &row);
    }
    shrink(table, columns);
}

static void add_line(struct text *out, const struct table *table, const char *left, const char *dash, const char *cross,
                     const char *right)
{
    for (int c = 0; c < COLUMNS; c++) {
        if (!table->width[c])
            continue;
        text_add(out, "%s", c ? cross : left);
        for (int i = 0; i < table->width[c] + 2; i++)
            text_add(out, "%s", dash);
    }
    text_add(out, "%s\n", right);
}

static void add_blanks(struct text *out, int count)
{
    for (int i = 0; i < count; i++)
        text_add_bytes(out, " ", 1);
}

/* Names and shapes to the left, numbers to the right. */
static void add_row(struct text *out, const struct table *table, const struct row *row, const char *bar)
{
    for (int c = 0; c < COLUMNS; c++) {
        int width = table->width[c], length = text_columns(row->cell[c]), rest = length < width ? width - length : 0;
        bool number = c == PARAM_COLUMN || c == BYTES_COLUMN;
        if (!width)
            continue;
        text_add(out, "%s ", bar);
        add_blanks(out, number ? rest : 0);
        text_add_cut(out, row->cell[c], width);
        add_blanks(out, number ? 1 : rest + 1);
    }
    text_add(out, "%s\n", bar);
}

/* A line for each connection behind the first. */
static void add_entry(struct text *out, const struct table *table, const struct entry *entry)
{
    const struct model *model = table->build->model;
    struct row row;
    char next[160];
    fill_row(&row, table->build, entry);
    bool more = table->width[CONNECTED_COLUMN] && connection(row.cell[CONNECTED_COLUMN], model, entry, 0);
    for (int k = 1;; k++) {
        more = more && connection(next, model, entry, k);
        if (more) {
            size_t length = strlen(row.cell[CONNECTED_COLUMN]);
            snprintf(row.cell[CONNECTED_COLUMN] + length, 160 - length, ",");
        }
        add_row(out, table, &row, "│");
        if (!more)
            return;
        memset(&row, 0, sizeof row);
        memcpy(row.cell[CONNECTED_COLUMN], next, sizeof next);
    }
}

static void add_total(struct text *out, const char *what, int64_t parameters)
{
    char count[32], size[32];
    text_count(count, parameters);
    keras_size(size, sizeof size, (double)parameters * 4.0);
    text_add(out, " %s: %s (%s)\n", what, count, size);
}

static void totals(int64_t *all, int64_t *trainable, uint64_t *bytes, const struct build *build)
{
    *all = *trainable = 0;
    *bytes = 0;
    for (int i = 0; i < build->model->layer_count; i++) {
        const struct layer *layer = &build->model->layer[i];
        const struct layer_figures *figures = figures_of(build, layer);
        *all += figures->parameters;
        *trainable += figures->trainable_parameters;
        if (!layer->type->hidden) /* an Input's output is the batch */
            *bytes += figures->output_bytes;
    }
}

static int64_t batch_of(const struct build *build)
{
    const struct shape *shape = &figures_of(build, build->model->use[build->model->output[0].from].layer)->output;
    return shape->rank ? shape->dim[0] : 0;
}

plim_status model_summary(struct text *out, const struct build *build, int columns)
{
    const struct model *model = build->model;
    struct table table;
    int64_t all, trainable;
    uint64_t bytes;
    char size[32];
    bool first = true;
    measure(&table, build, columns);
    totals(&all, &trainable, &bytes, build);
    text_add(out, "Model: \"%s\"\n", model->name);
    add_line(out, &table, "┏", "━", "┳", "┓");
    add_row(out, &table, &titles, "┃");
    add_line(out, &table, "┡", "━", "╇", "┩");
    for (int i = 0; i < model->scope->count; i++) {
        if (!is_shown(model, &model->scope->entry[i]))
            continue;
        if (!first)
            add_line(out, &table, "├", "─", "┼", "┤");
        first = false;
        add_entry(out, &table, &model->scope->entry[i]);
    }
    add_line(out, &table, "└", "─", "┴", "┘");
    add_total(out, "Total params", all);
    add_total(out, "Trainable params", trainable);
    add_total(out, "Non-trainable params", all - trainable);
    keras_size(size, sizeof size, (double)bytes);
    text_add(out, " Activations at batch %lld: %s\n", (long long)batch_of(build), size);
    return out->failed ? PLIM_NO_MEMORY : PLIM_OK;
}

static void layer_json(struct json_writer *json, const struct build *build, const struct layer *layer)
{
    const struct layer_figures *figures = figures_of(build, layer);
    const struct use *use = &layer->model->use[layer->first_use];
    json_object(json, NULL);
    json_string(json, "name", layer->name);
    json_string(json, "type", layer->type->name);
    json_array(json, "output_shape"); /* without the batch */
    for (int i = 1; i < figures->output.rank; i++)
        json_int(json, NULL, figures->output.dim[i]);
    json_end_array(json);
    json_int(json, "parameters", figures->parameters);
    json_int(json, "trainable_parameters", figures->trainable_parameters);
    json_uint(json, "activation_bytes", figures->output_bytes);
    json_array(json, "inputs");
    for (int i = 0; i < use->input_count; i++)
        if (use->input[i].from >= 0)
            json_string(json, NULL, layer->model->use[use->input[i].from].layer->name);
    json_end_array(json);
    json_end_object(json);
}

void model_summary_json(struct text *out, const struct build *build)
{
    const struct model *model = build->model;
    struct json_writer json;
    int64_t all, trainable;
    uint64_t bytes;
    totals(&all, &trainable, &bytes, build);
    json_init(&json, out);
    json_object(&json, NULL);
    json_string(&json, "event", "summary");
    json_string(&json, "name", model->name);
    json_int(&json, "batch", batch_of(build));
    json_array(&json, "layers");
    for (int i = 0; i < model->layer_count; i++)
        if (!model->layer[i].type->hidden)
            layer_json(&json, build, &model->layer[i]);
    json_end_array(&json);
    json_int(&json, "parameters", all);
    json_int(&json, "trainable_parameters", trainable);
    json_uint(&json, "activation_bytes", bytes);
    json_end_object(&json);
}
