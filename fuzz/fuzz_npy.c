/* fuzz_npy.c - any bytes as an npy file, whole and cut into columns. */
#include "fuzz_source.h"

static plim_status read_it(struct budget *budget, const char *path, const struct npy_cut *cut)
{
    struct source *source;
    TRY(npy_open(&source, budget, &path, 1, cut, NULL));
    plim_status status = fuzz_source_read(source);
    source_close(source);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct npy_range ranges[] = {{.name = "y", .first = 1, .end = 2, .scalar = true},
                                              {.name = "x", .end = 1}};
    static const struct npy_cut two = {.ranges = ranges, .count = 2};
    struct budget *budget;
    struct fuzz_file file;
    if (!fuzz_file_open(&file, data, bytes))
        return 0;
    if (budget_make(&budget, bytes + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK) {
        plim_status whole = read_it(budget, file.path, NULL), cut = read_it(budget, file.path, &two);
        fuzz_budget_free(budget, bytes, cut == PLIM_OVER_BUDGET ? cut : whole);
    }
    fuzz_file_close(&file);
    return 0;
}
