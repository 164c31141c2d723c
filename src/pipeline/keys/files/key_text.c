/* key_text.c - lines of text files: one column of strings.

   text: corpus.txt
   text: {files: ..., interleave: {cycle_length: 4}, shuffle_files: true, compression: gzip, buffer_size: 1MiB} */
#include "formats/sources/line_source.h"
#include "pipeline/keys/files/file_keys.h"

static const struct setting text_settings[] = {FILE_SETTINGS(
    struct { struct file_keys own; }, own)};

static plim_status open_text(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                             plim_error *error)
{
    struct file_keys keys = {.files = yaml};
    struct file_choice choice;
    struct source *source;
    if (yaml->kind == YAML_MAP) {
        keys.files = NULL;
        TRY(settings_read(&keys, text_settings, COUNT(text_settings), reader->path, yaml, error));
    }
    TRY(file_keys_read(&choice, reader, yaml, "text", &keys, error));
    return key_opened(out, &source, lines_source_open(&source, reader->budget, &choice, error));
}

const struct source_key source_key_text = {
    .word = "text", .open = open_text, .origin = OF_FILES, .suffixes = {".txt", ".txt.gz"}};
