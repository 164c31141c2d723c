/* fixed_records.c - records of one size between a header and a footer. */
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/tables/lines.h"

#define CARRY_MOST ((uint64_t)1 << 20)

struct fixed_records {
    struct budget *budget;
    struct byte_stream *stream;
    struct fixed_layout layout;
    int64_t count, next;
    uint64_t carry_bytes;
    uint8_t *carry; /* of a compressed file: what may be a footer, held back */
    uint64_t held;
    bool ended, broken; /* of a compressed file; broken: what follows is an error */
};

static plim_status check_size(struct fixed_records *records, plim_error *error)
{
    const struct fixed_layout *layout = &records->layout;
    uint64_t present, around = layout->header_bytes + layout->footer_bytes;
    TRY(file_size(&present, records->stream->file, error));
    uint64_t body = present - around;
    if (present < around || body % layout->record_bytes)
        return byte_stream_fail(
            records->stream, present, error,
            "the file ends here: header (%llu), footer (%llu) and records of %llu bytes do not make its "
            "size",
            (unsigned long long)layout->header_bytes, (unsigned long long)layout->footer_bytes,
            (unsigned long long)layout->record_bytes);
    records->count = (int64_t)(body / layout->record_bytes);
    return PLIM_OK;
}

static plim_status begin(struct fixed_records *records, plim_error *error)
{
    if (!records->stream->packed)
        return check_size(records, error);
    records->count = -1;
    records->carry_bytes = records->layout.footer_bytes;
    records->carry = budget_take(records->budget, TAG_FORMATS, records->carry_bytes);
    return records->carry ? PLIM_OK : budget_refused(records->budget, TAG_FORMATS, records->carry_bytes, error);
}

plim_status fixed_records_open(struct fixed_records **out, struct budget *budget, const char *path,
                               const struct fixed_layout *layout, enum compression compression, plim_error *error)
{
    uint64_t around;
    if (layout->record_bytes == 0 || layout->record_bytes > INT64_MAX || layout->footer_bytes > CARRY_MOST ||
        !add_u64(&around, layout->header_bytes, layout->footer_bytes))
        return fail_at(error, PLIM_BAD_JOB, path, "records of %llu bytes with a footer of %llu are not possible",
                       (unsigned long long)layout->record_bytes, (unsigned long long)layout->footer_bytes);
    struct fixed_records *records;
    TRY(budget_alloc(&records, budget, TAG_FORMATS, sizeof *records, error));
    records->budget = budget;
    records->layout = *layout;
    plim_status status = byte_stream_open(&records->stream, budget, path, compression, error);
    if (status == PLIM_OK)
        status = begin(records, error);
    if (status == PLIM_OK)
        status = byte_stream_seek(records->stream, layout->header_bytes, error);
    return OPENED(out, records, fixed_records_close, status);
}

void fixed_records_close(struct fixed_records *records)
{
    if (!records)
        return;
    byte_stream_close(records->stream);
    budget_give(records->budget, TAG_FORMATS, records->carry, records->carry_bytes);
    budget_give(records->budget, TAG_FORMATS, records, sizeof *records);
}

uint64_t fixed_records_cost(const struct fixed_layout *layout, enum compression compression)
{
    uint64_t carry = compression == COMPRESSION_NONE ? 0 : budget_charge((size_t)layout->footer_bytes);
    return budget_charge(sizeof(struct fixed_records)) + carry + byte_stream_cost(compression);
}

int64_t fixed_records_count(const struct fixed_records *records)
{
    return records->count;
}

struct file *fixed_records_file(struct fixed_records *records)
{
    return records->stream->file;
}

/* The held bytes turn out to be the record's first ones; as many of its last are held instead. */
static plim_status next_packed(bool *more, struct fixed_records *records, uint8_t *to, plim_error *error)
{
    uint64_t record = records->layout.record_bytes, footer = records->carry_bytes;
    size_t got;
    if (records->held < footer) {
        TRY(byte_stream_read(&got, records->stream, records->carry + records->held, (size_t)(footer - records->held),
                             error));
        records->held += got;
    }
    uint64_t old = footer < record ? footer : record;
    memcpy(to, records->carry, (size_t)old);
    memmove(records->carry, records->carry + old, (size_t)(footer - old));
    uint64_t fresh = record - old;
    TRY(byte_stream_read(&got, records->stream, to + old, (size_t)fresh, error));
    uint64_t have = got;
    if (got == fresh && old) {
        TRY(byte_stream_read(&got, records->stream, records->carry + footer - old, (size_t)old, error));
        have += got;
    }
    *more = have == record && records->held == footer;
    if (!*more && (have || records->held < footer))
        return byte_stream_fail(records->stream, records->stream->at, error,
                                "the data end inside record %lld of %llu bytes and the footer of %llu",
                                (long long)records->next, (unsigned long long)record, (unsigned long long)footer);
    return PLIM_OK;
}

static plim_status next_raw(struct fixed_records *records, uint8_t *to, int64_t count, plim_error *error)
{
    size_t got, wanted = (size_t)(records->layout.record_bytes * (uint64_t)count);
    TRY(byte_stream_read(&got, records->stream, to, wanted, error));
    if (got < wanted)
        return byte_stream_fail(records->stream, records->stream->at, error, "the file became shorter");
    records->next += count;
    return PLIM_OK;
}

static plim_status broken(struct fixed_records *records, plim_error *error)
{
    records->broken = false;
    records->ended = true;
    return byte_stream_fail(records->stream, records->stream->at, error,
                            "record %lld of %llu bytes cannot be read: the data are damaged or end inside it",
                            (long long)records->next, (unsigned long long)records->layout.record_bytes);
}

plim_status fixed_records_next(int64_t *got, struct fixed_records *records, void *to, int64_t most, plim_error *error)
{
    if (records->count >= 0) {
        int64_t left = records->count - records->next, count = most < left ? most : left;
        TRY(next_raw(records, to, count, error));
        *got = count;
        return PLIM_OK;
    }
    if (records->broken)
        return broken(records, error);
    int64_t done = 0;
    for (bool more = true; done < most && !records->ended; done += more) {
        plim_status status = next_packed(&more, records, (uint8_t *)to + (uint64_t)done * records->layout.record_bytes,
                                         done ? NULL : error);
        records->ended = !more || status == PLIM_BAD_DATA; /* behind data that do not unpack there is nothing */
        records->broken = status != PLIM_OK && done;       /* good records first */
        if (status != PLIM_OK && !done)
            return status;
        if (records->broken)
            break;
        records->next += more;
    }
    *got = done;
    return PLIM_OK;
}
