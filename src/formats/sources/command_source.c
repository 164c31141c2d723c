/* command_source.c - records that a program writes to its standard output, in TFRecord's framing.

   The program runs once an epoch, from rewind on; $1 of its command line is the number of the epoch. */
#include <stdio.h>
#include <string.h>

#include "base/files/process.h"
#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/records/record_pipe.h"
#include "formats/tables/rows.h"

#define BUFFER_BYTES ((size_t)64 * 1024)
#define ROOM_BYTES   ((uint64_t)256 * 1024)

struct command_source {
    struct source base;
    const char *command, *folder;
};

struct command_reader {
    struct command_source *source;
    struct budget *budget;
    struct process process;
    bool running; /* it is open; else not started, or the epoch is over */
    struct record_pipe pipe;
    uint8_t buffer[];
};

#define READER_BYTES (sizeof(struct command_reader) + BUFFER_BYTES)

/* ---- opening, closing ---- */

static plim_status command_reader_open(struct reader **out, struct source *source, struct budget *budget,
                                       plim_error *error)
{
    struct command_reader *self;
    TRY(budget_alloc(&self, budget, TAG_FORMATS, READER_BYTES, error));
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
}

static void command_reader_close(struct reader *reader)
{
    struct command_reader *self = (struct command_reader *)reader;
    stop(self);
    budget_give(self->budget, TAG_FORMATS, self, READER_BYTES);
}

/* ---- from the beginning, on ---- */

static plim_status read_output(size_t *got, void *context, void *to, size_t bytes, plim_error *error)
{
    struct command_reader *self = context;
    TRY(process_read(got, &self->process, to, bytes, error));
    source_count_read(&self->source->base, *got);
    return PLIM_OK;
}

static plim_status output_ended(void *context, plim_error *error)
{
    return process_wait(&((struct command_reader *)context)->process, error);
}

static const struct pipe_input output = {.read = read_output, .ended = output_ended};

static plim_status command_rewind(struct reader *reader, uint64_t epoch, plim_error *error)
{
    struct command_reader *self = (struct command_reader *)reader;
    char number[24];
    stop(self);
    snprintf(number, sizeof number, "%llu", (unsigned long long)epoch);
    TRY(process_open(&self->process, self->budget, self->source->command, self->source->folder, number, error));
    self->running = true;
    record_pipe_begin(&self->pipe, &output, self, self->source->command, self->buffer, BUFFER_BYTES);
    return PLIM_OK;
}

static plim_status command_next(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target,
                                plim_error *error)
{
    struct command_reader *self = (struct command_reader *)reader;
    *got = 0;
    if (!self->running)
        return PLIM_OK;
    plim_status status = record_pipe_next(got, &self->pipe, most, target, error);
    if (self->pipe.over)
        stop(self);
    return status;
}

static const struct source_type command_type = {
    .name = "command",
    .reader_open = command_reader_open,
    .reader_close = command_reader_close,
    .reader_rewind = command_rewind,
    .reader_next = command_next,
};

plim_status command_open(struct source **out, struct budget *budget, const char *command, const char *folder,
                         plim_error *error)
{
    size_t command_bytes = strlen(command) + 1, folder_bytes = folder ? strlen(folder) + 1 : 0;
    size_t bytes = sizeof(struct command_source) + command_bytes + folder_bytes;
    if (command_bytes == 1)
        return fail(error, PLIM_BAD_JOB, "command: there is none");
    struct command_source *self;
    TRY(source_make(&self, bytes, &command_type, budget, error));
    char *text = (char *)(self + 1);
    self->command = memcpy(text, command, command_bytes);
    self->folder = folder ? memcpy(text + command_bytes, folder, folder_bytes) : NULL;
    self->base.count = CARDINALITY_UNKNOWN;
    self->base.value_bytes = ROOM_BYTES;
    self->base.reader_bytes = budget_charge(READER_BYTES);
    return source_opened(out, &self->base,
                         spec_add(&self->base.spec, "record", TYPE_STRING, &(struct shape){0}, error));
}
