/* hdf5_message.c - what the messages of an object header say of a data set. */
#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "formats/containers/gzip.h"
#include "formats/containers/hdf5_reader.h"

/* ---- shape and type ---- */

static plim_status take_dataspace(struct hdf5_dataset *out, struct hdf5 *hdf5, const struct message *message,
                                  plim_error *error)
{
    const uint8_t *data = message->data;
    unsigned version = message->bytes > 3 ? data[0] : 0, rank = message->bytes > 3 ? data[1] : 0;
    size_t at = version == 1 ? 8 : 4;
    if ((version != 1 && version != 2) || message->bytes < at + 8 * rank)
        return hdf5_bad(hdf5, error, message->at, "not a data space");
    if (version == 2 && data[3] == 2)
        return hdf5_bad(hdf5, error, message->at, "a data space without a single value");
    if (rank > MOST_AXES)
        return hdf5_bad(hdf5, error, message->at, "%u axes: at most %d are supported", rank, MOST_AXES);
    out->shape.rank = (int)rank;
    for (unsigned i = 0; i < rank; i++) {
        uint64_t extent = read_le(data + at + 8 * i, 8);
        if (extent == 0 || extent > INT64_MAX)
            return hdf5_bad(hdf5, error, message->at + at + 8 * i, "axis %u has length %llu: it holds no elements", i,
                            (unsigned long long)extent);
        out->shape.dim[i] = (int64_t)extent;
    }
    return PLIM_OK;
}

static bool whole_type(enum type *out, uint64_t size, bool is_signed)
{
    static const enum type types[9] = {[1] = TYPE_I8, [2] = TYPE_I16, [4] = TYPE_I32, [8] = TYPE_I64};
    bool known = size == 1 || (is_signed && (size == 2 || size == 4 || size == 8));
    if (known)
        *out = size == 1 && !is_signed ? TYPE_U8 : types[size];
    return known;
}

/* IEEE 754's, told by exponent and mantissa. */
static bool float_type(enum type *out, uint64_t size, const uint8_t *properties)
{
    unsigned exponent = properties[5], mantissa = properties[7];
    if (size == 2 && exponent == 5 && mantissa == 10)
        *out = TYPE_F16;
    else if (size == 2 && exponent == 8 && mantissa == 7)
        *out = TYPE_BF16;
    else if (size == 4 && exponent == 8 && mantissa == 23)
        *out = TYPE_F32;
    else if (size == 8 && exponent == 11 && mantissa == 52)
        *out = TYPE_F64;
    else
        return false;
    return true;
}

static plim_status take_datatype(struct hdf5_dataset *out, struct hdf5 *hdf5, const struct message *message,
                                 plim_error *error)
{
    static const char *const names[] = {
        "whole numbers", "floats",    "times",      "strings",        "bit fields",
        "opaque bytes",  "compounds", "references", "an enumeration", "values of any length",
        "arrays"};
    const uint8_t *data = message->data;
    if (message->bytes < 8 || message->flags & 2)
        return hdf5_bad(hdf5, error, message->at,
                        message->bytes < 8 ? "not a data type" : "a shared data type is not supported");
    unsigned class = data[0] & 15;
    uint64_t size = read_le(data + 4, 4);
    const uint8_t *numbers = data;
    size_t left = message->bytes;
    if (class == 8 && message->bytes >= 16) { /* h5py's booleans: the type below the names */
        numbers = data + 8;
        left -= 8;
        class = numbers[0] & 15;
    }
    bool known = (class == 0 && left >= 12 && whole_type(&out->type, size, numbers[1] & 8)) ||
                 (class == 1 && left >= 20 && !(numbers[1] & 0x40) && float_type(&out->type, size, numbers + 8));
    if (!known)
        return hdf5_bad(hdf5, error, message->at, "%s of %llu bytes are not supported",
                        class <= 10 ? names[class] : "values of an unknown kind", (unsigned long long)size);
    out->big_endian = numbers[1] & 1;
    return PLIM_OK;
}

/* ---- where the data are ---- */

static plim_status no_layout(struct hdf5 *hdf5, const struct message *message, const char *what, plim_error *error)
{
    hdf5_bad(hdf5, error, message->at, "%s is not supported", what);
    return hint(error, PLIM_BAD_DATA, "h5py.File(..., libver='earliest') writes what is");
}

/* Extents of a chunk, and, as one more, the bytes of an element. */
static plim_status take_chunk(struct hdf5_dataset *out, struct hdf5 *hdf5, const struct message *message, size_t at,
                              unsigned count, unsigned width, plim_error *error)
{
    if (count < 2 || count > MOST_AXES + 1 || message->bytes < at + (size_t)count * width)
        return hdf5_bad(hdf5, error, message->at, "chunks of %u axes", count);
    for (unsigned i = 0; i + 1 < count; i++) {
        uint64_t extent = read_le(message->data + at + (size_t)i * width, (int)width);
        if (extent == 0 || extent > INT64_MAX)
            return hdf5_bad(hdf5, error, message->at, "chunks without elements");
        out->chunk[i] = (int64_t)extent;
    }
    out->chunk_bytes =
        read_le(message->data + at + (size_t)(count - 1) * width, (int)width); /* of an element, until checked */
    out->layout = HDF5_CHUNKED;
    out->packed_bytes = count - 1; /* its axes, until checked */
    return PLIM_OK;
}

/* The newer form: a chunk that is all there is can be read, other indices not. */
static plim_status take_new_chunks(struct hdf5_dataset *out, struct hdf5 *hdf5, const struct message *message,
                                   plim_error *error)
{
    const uint8_t *data = message->data;
    if (message->bytes < 5)
        return hdf5_bad(hdf5, error, message->at, "not a layout");
    unsigned flags = data[2], count = data[3], width = data[4];
    size_t at = 5 + (size_t)count * width;
    if (width < 1 || width > 8 || message->bytes < at + 1)
        return hdf5_bad(hdf5, error, message->at, "not a layout");
    if (data[at] != 1)
        return no_layout(hdf5, message, "the newer index of chunks", error);
    TRY(take_chunk(out, hdf5, message, 5, count, width, error));
    at++;
    out->single = true;
    uint64_t packed = 0;
    if (flags & 2) { /* filtered: its bytes, and which filters were left out */
        if (message->bytes < at + 12 || read_le(data + at + 8, 4))
            return hdf5_bad(hdf5, error, message->at, "not a layout");
        packed = read_le(data + at, 8);
        at += 12;
    }
    if (message->bytes < at + 8)
        return hdf5_bad(hdf5, error, message->at, "not a layout");
    out->at = read_le(data + at, 8);
    out->bytes = packed; /* until checked */
    return PLIM_OK;
}

static plim_status take_layout(struct hdf5_dataset *out, struct hdf5 *hdf5, const struct message *message,
                               plim_error *error)
{
    const uint8_t *data = message->data;
    unsigned version = message->bytes > 1 ? data[0] : 0, class = message->bytes > 1 ? data[1] : 0;
    static const size_t least[] = {4, 18, 11}; /* bytes of a message of each class */
    if (version != 3 && version != 4)
        return no_layout(hdf5, message, "this version of a layout", error);
    if (class > 2)
        return no_layout(hdf5, message, "a virtual layout", error);
    if (version == 4 && class == 2)
        return take_new_chunks(out, hdf5, message, error);
    if (message->bytes < least[class])
        return hdf5_bad(hdf5, error, message->at, "not a layout");
    if (class == 2) {
        out->at = read_le(data + 3, 8);
        return take_chunk(out, hdf5, message, 11, data[2], 4, error);
    }
    /* Class 0 is in the header itself: bytes of the file like others. */
    out->at = class == 0 ? message->at + 4 : read_le(data + 2, 8);
    out->bytes = class == 0 ? read_le(data + 2, 2) : read_le(data + 10, 8);
    out->layout = HDF5_CONTIGUOUS;
    return PLIM_OK;
}

/* ---- filters ---- */

static plim_status add_filter(struct hdf5_dataset *out, struct hdf5 *hdf5, const struct message *message, unsigned id,
                              plim_error *error)
{
    static const char *const names[] = {"", "", "", "", "szip", "nbit", "scaleoffset"};
    if (id >= HDF5_DEFLATE && id <= HDF5_FLETCHER32 && out->filter_count < HDF5_MOST_FILTERS) {
        out->filter[out->filter_count++] = (enum hdf5_filter)id;
        return PLIM_OK;
    }
    hdf5_bad(hdf5, error, message->at, "the filter %s (%u) is not supported",
             id == 32000 ? "lzf"
             : id < 7    ? names[id]
                         : "of others",
             id);
    return hint(error, PLIM_BAD_DATA, "gzip, shuffle and fletcher32 are; h5repack -f GZIP=4 packs it anew");
}

static plim_status take_filters(struct hdf5_dataset *out, struct hdf5 *hdf5, const struct message *message,
                                plim_error *error)
{
    const uint8_t *data = message->data;
    unsigned version = message->bytes > 1 ? data[0] : 0, count = message->bytes > 1 ? data[1] : 0;
    size_t at = version == 1 ? 8 : 2;
    if (version != 1 && version != 2)
        return hdf5_bad(hdf5, error, message->at, "not a list of filters");
    out->filter_count = 0;
    for (unsigned i = 0; i < count; i++) {
        bool there = message->bytes >= at + 6;
        unsigned id = there ? (unsigned)read_le(data + at, 2) : 0;
        bool named = version == 1 || id >= 256;
        if (!there || (named && message->bytes < at + 8))
            return hdf5_bad(hdf5, error, message->at, "a list of filters is cut short");
        size_t name = named ? (size_t)read_le(data + at + 2, 2) : 0;
        if (version == 1)
            name = (name + 7) & ~(size_t)7;
        size_t values = (size_t)read_le(data + at + (named ? 6 : 4), 2);
        at += (named ? 8 : 6) + name + 4 * (values + (version == 1 ? values % 2 : 0));
        if (at > message->bytes)
            return hdf5_bad(hdf5, error, message->at, "a list of filters is cut short");
        TRY(add_filter(out, hdf5, message, id, error));
    }
    return PLIM_OK;
}

/* Whether what was never written is anything but zeros. */
static plim_status take_fill(struct hdf5_dataset *out, struct hdf5 *hdf5, const struct message *message,
                             plim_error *error)
{
    (void)hdf5, (void)error;
    const uint8_t *data = message->data;
    unsigned version = message->bytes ? data[0] : 0;
    size_t at = message->type == MESSAGE_OLD_FILL ? 0 : version == 3 ? 2 : 4;
    if (message->type == MESSAGE_FILL && message->bytes >= 4 &&
        !(version == 3 ? data[1] & 0x20 : version == 1 || data[3]))
        return PLIM_OK;
    if (message->bytes < at + 4)
        return PLIM_OK;
    uint64_t bytes = read_le(data + at, 4);
    for (uint64_t i = 0; i < bytes && at + 4 + i < message->bytes; i++)
        out->other_fill = out->other_fill || data[at + 4 + i];
    return PLIM_OK;
}

typedef plim_status take_function(struct hdf5_dataset *out, struct hdf5 *hdf5, const struct message *message,
                                  plim_error *error);

static take_function *const take[] = {
    [MESSAGE_DATASPACE] = take_dataspace, [MESSAGE_DATATYPE] = take_datatype, [MESSAGE_OLD_FILL] = take_fill,
    [MESSAGE_FILL] = take_fill,           [MESSAGE_LAYOUT] = take_layout,     [MESSAGE_FILTERS] = take_filters};

plim_status hdf5_take_message(struct hdf5_dataset *out, uint32_t *seen, struct hdf5 *hdf5,
                              const struct message *message, plim_error *error)
{
    if (message->type < 32)
        *seen |= UINT32_C(1) << message->type;
    bool known = message->type < (unsigned)COUNT(take) && take[message->type];
    return known ? take[message->type](out, hdf5, message, error) : PLIM_OK;
}

/* ---- all of it together ---- */

/* A chunk is as large as it is said to be: that much must be in the file, packed at the most. */
static plim_status check_chunks(struct hdf5_dataset *dataset, struct hdf5 *hdf5, uint64_t at, plim_error *error)
{
    uint64_t bytes = type_bytes(dataset->type), most, packed = dataset->single ? dataset->bytes : 0;
    if (dataset->packed_bytes != (uint64_t)dataset->shape.rank || dataset->chunk_bytes != bytes)
        return hdf5_bad(hdf5, error, at, "its chunks are not of its shape and type");
    for (int i = 0; i < dataset->shape.rank; i++)
        if (!mul_u64(&bytes, bytes, (uint64_t)dataset->chunk[i]))
            return hdf5_bad(hdf5, error, at, "chunks of more bytes than any file has");
    bool deflated = false;
    for (int i = 0; i < dataset->filter_count; i++)
        deflated = deflated || dataset->filter[i] == HDF5_DEFLATE;
    most = hdf5->file_bytes;
    if (deflated && !mul_u64(&most, most, GZIP_MOST_RATIO))
        most = UINT64_MAX;
    if (bytes > most || bytes > UINT32_MAX)
        return hdf5_bad(hdf5, error, at, "chunks of %llu bytes, more than the file can hold",
                        (unsigned long long)bytes);
    dataset->chunk_bytes = bytes;
    dataset->packed_bytes = dataset->single && !dataset->filter_count ? bytes : packed;
    return PLIM_OK;
}

plim_status hdf5_check_dataset(struct hdf5_dataset *dataset, uint32_t seen, struct hdf5 *hdf5, uint64_t at,
                               plim_error *error)
{
    const uint32_t needed = 1u << MESSAGE_DATASPACE | 1u << MESSAGE_DATATYPE | 1u << MESSAGE_LAYOUT;
    uint64_t bytes;
    if ((seen & needed) != needed)
        return hdf5_bad(hdf5, error, at, "not a data set%s",
                        seen & (1u << MESSAGE_SYMBOL_TABLE | 1u << MESSAGE_LINK_INFO) ? ": a group" : "");
    if (!shape_bytes(&bytes, &dataset->shape, dataset->type))
        return hdf5_bad(hdf5, error, at, "more bytes than any file has");
    if (dataset->at == HDF5_UNDEFINED)
        return hdf5_bad(hdf5, error, at, "nothing was ever written to it");
    if (dataset->layout == HDF5_CHUNKED && dataset->shape.rank == 0)
        return hdf5_bad(hdf5, error, at, "chunks of a single value");
    if (dataset->layout == HDF5_CHUNKED)
        TRY(check_chunks(dataset, hdf5, at, error));
    else if (dataset->bytes < bytes || dataset->at > hdf5->file_bytes || bytes > hdf5->file_bytes - dataset->at)
        return hdf5_bad(hdf5, error, hdf5->file_bytes, "the file ends here; the data set at byte %llu has %llu bytes",
                        (unsigned long long)dataset->at, (unsigned long long)bytes);
    dataset->bytes = bytes;
    return PLIM_OK;
}
