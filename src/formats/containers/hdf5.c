/* hdf5.c - superblocks, object headers and groups of HDF5 files.

   Invariants: 1. no byte is used that hdf5_read has not checked to be in the file; 2. every loop over things that the
   file links together takes a step of a number that a file of this size cannot need more of. */
#include "formats/containers/hdf5.h"

#include <string.h>

#include "base/memory/budget_alloc.h"
#include "formats/containers/hdf5_reader.h"

#define MOST_DEPTH 32 /* of a B-tree */

plim_status hdf5_read(struct hdf5 *hdf5, uint64_t at, void *to, size_t bytes, plim_error *error)
{
    if (at > hdf5->file_bytes || bytes > hdf5->file_bytes - at)
        return hdf5_bad(hdf5, error, hdf5->file_bytes, "the file ends here; %zu bytes from byte %llu on are missing",
                        bytes, (unsigned long long)at);
    return file_read(hdf5->file, hdf5->base + at, to, bytes, error);
}

plim_status hdf5_step(struct hdf5 *hdf5, uint64_t at, plim_error *error)
{
    if (hdf5->steps_left == 0)
        return hdf5_bad(hdf5, error, at, "the structure goes in circles");
    hdf5->steps_left--;
    return PLIM_OK;
}

static void begin_steps(struct hdf5 *hdf5)
{
    hdf5->steps_left = hdf5->file_bytes / 8 + 16;
}

/* ---- superblock ---- */

static plim_status read_superblock(struct hdf5 *hdf5, plim_error *error)
{
    uint8_t head[96] = {0};
    size_t bytes = hdf5->file_bytes < sizeof head ? (size_t)hdf5->file_bytes : sizeof head;
    TRY(hdf5_read(hdf5, 0, head, bytes, error));
    if (memcmp(head, "\x89HDF\r\n\x1a\n", 8) != 0)
        return hdf5_bad(hdf5, error, 0, "not an HDF5 file");
    unsigned version = head[8];
    if (version > 3)
        return hdf5_bad(hdf5, error, 8, "superblock version %u is not supported", version);
    int sizes = version < 2 ? 13 : 9, base = version < 2 ? 24 + 4 * (int)version : 12;
    if (bytes < (size_t)base + 48)
        return hdf5_bad(hdf5, error, bytes, "the file ends inside its superblock");
    if (head[sizes] != 8 || head[sizes + 1] != 8)
        return hdf5_bad(hdf5, error, (uint64_t)sizes, "addresses of %u and lengths of %u bytes: 8 are supported",
                        head[sizes], head[sizes + 1]);
    if (read_le(head + base, 8) != 0)
        return hdf5_bad(hdf5, error, (uint64_t)base, "a block of a user's own in front is not supported");
    /* Base, free space or extension, end of file; then a driver's block and the root's entry, or the root itself. */
    hdf5->root = version < 2 ? read_le(head + base + 40, 8) : read_le(head + base + 24, 8);
    return PLIM_OK;
}

plim_status hdf5_open_inside(struct hdf5 **out, struct budget *budget, struct file *file, uint64_t base, uint64_t bytes,
                             plim_error *error)
{
    struct hdf5 *hdf5;
    TRY(budget_alloc(&hdf5, budget, TAG_FORMATS, sizeof *hdf5, error));
    *hdf5 = (struct hdf5){.budget = budget, .file = file, .borrowed = true, .base = base, .file_bytes = bytes};
    return OPENED(out, hdf5, hdf5_close, read_superblock(hdf5, error));
}

plim_status hdf5_open(struct hdf5 **out, struct budget *budget, const char *path, plim_error *error)
{
    struct file *file;
    uint64_t bytes;
    TRY(file_open(&file, budget, path, FILE_READ, error));
    plim_status status = file_size(&bytes, file, error);
    if (status == PLIM_OK)
        status = hdf5_open_inside(out, budget, file, 0, bytes, error);
    if (status == PLIM_OK)
        (*out)->borrowed = false;
    else
        file_close(file);
    return status;
}

plim_status hdf5_load(struct hdf5 *hdf5, const struct hdf5_dataset *dataset, void *to, plim_error *error)
{
    return hdf5_read(hdf5, dataset->at, to, (size_t)dataset->bytes, error);
}

void hdf5_close(struct hdf5 *hdf5)
{
    if (!hdf5)
        return;
    if (!hdf5->borrowed)
        file_close(hdf5->file);
    budget_give(hdf5->budget, TAG_FORMATS, hdf5, sizeof *hdf5);
}

struct file *hdf5_file(struct hdf5 *hdf5)
{
    return hdf5->file;
}

/* ---- object headers ---- */

/* A piece of a header: where its messages are. Others wait, as continuations. */
struct span {
    uint64_t at, end;
};
#define MOST_SPANS 32

struct header {
    struct hdf5 *hdf5;
    int version;
    bool ordered; /* version 2: messages carry the order of their creation */
    int span_count, next_span;
    struct span span[MOST_SPANS];
};

static plim_status add_span(struct header *header, uint64_t at, uint64_t bytes, plim_error *error)
{
    struct hdf5 *hdf5 = header->hdf5;
    if (header->span_count == MOST_SPANS)
        return hdf5_bad(hdf5, error, at, "an object header of more than %d pieces", MOST_SPANS);
    if (at > hdf5->file_bytes || bytes > hdf5->file_bytes - at)
        return hdf5_bad(hdf5, error, hdf5->file_bytes, "the file ends here, inside an object header at byte %llu",
                        (unsigned long long)at);
    header->span[header->span_count++] = (struct span){at, at + bytes};
    return PLIM_OK;
}

static plim_status open_header(struct header *header, struct hdf5 *hdf5, uint64_t at, plim_error *error)
{
    uint8_t head[32] = {0};
    *header = (struct header){.hdf5 = hdf5};
    TRY(hdf5_read(hdf5, at, head, 16, error));
    if (head[0] == 1) {
        header->version = 1;
        return add_span(header, at + 16, read_le(head + 8, 4), error);
    }
    if (memcmp(head, "OHDR\2", 5) != 0)
        return hdf5_bad(hdf5, error, at, "not an object header");
    unsigned flags = head[5];
    uint64_t size_at = at + 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    int size_bytes = 1 << (flags & 3);
    TRY(hdf5_read(hdf5, size_at, head, (size_t)size_bytes, error));
    header->version = 2;
    header->ordered = flags & 0x04;
    return add_span(header, size_at + (uint64_t)size_bytes, read_le(head, size_bytes), error);
}

static plim_status add_continuation(struct header *header, const struct message *message, plim_error *error)
{
    struct hdf5 *hdf5 = header->hdf5;
    uint8_t mark[4];
    if (message->bytes < 16)
        return hdf5_bad(hdf5, error, message->at, "a continuation is cut short");
    uint64_t at = read_le(message->data, 8), bytes = read_le(message->data + 8, 8);
    if (header->version == 1)
        return add_span(header, at, bytes, error);
    TRY(hdf5_read(hdf5, at, mark, sizeof mark, error));
    if (memcmp(mark, "OCHK", 4) != 0 || bytes < 8)
        return hdf5_bad(hdf5, error, at, "not a continuation of an object header");
    return add_span(header, at + 4, bytes - 8, error); /* a checksum at the end */
}

/* The next message; *more false after the last. Continuations are followed, not given. */
static plim_status next_message(bool *more, struct message *out, struct header *header, plim_error *error)
{
    struct hdf5 *hdf5 = header->hdf5;
    uint8_t head[8];
    size_t head_bytes = header->version == 1 ? 8 : header->ordered ? 6 : 4;
    for (*more = true; header->next_span < header->span_count;) {
        struct span *span = &header->span[header->next_span];
        if (span->end - span->at < head_bytes) { /* a gap may be left */
            header->next_span++;
            continue;
        }
        TRY(hdf5_step(hdf5, span->at, error));
        TRY(hdf5_read(hdf5, span->at, head, head_bytes, error));
        bool old = header->version == 1;
        uint64_t bytes = old ? read_le(head + 2, 2) : read_le(head + 1, 2);
        out->type = (unsigned)(old ? read_le(head, 2) : head[0]);
        out->flags = old ? head[4] : head[3];
        out->at = span->at + head_bytes;
        if (bytes > span->end - out->at)
            return hdf5_bad(hdf5, error, span->at, "a message is longer than its object header");
        out->bytes = bytes < MESSAGE_MOST ? (size_t)bytes : MESSAGE_MOST;
        TRY(hdf5_read(hdf5, out->at, out->data, out->bytes, error));
        span->at = out->at + bytes;
        if (out->type != MESSAGE_CONTINUATION)
            return PLIM_OK;
        TRY(add_continuation(header, out, error));
    }
    *more = false;
    return PLIM_OK;
}

/* ---- groups ---- */

/* What each link of a group is shown to. *done: it has seen enough. */
struct visitor {
    struct hdf5 *hdf5;
    plim_status (*link)(bool *done, struct visitor *visitor, const char *name, uint64_t object, plim_error *error);
    const char *wanted; /* by find */
    size_t wanted_bytes;
    uint64_t found;
    hdf5_visit *visit; /* by names */
    void *context;
};

/* Names lie in a heap, each with a NUL behind it. */
static plim_status heap_name(char out[HDF5_NAME_MOST + 1], struct hdf5 *hdf5, uint64_t heap, uint64_t offset,
                             plim_error *error)
{
    uint8_t head[32];
    TRY(hdf5_read(hdf5, heap, head, sizeof head, error));
    if (memcmp(head, "HEAP", 4) != 0)
        return hdf5_bad(hdf5, error, heap, "not a heap of names");
    uint64_t bytes = read_le(head + 8, 8), at = read_le(head + 24, 8);
    if (offset >= bytes || at > hdf5->file_bytes || bytes > hdf5->file_bytes - at)
        return hdf5_bad(hdf5, error, heap, "a name lies outside its heap");
    size_t most = bytes - offset < HDF5_NAME_MOST ? (size_t)(bytes - offset) : HDF5_NAME_MOST;
    TRY(hdf5_read(hdf5, at + offset, out, most, error));
    out[most] = 0;
    return PLIM_OK;
}

/* Up to 2K entries of 40 bytes. */
static plim_status visit_symbols(bool *done, struct visitor *visitor, uint64_t at, uint64_t heap, plim_error *error)
{
    struct hdf5 *hdf5 = visitor->hdf5;
    uint8_t head[8], entry[40];
    char name[HDF5_NAME_MOST + 1];
    TRY(hdf5_read(hdf5, at, head, sizeof head, error));
    if (memcmp(head, "SNOD", 4) != 0)
        return hdf5_bad(hdf5, error, at, "not a node of symbols");
    for (uint64_t i = 0, count = read_le(head + 6, 2); i < count && !*done; i++) {
        TRY(hdf5_step(hdf5, at, error));
        TRY(hdf5_read(hdf5, at + 8 + 40 * i, entry, sizeof entry, error));
        TRY(heap_name(name, hdf5, heap, read_le(entry, 8), error));
        if (read_le(entry + 16, 4) != 2) /* 2: a soft link, to a name */
            TRY(visitor->link(done, visitor, name, read_le(entry + 8, 8), error));
    }
    return PLIM_OK;
}

/* Whether the name that is looked for comes behind a child of a tree whose last name is at `offset`: a group of
   thousands is not read through for each of them. */
static plim_status lies_behind(bool *out, const struct visitor *visitor, uint64_t offset, uint64_t heap,
                               plim_error *error)
{
    char name[HDF5_NAME_MOST + 1];
    *out = false;
    if (!visitor->wanted)
        return PLIM_OK;
    TRY(heap_name(name, visitor->hdf5, heap, offset, error));
    size_t length = strlen(name), bytes = length < visitor->wanted_bytes ? length : visitor->wanted_bytes;
    int order = memcmp(visitor->wanted, name, bytes);
    *out = order > 0 || (order == 0 && visitor->wanted_bytes > length);
    return PLIM_OK;
}

/* A B-tree of groups: 24 bytes, then key, child, key, child, ..., key. */
static plim_status visit_tree(bool *done, struct visitor *visitor, uint64_t at, uint64_t heap, int depth,
                              plim_error *error)
{
    struct hdf5 *hdf5 = visitor->hdf5;
    uint8_t head[24], child[16]; /* a child, and the name behind it */
    TRY(hdf5_step(hdf5, at, error));
    TRY(hdf5_read(hdf5, at, head, sizeof head, error));
    if (memcmp(head, "TREE", 4) != 0 || head[4] != 0 || depth > MOST_DEPTH)
        return hdf5_bad(hdf5, error, at, "not a tree of a group");
    for (uint64_t i = 0, count = read_le(head + 6, 2); i < count && !*done; i++) {
        bool before;
        TRY(hdf5_read(hdf5, at + 32 + 16 * i, child, sizeof child, error));
        TRY(lies_behind(&before, visitor, read_le(child + 8, 8), heap, error));
        if (before)
            continue;
        if (head[5] == 0)
            TRY(visit_symbols(done, visitor, read_le(child, 8), heap, error));
        else
            TRY(visit_tree(done, visitor, read_le(child, 8), heap, depth + 1, error));
    }
    return PLIM_OK;
}

/* A link in the header itself. */
static plim_status visit_link(bool *done, struct visitor *visitor, const struct message *message, plim_error *error)
{
    struct cursor cursor;
    uint8_t version, flags, type = 0, length_bytes[8] = {0};
    const uint8_t *part;
    cursor_init(&cursor, message->data, message->bytes, file_path(visitor->hdf5->file), message->at);
    if (!cursor_u8(&version, &cursor) || version != 1 || !cursor_u8(&flags, &cursor))
        return cursor_fail(&cursor, error, "not a link");
    bool whole = !(flags & 0x08) || cursor_u8(&type, &cursor);
    whole = whole && cursor_take(&part, &cursor, (size_t)(flags & 0x04 ? 8 : 0) + (flags & 0x10 ? 1 : 0));
    int bytes = 1 << (flags & 3);
    if (!whole || !cursor_take(&part, &cursor, (size_t)bytes))
        return cursor_fail(&cursor, error, "a link is cut short");
    memcpy(length_bytes, part, (size_t)bytes);
    uint64_t length = read_le(length_bytes, 8);
    if (type != 0 || length > HDF5_NAME_MOST)
        return PLIM_OK; /* by name, or to another file */
    char name[HDF5_NAME_MOST + 1];
    if (!cursor_take(&part, &cursor, (size_t)length))
        return cursor_fail(&cursor, error, "a link is cut short");
    memcpy(name, part, (size_t)length);
    name[length] = 0;
    if (!cursor_take(&part, &cursor, 8))
        return cursor_fail(&cursor, error, "a link is cut short");
    return visitor->link(done, visitor, name, read_le(part, 8), error);
}

/* Links that are too many for the header lie in a heap of the newer kind. */
static plim_status check_dense(struct hdf5 *hdf5, const struct message *message, plim_error *error)
{
    size_t at = 2 + (message->bytes > 1 && message->data[1] & 1 ? 8 : 0);
    if (message->bytes < at + 8 || read_le(message->data + at, 8) == HDF5_UNDEFINED)
        return PLIM_OK;
    hdf5_bad(hdf5, error, message->at, "a group in the newer, dense form is not supported");
    return hint(error, PLIM_BAD_DATA,
                "h5py.File(..., libver='earliest') writes it in the older one; h5repack does, too");
}

static plim_status visit_group(struct visitor *visitor, uint64_t at, plim_error *error)
{
    struct hdf5 *hdf5 = visitor->hdf5;
    struct header header;
    struct message message;
    bool more = true, done = false, group = false;
    TRY(open_header(&header, hdf5, at, error));
    while (!done) {
        TRY(next_message(&more, &message, &header, error));
        if (!more)
            break;
        group = group || message.type == MESSAGE_SYMBOL_TABLE || message.type == MESSAGE_LINK_INFO;
        if (message.type == MESSAGE_LINK_INFO)
            TRY(check_dense(hdf5, &message, error));
        if (message.type == MESSAGE_LINK)
            TRY(visit_link(&done, visitor, &message, error));
        if (message.type == MESSAGE_SYMBOL_TABLE && message.bytes >= 16)
            TRY(visit_tree(&done, visitor, read_le(message.data, 8), read_le(message.data + 8, 8), 0, error));
    }
    return group ? PLIM_OK : hdf5_bad(hdf5, error, at, "not a group");
}

/* ---- by name ---- */

static plim_status match(bool *done, struct visitor *visitor, const char *name, uint64_t object, plim_error *error)
{
    (void)error;
    if (strlen(name) != visitor->wanted_bytes || memcmp(name, visitor->wanted, visitor->wanted_bytes) != 0)
        return PLIM_OK;
    visitor->found = object;
    *done = true;
    return PLIM_OK;
}

static plim_status read_dataset(struct hdf5_dataset *out, struct hdf5 *hdf5, uint64_t at, plim_error *error)
{
    struct header header;
    struct message message;
    struct hdf5_dataset dataset = {0};
    uint32_t seen = 0;
    bool more = true;
    TRY(open_header(&header, hdf5, at, error));
    for (;;) {
        TRY(next_message(&more, &message, &header, error));
        if (!more)
            break;
        TRY(hdf5_take_message(&dataset, &seen, hdf5, &message, error));
    }
    TRY(hdf5_check_dataset(&dataset, seen, hdf5, at, error));
    *out = dataset;
    return PLIM_OK;
}

plim_status hdf5_find(struct hdf5_dataset *out, struct hdf5 *hdf5, const char *path, plim_error *error)
{
    uint64_t object = hdf5->root;
    const char *at = path;
    begin_steps(hdf5);
    for (at += strspn(at, "/"); *at; at += strspn(at, "/")) {
        struct visitor visitor = {
            .hdf5 = hdf5, .link = match, .wanted = at, .wanted_bytes = strcspn(at, "/"), .found = HDF5_UNDEFINED};
        TRY(visit_group(&visitor, object, error));
        if (visitor.found == HDF5_UNDEFINED)
            return fail_at(error, PLIM_BAD_DATA, file_path(hdf5->file), "there is no '%.200s' in the file", path);
        object = visitor.found;
        at += visitor.wanted_bytes;
    }
    return read_dataset(out, hdf5, object, error);
}

static plim_status visit_object(bool *done, struct visitor *visitor, const char *name, uint64_t object,
                                plim_error *error)
{
    (void)object, (void)error;
    *done = !visitor->visit(visitor->context, name);
    return PLIM_OK;
}

plim_status hdf5_names(struct hdf5 *hdf5, hdf5_visit *visit, void *context, plim_error *error)
{
    struct visitor visitor = {.hdf5 = hdf5, .link = visit_object, .visit = visit, .context = context};
    begin_steps(hdf5);
    return visit_group(&visitor, hdf5->root, error);
}
