/* safetensors_write.c - writes safetensors files.

   Tensors are declared, then the header is written, then their bytes in the same
   order: through one buffer, and the pages written are dropped as it goes.
   Invariants: 1. PATH itself is touched by one rename only; 2. after any failure
   PATH.partial is gone and every later call fails. */
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "base/numbers/digest.h"
#include "base/numbers/hash.h"
#include "base/text/json.h"
#include "formats/files/heapsort.h"
#include "formats/files/partial_file.h"
#include "formats/weights/safetensors.h"

#define DATA_ALIGNMENT 4096
#define SEAL_NAME      "plimsoll.sha256"
#define SEAL_BYTES     32
#define TAG            TAG_CHECKPOINT

struct safetensors_writer {
    struct budget *budget;
    struct write_buffer out;
    struct partial_paths names;
    struct text notes, tensors; /* each an open JSON object */
    struct json_writer notes_json, tensors_json;
    uint64_t *name_hash; /* of the names declared: duplicates are found by sorting */
    size_t name_count, name_capacity;
    uint64_t data_bytes, given; /* declared; given so far */
    struct sha256 sha;
    bool own_buffer, has_notes, seal, started, finished, committed;
    plim_status failed;
};

/* Remembers a failure and takes the partial file away at once. */
static plim_status note_failure(struct safetensors_writer *writer, plim_status status)
{
    if (status == PLIM_OK)
        return PLIM_OK;
    writer->failed = status;
    file_close(writer->out.file);
    writer->out.file = NULL;
    file_remove(writer->names.partial, NULL);
    return status;
}

static plim_status check_usable(const struct safetensors_writer *writer, plim_error *error)
{
    if (writer->failed)
        return fail_at(error, writer->failed, writer->names.path, "writing failed before");
    return writer->committed ? fail_at(error, PLIM_INTERNAL, writer->names.path, "already written") : PLIM_OK;
}

/* ---- making and freeing -------------------------------------------------- */

static plim_status open_writer(struct safetensors_writer *writer, const char *path, plim_error *error)
{
    TRY(partial_names(&writer->names, writer->budget, TAG, path, error));
    if (!writer->out.bytes) {
        TRY(budget_alloc(&writer->out.bytes, writer->budget, TAG, writer->out.capacity, error));
        writer->own_buffer = true;
    }
    json_object(&writer->tensors_json, NULL);
    json_object(&writer->notes_json, NULL);
    json_object(&writer->notes_json, "__metadata__");
    return file_open(&writer->out.file, writer->budget, writer->names.partial, FILE_CREATE, error);
}

plim_status safetensors_create(struct safetensors_writer **out, struct budget *budget, const char *path, void *buffer,
                               uint64_t buffer_bytes, plim_error *error)
{
    if (buffer && buffer_bytes < DATA_ALIGNMENT)
        return fail_at(error, PLIM_INTERNAL, path, "a buffer of %llu bytes", (unsigned long long)buffer_bytes);
    struct safetensors_writer *writer;
    TRY(budget_alloc(&writer, budget, TAG, sizeof *writer, error));
    writer->budget = budget;
    writer->out.bytes = buffer;
    writer->out.drop = true;
    writer->out.capacity = buffer_bytes < DATA_ALIGNMENT ? DATA_ALIGNMENT : buffer_bytes;
    text_init(&writer->notes, budget, TAG);
    text_init(&writer->tensors, budget, TAG);
    json_init(&writer->notes_json, &writer->notes);
    json_init(&writer->tensors_json, &writer->tensors);
    sha256_init(&writer->sha);
    return OPENED(out, writer, safetensors_abandon, open_writer(writer, path, error));
}

static void release_header(struct safetensors_writer *writer)
{
    text_release(&writer->notes);
    text_release(&writer->tensors);
    budget_give(writer->budget, TAG, writer->name_hash, writer->name_capacity * sizeof writer->name_hash[0]);
    writer->name_hash = NULL;
    writer->name_capacity = 0;
}

void safetensors_abandon(struct safetensors_writer *writer)
{
    if (!writer)
        return;
    if (writer->out.file) {
        file_close(writer->out.file);
        file_remove(writer->names.partial, NULL);
    }
    release_header(writer);
    if (writer->own_buffer)
        budget_give(writer->budget, TAG, writer->out.bytes, writer->out.capacity);
    budget_give(writer->budget, TAG, writer->names.path, writer->names.block_bytes);
    budget_give(writer->budget, TAG, writer, sizeof *writer);
}

/* ---- declaring ------------------------------------------------------------ */

static plim_status grow_names(struct safetensors_writer *writer, size_t capacity, plim_error *error)
{
    size_t old = writer->name_capacity;
    uint64_t *more = budget_grow(writer->budget, TAG, writer->name_hash, old * sizeof *more, capacity * sizeof *more);
    if (!more)
        return budget_refused(writer->budget, TAG, capacity * sizeof *more, error);
    writer->name_hash = more;
    writer->name_capacity = capacity;
    return PLIM_OK;
}

static plim_status expect(struct safetensors_writer *writer, uint64_t header_bytes, uint64_t tensors, plim_error *error)
{
    text_reserve(&writer->tensors, header_bytes);
    if (writer->tensors.failed)
        return budget_refused(writer->budget, TAG, header_bytes + 1, error);
    return tensors + 1 > writer->name_capacity ? grow_names(writer, tensors + 1, error) : PLIM_OK; /* and the seal */
}

plim_status safetensors_expect(struct safetensors_writer *writer, uint64_t header_bytes, uint64_t tensors,
                               plim_error *error)
{
    TRY(check_usable(writer, error));
    return note_failure(writer, expect(writer, header_bytes, tensors, error));
}

/* The text; hashes of names, and indices to sort them by. What it had before, it gives back then. */
uint64_t safetensors_header_cost(uint64_t header_bytes, uint64_t tensors)
{
    return budget_charge(header_bytes + 1) + budget_charge((tensors + 1) * sizeof(uint64_t)) +
           budget_charge((tensors + 1) * sizeof(uint32_t));
}

static plim_status remember_name(struct safetensors_writer *writer, const char *name, plim_error *error)
{
    size_t capacity = writer->name_capacity;
    if (writer->name_count == capacity)
        TRY(grow_names(writer, capacity ? 2 * capacity : 64, error));
    writer->name_hash[writer->name_count++] = fnv1a_text(name);
    return PLIM_OK;
}

static void add_entry(struct json_writer *json, const char *name, enum type type, const struct shape *shape,
                      uint64_t begin, uint64_t end)
{
    json_object(json, name);
    json_string(json, "dtype", type_safetensors_name(type));
    json_array(json, "shape");
    for (int i = 0; i < shape->rank; i++)
        json_int(json, NULL, shape->dim[i]);
    json_end_array(json);
    json_array(json, "data_offsets");
    json_uint(json, NULL, begin);
    json_uint(json, NULL, end);
    json_end_array(json);
    json_end_object(json);
}

static plim_status declare(struct safetensors_writer *writer, const char *name, enum type type,
                           const struct shape *shape, plim_error *error)
{
    uint64_t bytes, end;
    if (writer->started)
        return fail_at(error, PLIM_INTERNAL, writer->names.path, "tensor '%.64s' declared after the first write", name);
    if (strcmp(name, "__metadata__") == 0)
        return fail_at(error, PLIM_UNSUPPORTED, writer->names.path, "a tensor cannot have the name __metadata__");
    if (!shape_bytes(&bytes, shape, type) || !add_u64(&end, writer->data_bytes, bytes) || end > INT64_MAX)
        return fail_at(error, PLIM_UNSUPPORTED, writer->names.path, "tensor '%.64s' is too large for a file", name);
    TRY(remember_name(writer, name, error));
    add_entry(&writer->tensors_json, name, type, shape, writer->data_bytes, end);
    if (writer->tensors.failed)
        return budget_refused(writer->budget, TAG, 2 * writer->tensors.capacity, error);
    writer->data_bytes = end;
    return PLIM_OK;
}

plim_status safetensors_declare(struct safetensors_writer *writer, const char *name, enum type type,
                                const struct shape *shape, plim_error *error)
{
    TRY(check_usable(writer, error));
    return note_failure(writer, declare(writer, name, type, shape, error));
}

plim_status safetensors_note(struct safetensors_writer *writer, const char *key, const char *value, plim_error *error)
{
    TRY(check_usable(writer, error));
    if (writer->started)
        return note_failure(
            writer, fail_at(error, PLIM_INTERNAL, writer->names.path, "note '%.64s' after the first write", key));
    writer->has_notes = true;
    json_string(&writer->notes_json, key, value ? value : "");
    if (writer->notes.failed)
        return note_failure(writer, budget_refused(writer->budget, TAG, 2 * writer->notes.capacity, error));
    return PLIM_OK;
}

void safetensors_seal(struct safetensors_writer *writer)
{
    writer->seal = true;
}

/* ---- bytes into the file --------------------------------------------------- */

static plim_status append_bytes(struct safetensors_writer *writer, const void *data, uint64_t bytes, plim_error *error)
{
    sha256_add(&writer->sha, data, bytes);
    return write_buffer_put(&writer->out, data, bytes, error);
}

/* ---- the header -------------------------------------------------------------- */

static bool hash_before(const void *context, uint32_t a, uint32_t b)
{
    const uint64_t *hash = context;
    return hash[a] < hash[b];
}

/* Two equal hashes of 64 bits are taken for two equal names. */
static plim_status check_unique(struct safetensors_writer *writer, plim_error *error)
{
    size_t count = writer->name_count;
    uint32_t *order = budget_take_array(writer->budget, TAG, count, sizeof *order);
    plim_status status = PLIM_OK;
    if (!order)
        return budget_refused(writer->budget, TAG, count * sizeof *order, error);
    sort_indices(order, (uint32_t)count, hash_before, writer->name_hash, NULL);
    for (size_t i = 1; i < count && status == PLIM_OK; i++)
        if (writer->name_hash[order[i]] == writer->name_hash[order[i - 1]])
            status = fail_at(error, PLIM_INTERNAL, writer->names.path, "tensors %u and %u have the same name",
                             order[i - 1], order[i]);
    budget_give(writer->budget, TAG, order, count * sizeof *order);
    return status;
}

/* Ends both objects. With notes the header is
   {"__metadata__":{...}  ,  what follows the brace of {"a":{...}} */
static plim_status end_header(struct safetensors_writer *writer, plim_error *error)
{
    if (writer->seal)
        TRY(declare(writer, SEAL_NAME, TYPE_U8, &(struct shape){.rank = 1, .dim = {SEAL_BYTES}}, error));
    TRY(check_unique(writer, error));
    json_end_object(&writer->tensors_json);
    json_end_object(&writer->notes_json);
    if (writer->tensors.failed || writer->notes.failed)
        return budget_refused(writer->budget, TAG, writer->tensors.capacity + writer->notes.capacity, error);
    if (writer->tensors.length + writer->notes.length + DATA_ALIGNMENT > SAFETENSORS_HEADER_MOST)
        return fail_at(error, PLIM_UNSUPPORTED, writer->names.path, "the header would have more than %d bytes",
                       SAFETENSORS_HEADER_MOST);
    return PLIM_OK;
}

static plim_status put_spaces(struct safetensors_writer *writer, uint64_t count, plim_error *error)
{
    char spaces[64];
    memset(spaces, ' ', sizeof spaces);
    for (; count > sizeof spaces; count -= sizeof spaces)
        TRY(append_bytes(writer, spaces, sizeof spaces, error));
    return append_bytes(writer, spaces, count, error);
}

static plim_status put_header(struct safetensors_writer *writer, plim_error *error)
{
    TRY(end_header(writer, error));
    const char *tensors = writer->tensors.data;
    uint64_t tensors_bytes = writer->tensors.length, notes_bytes = writer->has_notes ? writer->notes.length : 0;
    const char *between = "";
    if (writer->has_notes) {
        tensors++;
        tensors_bytes--;
        between = writer->name_count ? "," : "";
    }
    uint64_t bytes = notes_bytes + strlen(between) + tensors_bytes;
    uint64_t length = round_up(8 + bytes, DATA_ALIGNMENT) - 8;
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (uint8_t)(length >> (8 * i));
    TRY(append_bytes(writer, prefix, sizeof prefix, error));
    TRY(append_bytes(writer, writer->notes.data, notes_bytes, error));
    TRY(append_bytes(writer, between, strlen(between), error));
    TRY(append_bytes(writer, tensors, tensors_bytes, error));
    return put_spaces(writer, length - bytes, error);
}

static plim_status start(struct safetensors_writer *writer, plim_error *error)
{
    if (writer->started)
        return PLIM_OK;
    TRY(put_header(writer, error));
    release_header(writer);
    writer->started = true;
    return PLIM_OK;
}

/* ---- data and the end ---------------------------------------------------------- */

static plim_status write_data(struct safetensors_writer *writer, const void *data, uint64_t bytes, plim_error *error)
{
    TRY(start(writer, error));
    uint64_t declared = writer->data_bytes - (writer->seal ? SEAL_BYTES : 0);
    if (bytes > declared - writer->given)
        return fail_at(error, PLIM_INTERNAL, writer->names.path, "more bytes than the %llu that were declared",
                       (unsigned long long)declared);
    writer->given += bytes;
    return append_bytes(writer, data, bytes, error);
}

plim_status safetensors_write(struct safetensors_writer *writer, const void *data, uint64_t bytes, plim_error *error)
{
    TRY(check_usable(writer, error));
    return note_failure(writer, write_data(writer, data, bytes, error));
}

static plim_status finish_file(struct safetensors_writer *writer, plim_error *error)
{
    uint8_t digest[SEAL_BYTES];
    TRY(start(writer, error));
    uint64_t declared = writer->data_bytes - (writer->seal ? SEAL_BYTES : 0);
    if (writer->given != declared)
        return fail_at(error, PLIM_INTERNAL, writer->names.path, "%llu bytes of %llu that were declared",
                       (unsigned long long)writer->given, (unsigned long long)declared);
    if (writer->seal) {
        sha256_end(&writer->sha, digest);
        sha256_init(&writer->sha); /* put adds to it, and nobody asks for that */
        TRY(append_bytes(writer, digest, sizeof digest, error));
    }
    TRY(write_buffer_flush(&writer->out, error));
    TRY(file_sync(writer->out.file, error));
    file_drop(writer->out.file, writer->out.dropped, writer->out.at - writer->out.dropped);
    writer->finished = true;
    return PLIM_OK;
}

plim_status safetensors_finish(struct safetensors_writer *writer, plim_error *error)
{
    TRY(check_usable(writer, error));
    return writer->finished ? PLIM_OK : note_failure(writer, finish_file(writer, error));
}

plim_status safetensors_commit(struct safetensors_writer *writer, plim_error *error)
{
    TRY(safetensors_finish(writer, error));
    TRY(note_failure(writer, file_rename(writer->names.partial, writer->names.path, error)));
    writer->committed = true;
    file_close(writer->out.file);
    writer->out.file = NULL;
    return partial_sync_folder(writer->names.path, error);
}
