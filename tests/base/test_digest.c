/* test_digest.c - SHA-256 against published answers, and its fast path
   against the plain one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/numbers/digest.h"
#include "base/numbers/random.h"

static void check_sha256(const char *text, const char *expected)
{
    struct sha256 sha;
    uint8_t digest[32];
    char hex[65];
    sha256_init(&sha);
    sha256_add(&sha, text, strlen(text));
    sha256_end(&sha, digest);
    sha256_text(hex, digest);
    assert_string_equal(hex, expected);
}

static void sha256_known_answers(void **state)
{
    (void)state;
    check_sha256("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha256("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                 "mnopqrstnopqrstu",
                 "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

static void sha256_of_a_million(void **state)
{
    (void)state;
    char part[1000], hex[65];
    uint8_t digest[32];
    struct sha256 sha;
    memset(part, 'a', sizeof part);
    sha256_init(&sha);
    for (int i = 0; i < 1000; i++)
        sha256_add(&sha, part, sizeof part);
    sha256_end(&sha, digest);
    sha256_text(hex, digest);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void fill(uint8_t *data, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t block[4];
        random_block(block, seed, 0, i);
        memcpy(data + i, block, bytes - i < 4 ? bytes - i : 4);
    }
}

static void sha256_whole(uint8_t digest[32], const uint8_t *data, size_t bytes, bool fast)
{
    struct sha256 sha;
    sha256_init(&sha);
    sha.fast = fast;
    sha256_add(&sha, data, bytes);
    sha256_end(&sha, digest);
}

/* Every length around the block's edges, cut in two at every place. */
static void sha256_in_parts(void **state)
{
    (void)state;
    uint8_t data[200], whole[32], parts[32];
    fill(data, sizeof data, 1);
    for (size_t bytes = 0; bytes <= sizeof data; bytes++) {
        sha256_whole(whole, data, bytes, false);
        for (size_t cut = 0; cut <= bytes; cut++) {
            struct sha256 sha;
            sha256_init(&sha);
            sha256_add(&sha, data, cut);
            sha256_add(&sha, data + cut, bytes - cut);
            sha256_end(&sha, parts);
            assert_memory_equal(parts, whole, sizeof whole);
        }
    }
}

static void sha256_paths_agree(void **state)
{
    (void)state;
    if (!sha256_has_fast()) {
        print_message("no SHA instructions here: only the plain path is tested\n");
        skip();
    }
    uint8_t data[1031], plain[32], fast[32];
    for (size_t bytes = 0; bytes < sizeof data; bytes += bytes < 260 ? 1 : 77) {
        fill(data, sizeof data, bytes + 2);
        sha256_whole(plain, data + 3, bytes < 1028 ? bytes : 1028, false);
        sha256_whole(fast, data + 3, bytes < 1028 ? bytes : 1028, true);
        assert_memory_equal(plain, fast, sizeof plain);
    }
}

static void one_bit_changes_it(void **state)
{
    (void)state;
    uint8_t data[97], before[32], after[32];
    fill(data, sizeof data, 4);
    sha256_whole(before, data, sizeof data, sha256_has_fast());
    for (size_t bit = 0; bit < sizeof data * 8; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        sha256_whole(after, data, sizeof data, sha256_has_fast());
        assert_memory_not_equal(before, after, sizeof before);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_known_answers), cmocka_unit_test(sha256_of_a_million),
        cmocka_unit_test(sha256_in_parts),      cmocka_unit_test(sha256_paths_agree),
        cmocka_unit_test(one_bit_changes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
