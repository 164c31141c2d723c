/* file_keys.h - the keys that sources of many files share: files, interleave, shuffle_files, compression. */
#ifndef PIPELINE_KEYS_FILES_FILE_KEYS_H
#define PIPELINE_KEYS_FILES_FILE_KEYS_H

#include <stddef.h>

#include "formats/sources/file_source.h"
#include "pipeline/keys/source_key.h"

struct file_keys {
    const struct yaml *files, *interleave, *buffer_size;
    const char *compression;
    bool shuffle_files;
};

/* Lines of a table of settings, for a struct with a `struct file_keys` in it. */
#define FILE_SETTINGS(type, member)                                                                                    \
    {"files", SETTING_NODE, offsetof(type, member.files), 0},                                                          \
        {"interleave", SETTING_NODE, offsetof(type, member.interleave), 0},                                            \
        {"shuffle_files", SETTING_BOOL, offsetof(type, member.shuffle_files), 0},                                      \
        {"compression", SETTING_WORD, offsetof(type, member.compression), 0},                                          \
    {                                                                                                                  \
        "buffer_size", SETTING_NODE, offsetof(type, member.buffer_size), 0                                             \
    }

/* What they say. The list is yours. */
plim_status file_keys_read(struct file_choice *out, struct data_reader *reader, const struct yaml *at, const char *word,
                           const struct file_keys *keys, plim_error *error);
/* `interleave: auto`, {cycle_length: 8, block_length: 1}. */
plim_status interleave_read(struct turn_options *out, struct data_reader *reader, const struct yaml *yaml,
                            plim_error *error);
/* uint8, float32...; any but string where `numbers`. */
plim_status reader_type(enum type *out, struct data_reader *reader, const struct yaml *at, const char *word,
                        bool numbers, plim_error *error);

#endif
