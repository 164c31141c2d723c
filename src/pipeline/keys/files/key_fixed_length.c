/* key_fixed_length.c - records of one size: one column of strings, which `decode_raw` makes numbers of.

   fixed_length: {files: "cifar/data_batch_*.bin", record_bytes: 3073, header_bytes: 0, footer_bytes: 0} */
#include "formats/sources/line_source.h"
#include "pipeline/keys/files/file_keys.h"

struct fixed_keys {
    struct file_keys files;
    int64_t record_bytes, header_bytes, footer_bytes;
};

static const struct setting fixed_settings[] = {
    FILE_SETTINGS(struct fixed_keys, files),
    {"record_bytes", SETTING_WHOLE, offsetof(struct fixed_keys, record_bytes), 1},
    {"header_bytes", SETTING_WHOLE, offsetof(struct fixed_keys, header_bytes), 0},
    {"footer_bytes", SETTING_WHOLE, offsetof(struct fixed_keys, footer_bytes), 0},
};

static plim_status open_fixed_length(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                                     plim_error *error)
{
    struct fixed_keys keys = {0};
    struct file_choice choice;
    struct source *source;
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(&keys, fixed_settings, COUNT(fixed_settings), reader->path, yaml, error));
    if (!keys.record_bytes)
        return hint(error, reader_bad(reader, yaml, "fixed_length: 'record_bytes:' is missing", error),
                    "fixed_length: {files: \"data/*.bin\", record_bytes: 3073}");
    TRY(file_keys_read(&choice, reader, yaml, "fixed_length", &keys.files, error));
    const struct fixed_layout layout = {.record_bytes = (uint64_t)keys.record_bytes,
                                        .header_bytes = (uint64_t)keys.header_bytes,
                                        .footer_bytes = (uint64_t)keys.footer_bytes};
    return key_opened(out, &source, fixed_source_open(&source, reader->budget, &choice, &layout, error));
}

const struct source_key source_key_fixed_length = {
    .word = "fixed_length", .open = open_fixed_length, .origin = OF_FILES};
