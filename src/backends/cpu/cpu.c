/* cpu.c - the CPU backend: which kernels there are for a node, and the
   kernels made so far.

   A kernel is made once for each op, attributes, types, shapes and slice; equal
   layers share it. Kernels live until the backend is closed. */
#include "backends/cpu/cpu.h"

#include <string.h>

#include "backends/cpu/onednn/onednn.h"
#include "base/memory/work.h"
#include "base/numbers/hash.h"
#include "base/threads/clock.h"
#include "ops/ops.h"

#define PEAK_RUNS   50
#define PEAK_ROUNDS 50000

/* Room for a key: op, slices, types and shapes, attributes. */
#define KEY_BYTES 2048

struct key {
    size_t bytes;
    bool full;
    unsigned char data[KEY_BYTES];
};

static void key_add(struct key *key, const void *data, size_t bytes)
{
    if (bytes > KEY_BYTES - key->bytes) {
        key->full = true;
        return;
    }
    if (bytes)
        memcpy(key->data + key->bytes, data, bytes);
    key->bytes += bytes;
}

static void key_tensor(struct key *key, const struct tensor *tensor)
{
    int64_t head[3] = {0};
    if (tensor) {
        head[0] = 1 + tensor->batched; /* how a node is cut hangs on it */
        head[1] = tensor->type;
        head[2] = tensor->shape.rank;
    }
    key_add(key, head, sizeof head);
    if (tensor)
        key_add(key, tensor->shape.dim, (size_t)tensor->shape.rank * sizeof *tensor->shape.dim);
}

static plim_status key_make(struct key *key, const struct cpu_request *request, plim_error *error)
{
    const struct node *node = request->asked->node;
    key->bytes = 0;
    key->full = false;
    key_add(key, &node->op, sizeof node->op);
    key_add(key, &request->asked->slice, sizeof request->asked->slice);
    key_add(key, &request->asked->short_count, sizeof request->asked->short_count);
    key_add(key, request->asked->short_rows, (size_t)request->asked->short_count * sizeof *request->asked->short_rows);
    for (int i = 0; i < node->input_count; i++)
        key_tensor(key, node->input[i]);
    for (int i = 0; i < node->output_count; i++)
        key_tensor(key, node->output[i]);
    key_add(key, node->attributes, node->attributes_bytes);
    if (key->full)
        return fail(error, PLIM_INTERNAL, "%s: too many operands for a kernel", node->op->name);
    return PLIM_OK;
}

static uint64_t key_hash(const unsigned char *data, size_t bytes)
{
    uint64_t hash = fnv1a(FNV1A_START, data, bytes);
    return hash ^ hash >> 32;
}

/* The backend with a table of its kernels by the hash of their keys: a model of thousands of layers may have as many
   shapes. Open addressing, at most half full. */
struct known {
    uint64_t hash;
    struct cpu_kernel *kernel; /* NULL: free */
};

struct cpu_table {
    struct cpu_backend cpu; /* first */
    struct known *known;
    size_t count, capacity; /* capacity: a power of two */
    uint64_t steps;         /* entries that were looked at */
};

/* Where the kernel of that key is, or would be. */
static struct known *find(struct cpu_table *table, const unsigned char *key, size_t bytes, uint64_t hash)
{
    for (uint64_t at = hash;; at++) {
        struct known *known = &table->known[at & (table->capacity - 1)];
        const struct cpu_kernel *own = known->kernel;
        table->steps++;
        if (!own || (known->hash == hash && own->key_bytes == bytes && memcmp(own->key, key, bytes) == 0))
            return known;
    }
}

static bool table_room(struct cpu_table *table)
{
    struct cpu_table larger = {.capacity = table->capacity ? 2 * table->capacity : 64};
    if (2 * table->count < table->capacity)
        return true;
    larger.known = arena_array(&table->cpu.arena, larger.capacity, sizeof *larger.known);
    if (!larger.known)
        return false;
    for (size_t i = 0; i < table->capacity; i++) {
        const struct cpu_kernel *own = table->known[i].kernel;
        if (own)
            *find(&larger, own->key, own->key_bytes, table->known[i].hash) = table->known[i];
    }
    table->known = larger.known;
    table->capacity = larger.capacity;
    return true;
}

static void run_reference(const struct kernel *kernel, const struct call *call)
{
    (void)kernel;
    call->node->op->reference(call);
}

bool cpu_refused(struct cpu_request *request)
{
    request->status = arena_refused(&request->backend->arena, request->error);
    return false;
}

/* Runs the makers of this op until one takes the node, or fails. */
static bool make_from(struct cpu_kernel *out, const struct cpu_entry *entry, int count, struct cpu_request *request)
{
    for (int i = 0; i < count && request->status == PLIM_OK; i++)
        if (entry[i].op == request->asked->node->op && entry[i].make(out, request->asked->node, request)) {
            out->kernel.run = out->kernel.run ? out->kernel.run : entry[i].run;
            return true;
        }
    return false;
}

/* Norms and counts of a whole step: one number of each operand, which no kernel could add sooner. */
static bool is_of_one_number(const struct node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && shape_count(&node->input[i]->shape) != 1)
            return false;
    return shape_count(&node->output[0]->shape) == 1;
}

static plim_status make_kernel(struct cpu_kernel *out, struct cpu_request *request)
{
    const struct cpu_variant *variant = request->backend->variant;
    out->kernel.implementation = variant->implementation;
    bool made = make_from(out, variant->entry, variant->entry_count, request) ||
                make_from(out, cpu_convolution_entries, cpu_convolution_count, request) ||
                make_from(out, variant->fallback, variant->fallback_count, request) ||
                (request->status == PLIM_OK && cpu_make_widened(out, request->asked->node, request));
    if (!made) {
        out->kernel.implementation = is_of_one_number(request->asked->node) ? "one number" : "reference";
        out->kernel.run = run_reference;
    }
    return request->status;
}

/* Every operand is cut and as large as any other. */
static bool all_alike(const struct node *node, const struct cut *cut)
{
    const struct shape *shape = &(node->output_count ? node->output[0] : node->input[0])->shape;
    bool alike = true;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i])
            alike = alike && cut->input[i] == PART_CUT && shape_equal(&node->input[i]->shape, shape);
    for (int k = 0; k < node->output_count; k++)
        alike = alike && cut->output[k] == PART_CUT && shape_equal(&node->output[k]->shape, shape);
    return alike;
}

static plim_status add_each(struct cpu_kernel *own, struct cpu_backend *cpu, plim_error *error)
{
    struct cpu_kernel *each = arena_take(&cpu->arena, sizeof *each);
    if (!each)
        return budget_refused(cpu->budget, TAG_PLANNER, sizeof *each, error);
    *each = *own;
    each->by_sample = false;
    each->size[0] = 1;
    own->kernel.each = &each->kernel;
    return PLIM_OK;
}

plim_status cpu_prepare(const struct kernel **out, struct backend *backend, const struct kernel_request *asked,
                        plim_error *error)
{
    struct cpu_backend *cpu = (struct cpu_backend *)backend;
    struct cpu_request request = {.backend = cpu, .asked = asked, .error = error};
    const struct node *node = asked->node;
    struct key key;
    struct cut cut;
    TRY(key_make(&key, &request, error));
    struct cpu_table *table = (struct cpu_table *)cpu;
    if (!table_room(table))
        return arena_refused(&cpu->arena, error);
    uint64_t hash = key_hash(key.data, key.bytes);
    struct cpu_kernel *own = find(table, key.data, key.bytes, hash)->kernel;
    if (!own) {
        own = arena_take(&cpu->arena, sizeof *own + key.bytes);
        if (!own)
            return budget_refused(cpu->budget, TAG_PLANNER, sizeof *own + key.bytes, error);
        own->key = memcpy(own + 1, key.data, key.bytes);
        own->key_bytes = key.bytes;
        own->backend = cpu;
        own->op = node->op;
        node->op->cut(&cut, node);
        own->by_sample = cut.by_sample;
        TRY(make_kernel(own, &request)); /* a failed one stays in the arena, unused */
        if (own->flat && all_alike(node, &cut))
            TRY(add_each(own, cpu, error));
        own->next = cpu->kernels;
        cpu->kernels = own;
        if (!table_room(table)) /* makers may have prepared others */
            return arena_refused(&cpu->arena, error);
        *find(table, key.data, key.bytes, hash) = (struct known){hash, own};
        table->count++;
    }
    work_count(cpu->budget, table->steps);
    table->steps = 0;
    *out = &own->kernel;
    return PLIM_OK;
}

const struct cpu_variant *cpu_variant_here(void)
{
    int i = 0;
    while (i + 1 < cpu_variant_count && !cpu_variants[i].supported())
        i++;
    return cpu_variants[i].variant;
}

static plim_status cpu_open(struct backend **out, struct budget *budget, plim_error *error)
{
    struct cpu_table *table = budget_take(budget, TAG_PLANNER, sizeof *table);
    if (!table)
        return budget_refused(budget, TAG_PLANNER, sizeof *table, error);
    struct cpu_backend *cpu = &table->cpu;
    cpu->backend.type = &cpu_backend;
    cpu->budget = budget;
    arena_init(&cpu->arena, budget, TAG_PLANNER);
    cpu->variant = cpu_variant_here();
    *out = &cpu->backend;
    return PLIM_OK;
}

static void cpu_close(struct backend *backend)
{
    struct cpu_backend *cpu = (struct cpu_backend *)backend;
    if (!cpu)
        return;
    for (struct cpu_kernel *own = cpu->kernels; own; own = own->next)
        if (own->release)
            own->release(cpu, own->own);
    onednn_close(cpu->onednn);
    arena_release(&cpu->arena);
    budget_give(cpu->budget, TAG_PLANNER, cpu, sizeof(struct cpu_table));
}

static const char *cpu_features(const struct backend *backend)
{
    const struct cpu_backend *cpu = (const struct cpu_backend *)backend;
    return cpu->features[0] ? cpu->features : cpu->variant->name;
}

/* The best of many short runs: others may share the machine. */
static double cpu_peak_operations(const struct backend *backend)
{
    const struct cpu_variant *variant = ((const struct cpu_backend *)backend)->variant;
    double best = 0;
    for (int run = 0; run < PEAK_RUNS; run++) {
        float result[2] = {0.999f, 0.001f};
        uint64_t from = clock_ns();
        double count = variant->peak(PEAK_ROUNDS, result);
        double rate = 2 * count / (double)(clock_ns() - from + 1);
        best = rate > best ? rate : best;
    }
    return best;
}

static double cpu_peak_bytes(const struct backend *backend, void *room, size_t bytes)
{
    const struct cpu_variant *variant = ((const struct cpu_backend *)backend)->variant;
    int64_t count = (int64_t)(bytes / (3 * sizeof(float)));
    float *y = room, *a = y + count, *b = a + count;
    double best = 0;
    memset(room, 0, bytes); /* the first touch of a page is no reading */
    for (int run = 0; run < PEAK_RUNS; run++) {
        uint64_t from = clock_ns();
        variant->stream(y, a, b, 0.5f, count);
        double rate = (double)count * 3 * sizeof(float) / (double)(clock_ns() - from + 1);
        best = rate > best ? rate : best;
    }
    return best;
}

const struct backend_type cpu_backend = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .prepare = cpu_prepare,
    .features = cpu_features,
    .peak_operations = cpu_peak_operations,
    .peak_bytes = cpu_peak_bytes,
    .unused_code = cpu_unused_code,
};
