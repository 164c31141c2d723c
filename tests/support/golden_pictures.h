/* golden_pictures.h - the pictures under golden/images, which make_images.py has made with TensorFlow. */
#ifndef GOLDEN_PICTURES_H
#define GOLDEN_PICTURES_H

#include "format_files.h"

struct golden {
    uint8_t *bytes; /* the whole file */
    size_t count;
    /* Of an npy file: */
    const uint8_t *data;
    bool real; /* float32; else uint8 */
    int64_t height, width, channels;
};

/* Found from this file's own name. */
static inline void golden_path(char *out, size_t capacity, const char *name)
{
    snprintf(out, capacity, TESTS_FOLDER "/golden/images/%s", name);
}

static inline struct golden golden_open(const char *name)
{
    char path[512];
    struct golden golden = {0};
    golden_path(path, sizeof path, name);
    FILE *in = fopen(path, "rb");
    if (!in)
        print_error("%s: cannot be read\n", path);
    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    golden.count = (size_t)ftell(in);
    rewind(in);
    /* An exact copy, so that a sanitizer sees a read past its end. */
    golden.bytes = malloc(golden.count);
    assert_non_null(golden.bytes);
    assert_int_equal(fread(golden.bytes, 1, golden.count, in), golden.count);
    fclose(in);
    return golden;
}

/* numpy's own header of version 1: a dict, padded with blanks. */
static inline struct golden golden_array(const char *name)
{
    struct golden golden = golden_open(name);
    char dict[256] = {0};
    long long height = 0, width = 0, channels = 0;
    size_t head = 10 + (size_t)golden.bytes[8] + 256 * (size_t)golden.bytes[9];
    assert_true(head <= golden.count && head < sizeof dict);
    memcpy(dict, golden.bytes + 10, head - 10);
    golden.real = strstr(dict, "'<f4'") != NULL;
    assert_true(golden.real || strstr(dict, "'|u1'"));
    assert_non_null(strstr(dict, "'shape': ("));
    assert_int_equal(sscanf(strstr(dict, "'shape': ("), "'shape': (%lld, %lld, %lld)", &height, &width, &channels), 3);
    golden.height = height, golden.width = width, golden.channels = channels;
    golden.data = golden.bytes + head;
    assert_int_equal(golden.count - head, height * width * channels * (golden.real ? 4 : 1));
    return golden;
}

static inline void golden_close(struct golden *golden)
{
    free(golden->bytes);
}

#endif
