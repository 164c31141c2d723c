/* image_jpeg_memory.c - a memory manager for libjpeg over one bounded piece of memory.

   Nothing is ever given back: the piece is emptied before each image. What does not fit ends decoding. Virtual arrays
   (whole images of coefficients, in progressive files) are always held whole: there is no backing store. */
#include "image/image_jpeg.h"

#include <string.h>

#include "base/numbers/checked.h"

/* Rows of samples: what libjpeg-turbo's own manager gives its vector code. */
#define ROW_ALIGNMENT 64

struct jvirt_barray_control {
    JBLOCKARRAY rows;
    JDIMENSION row_count, blocks;
    struct jvirt_barray_control *next;
};

static void *jpeg_take(j_common_ptr library, uint64_t bytes)
{
    struct jpeg *jpeg = library->client_data;
    void *taken = value_buffer_take(jpeg->work, bytes);
    if (!taken) {
        jpeg->refused = true;
        jpeg_stop(jpeg, "no memory");
    }
    return taken;
}

static void *take_block(j_common_ptr library, int pool, size_t bytes)
{
    (void)pool;
    return jpeg_take(library, bytes);
}

/* count rows, each of so many bytes, and the pointers to them. */
static void **take_rows(j_common_ptr library, uint64_t row_bytes, JDIMENSION count)
{
    uint64_t bytes;
    row_bytes = round_up(row_bytes, ROW_ALIGNMENT);
    if (!mul_u64(&bytes, row_bytes, count))
        bytes = UINT64_MAX;
    void **rows = jpeg_take(library, (uint64_t)count * sizeof *rows);
    uint8_t *first = jpeg_take(library, bytes);
    for (JDIMENSION i = 0; i < count; i++)
        rows[i] = first + i * row_bytes;
    return rows;
}

static JSAMPARRAY take_samples(j_common_ptr library, int pool, JDIMENSION samples, JDIMENSION rows)
{
    (void)pool;
    return (JSAMPARRAY)take_rows(library, (uint64_t)samples * sizeof(JSAMPLE), rows);
}

static JBLOCKARRAY take_blocks(j_common_ptr library, int pool, JDIMENSION blocks, JDIMENSION rows)
{
    (void)pool;
    return (JBLOCKARRAY)take_rows(library, (uint64_t)blocks * sizeof(JBLOCK), rows);
}

/* Only the encoder and colour quantizer ask for these, which nobody here uses. */
static jvirt_sarray_ptr plan_samples(j_common_ptr library, int pool, boolean zero, JDIMENSION samples, JDIMENSION rows,
                                     JDIMENSION access)
{
    (void)pool, (void)zero, (void)samples, (void)rows, (void)access;
    jpeg_stop(library->client_data, "an array of samples is asked for");
}

static JSAMPARRAY reach_samples(j_common_ptr library, jvirt_sarray_ptr array, JDIMENSION start, JDIMENSION rows,
                                boolean writes)
{
    (void)array, (void)start, (void)rows, (void)writes;
    jpeg_stop(library->client_data, "an array of samples is asked for");
}

static jvirt_barray_ptr plan_blocks(j_common_ptr library, int pool, boolean zero, JDIMENSION blocks, JDIMENSION rows,
                                    JDIMENSION access)
{
    (void)pool, (void)zero, (void)access; /* all are zeroed */
    struct jpeg *jpeg = library->client_data;
    struct jvirt_barray_control *array = jpeg_take(library, sizeof *array);
    *array = (struct jvirt_barray_control){.row_count = rows, .blocks = blocks, .next = jpeg->planned};
    jpeg->planned = array;
    return array;
}

static void take_planned(j_common_ptr library)
{
    struct jpeg *jpeg = library->client_data;
    for (struct jvirt_barray_control *array = jpeg->planned; array; array = array->next) {
        array->rows = take_blocks(library, 0, array->blocks, array->row_count);
        for (JDIMENSION i = 0; i < array->row_count; i++)
            memset(array->rows[i], 0, (size_t)array->blocks * sizeof(JBLOCK));
    }
    jpeg->planned = NULL;
}

static JBLOCKARRAY reach_blocks(j_common_ptr library, jvirt_barray_ptr array, JDIMENSION start, JDIMENSION rows,
                                boolean writes)
{
    (void)writes;
    if (!array->rows || start > array->row_count || rows > array->row_count - start)
        jpeg_stop(library->client_data, "rows outside of an array are asked for");
    return array->rows + start;
}

static void keep_pool(j_common_ptr library, int pool)
{
    (void)library, (void)pool;
}

static void keep_all(j_common_ptr library)
{
    (void)library;
}

void jpeg_memory_use(struct jpeg *jpeg)
{
    jpeg->memory = (struct jpeg_memory_mgr){
        .alloc_small = take_block,
        .alloc_large = take_block,
        .alloc_sarray = take_samples,
        .alloc_barray = take_blocks,
        .request_virt_sarray = plan_samples,
        .request_virt_barray = plan_blocks,
        .realize_virt_arrays = take_planned,
        .access_virt_sarray = reach_samples,
        .access_virt_barray = reach_blocks,
        .free_pool = keep_pool,
        .self_destruct = keep_all,
        .max_alloc_chunk = 1000000000,
    };
    jpeg->library.mem = &jpeg->memory;
}
