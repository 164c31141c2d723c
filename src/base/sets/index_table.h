/* index_table.h - an open hash table of numbers, 4 bytes an entry.

   An entry holds a number + 1 in its low bits, as many as the largest needs, and bits of the hash in the others: one
   of another hash is passed over without a look at what its number stands for. 0 is a free entry. Keys are the user's:
   he walks from entry to entry (table_first, table_next) and compares. A third of the entries stays free. */
#ifndef BASE_SETS_INDEX_TABLE_H
#define BASE_SETS_INDEX_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define TABLE_MOST ((uint64_t)1 << 31) /* numbers */

struct index_table {
    uint32_t *entry;
    uint64_t count;       /* of entries */
    uint32_t number_mask; /* of the low bits */
};

static inline uint64_t table_entries(uint64_t keys)
{
    return keys + keys / 2 + 8;
}

/* For numbers below `most`; entries are table_entries zeroes. */
static inline void table_init(struct index_table *table, uint32_t *entry, uint64_t entries, uint64_t most)
{
    uint32_t mask = 1;
    while (mask < most)
        mask = mask << 1 | 1;
    *table = (struct index_table){entry, entries, mask};
}

/* By the high half of the hash; the bits in the entry are of the low half. */
static inline uint64_t table_first(const struct index_table *table, uint64_t hash)
{
    return (hash >> 32) * table->count >> 32;
}

static inline uint64_t table_next(const struct index_table *table, uint64_t at)
{
    return at + 1 == table->count ? 0 : at + 1;
}

/* Whether the entry, which is not free, can be one with this hash. */
static inline bool table_may_be(const struct index_table *table, uint32_t entry, uint64_t hash)
{
    return !((entry ^ (uint32_t)hash) & ~table->number_mask);
}

static inline uint32_t table_number(const struct index_table *table, uint32_t entry)
{
    return (entry & table->number_mask) - 1;
}

static inline void table_put(struct index_table *table, uint64_t at, uint64_t hash, uint32_t number)
{
    table->entry[at] = ((uint32_t)hash & ~table->number_mask) | (number + 1);
}

#endif
