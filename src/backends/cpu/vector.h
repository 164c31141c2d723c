/* vector.h - one vector of floats, as wide as the instruction set has it.

   The files that include it are compiled once an instruction set; VARIANT(name)
   keeps the copies apart. Results may differ between instruction sets (width
   of partial sums, fused multiply-add), never between threads or addresses. */
#ifndef CPU_VECTOR_H
#define CPU_VECTOR_H

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
/* Before a loop with constant bounds, so that its arrays become registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__AVX512F__)

#include <immintrin.h>
#define VARIANT(name) name##_avx512
#define VARIANT_NAME  "avx512"
#define LANES         16
#define TILE_VECTORS  4 /* widest tile of gemm.c: 6 rows x 4 vectors of 32 registers */
typedef __m512 vector;
#define INTRINSIC(name) _mm512_##name

/* The first n lanes; the others are 0 and their memory is not touched. */
INLINE vector vector_load_part(const float *p, int n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
INLINE void vector_store_part(float *p, vector x, int n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), x);
}

#elif defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>
#define VARIANT(name)   name##_avx2
#define VARIANT_NAME    "avx2"
#define LANES           8
#define TILE_VECTORS    2
typedef __m256 vector;
#define INTRINSIC(name) _mm256_##name

INLINE __m256i vector_mask(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vector vector_load_part(const float *p, int n)
{
    return _mm256_maskload_ps(p, vector_mask(n));
}
INLINE void vector_store_part(float *p, vector x, int n)
{
    _mm256_maskstore_ps(p, vector_mask(n), x);
}

#else

#define VARIANT(name) name##_plain
#define VARIANT_NAME  "plain"
#define LANES         4
#define TILE_VECTORS  2
typedef float vector __attribute__((vector_size(16)));

INLINE vector vector_all(float x)
{
    return (vector){x, x, x, x};
}
INLINE vector vector_two(const float *p)
{
    return (vector){p[0], p[1], p[0], p[1]};
}
INLINE vector vector_load(const float *p)
{
    vector x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE void vector_store(float *p, vector x)
{
    memcpy(p, &x, sizeof x);
}
INLINE vector vector_load_part(const float *p, int n)
{
    return (vector){p[0], n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0};
}
INLINE void vector_store_part(float *p, vector x, int n)
{
    p[0] = x[0];
    if (n > 1)
        p[1] = x[1];
    if (n > 2)
        p[2] = x[2];
}
INLINE vector vector_madd(vector a, vector b, vector c)
{
    return a * b + c;
}
INLINE vector vector_max(vector a, vector b)
{
    return (vector){a[0] > b[0] ? a[0] : b[0], a[1] > b[1] ? a[1] : b[1], a[2] > b[2] ? a[2] : b[2],
                    a[3] > b[3] ? a[3] : b[3]};
}
INLINE vector vector_min(vector a, vector b)
{
    return (vector){a[0] < b[0] ? a[0] : b[0], a[1] < b[1] ? a[1] : b[1], a[2] < b[2] ? a[2] : b[2],
                    a[3] < b[3] ? a[3] : b[3]};
}

#endif

/* What AVX-512 and AVX2 name alike. */
#if LANES > 4
INLINE vector vector_all(float x)
{
    return INTRINSIC(set1_ps)(x);
}
/* p[0] in even lanes, p[1] in odd ones. */
INLINE vector vector_two(const float *p)
{
    double two;
    memcpy(&two, p, sizeof two);
    return INTRINSIC(castpd_ps)(INTRINSIC(set1_pd)(two));
}
INLINE vector vector_load(const float *p)
{
    return INTRINSIC(loadu_ps)(p);
}
INLINE void vector_store(float *p, vector x)
{
    INTRINSIC(storeu_ps)(p, x);
}
INLINE vector vector_madd(vector a, vector b, vector c)
{
    return INTRINSIC(fmadd_ps)(a, b, c);
}
/* b where either is not a number. */
INLINE vector vector_max(vector a, vector b)
{
    return INTRINSIC(max_ps)(a, b);
}
INLINE vector vector_min(vector a, vector b)
{
    return INTRINSIC(min_ps)(a, b);
}
#endif

/* Lanes at.. of a row of `width` floats; those behind it are 0, and their memory is not touched. */
INLINE vector vector_load_columns(const float *p, int at, int width)
{
    int left = width - at;
    return left >= LANES ? vector_load(p + at) : left > 0 ? vector_load_part(p + at, left) : vector_all(0);
}
INLINE void vector_store_columns(float *p, vector x, int at, int width)
{
    int left = width - at;
    if (left >= LANES)
        vector_store(p + at, x);
    else if (left > 0)
        vector_store_part(p + at, x, left);
}

typedef int32_t vector_whole __attribute__((vector_size(LANES * 4)));
typedef uint8_t vector_byte __attribute__((vector_size(LANES)));

INLINE vector_whole vector_load_bytes(const uint8_t *p)
{
    vector_byte bytes;
    memcpy(&bytes, p, sizeof bytes);
    return __builtin_convertvector(bytes, vector_whole);
}
/* x where `at` is `value`, else 0. */
INLINE vector vector_where(vector x, vector_whole at, int32_t value)
{
    return (vector)((vector_whole)x & (at == value));
}

/* a * b + c, in one rounding where the instruction set has it. */
#if defined(__FMA__)
INLINE float madd(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
#else
INLINE float madd(float a, float b, float c)
{
    return a * b + c;
}
#endif

/* Two vectors laned together (a0 b0 a1 b1 ...), and taken apart again; the lanes of one added up by folding halves. */
#if LANES == 16
#define LANED_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LANED_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LANED_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define LANED_ODD  1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
INLINE float vector_sum(vector x)
{
    x += __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    return x[0] + x[1];
}
/* Of lanes that are numbers. */
INLINE float vector_largest(vector x)
{
    x = vector_max(x, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    x = vector_max(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    x = vector_max(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    return x[0] > x[1] ? x[0] : x[1];
}
#elif LANES == 8
#define LANED_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define LANED_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define LANED_EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define LANED_ODD  1, 3, 5, 7, 9, 11, 13, 15
INLINE float vector_sum(vector x)
{
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
    return x[0] + x[1];
}
INLINE float vector_largest(vector x)
{
    x = vector_max(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = vector_max(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    return x[0] > x[1] ? x[0] : x[1];
}
#else
#define LANED_LOW  0, 4, 1, 5
#define LANED_HIGH 2, 6, 3, 7
#define LANED_EVEN 0, 2, 4, 6
#define LANED_ODD  1, 3, 5, 7
INLINE float vector_sum(vector x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}
INLINE float vector_largest(vector x)
{
    float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
}
#endif

#endif
