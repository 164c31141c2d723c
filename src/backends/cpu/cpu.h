/* cpu.h - what the files of the CPU backend share.

   A fast path is a line in a table: the op, a maker that looks at the node
   and fills in the kernel or refuses, and the function to run. What no line
   takes is run by the op's reference, which reads nothing that a maker left. */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include "backends/backend.h"
#include "base/memory/arena.h"

struct onednn;

struct cpu_backend {
    struct backend backend; /* first */
    struct budget *budget;
    struct arena arena; /* kernels and their keys */
    struct cpu_kernel *kernels;
    const struct cpu_variant *variant;
    struct onednn *onednn; /* NULL until a convolution is prepared */
    char features[32];     /* the variant's name; with the library's version once a kernel uses it */
};

struct cpu_kernel {
    struct kernel kernel;        /* first */
    struct cpu_backend *backend; /* whom a run that fails tells */
    const struct op *op;
    struct cpu_kernel *next;
    const void *key;
    size_t key_bytes;
    bool by_sample; /* the cut axis is the batch */
    bool flat; /* elements are made alone, of those at their place: any run of them is a call, of rows of size[0] = 1 */
    int64_t size[4]; /* what they are is the maker's business */
    void *own;       /* given back by release */
    void (*release)(struct cpu_backend *backend, void *own);
};

struct cpu_request {
    struct cpu_backend *backend;
    const struct kernel_request *asked;
    plim_error *error;
    plim_status status; /* set by a maker that fails; it then returns false */
};

struct cpu_entry {
    const struct op *op;
    /* Returns whether this kernel takes the node. A maker that does not set out->kernel.run gets `run`. */
    bool (*make)(struct cpu_kernel *out, const struct node *node, struct cpu_request *request);
    void (*run)(const struct kernel *kernel, const struct call *call);
};

/* For makers whose arena had no memory left: notes the error, returns false. */
bool cpu_refused(struct cpu_request *request);

/* The own kernels, compiled for one instruction set. */
struct cpu_variant {
    const char *name;           /* "avx512" */
    const char *implementation; /* "own avx512" */
    const struct cpu_entry *entry;
    int entry_count;
    const struct cpu_entry *fallback; /* for what neither these nor oneDNN take */
    int fallback_count;
    /* The small floats (f16, bf16) as f32, and back: rounded to the nearest, ties to even. */
    void (*widen)(float *to, const void *from, enum type type, int64_t count);
    void (*narrow)(void *to, const float *from, enum type type, int64_t count);
    /* Runs a loop of multiply-adds; returns how many. result: two factors, changed so that the loop stays. */
    double (*peak)(int64_t rounds, float *result);
    /* y = a + factor * b, for so many elements. */
    void (*stream)(float *y, const float *a, const float *b, float factor, int64_t count);
    const uintptr_t *first_mark, *end_of_marks; /* where its objects begin in the code (code_mark.h) */
};

extern const struct cpu_variant cpu_variant_avx512, cpu_variant_avx2, cpu_variant_plain;
/* Best first, NULL last; which of them are compiled in is meson.build's choice. */
struct cpu_choice {
    const struct cpu_variant *variant;
    bool (*supported)(void);
};
extern const struct cpu_choice cpu_variants[];
extern const int cpu_variant_count;
/* The one that this processor runs. */
const struct cpu_variant *cpu_variant_here(void);

/* Takes a node with operands of the small floats that no other kernel takes: through copies in f32 and the kernel that
   such a node has (cpu_upcast.c). */
bool cpu_make_widened(struct cpu_kernel *out, const struct node *node, struct cpu_request *request);
/* The backend's own prepare. */
plim_status cpu_prepare(const struct kernel **out, struct backend *backend, const struct kernel_request *asked,
                        plim_error *error);

/* The backend's unused_code: the kernels are linked one set behind the other (test_symbols.py looks). */
int cpu_unused_code(struct code_range *out, int most, const struct backend *backend);

/* Every input that is there is f32. */
static inline bool cpu_inputs_f32(const struct node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && node->input[i]->type != TYPE_F32)
            return false;
    return true;
}

static inline bool cpu_all_f32(const struct node *node)
{
    return cpu_inputs_f32(node) && node->output[0]->type == TYPE_F32;
}

static inline bool cpu_small_type(enum type type)
{
    return type == TYPE_F16 || type == TYPE_BF16;
}

extern const struct cpu_entry cpu_convolution_entries[];
extern const int cpu_convolution_count;

static inline const struct cpu_kernel *cpu_kernel_of(const struct kernel *kernel)
{
    return (const struct cpu_kernel *)kernel;
}

/* The kernel packs inputs before its slices run: `units` calls of `pack` fill `bytes`. */
static inline void cpu_set_pack(struct cpu_kernel *out,
                                void (*pack)(const struct kernel *, const struct call *, int, void *), int units,
                                size_t bytes)
{
    out->kernel.pack = pack;
    out->kernel.pack_units = units;
    out->kernel.pack_bytes = bytes;
}

/* Rows of this slice that exist: a short batch ends early. */
static inline int64_t cpu_rows(const struct kernel *kernel, const struct call *call)
{
    int64_t end = cpu_kernel_of(kernel)->by_sample && call->end > call->count ? call->count : call->end;
    return end > call->begin ? end - call->begin : 0;
}

/* Elements of this slice, where size[0] is those of a row. */
static inline int64_t cpu_elements(const struct kernel *kernel, const struct call *call)
{
    return cpu_rows(kernel, call) * cpu_kernel_of(kernel)->size[0];
}

#endif
