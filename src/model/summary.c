/* summary.c - Keras 3's table of a model, with the bytes of each layer's output. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/numbers.h"
#include "model/model.h"

enum { LAYER_COLUMN, SHAPE_COLUMN, PARAM_COLUMN, BYTES_COLUMN, COLUMNS };

struct table {
    int width[COLUMNS]; /* of the text, without the blanks beside it */
};

struct row {
    char cell[COLUMNS][160];
};

static const struct row titles = {{"Layer (type)", "Output Shape", "Param #", "Bytes"}};
static const int least_width[COLUMNS] = {25, 16, 9, 9};
static const int shrunk_width[COLUMNS] = {20, 12, 0, 0}; /* as narrow as a cell is made; 0: never */
#define FRAME_WIDTH (3 * COLUMNS + 1)

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

static void fill_row(struct row *row, const struct layer *layer)
{
    char count[32];
    snprintf(row->cell[LAYER_COLUMN], sizeof row->cell[0], "%.100s (%s)", layer->name, layer->type->name);
    shape_text(row->cell[SHAPE_COLUMN], sizeof row->cell[0], &layer->output, true);
    text_count(count, layer->parameters);
    snprintf(row->cell[PARAM_COLUMN], sizeof row->cell[0], "%s", count);
    keras_size(row->cell[BYTES_COLUMN], sizeof row->cell[0], (double)layer->output_bytes);
}

/* Names give way first, then shapes: what does not fit ends in an ellipsis, as in Keras. */
static void shrink(struct table *table, int columns)
{
    int total = FRAME_WIDTH;
    for (int c = 0; c < COLUMNS; c++)
        total += table->width[c];
    for (int c = 0; c < COLUMNS; c++)
        while (shrunk_width[c] && total > columns && table->width[c] > shrunk_width[c]) {
            table->width[c]--;
            total--;
        }
}

static void measure(struct table *table, const struct model *model, int columns)
{
    struct row row;
    memcpy(table->width, least_width, sizeof table->width);
    for (int i = 0; i < model->layer_count; i++) {
        fill_row(&row, &model->layer[i]);
        for (int c = 0; c < COLUMNS && !model->layer[i].type->hidden; c++)
            if (text_columns(row.cell[c]) > table->width[c])
                table->width[c] = text_columns(row.cell[c]);
    }
    shrink(table, columns);
}

static void add_line(struct text *out, const struct table *table, const char *left, const char *dash, const char *cross,
                     const char *right)
{
    for (int c = 0; c < COLUMNS; c++) {
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
        int width = table->width[c], length = text_columns(row->cell[c]), free_width = length < width ? width - length : 0;
        text_add(out, "%s ", bar);
        add_blanks(out, c < PARAM_COLUMN ? 0 : free_width);
        text_add_cut(out, row->cell[c], width);
        add_blanks(out, c < PARAM_COLUMN ? free_width + 1 : 1);
    }
    text_add(out, "%s\n", bar);
}

static void add_total(struct text *out, const char *what, int64_t parameters)
{
    char count[32], size[32];
    text_count(count, parameters);
    keras_size(size, sizeof size, (double)parameters * 4.0);
    text_add(out, " %s: %s (%s)\n", what, count, size);
}

static void totals(int64_t *all, int64_t *trainable, uint64_t *bytes, const struct model *model)
{
    *all = *trainable = 0;
    *bytes = 0;
    for (int i = 0; i < model->layer_count; i++) {
        *all += model->layer[i].parameters;
        *trainable += model->layer[i].trainable_parameters;
        if (!model->layer[i].type->hidden)
            *bytes += model->layer[i].output_bytes;
    }
}

static int64_t batch_of(const struct model *model)
{
    const struct shape *shape = &model->layer[model->layer_count - 1].output;
    return shape->rank ? shape->dim[0] : 0;
}

plim_status model_summary(struct text *out, const struct model *model, int columns)
{
    struct table table;
    struct row row;
    int64_t all, trainable;
    uint64_t bytes;
    char size[32];
    bool first = true;
    measure(&table, model, columns);
    totals(&all, &trainable, &bytes, model);
    text_add(out, "Model: \"%s\"\n", model->name);
    add_line(out, &table, "┏", "━", "┳", "┓");
    add_row(out, &table, &titles, "┃");
    add_line(out, &table, "┡", "━", "╇", "┩");
    for (int i = 0; i < model->layer_count; i++) {
        if (model->layer[i].type->hidden)
            continue;
        if (!first)
            add_line(out, &table, "├", "─", "┼", "┤");
        first = false;
        fill_row(&row, &model->layer[i]);
        add_row(out, &table, &row, "│");
    }
    add_line(out, &table, "└", "─", "┴", "┘");
    add_total(out, "Total params", all);
    add_total(out, "Trainable params", trainable);
    add_total(out, "Non-trainable params", all - trainable);
    keras_size(size, sizeof size, (double)bytes);
    text_add(out, " Activations at batch %lld: %s\n", (long long)batch_of(model), size);
    return out->failed ? PLIM_NO_MEMORY : PLIM_OK;
}

static void layer_json(struct json_writer *json, const struct layer *layer)
{
    json_object(json, NULL);
    json_string(json, "name", layer->name);
    json_string(json, "type", layer->type->name);
    json_array(json, "output_shape"); /* without the batch */
    for (int i = 1; i < layer->output.rank; i++)
        json_int(json, NULL, layer->output.dim[i]);
    json_end_array(json);
    json_int(json, "parameters", layer->parameters);
    json_int(json, "trainable_parameters", layer->trainable_parameters);
    json_uint(json, "activation_bytes", layer->output_bytes);
    json_end_object(json);
}

void model_summary_json(struct text *out, const struct model *model)
{
    struct json_writer json;
    int64_t all, trainable;
    uint64_t bytes;
    totals(&all, &trainable, &bytes, model);
    json_init(&json, out);
    json_object(&json, NULL);
    json_string(&json, "event", "summary");
    json_string(&json, "name", model->name);
    json_int(&json, "batch", batch_of(model));
    json_array(&json, "layers");
    for (int i = 0; i < model->layer_count; i++)
        if (!model->layer[i].type->hidden)
            layer_json(&json, &model->layer[i]);
    json_end_array(&json);
    json_int(&json, "parameters", all);
    json_int(&json, "trainable_parameters", trainable);
    json_uint(&json, "activation_bytes", bytes);
    json_end_object(&json);
}
