/* tar.c - headers of 512 bytes, each with a checksum, and data in blocks of the same size.

   Invariants: 1. `next_at` is where the next header stands, whatever was read of the data; 2. a size is believed of a
   raw file only when the file has as many bytes. */
#include "formats/containers/tar.h"

#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"

#define BLOCK_BYTES ((uint64_t)512)
#define PAX_MOST    65536

struct tar {
    struct budget *budget;
    struct byte_stream *stream;
    uint64_t next_at;
    uint64_t data_left; /* of the current member */
    uint64_t present;   /* size of a raw file; UINT64_MAX for a compressed one */
    bool ended;
    char name[TAR_NAME_MOST + 1];
};

/* One header block, decoded. */
struct header {
    char kind;
    uint64_t bytes;
    const uint8_t *block;
};

/* What headers in front of a member's own say of it. */
struct ahead {
    bool has_name, has_bytes;
    uint64_t bytes;
};

plim_status tar_open(struct tar **out, struct budget *budget, const char *path, enum compression compression,
                     plim_error *error)
{
    struct tar *tar;
    TRY(budget_alloc(&tar, budget, TAG_FORMATS, sizeof *tar, error));
    tar->budget = budget;
    tar->present = UINT64_MAX;
    plim_status status = byte_stream_open(&tar->stream, budget, path, compression, error);
    if (status == PLIM_OK && !tar->stream->packed)
        status = file_size(&tar->present, tar->stream->file, error);
    return OPENED(out, tar, tar_close, status);
}

void tar_close(struct tar *tar)
{
    if (!tar)
        return;
    byte_stream_close(tar->stream);
    budget_give(tar->budget, TAG_FORMATS, tar, sizeof *tar);
}

/* A pax header is held while it is read. */
uint64_t tar_cost(enum compression compression)
{
    return budget_charge(sizeof(struct tar)) + budget_charge(PAX_MOST) + byte_stream_cost(compression);
}

struct byte_stream *tar_stream(struct tar *tar)
{
    return tar->stream;
}

static plim_status cut_short(const struct tar *tar, plim_error *error)
{
    return byte_stream_fail(tar->stream, tar->stream->at, error,
                            "the tar file is cut short: it ends here without its end mark");
}

static plim_status read_all(struct tar *tar, void *to, size_t bytes, plim_error *error)
{
    size_t got;
    TRY(byte_stream_read(&got, tar->stream, to, bytes, error));
    return got == bytes ? PLIM_OK : cut_short(tar, error);
}

/* ---- a header ------------------------------------------------------------------- */

/* Octal digits with blanks around them; or, where the first bit is set, a binary number. */
static bool parse_number(uint64_t *out, const uint8_t *field, int width)
{
    uint64_t value = 0;
    int i = 0;
    if (field[0] & 0x80) {
        value = field[0] & 0x3f;
        if (field[0] & 0x40)
            return false; /* below zero */
        for (i = 1; i < width; i++) {
            if (value >> 55)
                return false;
            value = value << 8 | field[i];
        }
        *out = value;
        return true;
    }
    while (i < width && field[i] == ' ')
        i++;
    for (; i < width && field[i] >= '0' && field[i] <= '7'; i++) {
        if (value >> 60)
            return false;
        value = value << 3 | (uint64_t)(field[i] - '0');
    }
    for (; i < width; i++)
        if (field[i] != ' ' && field[i] != 0)
            return false;
    *out = value;
    return true;
}

/* The sum of all bytes, the checksum itself as blanks. Old writers added signed bytes. */
static bool checksum_holds(const uint8_t *block)
{
    uint64_t stored;
    int64_t sum = 0, signed_sum = 0;
    for (int i = 0; i < (int)BLOCK_BYTES; i++) {
        uint8_t byte = i >= 148 && i < 156 ? ' ' : block[i];
        sum += byte;
        signed_sum += (int8_t)byte;
    }
    return parse_number(&stored, block + 148, 8) && ((int64_t)stored == sum || (int64_t)stored == signed_sum);
}

static bool is_zero(const uint8_t *block)
{
    return block[0] == 0 && memcmp(block, block + 1, (size_t)BLOCK_BYTES - 1) == 0;
}

static plim_status parse_header(struct header *out, const uint8_t *block, struct tar *tar, plim_error *error)
{
    if (!checksum_holds(block))
        return byte_stream_fail(tar->stream, tar->next_at, error, "the checksum of the tar header is wrong");
    *out = (struct header){.kind = (char)block[156], .block = block};
    if (!parse_number(&out->bytes, block + 124, 12))
        return byte_stream_fail(tar->stream, tar->next_at + 124, error, "the tar header has no valid size");
    return PLIM_OK;
}

/* Where data of `bytes` from the stream's place on end, with the rest of their block. */
static plim_status set_extent(struct tar *tar, uint64_t bytes, plim_error *error)
{
    uint64_t at = tar->stream->at, padded = round_up(bytes, BLOCK_BYTES), behind;
    if (padded < bytes || !add_u64(&behind, at, padded) || behind > INT64_MAX)
        return byte_stream_fail(tar->stream, tar->next_at, error, "a member of %llu bytes cannot be",
                                (unsigned long long)bytes);
    if (behind > tar->present)
        return byte_stream_fail(tar->stream, tar->present, error,
                                "the tar file ends here, inside the member whose header is at byte %llu",
                                (unsigned long long)tar->next_at);
    tar->next_at = behind;
    tar->data_left = bytes;
    return PLIM_OK;
}

/* prefix/name, as ustar has it; GNU uses the prefix's place for other things. */
static void header_name(char *out, const uint8_t *block)
{
    size_t prefix = memcmp(block + 257, "ustar\0", 6) == 0 ? strnlen((const char *)block + 345, 155) : 0;
    size_t name = strnlen((const char *)block, 100);
    memcpy(out, block + 345, prefix);
    if (prefix)
        out[prefix++] = '/';
    memcpy(out + prefix, block, name);
    out[prefix + name] = 0;
}

/* ---- headers that speak of the next one ------------------------------------------ */

static plim_status read_long_name(struct tar *tar, uint64_t bytes, plim_error *error)
{
    if (bytes > TAR_NAME_MOST)
        return byte_stream_fail(tar->stream, tar->stream->at, error, "a name of %llu bytes: at most %d are possible",
                                (unsigned long long)bytes, TAR_NAME_MOST);
    TRY(read_all(tar, tar->name, (size_t)bytes, error));
    tar->name[bytes] = 0;
    return PLIM_OK;
}

/* "path=..." or "size=...": takes what it says. Sparse files would need more than that. */
static plim_status apply_pax(struct ahead *ahead, const char *key, size_t key_bytes, const char *value, size_t bytes,
                             struct tar *tar, plim_error *error)
{
    if (key_bytes == 4 && memcmp(key, "path", 4) == 0) {
        if (bytes > TAR_NAME_MOST || memchr(value, 0, bytes))
            return byte_stream_fail(tar->stream, tar->next_at, error, "the pax header has no valid path");
        memcpy(tar->name, value, bytes);
        tar->name[bytes] = 0;
        ahead->has_name = true;
    } else if (key_bytes == 4 && memcmp(key, "size", 4) == 0) {
        uint64_t size = 0;
        for (size_t i = 0; i < bytes; i++)
            if (value[i] < '0' || value[i] > '9' || !mul_u64(&size, size, 10) ||
                !add_u64(&size, size, (uint64_t)(value[i] - '0')))
                return byte_stream_fail(tar->stream, tar->next_at, error, "the pax header has no valid size");
        ahead->bytes = size;
        ahead->has_bytes = bytes > 0;
    } else if (key_bytes > 11 && memcmp(key, "GNU.sparse.", 11) == 0) {
        fail_at(error, PLIM_BAD_DATA, file_path(tar->stream->file),
                "sparse files in tar are not supported (header before byte %llu)", (unsigned long long)tar->next_at);
        return PLIM_BAD_DATA;
    }
    return PLIM_OK;
}

/* "LENGTH KEY=VALUE\n", over and over; the length counts all of it. */
static plim_status parse_pax(struct ahead *ahead, const char *text, size_t bytes, struct tar *tar, plim_error *error)
{
    for (size_t at = 0; at < bytes && text[at];) {
        size_t length = 0, i = at;
        for (; i < bytes && text[i] >= '0' && text[i] <= '9' && length < PAX_MOST; i++)
            length = length * 10 + (size_t)(text[i] - '0');
        if (i == at || i >= bytes || text[i] != ' ' || length > bytes - at || length < i - at + 3 ||
            text[at + length - 1] != '\n')
            return byte_stream_fail(tar->stream, tar->next_at, error, "the pax header is damaged");
        const char *key = text + i + 1, *end = text + at + length - 1;
        const char *equals = memchr(key, '=', (size_t)(end - key));
        if (!equals)
            return byte_stream_fail(tar->stream, tar->next_at, error, "the pax header is damaged");
        TRY(apply_pax(ahead, key, (size_t)(equals - key), equals + 1, (size_t)(end - equals - 1), tar, error));
        at += length;
    }
    return PLIM_OK;
}

static plim_status read_pax(struct ahead *ahead, struct tar *tar, uint64_t bytes, plim_error *error)
{
    if (bytes > PAX_MOST)
        return byte_stream_fail(tar->stream, tar->stream->at, error,
                                "a pax header of %llu bytes: at most %d are possible", (unsigned long long)bytes,
                                PAX_MOST);
    char *text;
    TRY(budget_alloc(&text, tar->budget, TAG_FORMATS, (size_t)bytes, error));
    plim_status status = read_all(tar, text, (size_t)bytes, error);
    if (status == PLIM_OK)
        status = parse_pax(ahead, text, (size_t)bytes, tar, error);
    budget_give(tar->budget, TAG_FORMATS, text, (size_t)bytes);
    return status;
}

/* ---- members ----------------------------------------------------------------------- */

/* Zeros to the end, in a compressed tar: only there is its checksum looked at. */
static plim_status end(struct tar *tar, plim_error *error)
{
    uint8_t rest[BLOCK_BYTES];
    size_t got = sizeof rest;
    while (tar->stream->packed && got == sizeof rest)
        TRY(byte_stream_read(&got, tar->stream, rest, sizeof rest, error));
    tar->ended = true;
    tar->data_left = 0;
    return PLIM_OK;
}

static bool is_file(char kind)
{
    return kind == '0' || kind == 0 || kind == '7';
}

/* One header and what it stands for. *found: a file; its name is in tar->name. */
static plim_status take_header(bool *found, struct ahead *ahead, const struct header *header, struct tar *tar,
                               plim_error *error)
{
    uint64_t bytes = header->bytes;
    bool own = header->kind != 'x' && header->kind != 'g' && header->kind != 'L' && header->kind != 'K';
    if (own && ahead->has_bytes)
        bytes = ahead->bytes;
    if (header->kind == 'S')
        return fail_at(error, PLIM_BAD_DATA, file_path(tar->stream->file),
                       "sparse files in tar are not supported (header at byte %llu)", (unsigned long long)tar->next_at);
    TRY(set_extent(tar, bytes, error));
    if (header->kind == 'L') {
        ahead->has_name = true;
        return read_long_name(tar, bytes, error);
    }
    if (header->kind == 'x')
        return read_pax(ahead, tar, bytes, error);
    *found = is_file(header->kind);
    if (*found && !ahead->has_name)
        header_name(tar->name, header->block);
    if (own && !*found)
        *ahead = (struct ahead){0};
    return PLIM_OK;
}

plim_status tar_next(bool *more, struct tar_member *out, struct tar *tar, plim_error *error)
{
    uint8_t block[BLOCK_BYTES];
    struct header header = {0};
    struct ahead ahead = {0};
    bool found = false, first = true;
    uint64_t begin = tar->next_at;
    while (!found && !tar->ended) {
        if (first)
            begin = tar->next_at;
        TRY(byte_stream_seek(tar->stream, tar->next_at, error));
        TRY(read_all(tar, block, sizeof block, error));
        if (is_zero(block)) {
            TRY(end(tar, error));
            break;
        }
        TRY(parse_header(&header, block, tar, error));
        TRY(take_header(&found, &ahead, &header, tar, error));
        first = !ahead.has_name && !ahead.has_bytes;
    }
    *more = found;
    if (found)
        *out =
            (struct tar_member){.name = tar->name, .header_at = begin, .at = tar->stream->at, .bytes = tar->data_left};
    return PLIM_OK;
}

plim_status tar_read(size_t *got, struct tar *tar, void *to, size_t bytes, plim_error *error)
{
    size_t want = bytes < tar->data_left ? bytes : (size_t)tar->data_left;
    TRY(read_all(tar, to, want, error));
    tar->data_left -= want;
    *got = want;
    return PLIM_OK;
}
