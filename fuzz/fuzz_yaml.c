/* fuzz_yaml.c - any bytes through the YAML reader. What follows the first NUL,
   if there is one, is set as an override. */
#include <stdint.h>
#include <string.h>

#include "base/text/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void try_override(struct yaml *root, struct arena *arena, const char *text, size_t bytes)
{
    char assignment[512];
    if (bytes == 0 || bytes >= sizeof assignment)
        return;
    memcpy(assignment, text, bytes);
    assignment[bytes] = 0;
    yaml_override(root, arena, assignment, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    struct arena arena;
    struct yaml *root;
    plim_error error;
    const char *text = (const char *)data;
    const char *end = bytes > 0 ? memchr(text, 0, bytes) : NULL;
    size_t first = end != NULL ? (size_t)(end - text) : bytes;
    if (budget_make(&budget, (uint64_t)64 << 20, NULL) != PLIM_OK)
        return 0;
    arena_init(&arena, budget, TAG_PLANNER);
    if (yaml_parse(&root, &arena, "job.yaml", text, first, &error) == PLIM_OK && end != NULL)
        try_override(root, &arena, end + 1, bytes - first - 1);
    arena_release(&arena);
    budget_free(budget);
    return 0;
}
