/* predict.c - what the tensor arena and the whole process will take, by tag. */
#include "base/numbers/checked.h"
#include "plan/plan.h"

/* The phase that needs the most; the first of equals. */
static const struct phase *largest_phase(const struct program *program)
{
    const struct phase *largest = NULL;
    for (int p = 0; p < PHASE_COUNT; p++) {
        const struct phase *phase = &program->phase[p];
        if (phase->name && (!largest || phase->top > largest->top))
            largest = phase;
    }
    return largest;
}

void program_tensor_arena_tags(uint64_t by_tag[TAG_COUNT], const char **peak_at, const struct program *program)
{
    const struct phase *phase = largest_phase(program);
    uint64_t sum = 0;
    for (int tag = 0; tag < TAG_COUNT; tag++) {
        by_tag[tag] = phase->by_tag[tag];
        sum += phase->by_tag[tag];
    }
    by_tag[TAG_ACTIVATIONS] += program->tensor_arena_bytes - sum;
    *peak_at = phase->instruction_count ? phase->instruction[phase->peak].name : phase->name;
}

void program_predict(struct prediction *out, const struct program *program, const uint64_t outside[TAG_COUNT])
{
    *out = (struct prediction){.peak_at = "reading"};
    if (program)
        program_tensor_arena_tags(out->by_tag, &out->peak_at, program);
    for (int tag = 0; tag < TAG_COUNT; tag++) {
        out->by_tag[tag] = add_most(out->by_tag[tag], outside[tag]);
        out->peak = add_most(out->peak, out->by_tag[tag]);
    }
}
