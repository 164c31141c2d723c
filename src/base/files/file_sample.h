/* file_sample.h - what tells a file from another without reading all of it: its size and some pieces. */
#ifndef BASE_FILES_FILE_SAMPLE_H
#define BASE_FILES_FILE_SAMPLE_H

#include "base/files/file.h"
#include "base/numbers/digest.h"

struct file_facts {
    bool regular; /* false: there is none, or it is a pipe, a folder, a device */
    uint64_t bytes;
    int64_t changed; /* seconds since 1970 */
};

plim_status file_look(struct file_facts *out, const char *path, plim_error *error);
/* Adds size and content to the digest, and neither name nor time: all of a file of at most `pieces` times 4 KiB, else
   so many pieces of 4 KiB, the first and the last among them. Fewer than 2 pieces: the size alone. Of what is no
   regular file nothing is opened: a pipe has a writer that would notice. */
plim_status file_sample(struct sha256 *sha, struct file_facts *facts, struct budget *budget, const char *path,
                        int pieces, plim_error *error);

#endif
