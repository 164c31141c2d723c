/* resize_spans.h - along one axis: which old pixels make a new one, and with which weights. */
#ifndef IMAGE_RESIZE_SPANS_H
#define IMAGE_RESIZE_SPANS_H

#include "image/resize.h"

struct span {
    int32_t start, count;
};

struct spans {
    struct span *span; /* one a new pixel */
    float *weights;    /* `most` a new pixel, the first `count` of them used */
    int64_t most;
    float scale; /* of the sum: not 1 for area only */
};

/* Bytes that spans_make takes. */
uint64_t spans_bytes(const struct resize *resize, int64_t from, int64_t to);
/* False when the value buffer is too small. */
bool spans_make(struct spans *out, const struct resize *resize, int64_t from, int64_t to, struct value_buffer *scratch);

#endif
