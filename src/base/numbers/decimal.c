/* decimal.c - decimal text to floating point, rounded as the standard has it, without the C library.

   The digits are a whole number w, the rest is a power of ten: w * 10^q = w * 5^q * 2^q. With 5^q to 128 bits the
   product tells the nearest float of nearly every text (Lemire, Number Parsing at a Gigabyte per Second, 2021);
   what it leaves open, what is not normal and what has over 19 digits goes to strtod and strtof. */
#include "base/numbers/decimal.h"

#include <string.h>

#include "base/numbers/numbers.h"

#define POWER_LEAST (-80)
#define POWER_MOST  48
#define TEXT_MOST   1000

/* 5^q, the highest bit set: 64 bits and 64 bits more. Rounded down for q >= 0, up for q < 0. */
static const uint64_t powers[POWER_MOST - POWER_LEAST + 1][2] = {
    {0x97c560ba6b0919a5, 0xdccd879fc967d41b}, {0xbdb6b8e905cb600f, 0x5400e987bbc1c921},
    {0xed246723473e3813, 0x290123e9aab23b69}, {0x9436c0760c86e30b, 0xf9a0b6720aaf6522},
    {0xb94470938fa89bce, 0xf808e40e8d5b3e6a}, {0xe7958cb87392c2c2, 0xb60b1d1230b20e05},
    {0x90bd77f3483bb9b9, 0xb1c6f22b5e6f48c3}, {0xb4ecd5f01a4aa828, 0x1e38aeb6360b1af4},
    {0xe2280b6c20dd5232, 0x25c6da63c38de1b1}, {0x8d590723948a535f, 0x579c487e5a38ad0f},
    {0xb0af48ec79ace837, 0x2d835a9df0c6d852}, {0xdcdb1b2798182244, 0xf8e431456cf88e66},
    {0x8a08f0f8bf0f156b, 0x1b8e9ecb641b5900}, {0xac8b2d36eed2dac5, 0xe272467e3d222f40},
    {0xd7adf884aa879177, 0x5b0ed81dcc6abb10}, {0x86ccbb52ea94baea, 0x98e947129fc2b4ea},
    {0xa87fea27a539e9a5, 0x3f2398d747b36225}, {0xd29fe4b18e88640e, 0x8eec7f0d19a03aae},
    {0x83a3eeeef9153e89, 0x1953cf68300424ad}, {0xa48ceaaab75a8e2b, 0x5fa8c3423c052dd8},
    {0xcdb02555653131b6, 0x3792f412cb06794e}, {0x808e17555f3ebf11, 0xe2bbd88bbee40bd1},
    {0xa0b19d2ab70e6ed6, 0x5b6aceaeae9d0ec5}, {0xc8de047564d20a8b, 0xf245825a5a445276},
    {0xfb158592be068d2e, 0xeed6e2f0f0d56713}, {0x9ced737bb6c4183d, 0x55464dd69685606c},
    {0xc428d05aa4751e4c, 0xaa97e14c3c26b887}, {0xf53304714d9265df, 0xd53dd99f4b3066a9},
    {0x993fe2c6d07b7fab, 0xe546a8038efe402a}, {0xbf8fdb78849a5f96, 0xde98520472bdd034},
    {0xef73d256a5c0f77c, 0x963e66858f6d4441}, {0x95a8637627989aad, 0xdde7001379a44aa9},
    {0xbb127c53b17ec159, 0x5560c018580d5d53}, {0xe9d71b689dde71af, 0xaab8f01e6e10b4a7},
    {0x9226712162ab070d, 0xcab3961304ca70e9}, {0xb6b00d69bb55c8d1, 0x3d607b97c5fd0d23},
    {0xe45c10c42a2b3b05, 0x8cb89a7db77c506b}, {0x8eb98a7a9a5b04e3, 0x77f3608e92adb243},
    {0xb267ed1940f1c61c, 0x55f038b237591ed4}, {0xdf01e85f912e37a3, 0x6b6c46dec52f6689},
    {0x8b61313bbabce2c6, 0x2323ac4b3b3da016}, {0xae397d8aa96c1b77, 0xabec975e0a0d081b},
    {0xd9c7dced53c72255, 0x96e7bd358c904a22}, {0x881cea14545c7575, 0x7e50d64177da2e55},
    {0xaa242499697392d2, 0xdde50bd1d5d0b9ea}, {0xd4ad2dbfc3d07787, 0x955e4ec64b44e865},
    {0x84ec3c97da624ab4, 0xbd5af13bef0b113f}, {0xa6274bbdd0fadd61, 0xecb1ad8aeacdd58f},
    {0xcfb11ead453994ba, 0x67de18eda5814af3}, {0x81ceb32c4b43fcf4, 0x80eacf948770ced8},
    {0xa2425ff75e14fc31, 0xa1258379a94d028e}, {0xcad2f7f5359a3b3e, 0x096ee45813a04331},
    {0xfd87b5f28300ca0d, 0x8bca9d6e188853fd}, {0x9e74d1b791e07e48, 0x775ea264cf55347e},
    {0xc612062576589dda, 0x95364afe032a819e}, {0xf79687aed3eec551, 0x3a83ddbd83f52205},
    {0x9abe14cd44753b52, 0xc4926a9672793543}, {0xc16d9a0095928a27, 0x75b7053c0f178294},
    {0xf1c90080baf72cb1, 0x5324c68b12dd6339}, {0x971da05074da7bee, 0xd3f6fc16ebca5e04},
    {0xbce5086492111aea, 0x88f4bb1ca6bcf585}, {0xec1e4a7db69561a5, 0x2b31e9e3d06c32e6},
    {0x9392ee8e921d5d07, 0x3aff322e62439fd0}, {0xb877aa3236a4b449, 0x09befeb9fad487c3},
    {0xe69594bec44de15b, 0x4c2ebe687989a9b4}, {0x901d7cf73ab0acd9, 0x0f9d37014bf60a11},
    {0xb424dc35095cd80f, 0x538484c19ef38c95}, {0xe12e13424bb40e13, 0x2865a5f206b06fba},
    {0x8cbccc096f5088cb, 0xf93f87b7442e45d4}, {0xafebff0bcb24aafe, 0xf78f69a51539d749},
    {0xdbe6fecebdedd5be, 0xb573440e5a884d1c}, {0x89705f4136b4a597, 0x31680a88f8953031},
    {0xabcc77118461cefc, 0xfdc20d2b36ba7c3e}, {0xd6bf94d5e57a42bc, 0x3d32907604691b4d},
    {0x8637bd05af6c69b5, 0xa63f9a49c2c1b110}, {0xa7c5ac471b478423, 0x0fcf80dc33721d54},
    {0xd1b71758e219652b, 0xd3c36113404ea4a9}, {0x83126e978d4fdf3b, 0x645a1cac083126ea},
    {0xa3d70a3d70a3d70a, 0x3d70a3d70a3d70a4}, {0xcccccccccccccccc, 0xcccccccccccccccd},
    {0x8000000000000000, 0x0000000000000000}, {0xa000000000000000, 0x0000000000000000},
    {0xc800000000000000, 0x0000000000000000}, {0xfa00000000000000, 0x0000000000000000},
    {0x9c40000000000000, 0x0000000000000000}, {0xc350000000000000, 0x0000000000000000},
    {0xf424000000000000, 0x0000000000000000}, {0x9896800000000000, 0x0000000000000000},
    {0xbebc200000000000, 0x0000000000000000}, {0xee6b280000000000, 0x0000000000000000},
    {0x9502f90000000000, 0x0000000000000000}, {0xba43b74000000000, 0x0000000000000000},
    {0xe8d4a51000000000, 0x0000000000000000}, {0x9184e72a00000000, 0x0000000000000000},
    {0xb5e620f480000000, 0x0000000000000000}, {0xe35fa931a0000000, 0x0000000000000000},
    {0x8e1bc9bf04000000, 0x0000000000000000}, {0xb1a2bc2ec5000000, 0x0000000000000000},
    {0xde0b6b3a76400000, 0x0000000000000000}, {0x8ac7230489e80000, 0x0000000000000000},
    {0xad78ebc5ac620000, 0x0000000000000000}, {0xd8d726b7177a8000, 0x0000000000000000},
    {0x878678326eac9000, 0x0000000000000000}, {0xa968163f0a57b400, 0x0000000000000000},
    {0xd3c21bcecceda100, 0x0000000000000000}, {0x84595161401484a0, 0x0000000000000000},
    {0xa56fa5b99019a5c8, 0x0000000000000000}, {0xcecb8f27f4200f3a, 0x0000000000000000},
    {0x813f3978f8940984, 0x4000000000000000}, {0xa18f07d736b90be5, 0x5000000000000000},
    {0xc9f2c9cd04674ede, 0xa400000000000000}, {0xfc6f7c4045812296, 0x4d00000000000000},
    {0x9dc5ada82b70b59d, 0xf020000000000000}, {0xc5371912364ce305, 0x6c28000000000000},
    {0xf684df56c3e01bc6, 0xc732000000000000}, {0x9a130b963a6c115c, 0x3c7f400000000000},
    {0xc097ce7bc90715b3, 0x4b9f100000000000}, {0xf0bdc21abb48db20, 0x1e86d40000000000},
    {0x96769950b50d88f4, 0x1314448000000000}, {0xbc143fa4e250eb31, 0x17d955a000000000},
    {0xeb194f8e1ae525fd, 0x5dcfab0800000000}, {0x92efd1b8d0cf37be, 0x5aa1cae500000000},
    {0xb7abc627050305ad, 0xf14a3d9e40000000}, {0xe596b7b0c643c719, 0x6d9ccd05d0000000},
    {0x8f7e32ce7bea5c6f, 0xe4820023a2000000}, {0xb35dbf821ae4f38b, 0xdda2802c8a800000},
    {0xe0352f62a19e306e, 0xd50b2037ad200000}, {0x8c213d9da502de45, 0x4526f422cc340000},
    {0xaf298d050e4395d6, 0x9670b12b7f410000},
};

/* What sets double and float apart. */
struct kind {
    int bits;                /* of the fraction that are stored */
    int bias, top;           /* of the exponent; the exponent of infinity */
    int tie_least, tie_most; /* powers of ten for which a value can lie half-way between two floats */
};

static const struct kind doubles = {.bits = 52, .bias = 1023, .top = 0x7ff, .tie_least = -4, .tie_most = 23};
static const struct kind floats = {.bits = 23, .bias = 127, .top = 0xff, .tie_least = -17, .tie_most = 10};

/* The upper 128 bits of w * 5^q that matter; w has its highest bit set. */
static void multiply(uint64_t *high, uint64_t *low, uint64_t w, int q, uint64_t mask)
{
    const uint64_t *power = powers[q - POWER_LEAST];
    unsigned __int128 product = (unsigned __int128)w * power[0];
    *high = (uint64_t)(product >> 64);
    *low = (uint64_t)product;
    if ((*high & mask) != mask)
        return;
    uint64_t more = (uint64_t)((unsigned __int128)w * power[1] >> 64);
    *low += more;
    *high += *low < more;
}

/* The stored bits of w * 10^q without its sign; false when they cannot be told here. */
static bool nearest(uint64_t *out, uint64_t w, int q, const struct kind *kind)
{
    if (w == 0) {
        *out = 0;
        return true;
    }
    if (q < POWER_LEAST || q > POWER_MOST)
        return false;
    int zeros = __builtin_clzll(w), drop = 64 - kind->bits - 3;
    uint64_t high, low;
    multiply(&high, &low, w << zeros, q, UINT64_MAX >> (kind->bits + 3));
    if (low == UINT64_MAX && (q < -27 || q > 55))
        return false;
    int upper = (int)(high >> 63);
    uint64_t fraction = high >> (upper + drop);
    /* 217706 / 65536 is log2(10), near enough for these q. */
    int exponent = ((217706 * q) >> 16) + 63 + upper - zeros + kind->bias;
    if (exponent <= 0)
        return false;
    /* Exactly half-way: to the even one. */
    if (low <= 1 && q >= kind->tie_least && q <= kind->tie_most && (fraction & 3) == 1 &&
        fraction << (upper + drop) == high)
        fraction &= ~(uint64_t)1;
    fraction = (fraction + (fraction & 1)) >> 1;
    if (fraction >= (uint64_t)2 << kind->bits) {
        fraction = (uint64_t)1 << kind->bits;
        exponent++;
    }
    if (exponent >= kind->top)
        *out = (uint64_t)kind->top << kind->bits;
    else
        *out = (fraction & ~((uint64_t)1 << kind->bits)) | (uint64_t)exponent << kind->bits;
    return true;
}

bool decimal_to_double(double *out, const struct decimal *decimal)
{
    uint64_t bits;
    if (decimal->many || !nearest(&bits, decimal->digits, decimal->exponent, &doubles))
        return false;
    bits |= (uint64_t)decimal->negative << 63;
    memcpy(out, &bits, sizeof *out);
    return true;
}

bool decimal_to_float(float *out, const struct decimal *decimal)
{
    uint64_t bits;
    if (decimal->many || !nearest(&bits, decimal->digits, decimal->exponent, &floats))
        return false;
    uint32_t half = (uint32_t)bits | (uint32_t)decimal->negative << 31;
    memcpy(out, &half, sizeof *out);
    return true;
}

/* A copy that ends with the bytes that decimal_scan may look at. */
static bool copy(char *to, const char *text, size_t bytes)
{
    if (bytes == 0 || bytes > TEXT_MOST || strchr(" \t\n\v\f\r", text[0]))
        return false;
    memcpy(to, text, bytes);
    memset(to + bytes, 0, DECIMAL_PAD);
    return true;
}

bool decimal_double(double *out, const char *text, size_t bytes)
{
    char buffer[TEXT_MOST + DECIMAL_PAD], *end;
    struct decimal decimal = {0};
    if (!copy(buffer, text, bytes))
        return false;
    if (decimal_scan(&decimal, buffer) == buffer + bytes && decimal_to_double(out, &decimal))
        return true;
    double value = number_parse(buffer, &end);
    if (end != buffer + bytes)
        return false;
    *out = value;
    return true;
}

bool decimal_float(float *out, const char *text, size_t bytes)
{
    char buffer[TEXT_MOST + DECIMAL_PAD], *end;
    struct decimal decimal = {0};
    if (!copy(buffer, text, bytes))
        return false;
    if (decimal_scan(&decimal, buffer) == buffer + bytes && decimal_to_float(out, &decimal))
        return true;
    float value = number_parse_float(buffer, &end);
    if (end != buffer + bytes)
        return false;
    *out = value;
    return true;
}
