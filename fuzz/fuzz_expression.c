/* fuzz_expression.c - any text as an expression: parsed, checked against columns of every kind, run over rows. */
#include <string.h>

#include "fuzz_file.h"
#include "pipeline/expression/expression.h"

#define ROWS      300
#define MOST_CELL 4096 /* bytes of a row of the result */

static void run_it(const struct expression *expression, enum type type, const struct shape *shape)
{
    static int64_t age[ROWS];
    static float x[ROWS][5], m[ROWS][2][3];
    static uint8_t flagged[ROWS], pixel[ROWS][3];
    static uint16_t half[ROWS];
    static struct string name[ROWS];
    static struct cell tags[ROWS];
    static uint8_t out[ROWS * MOST_CELL];
    void *from[] = {age, x, m, flagged, pixel, half, name, tags};
    const uint64_t stride[] = {8, 20, 24, 1, 3, 2, 16, sizeof tags[0]};
    uint64_t bytes;
    for (int i = 0; i < ROWS; i++) {
        age[i] = i % 2 ? INT64_MIN + i : i;
        x[i][i % 5] = (float)i;
        flagged[i] = (uint8_t)i;
        half[i] = (uint16_t)(i * 217);
        name[i] = (struct string){(const uint8_t *)"bob", (uint64_t)(i % 4)};
    }
    if (!shape_bytes(&bytes, shape, type) || bytes > MOST_CELL)
        return;
    expression_run(expression, ROWS, from, stride, out, bytes);
    expression_run(expression, 1, from, stride, out, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct spec spec = {.column_count = 8,
                                     .column = {{"age", TYPE_I64, {0}, 8, 0},
                                                {"x", TYPE_F32, {1, {5}}, 20, 0},
                                                {"m", TYPE_F32, {2, {2, 3}}, 24, 0},
                                                {"flagged", TYPE_BOOL, {0}, 1, 0},
                                                {"pixel", TYPE_U8, {1, {3}}, 3, 0},
                                                {"half", TYPE_F16, {0}, 2, 0},
                                                {"name", TYPE_STRING, {0}, 16, 0},
                                                {"tags", TYPE_STRING, {1, {-1}}, sizeof(struct cell), 0}}};
    char text[EXPRESSION_MOST_BYTES + 2];
    struct budget *budget;
    struct arena arena;
    struct expression *expression;
    struct shape shape;
    enum type type;
    size_t length = bytes < sizeof text ? bytes : sizeof text - 1;
    memcpy(text, data, length);
    text[length] = '\0';
    if (budget_make(&budget, FUZZ_LIMIT_BYTES, NULL) != PLIM_OK)
        return 0;
    arena_init(&arena, budget, TAG_PIPELINE);
    plim_status status = expression_parse(&expression, &arena, text, "fuzz", NULL);
    if (status == PLIM_OK)
        status = expression_check(&type, &shape, expression, &spec, NULL);
    if (status == PLIM_OK)
        run_it(expression, type, &shape);
    arena_release(&arena);
    fuzz_budget_free(budget, bytes, status);
    return 0;
}
