/* image_folder.c - images in files of their own, by folders of classes or by patterns: the bytes as they are. */
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "formats/files/file_list.h"
#include "formats/tables/rows.h"

#define SAMPLED     1000 /* files that are looked at for their size: one system call each */
#define LEAST_BYTES ((uint64_t)256 * 1024)

struct images {
    struct source base;
    bool labelled;
};

static plim_status images_read(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                               const struct row_target *target, plim_error *error)
{
    struct images *images = (struct images *)source;
    struct value_buffer *values = target->values;
    char path[FILE_PATH_MOST + 1];
    uint64_t bytes, all = 0;
    TRY(source_check(source, index, count, error));
    int64_t i = 0;
    for (; i < count; i++) {
        uint8_t *to = values->bytes + values->used;
        file_list_path(path, images->base.files, index[i]);
        TRY(file_fetch(&bytes, path, to, value_buffer_left(values), error));
        if (!value_buffer_take_bytes(values, bytes))
            break;
        *(struct string *)((char *)target->to[0] + (uint64_t)i * target->stride[0]) = (struct string){to, bytes};
        if (images->labelled)
            *(int32_t *)((char *)target->to[1] + (uint64_t)i * target->stride[1]) =
                file_list_label(images->base.files, index[i]);
        all += bytes;
    }
    source_count_read(source, all);
    *done = i;
    return PLIM_OK;
}

/* The end of a long path says more than its beginning. */
static bool images_describe(char out[256], const struct source *source, int64_t index, const char *column)
{
    char path[FILE_PATH_MOST + 1];
    (void)column;
    file_list_path(path, source->files, index);
    text_end(out, 256, path);
    return true;
}

static const char *images_class(const struct source *source, int64_t label)
{
    return label < file_list_class_count(source->files) ? file_list_class(source->files, label) : NULL;
}

static int32_t images_file_class(const struct source *source, int64_t file)
{
    return file_list_label(source->files, file);
}

static const struct source_type images_type = {
    .name = "images",
    .read_values = images_read,
    .describe = images_describe,
    SOURCE_FILES,
    .file_class = images_file_class,
    .class_name = images_class,
};

/* Twice the largest of some that lie evenly in the list. */
static plim_status expect_size(struct images *images, plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    int64_t count = file_list_count(images->base.files), step = count / SAMPLED + 1;
    uint64_t largest = LEAST_BYTES / 2, bytes;
    for (int64_t i = 0; i < count; i += step) {
        file_list_path(path, images->base.files, i);
        TRY(file_size_at(&bytes, path, error));
        largest = bytes > largest ? bytes : largest;
    }
    images->base.value_bytes = largest > UINT64_MAX / 2 ? UINT64_MAX : 2 * largest;
    return PLIM_OK;
}

static plim_status list_files(struct images *images, const struct images_options *options, plim_error *error)
{
    const struct shape scalar = {0};
    struct source *base = &images->base;
    TRY(file_list_make(&images->base.files, base->budget, error));
    images->labelled = options->folder && !options->no_labels;
    if (options->folder)
        TRY(file_list_classes(images->base.files, options->folder, options->class_names, NULL, error));
    else
        TRY(file_list_glob(images->base.files, options->patterns, options->pattern_count, error));
    base->count = file_list_count(images->base.files);
    TRY(spec_add(&base->spec, "image", TYPE_STRING, &scalar, error));
    if (images->labelled)
        TRY(spec_add(&base->spec, "label", TYPE_I32, &scalar, error));
    return expect_size(images, error);
}

plim_status images_open(struct source **out, struct budget *budget, const struct images_options *options,
                        plim_error *error)
{
    struct images *images;
    TRY(source_make(&images, sizeof *images, &images_type, budget, error));
    return source_opened(out, &images->base, list_files(images, options, error));
}
