/* pipeline_digest.c - what makes two pipelines give the same elements, as a digest. */
#include "pipeline/core/pipeline_digest.h"

#include <string.h>

#include "base/numbers/digest.h"

static void add_text(struct sha256 *sha, const char *text)
{
    sha256_add(sha, text, strlen(text) + 1);
}

static void add_number(struct sha256 *sha, int64_t number)
{
    sha256_add(sha, &number, sizeof number);
}

static void add_spec(struct sha256 *sha, const struct spec *spec)
{
    for (int c = 0; c < spec->column_count; c++) {
        const struct column *column = &spec->column[c];
        add_text(sha, column->name);
        add_text(sha, type_name(column->type));
        add_number(sha, column->shape.rank);
        for (int i = 0; i < column->shape.rank; i++)
            add_number(sha, column->shape.dim[i]);
    }
}

static void add_node(struct sha256 *sha, const struct dataset *dataset)
{
    add_text(sha, dataset->stage ? dataset->stage->name : dataset->source->type->name);
    add_number(sha, dataset->number);
    add_number(sha, (int64_t)dataset->seed);
    add_number(sha, dataset->cardinality);
    add_number(sha, dataset->batch_size);
    add_spec(sha, dataset->spec);
    if (dataset->stage && dataset->stage->shards) {
        int64_t shards[2];
        dataset->stage->shards(&shards[0], &shards[1], dataset);
        sha256_add(sha, shards, sizeof shards);
    }
    if (!dataset->function)
        return;
    add_text(sha, dataset->function->name);
    if (dataset->function->options_content)
        dataset->function->options_content(sha, dataset->options);
    if (!dataset->function->options_release) /* else it holds addresses */
        sha256_add(sha, dataset->options, dataset->function->options_bytes);
}

static void add_chain(struct sha256 *sha, const struct dataset *dataset)
{
    for (; dataset; dataset = dataset->input) {
        add_node(sha, dataset);
        for (int i = 0; i < dataset->other_count; i++)
            add_chain(sha, dataset->others[i]);
    }
}

void pipeline_digest(char out[65], const struct dataset *dataset, uint64_t seed)
{
    struct sha256 sha;
    uint8_t digest[32];
    sha256_init(&sha);
    add_number(&sha, (int64_t)seed);
    add_chain(&sha, dataset);
    sha256_end(&sha, digest);
    sha256_text(out, digest);
}

int64_t digest_number(const void *options, size_t bytes)
{
    struct sha256 sha;
    uint8_t digest[32];
    int64_t number;
    sha256_init(&sha);
    sha256_add(&sha, options, bytes);
    sha256_end(&sha, digest);
    memcpy(&number, digest, sizeof number);
    return number;
}
