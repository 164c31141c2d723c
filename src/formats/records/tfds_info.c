/* tfds_info.c - the two JSON files of a folder of TensorFlow Datasets.

   Unknown keys are passed over: others write these files, and they grow. Whole numbers may be JSON strings, as
   protocol buffers write 64-bit ones. */
#include "formats/records/tfds_info.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "base/text/json.h"
#include "formats/files/cursor.h"

#define FILE_MOST ((size_t)16 * 1024 * 1024)

struct parser {
    struct tfds_info *info;
    struct json_reader reader;
    const char *path;
};

#define bad(parser, error, ...) fail_byte(error, PLIM_BAD_DATA, (parser)->path, (parser)->reader.at, __VA_ARGS__)

static plim_status next(struct json_token *token, struct parser *parser, plim_error *error)
{
    plim_error inner = {0};
    if (json_next(token, &parser->reader, &inner) == PLIM_OK)
        return PLIM_OK;
    const char *what = strstr(inner.message, ": ");
    return bad(parser, error, "not JSON: %s", what ? what + 2 : inner.message);
}

static plim_status pass(struct parser *parser, const struct json_token *token, plim_error *error)
{
    plim_error inner = {0};
    if (token->kind != JSON_OBJECT && token->kind != JSON_ARRAY)
        return PLIM_OK;
    return json_skip(&parser->reader, token, &inner) == PLIM_OK ? PLIM_OK : bad(parser, error, "not JSON");
}

static bool key_is(const struct json_token *token, const char *key)
{
    return token->key && json_is(token->key, token->key_bytes, key);
}

/* A value of an object, by its key; `context` is whatever the caller fills. */
typedef plim_status member_function(struct parser *parser, const struct json_token *token, void *context,
                                    plim_error *error);

/* The members of the object, or the entries of the array, whose start was given. */
static plim_status each(struct parser *parser, const struct json_token *start, member_function *member, void *context,
                        plim_error *error)
{
    struct json_token token;
    enum json_kind end = start->kind == JSON_OBJECT ? JSON_OBJECT_END : JSON_ARRAY_END;
    if (start->kind != JSON_OBJECT && start->kind != JSON_ARRAY)
        return bad(parser, error, "an object or a list was expected");
    for (;;) {
        TRY(next(&token, parser, error));
        if (token.kind == end)
            return PLIM_OK;
        TRY(member(parser, &token, context, error));
    }
}

static plim_status get_text(char *out, size_t capacity, struct parser *parser, const struct json_token *token,
                            plim_error *error)
{
    if (token->kind != JSON_STRING || !json_unescape(out, capacity, token->text, token->text_bytes))
        return bad(parser, error, "a text of at most %zu bytes was expected", capacity - 1);
    return PLIM_OK;
}

static plim_status get_whole(int64_t *out, struct parser *parser, const struct json_token *token, plim_error *error)
{
    struct json_token number = *token;
    bool minus = token->kind == JSON_STRING && token->text_bytes > 1 && token->text[0] == '-';
    if (token->kind == JSON_STRING) {
        number.kind = JSON_NUMBER;
        number.text += minus;
        number.text_bytes -= minus;
        for (size_t i = 0; i < number.text_bytes; i++)
            if (number.text[i] < '0' || number.text[i] > '9')
                return bad(parser, error, "a whole number was expected");
    }
    if (number.kind != JSON_NUMBER || !number.text_bytes || !json_whole(out, &number))
        return bad(parser, error, "a whole number was expected");
    if (minus)
        *out = -*out;
    return PLIM_OK;
}

/* ---- dataset_info.json ---- */

struct lengths {
    int64_t count, sum;
    int64_t *to; /* NULL: only counted */
};

static plim_status one_length(struct parser *parser, const struct json_token *token, void *context, plim_error *error)
{
    struct lengths *lengths = context;
    int64_t length;
    TRY(get_whole(&length, parser, token, error));
    if (length < 0 || lengths->count == TFDS_MOST_SHARDS || __builtin_add_overflow(lengths->sum, length, &lengths->sum))
        return bad(parser, error, "no possible number of examples");
    if (lengths->to)
        lengths->to[lengths->count] = length;
    lengths->count++;
    return PLIM_OK;
}

/* Twice: how many, then what they are. */
static plim_status shard_lengths(struct tfds_split *split, struct parser *parser, const struct json_token *token,
                                 plim_error *error)
{
    struct arena *arena = &parser->info->arena;
    struct json_reader before = parser->reader;
    struct lengths lengths = {0};
    TRY(each(parser, token, one_length, &lengths, error));
    int64_t *to = arena_array(arena, (size_t)lengths.count + 1, sizeof *to);
    if (!to)
        return budget_refused(arena->budget, arena->tag, (uint64_t)lengths.count * sizeof *to, error);
    lengths = (struct lengths){.to = to};
    parser->reader = before;
    TRY(each(parser, token, one_length, &lengths, error));
    split->shard_length = to;
    split->shard_count = lengths.count;
    split->count = lengths.sum;
    return PLIM_OK;
}

static plim_status split_member(struct parser *parser, const struct json_token *token, void *context, plim_error *error)
{
    struct tfds_split *split = context;
    if (key_is(token, "name"))
        return get_text(split->name, sizeof split->name, parser, token, error);
    if (key_is(token, "filepathTemplate"))
        return get_text(split->file_template, sizeof split->file_template, parser, token, error);
    if (key_is(token, "shardLengths") && token->kind == JSON_ARRAY)
        return shard_lengths(split, parser, token, error);
    return pass(parser, token, error);
}

static plim_status one_split(struct parser *parser, const struct json_token *token, void *context, plim_error *error)
{
    struct tfds_info *info = parser->info;
    (void)context;
    if (info->split_count == TFDS_MOST_SPLITS)
        return bad(parser, error, "more than %d splits", TFDS_MOST_SPLITS);
    return each(parser, token, split_member, &info->split[info->split_count++], error);
}

/* {"tuple": {"items": [{"featureKey": "image"}, {"featureKey": "label"}]}}, older ones {"input": .., "output": ..} */
static plim_status supervised(struct parser *parser, const struct json_token *token, void *context, plim_error *error)
{
    struct tfds_info *info = parser->info;
    bool first = !info->input[0];
    if (key_is(token, "featureKey") && (first || !info->label[0]))
        return get_text(first ? info->input : info->label, sizeof info->input, parser, token, error);
    if (key_is(token, "input"))
        return get_text(info->input, sizeof info->input, parser, token, error);
    if (key_is(token, "output"))
        return get_text(info->label, sizeof info->label, parser, token, error);
    if (token->kind == JSON_OBJECT || token->kind == JSON_ARRAY)
        return each(parser, token, supervised, context, error);
    return PLIM_OK;
}

static plim_status info_member(struct parser *parser, const struct json_token *token, void *context, plim_error *error)
{
    struct tfds_info *info = parser->info;
    if (key_is(token, "name"))
        return get_text(info->name, sizeof info->name, parser, token, error);
    if (key_is(token, "fileFormat"))
        return get_text(info->file_format, sizeof info->file_format, parser, token, error);
    if (key_is(token, "splits") && token->kind == JSON_ARRAY)
        return each(parser, token, one_split, NULL, error);
    if (key_is(token, "supervisedKeys") && token->kind == JSON_OBJECT)
        return each(parser, token, supervised, context, error);
    return pass(parser, token, error);
}

static plim_status whole_object(struct parser *parser, member_function *member, void *context, plim_error *error)
{
    struct json_token token;
    TRY(next(&token, parser, error));
    if (token.kind != JSON_OBJECT)
        return bad(parser, error, "an object was expected");
    TRY(each(parser, &token, member, context, error));
    return next(&token, parser, error); /* nothing may follow */
}

plim_status tfds_parse_info(struct tfds_info *info, const char *text, size_t bytes, const char *path, plim_error *error)
{
    struct parser parser = {.info = info, .path = path};
    snprintf(info->file_format, sizeof info->file_format, "tfrecord");
    json_read_init(&parser.reader, text, bytes);
    TRY(whole_object(&parser, info_member, NULL, error));
    if (!info->name[0] || !info->split_count)
        return fail_at(error, PLIM_BAD_DATA, path, "names no %s", info->name[0] ? "splits" : "data set");
    return PLIM_OK;
}

/* ---- features.json ---- */

struct feature_parse {
    char prefix[64];
    struct tfds_feature feature;
    bool known;   /* its content was found */
    bool is_dict; /* its members were added already */
};

static plim_status one_dimension(struct parser *parser, const struct json_token *token, void *context,
                                 plim_error *error)
{
    struct shape *shape = context;
    int64_t extent;
    TRY(get_whole(&extent, parser, token, error));
    if (extent < -1 || shape->rank == MOST_AXES - 1)
        return bad(parser, error, "no possible shape: at most %d axes are", MOST_AXES - 1);
    shape->dim[shape->rank++] = extent; /* -1 is TFDS_ANY */
    return PLIM_OK;
}

static plim_status shape_member(struct parser *parser, const struct json_token *token, void *context, plim_error *error)
{
    if (!key_is(token, "dimensions") || token->kind != JSON_ARRAY)
        return pass(parser, token, error);
    *(struct shape *)context = (struct shape){0};
    return each(parser, token, one_dimension, context, error);
}

/* A type that we do not have makes the feature one that is not read. */
static plim_status get_type(struct tfds_feature *feature, struct parser *parser, const struct json_token *token,
                            plim_error *error)
{
    char name[32];
    TRY(get_text(name, sizeof name, parser, token, error));
    if (type_of_column(&feature->type, name))
        return PLIM_OK;
    feature->kind = TFDS_OTHER;
    snprintf(feature->what, sizeof feature->what, "%s", name);
    return PLIM_OK;
}

static plim_status tensor_member(struct parser *parser, const struct json_token *token, void *context,
                                 plim_error *error)
{
    struct tfds_feature *feature = context;
    char word[32];
    if (key_is(token, "shape") && token->kind == JSON_OBJECT)
        return each(parser, token, shape_member, &feature->shape, error);
    if (key_is(token, "dtype"))
        return get_type(feature, parser, token, error);
    if (key_is(token, "encoding")) {
        TRY(get_text(word, sizeof word, parser, token, error));
        if (strcmp(word, "bytes") == 0 && feature->kind != TFDS_OTHER)
            feature->kind = TFDS_RAW;
        else if (strcmp(word, "none") != 0 && word[0]) {
            feature->kind = TFDS_OTHER;
            snprintf(feature->what, sizeof feature->what, "encoding %s", word);
        }
        return PLIM_OK;
    }
    if (key_is(token, "numClasses"))
        return get_whole(&feature->classes, parser, token, error);
    return pass(parser, token, error);
}

/* What the content of a feature is called, and what it is when nothing else is said. */
static const struct content {
    const char *key;
    enum tfds_kind kind;
    enum type type;
    int rank;
} contents[] = {
    {"tensor", TFDS_TENSOR, TYPE_F32, 0},      {"image", TFDS_IMAGE, TYPE_U8, 3},
    {"classLabel", TFDS_TENSOR, TYPE_I64, 0},  {"text", TFDS_TENSOR, TYPE_STRING, 0},
    {"boundingBox", TFDS_TENSOR, TYPE_F32, 1},
};

static plim_status take_content(struct feature_parse *parse, const struct content *content, struct parser *parser,
                                const struct json_token *token, plim_error *error)
{
    struct tfds_feature *feature = &parse->feature;
    feature->kind = content->kind;
    feature->type = content->type;
    feature->shape = (struct shape){.rank = content->rank, .dim = {TFDS_ANY, TFDS_ANY, 3}};
    if (content->rank == 1)
        feature->shape.dim[0] = 4;
    parse->known = true;
    TRY(each(parser, token, tensor_member, feature, error));
    if (content->type == TYPE_STRING) { /* a text is one string, whatever else is said of it */
        feature->type = TYPE_STRING;
        feature->shape = (struct shape){0};
    }
    if (feature->kind == TFDS_IMAGE && (feature->shape.rank != 3 || feature->type != TYPE_U8)) {
        feature->kind = TFDS_OTHER;
        snprintf(feature->what, sizeof feature->what, "an image of %s", type_name(feature->type));
    }
    return PLIM_OK;
}

static plim_status one_feature(struct parser *parser, const struct json_token *token, void *context, plim_error *error);

static plim_status dict_member(struct parser *parser, const struct json_token *token, void *context, plim_error *error)
{
    if (key_is(token, "features") && token->kind == JSON_OBJECT)
        return each(parser, token, one_feature, context, error);
    return pass(parser, token, error);
}

static plim_status sequence_member(struct parser *parser, const struct json_token *token, void *context,
                                   plim_error *error);

static plim_status feature_member(struct parser *parser, const struct json_token *token, void *context,
                                  plim_error *error)
{
    struct feature_parse *parse = context;
    if (key_is(token, "pythonClassName") || key_is(token, "type")) {
        char name[256];
        TRY(get_text(name, sizeof name, parser, token, error));
        const char *dot = strrchr(name, '.');
        snprintf(parse->feature.what, sizeof parse->feature.what, "%.60s", dot ? dot + 1 : name);
        return PLIM_OK;
    }
    if (token->kind != JSON_OBJECT)
        return pass(parser, token, error);
    if (key_is(token, "featuresDict")) {
        parse->is_dict = true;
        return each(parser, token, dict_member, parse, error);
    }
    if (key_is(token, "sequence"))
        return each(parser, token, sequence_member, parse, error);
    for (size_t i = 0; i < COUNT(contents); i++)
        if (key_is(token, contents[i].key))
            return take_content(parse, &contents[i], parser, token, error);
    return pass(parser, token, error);
}

/* A sequence of scalars is a tensor of one axis; of more it is not read here. */
static plim_status sequence_member(struct parser *parser, const struct json_token *token, void *context,
                                   plim_error *error)
{
    struct feature_parse *parse = context;
    struct tfds_feature *feature = &parse->feature;
    if (!key_is(token, "feature") || token->kind != JSON_OBJECT)
        return pass(parser, token, error);
    struct feature_parse inner = {0};
    snprintf(inner.prefix, sizeof inner.prefix, "%s", parse->prefix);
    inner.is_dict = false;
    int before = parser->info->feature_count;
    TRY(each(parser, token, feature_member, &inner, error));
    parser->info->feature_count = before; /* those of a sequence of dicts belong to no example alone */
    if (!inner.known || inner.feature.kind != TFDS_TENSOR || inner.feature.shape.rank)
        return PLIM_OK;
    feature->kind = TFDS_TENSOR;
    feature->type = inner.feature.type;
    feature->shape = (struct shape){.rank = 1, .dim = {TFDS_ANY}};
    parse->known = true;
    return PLIM_OK;
}

static plim_status one_feature(struct parser *parser, const struct json_token *token, void *context, plim_error *error)
{
    const struct feature_parse *outer = context;
    struct tfds_info *info = parser->info;
    struct feature_parse parse = {.feature = {.kind = TFDS_OTHER}};
    size_t before = strlen(outer->prefix);
    memcpy(parse.prefix, outer->prefix, before);
    if (before && before + 1 < sizeof parse.prefix)
        parse.prefix[before++] = '/';
    if (!json_unescape(parse.prefix + before, sizeof parse.prefix - before, token->key, token->key_bytes))
        return bad(parser, error, "the name of a feature is too long");
    TRY(each(parser, token, feature_member, &parse, error));
    if (parse.is_dict)
        return PLIM_OK;
    if (info->feature_count == MOST_COLUMNS)
        return bad(parser, error, "more than %d features", MOST_COLUMNS);
    if (!parse.known)
        parse.feature.kind = TFDS_OTHER;
    memcpy(parse.feature.name, parse.prefix, sizeof parse.prefix);
    info->feature[info->feature_count++] = parse.feature;
    return PLIM_OK;
}

plim_status tfds_parse_features(struct tfds_info *info, const char *text, size_t bytes, const char *path,
                                plim_error *error)
{
    struct parser parser = {.info = info, .path = path};
    struct feature_parse top = {0};
    json_read_init(&parser.reader, text, bytes);
    TRY(whole_object(&parser, feature_member, &top, error));
    if (!info->feature_count)
        return fail_at(error, PLIM_BAD_DATA, path, "names no features");
    return PLIM_OK;
}

/* ---- both ---- */

typedef plim_status parse_function(struct tfds_info *info, const char *text, size_t bytes, const char *path,
                                   plim_error *error);

static plim_status parse_file(struct tfds_info *info, struct budget *budget, const char *folder, const char *name,
                              parse_function *parse, plim_error *error)
{
    char path[4096];
    struct file_content file;
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return fail_at(error, PLIM_BAD_DATA, folder, "the path is too long");
    TRY(file_load(&file, budget, TAG_FORMATS, path, FILE_MOST, error));
    plim_status status = parse(info, file.text, file.bytes, path, error);
    budget_give(budget, TAG_FORMATS, file.text, file.bytes + 1);
    return status;
}

plim_status tfds_info_load(struct tfds_info **out, struct budget *budget, const char *folder, plim_error *error)
{
    struct tfds_info *info;
    TRY(budget_alloc(&info, budget, TAG_FORMATS, sizeof *info, error));
    arena_init(&info->arena, budget, TAG_FORMATS);
    plim_status status = parse_file(info, budget, folder, "dataset_info.json", tfds_parse_info, error);
    if (status == PLIM_OK)
        status = parse_file(info, budget, folder, "features.json", tfds_parse_features, error);
    return OPENED(out, info, tfds_info_free, status);
}

void tfds_info_free(struct tfds_info *info)
{
    if (!info)
        return;
    struct budget *budget = info->arena.budget;
    arena_release(&info->arena);
    budget_give(budget, TAG_FORMATS, info, sizeof *info);
}
