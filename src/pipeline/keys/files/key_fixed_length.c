/* key_fixed_length.c - records of one size: one column of strings, which `decode_raw` makes numbers of.

   fixed_length: {files: "cifar/data_batch_*.bin", record_bytes: 3073, header_bytes: 0, footer_bytes: 0} */
#include "formats/sources/line_source.h"
#include "pipeline/keys/files/file_keys.h"

struct fixed_words {
    struct file_keys files;
    int64_t record_bytes, header_bytes, footer_bytes;
};

static const struct setting fixed_settings[] = {
    FILE_SETTINGS(struct fixed_words, files),
    {"record_bytes", SETTING_WHOLE, offsetof(struct fixed_words, record_bytes), 1},
    {"header_bytes", SETTING_WHOLE, offsetof(struct fixed_words, header_bytes), 0},
    {"footer_bytes", SETTING_WHOLE, offsetof(struct fixed_words, footer_bytes), 0},
};

static plim_status open_fixed_length(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                                     plim_error *error)
{
    struct fixed_words words = {0};
    struct file_choice choice;
    struct source *source;
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(&words, fixed_settings, COUNT(fixed_settings), reader->path, yaml, error));
    if (!words.record_bytes)
        return hint(error, reader_bad(reader, yaml, "fixed_length: 'record_bytes:' is missing", error),
                    "fixed_length: {files: \"data/*.bin\", record_bytes: 3073}");
    TRY(file_keys_read(&choice, reader, yaml, "fixed_length", &words.files, error));
    const struct fixed_layout layout = {.record_bytes = (uint64_t)words.record_bytes,
                                        .header_bytes = (uint64_t)words.header_bytes,
                                        .footer_bytes = (uint64_t)words.footer_bytes};
    return key_opened(out, &source, fixed_source_open(&source, reader->budget, &choice, &layout, error));
}

const struct source_key source_key_fixed_length = {
    .word = "fixed_length", .open = open_fixed_length, .origin = OF_FILES};
