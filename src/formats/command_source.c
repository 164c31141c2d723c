/* command_source.c - records that a program writes to its standard output, in TFRecord's framing.

   The program runs once an epoch, from rewind on; $1 of its command line is the number of the epoch. A record whose
   data are damaged is passed over; behind a damaged length nothing can be found again: a pipe does not go back. */
#include <stdio.h>

#include "base/checked.h"
#include "base/process.h"
#include "formats/record_frame.h"
#include "formats/rows.h"

#define BUFFER_BYTES ((size_t)64 * 1024)
#define ROOM_BYTES   ((uint64_t)256 * 1024)

struct command_source {
    struct source base;
    size_t bytes; /* of this block */
    const char *command, *folder;
};

struct command_reader {
    struct command_source *source;
    struct budget *budget;
    struct process process;
    bool running;      /* it is open; else not started, or the epoch is over */
    size_t begin, end; /* unread bytes of the buffer */
    uint64_t at;       /* byte of the output where they begin */
    int64_t record;
    uint8_t buffer[];
};

#define READER_BYTES (sizeof(struct command_reader) + BUFFER_BYTES)

/* ---- opening, closing, from the beginning ---- */

static plim_status command_reader_open(struct reader **out, struct source *source, struct budget *budget,
                                       plim_error *error)
{
    struct command_reader *self = budget_take(budget, TAG_FORMATS, READER_BYTES);
    if (!self)
        return budget_refused(budget, TAG_FORMATS, READER_BYTES, error);
    self->source = (struct command_source *)source;
    self->budget = budget;
    *out = (struct reader *)self;
    return PLIM_OK;
}

static void stop(struct command_reader *self)
{
    if (self->running)
        process_close(&self->process);
    self->running = false;
    self->begin = self->end = 0;
}

static void command_reader_close(struct reader *reader)
{
    struct command_reader *self = (struct command_reader *)reader;
    stop(self);
    budget_give(self->budget, TAG_FORMATS, self, READER_BYTES);
}

static plim_status command_rewind(struct reader *reader, uint64_t epoch, plim_error *error)
{
    struct command_reader *self = (struct command_reader *)reader;
    char number[24];
    stop(self);
    snprintf(number, sizeof number, "%llu", (unsigned long long)epoch);
    TRY(process_open(&self->process, self->source->command, self->source->folder, number, error));
    self->running = true;
    self->at = 0;
    self->record = 0;
    return PLIM_OK;
}

/* ---- reading ---- */

static plim_status read_more(size_t *got, struct command_reader *self, void *to, size_t bytes, plim_error *error)
{
    TRY(process_read(got, &self->process, to, bytes, error));
    source_count_read(&self->source->base, *got);
    return PLIM_OK;
}

/* At least `bytes` (no more than the buffer has) unread, if the program writes them. */
static plim_status want(struct command_reader *self, size_t bytes, plim_error *error)
{
    size_t got = 1;
    if (self->end - self->begin >= bytes)
        return PLIM_OK;
    memmove(self->buffer, self->buffer + self->begin, self->end - self->begin);
    self->end -= self->begin;
    self->begin = 0;
    while (self->end < bytes && got) {
        TRY(read_more(&got, self, self->buffer + self->end, BUFFER_BYTES - self->end, error));
        self->end += got;
    }
    return PLIM_OK;
}

static void pass(struct command_reader *self, size_t bytes)
{
    self->begin += bytes;
    self->at += bytes;
}

static plim_status damaged(struct command_reader *self, uint64_t at, const char *what, plim_error *error)
{
    char where[256];
    snprintf(where, sizeof where, "%.120s: byte %llu", self->source->command, (unsigned long long)at);
    return fail_at(error, PLIM_BAD_DATA, where, "record %lld: %s", (long long)self->record, what);
}

/* The output has ended; what the program says of its end comes first. */
static plim_status end(struct command_reader *self, plim_error *error)
{
    size_t left = self->end - self->begin;
    uint64_t at = self->at;
    plim_status status = process_wait(&self->process, error);
    stop(self);
    if (status != PLIM_OK || !left)
        return status;
    return damaged(self, at, "the output ends inside it", error);
}

/* The first record of the buffer; *fits: it is there whole. Not running any more: the output has ended. */
static plim_status look(uint64_t *length, bool *fits, struct command_reader *self, plim_error *error)
{
    *fits = false;
    *length = 0;
    TRY(want(self, RECORD_HEAD_BYTES, error));
    if (self->end - self->begin < RECORD_HEAD_BYTES)
        return end(self, error);
    const uint8_t *head = self->buffer + self->begin;
    *length = record_length(head);
    if (!record_head_holds(head)) {
        uint64_t at = self->at;
        stop(self); /* where the next one begins nobody knows */
        return damaged(self, at, "its length does not match its checksum", error);
    }
    if (*length > BUFFER_BYTES - RECORD_FRAME_BYTES)
        return PLIM_OK;
    TRY(want(self, (size_t)*length + RECORD_FRAME_BYTES, error));
    if (self->end - self->begin < *length + RECORD_FRAME_BYTES)
        return end(self, error);
    *fits = true;
    return PLIM_OK;
}

static plim_status check(struct command_reader *self, const uint8_t *data, uint64_t length, const uint8_t *stored,
                         uint64_t at, plim_error *error)
{
    plim_status status = PLIM_OK;
    if (!record_checksum_holds(data, length, stored))
        status = damaged(self, at, "its data do not match their checksum", error);
    self->record++;
    return status;
}

/* A record larger than the buffer, into the room; nothing is lost when it does not fit. */
static plim_status read_large(struct string *out, struct command_reader *self, uint64_t length, struct room *room,
                              plim_error *error)
{
    uint8_t *data = room_take_bytes(room, length), foot[RECORD_FOOT_BYTES];
    uint64_t done = 0, at = self->at, all = length + RECORD_FOOT_BYTES;
    if (!data)
        return PLIM_OK;
    pass(self, RECORD_HEAD_BYTES);
    while (done < all) {
        uint8_t *to = done < length ? data + done : foot + (done - length);
        uint64_t most = done < length ? length - done : all - done;
        size_t got = self->end - self->begin;
        if (got) {
            got = got < most ? got : (size_t)most;
            memcpy(to, self->buffer + self->begin, got);
            self->begin += got;
        } else {
            TRY(read_more(&got, self, to, (size_t)most, error));
        }
        if (!got) {
            plim_status status = process_wait(&self->process, error);
            stop(self);
            return status == PLIM_OK ? damaged(self, at, "the output ends inside it", error) : status;
        }
        self->at += got;
        done += got;
    }
    TRY(check(self, data, length, foot, at, error));
    *out = (struct string){.data = data, .bytes = length};
    return PLIM_OK;
}

static plim_status read_small(struct string *out, struct command_reader *self, uint64_t length, plim_error *error)
{
    const uint8_t *data = self->buffer + self->begin + RECORD_HEAD_BYTES;
    uint64_t at = self->at;
    pass(self, (size_t)length + RECORD_FRAME_BYTES);
    TRY(check(self, data, length, data + length, at, error));
    *out = (struct string){.data = data, .bytes = length};
    return PLIM_OK;
}

/* Whether the next record lies whole in the buffer already: getting it moves no others. A bad one is told next time. */
static bool is_there(const struct command_reader *self)
{
    size_t left = self->end - self->begin;
    const uint8_t *head = self->buffer + self->begin;
    if (left < RECORD_HEAD_BYTES || !record_head_holds(head))
        return false;
    uint64_t length = record_length(head);
    return length <= left - RECORD_HEAD_BYTES && left - RECORD_HEAD_BYTES - length >= RECORD_FOOT_BYTES &&
           record_checksum_holds(head + RECORD_HEAD_BYTES, length, head + RECORD_HEAD_BYTES + length);
}

static plim_status command_next(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target,
                                plim_error *error)
{
    struct command_reader *self = (struct command_reader *)reader;
    struct string record = {0};
    uint64_t length;
    bool fits;
    *got = 0;
    if (!self->running || most < 1)
        return PLIM_OK;
    TRY(look(&length, &fits, self, error));
    if (!self->running)
        return PLIM_OK;
    TRY(fits ? read_small(&record, self, length, error) : read_large(&record, self, length, target->room, error));
    while (record.data) {
        memcpy((uint8_t *)target->to[0] + (uint64_t)*got * target->stride[0], &record, sizeof record);
        if (++*got == most || !is_there(self))
            break;
        TRY(read_small(&record, self, record_length(self->buffer + self->begin), error));
    }
    return PLIM_OK;
}

static void command_close(struct source *source)
{
    struct command_source *self = (struct command_source *)source;
    budget_give(source->budget, TAG_FORMATS, self, self->bytes);
}

static const struct source_type command_type = {
    .name = "command",
    .reader_open = command_reader_open,
    .reader_close = command_reader_close,
    .reader_rewind = command_rewind,
    .reader_next = command_next,
    .close = command_close,
};

plim_status command_open(struct source **out, struct budget *budget, const char *command, const char *folder,
                         plim_error *error)
{
    size_t command_bytes = strlen(command) + 1, folder_bytes = folder ? strlen(folder) + 1 : 0;
    size_t bytes = sizeof(struct command_source) + command_bytes + folder_bytes;
    if (command_bytes == 1)
        return fail(error, PLIM_BAD_JOB, "command: there is none");
    struct command_source *self = budget_take(budget, TAG_FORMATS, bytes);
    if (!self)
        return budget_refused(budget, TAG_FORMATS, bytes, error);
    char *text = (char *)(self + 1);
    self->bytes = bytes;
    self->command = memcpy(text, command, command_bytes);
    self->folder = folder ? memcpy(text + command_bytes, folder, folder_bytes) : NULL;
    self->base.type = &command_type;
    self->base.budget = budget;
    self->base.count = CARDINALITY_UNKNOWN;
    self->base.room_bytes = ROOM_BYTES;
    self->base.reader_bytes = budget_charge(READER_BYTES);
    plim_status status = spec_add(&self->base.spec, "record", TYPE_STRING, &(struct shape){0}, error);
    if (status != PLIM_OK) {
        source_close(&self->base);
        return status;
    }
    *out = &self->base;
    return PLIM_OK;
}
