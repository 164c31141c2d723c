/* fault.c - the armed fault.
   Any thread may ask; a test arms and disarms from one thread. The details
   are written before `armed` and read after it. */
#include "base/fault.h"

#include <stdatomic.h>

static atomic_uint armed; /* sites; 0: nothing */
static atomic_llong calls;
static atomic_llong fail_from, fail_to; /* calls that fail: first and last */
static atomic_int number;
static atomic_bool reached;

void fault_arm(unsigned sites, int64_t nth, bool forever, int error_number)
{
    atomic_store(&armed, 0);
    atomic_store(&calls, 0);
    atomic_store(&fail_from, nth);
    atomic_store(&fail_to, forever ? INT64_MAX : nth);
    atomic_store(&number, error_number);
    atomic_store(&reached, false);
    atomic_store(&armed, sites);
}

bool fault_disarm(void)
{
    atomic_store(&armed, 0);
    return atomic_load(&reached);
}

int64_t fault_calls(void)
{
    return atomic_load(&calls);
}

static int fault_armed_at(enum fault_site site)
{
    int error_number = atomic_load(&number);
    if (error_number == 0 && !(site & (FAULT_READ | FAULT_WRITE)))
        return 0; /* only transfers can be cut short: the others do not count */
    long long call = atomic_fetch_add(&calls, 1) + 1;
    if (call < atomic_load(&fail_from) || call > atomic_load(&fail_to))
        return 0;
    atomic_store(&reached, true);
    return error_number ? error_number : FAULT_SHORT;
}

int fault_at(enum fault_site site)
{
    if (!(atomic_load_explicit(&armed, memory_order_relaxed) & site))
        return 0;
    return fault_armed_at(site);
}
