/* file_load.c - whole small files, of known size or not. */
#include "base/files/file.h"

#include "base/memory/budget_need.h"
#include "base/text/text.h"

#define LOAD_FIRST_BYTES ((size_t)4096)

struct load {
    struct budget *budget;
    enum tag tag;
    char *data;
    size_t capacity, length;
};

static void load_release(struct load *load)
{
    budget_give(load->budget, load->tag, load->data, load->capacity);
    load->data = NULL;
}

/* The block changes to `capacity` bytes, which may be fewer. */
static plim_status load_resize(struct load *load, size_t capacity, plim_error *error)
{
    if (capacity == load->capacity)
        return PLIM_OK;
    char *data = budget_grow(load->budget, load->tag, load->data, load->capacity, capacity);
    if (!data)
        return budget_refused(load->budget, load->tag, capacity, error);
    load->data = data;
    load->capacity = capacity;
    return PLIM_OK;
}

static plim_status too_long(const char *path, size_t most, plim_error *error)
{
    char most_text[16];
    text_size(most_text, most);
    return fail_at(error, PLIM_BAD_DATA, path, "is too long: at most %s are read", most_text);
}

/* Reads until the end, whatever size was announced: one byte of room is
   always left, so that the end is seen and the NUL fits. */
static plim_status load_all(struct load *load, struct file *file, size_t most, plim_error *error)
{
    uint64_t size = 0;
    TRY(file_size(&size, file, error));
    if (size > most)
        return too_long(file_path(file), most, error);
    TRY(budget_need_first(load->budget, budget_charge((size_t)size + 1), file_path(file), size, "bytes", error));
    TRY(load_resize(load, size > 0 ? (size_t)size + 1 : LOAD_FIRST_BYTES, error));
    for (;;) {
        size_t got, room = load->capacity - load->length;
        TRY(file_read_some(&got, file, load->length, load->data + load->length, room, error));
        load->length += got;
        if (load->length > most)
            return too_long(file_path(file), most, error);
        if (got < room)
            break;
        TRY(load_resize(load, load->capacity * 2, error));
    }
    TRY(load_resize(load, load->length + 1, error));
    load->data[load->length] = '\0';
    return PLIM_OK;
}

plim_status file_load(struct file_content *out, struct budget *budget, enum tag tag, const char *path, size_t most,
                      plim_error *error)
{
    struct file *file;
    TRY(file_open(&file, budget, path, FILE_READ, error));
    struct load load = {.budget = budget, .tag = tag};
    plim_status status = load_all(&load, file, most, error);
    file_close(file);
    if (status) {
        load_release(&load);
        return status;
    }
    *out = (struct file_content){.text = load.data, .bytes = load.length};
    return PLIM_OK;
}
