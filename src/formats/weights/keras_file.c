/* keras_file.c - a .keras file: a zip with config.json and model.weights.h5. */
#include "formats/weights/keras_file.h"

#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/memory/budget_need.h"
#include "formats/containers/zip.h"

struct keras_file {
    struct budget *budget;
    struct zip *zip;
    struct hdf5 *weights;
    struct file *unpacked; /* NULL: the weights are read in the zip itself */
};

/* What Keras wrote before .keras, and still does for ".weights.h5". */
static plim_status refuse_hdf5(const char *path, plim_error *error)
{
    return hint(error, fail_at(error, PLIM_UNSUPPORTED, path, "an HDF5 file: as a model or as weights it is not read"),
                "in Keras: model.save('model.keras'), then model: {file: model.keras}; or weights as .safetensors");
}

plim_status keras_file_is(bool *out, struct budget *budget, const char *path, plim_error *error)
{
    struct file *file;
    uint8_t head[8] = {0};
    size_t got = 0;
    TRY(file_open(&file, budget, path, FILE_READ, error));
    plim_status status = file_read_some(&got, file, 0, head, sizeof head, error);
    file_close(file);
    if (status == PLIM_OK && got == sizeof head && memcmp(head, "\x89HDF\r\n\x1a\n", sizeof head) == 0)
        return refuse_hdf5(path, error);
    *out = got == sizeof head && memcmp(head, "PK\3\4", 4) == 0;
    return status;
}

plim_status keras_file_open(struct keras_file **out, struct budget *budget, const char *path, plim_error *error)
{
    struct keras_file *file;
    TRY(budget_alloc(&file, budget, TAG_FORMATS, sizeof *file, error));
    file->budget = budget;
    return OPENED(out, file, keras_file_close, zip_open(&file->zip, budget, path, error));
}

void keras_file_close(struct keras_file *file)
{
    if (!file)
        return;
    hdf5_close(file->weights);
    file_close(file->unpacked);
    zip_close(file->zip);
    budget_give(file->budget, TAG_FORMATS, file, sizeof *file);
}

plim_status keras_file_config(char **text, size_t *bytes, struct keras_file *file, plim_error *error)
{
    struct zip_member member;
    TRY(zip_find(&member, file->zip, "config.json", error));
    if (member.bytes > KERAS_CONFIG_MOST)
        return fail_at(error, PLIM_BAD_DATA, file_path(file->zip->file), "config.json of %llu bytes: at most %llu",
                       (unsigned long long)member.bytes, (unsigned long long)KERAS_CONFIG_MOST);
    TRY(budget_need(file->budget, budget_charge((size_t)member.bytes + 1), file_path(file->zip->file), member.bytes,
                    "bytes of config.json", error));
    char *data;
    TRY(budget_alloc(&data, file->budget, TAG_PLANNER, (size_t)member.bytes + 1, error));
    plim_status status = zip_read(file->zip, &member, data, error);
    if (status != PLIM_OK) {
        budget_give(file->budget, TAG_PLANNER, data, (size_t)member.bytes + 1);
        return status;
    }
    *text = data;
    *bytes = (size_t)member.bytes;
    return PLIM_OK;
}

plim_status keras_file_weights(struct keras_file *file, struct scratch_disk *scratch, plim_error *error)
{
    struct zip_member member;
    TRY(zip_find(&member, file->zip, "model.weights.h5", error));
    if (member.method == 0)
        return hdf5_open_inside(&file->weights, file->budget, file->zip->file, member.at, member.bytes, error);
    TRY(scratch_open(&file->unpacked, file->budget, scratch, member.bytes, file_path(file->zip->file), error));
    TRY(zip_unpack(file->zip, &member, file->unpacked, 0, error));
    return hdf5_open_inside(&file->weights, file->budget, file->unpacked, 0, member.bytes, error);
}

plim_status keras_file_find(struct hdf5_dataset *out, struct keras_file *file, const char *path, plim_error *error)
{
    const char *where = file_path(file->zip->file);
    TRY(hdf5_find(out, file->weights, path, error));
    if (out->layout != HDF5_CONTIGUOUS)
        return fail_at(error, PLIM_BAD_DATA, where, "'%s' is kept in chunks, which is not supported", path);
    if (out->type != TYPE_F32 || out->big_endian)
        return fail_at(error, PLIM_BAD_DATA, where, "'%s' is %s%s; float32 is supported", path,
                       out->big_endian ? "big-endian " : "", type_name(out->type));
    return PLIM_OK;
}

plim_status keras_file_read(struct keras_file *file, const struct hdf5_dataset *dataset, void *to, plim_error *error)
{
    return hdf5_load(file->weights, dataset, to, error);
}
