/* test_bpe.c - byte-level BPE: what the published algorithm makes of texts (golden/bpe.txt, made by
   golden/make_bpe.py), and back; damaged files. */
#include "format_files.h"

#include "base/memory/value_buffer.h"
#include "base/numbers/count.h"
#include "pipeline/text/bpe_tables.h"

#define ROOM_BYTES 65536
#define MOST_LINE  16384

static char vocab_path[512], merges_path[512];

static void find_golden(char out[512], const char *name)
{
    snprintf(out, 512, TESTS_FOLDER "/golden/%s", name);
}

static int find_files(void **state)
{
    find_golden(vocab_path, "bpe_vocab.json");
    find_golden(merges_path, "bpe_merges.txt");
    return make_folder(state);
}

static struct bpe *new_bpe(struct budget *budget)
{
    struct bpe *bpe;
    plim_error error = {0};
    if (bpe_make(&bpe, budget, vocab_path, merges_path, &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    return bpe;
}

static void check_line(const struct bpe *bpe, const char *line, void *block)
{
    uint8_t bytes[MOST_LINE];
    int64_t want[MOST_LINE / 2], count = 0;
    struct string text = {.data = bytes};
    for (unsigned byte; sscanf(line, "%2x", &byte) == 1 && *line != '\t'; line += 2)
        bytes[text.bytes++] = (uint8_t)byte;
    for (int at; sscanf(line, "%lld%n", (long long *)&want[count], &at) == 1; line += at)
        count++;
    struct value_buffer values;
    struct bpe_tokens tokens;
    value_buffer_init(&values, block, ROOM_BYTES);
    assert_int_equal(bpe_encode(&tokens, bpe, &text, TYPE_I64, &values, NULL), PLIM_OK);
    assert_false(tokens.full);
    if (tokens.count != count || memcmp(tokens.numbers, want, (size_t)count * 8) != 0)
        fail_msg("'%.*s': %lld tokens, %lld expected, or others", (int)text.bytes, (const char *)text.data,
                 (long long)tokens.count, (long long)count);
    assert_true(values.used == 8 * (uint64_t)count);
    uint64_t at = 0;
    for (int64_t i = 0; i < count; i++) { /* the tokens' bytes are the text */
        uint32_t token_bytes;
        const uint8_t *token = token_text(&token_bytes, bpe, (uint32_t)want[i]);
        assert_true(token_bytes <= text.bytes - at);
        assert_memory_equal(token, text.data + at, token_bytes);
        at += token_bytes;
    }
    assert_true(at == text.bytes);
    value_buffer_empty(&values);
    assert_int_equal(bpe_encode(&tokens, bpe, &text, TYPE_I32, &values, NULL), PLIM_OK);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(((int32_t *)tokens.numbers)[i], want[i]);
}

static void encodes_as_published(void **state)
{
    (void)state;
    static _Alignas(64) uint8_t block[ROOM_BYTES];
    char path[512], line[MOST_LINE];
    int lines = 0;
    find_golden(path, "bpe.txt");
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    struct budget *budget = new_budget();
    struct bpe *bpe = new_bpe(budget);
    for (; fgets(line, sizeof line, in); lines++)
        check_line(bpe, line, block);
    fclose(in);
    assert_true(lines > 140);
    const char *last = "<|endoftext|>", *none = "no such token";
    assert_int_equal(find_word(bpe, (const uint8_t *)last, strlen(last)), bpe->size - 1);
    assert_true(find_word(bpe, (const uint8_t *)none, strlen(none)) == NO_TOKEN);
    bpe_free(bpe);
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_PIPELINE], 0);
    end_budget(budget);
}

/* Merged in two ways: short pieces over and over, long ones with a heap. A long piece of many words that cannot be cut
   must be what its halves are, where no merge crosses the border. */
static void merges_long_pieces(void **state)
{
    (void)state;
    static _Alignas(64) uint8_t block[1 << 20];
    static char text[4000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "theshipqlinexx"[i % 14];
    struct budget *budget = new_budget();
    struct bpe *bpe = new_bpe(budget);
    struct value_buffer values;
    struct bpe_tokens whole, part;
    int64_t at = 0;
    value_buffer_init(&values, block, sizeof block);
    assert_int_equal(bpe_encode(&whole, bpe, &(struct string){(uint8_t *)text, sizeof text}, TYPE_I64, &values, NULL),
                     PLIM_OK);
    assert_false(whole.full);
    for (size_t i = 0; i < sizeof text; i += 14) { /* no token holds "xt" */
        uint64_t bytes = sizeof text - i < 14 ? sizeof text - i : 14;
        struct string piece = {(uint8_t *)text + i, bytes};
        assert_int_equal(bpe_encode(&part, bpe, &piece, TYPE_I64, &values, NULL), PLIM_OK);
        assert_memory_equal((int64_t *)whole.numbers + at, part.numbers, (size_t)part.count * 8);
        at += part.count;
    }
    assert_int_equal(at, whole.count);
    bpe_free(bpe);
    end_budget(budget);
}

/* A full value buffer: told so, with what it would take, and left as it was. */
static void tells_full_rooms(void **state)
{
    (void)state;
    static _Alignas(64) uint8_t block[ROOM_BYTES];
    struct budget *budget = new_budget();
    struct bpe *bpe = new_bpe(budget);
    struct string text = {(const uint8_t *)"memorymemorymemorymemorymemorymemorymemorymemorymemorymemory", 60};
    struct value_buffer values;
    struct bpe_tokens tokens = {.full = true};
    for (uint64_t capacity = 0; tokens.full; capacity++) {
        assert_true(capacity < ROOM_BYTES);
        value_buffer_init(&values, block, capacity);
        assert_int_equal(bpe_encode(&tokens, bpe, &text, TYPE_I64, &values, NULL), PLIM_OK);
        if (tokens.full)
            assert_true(values.used == 0 && values.wanted > capacity);
    }
    bpe_free(bpe);
    end_budget(budget);
}

/* ---- bad files ---- */

static const char small_vocab[] =
    "{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3, \"\xc4\xa0\x61\xc4\xa0\":5, \"<|\\u65e5|>\":4}";
static const char small_merges[] = "#version: 0.2\na b\n";

static plim_status try_small(const char *vocab, const char *merges, plim_error *error)
{
    struct bpe *bpe;
    struct budget *budget = new_budget();
    char vocab_file[128], merges_file[128];
    snprintf(vocab_file, sizeof vocab_file, "%s", write_file("vocab.json", vocab, strlen(vocab)));
    snprintf(merges_file, sizeof merges_file, "%s", write_file("merges.txt", merges, strlen(merges)));
    plim_status status = bpe_make(&bpe, budget, vocab_file, merges_file, error);
    if (status == PLIM_OK)
        bpe_free(bpe);
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_PIPELINE], 0);
    end_budget(budget);
    unlink(vocab_file);
    unlink(merges_file);
    return status;
}

static void names_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *vocab, *merges, *where, *message;
    } rows[] = {
        {"[1]", "", "vocab.json", "an object"},
        {"{}", "", "vocab.json", "empty"},
        {"{\"a\":-1}", "", "vocab.json", "not a token's number"},
        {"{\"a\":1.5}", "", "vocab.json", "not a token's number"},
        {"{\"a\":9000}", "", "vocab.json", "number 9000 in a vocabulary of 1"},
        {"{\"a\":0,\"b\":0}", "", "vocab.json", "number 0 twice"},
        {"{\"a\":0,\"a\":1}", "", "vocab.json", "the same token"},
        {"{\"\":0}", "", "vocab.json", "without a byte"},
        {"{\"a\":0", "", "vocab.json", "byte"},
        {small_vocab, "a\n", "merges.txt", "two tokens"},
        {small_vocab, "a b\nb a\n", "merges.txt: byte 4", "the result"},
        {small_vocab, "c b\n", "merges.txt: byte 0", "the left"},
        {small_vocab, "a b\na b\n", "merges.txt: byte 4", "twice"},
        {small_vocab, "a  b\n", "merges.txt: byte 0", "two tokens"},
    };
    plim_error error;
    for (size_t r = 0; r < COUNT(rows); r++) {
        assert_int_equal(try_small(rows[r].vocab, rows[r].merges, &error), PLIM_BAD_DATA);
        if (!strstr(error.where, rows[r].where) || !strstr(error.message, rows[r].message))
            fail_msg("%s: %s", error.where, error.message);
    }
    assert_int_equal(try_small(small_vocab, small_merges, &error), PLIM_OK);
}

static char good_file[128];

static plim_status try_vocab(struct budget *budget, const char *path, plim_error *error)
{
    struct bpe *bpe;
    plim_status status = bpe_make(&bpe, budget, path, good_file, error);
    if (status == PLIM_OK)
        bpe_free(bpe);
    else if (strstr(error->where, "good")) /* the other file no longer fits: it is named as well */
        snprintf(error->where, sizeof error->where, "damaged: byte 0");
    return status;
}

static plim_status try_merges(struct budget *budget, const char *path, plim_error *error)
{
    struct bpe *bpe;
    plim_status status = bpe_make(&bpe, budget, good_file, path, error);
    if (status == PLIM_OK)
        bpe_free(bpe);
    return status;
}

static void bears_damage(void **state)
{
    (void)state;
    snprintf(good_file, sizeof good_file, "%s", write_file("good", small_merges, strlen(small_merges)));
    assert_true(sweep(try_vocab, small_vocab, strlen(small_vocab)) > 100);
    unlink(good_file);
    snprintf(good_file, sizeof good_file, "%s", write_file("good", small_vocab, strlen(small_vocab)));
    /* A list of merges may end anywhere: only bits are turned. */
    char copy[sizeof small_merges];
    int errors = 0;
    for (size_t bit = 0; bit < 8 * strlen(small_merges); bit++) {
        memcpy(copy, small_merges, sizeof copy);
        copy[bit / 8] ^= (char)(1 << bit % 8);
        errors += try_damaged(try_merges, copy, strlen(small_merges)) != PLIM_OK;
    }
    assert_true(errors > 20);
    unlink(good_file);
}

/* A vocabulary without all bytes: a text that needs one of them is refused. */
static void refuses_unknown_bytes(void **state)
{
    (void)state;
    static _Alignas(64) uint8_t block[1024];
    struct bpe *bpe;
    struct budget *budget = new_budget();
    struct value_buffer values;
    struct bpe_tokens tokens;
    plim_error error;
    char vocab_file[128], merges_file[128];
    snprintf(vocab_file, sizeof vocab_file, "%s", write_file("vocab.json", small_vocab, strlen(small_vocab)));
    snprintf(merges_file, sizeof merges_file, "%s", write_file("merges.txt", small_merges, strlen(small_merges)));
    assert_int_equal(bpe_make(&bpe, budget, vocab_file, merges_file, NULL), PLIM_OK);
    value_buffer_init(&values, block, sizeof block);
    struct string text = {(const uint8_t *)"ab abc", 6};
    assert_int_equal(bpe_encode(&tokens, bpe, &text, TYPE_I64, &values, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "0x63"));
    text.bytes = 5;
    assert_int_equal(bpe_encode(&tokens, bpe, &text, TYPE_I64, &values, &error), PLIM_OK);
    assert_int_equal(tokens.count, 3);
    assert_memory_equal(tokens.numbers, ((int64_t[]){2, 3, 2}), 24);
    bpe_free(bpe);
    end_budget(budget);
    unlink(vocab_file);
    unlink(merges_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_as_published), cmocka_unit_test(merges_long_pieces),
        cmocka_unit_test(tells_full_rooms),     cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(bears_damage),         cmocka_unit_test(refuses_unknown_bytes),
    };
    return cmocka_run_group_tests(tests, find_files, remove_folder);
}
