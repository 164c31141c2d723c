/* checkpoint.c - the whole state of a run in one sealed file; weights alone.

   Invariants:
    1. nothing of the machine is written before the seal, the names and the
       shapes have been checked;
    2. doubles are kept as hexadecimal floats: they read back bit for bit. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/numbers.h"
#include "formats/weights/safetensors.h"
#include "train/trainer.h"
#include "transform/in_place.h"

#define FORMAT     "plimsoll checkpoint 1"
#define SEAL       "plimsoll.sha256"
#define SEAL_BYTES 32
/* Of all notes about the position, at most. */
#define NOTES_BYTES (4096 + 48 * MOST_METRICS)

void path_folder(char out[CHECKPOINT_PATH_BYTES], const char *path)
{
    const char *slash = strrchr(path, '/');
    int length = slash == path ? 1 : slash ? (int)(slash - path) : 0;
    snprintf(out, CHECKPOINT_PATH_BYTES, "%.*s", length ? length : 1, length ? path : ".");
}

static uint64_t digits(uint64_t number)
{
    uint64_t count = 1;
    while (number >= 10) {
        number /= 10;
        count++;
    }
    return count;
}

/* As JSON writes it: what has to be escaped takes up to six characters. */
static uint64_t written_bytes(const char *name)
{
    uint64_t bytes = 0;
    for (; *name; name++)
        bytes += *name == '"' || *name == '\\' ? 2 : (unsigned char)*name < 0x20 ? 6 : 1;
    return bytes;
}

static uint64_t all_bytes(const struct program *program)
{
    uint64_t bytes = program->persistent_bytes;
    for (int i = 0; i < program->persistent_count; i++)
        bytes += program_home(program, i) ? tensor_bytes(program->persistent[i]) : 0;
    return bytes;
}

/* At most: names, shapes, offsets and notes. An entry is "NAME":{"dtype":"BF16","shape":[1,2],"data_offsets":[3,4]}, */
static uint64_t header_bytes(const struct program *program)
{
    const uint64_t words = sizeof "\"\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[,]},";
    uint64_t bytes = NOTES_BYTES, offset = digits(all_bytes(program));
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        bytes += written_bytes(tensor->name) + words + 2 * offset;
        for (int d = 0; d < tensor->shape.rank; d++)
            bytes += digits((uint64_t)tensor->shape.dim[d]) + 1;
    }
    return bytes;
}

/* What saving or loading takes beside the planned buffer, never both at a time. Saving: the header's text, which is
   reserved at its length, and names to find duplicates; notes are a text of their own that grows. Loading: the header
   with a table of entries. The folder's lock and the file that proves room are open beside it. */
uint64_t checkpoint_cost(const struct program *program)
{
    uint64_t header = header_bytes(program), count = (uint64_t)program->persistent_count;
    uint64_t saving = safetensors_header_cost(header, count) + 4 * NOTES_BYTES, loading = header + 256 * count;
    return (saving > loading ? saving : loading) + 5 * CHECKPOINT_PATH_BYTES + 4096;
}

uint64_t checkpoint_bytes(const struct program *program, bool weights_only)
{
    uint64_t bytes = 4096 + header_bytes(program) + SEAL_BYTES;
    for (int i = 0; i < program->persistent_count; i++)
        if (!weights_only || program->persistent[i]->kind == KIND_WEIGHT)
            bytes += tensor_bytes(program->persistent[i]);
    return bytes;
}

/* ---- writing ---- */

__attribute__((format(printf, 4, 5))) static plim_status note(struct safetensors_writer *writer, plim_error *error,
                                                              const char *key, const char *format, ...)
{
    char value[128];
    va_list arguments;
    va_start(arguments, format);
    number_print_list(value, sizeof value, format, arguments);
    va_end(arguments);
    return safetensors_note(writer, key, value, error);
}

/* "data" and "data_files", "data_bytes", "data_changed", "data_name". */
static plim_status note_fingerprint(struct safetensors_writer *writer, const char *key, const struct fingerprint *data,
                                    plim_error *error)
{
    char longer[64];
    if (!data->digest[0])
        return PLIM_OK;
    TRY(note(writer, error, key, "%s", data->digest));
    snprintf(longer, sizeof longer, "%s_files", key);
    TRY(note(writer, error, longer, "%" PRId64, data->files));
    snprintf(longer, sizeof longer, "%s_bytes", key);
    TRY(note(writer, error, longer, "%" PRIu64, data->bytes));
    snprintf(longer, sizeof longer, "%s_changed", key);
    TRY(note(writer, error, longer, "%" PRId64, data->changed));
    snprintf(longer, sizeof longer, "%s_name", key);
    return note(writer, error, longer, "%s", data->name);
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
    TRY(note(writer, error, "metric_sum", "%a", position->metric_sum[0]));
    for (int m = 1; m < MOST_METRICS; m++) {
        char key[32];
        snprintf(key, sizeof key, "metric_sum_%d", m);
        if (position->metric_sum[m] != 0.0)
            TRY(note(writer, error, key, "%a", position->metric_sum[m]));
    }
    TRY(note(writer, error, "seed", "%" PRIu64, position->seed));
    TRY(note(writer, error, "batch", "%" PRId64, position->batch));
    TRY(note(writer, error, "dataset_count", "%" PRId64, position->dataset_count));
    if (position->job[0])
        TRY(note(writer, error, "job", "%s", position->job));
    TRY(note_fingerprint(writer, "data", &position->data, error));
    TRY(note_fingerprint(writer, "validation_data", &position->validation, error));
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

static plim_status write_tensor(struct safetensors_writer *writer, struct machine *machine, int i, plim_error *error)
{
    for (int piece = 0; piece < state_pieces(machine, i); piece++) {
        struct state_bytes bytes;
        TRY(state_load(&bytes, machine, i, piece, error));
        TRY(safetensors_write(writer, bytes.data, bytes.bytes, error));
    }
    return PLIM_OK;
}

static plim_status write_all(struct safetensors_writer *writer, struct machine *machine, bool weights_only,
                             plim_error *error)
{
    const struct program *program = machine->program;
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        if (!weights_only || tensor->kind == KIND_WEIGHT)
            TRY(write_tensor(writer, machine, i, error));
    }
    return PLIM_OK;
}

static plim_status fill_checkpoint(struct safetensors_writer *writer, struct machine *machine,
                                   const struct position *position, plim_error *error)
{
    TRY(note_position(writer, position, error));
    TRY(declare_all(writer, machine, false, error));
    safetensors_seal(writer);
    return write_all(writer, machine, false, error);
}

/* The plan's own buffer for saving: it lies over what only steps need. */
static plim_status create(struct safetensors_writer **out, struct machine *machine, const char *path, plim_error *error)
{
    uint64_t bytes;
    void *buffer = machine_buffer(&bytes, machine, PHASE_SAVE);
    struct safetensors_writer *writer = NULL;
    TRY(safetensors_create(&writer, machine->budget, path, buffer, bytes, error));
    plim_status status =
        safetensors_expect(writer, header_bytes(machine->program), (uint64_t)machine->program->persistent_count, error);
    if (status == PLIM_OK)
        *out = writer;
    else
        safetensors_abandon(writer);
    return status;
}

plim_status checkpoint_write(struct safetensors_writer **out, const char *path, struct machine *machine,
                             const struct position *position, plim_error *error)
{
    struct safetensors_writer *writer = NULL;
    TRY(create(&writer, machine, path, error));
    plim_status status = fill_checkpoint(writer, machine, position, error);
    if (status == PLIM_OK)
        status = safetensors_finish(writer, error);
    if (status == PLIM_OK)
        *out = writer;
    else
        safetensors_abandon(writer);
    return status;
}

static plim_status declare_weights(struct safetensors_writer *writer, struct machine *machine, plim_error *error)
{
    TRY(note(writer, error, "format", "%s", "plimsoll weights 1"));
    return declare_all(writer, machine, true, error);
}

/* What saving will do, but for the bytes and the name at the end. */
plim_status weights_rehearse(const char *path, struct machine *machine, plim_error *error)
{
    char folder[CHECKPOINT_PATH_BYTES];
    struct safetensors_writer *writer = NULL;
    TRY(file_check_target(path, error));
    TRY(create(&writer, machine, path, error));
    plim_status status = declare_weights(writer, machine, error);
    safetensors_abandon(writer);
    TRY(status);
    path_folder(folder, path);
    return file_prove_room(machine->budget, folder, checkpoint_bytes(machine->program, true), error);
}

plim_status weights_save(const char *path, struct machine *machine, plim_error *error)
{
    struct safetensors_writer *writer = NULL;
    TRY(create(&writer, machine, path, error));
    plim_status status = declare_weights(writer, machine, error);
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
    double value = text ? number_parse(text, &end) : 0;
    if (!text || end == text || *end)
        return false;
    *out = value;
    return true;
}

/* What is missing or damaged of what only informs is nothing; without a digest there is nothing to compare. */
static void read_fingerprint(struct fingerprint *out, const struct safetensors *file, const char *key)
{
    char longer[64];
    int64_t bytes = 0;
    const char *digest = safetensors_metadata(file, key), *name;
    *out = (struct fingerprint){0};
    snprintf(out->digest, sizeof out->digest, "%s", digest ? digest : "");
    snprintf(longer, sizeof longer, "%s_files", key);
    (void)whole_note(&out->files, file, longer);
    snprintf(longer, sizeof longer, "%s_bytes", key);
    if (whole_note(&bytes, file, longer))
        out->bytes = (uint64_t)bytes;
    snprintf(longer, sizeof longer, "%s_changed", key);
    (void)whole_note(&out->changed, file, longer);
    snprintf(longer, sizeof longer, "%s_name", key);
    name = safetensors_metadata(file, longer);
    snprintf(out->name, sizeof out->name, "%s", name ? name : "");
}

/* Counts are added to, and made into doubles: beyond this one is none that a run has reached. */
static bool is_count(int64_t value)
{
    return value >= 0 && value <= (int64_t)1 << 53;
}

static plim_status read_position(struct position *out, const struct safetensors *file, const char *path,
                                 plim_error *error)
{
    struct position position = {0};
    const char *format = safetensors_metadata(file, "format"), *seed = safetensors_metadata(file, "seed");
    const char *instructions = safetensors_metadata(file, "instructions"), *job = safetensors_metadata(file, "job");
    if (!format || strcmp(format, FORMAT) != 0)
        return fail_at(error, PLIM_BAD_DATA, path, "its format is '%s', this version reads '%s'", format ? format : "",
                       FORMAT);
    bool whole =
        whole_note(&position.epoch, file, "epoch") && whole_note(&position.step, file, "step") &&
        whole_note(&position.total_steps, file, "total_steps") &&
        whole_note(&position.epoch_samples, file, "epoch_samples") && whole_note(&position.batch, file, "batch") &&
        whole_note(&position.dataset_count, file, "dataset_count") && real_note(&position.loss_sum, file, "loss_sum") &&
        real_note(&position.metric_sum[0], file, "metric_sum");
    for (int m = 1; m < MOST_METRICS && whole; m++) {
        char key[32];
        snprintf(key, sizeof key, "metric_sum_%d", m);
        whole = !safetensors_metadata(file, key) || real_note(&position.metric_sum[m], file, key);
    }
    if (!whole || !seed || !instructions || !is_count(position.epoch) || !is_count(position.step) ||
        !is_count(position.total_steps) || !is_count(position.epoch_samples))
        return fail_at(error, PLIM_BAD_DATA, path, "the position in the training data is missing or damaged");
    position.seed = strtoull(seed, NULL, 10);
    snprintf(position.instructions, sizeof position.instructions, "%s", instructions);
    snprintf(position.job, sizeof position.job, "%s", job ? job : "");
    read_fingerprint(&position.data, file, "data");
    read_fingerprint(&position.validation, file, "validation_data");
    *out = position;
    return PLIM_OK;
}

static plim_status check_tensor(const struct safetensors *file, const struct tensor *tensor, const char *path,
                                plim_error *error)
{
    char wanted[96], got[96];
    const struct safetensors_entry *entry = safetensors_find(file, tensor->name);
    if (!entry && is_metric_state(tensor->name)) /* another metric than before: it counts from here on */
        return PLIM_OK;
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
static plim_status check_tensors(const struct safetensors *file, const struct program *program, bool weights_only,
                                 const char *path, plim_error *error)
{
    for (int i = 0; i < program->persistent_count; i++)
        if (!weights_only || program->persistent[i]->kind == KIND_WEIGHT)
            TRY(check_tensor(file, program->persistent[i], path, error));
    for (int i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_at(file, i)->name;
        bool other = strcmp(name, SEAL) == 0 || is_metric_state(name) ||
                     (weights_only && (is_layer_state(name) || strncmp(name, "optimizer/", 10) == 0));
        if (!other && !is_persistent(program, name))
            return fail_at(error, PLIM_BAD_DATA, path, "it has a tensor '%s', the model has none", name);
    }
    return PLIM_OK;
}

/* The optimizer counts on from here. Whether there is one to read was checked with the other tensors. */
static plim_status check_iteration(struct safetensors *file, const char *path, plim_error *error)
{
    int64_t iteration;
    const struct safetensors_entry *entry = safetensors_find(file, "optimizer/iteration");
    if (!entry || entry->bytes != sizeof iteration)
        return PLIM_OK;
    TRY(safetensors_read(file, entry, 0, &iteration, sizeof iteration, error));
    if (is_count(iteration))
        return PLIM_OK;
    return fail_at(error, PLIM_BAD_DATA, path, "the optimizer's iteration is %lld, which no run has reached",
                   (long long)iteration);
}

static plim_status read_tensor(struct safetensors *file, const struct safetensors_entry *entry, struct machine *machine,
                               int i, plim_error *error)
{
    for (int piece = 0; piece < state_pieces(machine, i); piece++) {
        struct state_bytes bytes = state_piece(machine, i, piece);
        TRY(safetensors_read(file, entry, bytes.first, bytes.data, bytes.bytes, error));
        TRY(state_store(machine, i, piece, error));
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
        if (!entry) /* of a metric */
            continue;
        TRY(read_tensor(file, entry, machine, i, error));
    }
    return PLIM_OK;
}

plim_status checkpoint_steps(int64_t *steps, const char *path, struct budget *budget, plim_error *error)
{
    struct safetensors *file = NULL;
    TRY(safetensors_open(&file, budget, path, error));
    if (!whole_note(steps, file, "total_steps"))
        *steps = -1;
    safetensors_close(file);
    return PLIM_OK;
}

plim_status checkpoint_is_whole(const char *path, struct budget *budget, plim_error *error)
{
    struct safetensors *file = NULL;
    TRY(safetensors_open(&file, budget, path, error));
    plim_status status = check_seal(file, path, error);
    safetensors_close(file);
    return status;
}

plim_status checkpoint_read(bool *whole, struct position *position, const char *path, struct machine *machine,
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
        status = check_tensors(file, machine->program, false, path, error);
    if (status == PLIM_OK)
        status = check_iteration(file, path, error);
    if (status == PLIM_OK)
        status = read_tensors(file, machine, false, error);
    safetensors_close(file);
    if (status == PLIM_OK)
        *position = loaded;
    return status;
}

plim_status weights_check(uint64_t *cost, const char *path, const struct program *program, struct budget *budget,
                          plim_error *error)
{
    struct safetensors *file = NULL;
    uint64_t before = budget_usage(budget).now;
    TRY(safetensors_open(&file, budget, path, error));
    uint64_t held = budget_usage(budget).now - before;
    plim_status status = check_tensors(file, program, true, path, error);
    safetensors_close(file);
    if (status == PLIM_OK)
        *cost = held;
    return status;
}

plim_status weights_load(const char *path, struct machine *machine, plim_error *error)
{
    struct safetensors *file = NULL;
    TRY(safetensors_open(&file, machine->budget, path, error));
    plim_status status = check_tensors(file, machine->program, true, path, error);
    if (status == PLIM_OK)
        status = read_tensors(file, machine, true, error);
    safetensors_close(file);
    return status;
}
