/* fingerprint.c - which data a pipeline reads, as a digest of sizes and samples of its files, and of what its functions
   have read (vocabularies, merges). */
#include "pipeline/core/fingerprint.h"

#include <string.h>

#include "base/files/file_sample.h"
#include "base/text/text.h"
#include "formats/files/file_list.h"
#include "pipeline/core/stage.h"
#include "pipeline/stages/join/join.h"

#define FEW_FILES    16
#define FEW_PIECES   16 /* of each of few files, */
#define MANY_PIECES  4  /* and of each of many */
#define SAMPLED_MOST 128
#define SIZED_MOST   100000

struct making {
    struct sha256 sha;
    struct fingerprint *out;
    struct budget *budget;
    bool found; /* something to compare */
};

/* Number k of `most` that lie evenly among `count`, the first and the last among them. */
static int64_t chosen(int64_t k, int64_t most, int64_t count)
{
    if (count <= most)
        return k;
    int64_t part = most - 1, last = count - 1;
    return last / part * k + last % part * k / part;
}

static void set_name(char name[64], const char *path)
{
    text_end(name, 64, path);
    for (; *name; name++)
        if (*name < ' ' || *name > '~')
            *name = '?';
}

static plim_status add_file(struct making *making, const struct source *source, int64_t file, int pieces,
                            plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    struct file_facts facts;
    struct fingerprint *out = making->out;
    source->type->file_path(path, source, file);
    if (!out->name[0])
        set_name(out->name, path);
    TRY(file_sample(&making->sha, &facts, making->budget, path, pieces, error));
    out->bytes += facts.bytes;
    out->changed = facts.changed > out->changed ? facts.changed : out->changed;
    return PLIM_OK;
}

/* Of every file: the list holds them, nothing is read. A file that was moved to another class may have kept its place
   in the order. */
static void add_classes(struct making *making, const struct source *source, int64_t count)
{
    if (!source->type->file_class)
        return;
    for (int64_t file = 0; file < count; file++) {
        int32_t label = source->type->file_class(source, file);
        sha256_add(&making->sha, &label, sizeof label);
    }
}

static plim_status add_files(struct making *making, const struct source *source, plim_error *error)
{
    int64_t count = source->type->file_count ? source->type->file_count(source) : 0;
    if (!count)
        return PLIM_OK;
    uint64_t before = making->out->bytes;
    making->out->files += count;
    making->found = true;
    sha256_add(&making->sha, &count, sizeof count);
    add_classes(making, source, count);
    int pieces = count <= FEW_FILES ? FEW_PIECES : MANY_PIECES;
    for (int64_t k = 0; k < count && k < SAMPLED_MOST; k++)
        TRY(add_file(making, source, chosen(k, SAMPLED_MOST, count), pieces, error));
    if (count <= SAMPLED_MOST)
        return PLIM_OK;
    making->out->bytes = before; /* they are among those that follow */
    for (int64_t k = 0; k < count && k < SIZED_MOST; k++)
        TRY(add_file(making, source, chosen(k, SIZED_MOST, count), 0, error));
    return PLIM_OK;
}

/* Sources in the order in which the pipeline has them. */
static plim_status add_chain(struct making *making, const struct dataset *dataset, plim_error *error)
{
    for (; dataset; dataset = dataset->input) {
        for (int i = 0; i < dataset->other_count; i++)
            TRY(add_chain(making, dataset->others[i], error));
        if (dataset->function && dataset->function->options_content) {
            dataset->function->options_content(&making->sha, dataset->options);
            making->found = true;
        }
        if (dataset->input)
            continue;
        TRY(add_files(making, dataset->source, error));
        for (int i = 0; i < joined_count(dataset->source); i++)
            TRY(add_chain(making, joined_child(dataset->source, i), error));
    }
    return PLIM_OK;
}

plim_status fingerprint_make(struct fingerprint *out, const struct dataset *dataset, struct budget *budget,
                             plim_error *error)
{
    struct fingerprint made = {0};
    struct making making = {.out = &made, .budget = budget};
    uint8_t digest[32];
    sha256_init(&making.sha);
    TRY(add_chain(&making, dataset, error));
    sha256_end(&making.sha, digest);
    if (making.found)
        sha256_text(made.digest, digest);
    *out = made;
    return PLIM_OK;
}
