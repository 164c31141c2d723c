/* op_word_arrange.c - op words that put the same elements elsewhere. */
#include <string.h>

#include "model/layers/layer_options.h"
#include "model/layers/shape_options.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

static struct tensor *refuse(const struct op_call *call, const char *rule)
{
    return graph_fail(call->graph, PLIM_USAGE, "%s: %s", call->word->name, rule);
}

static struct shape row_of(const struct tensor *x)
{
    return shape_of(x->shape.rank - 1, x->shape.dim + 1);
}

/* An extent of -1 is what is left. */
struct tensor *word_reshape(const struct op_call *call)
{
    struct shape row = {0};
    int64_t known = 1, all = shape_row(&call->x[0]->shape);
    int unknown = -1;
    if (!call->arguments.shape)
        return refuse(call, "'target_shape' is missing: the shape of one sample, [4, 3]");
    row.rank = word_wholes(row.dim, MOST_AXES - 1, call, "target_shape", call->arguments.shape);
    for (int i = 0; i < row.rank; i++) {
        if (row.dim[i] == -1 && unknown < 0)
            unknown = i;
        else if (row.dim[i] < 1 || row.dim[i] > all)
            return refuse(call, "target_shape: extents are above 0, and one may be -1");
        else if (__builtin_mul_overflow(known, row.dim[i], &known))
            return refuse(call, "target_shape: more elements than can be counted");
    }
    if (unknown >= 0)
        row.dim[unknown] = all % known ? 1 : all / known;
    return row.rank < 0 ? NULL : reshape(call->graph, call->x[0], row);
}

struct tensor *word_expand_dims(const struct op_call *call)
{
    struct shape row = row_of(call->x[0]);
    int axis;
    if (row.rank + 2 > MOST_AXES)
        return refuse(call, "there are as many axes as there can be");
    if (!word_axis(&axis, call, call->arguments.axis, -1, 1, 1))
        return NULL;
    memmove(&row.dim[axis], &row.dim[axis - 1], (size_t)(row.rank - axis + 1) * sizeof *row.dim);
    row.dim[axis - 1] = 1;
    row.rank++;
    return reshape(call->graph, call->x[0], row);
}

struct tensor *word_squeeze(const struct op_call *call)
{
    const struct shape from = row_of(call->x[0]);
    struct shape row = {0};
    int axis = -1;
    if (call->arguments.axis && !word_axis(&axis, call, call->arguments.axis, 0, 1, 0))
        return NULL;
    if (axis > 0 && from.dim[axis - 1] != 1)
        return refuse(call, "only an extent of 1 can be taken away");
    for (int i = 0; i < from.rank; i++)
        if (axis > 0 ? i != axis - 1 : from.dim[i] != 1)
            row.dim[row.rank++] = from.dim[i];
    return reshape(call->graph, call->x[0], row);
}

/* Without words: the axes of a sample the other way round. */
struct tensor *word_transpose(const struct op_call *call)
{
    int rank = call->x[0]->shape.rank, axes[MOST_AXES] = {0};
    int64_t read[MOST_AXES];
    for (int i = 1; i < rank; i++)
        axes[i] = rank - i;
    if (call->arguments.axes) {
        int count = word_wholes(read, MOST_AXES, call, "axes", call->arguments.axes);
        if (count >= 0 && count != rank)
            return refuse(call, "axes: each axis once, the batch's first: [0, 2, 1]");
        for (int i = 0; i < count; i++)
            axes[i] = read[i] >= -rank && read[i] < rank ? (int)(read[i] < 0 ? read[i] + rank : read[i]) : -1;
    }
    return call->graph->failed ? NULL : transpose(call->graph, call->x[0], axes);
}

struct tensor *word_concatenate(const struct op_call *call)
{
    struct tensor *x[MOST_WORD_INPUTS];
    int axis;
    if (!word_axis(&axis, call, call->arguments.axis, -1, 1, 0) || !word_alike(x, call, TYPES_WIDEST))
        return NULL;
    return concatenate(call->graph, x, call->count, axis);
}

struct tensor *word_stack(const struct op_call *call)
{
    struct tensor *x[MOST_WORD_INPUTS];
    int axis;
    if (!word_axis(&axis, call, call->arguments.axis, -1, 1, 1) || !word_alike(x, call, TYPES_WIDEST))
        return NULL;
    for (int i = 1; i < call->count; i++)
        if (!shape_equal(&call->x[i]->shape, &call->x[0]->shape))
            return refuse(call, "all inputs must have one shape");
    return stack(call->graph, x, call->count, axis);
}

/* ---- along an axis ---- */

/* As Python's x[start:stop:step]: from the end when below 0, cut to what there is. ends: start and stop, NULL where
   they are not said. */
static struct tensor *take_slice(const struct op_call *call, struct tensor *x, int axis, const int64_t *const ends[2],
                                 int64_t step)
{
    int64_t extent = x->shape.dim[axis], least = step < 0 ? -1 : 0, most = step < 0 ? extent - 1 : extent;
    int64_t start = step < 0 ? most : 0, stop = step < 0 ? least : most, *to[2] = {&start, &stop};
    for (int i = 0; i < 2; i++) {
        if (!ends[i])
            continue;
        int64_t at = *ends[i] < 0 && *ends[i] >= -extent ? *ends[i] + extent : *ends[i];
        *to[i] = at < least ? least : at > most ? most : at;
    }
    int64_t span = step < 0 ? start - stop : stop - start;
    if (span <= 0 || step == 0 || step == INT64_MIN)
        return refuse(call, "nothing would be left");
    return slice_axis(call->graph, x, axis, start, (span - 1) / (step < 0 ? -step : step) + 1, step);
}

struct tensor *word_slice(const struct op_call *call)
{
    const struct op_arguments *a = &call->arguments;
    const struct yaml *nodes[2] = {a->start, a->stop};
    int64_t at[2];
    const int64_t *ends[2] = {NULL, NULL};
    int axis;
    if (!word_axis(&axis, call, a->axis, -1, 1, 0))
        return NULL;
    for (int i = 0; i < 2; i++) {
        if (!nodes[i] || (nodes[i]->kind == YAML_SCALAR && nodes[i]->is_null))
            continue;
        if (!word_whole(&at[i], call, i ? "stop" : "start", nodes[i]))
            return NULL;
        ends[i] = &at[i];
    }
    return take_slice(call, call->x[0], axis, ends, a->whole ? a->whole : 1);
}

/* ---- x[...] ---- */

enum key_kind { KEY_BAD, KEY_NEW, KEY_REST, KEY_PLACE, KEY_SLICE };
struct key {
    enum key_kind kind;
    int64_t number[3]; /* a place; start, stop, step */
    bool said[3];
};

/* null, "...", a place, or "start:stop:step" of which any may be missing. */
static struct key read_key(const struct yaml *node)
{
    struct key key = {.kind = KEY_BAD};
    if (node->kind != YAML_SCALAR)
        return key;
    if (node->is_null)
        return (struct key){.kind = KEY_NEW};
    if (strcmp(node->text, "...") == 0)
        return (struct key){.kind = KEY_REST};
    const char *at = node->text;
    for (int i = 0; i < 3; i++) {
        char part[24] = "";
        size_t length = strcspn(at, ":");
        if (length >= sizeof part)
            return key;
        memcpy(part, at, length);
        key.said[i] = length > 0;
        if (length > 0 && !setting_whole(&key.number[i], part))
            return key;
        at += length;
        if (*at != ':') {
            key.kind = *at ? KEY_BAD : i == 0 && length ? KEY_PLACE : i == 0 ? KEY_BAD : KEY_SLICE;
            return key;
        }
        at++;
    }
    return key;
}

/* One key, which is for `axis` of what is left of x; *row gets the extents that stay. */
static struct tensor *take_key(const struct op_call *call, struct tensor *x, const struct key *key, int axis,
                               struct shape *row)
{
    int64_t extent = x->shape.dim[axis], place = key->number[0] + (key->number[0] < 0 ? extent : 0);
    bool all = key->kind == KEY_SLICE && !key->said[0] && !key->said[1] && (!key->said[2] || key->number[2] == 1);
    const int64_t *ends[2] = {key->said[0] ? &key->number[0] : NULL, key->said[1] ? &key->number[1] : NULL};
    if (axis == 0)
        return all ? x : refuse(call, "the batch stays as it is: its key is ':'");
    if (key->kind == KEY_PLACE && (place < 0 || place >= extent))
        return refuse(call, "there is no such place");
    if (key->kind == KEY_PLACE)
        return take_slice(call, x, axis, (const int64_t *const[]){&place, &(int64_t){place + 1}}, 1);
    if (!all)
        x = take_slice(call, x, axis, ends, key->said[2] ? key->number[2] : 1);
    if (x)
        row->dim[row->rank++] = x->shape.dim[axis];
    return x;
}

/* As Python's x[:, 0, ..., 1:3]; null is a new axis. */
struct tensor *word_get_item(const struct op_call *call)
{
    const struct yaml *list = call->arguments.axes;
    struct tensor *x = call->x[0];
    struct shape row = {0};
    int rank = x->shape.rank, axis = 0, named = 0;
    if (!list || list->kind != YAML_LIST || list->count > 2 * MOST_AXES)
        return refuse(call, "'key' is a list, the batch's first: [':', 0]");
    for (const struct yaml *at = list->first; at; at = at->next) {
        struct key key = read_key(at);
        if (key.kind == KEY_BAD)
            return refuse(call, "a key is a place, '1:3', '...' or null");
        named += key.kind == KEY_PLACE || key.kind == KEY_SLICE;
    }
    if (named > rank)
        return refuse(call, "more keys than axes");
    for (const struct yaml *at = list->first; at || axis < rank; at = at ? at->next : NULL) {
        struct key key = at ? read_key(at) : (struct key){.kind = KEY_REST};
        int64_t times = key.kind == KEY_REST ? rank - axis - named : 1;
        if (key.kind == KEY_NEW && (axis == 0 || row.rank >= MOST_AXES - 1))
            return refuse(call, axis ? "too many axes" : "the batch stays as it is: its key is ':'");
        if (key.kind == KEY_NEW)
            row.dim[row.rank++] = 1;
        for (; key.kind != KEY_NEW && times > 0; times--, axis++) {
            struct key whole = {.kind = KEY_SLICE};
            if (row.rank >= MOST_AXES - 1)
                return refuse(call, "too many axes");
            if (!(x = take_key(call, x, key.kind == KEY_REST ? &whole : &key, axis, &row)))
                return NULL;
            named -= key.kind != KEY_REST;
        }
    }
    return reshape(call->graph, x, row);
}

/* ---- axes ---- */

static struct tensor *exchange(const struct op_call *call, bool move)
{
    int rank = call->x[0]->shape.rank, from, to, axes[MOST_AXES];
    if (!call->arguments.start || !call->arguments.stop)
        return refuse(call, "two axes are wanted");
    if (!word_axis(&from, call, call->arguments.start, 0, 1, 0) || !word_axis(&to, call, call->arguments.stop, 0, 1, 0))
        return NULL;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    for (int i = from, step = to > from ? 1 : -1; move && i != to; i += step)
        axes[i] = i + step;
    axes[to] = from;
    if (!move)
        axes[from] = to;
    return transpose(call->graph, call->x[0], axes);
}

struct tensor *word_swap_axes(const struct op_call *call)
{
    return exchange(call, false);
}

struct tensor *word_move_axis(const struct op_call *call)
{
    return exchange(call, true);
}

struct tensor *word_flip(const struct op_call *call)
{
    int axis;
    return word_axis(&axis, call, call->arguments.axis, -1, 1, 0) ? reverse_axis(call->graph, call->x[0], axis) : NULL;
}

struct tensor *word_roll(const struct op_call *call)
{
    int axis;
    if (!word_axis(&axis, call, call->arguments.axis, -1, 1, 0))
        return NULL;
    int64_t extent = call->x[0]->shape.dim[axis];
    return roll_axis(call->graph, call->x[0], axis, (call->arguments.whole % extent + extent) % extent);
}

#define MOST_TIMES INT32_MAX

struct tensor *word_repeat(const struct op_call *call)
{
    int64_t times = call->arguments.whole;
    int axis;
    if (times < 1 || times > MOST_TIMES)
        return refuse(call, "'repeats' is how often: a whole number above 0");
    return word_axis(&axis, call, call->arguments.axis, -1, 1, 0) ? repeat_axis(call->graph, call->x[0], axis, times)
                                                                  : NULL;
}

struct tensor *word_tile(const struct op_call *call)
{
    struct tensor *x = call->x[0];
    int64_t times[MOST_AXES];
    if (!call->arguments.repeats)
        return refuse(call, "'repeats' is missing: a number for each axis, the batch's is 1");
    int count = word_wholes(times, MOST_AXES, call, "repeats", call->arguments.repeats);
    if (count >= 0 && (count != x->shape.rank || times[0] != 1))
        return refuse(call, "repeats: a number for each axis, the batch's is 1");
    for (int i = 1; i < count && x; i++) {
        if (times[i] < 1 || times[i] > MOST_TIMES)
            return refuse(call, "repeats: whole numbers above 0");
        x = times[i] == 1 ? x : tile_axis(call->graph, x, i, times[i]);
    }
    return count < 0 ? NULL : x;
}

/* ---- pad ---- */

static bool pad_rule(enum axis_rule *out, const struct op_call *call)
{
    static const char *const modes[] = {"constant", "reflect", "symmetric"};
    static const enum axis_rule rules[] = {AXIS_PAD, AXIS_REFLECT, AXIS_SYMMETRIC};
    *out = AXIS_PAD;
    for (int i = 0; i < COUNT(modes); i++)
        if (call->arguments.word && strcmp(call->arguments.word, modes[i]) == 0) {
            *out = rules[i];
            return true;
        }
    if (call->arguments.word)
        refuse(call, "mode is constant, reflect or symmetric");
    return !call->arguments.word;
}

struct tensor *word_pad(const struct op_call *call)
{
    const struct yaml *pads = call->arguments.pads;
    struct tensor *x = call->x[0];
    enum axis_rule rule;
    int axis = 0;
    if (!pads || pads->kind != YAML_LIST || pads->count != x->shape.rank)
        return refuse(call, "pad_width: a pair for each axis, the batch's is [0, 0]");
    if (!pad_rule(&rule, call))
        return NULL;
    for (const struct yaml *at = pads->first; at && x; at = at->next, axis++) {
        int64_t pair[2];
        int count = word_wholes(pair, 2, call, "pad_width", at);
        if (count == 1)
            pair[1] = pair[0];
        if (count < 1)
            return count ? NULL : refuse(call, "pad_width: a pair for each axis");
        if (pair[0] < 0 || pair[1] < 0 || pair[0] > MOST_TIMES || pair[1] > MOST_TIMES ||
            (axis == 0 && (pair[0] || pair[1])))
            return refuse(call, "pad_width: whole numbers from 0 on, the batch's are 0");
        if (pair[0] || pair[1])
            x = pad_axis(call->graph, x, axis, pair, rule, word_number(call, 0));
    }
    return x;
}

/* ---- pictures ---- */

struct tensor *word_resize(const struct op_call *call)
{
    const struct op_arguments *a = &call->arguments;
    const char *word = a->word ? a->word : "bilinear";
    int64_t size[2];
    int method;
    if (call->x[0]->shape.rank != 4)
        return refuse(call, "pictures are wanted: (batch, height, width, channels)");
    if (!a->shape || word_wholes(size, 2, call, "size", a->shape) != 2)
        return call->graph->failed ? NULL : refuse(call, "'size' is height and width: [8, 8]");
    if (size[0] < 1 || size[1] < 1 || size[0] > MOST_EXTENT || size[1] > MOST_EXTENT)
        return refuse(call, "size: whole numbers above 0");
    if (!resize_method(&method, word))
        return refuse(call, "interpolation is nearest, bilinear or bicubic");
    return (a->reverse ? resized_whole : resized)(call->graph, call->x[0], method, size[0], size[1]);
}
