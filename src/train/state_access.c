/* state_access.c - weights and states between phases: first values, checkpoints, digests.

   What is not paged is at its place. Of a paged tensor one piece at a time is in the window of the tensor arena, which
   lies where values of a phase are while one runs. */
#include "base/files/transfer_file.h"
#include "base/numbers/checked.h"
#include "train/trainer.h"
#include "transform/in_place.h"

int state_pieces(const struct machine *machine, int i)
{
    const struct home *home = program_home(machine->program, i);
    return home ? home->pieces : 1;
}

struct state_bytes state_piece(const struct machine *machine, int i, int piece)
{
    const struct program *program = machine->program;
    const struct home *home = program_home(program, i);
    if (!home)
        return (struct state_bytes){.data = machine->tensor_arena + program->persistent_offset[i],
                                    .bytes = tensor_bytes(program->persistent[i])};
    return (struct state_bytes){.data = machine->tensor_arena + program->window_offset,
                                .first = home_first(home, piece),
                                .bytes = home_bytes(home, piece)};
}

/* The window has the last number among the transfers. */
static int window_transfer(const struct machine *machine)
{
    return machine->program->transfer_count - 1;
}

static plim_status move_window(struct machine *machine, int i, int piece, bool out, plim_error *error)
{
    const struct program *program = machine->program;
    const struct home *home = program_home(program, i);
    uint64_t at = home_offset(home, piece);
    uint64_t bytes = round_up(home_bytes(home, piece), TRANSFER_ALIGNMENT);
    uint8_t *window = machine->tensor_arena + program->window_offset;
    int id = window_transfer(machine);
    TRY(out ? transfer_out(machine->scratch, id, at, window, bytes, error)
            : transfer_in(machine->scratch, id, at, window, bytes, error));
    return transfer_wait(machine->scratch, id, error);
}

plim_status state_load(struct state_bytes *out, struct machine *machine, int i, int piece, plim_error *error)
{
    *out = state_piece(machine, i, piece);
    return program_home(machine->program, i) ? move_window(machine, i, piece, false, error) : PLIM_OK;
}

plim_status state_store(struct machine *machine, int i, int piece, plim_error *error)
{
    return program_home(machine->program, i) ? move_window(machine, i, piece, true, error) : PLIM_OK;
}

plim_status state_initialize(struct machine *machine, int i, plim_error *error)
{
    const struct tensor *tensor = machine->program->persistent[i];
    for (int piece = 0; piece < state_pieces(machine, i); piece++) {
        struct state_bytes bytes = state_piece(machine, i, piece);
        for (uint64_t k = 0; k < bytes.bytes / type_bytes(tensor->type); k++)
            element_set(bytes.data, tensor->type, (int64_t)k, tensor->initial);
        TRY(state_store(machine, i, piece, error));
    }
    return PLIM_OK;
}
