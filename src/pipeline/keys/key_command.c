/* key_command.c - records that a program writes, in TFRecord's framing: command: "my-reader --shard 3". It runs in the
   job file's folder, once an epoch; $1 is the number of the epoch. */
#include "pipeline/keys/source_key.h"

struct command_keys {
    const char *run;
    const struct yaml *features, *context, *lists;
};

static const struct setting command_settings[] = {
    {"run", SETTING_WORD, offsetof(struct command_keys, run), 0},
    {"features", SETTING_NODE, offsetof(struct command_keys, features), 0},
    {"context_features", SETTING_NODE, offsetof(struct command_keys, context), 0},
    {"sequence_features", SETTING_NODE, offsetof(struct command_keys, lists), 0},
};

static plim_status open_command(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                                plim_error *error)
{
    struct command_keys keys = {.run = yaml->kind == YAML_SCALAR ? yaml->text : NULL};
    struct source *source;
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(&keys, command_settings, COUNT(command_settings), reader->path, yaml, error));
    if (!keys.run || !*keys.run)
        return hint(error, reader_bad(reader, yaml, "command: there is none", error),
                    "command: \"my-reader --shard 3\"");
    TRY(command_open(&source, reader->budget, keys.run, reader->folder && *reader->folder ? reader->folder : NULL,
                     error));
    *out = dataset_from_source(source);
    return reader_features(out, reader, keys.features, keys.context, keys.lists, error);
}

const struct source_key source_key_command = {.word = "command", .open = open_command, .origin = OF_WORDS};
