/* image_jpeg.h - libjpeg's objects, kept from image to image. */
#ifndef IMAGE_IMAGE_JPEG_H
#define IMAGE_IMAGE_JPEG_H

#include <setjmp.h>

#include "image/image_codec.h"
#include "image/image_library.h"

struct jpeg {
    struct jpeg_functions call;
    struct jpeg_decompress_struct library;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    struct jpeg_memory_mgr memory, *made_with; /* ours; the one that the library came with */
    struct jvirt_barray_control *planned;      /* arrays that are requested and not yet taken */
    struct value_buffer *work;
    size_t bytes; /* of the image */
    jmp_buf failed;
    bool refused;                  /* the work memory was too small */
    bool ended;                    /* the image ends early */
    char message[JMSG_LENGTH_MAX]; /* what else is wrong */
};

/* Ends decoding: for what the library calls. */
__attribute__((noreturn)) void jpeg_stop(struct jpeg *jpeg, const char *message);

/* Everything that an image needs from now on is taken from the work memory. The library's own manager stays for what
   lives as long as the object. */
void jpeg_memory_use(struct jpeg *jpeg);

/* What the header declares, without the library. */
plim_status jpeg_probe(struct image_info *out, const uint8_t *data, size_t bytes, plim_error *error);

#endif
