/* record_index_file.h - the layout of an index, for the file that writes it and the one that reads it. */
#ifndef FORMATS_RECORDS_RECORD_INDEX_FILE_H
#define FORMATS_RECORDS_RECORD_INDEX_FILE_H

#include <stddef.h>
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

/* What lies in the file, in this order, without gaps. */
struct index_header {
    char magic[8];
    uint32_t version, samples;
    uint64_t count, data_bytes, directory;
    uint32_t zero, crc; /* CRC-32C of everything before it */
};
_Static_assert(sizeof(struct index_header) == INDEX_HEADER_BYTES, "a header is what lies in the file");

struct index_directory_line {
    uint64_t page;
    uint32_t page_crc, crc; /* CRC-32C of the page; of the line before it */
};
_Static_assert(sizeof(struct index_directory_line) == INDEX_DIRECTORY_BYTES, "a line is what lies in the file");

struct index_entry {
    uint64_t base, slope, place;
    uint32_t width, crc; /* bytes of a residual; CRC-32C of all of them */
};
_Static_assert(sizeof(struct index_entry) == INDEX_ENTRY_BYTES, "an entry is what lies in the file");

static inline uint32_t index_header_crc(const struct index_header *header)
{
    return crc32c(0, header, offsetof(struct index_header, crc));
}

static inline uint32_t index_line_crc(const struct index_directory_line *line)
{
    return crc32c(0, line, offsetof(struct index_directory_line, crc));
}

/* A checksum over a few places of the data, the first and the last among them. */
plim_status index_samples(uint32_t *out, struct file *data, uint64_t data_bytes, plim_error *error);
/* FILE.index, or a copy of the path that somebody chose, from the budget (tag formats); given back with strlen + 1. */
plim_status index_path_take(char **out, struct budget *budget, const char *data_path, const char *index_path,
                            plim_error *error);

#endif
