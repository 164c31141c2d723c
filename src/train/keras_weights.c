/* keras_weights.c - the weights of a .keras file, straight into their planned place. */
#include <string.h>

#include "formats/weights/keras_file.h"
#include "plan/planner.h"
#include "train/trainer.h"

#define SAVED_PATH_BYTES 700

struct origin {
    struct keras_file *file;
    const char *path;
    const struct build *build;
    const char **paths; /* by layer */
    struct arena arena;
};

static plim_status open_origin(struct origin *origin, const char *path, const struct build *build,
                               struct budget *budget, struct scratch_disk *scratch, plim_error *error)
{
    *origin = (struct origin){.path = path, .build = build};
    arena_init(&origin->arena, budget, TAG_CHECKPOINT);
    TRY(model_saved_paths(&origin->paths, build->model, &origin->arena, error));
    TRY(keras_file_open(&origin->file, budget, path, error));
    return keras_file_weights(origin->file, scratch, error);
}

static void close_origin(struct origin *origin)
{
    keras_file_close(origin->file);
    arena_release(&origin->arena);
}

const struct weight *weight_named(const struct build *build, const char *name, int *guess)
{
    for (int i = 0; i < build->weight_count; i++) {
        int at = (*guess + i) % build->weight_count;
        if (strcmp(build->weight[at].name, name) == 0) {
            *guess = at + 1;
            return &build->weight[at];
        }
    }
    return NULL;
}

static plim_status find_weight(struct hdf5_dataset *out, const struct origin *origin, const struct tensor *tensor,
                               const struct weight *weight, plim_error *error)
{
    char saved[SAVED_PATH_BYTES], wanted[96], got[96];
    weight_saved_path(saved, sizeof saved, origin->build, origin->paths, weight);
    plim_status status = keras_file_find(out, origin->file, saved, error);
    if (status != PLIM_OK)
        return hint(error, status, "it is the model's weight '%.150s'", tensor->name);
    if (shape_equal(&out->shape, &tensor->shape) && tensor->type == TYPE_F32)
        return PLIM_OK;
    shape_text(wanted, sizeof wanted, &tensor->shape, false);
    shape_text(got, sizeof got, &out->shape, false);
    return fail_at(error, PLIM_BAD_DATA, origin->path, "'%s' is %s, the model's '%s' is %s", saved, got, tensor->name,
                   wanted);
}

/* machine NULL: only looks. Everything is looked at before anything is read. */
static plim_status each_weight(const struct origin *origin, const struct program *program, struct machine *machine,
                               plim_error *error)
{
    struct hdf5_dataset dataset = {0};
    int guess = 0;
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        const struct weight *weight =
            tensor->kind == KIND_WEIGHT ? weight_named(origin->build, tensor->name, &guess) : NULL;
        if (!weight)
            continue; /* a program may have weights besides the model's */
        TRY(find_weight(&dataset, origin, tensor, weight, error));
        if (!machine)
            continue;
        TRY(keras_file_read(origin->file, &dataset, state_piece(machine, i, 0).data,
                            error)); /* weights have one piece */
        TRY(state_store(machine, i, 0, error));
    }
    return PLIM_OK;
}

plim_status keras_weights_check(uint64_t *cost, const char *path, const struct plan *plan,
                                const struct scratch_disk *scratch, plim_error *error)
{
    struct budget *budget = plan->budget;
    struct origin origin;
    struct scratch_disk looked = *scratch; /* what is unpacked now is given back */
    uint64_t before = budget_usage(budget).now;
    plim_status status = open_origin(&origin, path, plan->train.build, budget, &looked, error);
    if (status == PLIM_OK)
        status = each_weight(&origin, plan->program, NULL, error);
    *cost = budget_usage(budget).now - before + SCRATCH_BUFFER_BYTES + 4096;
    close_origin(&origin);
    return status;
}

plim_status keras_weights_load(const char *path, struct machine *machine, const struct build *build,
                               struct scratch_disk *scratch, plim_error *error)
{
    struct origin origin;
    struct scratch_disk used = *scratch;
    plim_status status = open_origin(&origin, path, build, machine->budget, &used, error);
    if (status == PLIM_OK)
        status = each_weight(&origin, machine->program, NULL, error);
    if (status == PLIM_OK)
        status = each_weight(&origin, machine->program, machine, error);
    close_origin(&origin);
    return status;
}
