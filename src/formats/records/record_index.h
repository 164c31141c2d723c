/* record_index.h - where the records of a raw TFRecord file are: a sidecar file, made by one scan.

   It is read piece by piece: memory is a fixed number of cached pieces, for 10^3 records as for 10^9. The file
   (little-endian; every byte is under a CRC-32C that is verified before it is believed):
       header: "PLIMRECI", u32 version 1, u32 checksum of samples of the data, u64 records, u64 bytes of the data,
               u64 where the directory is, u32 0, u32 CRC-32C of the 44 bytes before
       groups: the residuals of up to 128 blocks of 1,024 records, then a page with an entry for each of them
       directory: for each group u64 where its page is, u32 CRC-32C of the page, u32 CRC-32C of the 12 bytes before
   An entry says that record i of its block begins at base + i * slope + residual i (modulo 2^64), and the last
   residual is of the end of the block's last record: u64 base, u64 slope, u64 where the residuals are, u32 bytes of
   each, u32 CRC-32C of them. Records of equal size have residuals of 0 bytes. */
#ifndef FORMATS_RECORDS_RECORD_INDEX_H
#define FORMATS_RECORDS_RECORD_INDEX_H

#include "base/files/file.h"

/* Cached pieces of each kind that serve reading in order and short jumps; more serve random ones. */
#define RECORD_INDEX_FRAMES 8

struct record_index;

/* For a long scan: asked now and then; false stops it with PLIM_INTERRUPTED. */
struct record_progress {
    bool (*tell)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *context;
};

/* Made by a scan of the lengths; index_path NULL: FILE.index; progress may be NULL. Compressed files are
   PLIM_UNSUPPORTED. */
plim_status record_index_build(struct budget *budget, const char *data_path, const char *index_path,
                               const struct record_progress *progress, plim_error *error);
/* An index that was made for other data (or another size of them) is PLIM_BAD_DATA; a missing one PLIM_IO. */
plim_status record_index_open(struct record_index **out, struct budget *budget, const char *data_path,
                              const char *index_path, int frames, plim_error *error);
/* What opening takes from the budget at most (tag formats). */
uint64_t record_index_cost(int frames);
void record_index_close(struct record_index *index);

int64_t record_index_count(const struct record_index *index);
/* The data file, open for reading at random places: for record_read_at. */
struct file *record_index_data(const struct record_index *index);
/* Where record i begins (its head) and how many bytes its data have. Thread-safe; waits for nobody. */
plim_status record_index_find(uint64_t *at, uint64_t *bytes, struct record_index *index, int64_t i, plim_error *error);

#endif
