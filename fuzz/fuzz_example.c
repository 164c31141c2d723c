/* fuzz_example.c - any bytes as serialized examples, all of them read; the first byte says whether they are sequences
   and where two records part. */
#include <stdlib.h>
#include <string.h>

#include "formats/records/example.h"
#include "fuzz_file.h"

static const struct feature example[] = {
    {.name = "x", .type = TYPE_F32, .shape = {.rank = 1, .dim = {3}}},
    {.name = "y", .type = TYPE_I64, .fallback = (const int64_t[]){42}},
    {.name = "name", .type = TYPE_STRING, .fallback = (const struct string[]){{0}}},
    {.name = "n", .kind = FEATURE_VARIABLE, .type = TYPE_STRING},
    {.name = "tags", .kind = FEATURE_VARIABLE, .type = TYPE_I64},
    {.name = "pairs", .kind = FEATURE_SEQUENCE, .type = TYPE_F32, .shape = {.rank = 1, .dim = {2}}, .may_miss = true},
};
static const struct feature sequence[] = {
    {.name = "id", .type = TYPE_I64, .fallback = (const int64_t[]){42}},
    {.name = "n", .kind = FEATURE_VARIABLE, .type = TYPE_STRING},
    {.name = "words", .kind = FEATURE_VARIABLE, .type = TYPE_STRING, .in_list = true},
    {.name = "ids", .kind = FEATURE_VARIABLE, .type = TYPE_I64, .in_list = true},
    {.name = "frames",
     .kind = FEATURE_SEQUENCE,
     .type = TYPE_F32,
     .shape = {.rank = 1, .dim = {2}},
     .in_list = true,
     .may_miss = true},
    {.name = "steps", .kind = FEATURE_SEQUENCE, .type = TYPE_I64, .in_list = true, .may_miss = true},
};
#define FEATURES 6
_Static_assert(sizeof example == sizeof sequence, "one number of features");

static uint64_t sum_of(const void *data, uint64_t bytes)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes; i++)
        sum += ((const uint8_t *)data)[i];
    return sum;
}

/* Touches everything that a row refers to. */
static uint64_t look(const struct feature *feature, const void *row)
{
    struct cell cell = {.data = (void *)row, .dim = {1, 1}};
    struct shape shape = feature_shape(feature);
    uint64_t count = feature->kind == FEATURE_FIXED ? (uint64_t)shape_count(&shape) : 1, sum = 0;
    if (feature->kind != FEATURE_FIXED) {
        memcpy(&cell, row, sizeof cell);
        for (int i = 0; i < shape.rank; i++)
            count *= (uint64_t)cell.dim[i];
    }
    if (feature->type != TYPE_STRING)
        return sum_of(cell.data, count * (feature->type == TYPE_F32 ? 4 : 8));
    for (uint64_t i = 0; i < count; i++) {
        const struct string *string = (const struct string *)cell.data + i;
        sum += sum_of(string->data, string->bytes);
    }
    return sum;
}

static plim_status parse(struct budget *budget, const struct feature *features, bool lists, struct string *records)
{
    static uint8_t space[1 << 16] __attribute__((aligned(VALUE_ALIGNMENT)));
    uint64_t rows[FEATURES][2][8], stride[FEATURES], sum = 0;
    void *to[FEATURES];
    struct example_parser *parser;
    struct value_buffer values;
    int64_t done;
    for (int f = 0; f < FEATURES; f++) {
        to[f] = rows[f];
        stride[f] = sizeof rows[f][0];
    }
    value_buffer_init(&values, space, sizeof space);
    TRY(example_parser_make(&parser, budget, features, FEATURES, lists, NULL));
    struct row_target target = {.to = to, .stride = stride, .values = &values};
    plim_status status = example_parse(&done, parser, records, 2, &target, NULL);
    for (int64_t i = 0; i < done; i++)
        for (int f = 0; f < FEATURES; f++)
            sum += look(&features[f], rows[f][i]);
    example_parser_free(parser);
    return status == PLIM_OK && sum == UINT64_MAX ? PLIM_INTERNAL : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    if (bytes < 1 || budget_make(&budget, FUZZ_LIMIT_BYTES, NULL) != PLIM_OK)
        return 0;
    bool lists = data[0] & 1;
    size_t first = (size_t)(data[0] >> 1) * 4;
    if (first > bytes - 1)
        first = bytes - 1;
    struct string records[2] = {{.data = data + 1, .bytes = first},
                                {.data = data + 1 + first, .bytes = bytes - 1 - first}};
    fuzz_budget_free(budget, bytes, parse(budget, lists ? sequence : example, lists, records));
    return 0;
}
