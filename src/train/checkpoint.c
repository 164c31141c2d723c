/* checkpoint.c - the whole state of a run in one sealed file, two generations.

   Saving:  write checkpoint.safetensors.partial, current -> previous,
            partial -> current.
   Loading: current if its seal holds, else previous.

   Invariants:
    1. at every moment one of the two names is a whole checkpoint, once one
       was saved: a kill between the two renames leaves `previous`;
    2. nothing of the machine is written before the seal, the names and the
       shapes have been checked;
    3. doubles are kept as hexadecimal floats: they read back bit for bit. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "formats/safetensors.h"
#include "train/trainer.h"

#define FORMAT     "plimsoll checkpoint 1"
#define PATH_BYTES 4096
#define SEAL       "plimsoll.sha256"
#define SEAL_BYTES 32

static uint64_t tensor_bytes(const struct tensor *tensor)
{
    return (uint64_t)shape_count(&tensor->shape) * type_bytes(tensor->type);
}

static plim_status join(char out[PATH_BYTES], const char *folder, const char *name, plim_error *error)
{
    int length = snprintf(out, PATH_BYTES, "%s/%s", folder, name);
    return length < PATH_BYTES ? PLIM_OK : fail(error, PLIM_IO, "the path of the checkpoint folder is too long");
}

/* What saving and loading take beside the planned buffer. The header grows as
   text does (old and doubled new for a moment), names are kept to find duplicates,
   and the reader holds it with a table of entries. */
uint64_t checkpoint_cost(const struct program *program)
{
    uint64_t header = 2048, count = (uint64_t)program->persistent_count;
    for (int i = 0; i < program->persistent_count; i++)
        header += strlen(program->persistent[i]->name) + 100 + 21 * (uint64_t)program->persistent[i]->shape.rank;
    return 4 * header + 256 * count + 3 * PATH_BYTES + 4096;
}

/* ---- writing ---- */

__attribute__((format(printf, 4, 5))) static plim_status note(struct safetensors_writer *writer, plim_error *error,
                                                              const char *key, const char *format, ...)
{
    char value[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    return safetensors_note(writer, key, value, error);
}

static plim_status note_position(struct safetensors_writer *writer, const struct position *position, plim_error *error)
{
    TRY(note(writer, error, "format", "%s", FORMAT));
    TRY(note(writer, error, "version", "%s", PLIM_VERSION));
    TRY(note(writer, error, "epoch", "%" PRId64, position->epoch));
    TRY(note(writer, error, "step", "%" PRId64, position->step));
    TRY(note(writer, error, "total_steps", "%" PRId64, position->total_steps));
    TRY(note(writer, error, "epoch_samples", "%" PRId64, position->epoch_samples));
    TRY(note(writer, error, "loss_sum", "%a", position->loss_sum));
    TRY(note(writer, error, "metric_sum", "%a", position->metric_sum));
    TRY(note(writer, error, "seed", "%" PRIu64, position->seed));
    TRY(note(writer, error, "batch", "%" PRId64, position->batch));
    TRY(note(writer, error, "dataset_count", "%" PRId64, position->dataset_count));
    return note(writer, error, "instructions", "%s", position->instructions);
}

static plim_status declare_all(struct safetensors_writer *writer, const struct machine *machine, bool weights_only,
                               plim_error *error)
{
    const struct program *program = machine->program;
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        if (!weights_only || tensor->kind == KIND_WEIGHT)
            TRY(safetensors_declare(writer, tensor->name, tensor->type, &tensor->shape, error));
    }
    return PLIM_OK;
}

static plim_status write_all(struct safetensors_writer *writer, const struct machine *machine, bool weights_only,
                             plim_error *error)
{
    const struct program *program = machine->program;
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        if (!weights_only || tensor->kind == KIND_WEIGHT)
            TRY(safetensors_write(writer, persistent_data(machine, i), tensor_bytes(tensor), error));
    }
    return PLIM_OK;
}

static plim_status fill_checkpoint(struct safetensors_writer *writer, const struct machine *machine,
                                   const struct position *position, plim_error *error)
{
    TRY(note_position(writer, position, error));
    TRY(declare_all(writer, machine, false, error));
    safetensors_seal(writer);
    return write_all(writer, machine, false, error);
}

/* Puts the written file into place and keeps the one before. */
static plim_status rotate(struct safetensors_writer *writer, const char *current, const char *previous,
                          plim_error *error)
{
    bool exists, committed;
    TRY(safetensors_finish(writer, error));
    TRY(file_exists(&exists, current, error));
    if (exists)
        TRY(file_rename(current, previous, error));
    plim_status status = safetensors_commit(writer, error);
    if (status != PLIM_OK && exists && file_exists(&committed, current, NULL) == PLIM_OK && !committed)
        (void)file_rename(previous, current, NULL); /* failing that, loading finds it under its new name */
    return status;
}

/* The plan's own buffer for saving: it lies over what only steps need. */
static plim_status create(struct safetensors_writer **out, struct machine *machine, const char *path, plim_error *error)
{
    uint64_t bytes;
    void *buffer = machine_buffer(&bytes, machine, PHASE_SAVE);
    return safetensors_create(out, machine->budget, path, buffer, bytes, error);
}

/* Writes the partial file; with `keep` it becomes the newest checkpoint. */
static plim_status save(const char *folder, struct machine *machine, const struct position *position, bool keep,
                        plim_error *error)
{
    char current[PATH_BYTES], previous[PATH_BYTES];
    struct safetensors_writer *writer = NULL;
    TRY(join(current, folder, CHECKPOINT_NAME, error));
    TRY(join(previous, folder, CHECKPOINT_PREVIOUS_NAME, error));
    TRY(file_make_folder(folder, error));
    TRY(create(&writer, machine, current, error));
    plim_status status = fill_checkpoint(writer, machine, position, error);
    if (status == PLIM_OK)
        status = keep ? rotate(writer, current, previous, error) : safetensors_finish(writer, error);
    safetensors_abandon(writer);
    return status;
}

plim_status checkpoint_save(const char *folder, struct machine *machine, const struct position *position,
                            plim_error *error)
{
    return save(folder, machine, position, true, error);
}

plim_status checkpoint_rehearse(const char *folder, struct machine *machine, const struct position *position,
                                plim_error *error)
{
    return save(folder, machine, position, false, error);
}

plim_status weights_save(const char *path, struct machine *machine, plim_error *error)
{
    struct safetensors_writer *writer = NULL;
    TRY(create(&writer, machine, path, error));
    plim_status status = note(writer, error, "format", "%s", "plimsoll weights 1");
    if (status == PLIM_OK)
        status = declare_all(writer, machine, true, error);
    if (status == PLIM_OK)
        status = write_all(writer, machine, true, error);
    if (status == PLIM_OK)
        status = safetensors_commit(writer, error);
    safetensors_abandon(writer);
    return status;
}

/* ---- reading ---- */

static plim_status check_seal(struct safetensors *file, const char *path, plim_error *error)
{
    uint8_t stored[SEAL_BYTES], computed[SEAL_BYTES];
    const struct safetensors_entry *seal = safetensors_find(file, SEAL);
    if (!seal || seal->bytes != SEAL_BYTES)
        return fail_at(error, PLIM_BAD_DATA, path, "this is not a sealed checkpoint");
    TRY(safetensors_read(file, seal, 0, stored, SEAL_BYTES, error));
    TRY(safetensors_digest(computed, file, SEAL_BYTES, error));
    if (memcmp(stored, computed, SEAL_BYTES) != 0)
        return fail_at(error, PLIM_BAD_DATA, path,
                       "the checkpoint is damaged: its SHA-256 is not the one it was sealed with");
    return PLIM_OK;
}

static bool whole_note(int64_t *out, const struct safetensors *file, const char *key)
{
    const char *text = safetensors_metadata(file, key);
    char *end;
    errno = 0;
    long long value = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end || errno)
        return false;
    *out = value;
    return true;
}

static bool real_note(double *out, const struct safetensors *file, const char *key)
{
    const char *text = safetensors_metadata(file, key);
    char *end;
    double value = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end)
        return false;
    *out = value;
    return true;
}

static plim_status read_position(struct position *out, const struct safetensors *file, const char *path,
                                 plim_error *error)
{
    struct position position = {0};
    const char *format = safetensors_metadata(file, "format"), *seed = safetensors_metadata(file, "seed");
    const char *instructions = safetensors_metadata(file, "instructions");
    if (!format || strcmp(format, FORMAT) != 0)
        return fail_at(error, PLIM_BAD_DATA, path, "its format is '%s', this version reads '%s'", format ? format : "",
                       FORMAT);
    bool whole = whole_note(&position.epoch, file, "epoch") && whole_note(&position.step, file, "step") &&
                 whole_note(&position.total_steps, file, "total_steps") &&
                 whole_note(&position.epoch_samples, file, "epoch_samples") &&
                 whole_note(&position.batch, file, "batch") &&
                 whole_note(&position.dataset_count, file, "dataset_count") &&
                 real_note(&position.loss_sum, file, "loss_sum") && real_note(&position.metric_sum, file, "metric_sum");
    if (!whole || !seed || !instructions || position.epoch < 0 || position.step < 0)
        return fail_at(error, PLIM_BAD_DATA, path, "the position in the training data is missing or damaged");
    position.seed = strtoull(seed, NULL, 10);
    snprintf(position.instructions, sizeof position.instructions, "%s", instructions);
    *out = position;
    return PLIM_OK;
}

static plim_status check_tensor(const struct safetensors *file, const struct tensor *tensor, const char *path,
                                plim_error *error)
{
    char wanted[96], got[96];
    const struct safetensors_entry *entry = safetensors_find(file, tensor->name);
    if (!entry)
        return fail_at(error, PLIM_BAD_DATA, path, "it has no tensor '%s', the model has one", tensor->name);
    if (entry->type == tensor->type && shape_equal(&entry->shape, &tensor->shape))
        return PLIM_OK;
    shape_text(wanted, sizeof wanted, &tensor->shape, false);
    shape_text(got, sizeof got, &entry->shape, false);
    return fail_at(error, PLIM_BAD_DATA, path, "tensor '%s' is %s %s, the model has %s %s", tensor->name,
                   type_name(entry->type), got, type_name(tensor->type), wanted);
}

static bool is_persistent(const struct program *program, const char *name)
{
    for (int i = 0; i < program->persistent_count; i++)
        if (strcmp(program->persistent[i]->name, name) == 0)
            return true;
    return false;
}

/* Everything the machine wants is there, and nothing that it does not know. */
static plim_status check_tensors(const struct safetensors *file, const struct machine *machine, bool weights_only,
                                 const char *path, plim_error *error)
{
    const struct program *program = machine->program;
    for (int i = 0; i < program->persistent_count; i++)
        if (!weights_only || program->persistent[i]->kind == KIND_WEIGHT)
            TRY(check_tensor(file, program->persistent[i], path, error));
    for (int i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_at(file, i)->name;
        bool other = strcmp(name, SEAL) == 0 || (weights_only && strncmp(name, "optimizer/", 10) == 0);
        if (!other && !is_persistent(program, name))
            return fail_at(error, PLIM_BAD_DATA, path, "it has a tensor '%s', the model has none", name);
    }
    return PLIM_OK;
}

static plim_status read_tensors(struct safetensors *file, struct machine *machine, bool weights_only, plim_error *error)
{
    const struct program *program = machine->program;
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        if (weights_only && tensor->kind != KIND_WEIGHT)
            continue;
        const struct safetensors_entry *entry = safetensors_find(file, tensor->name);
        TRY(safetensors_read(file, entry, 0, persistent_data(machine, i), entry->bytes, error));
    }
    return PLIM_OK;
}

/* *whole tells a file that is damaged (false) from one that does not fit. */
static plim_status load_file(bool *whole, struct position *position, const char *path, struct machine *machine,
                             plim_error *error)
{
    struct safetensors *file = NULL;
    struct position loaded = {0};
    *whole = false;
    TRY(safetensors_open(&file, machine->budget, path, error));
    plim_status status = check_seal(file, path, error);
    *whole = status == PLIM_OK;
    if (status == PLIM_OK)
        status = read_position(&loaded, file, path, error);
    if (status == PLIM_OK)
        status = check_tensors(file, machine, false, path, error);
    if (status == PLIM_OK)
        status = read_tensors(file, machine, false, error);
    safetensors_close(file);
    if (status == PLIM_OK)
        *position = loaded;
    return status;
}

static bool passes_over(plim_status status, bool whole)
{
    return !whole && (status == PLIM_BAD_DATA || status == PLIM_IO || status == PLIM_UNSUPPORTED);
}

plim_status checkpoint_load(bool *found, struct position *position, char said[256], const char *folder,
                            struct machine *machine, plim_error *error)
{
    char current[PATH_BYTES], previous[PATH_BYTES];
    bool has_current, has_previous, whole;
    plim_error newest = {0};
    plim_status status = PLIM_OK;
    said[0] = '\0';
    TRY(join(current, folder, CHECKPOINT_NAME, error));
    TRY(join(previous, folder, CHECKPOINT_PREVIOUS_NAME, error));
    TRY(file_exists(&has_current, current, error));
    TRY(file_exists(&has_previous, previous, error));
    if (!has_current && !has_previous) {
        *found = false;
        return PLIM_OK;
    }
    if (has_current) {
        status = load_file(&whole, position, current, machine, &newest);
        if (status == PLIM_OK || !has_previous || !passes_over(status, whole)) {
            if (status == PLIM_OK)
                *found = true;
            else if (error)
                *error = newest;
            return status;
        }
    }
    TRY(load_file(&whole, position, previous, machine, error));
    snprintf(said, 256, "%.100s: %.80s; went on from the checkpoint before it", current,
             has_current ? newest.message : "is missing");
    *found = true;
    return PLIM_OK;
}

plim_status weights_load(const char *path, struct machine *machine, plim_error *error)
{
    struct safetensors *file = NULL;
    TRY(safetensors_open(&file, machine->budget, path, error));
    plim_status status = check_tensors(file, machine, true, path, error);
    if (status == PLIM_OK)
        status = read_tensors(file, machine, true, error);
    safetensors_close(file);
    return status;
}
