/* record_pipe.c - records in TFRecord's framing from a writer that is heard once, from beginning to end. */
#include "formats/records/record_pipe.h"
#include "base/text/message.h"

#include <stdio.h>

#include "formats/records/record_frame.h"

void record_pipe_begin(struct record_pipe *pipe, const struct pipe_input *input, void *context, const char *name,
                       void *buffer, size_t buffer_bytes)
{
    *pipe = (struct record_pipe){
        .input = input, .context = context, .name = name, .buffer = buffer, .buffer_bytes = buffer_bytes};
}

static size_t held(const struct record_pipe *pipe)
{
    return pipe->end - pipe->begin;
}

/* At least `bytes` (no more than the buffer has) unread, if the writer writes them. */
static plim_status want(struct record_pipe *pipe, size_t bytes, plim_error *error)
{
    size_t got = 1;
    if (held(pipe) >= bytes)
        return PLIM_OK;
    memmove(pipe->buffer, pipe->buffer + pipe->begin, held(pipe));
    pipe->end -= pipe->begin;
    pipe->begin = 0;
    while (pipe->end < bytes && got) {
        TRY(pipe->input->read(&got, pipe->context, pipe->buffer + pipe->end, pipe->buffer_bytes - pipe->end, error));
        pipe->end += got;
    }
    return PLIM_OK;
}

static void pass(struct record_pipe *pipe, size_t bytes)
{
    pipe->begin += bytes;
    pipe->at += bytes;
}

static plim_status damaged(const struct record_pipe *pipe, uint64_t at, const char *what, plim_error *error)
{
    char where[256];
    message_print(where, sizeof where, "%.120s: byte %llu", pipe->name, (unsigned long long)at);
    return fail_at(error, PLIM_BAD_DATA, where, "record %lld: %s", (long long)pipe->record, what);
}

/* The output has ended; what the writer says of its end comes first. */
static plim_status end(struct record_pipe *pipe, bool inside, uint64_t at, plim_error *error)
{
    pipe->over = true;
    TRY(pipe->input->ended(pipe->context, error));
    return inside ? damaged(pipe, at, "the output ends inside it", error) : PLIM_OK;
}

/* The first record of the buffer; *fits: it is there whole. */
static plim_status peek_record(uint64_t *length, bool *fits, struct record_pipe *pipe, plim_error *error)
{
    *fits = false;
    *length = 0;
    TRY(want(pipe, RECORD_HEAD_BYTES, error));
    if (held(pipe) < RECORD_HEAD_BYTES)
        return end(pipe, held(pipe) > 0, pipe->at, error);
    const uint8_t *head = pipe->buffer + pipe->begin;
    *length = record_length(head);
    if (!record_head_holds(head)) {
        pipe->over = true; /* where the next one begins nobody knows */
        return damaged(pipe, pipe->at, "its length does not match its checksum", error);
    }
    if (*length > pipe->buffer_bytes - RECORD_FRAME_BYTES)
        return PLIM_OK;
    TRY(want(pipe, (size_t)*length + RECORD_FRAME_BYTES, error));
    if (held(pipe) < *length + RECORD_FRAME_BYTES)
        return end(pipe, true, pipe->at, error);
    *fits = true;
    return PLIM_OK;
}

static plim_status check(struct record_pipe *pipe, const uint8_t *data, uint64_t length, const uint8_t *stored,
                         uint64_t at, plim_error *error)
{
    plim_status status = PLIM_OK;
    if (!record_checksum_holds(data, length, stored))
        status = damaged(pipe, at, "its data do not match their checksum", error);
    pipe->record++;
    return status;
}

/* Some of what comes next, from the buffer as long as there is any. */
static plim_status take_some(size_t *got, struct record_pipe *pipe, uint8_t *to, uint64_t most, plim_error *error)
{
    *got = held(pipe) < most ? held(pipe) : (size_t)most;
    if (!*got)
        return pipe->input->read(got, pipe->context, to, (size_t)most, error);
    memcpy(to, pipe->buffer + pipe->begin, *got);
    pipe->begin += *got;
    return PLIM_OK;
}

/* A record larger than the buffer, into the value buffer; nothing is lost when it does not fit. */
static plim_status read_large(struct string *out, struct record_pipe *pipe, uint64_t length,
                              struct value_buffer *values, plim_error *error)
{
    uint8_t *data = value_buffer_take_bytes(values, length), foot[RECORD_FOOT_BYTES];
    uint64_t done = 0, at = pipe->at, all = length + RECORD_FOOT_BYTES;
    size_t got;
    if (!data)
        return PLIM_OK;
    pass(pipe, RECORD_HEAD_BYTES);
    for (; done < all; done += got) {
        uint8_t *to = done < length ? data + done : foot + (done - length);
        TRY(take_some(&got, pipe, to, done < length ? length - done : all - done, error));
        if (!got)
            return end(pipe, true, at, error);
        pipe->at += got;
    }
    TRY(check(pipe, data, length, foot, at, error));
    *out = (struct string){.data = data, .bytes = length};
    return PLIM_OK;
}

static plim_status read_small(struct string *out, struct record_pipe *pipe, uint64_t length, plim_error *error)
{
    const uint8_t *data = pipe->buffer + pipe->begin + RECORD_HEAD_BYTES;
    uint64_t at = pipe->at;
    pass(pipe, (size_t)length + RECORD_FRAME_BYTES);
    TRY(check(pipe, data, length, data + length, at, error));
    *out = (struct string){.data = data, .bytes = length};
    return PLIM_OK;
}

/* Whether the next record lies whole in the buffer already: getting it moves no others. A bad one is refused later. */
static bool is_there(const struct record_pipe *pipe)
{
    size_t left = held(pipe);
    const uint8_t *head = pipe->buffer + pipe->begin;
    if (left < RECORD_HEAD_BYTES || !record_head_holds(head))
        return false;
    uint64_t length = record_length(head);
    return length <= left - RECORD_HEAD_BYTES && left - RECORD_HEAD_BYTES - length >= RECORD_FOOT_BYTES &&
           record_checksum_holds(head + RECORD_HEAD_BYTES, length, head + RECORD_HEAD_BYTES + length);
}

plim_status record_pipe_next(int64_t *got, struct record_pipe *pipe, int64_t most, const struct row_target *target,
                             plim_error *error)
{
    struct string record = {0};
    uint64_t length;
    bool fits;
    *got = 0;
    if (pipe->over || most < 1)
        return PLIM_OK;
    TRY(peek_record(&length, &fits, pipe, error));
    if (pipe->over)
        return PLIM_OK;
    TRY(fits ? read_small(&record, pipe, length, error) : read_large(&record, pipe, length, target->values, error));
    while (record.data) {
        memcpy((uint8_t *)target->to[0] + (uint64_t)*got * target->stride[0], &record, sizeof record);
        if (++*got == most || !is_there(pipe))
            break;
        TRY(read_small(&record, pipe, record_length(pipe->buffer + pipe->begin), error));
    }
    return PLIM_OK;
}
