/* example.c - serialized examples into rows of columns.

   A record is walked once: where each declared feature lies is noted, so that the last of two counts. Then the
   features are decoded one by one. Keys are guessed: at each place of a record stands most likely the key that
   stood there in the record before, and one comparison says so. */
#include "formats/records/example.h"

#include <stdio.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/records/example_wire.h"

struct declared {
    struct feature feature; /* name and fallback are the parser's own */
    size_t name_bytes;
    uint64_t values; /* of the shape */
    uint64_t size;   /* bytes of a value */
};

struct example_parser {
    struct budget *budget;
    size_t bytes; /* of this block: the struct, the features, names and defaults */
    bool sequence;
    int count;
    struct declared declared[];
};

/* The key that stood at a place of the record before. */
struct guess {
    struct wire key;
    bool in_list;
    int feature; /* -1: nobody declared it */
};

struct record_walk {
    const struct example_parser *parser;
    struct guess guess[MOST_FEATURES];
    int place;
    struct wire found[MOST_FEATURES]; /* Feature, or FeatureList */
};

/* ---- making --------------------------------------------------------------- */

struct shape feature_shape(const struct feature *feature)
{
    if (feature->kind == FEATURE_FIXED)
        return feature->shape;
    struct shape shape = {.rank = 1, .dim = {-1}};
    if (feature->kind == FEATURE_VARIABLE && feature->in_list)
        shape.dim[shape.rank++] = -1;
    for (int i = 0; feature->kind == FEATURE_SEQUENCE && i < feature->shape.rank; i++)
        shape.dim[shape.rank++] = feature->shape.dim[i];
    return shape;
}

static plim_status check_feature(const struct feature *feature, bool sequence, plim_error *error)
{
    const char *name = feature->name;
    uint64_t bytes;
    char shape[64];
    if (feature->type != TYPE_F32 && feature->type != TYPE_I64 && feature->type != TYPE_STRING)
        return fail(error, PLIM_BAD_JOB, "feature '%s': examples hold float32, int64 and string only", name);
    shape_text(shape, sizeof shape, &feature->shape, false);
    if (!shape_bytes(&bytes, &feature->shape, TYPE_I64) || bytes > INT64_MAX / 4)
        return fail(error, PLIM_BAD_JOB, "feature '%s': the shape %s is not fully known", name, shape);
    if (feature->kind == FEATURE_VARIABLE && feature->shape.rank)
        return fail(error, PLIM_BAD_JOB, "feature '%s': values of a variable number have no shape", name);
    if (feature->kind == FEATURE_SEQUENCE && (bytes == 0 || feature->shape.rank == MOST_AXES))
        return fail(error, PLIM_BAD_JOB, "feature '%s': no steps have the shape %s", name, shape);
    if (feature->in_list && (!sequence || feature->kind == FEATURE_FIXED))
        return fail(error, PLIM_BAD_JOB, "feature '%s': %s", name,
                    sequence ? "a list of features has no fixed length: it is variable or a sequence"
                             : "only sequence examples have lists of features");
    return PLIM_OK;
}

static uint64_t value_size(enum type type)
{
    return type == TYPE_F32 ? 4 : type == TYPE_I64 ? 8 : sizeof(struct string);
}

/* What a feature takes behind the struct, its default and its strings included. */
static uint64_t extra_bytes(const struct feature *feature)
{
    uint64_t values = (uint64_t)shape_count(&feature->shape), bytes = strlen(feature->name) + 1;
    if (feature->fallback)
        bytes = add_most(bytes, values * value_size(feature->type));
    const struct string *strings = feature->fallback;
    for (uint64_t i = 0; feature->fallback && feature->type == TYPE_STRING && i < values; i++)
        bytes = add_most(bytes, strings[i].bytes);
    return round_up(bytes, 16);
}

static void declare(struct declared *declared, const struct feature *feature, uint8_t *extra)
{
    *declared = (struct declared){.feature = *feature,
                                  .name_bytes = strlen(feature->name),
                                  .values = (uint64_t)shape_count(&feature->shape),
                                  .size = value_size(feature->type)};
    uint64_t bytes = declared->values * declared->size;
    if (feature->fallback) {
        memcpy(extra, feature->fallback, bytes);
        declared->feature.fallback = extra;
        extra += bytes;
    }
    struct string *strings = (struct string *)declared->feature.fallback;
    for (uint64_t i = 0; feature->fallback && feature->type == TYPE_STRING && i < declared->values; i++) {
        if (strings[i].bytes)
            memcpy(extra, strings[i].data, strings[i].bytes);
        strings[i].data = extra;
        extra += strings[i].bytes;
    }
    memcpy(extra, feature->name, declared->name_bytes + 1);
    declared->feature.name = (const char *)extra;
}

static plim_status check_all(uint64_t *bytes, const struct feature *features, int count, bool sequence,
                             plim_error *error)
{
    if (count < 1 || count > MOST_FEATURES)
        return fail(error, PLIM_BAD_JOB, "%d features: 1 to %d are possible", count, MOST_FEATURES);
    *bytes = round_up(sizeof(struct example_parser) + (size_t)count * sizeof(struct declared), 16);
    for (int i = 0; i < count; i++) {
        TRY(check_feature(&features[i], sequence, error));
        for (int j = 0; j < i; j++)
            if (strcmp(features[i].name, features[j].name) == 0 && features[i].in_list == features[j].in_list)
                return fail(error, PLIM_BAD_JOB, "feature '%s' is declared twice", features[i].name);
        *bytes = add_most(*bytes, extra_bytes(&features[i]));
    }
    return PLIM_OK;
}

plim_status example_parser_make(struct example_parser **out, struct budget *budget, const struct feature *features,
                                int count, bool sequence, plim_error *error)
{
    uint64_t bytes = 0;
    TRY(check_all(&bytes, features, count, sequence, error));
    struct example_parser *parser;
    TRY(budget_alloc(&parser, budget, TAG_FORMATS, bytes, error));
    parser->budget = budget;
    parser->bytes = bytes;
    parser->sequence = sequence;
    parser->count = count;
    uint8_t *extra = (uint8_t *)parser + round_up(sizeof *parser + (size_t)count * sizeof(struct declared), 16);
    for (int i = 0; i < count; i++) {
        declare(&parser->declared[i], &features[i], extra);
        extra += extra_bytes(&features[i]);
    }
    *out = parser;
    return PLIM_OK;
}

void example_parser_free(struct example_parser *parser)
{
    if (parser)
        budget_give(parser->budget, TAG_FORMATS, parser, parser->bytes);
}

/* ---- the walk over a record ------------------------------------------------- */

static bool same_key(const struct wire *key, const void *name, size_t bytes)
{
    return wire_left(key) == bytes && memcmp(key->p, name, bytes) == 0;
}

static int search(const struct example_parser *parser, const struct wire *key, bool in_list)
{
    for (int i = 0; i < parser->count; i++) {
        const struct declared *declared = &parser->declared[i];
        if (declared->feature.in_list == in_list && same_key(key, declared->feature.name, declared->name_bytes))
            return i;
    }
    return -1;
}

static void note(struct record_walk *walk, const struct wire *key, const struct wire *value, bool in_list)
{
    int place_of = walk->place++, feature;
    struct guess *guess = place_of < MOST_FEATURES ? &walk->guess[place_of] : NULL;
    if (guess && guess->key.p && guess->in_list == in_list &&
        same_key(key, guess->key.p, (size_t)wire_left(&guess->key)))
        feature = guess->feature;
    else
        feature = search(walk->parser, key, in_list);
    if (guess)
        *guess = (struct guess){.key = *key, .in_list = in_list, .feature = feature};
    if (feature >= 0)
        walk->found[feature] = *value;
}

/* An entry of a map: key and value, in any order; what is absent is empty. */
static bool walk_entry(struct record_walk *walk, struct wire entry, bool in_list)
{
    static const uint8_t nothing[1];
    struct wire key = {nothing, nothing}, value = {nothing, nothing};
    while (entry.p < entry.end) {
        uint64_t tag;
        if (!wire_varint(&tag, &entry))
            return false;
        bool known = tag == TAG_OF(1, WIRE_PIECE) || tag == TAG_OF(2, WIRE_PIECE);
        if (!(known ? wire_piece(tag == TAG_OF(1, WIRE_PIECE) ? &key : &value, &entry) : wire_skip(&entry, tag)))
            return false;
    }
    note(walk, &key, &value, in_list);
    return true;
}

/* Features, or FeatureLists: entries of field 1. */
static bool walk_map(struct record_walk *walk, struct wire map, bool in_list)
{
    while (map.p < map.end) {
        uint64_t tag;
        struct wire entry;
        if (!wire_varint(&tag, &map))
            return false;
        if (tag == TAG_OF(1, WIRE_PIECE) ? !wire_piece(&entry, &map) || !walk_entry(walk, entry, in_list)
                                         : !wire_skip(&map, tag))
            return false;
    }
    return true;
}

static bool walk_record(struct record_walk *walk, struct wire record)
{
    walk->place = 0;
    memset(walk->found, 0, (size_t)walk->parser->count * sizeof walk->found[0]);
    while (record.p < record.end) {
        uint64_t tag;
        struct wire map;
        if (!wire_varint(&tag, &record))
            return false;
        bool lists = walk->parser->sequence && tag == TAG_OF(2, WIRE_PIECE);
        if (tag == TAG_OF(1, WIRE_PIECE) || lists ? !wire_piece(&map, &record) || !walk_map(walk, map, lists)
                                                  : !wire_skip(&record, tag))
            return false;
    }
    return true;
}

/* ---- errors ------------------------------------------------------------------ */

static plim_status missing_feature(const struct declared *declared, plim_error *error)
{
    return fail(error, PLIM_BAD_DATA, "feature%s '%s' (%s) is required but could not be found",
                declared->feature.in_list ? " list" : "", declared->feature.name, type_name(declared->feature.type));
}

static plim_status wrong_type(const struct declared *declared, enum type found, plim_error *error)
{
    return fail(error, PLIM_BAD_DATA, "feature '%s': data types don't match: the record has %s, declared is %s",
                declared->feature.name, type_name(found), type_name(declared->feature.type));
}

static plim_status wrong_count(const struct declared *declared, uint64_t count, plim_error *error)
{
    char shape[64];
    shape_text(shape, sizeof shape, &declared->feature.shape, false);
    return fail(error, PLIM_BAD_DATA,
                "feature '%s': number of %s values != expected: the record has %llu, "
                "the declared shape is %s%s",
                declared->feature.name, type_name(declared->feature.type), (unsigned long long)count,
                declared->feature.kind == FEATURE_SEQUENCE ? "(steps) of " : "", shape);
}

static plim_status not_a_feature(const struct declared *declared, plim_error *error)
{
    return fail(error, PLIM_BAD_DATA, "feature '%s': its bytes are no serialized tf.train.Feature",
                declared->feature.name);
}

/* ---- features of an Example, or of a context ------------------------------------ */

/* The list of a feature; bytes.p == NULL: it is missing. */
static plim_status find_values(struct wire_list *list, uint64_t *count, const struct declared *declared,
                               const struct wire *found, plim_error *error)
{
    list->bytes = (struct wire){0};
    *count = 0;
    if (!found->p)
        return PLIM_OK;
    if (!wire_list_find(list, *found))
        return not_a_feature(declared, error);
    if (!list->bytes.p)
        return PLIM_OK;
    if (list->type != declared->feature.type)
        return wrong_type(declared, list->type, error);
    return wire_list_count(count, list) ? PLIM_OK : not_a_feature(declared, error);
}

/* The way of nearly all features of fixed length; false: put_fixed looks closer. */
static inline bool put_packed(void *to, const struct declared *declared, const struct wire *found)
{
    enum type type;
    struct wire values;
    uint64_t integer;
    if (!found->p || !wire_list_is_one_piece(&type, &values, *found) || type != declared->feature.type)
        return false;
    if (type == TYPE_F32 && wire_left(&values) == 4 * declared->values) {
        memcpy(to, values.p, 4 * declared->values);
        return true;
    }
    if (type != TYPE_I64 || declared->values != 1 || !wire_varint(&integer, &values) || values.p != values.end)
        return false;
    memcpy(to, &integer, sizeof integer);
    return true;
}

static plim_status put_fixed(void *to, const struct declared *declared, const struct wire *found, plim_error *error)
{
    struct wire_list list;
    uint64_t count;
    TRY(find_values(&list, &count, declared, found, error));
    if (!list.bytes.p) {
        if (!declared->feature.fallback)
            return missing_feature(declared, error);
        memcpy(to, declared->feature.fallback, declared->values * declared->size);
        return PLIM_OK;
    }
    if (count != declared->values)
        return wrong_count(declared, count, error);
    return wire_list_values(to, &list) ? PLIM_OK : not_a_feature(declared, error);
}

/* count * size fits: each value took a byte of the record at least. cell->data == NULL: the value buffer is full. */
static plim_status put_variable(struct cell *cell, const struct declared *declared, const struct wire *found,
                                struct value_buffer *values, plim_error *error)
{
    struct wire_list list;
    uint64_t count;
    TRY(find_values(&list, &count, declared, found, error));
    bool steps = declared->feature.kind == FEATURE_SEQUENCE;
    if (!list.bytes.p && steps && !declared->feature.may_miss)
        return missing_feature(declared, error);
    if (steps && count % declared->values != 0)
        return wrong_count(declared, count, error);
    *cell = (struct cell){.data = value_buffer_take(values, count * declared->size)};
    cell->dim[0] = (int64_t)(count / declared->values);
    for (int i = 0; i < declared->feature.shape.rank; i++)
        cell->dim[i + 1] = declared->feature.shape.dim[i];
    if (cell->data && list.bytes.p && !wire_list_values(cell->data, &list))
        return not_a_feature(declared, error);
    return PLIM_OK;
}

/* ---- lists of features ------------------------------------------------------------ */

/* The next Feature of a FeatureList; *out has p == NULL at the end. */
static bool next_step(struct wire *out, struct wire *steps)
{
    *out = (struct wire){0};
    while (steps->p < steps->end && !out->p) {
        uint64_t tag;
        if (!wire_varint(&tag, steps) ||
            !(tag == TAG_OF(1, WIRE_PIECE) ? wire_piece(out, steps) : wire_skip(steps, tag)))
            return false;
    }
    return true;
}

/* The values of the next step; *more false at the end. */
static plim_status next_values(bool *more, struct wire_list *list, uint64_t *count, const struct declared *declared,
                               struct wire *rest, plim_error *error)
{
    struct wire step;
    if (!next_step(&step, rest))
        return not_a_feature(declared, error);
    *more = step.p != NULL;
    return *more ? find_values(list, count, declared, &step, error) : PLIM_OK;
}

/* How many steps, and how many values the longest of them has. */
static plim_status measure_steps(uint64_t *steps, uint64_t *longest, const struct declared *declared, struct wire rest,
                                 plim_error *error)
{
    struct wire_list list;
    uint64_t count;
    bool more;
    *steps = *longest = 0;
    for (;; ++*steps) {
        TRY(next_values(&more, &list, &count, declared, &rest, error));
        if (!more)
            return PLIM_OK;
        if (declared->feature.kind == FEATURE_SEQUENCE && count != declared->values)
            return wrong_count(declared, count, error);
        *longest = count > *longest ? count : *longest;
    }
}

/* With 0 or "", which lies somewhere as every string does. */
static void fill_up(uint8_t *to, uint64_t count, const struct declared *declared)
{
    static const uint8_t nothing[1];
    memset(to, 0, count * declared->size);
    for (uint64_t i = 0; declared->feature.type == TYPE_STRING && i < count; i++)
        memcpy(to + i * sizeof(struct string), &(struct string){.data = nothing}, sizeof(struct string));
}

static plim_status put_steps(uint8_t *to, uint64_t longest, const struct declared *declared, struct wire rest,
                             plim_error *error)
{
    struct wire_list list;
    uint64_t count;
    bool more;
    for (;; to += longest * declared->size) {
        TRY(next_values(&more, &list, &count, declared, &rest, error));
        if (!more)
            return PLIM_OK;
        if (list.bytes.p && !wire_list_values(to, &list))
            return not_a_feature(declared, error);
        fill_up(to + count * declared->size, longest - count, declared);
    }
}

static plim_status put_list(struct cell *cell, const struct declared *declared, const struct wire *found,
                            struct value_buffer *values, plim_error *error)
{
    uint64_t steps = 0, longest = 0, bytes;
    bool fixed = declared->feature.kind == FEATURE_SEQUENCE;
    if (!found->p && fixed && !declared->feature.may_miss)
        return missing_feature(declared, error);
    if (found->p)
        TRY(measure_steps(&steps, &longest, declared, *found, error));
    if (fixed)
        longest = declared->values;
    if (!mul_u64(&bytes, steps, longest) || !mul_u64(&bytes, bytes, declared->size))
        bytes = UINT64_MAX;
    *cell = (struct cell){.data = value_buffer_take(values, bytes), .dim = {(int64_t)steps, (int64_t)longest}};
    for (int i = 0; fixed && i < declared->feature.shape.rank; i++)
        cell->dim[i + 1] = declared->feature.shape.dim[i];
    return cell->data && steps ? put_steps(cell->data, longest, declared, *found, error) : PLIM_OK;
}

/* ---- records --------------------------------------------------------------------- */

static plim_status put_cell(bool *full, void *row, const struct declared *declared, const struct wire *found,
                            struct value_buffer *values, plim_error *error)
{
    struct cell cell;
    TRY((declared->feature.in_list ? put_list : put_variable)(&cell, declared, found, values, error));
    *full = !cell.data;
    memcpy(row, &cell, sizeof cell);
    return PLIM_OK;
}

static plim_status parse_one(bool *full, struct record_walk *walk, const struct string *record, int64_t row,
                             const struct row_target *target, plim_error *error)
{
    const struct example_parser *parser = walk->parser;
    if (!walk_record(walk, (struct wire){record->data, record->data + record->bytes}))
        return fail(error, PLIM_BAD_DATA, "could not parse example input: its %llu bytes are no serialized tf.train.%s",
                    (unsigned long long)record->bytes, parser->sequence ? "SequenceExample" : "Example");
    for (int f = 0; f < parser->count && !*full; f++) {
        const struct declared *declared = &parser->declared[f];
        uint8_t *to = (uint8_t *)target->to[f] + (uint64_t)row * target->stride[f];
        if (declared->feature.kind == FEATURE_FIXED && put_packed(to, declared, &walk->found[f]))
            continue;
        if (declared->feature.kind == FEATURE_FIXED)
            TRY(put_fixed(to, declared, &walk->found[f], error));
        else
            TRY(put_cell(full, to, declared, &walk->found[f], target->values, error));
    }
    return PLIM_OK;
}

plim_status example_parse(int64_t *done, const struct example_parser *parser, const struct string *records,
                          int64_t count, const struct row_target *target, plim_error *error)
{
    struct record_walk walk = {.parser = parser};
    struct value_buffer none = {0}, *values = target->values ? target->values : &none;
    bool full = false;
    plim_status status = PLIM_OK;
    int64_t i = 0;
    values->wanted = 0;
    for (; i < count; i++) {
        uint64_t before = values->used;
        status = parse_one(&full, &walk, &records[i], i, target, error);
        if (status != PLIM_OK || full) {
            values->used = before;
            break;
        }
    }
    *done = i;
    return status;
}
