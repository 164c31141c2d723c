/* record_index_file.h - the layout of an index, for the file that writes it and the one that reads it. */
#ifndef FORMATS_RECORDS_RECORD_INDEX_FILE_H
#define FORMATS_RECORDS_RECORD_INDEX_FILE_H

#include <string.h>

#include "base/numbers/crc32c.h"
#include "formats/records/record_frame.h"
#include "formats/records/record_index.h"

#define INDEX_MAGIC           "PLIMRECI"
#define INDEX_VERSION         1
#define INDEX_SUFFIX          ".index"
#define INDEX_HEADER_BYTES    48
#define INDEX_BLOCK_RECORDS   1024
#define INDEX_GROUP_BLOCKS    128
#define INDEX_GROUP_RECORDS   (INDEX_BLOCK_RECORDS * INDEX_GROUP_BLOCKS)
#define INDEX_ENTRY_BYTES     32
#define INDEX_PAGE_BYTES      (INDEX_GROUP_BLOCKS * INDEX_ENTRY_BYTES)
#define INDEX_RESIDUAL_MOST   8
#define INDEX_BLOCK_BYTES     ((INDEX_BLOCK_RECORDS + 1) * INDEX_RESIDUAL_MOST)
#define INDEX_DIRECTORY_BYTES 16

struct index_header {
    uint32_t samples;
    uint64_t count, data_bytes, directory;
};

struct index_entry {
    uint64_t base, slope, place;
    uint32_t width, crc; /* bytes of a residual; CRC-32C of all of them */
};
_Static_assert(sizeof(struct index_entry) == INDEX_ENTRY_BYTES, "an entry is what lies in the file");

/* A checksum over a few places of the data, the first and the last among them. */
plim_status index_samples(uint32_t *out, struct file *data, uint64_t data_bytes, plim_error *error);
/* FILE.index, or a copy of the path that somebody chose, from the budget (tag formats); given back with strlen + 1. */
plim_status index_path_take(char **out, struct budget *budget, const char *data_path, const char *index_path,
                            plim_error *error);

#endif
