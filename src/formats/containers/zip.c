/* zip.c - the directory at the end of a zip file, and the members it tells of.

   Invariant: no offset or size of the file is used before it was checked to lie where such a thing can lie: members
   before the directory, the directory before its end record, that at the end of the file. */
#include "formats/containers/zip.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/containers/gzip.h"
#include "formats/files/cursor.h"

#define END_BYTES      22
#define END64_BYTES    56
#define LOCATOR_BYTES  20
#define ENTRY_BYTES    46
#define LOCAL_BYTES    30
#define COMMENT_MOST   65535
#define EXTRA_ZIP64    1
#define FLAG_ENCRYPTED 1
/* Of an extra field so much is looked at; zip64's part is the first that writers put there. */
#define EXTRA_MOST      1024
#define METHOD_STORED   0
#define METHOD_DEFLATED 8

/* What the end record says of the directory. */
struct end_record {
    uint64_t at; /* of the record itself: the directory ends here */
    uint64_t disk, directory_disk, count_here, count, directory_bytes, directory_at;
};

#define bad(zip, at, error, ...) fail_byte(error, PLIM_BAD_DATA, file_path((zip)->file), at, __VA_ARGS__)

/* ---- the end of the file ------------------------------------------------------ */

/* Six numbers of these widths, one behind another. */
static struct end_record parse_end(uint64_t at, const uint8_t *fields, const int widths[6])
{
    uint64_t value[6];
    for (int i = 0; i < 6; fields += widths[i++])
        value[i] = read_le(fields, widths[i]);
    return (struct end_record){at, value[0], value[1], value[2], value[3], value[4], value[5]};
}

/* The last end record whose comment reaches the end of the file. */
static bool find_end(struct end_record *out, const uint8_t *tail, size_t bytes, uint64_t tail_at)
{
    for (size_t at = bytes - END_BYTES + 1; at-- > 0;) {
        const uint8_t *end = tail + at;
        if (memcmp(end, "PK\5\6", 4) != 0 || at + END_BYTES + read_le(end + 20, 2) != bytes)
            continue;
        *out = parse_end(tail_at + at, end + 4, (const int[]){2, 2, 2, 2, 4, 4});
        return true;
    }
    return false;
}

/* Most files have no comment: their last bytes are the record. */
static plim_status read_end(struct end_record *out, struct zip *zip, uint64_t present, plim_error *error)
{
    uint8_t record[END_BYTES];
    if (present < END_BYTES)
        return bad(zip, present, error, "not a zip file: it is too short");
    TRY(file_read(zip->file, present - END_BYTES, record, END_BYTES, error));
    if (find_end(out, record, END_BYTES, present - END_BYTES))
        return PLIM_OK;
    size_t bytes = present < END_BYTES + COMMENT_MOST ? (size_t)present : END_BYTES + COMMENT_MOST;
    uint8_t *tail;
    TRY(budget_alloc(&tail, zip->budget, TAG_FORMATS, bytes, error));
    plim_status status = file_read(zip->file, present - bytes, tail, bytes, error);
    if (status == PLIM_OK && !find_end(out, tail, bytes, present - bytes))
        status = bad(zip, present, error, "not a zip file, or cut short: no end record");
    budget_give(zip->budget, TAG_FORMATS, tail, bytes);
    return status;
}

/* Where the end record's fields are too narrow, a wide one stands before it, and before that its whereabouts. */
static plim_status read_end64(struct end_record *end, struct zip *zip, plim_error *error)
{
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    if (end->at < LOCATOR_BYTES + END64_BYTES)
        return PLIM_OK;
    TRY(file_read(zip->file, end->at - LOCATOR_BYTES, locator, LOCATOR_BYTES, error));
    if (memcmp(locator, "PK\6\7", 4) != 0)
        return PLIM_OK;
    uint64_t at = read_le(locator + 8, 8), behind = end->at - LOCATOR_BYTES;
    if (at > behind - END64_BYTES)
        return bad(zip, behind + 8, error, "the zip64 end record lies outside the file");
    TRY(file_read(zip->file, at, record, END64_BYTES, error));
    if (memcmp(record, "PK\6\6", 4) != 0 || read_le(record + 4, 8) != behind - at - 12)
        return bad(zip, at, error, "there is no zip64 end record where one is said to be");
    *end = parse_end(at, record + 16, (const int[]){4, 4, 8, 8, 8, 8});
    return PLIM_OK;
}

static plim_status read_directory(struct zip *zip, plim_error *error)
{
    struct end_record end = {0};
    uint64_t present, behind;
    TRY(file_size(&present, zip->file, error));
    TRY(read_end(&end, zip, present, error));
    TRY(read_end64(&end, zip, error));
    if (end.disk || end.directory_disk || end.count != end.count_here)
        return bad(zip, end.at, error, "zip files in parts are not supported");
    if (!add_u64(&behind, end.directory_at, end.directory_bytes) || behind != end.at)
        return bad(zip, end.at, error, "the directory is not where the end record says");
    if (end.count > end.directory_bytes / ENTRY_BYTES)
        return bad(zip, end.at, error, "more members are declared than the directory has room for");
    zip->directory_at = end.directory_at;
    zip->directory_bytes = end.directory_bytes;
    zip->count = end.count;
    return PLIM_OK;
}

plim_status zip_open(struct zip **out, struct budget *budget, const char *path, plim_error *error)
{
    struct zip *zip;
    TRY(budget_alloc(&zip, budget, TAG_FORMATS, sizeof *zip, error));
    zip->budget = budget;
    plim_status status = file_open(&zip->file, budget, path, FILE_READ, error);
    if (status == PLIM_OK)
        status = read_directory(zip, error);
    return OPENED(out, zip, zip_close, status);
}

void zip_close(struct zip *zip)
{
    if (!zip)
        return;
    file_close(zip->file);
    budget_give(zip->budget, TAG_FORMATS, zip, sizeof *zip);
}

/* ---- the directory -------------------------------------------------------------- */

/* The sizes that did not fit into 32 bits, from the extra field. */
static bool widen(struct zip_member *member, struct cursor *extra)
{
    uint64_t id, bytes;
    const uint8_t *data;
    uint64_t *wide[] = {&member->bytes, &member->packed_bytes, &member->header_at};
    while (cursor_le(&id, extra, 2) && cursor_le(&bytes, extra, 2)) {
        if (!cursor_take(&data, extra, bytes))
            return false;
        if (id != EXTRA_ZIP64)
            continue;
        struct cursor field;
        cursor_init(&field, data, bytes, extra->path, 0);
        for (int i = 0; i < 3; i++)
            if (*wide[i] == UINT32_MAX && !cursor_le(wide[i], &field, 8))
                return false;
        return true;
    }
    return true;
}

/* What is said of a member against what can be. */
static plim_status check_member(const struct zip_member *member, uint64_t entry_at, const struct zip_position *position,
                                const struct zip *zip, plim_error *error)
{
    uint64_t behind, least = LOCAL_BYTES + strlen(member->name), most;
    if (member->header_at < position->floor)
        return bad(zip, entry_at, error, "the member overlaps the one before it");
    if (!add_u64(&behind, member->header_at, least) || !add_u64(&behind, behind, member->packed_bytes) ||
        behind > zip->directory_at)
        return bad(zip, entry_at, error, "the member lies outside the file");
    if (member->method == METHOD_STORED && member->bytes != member->packed_bytes)
        return bad(zip, entry_at, error, "a stored member has two sizes");
    if (member->method == METHOD_DEFLATED && mul_u64(&most, member->packed_bytes, GZIP_MOST_RATIO) &&
        member->bytes > most)
        return bad(zip, entry_at, error, "the member cannot unpack to as many bytes as it declares");
    return PLIM_OK;
}

/* Name and extra field behind the entry's fixed part. */
static plim_status read_entry_rest(struct zip_member *member, size_t name_bytes, size_t extra_bytes, uint64_t at,
                                   struct zip *zip, plim_error *error)
{
    uint8_t extra[EXTRA_MOST];
    struct cursor cursor;
    if (name_bytes == 0 || name_bytes > ZIP_NAME_MOST)
        return bad(zip, at, error, "a name of %zu bytes: 1 to %d are possible", name_bytes, ZIP_NAME_MOST);
    TRY(file_read(zip->file, at + ENTRY_BYTES, member->name, name_bytes, error));
    member->name[name_bytes] = 0;
    if (strlen(member->name) != name_bytes)
        return bad(zip, at + ENTRY_BYTES, error, "a name with a zero byte in it");
    size_t bytes = extra_bytes < EXTRA_MOST ? extra_bytes : EXTRA_MOST;
    TRY(file_read(zip->file, at + ENTRY_BYTES + name_bytes, extra, bytes, error));
    cursor_init(&cursor, extra, bytes, file_path(zip->file), at + ENTRY_BYTES + name_bytes);
    if (!widen(member, &cursor))
        return bad(zip, at, error, "the member's extra field is cut short");
    return PLIM_OK;
}

plim_status zip_next(bool *more, struct zip_member *out, struct zip_position *position, struct zip *zip,
                     plim_error *error)
{
    uint8_t entry[ENTRY_BYTES];
    uint64_t at = zip->directory_at + position->at, left = zip->directory_bytes - position->at;
    *more = position->index < zip->count;
    if (!*more)
        return left ? bad(zip, at, error, "the directory goes on behind its last member") : PLIM_OK;
    if (left < ENTRY_BYTES)
        return bad(zip, at, error, "the directory ends inside a member");
    TRY(file_read(zip->file, at, entry, ENTRY_BYTES, error));
    uint64_t name = read_le(entry + 28, 2), extra = read_le(entry + 30, 2), comment = read_le(entry + 32, 2);
    if (memcmp(entry, "PK\1\2", 4) != 0 || name + extra + comment > left - ENTRY_BYTES)
        return bad(zip, at, error, "the directory is damaged: no member where one should be");
    *out = (struct zip_member){.flags = (uint16_t)read_le(entry + 8, 2),
                               .method = (uint16_t)read_le(entry + 10, 2),
                               .crc = (uint32_t)read_le(entry + 16, 4),
                               .packed_bytes = read_le(entry + 20, 4),
                               .bytes = read_le(entry + 24, 4),
                               .header_at = read_le(entry + 42, 4),
                               .limit = zip->directory_at};
    TRY(read_entry_rest(out, (size_t)name, (size_t)extra, at, zip, error));
    TRY(check_member(out, at, position, zip, error));
    position->at += ENTRY_BYTES + name + extra + comment;
    position->index++;
    position->floor = out->header_at + LOCAL_BYTES + name + out->packed_bytes;
    return PLIM_OK;
}

/* To the end, even when it was found: the one behind bounds it, and a second one of the name would be a trap. */
plim_status zip_find(struct zip_member *out, struct zip *zip, const char *name, plim_error *error)
{
    struct zip_position position = {0};
    struct zip_member member;
    bool more = true, found = false, last = false;
    for (;;) {
        TRY(zip_next(&more, &member, &position, zip, error));
        if (!more)
            break;
        if (last)
            out->limit = member.header_at;
        last = strcmp(member.name, name) == 0;
        if (last && found)
            return bad(zip, member.header_at, error, "there are two members of the name %s", name);
        if (last)
            *out = member;
        found = found || last;
    }
    if (!found)
        return bad(zip, zip->directory_at, error, "there is no member %s", name);
    return zip_locate(out, zip, error);
}

plim_status zip_locate(struct zip_member *member, struct zip *zip, plim_error *error)
{
    uint8_t local[LOCAL_BYTES];
    char name[ZIP_NAME_MOST + 1];
    size_t name_bytes = strlen(member->name);
    TRY(file_read(zip->file, member->header_at, local, LOCAL_BYTES, error));
    if (memcmp(local, "PK\3\4", 4) != 0 || read_le(local + 26, 2) != name_bytes)
        return bad(zip, member->header_at, error, "there is no member where the directory says");
    TRY(file_read(zip->file, member->header_at + LOCAL_BYTES, name, name_bytes, error));
    if (memcmp(name, member->name, name_bytes) != 0 || read_le(local + 8, 2) != member->method)
        return bad(zip, member->header_at, error, "the member is not the one of the directory");
    uint64_t at = member->header_at + LOCAL_BYTES + name_bytes + read_le(local + 28, 2);
    if (at > member->limit || member->packed_bytes > member->limit - at)
        return bad(zip, member->header_at, error, "the member runs into the next one");
    if (member->flags & FLAG_ENCRYPTED)
        return bad(zip, member->header_at, error, "encrypted members are not supported");
    if (member->method != METHOD_STORED && member->method != METHOD_DEFLATED)
        return bad(zip, member->header_at, error, "compression %d is not supported: stored and deflated are",
                   member->method);
    member->at = at;
    return PLIM_OK;
}
