/* resample.h - pictures [N, h, w, c] of another size, by tf.image.resize's rules without antialias. Nearest is
   resize_nearest in remap.h.

   resize: bilinear or bicubic (Keys' cubic at steps of 1/1024), pixel centres at halves.
   resize_gradient: dx from dy, the size of x is in the attributes. */
#ifndef OPS_IMAGE_RESAMPLE_H
#define OPS_IMAGE_RESAMPLE_H

#include <stdint.h>

enum resample_method { RESAMPLE_BILINEAR, RESAMPLE_BICUBIC };
struct resize_attributes {
    int64_t method;
    int64_t size[2]; /* height, width of the output */
};
struct resize_gradient_attributes {
    struct resize_attributes forward;
    int64_t input[2];
};

#define MOST_TAPS 4
/* Output place i of an axis is the sum of `count` places from `first` on. */
struct taps {
    int64_t first, count;
    float weight[MOST_TAPS];
};
struct taps resample_taps(int64_t method, int64_t from, int64_t to, int64_t i);

#endif
