/* op_word_einsum.c - the op word einsum, of one or two values of a batch: sums and transposes, and one stack of
   products.

   Letters besides the batch's are of four kinds: shared by both and kept (a stack of matrices), shared and summed over,
   kept of the left one alone, of the right one alone. What one alone has and the output has not is summed before. */
#include <stdio.h>
#include <string.h>

#include "model/layers/layer_options.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

struct term {
    char letters[MOST_AXES + 1];
    struct tensor *x;
};

struct equation {
    const struct op_call *call;
    struct term side[2];
    int sides;
    char out[MOST_AXES + 1];
};

static struct tensor *refuse(const struct op_call *call, const char *rule)
{
    return graph_fail(call->graph, PLIM_USAGE, "einsum: '%.60s': %s", call->arguments.word ? call->arguments.word : "",
                      rule);
}

/* Letters up to a comma, an arrow or the end; each once. */
static const char *read_letters(char *out, const char *text)
{
    size_t count = 0;
    for (; *text && *text != ',' && *text != '-'; text++) {
        if (*text == ' ')
            continue;
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        if (!letter || count == MOST_AXES || memchr(out, *text, count))
            return NULL;
        out[count++] = *text;
    }
    out[count] = 0;
    return count ? text : NULL;
}

static bool read_equation(struct equation *e)
{
    const struct op_call *call = e->call;
    const char *at = call->arguments.word ? call->arguments.word : "";
    for (e->sides = 0; e->sides < call->count; e->sides++) {
        struct term *term = &e->side[e->sides];
        term->x = call->x[e->sides];
        if (!(at = read_letters(term->letters, at)) || *at != (e->sides + 1 < call->count ? ',' : '-')) {
            refuse(call, "letters of each input, each once, and '->' before those of the output: 'bij,bkj->bik'");
            return false;
        }
        at++;
    }
    if (*at != '>' || !(at = read_letters(e->out, at + 1)) || *at) {
        refuse(call, "letters of the output are wanted behind '->', each once");
        return false;
    }
    return true;
}

static int64_t extent_of(const struct term *term, char letter)
{
    const char *at = strchr(term->letters, letter);
    return at ? term->x->shape.dim[at - term->letters] : 0;
}

static bool equation_fits(struct equation *e)
{
    for (int i = 0; i < e->sides; i++) {
        const struct term *term = &e->side[i], *other = &e->side[e->sides - 1 - i];
        if ((int)strlen(term->letters) != term->x->shape.rank || !term->x->batched || term->letters[0] != e->out[0])
            return refuse(e->call, "each input has a letter an axis, and the batch's is the first everywhere") != NULL;
        for (const char *at = term->letters; *at; at++)
            if (strchr(other->letters, *at) && extent_of(term, *at) != extent_of(other, *at))
                return refuse(e->call, "a letter has two extents") != NULL;
    }
    for (const char *at = e->out; *at; at++)
        if (!strchr(e->side[0].letters, *at) && !(e->sides == 2 && strchr(e->side[1].letters, *at)))
            return refuse(e->call, "the output has a letter that no input has") != NULL;
    return true;
}

/* Sums over what neither the output nor the other input has. */
static void sum_alone(const struct equation *e, struct term *term, const char *other)
{
    struct reduce_attributes attributes = {0};
    char kept[MOST_AXES + 1];
    int count = 0;
    for (int i = 0; term->letters[i]; i++)
        if (strchr(e->out, term->letters[i]) || strchr(other, term->letters[i]))
            kept[count++] = term->letters[i];
        else
            attributes.axes |= (int64_t)1 << i;
    kept[count] = 0;
    if (attributes.axes)
        term->x = graph_add(e->call->graph, &op_reduce_sum, &term->x, 1, &attributes, sizeof attributes);
    memcpy(term->letters, kept, sizeof kept);
}

static void in_order(const struct equation *e, struct term *term, const char *order)
{
    int axes[MOST_AXES];
    bool same = strcmp(order, term->letters) == 0;
    for (int i = 0; order[i]; i++)
        axes[i] = (int)(strchr(term->letters, order[i]) - term->letters);
    if (!same && term->x)
        term->x = transpose(e->call->graph, term->x, axes);
    for (int i = 0; i < MOST_AXES && order[i]; i++) /* the same letters, as many */
        term->letters[i] = order[i];
}

/* Letters of the first that are (or are not) in the second and in the third, behind what `out` has. */
static int64_t pick(char *out, const struct term *term, const char *other, bool in_other, const char *kept,
                    bool in_kept)
{
    size_t length = strlen(out);
    int64_t extent = 1;
    for (const char *at = term->letters + 1; *at; at++)
        if ((strchr(other, *at) != NULL) == in_other && (strchr(kept, *at) != NULL) == in_kept) {
            out[length++] = *at;
            extent *= extent_of(term, *at);
        }
    out[length] = 0;
    return extent;
}

static struct tensor *product(struct equation *e)
{
    struct graph *graph = e->call->graph;
    struct term *a = &e->side[0], *b = &e->side[1];
    char shared[MOST_AXES + 1] = "", left[MOST_AXES + 1] = "", right[MOST_AXES + 1] = "", summed[MOST_AXES + 1] = "";
    char order[4 * MOST_AXES + 2];
    int64_t stacks = pick(shared, a, b->letters, true, e->out, true),
            rows = pick(left, a, b->letters, false, e->out, true);
    int64_t steps = pick(summed, a, b->letters, true, e->out, false),
            columns = pick(right, b, a->letters, false, e->out, true);
    snprintf(order, sizeof order, "%c%s%s%s", e->out[0], shared, left, summed);
    in_order(e, a, order);
    snprintf(order, sizeof order, "%c%s%s%s", e->out[0], shared, summed, right);
    in_order(e, b, order);
    if (graph->failed)
        return NULL;
    struct term made = {.letters = {e->out[0]}};
    struct shape row = {0};
    const char *parts[] = {shared, left, right};
    for (int i = 0; i < 3; i++)
        for (const char *at = parts[i]; *at; at++) {
            row.dim[row.rank] = extent_of(strchr(a->letters, *at) ? a : b, *at);
            made.letters[++row.rank] = *at;
        }
    struct batch_matmul_attributes attributes = {0};
    struct tensor *x[2] = {reshape(graph, a->x, (struct shape){3, {stacks, rows, steps}}),
                           reshape(graph, b->x, (struct shape){3, {stacks, steps, columns}})};
    struct tensor *y = graph_add(graph, &op_batch_matmul, x, 2, &attributes, sizeof attributes);
    made.x = y ? reshape(graph, y, row) : NULL;
    in_order(e, &made, e->out);
    return made.x;
}

static struct tensor *equate(const struct op_call *call)
{
    struct equation e = {.call = call};
    if (!read_equation(&e) || !equation_fits(&e))
        return NULL;
    sum_alone(&e, &e.side[0], e.sides == 2 ? e.side[1].letters : "");
    if (e.sides == 1) {
        in_order(&e, &e.side[0], e.out);
        return e.side[0].x;
    }
    sum_alone(&e, &e.side[1], e.side[0].letters);
    if (strlen(e.out) > MOST_AXES - 1)
        return refuse(call, "too many axes");
    return call->graph->failed ? NULL : product(&e);
}

struct tensor *word_einsum(const struct op_call *call)
{
    return word_product(call, equate);
}
