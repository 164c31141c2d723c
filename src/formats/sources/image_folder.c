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
    struct file_list *list;
    bool labelled;
};

static plim_status images_read(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                               const struct row_target *target, plim_error *error)
{
    struct images *images = (struct images *)source;
    struct room *room = target->room;
    char path[FILE_PATH_MOST + 1];
    uint64_t bytes, all = 0;
    TRY(source_check(source, index, count, error));
    int64_t i = 0;
    for (; i < count; i++) {
        uint8_t *to = room->bytes + room->used;
        file_list_path(path, images->list, index[i]);
        TRY(file_fetch(&bytes, path, to, room_left(room), error));
        if (!room_take_bytes(room, bytes))
            break;
        *(struct string *)((char *)target->to[0] + (uint64_t)i * target->stride[0]) = (struct string){to, bytes};
        if (images->labelled)
            *(int32_t *)((char *)target->to[1] + (uint64_t)i * target->stride[1]) =
                file_list_label(images->list, index[i]);
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
    file_list_path(path, ((const struct images *)source)->list, index);
    text_end(out, 256, path);
    return true;
}

static const char *images_class(const struct source *source, int64_t label)
{
    const struct images *images = (const struct images *)source;
    return label < file_list_class_count(images->list) ? file_list_class(images->list, label) : NULL;
}

static int64_t images_file_count(const struct source *source)
{
    return file_list_count(((const struct images *)source)->list);
}

static void images_file_path(char out[4096], const struct source *source, int64_t file)
{
    file_list_path(out, ((const struct images *)source)->list, file);
}

static int32_t images_file_class(const struct source *source, int64_t file)
{
    return file_list_label(((const struct images *)source)->list, file);
}

static void images_close(struct source *source)
{
    struct images *images = (struct images *)source;
    file_list_free(images->list);
    budget_give(source->budget, TAG_FORMATS, images, sizeof *images);
}

static const struct source_type images_type = {
    .name = "images",
    .read_values = images_read,
    .describe = images_describe,
    .file_count = images_file_count,
    .file_path = images_file_path,
    .file_class = images_file_class,
    .class_name = images_class,
    .close = images_close,
};

/* Twice the largest of some that lie evenly in the list. */
static plim_status expect_size(struct images *images, plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    int64_t count = file_list_count(images->list), step = count / SAMPLED + 1;
    uint64_t largest = LEAST_BYTES / 2, bytes;
    for (int64_t i = 0; i < count; i += step) {
        file_list_path(path, images->list, i);
        TRY(file_size_at(&bytes, path, error));
        largest = bytes > largest ? bytes : largest;
    }
    images->base.room_bytes = largest > UINT64_MAX / 2 ? UINT64_MAX : 2 * largest;
    return PLIM_OK;
}

static plim_status list_files(struct images *images, const struct images_options *options, plim_error *error)
{
    const struct shape scalar = {0};
    struct source *base = &images->base;
    TRY(file_list_make(&images->list, base->budget, error));
    images->labelled = options->folder && !options->no_labels;
    if (options->folder)
        TRY(file_list_classes(images->list, options->folder, options->class_names, NULL, error));
    else
        TRY(file_list_glob(images->list, options->patterns, options->pattern_count, error));
    base->count = file_list_count(images->list);
    TRY(spec_add(&base->spec, "image", TYPE_STRING, &scalar, error));
    if (images->labelled)
        TRY(spec_add(&base->spec, "label", TYPE_I32, &scalar, error));
    return expect_size(images, error);
}

plim_status images_open(struct source **out, struct budget *budget, const struct images_options *options,
                        plim_error *error)
{
    struct images *images = budget_take(budget, TAG_FORMATS, sizeof *images);
    if (!images)
        return budget_refused(budget, TAG_FORMATS, sizeof *images, error);
    images->base.type = &images_type;
    images->base.budget = budget;
    plim_status status = list_files(images, options, error);
    if (status != PLIM_OK) {
        images_close(&images->base);
        return status;
    }
    *out = &images->base;
    return PLIM_OK;
}
