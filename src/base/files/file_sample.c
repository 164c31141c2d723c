/* file_sample.c - what tells a file from another without reading all of it: its size and some pieces. */
#include "base/files/file_sample.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/files/file_own.h"

#define PIECE_BYTES ((uint64_t)4096)

static void add_number(struct sha256 *sha, uint64_t number)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    sha256_add(sha, bytes, sizeof bytes);
}

plim_status file_look(struct file_facts *out, const char *path, plim_error *error)
{
    struct stat status;
    *out = (struct file_facts){0};
    if (!file_faulted(FAULT_STAT) && stat(path, &status) == 0) {
        out->regular = S_ISREG(status.st_mode);
        out->bytes = out->regular ? (uint64_t)status.st_size : 0;
        out->changed = (int64_t)status.st_mtime;
        return PLIM_OK;
    }
    return errno == ENOENT || errno == ENOTDIR ? PLIM_OK : file_io_error(error, path, "look at it", errno);
}

/* Piece k of n of a file that is longer than n pieces: the first, the last, and the others evenly between them. */
static uint64_t piece_at(uint64_t bytes, int k, int n)
{
    uint64_t most = bytes - PIECE_BYTES, part = (uint64_t)n - 1;
    return most / part * (uint64_t)k + most % part * (uint64_t)k / part;
}

static plim_status add_pieces(struct sha256 *sha, struct file *file, uint64_t bytes, int pieces, plim_error *error)
{
    uint8_t piece[PIECE_BYTES];
    size_t got;
    bool whole = bytes <= (uint64_t)pieces * PIECE_BYTES;
    for (int k = 0; k < pieces; k++) {
        uint64_t at = whole ? (uint64_t)k * PIECE_BYTES : piece_at(bytes, k, pieces);
        if (at >= bytes)
            break;
        TRY(file_read_some(&got, file, at, piece, sizeof piece, error));
        add_number(sha, got);
        sha256_add(sha, piece, got);
    }
    return PLIM_OK;
}

plim_status file_sample(struct sha256 *sha, struct file_facts *facts, struct budget *budget, const char *path,
                        int pieces, plim_error *error)
{
    struct file *file;
    TRY(file_look(facts, path, error));
    add_number(sha, facts->regular);
    add_number(sha, facts->bytes);
    if (!facts->regular || pieces < 2)
        return PLIM_OK;
    TRY(file_open(&file, budget, path, FILE_READ, error));
    plim_status status = add_pieces(sha, file, facts->bytes, pieces, error);
    file_close(file);
    return status;
}
