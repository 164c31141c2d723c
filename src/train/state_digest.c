/* state_digest.c - one digest of all weights, or of the optimizer's state.
   Two runs with equal digests are the same run. */
#include <string.h>

#include "base/numbers/digest.h"
#include "train/trainer.h"

/* Little-endian, so that machines agree. */
static void add_number(struct sha256 *sha, uint64_t number)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    sha256_add(sha, bytes, sizeof bytes);
}

static plim_status add_tensor(struct sha256 *sha, struct machine *machine, int i, plim_error *error)
{
    const struct tensor *tensor = machine->program->persistent[i];
    const char *type = type_name(tensor->type);
    sha256_add(sha, tensor->name, strlen(tensor->name) + 1);
    sha256_add(sha, type, strlen(type) + 1);
    add_number(sha, (uint64_t)tensor->shape.rank);
    for (int axis = 0; axis < tensor->shape.rank; axis++)
        add_number(sha, (uint64_t)tensor->shape.dim[axis]);
    for (int piece = 0; piece < state_pieces(machine, i); piece++) {
        struct state_bytes bytes;
        TRY(state_load(&bytes, machine, i, piece, error));
        sha256_add(sha, bytes.data, bytes.bytes);
    }
    return PLIM_OK;
}

/* The next name after `last` in order; -1 at the end. A search a tensor takes
   no memory, and hashing the bytes costs more. */
static int next_in_order(const struct program *program, enum kind kind, const char *last)
{
    int best = -1;
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        if (tensor->kind != kind || is_metric_state(tensor->name) || (last && strcmp(tensor->name, last) <= 0))
            continue;
        if (best < 0 || strcmp(tensor->name, program->persistent[best]->name) < 0)
            best = i;
    }
    return best;
}

plim_status digest_weights(char text[65], struct machine *machine, enum kind kind, plim_error *error)
{
    struct sha256 sha;
    uint8_t digest[32];
    const char *last = NULL;
    sha256_init(&sha);
    for (int i; (i = next_in_order(machine->program, kind, last)) >= 0; last = machine->program->persistent[i]->name)
        TRY(add_tensor(&sha, machine, i, error));
    sha256_end(&sha, digest);
    sha256_text(text, digest);
    return PLIM_OK;
}
