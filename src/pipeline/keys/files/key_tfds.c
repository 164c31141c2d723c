/* key_tfds.c - a folder as TensorFlow Datasets lays it out: the version's, with dataset_info.json in it.

   tfds: tensorflow_datasets/mnist/3.0.1                                       all features of `train`
   tfds: {folder: ..., split: "train[:80%]+test", as_supervised: true, decode: true, interleave: auto} */
#include <stdio.h>
#include <string.h>

#include "base/text/message.h"
#include "formats/records/tfds_info.h"
#include "formats/sources/record_source.h"
#include "pipeline/keys/files/file_keys.h"
#include "pipeline/maps/images/map_image.h"
#include "pipeline/maps/map_parse.h"

#define MOST_PARTS 16

struct tfds_keys {
    const char *folder, *split;
    const struct yaml *columns, *interleave;
    bool as_supervised, decode, shuffle_files, indexed;
};

static const struct setting tfds_settings[] = {
    {"folder", SETTING_WORD, offsetof(struct tfds_keys, folder), 1},
    {"split", SETTING_WORD, offsetof(struct tfds_keys, split), 0},
    {"columns", SETTING_NODE, offsetof(struct tfds_keys, columns), 0},
    {"interleave", SETTING_NODE, offsetof(struct tfds_keys, interleave), 0},
    {"as_supervised", SETTING_BOOL, offsetof(struct tfds_keys, as_supervised), 0},
    {"decode", SETTING_BOOL, offsetof(struct tfds_keys, decode), 0},
    {"shuffle_files", SETTING_BOOL, offsetof(struct tfds_keys, shuffle_files), 0},
    {"indexed", SETTING_BOOL, offsetof(struct tfds_keys, indexed), 0},
};

struct tfds_reader {
    struct data_reader *reader;
    const struct yaml *at;
    struct tfds_keys keys;
    const char *folder;
    const struct tfds_info *info;
    int column_count;
    const struct tfds_feature *column[MOST_COLUMNS];
};

/* ---- features ---- */

/* Extents that differ, beyond the first axis, are not read; of an image they are. */
static bool is_readable(const struct tfds_feature *feature)
{
    if (feature->kind == TFDS_OTHER)
        return false;
    if (feature->kind == TFDS_IMAGE)
        return feature->shape.dim[2] == 1 || feature->shape.dim[2] == 3 || feature->shape.dim[2] == 4;
    for (int a = 1; a < feature->shape.rank; a++)
        if (feature->shape.dim[a] < 0)
            return false;
    return feature->kind != TFDS_RAW || feature->type != TYPE_STRING;
}

static bool is_open(const struct tfds_feature *feature)
{
    return feature->kind != TFDS_IMAGE && feature->shape.rank && feature->shape.dim[0] < 0;
}

static enum type stored_type(const struct tfds_feature *feature)
{
    if (feature->kind != TFDS_TENSOR || feature->type == TYPE_STRING)
        return TYPE_STRING;
    return type_is_float(feature->type) ? TYPE_F32 : TYPE_I64;
}

/* How it lies in an Example. */
static struct feature stored(const struct tfds_feature *feature)
{
    struct feature out = {.name = feature->name, .type = stored_type(feature)};
    if (feature->kind != TFDS_TENSOR)
        return out;
    out.shape = feature->shape;
    if (is_open(feature)) {
        out.kind = FEATURE_SEQUENCE;
        out.may_miss = true;
        out.shape = shape_of(feature->shape.rank - 1, feature->shape.dim + 1);
    }
    return out;
}

static plim_status add_column(struct tfds_reader *self, const struct yaml *at, const char *name, plim_error *error)
{
    char what[256];
    for (int i = 0; i < self->info->feature_count; i++) {
        const struct tfds_feature *feature = &self->info->feature[i];
        if (strcmp(feature->name, name) != 0)
            continue;
        if (is_readable(feature)) {
            self->column[self->column_count++] = feature;
            return PLIM_OK;
        }
        snprintf(what, sizeof what, "feature '%s' (%s) is not read here", name, feature->what);
        return hint(error, reader_bad(self->reader, at, what, error), "choose others: columns: [image, label]");
    }
    message_print(what, sizeof what, "there is no feature '%.64s'", name);
    return reader_bad(self->reader, at, what, error);
}

static plim_status choose_columns(struct tfds_reader *self, plim_error *error)
{
    const struct tfds_info *info = self->info;
    const struct yaml *columns = self->keys.columns;
    if (self->keys.as_supervised) {
        if (!info->input[0] || !info->label[0])
            return reader_bad(self->reader, self->at, "as_supervised: the data set has no supervised keys", error);
        TRY(add_column(self, self->at, info->input, error));
        return add_column(self, self->at, info->label, error);
    }
    if (!columns) {
        for (int i = 0; i < info->feature_count; i++)
            TRY(add_column(self, self->at, info->feature[i].name, error));
        return PLIM_OK;
    }
    if (columns->kind != YAML_LIST || !columns->first || columns->count > MOST_COLUMNS)
        return reader_bad(self->reader, columns, "columns: expected a list of features", error);
    for (const struct yaml *item = columns->first; item; item = item->next)
        TRY(add_column(self, item, item->kind == YAML_SCALAR ? item->text : "", error));
    return PLIM_OK;
}

static struct dataset *decode_column(struct dataset *dataset, const struct tfds_feature *feature)
{
    bool known = !is_open(feature);
    if (feature->kind == TFDS_RAW) {
        struct decode_raw_options raw = {.type = feature->type, .has_shape = known, .shape = feature->shape};
        snprintf(raw.column, sizeof raw.column, "%s", feature->name);
        return dataset_map(dataset, &map_decode_raw, &raw);
    }
    if (feature->kind == TFDS_TENSOR) {
        struct cast_options cast = {.type = feature->type};
        snprintf(cast.column, sizeof cast.column, "%s", feature->name);
        return stored_type(feature) == feature->type ? dataset : dataset_map(dataset, &map_cast, &cast);
    }
    struct decode_options decode = {.channels = feature->shape.dim[2]};
    snprintf(decode.column, sizeof decode.column, "%s", feature->name);
    dataset = dataset_map(dataset, &map_decode_image, &decode);
    struct ensure_shape_options ensure = {.shape = feature->shape};
    snprintf(ensure.column, sizeof ensure.column, "%s", feature->name);
    bool fixed = feature->shape.dim[0] >= 0 && feature->shape.dim[1] >= 0;
    return fixed ? dataset_map(dataset, &map_ensure_shape, &ensure) : dataset;
}

static struct dataset *parse_columns(struct dataset *dataset, const struct tfds_reader *self)
{
    struct feature features[MOST_COLUMNS];
    for (int i = 0; i < self->column_count; i++)
        features[i] = stored(self->column[i]);
    dataset = dataset_parse_example(dataset, "", features, self->column_count, false);
    for (int i = 0; i < self->column_count; i++)
        if (self->keys.decode || self->column[i]->kind == TFDS_TENSOR)
            dataset = decode_column(dataset, self->column[i]);
    return dataset;
}

/* ---- records ---- */

/* The shards that examples [begin, end) lie in: *first is the number of the first one's first example. */
static plim_status list_shards(struct file_list *files, int64_t *first, int64_t *total, const struct tfds_slice *slice,
                               const struct tfds_reader *self, plim_error *error)
{
    const struct tfds_split *split = slice->split;
    int64_t at = 0;
    *first = -1;
    *total = 0;
    for (int64_t i = 0; i < split->shard_count; at += split->shard_length[i++]) {
        char name[1024], path[FILE_PATH_MOST + 1];
        if (!split->shard_length[i] || at + split->shard_length[i] <= slice->begin || at >= slice->end)
            continue;
        if (!tfds_file_name(name, sizeof name, self->info, split, i))
            return fail_at(error, PLIM_BAD_DATA, self->folder, "the file names of split '%.64s' cannot be made",
                           split->name);
        int length = snprintf(path, sizeof path, "%s/%s", self->folder, name);
        if (length < 0 || (size_t)length >= sizeof path)
            return fail_at(error, PLIM_BAD_DATA, self->folder, "the path of '%.64s' is too long", name);
        TRY(file_list_add(files, path, error));
        *first = *first < 0 ? at : *first;
        *total += split->shard_length[i];
    }
    return PLIM_OK;
}

static plim_status open_slice(struct dataset **out, const struct tfds_slice *slice, const struct tfds_reader *self,
                              plim_error *error)
{
    const struct tfds_keys *keys = &self->keys;
    struct record_options options = {.turns = TURNS_NONE, .indexed = keys->indexed};
    struct file_list *files;
    struct source *source;
    int64_t first, total;
    bool whole = slice->begin == 0 && slice->end == slice->split->count;
    options.turns.shuffle_files = keys->shuffle_files;
    options.turns.seed = self->reader->seed;
    if (keys->interleave)
        TRY(interleave_read(&options.turns, self->reader, keys->interleave, error));
    if (!whole && (keys->interleave || keys->shuffle_files))
        return reader_bad(self->reader, self->at,
                          "a part of a split is read in order, without interleave or shuffle_files", error);
    TRY(file_list_make(&files, self->reader->budget, error));
    plim_status status = list_shards(files, &first, &total, slice, self, error);
    if (status != PLIM_OK) {
        file_list_free(files);
        return status;
    }
    TRY(records_source_open(&source, self->reader->budget, files, &options, error));
    *out = dataset_assert_cardinality(dataset_from_source(source), total);
    if (slice->begin > first)
        *out = dataset_skip(*out, slice->begin - first);
    if (slice->end - first < total)
        *out = dataset_take(*out, slice->end - slice->begin);
    return PLIM_OK;
}

/* train[:80%]+test: one after the other. */
static plim_status open_split(struct dataset **out, const struct tfds_reader *self, plim_error *error)
{
    struct dataset *parts[MOST_PARTS];
    int count = 0;
    plim_status status = PLIM_OK;
    for (const char *at = self->keys.split; status == PLIM_OK && at; at = *at == '+' ? at + 1 : NULL) {
        struct tfds_slice slice;
        at += strspn(at, " ");
        if (count == MOST_PARTS)
            status = reader_bad(self->reader, self->at, "split: too many parts", error);
        if (status == PLIM_OK)
            status = tfds_read_slice(&slice, &at, self->info, at, error);
        if (status == PLIM_OK)
            status = open_slice(&parts[count], &slice, self, error);
        count += status == PLIM_OK;
    }
    if (status == PLIM_OK) {
        *out = count == 1 ? parts[0] : dataset_concatenate(parts, count);
        return PLIM_OK;
    }
    while (count > 0)
        dataset_unref(parts[--count]);
    return status;
}

static plim_status open_info(struct dataset **out, struct tfds_reader *self, plim_error *error)
{
    if (strcmp(self->info->file_format, "tfrecord") != 0)
        return fail_at(error, PLIM_BAD_DATA, self->folder, "its files are %.31s; tfrecord is read here",
                       self->info->file_format);
    TRY(choose_columns(self, error));
    TRY(open_split(out, self, error));
    *out = parse_columns(*out, self);
    return PLIM_OK;
}

static plim_status open_tfds(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                             plim_error *error)
{
    struct tfds_reader self = {.reader = reader, .at = yaml, .keys = {.split = "train", .decode = true}};
    struct tfds_info *info;
    char where[256];
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(&self.keys, tfds_settings, COUNT(tfds_settings), reader->path, yaml, error));
    else if (yaml->kind == YAML_SCALAR && !yaml->is_null)
        self.keys.folder = yaml->text;
    if (!self.keys.folder || !*self.keys.folder)
        return hint(error, reader_bad(reader, yaml, "tfds: 'folder:' is missing", error),
                    "tfds: tensorflow_datasets/mnist/3.0.1");
    self.folder = reader_path(reader, self.keys.folder);
    if (!self.folder)
        return arena_refused(reader->arena, error);
    TRY(tfds_info_load(&info, reader->budget, self.folder, error));
    self.info = info;
    plim_status status = open_info(out, &self, error);
    tfds_info_free(info);
    yaml_place(where, reader->path, yaml);
    return status == PLIM_OK ? PLIM_OK : error_at(error, status, where);
}

const struct source_key source_key_tfds = {.word = "tfds", .open = open_tfds, .origin = OF_FILES};
