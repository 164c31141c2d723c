/* key_tfrecord.c - TFRecord files, and what their records are made of.

   tfrecord: "data/shard_*.tfrecord"                       records as they are: one column of strings
   tfrecord: {files: ..., interleave: {cycle_length: 8}, features: {image: string, label: int64}} */
#include <string.h>

#include "base/numbers/crc32c.h"
#include "base/text/text.h"
#include "formats/sources/record_source.h"
#include "pipeline/keys/files/file_keys.h"
#include "pipeline/maps/map_parse.h"

struct tfrecord_keys {
    const struct yaml *files, *interleave, *features, *context, *lists;
    bool shuffle_files, indexed;
};

static const struct setting tfrecord_settings[] = {
    {"files", SETTING_NODE, offsetof(struct tfrecord_keys, files), 0},
    {"interleave", SETTING_NODE, offsetof(struct tfrecord_keys, interleave), 0},
    {"features", SETTING_NODE, offsetof(struct tfrecord_keys, features), 0},
    {"context_features", SETTING_NODE, offsetof(struct tfrecord_keys, context), 0},
    {"sequence_features", SETTING_NODE, offsetof(struct tfrecord_keys, lists), 0},
    {"shuffle_files", SETTING_BOOL, offsetof(struct tfrecord_keys, shuffle_files), 0},
    {"indexed", SETTING_BOOL, offsetof(struct tfrecord_keys, indexed), 0},
};

/* ---- features ---- */

struct feature_keys {
    const char *dtype;
    const struct yaml *shape, *fallback;
    const char *var;
    const char *sequence;
    bool allow_missing;
};

static const struct setting feature_settings[] = {
    {"dtype", SETTING_WORD, offsetof(struct feature_keys, dtype), 0},
    {"shape", SETTING_NODE, offsetof(struct feature_keys, shape), 0},
    {"default", SETTING_NODE, offsetof(struct feature_keys, fallback), 0},
    {"var", SETTING_WORD, offsetof(struct feature_keys, var), 0},
    {"sequence", SETTING_WORD, offsetof(struct feature_keys, sequence), 0},
    {"allow_missing", SETTING_BOOL, offsetof(struct feature_keys, allow_missing), 0},
};

/* float32, int64, string; "bytes" is what Example calls a string. */
static plim_status read_type(enum type *type, struct data_reader *reader, const struct yaml *at, const char *word,
                             plim_error *error)
{
    static const char *const names[] = {"float32", "int64", "string", "bytes"};
    static const enum type types[] = {TYPE_F32, TYPE_I64, TYPE_STRING, TYPE_STRING};
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(word, names[i]) == 0) {
            *type = types[i];
            return PLIM_OK;
        }
    plim_status status = reader_bad(reader, at, "a feature is float32, int64 or string", error);
    const char *near = text_nearest(word, names, COUNT(names));
    return near ? hint(error, status, "did you mean '%s'?", near)
                : hint(error, status, "other types are made of these in `map:`");
}

/* "float32", "float32[100]", "float32[28, 28]". */
static plim_status read_short(struct feature *feature, struct data_reader *reader, const struct yaml *yaml,
                              plim_error *error)
{
    char word[32];
    const char *bracket = strchr(yaml->text, '[');
    size_t length = bracket ? (size_t)(bracket - yaml->text) : strlen(yaml->text);
    if (length >= sizeof word)
        return reader_bad(reader, yaml, "a feature is float32, int64 or string", error);
    memcpy(word, yaml->text, length);
    word[length] = 0;
    TRY(read_type(&feature->type, reader, yaml, word, error));
    while (bracket && *bracket != ']') {
        char *end;
        int64_t extent = 0;
        const char *digit = bracket + 1 + strspn(bracket + 1, " ");
        for (end = (char *)(uintptr_t)digit; *end >= '0' && *end <= '9' && extent < INT64_MAX / 16; end++)
            extent = extent * 10 + (*end - '0');
        end += strspn(end, " ");
        if (end == digit || !extent || (*end != ',' && *end != ']') || feature->shape.rank >= MOST_AXES - 1)
            return hint(error, reader_bad(reader, yaml, "not a shape", error), "float32[28, 28]");
        feature->shape.dim[feature->shape.rank++] = extent;
        bracket = end;
    }
    if (bracket && bracket[1])
        return hint(error, reader_bad(reader, yaml, "not a shape", error), "float32[28, 28]");
    return PLIM_OK;
}

/* One number or string for all of the shape, or a list of them. */
static plim_status read_default(struct feature *feature, struct data_reader *reader, const struct yaml *yaml,
                                plim_error *error)
{
    uint64_t bytes;
    int64_t count = shape_count(&feature->shape), i = 0;
    if (!shape_bytes(&bytes, &feature->shape, feature->type) || bytes > 1024 * 1024)
        return reader_bad(reader, yaml, "a default of more than 1 MiB", error);
    uint8_t *values = arena_take(reader->arena, bytes ? bytes : 1);
    if (!values)
        return arena_refused(reader->arena, error);
    bool list = yaml->kind == YAML_LIST;
    if (yaml->kind == YAML_MAP || (list && yaml->count != (int)count))
        return reader_bad(reader, yaml, "default: one value, or as many as the shape has", error);
    const struct yaml *item = list ? yaml->first : yaml;
    for (; i < count; i++, item = list ? item->next : item) {
        const struct setting number = {"default", SETTING_NUMBER, 0, 0},
                             whole = {"default", SETTING_WHOLE, 0, INT64_MIN};
        double value = 0;
        if (feature->type == TYPE_STRING)
            ((struct string *)values)[i] =
                (struct string){(const uint8_t *)item->text, item->text ? strlen(item->text) : 0};
        else if (feature->type == TYPE_I64)
            TRY(setting_value((int64_t *)values + i, &whole, reader->path, item, error));
        else {
            TRY(setting_value(&value, &number, reader->path, item, error));
            ((float *)values)[i] = (float)value;
        }
    }
    feature->fallback = values;
    return PLIM_OK;
}

static plim_status read_long(struct feature *feature, struct data_reader *reader, const struct yaml *yaml,
                             plim_error *error)
{
    struct feature_keys keys = {0};
    TRY(settings_read(&keys, feature_settings, COUNT(feature_settings), reader->path, yaml, error));
    if (!keys.dtype + !keys.var + !keys.sequence != 2)
        return hint(error, reader_bad(reader, yaml, "a feature has one of 'dtype:', 'var:' and 'sequence:'", error),
                    "{dtype: float32, shape: [100], default: 0}, {var: int64}, {sequence: float32, shape: [3]}");
    const char *word = keys.dtype ? keys.dtype : keys.var ? keys.var : keys.sequence;
    feature->kind = keys.dtype ? FEATURE_FIXED : keys.var ? FEATURE_VARIABLE : FEATURE_SEQUENCE;
    feature->may_miss = keys.allow_missing;
    TRY(read_type(&feature->type, reader, yaml, word, error));
    if (keys.shape)
        TRY(reader_shape(&feature->shape, reader, keys.shape, error));
    if (keys.shape && feature->kind == FEATURE_VARIABLE)
        return reader_bad(reader, keys.shape, "a feature of any length has no shape", error);
    if (keys.fallback && feature->kind != FEATURE_FIXED)
        return reader_bad(reader, keys.fallback, "only a feature of a fixed shape has a default", error);
    return keys.fallback ? read_default(feature, reader, keys.fallback, error) : PLIM_OK;
}

static plim_status read_features(struct feature *features, int *count, struct data_reader *reader,
                                 const struct yaml *yaml, bool in_list, plim_error *error)
{
    if (!yaml)
        return PLIM_OK;
    if (yaml->kind != YAML_MAP || !yaml->first)
        return hint(error, reader_bad(reader, yaml, "expected {name: type}", error), "{image: string, label: int64}");
    for (const struct yaml *entry = yaml->first; entry; entry = entry->next) {
        if (*count == MOST_FEATURES)
            return reader_bad(reader, entry, "too many features", error);
        struct feature *feature = &features[(*count)++];
        *feature = (struct feature){.name = entry->key, .in_list = in_list};
        if (entry->kind == YAML_SCALAR && !entry->is_null)
            TRY(read_short(feature, reader, entry, error));
        else
            TRY(read_long(feature, reader, entry, error));
        if (in_list && feature->kind == FEATURE_FIXED)
            feature->kind = FEATURE_SEQUENCE; /* a step an entry of the list */
    }
    return PLIM_OK;
}

/* ---- the whole ---- */

static plim_status open_records(struct dataset **out, struct data_reader *reader, const struct tfrecord_keys *keys,
                                plim_error *error)
{
    struct source *source;
    struct file_list *files;
    struct record_options options = {.turns = TURNS_NONE, .indexed = keys->indexed};
    options.turns.shuffle_files = keys->shuffle_files;
    options.turns.seed = reader->seed;
    if (keys->interleave)
        TRY(interleave_read(&options.turns, reader, keys->interleave, error));
    TRY(reader_file_list(&files, reader, keys->files, error));
    return key_opened(out, &source, records_source_open(&source, reader->budget, files, &options, error));
}

plim_status reader_features(struct dataset **dataset, struct data_reader *reader, const struct yaml *example,
                            const struct yaml *context, const struct yaml *lists, plim_error *error)
{
    struct feature features[MOST_FEATURES];
    int count = 0;
    bool sequence = context || lists;
    if (sequence && example)
        return reader_bad(reader, example,
                          "an Example has features; a SequenceExample context_features and sequence_features", error);
    TRY(read_features(features, &count, reader, example ? example : context, false, error));
    TRY(read_features(features, &count, reader, lists, true, error));
    if (count)
        *dataset = dataset_parse_example(*dataset, "", features, count, sequence);
    return PLIM_OK;
}

static plim_status open_tfrecord(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                                 plim_error *error)
{
    struct tfrecord_keys keys = {.files = yaml};
    if (yaml->kind == YAML_MAP) {
        keys.files = NULL;
        TRY(settings_read(&keys, tfrecord_settings, COUNT(tfrecord_settings), reader->path, yaml, error));
    }
    if (!keys.files)
        return hint(error, reader_bad(reader, yaml, "tfrecord: 'files:' is missing", error),
                    "files: \"data/*.tfrecord\"");
    TRY(open_records(out, reader, &keys, error));
    return reader_features(out, reader, keys.features, keys.context, keys.lists, error);
}

/* A length, and its checksum. */
static bool is_tfrecord(const struct file_head *head)
{
    const uint8_t *b = head->bytes + 8;
    uint32_t stored = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return head->count >= 12 && crc32c_mask(crc32c(0, head->bytes, 8)) == stored;
}

const struct source_key source_key_tfrecord = {
    .word = "tfrecord",
    .open = open_tfrecord,
    .origin = OF_FILES,
    .is_file = is_tfrecord,
    .suffixes = {".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz"}};
