/* test_crc32c.c - CRC-32C: known values, both paths, parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/numbers/crc32c.h"

static void fill(uint8_t *data, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
}

/* RFC 3720, B.4. */
static void known_values(void **state)
{
    (void)state;
    static const uint8_t command[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
                                        0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                        0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
    uint8_t data[32];
    assert_int_equal(crc32c(0, "", 0), 0);
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);
    memset(data, 0, sizeof data);
    assert_int_equal(crc32c(0, data, sizeof data), 0x8a9136aau);
    memset(data, 0xff, sizeof data);
    assert_int_equal(crc32c(0, data, sizeof data), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        data[i] = (uint8_t)i;
    assert_int_equal(crc32c(0, data, sizeof data), 0x46dd794eu);
    assert_int_equal(crc32c_plain(0, data, sizeof data), 0x46dd794eu);
    assert_int_equal(crc32c(0, command, sizeof command), 0xd9963a56u);
}

/* What TensorFlow stores for a length of 0 and for no bytes. */
static void masked_values(void **state)
{
    (void)state;
    assert_int_equal(crc32c_mask(0), 0xa282ead8u);
    assert_int_equal(crc32c_mask(crc32c(0, (uint8_t[8]){0}, 8)), 0x07980329u);
}

static void paths_and_parts_agree(void **state)
{
    (void)state;
    static uint8_t data[5000];
    fill(data, sizeof data, 3);
    for (size_t from = 0; from < 9; from++)
        for (size_t bytes = 0; bytes + from <= sizeof data; bytes += bytes < 700 ? 1 : 131) {
            uint32_t plain = crc32c_plain(0, data + from, bytes);
            assert_int_equal(crc32c(0, data + from, bytes), plain);
            uint32_t part = crc32c(0, data + from, bytes / 3);
            assert_int_equal(crc32c(part, data + from + bytes / 3, bytes - bytes / 3), plain);
        }
}

static void one_bit_changes_it(void **state)
{
    (void)state;
    static uint8_t data[2000];
    fill(data, sizeof data, 4);
    uint32_t crc = crc32c(0, data, sizeof data);
    for (size_t bit = 0; bit < sizeof data * 8; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(crc32c(0, data, sizeof data), crc);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(masked_values),
        cmocka_unit_test(paths_and_parts_agree),
        cmocka_unit_test(one_bit_changes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
