/* data_index.c - plim data index: an index beside each TFRecord file. */
#include "command.h"

#include <stdio.h>

static plim_status build(struct arguments *arguments, plim_error *error)
{
    if (!arguments->word_count)
        return bad_usage(error, "plim data index FILES", "which files? none is named%s", "");
    for (int i = 0; i < arguments->word_count; i++) {
        struct meter meter;
        int64_t records;
        signals_watch(NULL);
        meter_init(&meter, arguments->words[i], "bytes");
        plim_status status = plim_records_index(&records, arguments->words[i], meter_tell, &meter, error);
        meter_end(&meter);
        signals_release();
        if (status != PLIM_OK)
            return status;
        if (arguments->json)
            printf("{\"event\":\"index\",\"file\":%d,\"records\":%lld}\n", i, (long long)records);
        else
            printf("%s.index: %lld records\n", arguments->words[i], (long long)records);
    }
    return PLIM_OK;
}

const struct data_command data_command_index = {.name = "index", .run = build};
