/* hashing.c - FarmHash's 64-bit fingerprint, SipHash-2-4, and keras.layers.Hashing on them.

   The fingerprint is the one that the FarmHash paper's author calls "na" and promises never to change; what the
   letters below mean is nothing but their place in its recurrences. */
#include "pipeline/text/hashing.h"

#include <stdio.h>
#include <string.h>

#define K0 0xc3a5c85c97cb3127u
#define K1 0xb492b66fbe98f273u
#define K2 0x9ae16a3b2f90404fu

static inline uint64_t get64(const uint8_t *p)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | p[i];
    return value;
}

static inline uint64_t get32(const uint8_t *p)
{
    return p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static inline uint64_t right(uint64_t value, int by)
{
    return value >> by | value << (64 - by);
}

static inline uint64_t fold_47(uint64_t value)
{
    return value ^ value >> 47;
}

static inline uint64_t mix(uint64_t u, uint64_t v, uint64_t factor)
{
    uint64_t a = fold_47((u ^ v) * factor);
    return fold_47((v ^ a) * factor) * factor;
}

static uint64_t farm_to_16(const uint8_t *p, uint64_t n)
{
    uint64_t factor = K2 + 2 * n;
    if (n >= 8) {
        uint64_t a = get64(p) + K2, b = get64(p + n - 8);
        return mix(right(b, 37) * factor + a, (right(a, 25) + b) * factor, factor);
    }
    if (n >= 4)
        return mix(n + (get32(p) << 3), get32(p + n - 4), factor);
    if (n == 0)
        return K2;
    uint64_t y = p[0] + ((uint64_t)p[n / 2] << 8), z = n + ((uint64_t)p[n - 1] << 2);
    return fold_47((y * K2) ^ (z * K0)) * K2;
}

static uint64_t farm_to_32(const uint8_t *p, uint64_t n)
{
    uint64_t factor = K2 + 2 * n, a = get64(p) * K1, b = get64(p + 8);
    uint64_t c = get64(p + n - 8) * factor, d = get64(p + n - 16) * K2;
    return mix(right(a + b, 43) + right(c, 30) + d, a + right(b + K2, 18) + c, factor);
}

static uint64_t farm_to_64(const uint8_t *p, uint64_t n)
{
    uint64_t factor = K2 + 2 * n, a = get64(p) * K2, b = get64(p + 8);
    uint64_t c = get64(p + n - 8) * factor, d = get64(p + n - 16) * K2;
    uint64_t y = right(a + b, 43) + right(c, 30) + d, z = mix(y, a + right(b + K2, 18) + c, factor);
    uint64_t e = get64(p + 16) * factor, f = get64(p + 24);
    uint64_t g = (y + get64(p + n - 32)) * factor, h = (z + get64(p + n - 24)) * factor;
    return mix(right(e + f, 43) + right(g, 30) + h, e + right(f + a, 18) + g, factor);
}

struct pair {
    uint64_t first, second;
};

/* 32 bytes and two seeds into two words. */
static inline struct pair weak(const uint8_t *p, uint64_t a, uint64_t b)
{
    uint64_t x = get64(p + 8), y = get64(p + 16), z = get64(p + 24);
    a += get64(p);
    b = right(b + a + z, 21);
    uint64_t c = a;
    a += x + y;
    b += right(a, 44);
    return (struct pair){a + z, b + c};
}

struct farm {
    uint64_t x, y, z;
    struct pair v, w;
};

/* 64 bytes; the last ones are taken with another factor and other weights. */
static inline void farm_step(struct farm *s, const uint8_t *p, uint64_t factor, uint64_t weight)
{
    s->x = right(s->x + s->y + s->v.first + get64(p + 8), 37) * factor;
    s->y = right(s->y + s->v.second + get64(p + 48), 42) * factor;
    s->x ^= s->w.second * weight;
    s->y += s->v.first * weight + get64(p + 40);
    s->z = right(s->z + s->w.first, 33) * factor;
    s->v = weak(p, s->v.second * factor, s->x + s->w.first);
    s->w = weak(p + 32, s->z + s->w.second, s->y + get64(p + 16));
    uint64_t kept = s->z;
    s->z = s->x;
    s->x = kept;
}

uint64_t hash_farm(const void *data, uint64_t bytes)
{
    const uint8_t *p = data;
    if (bytes <= 32)
        return bytes <= 16 ? farm_to_16(p, bytes) : farm_to_32(p, bytes);
    if (bytes <= 64)
        return farm_to_64(p, bytes);
    uint64_t y = 81 * K1 + 113;
    struct farm s = {.x = 81 * K2 + get64(p), .y = y, .z = fold_47(y * K2 + 113) * K2};
    uint64_t rest = (bytes - 1) & 63;
    for (uint64_t left = bytes - 1; left >= 64; left -= 64, p += 64)
        farm_step(&s, p, K1, 1);
    uint64_t factor = K1 + ((s.z & 0xff) << 1);
    s.w.first += rest;
    s.v.first += s.w.first;
    s.w.first += s.v.first;
    farm_step(&s, (const uint8_t *)data + bytes - 64, factor, 9);
    return mix(mix(s.v.first, s.w.first, factor) + fold_47(s.y) * K0 + s.z, mix(s.v.second, s.w.second, factor) + s.x,
               factor);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = right(v[1], 64 - 13) ^ v[0];
    v[0] = right(v[0], 32);
    v[2] += v[3];
    v[3] = right(v[3], 64 - 16) ^ v[2];
    v[0] += v[3];
    v[3] = right(v[3], 64 - 21) ^ v[0];
    v[2] += v[1];
    v[1] = right(v[1], 64 - 17) ^ v[2];
    v[2] = right(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t hash_sip(const uint64_t key[2], const void *data, uint64_t bytes)
{
    const uint8_t *p = data;
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                     key[1] ^ 0x7465646279746573u};
    uint64_t last = bytes << 56;
    for (uint64_t left = bytes; left >= 8; left -= 8, p += 8)
        sip_word(v, get64(p));
    for (uint64_t i = 0; i < bytes % 8; i++)
        last |= (uint64_t)p[i] << 8 * i;
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int64_t hash_bin(const struct hash_salt *salt, int64_t bins, const void *data, uint64_t bytes)
{
    uint64_t hash = salt->given ? hash_sip(salt->key, data, bytes) : hash_farm(data, bytes);
    return (int64_t)(hash % (uint64_t)bins);
}

int64_t hash_bin_of_whole(const struct hash_salt *salt, int64_t bins, int64_t value)
{
    char text[24];
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int at = (int)sizeof text;
    do
        text[--at] = (char)('0' + magnitude % 10);
    while (magnitude /= 10);
    if (value < 0)
        text[--at] = '-';
    return hash_bin(salt, bins, text + at, (uint64_t)((int)sizeof text - at));
}

/* ---- the layer ---- */

static bool is_mask(const struct hashing *hashing, const void *row, enum type type, int64_t i)
{
    if (type != TYPE_STRING)
        return element_get(row, type, i) == hashing->mask_number;
    const struct string *text = (const struct string *)row + i;
    return text->bytes == hashing->mask.bytes &&
           (text->bytes == 0 || memcmp(text->data, hashing->mask.data, text->bytes) == 0);
}

static void find_bins(int64_t *bins, const struct hashing *hashing, const void *row, enum type type, int64_t count)
{
    bool masked = hashing->masked && hashing->bins > 1;
    int64_t most = hashing->bins - masked;
    for (int64_t i = 0; i < count; i++) {
        const struct string *text = (const struct string *)row + i;
        bool truth = type == TYPE_BOOL && ((const uint8_t *)row)[i];
        if (masked && is_mask(hashing, row, type, i))
            bins[i] = -1; /* bin 0, below */
        else if (type == TYPE_STRING)
            bins[i] = hash_bin(&hashing->salt, most, text->data, text->bytes);
        else if (type == TYPE_BOOL)
            bins[i] = hash_bin(&hashing->salt, most, truth ? "true" : "false", truth ? 4 : 5);
        else
            bins[i] = hash_bin_of_whole(&hashing->salt, most, category_element(row, type, i));
        bins[i] += masked;
    }
}

void hashing_row(void *to, enum type to_type, const struct hashing *hashing, const void *row, enum type type,
                 const struct shape *shape)
{
    struct category_row out = {.to = to, .type = to_type, .output = hashing->output, .depth = hashing->bins};
    int64_t numbers[CATEGORY_BLOCK], count = shape_count(shape);
    category_begin(&out, shape);
    for (int64_t i = 0; i < count; i += CATEGORY_BLOCK) {
        int64_t n = count - i < CATEGORY_BLOCK ? count - i : CATEGORY_BLOCK;
        find_bins(numbers, hashing, (const uint8_t *)row + (size_t)i * type_bytes(type), type, n);
        category_put(&out, i, numbers, n);
    }
}
