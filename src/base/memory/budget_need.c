/* budget_need.c - refuses what is known to be too large before anything is taken for it. */
#include "base/memory/budget_need.h"

#include "base/numbers/checked.h"
#include "base/text/text.h"

plim_status budget_need_first(struct budget *budget, uint64_t bytes, const char *where, uint64_t count,
                              const char *what, plim_error *error)
{
    char count_text[32], bytes_text[16], room_text[16];
    if (budget_has_room(budget, bytes))
        return PLIM_OK;
    text_count(count_text, count > INT64_MAX ? INT64_MAX : (int64_t)count);
    text_size(bytes_text, bytes);
    text_size(room_text, budget_room(budget));
    fail(error, PLIM_OVER_BUDGET, "its %s %s take %s, %s are left for it", count_text, what, bytes_text, room_text);
    return where ? error_at(error, PLIM_OVER_BUDGET, where) : PLIM_OVER_BUDGET;
}

/* What text_size prints of it, to a tenth of a unit, is no less than `bytes`. */
static uint64_t printed_up(uint64_t bytes)
{
    uint64_t unit = 1;
    while (bytes / unit >= 1024)
        unit *= 1024;
    return unit == 1 ? bytes : add_most(bytes, unit / 20 + 1);
}

plim_status budget_need(struct budget *budget, uint64_t bytes, const char *where, uint64_t count, const char *what,
                        plim_error *error)
{
    char needed_text[16];
    plim_status status = budget_need_first(budget, bytes, where, count, what, error);
    if (status == PLIM_OK)
        return PLIM_OK;
    text_size(needed_text, printed_up(add_most(budget_usage(budget).limit - budget_room(budget), bytes)));
    return hint(error, status, "it needs a budget of %s or more", needed_text);
}
