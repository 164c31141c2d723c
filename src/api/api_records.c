/* api_records.c - the index of a TFRecord file, for exact shuffles. */
#include "base/numbers/floats.h"
#include "formats/records/record_index.h"

#define INDEX_BUDGET ((uint64_t)16 * 1024 * 1024)

struct teller {
    plim_meter *meter;
    void *context;
    struct host_floats *host;
};

static bool call_progress(void *context, uint64_t done, uint64_t total)
{
    const struct teller *teller = context;
    if (!teller->meter)
        return true;
    floats_end(teller->host);
    bool go_on = teller->meter(teller->context, done, total);
    floats_begin(teller->host);
    return go_on;
}

static plim_status count_records(int64_t *records, struct budget *budget, const char *path, plim_error *error)
{
    struct record_index *index;
    TRY(record_index_open(&index, budget, path, NULL, RECORD_INDEX_FRAMES, error));
    *records = record_index_count(index);
    record_index_close(index);
    return PLIM_OK;
}

plim_status plim_records_index(int64_t *records, const char *path, plim_meter *meter, void *context, plim_error *error)
{
    struct teller teller = {.meter = meter, .context = context};
    const struct record_progress progress = {call_progress, &teller};
    struct budget *budget;
    HOST_FLOATS;
    TRY(need_argument(records, "where the number of records is to go", error));
    TRY(need_argument(path, "the path", error));
    teller.host = &host_floats;
    TRY(budget_make(&budget, INDEX_BUDGET, error));
    plim_status status = record_index_build(budget, path, NULL, &progress, error);
    if (status == PLIM_OK)
        status = count_records(records, budget, path, error);
    budget_free(budget);
    return status;
}
