/* image_jpeg_header.c - a JPEG's segments up to its first scan: the size, and the memory that decoding will take.

   It passes over what libjpeg passes over, so that it refuses nothing that libjpeg decodes, but images that declare
   more than their bytes can hold: a block of 8 x 8 takes at least two bits in a sequential file. */
#include "image/image_jpeg.h"

/* Tables and controllers of one image, whatever its size: Huffman tables, colour conversion, inverse transform. */
#define TABLES_BYTES ((uint64_t)96 * 1024)

struct header {
    const uint8_t *data;
    size_t bytes, at;
    int64_t height, width;
    int components, tallest, widest; /* largest sampling factors */
    uint64_t blocks;                 /* 8 x 8 coefficients of all components, padded as libjpeg pads them */
    bool progressive, arithmetic;
};

static plim_status ends_early(const struct header *header, plim_error *error)
{
    return fail(error, PLIM_BAD_DATA, "JPEG: premature end at byte %zu, inside its header", header->bytes);
}

static uint64_t blocks_along(int64_t pixels, int factor, int largest)
{
    uint64_t step = (uint64_t)largest * 8, part = (uint64_t)factor;
    uint64_t blocks = ((uint64_t)pixels * part + step - 1) / step;
    return (blocks + part - 1) / part * part;
}

/* After a frame's marker: precision, height, width, count; then a component's number, factors and table. */
static plim_status read_frame(struct header *header, const uint8_t *frame, size_t bytes, plim_error *error)
{
    size_t where = (size_t)(frame - header->data);
    if (bytes < 6 || bytes < 6 + (size_t)3 * frame[5])
        return fail(error, PLIM_BAD_DATA, "JPEG: byte %zu: a frame header of %zu bytes", where, bytes);
    header->height = be16(frame + 1), header->width = be16(frame + 3), header->components = frame[5];
    header->tallest = header->widest = 1;
    header->blocks = 0;
    if (!header->height || !header->width || frame[5] < 1 || frame[5] > 4)
        return fail(error, PLIM_BAD_DATA, "JPEG: byte %zu: declares %lld x %lld pixels of %d components", where,
                    (long long)header->height, (long long)header->width, header->components);
    for (int i = 0; i < header->components; i++) {
        int wide = frame[7 + 3 * i] >> 4, tall = frame[7 + 3 * i] & 15;
        if (wide < 1 || wide > 4 || tall < 1 || tall > 4)
            return fail(error, PLIM_BAD_DATA, "JPEG: byte %zu: sampling factors %d x %d", where, wide, tall);
        header->widest = wide > header->widest ? wide : header->widest;
        header->tallest = tall > header->tallest ? tall : header->tallest;
    }
    for (int i = 0; i < header->components; i++)
        header->blocks += blocks_along(header->width, frame[7 + 3 * i] >> 4, header->widest) *
                          blocks_along(header->height, frame[7 + 3 * i] & 15, header->tallest);
    return PLIM_OK;
}

/* Passes over stray bytes, fill bytes and markers without a segment. */
static plim_status next_marker(uint8_t *out, struct header *header, plim_error *error)
{
    uint8_t kind;
    do {
        while (header->at < header->bytes && header->data[header->at] != 0xFF)
            header->at++;
        while (header->at < header->bytes && header->data[header->at] == 0xFF)
            header->at++;
        if (header->at == header->bytes)
            return ends_early(header, error);
        kind = header->data[header->at++];
    } while (kind <= 0x01 || (kind >= 0xD0 && kind <= 0xD7));
    *out = kind;
    return PLIM_OK;
}

static plim_status next_segment(const uint8_t **out, size_t *bytes, struct header *header, plim_error *error)
{
    size_t left = header->bytes - header->at;
    if (left < 2)
        return ends_early(header, error);
    size_t length = be16(header->data + header->at);
    if (length < 2)
        return fail(error, PLIM_BAD_DATA, "JPEG: byte %zu: a segment of %zu bytes", header->at, length);
    if (length > left)
        return ends_early(header, error);
    *out = header->data + header->at + 2;
    *bytes = length - 2;
    header->at += length;
    return PLIM_OK;
}

static bool is_frame(uint8_t kind)
{
    return kind >= 0xC0 && kind <= 0xCF && kind != 0xC4 && kind != 0xC8 && kind != 0xCC;
}

/* *in_scan: how many components the first scan has. */
static plim_status read_to_scan(int *in_scan, struct header *header, plim_error *error)
{
    for (;;) {
        uint8_t kind = 0;
        const uint8_t *segment = NULL;
        size_t bytes = 0;
        TRY(next_marker(&kind, header, error));
        if (kind == 0xD8 || kind == 0xD9)
            return fail(error, PLIM_BAD_DATA, "JPEG: byte %zu: no image before its end", header->at - 1);
        TRY(next_segment(&segment, &bytes, header, error));
        if (is_frame(kind)) {
            TRY(read_frame(header, segment, bytes, error));
            header->progressive = (kind & 3) == 2;
            header->arithmetic = kind > 0xC8;
        }
        if (kind != 0xDA)
            continue;
        if (!header->components || !bytes)
            return fail(error, PLIM_BAD_DATA, "JPEG: byte %zu: a scan before the frame", header->at);
        *in_scan = segment[0];
        return PLIM_OK;
    }
}

/* Rows of samples that the library holds at once, and the coefficients of the whole image where scans refine it. */
static uint64_t work_bytes(const struct header *header, bool whole)
{
    uint64_t row = (uint64_t)header->width + 8 * (uint64_t)header->widest + 128;
    uint64_t rows = (uint64_t)header->components * (13 * (uint64_t)header->tallest + 4);
    return TABLES_BYTES + row * rows + (whole ? header->blocks * (64 * 2 + 8) : 0);
}

plim_status jpeg_probe(struct image_info *out, const uint8_t *data, size_t bytes, plim_error *error)
{
    struct header header = {.data = data, .bytes = bytes, .at = 2};
    int in_scan = 0;
    TRY(read_to_scan(&in_scan, &header, error));
    bool whole = header.progressive || in_scan < header.components;
    uint64_t units = (uint64_t)(header.width / (8 * header.widest)) * (uint64_t)(header.height / (8 * header.tallest));
    if (!whole && !header.arithmetic && units * (uint64_t)header.components / 4 > bytes)
        return fail(error, PLIM_BAD_DATA, "JPEG: premature end at byte %zu: %lld x %lld pixels are declared", bytes,
                    (long long)header.height, (long long)header.width);
    out->height = header.height;
    out->width = header.width;
    out->channels = header.components < 3 ? header.components : 3;
    out->work_bytes = work_bytes(&header, whole);
    return PLIM_OK;
}
