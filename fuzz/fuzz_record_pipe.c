/* fuzz_record_pipe.c - any bytes as what a program of `command:` writes: in pieces of any size, through a small buffer.

   The first three bytes are the sizes of a piece, of the buffer and of the buffer. What comes is compared with what a
   walk over all of it finds: the same records, the same damage, the same end. */
#include <string.h>

#include "formats/records/record_frame.h"
#include "formats/records/record_pipe.h"
#include "fuzz_file.h"

#define MOST_AT_ONCE 3

struct writer {
    const uint8_t *data;
    size_t bytes, at, piece;
};

static plim_status write_some(size_t *got, void *context, void *to, size_t bytes, plim_error *error)
{
    struct writer *writer = context;
    size_t left = writer->bytes - writer->at;
    (void)error;
    if (!bytes)
        abort();
    *got = bytes < writer->piece ? bytes : writer->piece;
    *got = *got < left ? *got : left;
    memcpy(to, writer->data + writer->at, *got);
    writer->at += *got;
    return PLIM_OK;
}

static plim_status ended(void *context, plim_error *error)
{
    const struct writer *writer = context;
    (void)error;
    if (writer->at != writer->bytes)
        abort();
    return PLIM_OK;
}

/* What comes next by a walk: OK with a record, or *over; BAD_DATA; OVER_BUDGET where it fits neither buffer
   nor room. */
static plim_status walk(struct string *record, bool *over, struct writer *all, uint64_t buffer, uint64_t values)
{
    const uint8_t *head = all->data + all->at;
    uint64_t left = all->bytes - all->at;
    *over = true;
    if (left < RECORD_HEAD_BYTES)
        return left ? PLIM_BAD_DATA : PLIM_OK;
    uint64_t length = record_length(head);
    if (!record_head_holds(head))
        return PLIM_BAD_DATA;
    if (length > buffer - RECORD_FRAME_BYTES && length > values)
        return PLIM_OVER_BUDGET;
    if (left < RECORD_FRAME_BYTES || length > left - RECORD_FRAME_BYTES)
        return PLIM_BAD_DATA;
    *over = false;
    *record = (struct string){.data = head + RECORD_HEAD_BYTES, .bytes = length};
    all->at += (size_t)length + RECORD_FRAME_BYTES;
    return record_checksum_holds(record->data, length, record->data + length) ? PLIM_OK : PLIM_BAD_DATA;
}

static void expect(bool holds)
{
    if (!holds)
        abort();
}

/* One call, and what the walk says of each record of it. Returns whether there is more. */
static bool step(struct record_pipe *pipe, struct writer *all, struct value_buffer *values)
{
    struct string records[MOST_AT_ONCE], expected;
    int64_t got = -1;
    bool over;
    plim_error error = {0};
    value_buffer_empty(values);
    const struct row_target target = {(void *[]){records}, (uint64_t[]){sizeof *records}, values};
    plim_status status = record_pipe_next(&got, pipe, MOST_AT_ONCE, &target, &error);
    expect(got >= 0 && got <= MOST_AT_ONCE && (status == PLIM_OK || (status == PLIM_BAD_DATA && !got)));
    for (int64_t i = 0; i < got; i++) {
        expect(walk(&expected, &over, all, pipe->buffer_bytes, values->capacity) == PLIM_OK && !over);
        expect(expected.bytes == records[i].bytes && memcmp(expected.data, records[i].data, expected.bytes) == 0);
    }
    if (got)
        return true;
    plim_status wanted = walk(&expected, &over, all, pipe->buffer_bytes, values->capacity);
    expect(wanted == PLIM_OVER_BUDGET ? status == PLIM_OK && values->wanted > values->capacity : status == wanted);
    expect(pipe->over == (over && wanted != PLIM_OVER_BUDGET));
    expect(status == PLIM_OK || (error.where[0] && error.message[0]));
    return !over;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t buffer[1024], space[1024];
    struct record_pipe pipe;
    struct value_buffer values;
    if (bytes < 3)
        return 0;
    size_t piece = data[0] ? data[0] : SIZE_MAX;
    struct writer writer = {.data = data + 3, .bytes = bytes - 3, .piece = piece}, all = writer;
    static const struct pipe_input input = {.read = write_some, .ended = ended};
    value_buffer_init(&values, space, 4 * (size_t)data[2]);
    record_pipe_begin(&pipe, &input, &writer, "fuzz", buffer, RECORD_FRAME_BYTES + 1 + (size_t)data[1]);
    while (step(&pipe, &all, &values))
        ;
    return 0;
}
