/* expression.c - runs an expression over the rows of a chunk, EXPRESSION_BLOCK values at a time.

   Parts run one after the other: a reduction's over 256 rows, then what uses its results over the same rows. In a
   part, values of all rows form one sequence; a block is a piece of it that need not end with a row. Columns that
   lie in memory as the loops want them are read where they are, and so is the result written; all else goes through
   buffers on the stack. */
#include <string.h>

#include "pipeline/expression/expression_tree.h"

#define BUFFER_BYTES (EXPRESSION_BLOCK * 8)

struct run {
    const struct expression *expression;
    void *const *from;
    const uint64_t *from_stride;
    uint8_t *to;
    uint64_t to_stride;
    /* What reductions made of the rows of a group. */
    _Alignas(64) uint8_t rows[MOST_REDUCTIONS][BUFFER_BYTES];
    _Alignas(64) uint8_t buffer[MOST_INPUTS + MOST_TEMPORARY + 1][BUFFER_BYTES];
    void *pointer[MOST_PART_OPERANDS];
};

bool expression_in_place(const struct expression *expression, int column)
{
    return column >= 0 && column < expression->column_count && expression->in_place[column];
}

bool expression_reads(const struct expression *expression, int column)
{
    for (int p = 0; p < expression->part_count; p++)
        for (int i = 0; i < expression->part[p].input_count; i++)
            if (expression->part[p].input[i].column == column)
                return true;
    return false;
}

/* Where rows of the input begin, from row `first` on, and how far they are apart. */
static const uint8_t *input_rows(uint64_t *stride, const struct run *run, const struct input *input, int64_t first)
{
    if (input->column < 0) {
        *stride = type_bytes(input->type);
        return run->rows[-1 - input->column];
    }
    *stride = run->from_stride[input->column];
    return (const uint8_t *)run->from[input->column] + (uint64_t)first * *stride + input->offset;
}

static bool in_lane(enum type type)
{
    return type == TYPE_I64 || type == TYPE_F32 || type == TYPE_F64;
}

/* Values that follow one another without a gap, whatever row they are of. */
static bool is_dense(const void *at, enum type type, uint64_t apart, uint64_t stride, int64_t count)
{
    uint64_t bytes = type_bytes(type);
    return in_lane(type) && (uintptr_t)at % bytes == 0 && (count == 1 || apart == bytes) &&
           stride == (uint64_t)count * bytes;
}

/* Bytes from the row's begin to value k, and how many values from there on are evenly apart. */
static uint64_t find_value(int64_t *even, const struct input *input, int64_t k)
{
    int last = input->rank - 1;
    uint64_t at = 0;
    *even = input->dim[last] - k % input->dim[last];
    for (int i = last; i >= 0; i--) {
        at += (uint64_t)(k % input->dim[i]) * input->stride[i];
        k /= input->dim[i];
    }
    return at;
}

/* n values from value `start` of the sequence on, into the lane. */
static void gather(uint8_t *to, const struct input *input, const uint8_t *rows, uint64_t stride, int64_t count,
                   int64_t start, int64_t n)
{
    size_t size = lane_bytes(input->lane);
    if (count == 1) {
        input->load(to, rows + (uint64_t)start * stride, stride, n);
        return;
    }
    while (n > 0) {
        int64_t even;
        uint64_t at = find_value(&even, input, start % count);
        even = even < n ? even : n;
        input->load(to, rows + (uint64_t)(start / count) * stride + at, input->stride[input->rank - 1], even);
        to += (size_t)even * size;
        start += even;
        n -= even;
    }
}

static void scatter(const struct run *run, const struct expression_part *part, uint8_t *rows, int64_t start, int64_t n)
{
    expression_store *store = expression_store_of(part->type);
    const uint8_t *from = run->pointer[part->result];
    uint64_t bytes = type_bytes(part->type);
    if (part->count == 1) {
        store(rows + (uint64_t)start * run->to_stride, run->to_stride, from, n);
        return;
    }
    while (n > 0) {
        int64_t k = start % part->count, even = part->count - k < n ? part->count - k : n;
        store(rows + (uint64_t)(start / part->count) * run->to_stride + (uint64_t)k * bytes, bytes, from, even);
        from += (size_t)even * lane_bytes(part->lane);
        start += even;
        n -= even;
    }
}

/* Buffers for whatever needs one; inputs may be replaced by the column itself, the result by its place. */
static void assign_buffers(struct run *run, const struct expression_part *part)
{
    int used = 0;
    for (int i = 0; i < part->input_count; i++)
        run->pointer[part->input[i].to] = run->buffer[used++];
    for (int i = 0; i < part->temporary_count; i++)
        run->pointer[part->temporary[i]] = run->buffer[used++];
    for (int i = 0; i < part->constant_count; i++)
        run->pointer[part->constant[i].to] = part->constant[i].block;
    if (part->own_result)
        run->pointer[part->result] = run->buffer[used];
}

/* The values of the part from `start` on, of rows from `first` on, at pointer[result]. */
static void run_block(struct run *run, const struct expression_part *part, int64_t first, int64_t start, int64_t n)
{
    for (int i = 0; i < part->input_count; i++) {
        const struct input *input = &part->input[i];
        uint64_t stride;
        const uint8_t *rows = input_rows(&stride, run, input, first);
        if (is_dense(rows, input->type, input->rank == 1 ? input->stride[0] : 0, stride, part->count))
            run->pointer[input->to] = (void *)(uintptr_t)(rows + (uint64_t)start * type_bytes(input->type));
        else
            gather(run->pointer[input->to], input, rows, stride, part->count, start, n);
    }
    for (int i = 0; i < part->step_count; i++) {
        const struct expression_step *in = &part->step[i];
        in->kernel(run->pointer[in->to], run->pointer[in->operand[0]], run->pointer[in->operand[1]],
                   run->pointer[in->operand[2]], n);
    }
}

static void put_row(uint8_t *to, const struct expression_part *part, const struct reduction *reduction, int64_t row)
{
    double real = reduction->real;
    if (part->reduce == REDUCE_MEAN)
        real /= (double)part->count;
    switch (part->type) {
    case TYPE_BOOL:
        to[row] = reduction->whole != 0;
        break;
    case TYPE_I64:
        ((int64_t *)(void *)to)[row] = (int64_t)reduction->whole;
        break;
    case TYPE_F32:
        ((float *)(void *)to)[row] = (float)real;
        break;
    default:
        ((double *)(void *)to)[row] = real;
        break;
    }
}

/* One value a row, for at most EXPRESSION_BLOCK rows. */
static void reduce_rows(struct run *run, int p, int64_t first, int64_t rows)
{
    const struct expression_part *part = &run->expression->part[p];
    size_t size = lane_bytes(part->lane);
    struct reduction reduction = {0};
    assign_buffers(run, part);
    for (int64_t row = 0; row < rows && part->count == 0; row++)
        put_row(run->rows[p], part, &reduction, row);
    for (int64_t start = 0, total = rows * part->count; start < total; start += EXPRESSION_BLOCK) {
        int64_t n = total - start < EXPRESSION_BLOCK ? total - start : EXPRESSION_BLOCK;
        run_block(run, part, first, start, n);
        const uint8_t *values = run->pointer[part->result];
        for (int64_t i = 0; i < n;) {
            int64_t row = (start + i) / part->count, left = (row + 1) * part->count - (start + i);
            int64_t take = left < n - i ? left : n - i;
            expression_reduce(&reduction, part->reduce, part->lane, values + (size_t)i * size, take);
            i += take;
            if (take == left) {
                put_row(run->rows[p], part, &reduction, row);
                reduction = (struct reduction){0};
            }
        }
    }
}

static void run_last(struct run *run, int64_t first, int64_t rows)
{
    const struct expression_part *part = &run->expression->part[run->expression->part_count - 1];
    uint8_t *to = run->to + (uint64_t)first * run->to_stride;
    uint64_t bytes = type_bytes(part->type);
    bool dense = part->own_result && is_dense(to, part->type, bytes, run->to_stride, part->count);
    assign_buffers(run, part);
    for (int64_t start = 0, total = rows * part->count; start < total; start += EXPRESSION_BLOCK) {
        int64_t n = total - start < EXPRESSION_BLOCK ? total - start : EXPRESSION_BLOCK;
        if (dense)
            run->pointer[part->result] = to + (uint64_t)start * bytes;
        run_block(run, part, first, start, n);
        if (!dense)
            scatter(run, part, to, start, n);
    }
}

void expression_run(const struct expression *expression, int64_t count, void *const *from, const uint64_t *from_stride,
                    void *to, uint64_t to_stride)
{
    struct run run;
    run.expression = expression;
    run.from = from;
    run.from_stride = from_stride;
    run.to = to;
    run.to_stride = to_stride;
    int64_t group = expression->part_count > 1 ? EXPRESSION_BLOCK : count;
    for (int64_t first = 0; first < count; first += group) {
        int64_t rows = count - first < group ? count - first : group;
        for (int p = 0; p + 1 < expression->part_count; p++)
            if (expression->part[p].used)
                reduce_rows(&run, p, first, rows);
        run_last(&run, first, rows);
    }
}
