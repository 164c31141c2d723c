/* fuzz_hdf5.c - any bytes as an HDF5 file: every name of the root group is looked up, and what is chunked
   is unpacked. */
#include <string.h>

#include "formats/containers/hdf5.h"
#include "fuzz_file.h"

struct names {
    int count;
    char name[16][HDF5_NAME_MOST + 1];
};

static bool keep(void *context, const char *name)
{
    struct names *names = context;
    memcpy(names->name[names->count++], name, strlen(name) + 1);
    return names->count < 16;
}

static plim_status read_it(struct budget *budget, const char *path)
{
    static struct names names;
    struct hdf5 *hdf5;
    struct hdf5_dataset dataset;
    struct file *to;
    TRY(hdf5_open(&hdf5, budget, path, NULL));
    names.count = 0;
    plim_status status = hdf5_names(hdf5, keep, &names, NULL);
    if (file_open(&to, budget, "/dev/shm", FILE_SCRATCH, NULL) == PLIM_OK) {
        for (int i = 0; i < names.count; i++)
            if (hdf5_find(&dataset, hdf5, names.name[i], NULL) == PLIM_OK && dataset.layout == HDF5_CHUNKED &&
                dataset.bytes < 1 << 20 && hdf5_unpack_cost(&dataset) < FUZZ_SLACK_BYTES / 2)
                status = hdf5_unpack(hdf5, &dataset, to, 0, NULL);
        file_close(to);
    }
    hdf5_close(hdf5);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_as_file(data, bytes, read_it);
}
