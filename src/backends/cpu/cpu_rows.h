/* cpu_rows.h - rows of any float that kernels compute with, as f32: where they lie, or in a copy of one row, which is
   rounded on its way back. */
#ifndef CPU_ROWS_H
#define CPU_ROWS_H

#include "backends/cpu/cpu_own.h"

INLINE bool row_type(enum type type)
{
    return type == TYPE_F32 || cpu_small_type(type);
}

/* A part of the room for rows, which there may be none of. */
INLINE float *room_from(float *room, int64_t at)
{
    return room ? room + at : NULL;
}

/* Elements at..at + count of an operand. */
INLINE const float *row_in(const void *from, enum type type, int64_t at, int64_t count, float *room)
{
    if (type == TYPE_F32)
        return (const float *)from + at;
    VARIANT(widen)(room, (const uint16_t *)from + at, type, count);
    return room;
}

/* Where they are to be made; then row_done. */
INLINE float *row_out(void *to, enum type type, int64_t at, float *room)
{
    return type == TYPE_F32 ? (float *)to + at : room;
}

INLINE void row_done(void *to, enum type type, int64_t at, int64_t count, const float *made)
{
    if (type != TYPE_F32)
        VARIANT(narrow)((uint16_t *)to + at, made, type, count);
}

#endif
