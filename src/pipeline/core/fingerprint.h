/* fingerprint.h - which data a pipeline reads: what a checkpoint keeps, to notice other data when it is resumed. */
#ifndef PIPELINE_CORE_FINGERPRINT_H
#define PIPELINE_CORE_FINGERPRINT_H

#include "pipeline/core/dataset.h"

struct fingerprint {
    char digest[65]; /* decides; "": there is nothing to compare, or nobody has looked */
    /* These inform people: */
    int64_t files;
    uint64_t bytes;  /* of those that were looked at */
    int64_t changed; /* when the last of them was, in seconds since 1970 */
    char name[64];   /* the first one's path or its end, in printable ASCII */
};

/* Of all files of all sources, in their order. Seen are:
    - the number of files, and the class of each one in a folder of classes;
    - the sizes of all files of a source, or of 100,000 that lie evenly in the list where it has more;
    - content: 64 KiB (16 pieces) of each file where a source has at most 16, else 16 KiB (4 pieces) of each of at most
      128 files that lie evenly in the list; a file that is no longer than that is read whole;
    - the content of vocabularies and merges that functions of the pipeline read: all of it.
   Not seen are names, folders and times, a change between the pieces or in a file of which none is read when its size
   stays, and what a command or a pipe writes. It takes at most 2 MiB of reading and 100,000 looks at files a source.
   Takes the memory of one open file for a while (tag formats). */
plim_status fingerprint_make(struct fingerprint *out, const struct dataset *dataset, struct budget *budget,
                             plim_error *error);

#endif
