/* file_keys.c - the keys that sources of many files share. */
#include "pipeline/keys/files/file_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/text/text.h"

#define MOST_BUFFER ((uint64_t)1 << 30)

static bool is_auto(const struct yaml *yaml)
{
    return yaml->kind == YAML_SCALAR && !yaml->is_null && strcmp(yaml->text, "auto") == 0;
}

plim_status interleave_read(struct turn_options *out, struct data_reader *reader, const struct yaml *yaml,
                            plim_error *error)
{
    struct keys {
        const struct yaml *cycle;
        int64_t block;
        const struct yaml *parallel; /* accepted: the order does not depend on it */
    } keys = {.block = 1};
    static const struct setting settings[] = {
        {"cycle_length", SETTING_NODE, offsetof(struct keys, cycle), 0},
        {"block_length", SETTING_WHOLE, offsetof(struct keys, block), 1},
        {"num_parallel_calls", SETTING_NODE, offsetof(struct keys, parallel), 0},
    };
    const struct setting whole = {"cycle_length", SETTING_WHOLE, 0, 1};
    out->cycle_length = CYCLE_AUTO;
    if (is_auto(yaml))
        return PLIM_OK;
    TRY(settings_read(&keys, settings, COUNT(settings), reader->path, yaml, error));
    out->block_length = keys.block;
    if (!keys.cycle || is_auto(keys.cycle))
        return PLIM_OK;
    return setting_value(&out->cycle_length, &whole, reader->path, keys.cycle, error);
}

/* tf.data's words: "" is none. */
static plim_status read_compression(enum compression *out, struct data_reader *reader, const struct yaml *at,
                                    const char *word, plim_error *error)
{
    static const struct {
        const char *word;
        enum compression compression;
    } known[] = {{"auto", COMPRESSION_AUTO},
                 {"none", COMPRESSION_NONE},
                 {"", COMPRESSION_NONE},
                 {"gzip", COMPRESSION_GZIP},
                 {"zlib", COMPRESSION_ZLIB}};
    for (int i = 0; i < COUNT(known); i++)
        if (strcasecmp(word, known[i].word) == 0) {
            *out = known[i].compression;
            return PLIM_OK;
        }
    const struct yaml *place_of = yaml_get(at, "compression");
    return hint(error, reader_bad(reader, place_of ? place_of : at, "compression: not known", error),
                "auto, none, gzip or zlib");
}

static plim_status read_buffer(size_t *out, struct data_reader *reader, const struct yaml *yaml, plim_error *error)
{
    uint64_t bytes;
    if (yaml->kind != YAML_SCALAR || yaml->is_null || !text_parse_size(&bytes, yaml->text) || bytes < 256 ||
        bytes > MOST_BUFFER)
        return hint(error, reader_bad(reader, yaml, "buffer_size: expected a size from 256 bytes to 1 GiB", error),
                    "buffer_size: 1MiB");
    *out = (size_t)bytes;
    return PLIM_OK;
}

plim_status file_keys_read(struct file_choice *out, struct data_reader *reader, const struct yaml *at, const char *word,
                           const struct file_keys *keys, plim_error *error)
{
    struct file_choice choice = {.turns = TURNS_NONE};
    choice.turns.shuffle_files = keys->shuffle_files;
    choice.turns.seed = reader->seed;
    if (!keys->files) {
        char what[96];
        snprintf(what, sizeof what, "%s: 'files:' is missing", word);
        return hint(error, reader_bad(reader, at, what, error), "files: \"data/*\"");
    }
    if (keys->interleave)
        TRY(interleave_read(&choice.turns, reader, keys->interleave, error));
    if (keys->compression)
        TRY(read_compression(&choice.compression, reader, at, keys->compression, error));
    if (keys->buffer_size)
        TRY(read_buffer(&choice.buffer_bytes, reader, keys->buffer_size, error));
    TRY(reader_file_list(&choice.files, reader, keys->files, error));
    *out = choice;
    return PLIM_OK;
}

plim_status reader_type(enum type *out, struct data_reader *reader, const struct yaml *at, const char *word,
                        bool numbers, plim_error *error)
{
    const char *names[TYPE_COUNT];
    if (word && (numbers ? type_from_name(out, word) : type_of_column(out, word)))
        return PLIM_OK;
    for (int i = 0; i < TYPE_COUNT; i++)
        names[i] = type_name((enum type)i);
    const char *near = word ? text_nearest(word, names, TYPE_COUNT) : NULL;
    plim_status status = reader_bad(reader, at, numbers ? "not a type of numbers" : "not a type", error);
    return hint(error, status, near ? "did you mean '%s'?" : "float32, int64, uint8...%.0s", near ? near : "");
}
