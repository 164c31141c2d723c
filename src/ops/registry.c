/* registry.c - every op of ops.def in one table. */
#include <string.h>

#include "base/numbers/count.h"
#include "ops/ops.h"

const struct op *const all_ops[] = {
#define OP(name) &op_##name,
#include "ops/ops.def"
#undef OP
};

const int all_ops_count = COUNT(all_ops);

const struct op *op_by_name(const char *name)
{
    for (int i = 0; i < all_ops_count; i++) {
        if (strcmp(all_ops[i]->name, name) == 0)
            return all_ops[i];
    }
    return NULL;
}
