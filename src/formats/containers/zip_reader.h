/* zip_reader.h - what zip.c (the directory) and zip_stream.c (members, npz) share. */
#ifndef FORMATS_CONTAINERS_ZIP_READER_H
#define FORMATS_CONTAINERS_ZIP_READER_H

#include "base/files/file.h"

/* Of an extra field so much is looked at; zip64's part is the first that writers put there. */
#define EXTRA_MOST 1024

struct zip {
    struct budget *budget;
    struct file *file;
    uint64_t directory_at, directory_bytes, count;
};

#endif
