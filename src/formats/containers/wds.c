/* wds.c - WebDataset's samples: neighbours in a tar file whose names are equal up to the extension. */
#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "formats/containers/tar.h"

struct wds {
    struct budget *budget;
    struct tar *tar;
    char *staging; /* of a compressed tar: the bytes of the current sample's fields */
    size_t staging_bytes, staged;
    bool pending, ended; /* pending: `next` is the first member of the sample to come */
    struct tar_member next;
    struct wds_sample sample;
    char key[TAR_NAME_MOST + 1];
};

bool wds_key(const char *name, size_t *key_bytes, const char **extension)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *dot = strchr(base, '.');
    size_t first = strcspn(name, "/"); /* __x__ as the whole name or as a folder */
    bool meta = first >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + first - 2, "__", 2) == 0;
    if (meta || !dot || dot == base)
        return false;
    *key_bytes = (size_t)(dot - name);
    *extension = dot + 1;
    return true;
}

plim_status wds_open(struct wds **out, struct budget *budget, const char *path, enum compression compression,
                     size_t staging_bytes, plim_error *error)
{
    struct wds *wds;
    TRY(budget_alloc(&wds, budget, TAG_FORMATS, sizeof *wds, error));
    wds->budget = budget;
    wds->sample.key = wds->key;
    plim_status status = tar_open(&wds->tar, budget, path, compression, error);
    if (status == PLIM_OK && tar_stream(wds->tar)->packed) {
        wds->staging_bytes = staging_bytes;
        wds->staging = budget_take(budget, TAG_FORMATS, staging_bytes);
        if (!wds->staging)
            status = budget_refused(budget, TAG_FORMATS, staging_bytes, error);
    }
    return OPENED(out, wds, wds_close, status);
}

void wds_close(struct wds *wds)
{
    if (!wds)
        return;
    tar_close(wds->tar);
    budget_give(wds->budget, TAG_FORMATS, wds->staging, wds->staging_bytes);
    budget_give(wds->budget, TAG_FORMATS, wds, sizeof *wds);
}

uint64_t wds_cost(enum compression compression, size_t staging_bytes)
{
    uint64_t own = budget_charge(sizeof(struct wds)) + tar_cost(compression);
    return compression == COMPRESSION_NONE ? own : own + budget_charge(staging_bytes);
}

struct byte_stream *wds_stream(struct wds *wds)
{
    return tar_stream(wds->tar);
}

/* The next member that belongs to a sample. */
static plim_status next_member(struct wds *wds, plim_error *error)
{
    size_t key_bytes;
    const char *extension;
    wds->pending = false;
    while (!wds->pending && !wds->ended) {
        bool more = false;
        plim_status status = tar_next(&more, &wds->next, wds->tar, error);
        wds->ended = !more; /* behind a damaged header nothing can be found */
        if (status != PLIM_OK)
            return status;
        wds->pending = more && wds_key(wds->next.name, &key_bytes, &extension);
    }
    return PLIM_OK;
}

static bool same_key(const struct wds *wds, size_t key_bytes)
{
    return strlen(wds->key) == key_bytes && memcmp(wds->key, wds->next.name, key_bytes) == 0;
}

static struct wds_field *find_field(struct wds_sample *sample, const char *extension, size_t bytes)
{
    for (int i = 0; i < sample->field_count; i++)
        if (strlen(sample->field[i].extension) == bytes && memcmp(sample->field[i].extension, extension, bytes) == 0)
            return &sample->field[i];
    return NULL;
}

static plim_status bad_member(const struct wds *wds, plim_error *error, const char *what)
{
    return byte_stream_fail(tar_stream(wds->tar), wds->next.header_at, error, "%.200s: %s", wds->next.name, what);
}

/* Lower-cased, as webdataset has it. */
static bool copy_extension(char out[WDS_EXTENSION_BYTES], const char *extension)
{
    size_t bytes = strlen(extension);
    if (bytes >= WDS_EXTENSION_BYTES)
        return false;
    for (size_t i = 0; i <= bytes; i++)
        out[i] = extension[i] >= 'A' && extension[i] <= 'Z' ? (char)(extension[i] - 'A' + 'a') : extension[i];
    return true;
}

/* A compressed tar's bytes can be had only now. */
static plim_status stage(struct wds *wds, struct wds_field *field, plim_error *error)
{
    size_t got;
    if (!tar_stream(wds->tar)->packed)
        return PLIM_OK;
    if (field->bytes > wds->staging_bytes - wds->staged) {
        byte_stream_fail(tar_stream(wds->tar), wds->next.header_at, error,
                         "%.200s: with %llu bytes its sample takes more than the %zu there are for it", wds->next.name,
                         (unsigned long long)field->bytes, wds->staging_bytes);
        return hint(error, PLIM_BAD_DATA, "an unpacked tar file needs no buffer for samples");
    }
    TRY(tar_read(&got, wds->tar, wds->staging + wds->staged, (size_t)field->bytes, error));
    field->at = wds->staged;
    wds->staged += (size_t)field->bytes;
    return PLIM_OK;
}

static plim_status add_member(struct wds *wds, const char *extension, plim_error *error)
{
    struct wds_sample *sample = &wds->sample;
    struct wds_field field = {.at = wds->next.at, .bytes = wds->next.bytes};
    if (!copy_extension(field.extension, extension))
        return bad_member(wds, error, "its extension is too long");
    if (find_field(sample, field.extension, strlen(field.extension)))
        return bad_member(wds, error, "the sample has this extension already");
    if (sample->field_count == WDS_MOST_FIELDS)
        return bad_member(wds, error, "the sample has too many members");
    TRY(stage(wds, &field, error));
    sample->field[sample->field_count++] = field;
    return PLIM_OK;
}

/* All members of the sample that `next` begins. A bad one does not stop it: the next call begins behind it. */
static plim_status gather(struct wds *wds, plim_error *error)
{
    size_t key_bytes = 0;
    const char *extension = NULL;
    plim_status result = PLIM_OK;
    wds_key(wds->next.name, &key_bytes, &extension);
    memcpy(wds->key, wds->next.name, key_bytes);
    wds->key[key_bytes] = 0;
    wds->sample.begin_at = wds->next.header_at;
    wds->sample.field_count = 0;
    wds->staged = 0;
    while (wds->pending && wds_key(wds->next.name, &key_bytes, &extension) && same_key(wds, key_bytes)) {
        plim_status status = add_member(wds, extension, result == PLIM_OK ? error : NULL);
        if (result == PLIM_OK)
            result = status;
        status = next_member(wds, result == PLIM_OK ? error : NULL);
        if (status != PLIM_OK)
            return result == PLIM_OK ? status : result;
    }
    return result;
}

plim_status wds_next(bool *more, const struct wds_sample **out, struct wds *wds, plim_error *error)
{
    if (!wds->pending && !wds->ended)
        TRY(next_member(wds, error));
    if (!wds->pending) {
        *more = false;
        return PLIM_OK;
    }
    plim_status status = gather(wds, error);
    if (status != PLIM_OK) {
        wds->sample.field_count = 0;
        return status;
    }
    *more = true;
    *out = &wds->sample;
    return PLIM_OK;
}

/* The first of the names between semicolons that the sample has. */
static const struct wds_field *choose(struct wds_sample *sample, const char *extensions)
{
    while (*extensions) {
        size_t bytes = strcspn(extensions, ";");
        const struct wds_field *field = find_field(sample, extensions, bytes);
        if (field)
            return field;
        extensions += bytes + (extensions[bytes] == ';');
    }
    return NULL;
}

plim_status wds_take(bool *fits, struct string *out, struct wds *wds, const char *extensions,
                     struct value_buffer *values, plim_error *error)
{
    const struct wds_field *field = choose(&wds->sample, extensions);
    *fits = true;
    *out = (struct string){0};
    if (!field)
        return PLIM_OK;
    uint8_t *to = value_buffer_take_bytes(values, field->bytes);
    *fits = to != NULL;
    if (!to)
        return PLIM_OK;
    if (wds->staging)
        memcpy(to, wds->staging + field->at, (size_t)field->bytes);
    else
        TRY(file_read(tar_stream(wds->tar)->file, field->at, to, (size_t)field->bytes, error));
    *out = (struct string){to, field->bytes};
    return PLIM_OK;
}
