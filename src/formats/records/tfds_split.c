/* tfds_split.c - splits of a TFDS data set: the files they lie in, and parts of them as "train[:80%]" has it. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/count.h"
#include "formats/records/tfds_info.h"

static const struct tfds_split *find_split(const struct tfds_info *info, const char *name, size_t bytes)
{
    for (int i = 0; i < info->split_count; i++)
        if (strlen(info->split[i].name) == bytes && memcmp(info->split[i].name, name, bytes) == 0)
            return &info->split[i];
    return NULL;
}

/* ---- files ---- */

struct part {
    const char *word;
    char text[TFDS_NAME_BYTES];
};

/* The usual template; {X} stands for the word X. */
bool tfds_file_name(char *out, size_t capacity, const struct tfds_info *info, const struct tfds_split *split,
                    int64_t shard)
{
    struct part parts[] = {{.word = "{DATASET}"},     {.word = "{SPLIT}"},      {.word = "{FILEFORMAT}"},
                           {.word = "{SHARD_INDEX}"}, {.word = "{NUM_SHARDS}"}, {.word = "{SHARD_X_OF_Y}"}};
    const char *at = split->file_template[0] ? split->file_template : "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";
    long long index = shard, count = split->shard_count;
    snprintf(parts[0].text, sizeof parts[0].text, "%s", info->name);
    snprintf(parts[1].text, sizeof parts[1].text, "%s", split->name);
    snprintf(parts[2].text, sizeof parts[2].text, "%s", info->file_format);
    snprintf(parts[3].text, sizeof parts[3].text, "%05lld", index);
    snprintf(parts[4].text, sizeof parts[4].text, "%05lld", count);
    snprintf(parts[5].text, sizeof parts[5].text, "%05lld-of-%05lld", index, count);
    size_t used = 0;
    while (*at) {
        const char *piece = at;
        size_t bytes = 1, step = 1;
        for (size_t i = 0; i < COUNT(parts) && step == 1; i++)
            if (strncmp(at, parts[i].word, strlen(parts[i].word)) == 0) {
                piece = parts[i].text;
                bytes = strlen(piece);
                step = strlen(parts[i].word);
            }
        if (used + bytes >= capacity)
            return false;
        memcpy(out + used, piece, bytes);
        used += bytes;
        at += step;
    }
    out[used] = 0;
    return used > 0 && out[0] != '/' && !strstr(out, ".."); /* nothing outside the folder */
}

/* ---- parts of splits ---- */

/* "80%", "-100", "" (given): an example's number. Percentages are rounded to the closest, halves to even. */
static bool read_bound(int64_t *out, const char **text, int64_t count, int64_t empty)
{
    const char *at = *text;
    bool minus = *at == '-';
    int64_t value = 0;
    at += minus;
    if (*at == ':' || *at == ']') {
        *out = empty;
        return !minus;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        if (value > INT64_MAX / 1000)
            return false;
        value = value * 10 + (*at - '0');
    }
    if (at == *text + minus || (*at == '%' && value > 100))
        return false;
    if (*at == '%') {
        int64_t whole = count / 100 * value, rest = count % 100 * value; /* count * value / 100, in parts that fit */
        int64_t down = rest / 100, left = rest % 100;
        value = whole + down + (left > 50 || (left == 50 && (whole + down) % 2));
        at++;
    }
    *out = minus ? count - value : value;
    *text = at;
    return value <= count;
}

plim_status tfds_read_slice(struct tfds_slice *out, const char **after, const struct tfds_info *info, const char *text,
                            plim_error *error)
{
    size_t bytes = strcspn(text, "[+ ");
    const char *at = text + bytes;
    const struct tfds_split *split = find_split(info, text, bytes);
    if (!split)
        return hint(error, fail(error, PLIM_BAD_JOB, "there is no split '%.*s'", (int)(bytes < 64 ? bytes : 64), text),
                    "there is '%s'%s", info->split[0].name, info->split_count > 1 ? " and others" : "");
    *out = (struct tfds_slice){.split = split, .end = split->count};
    if (*at == '[') {
        at++;
        bool good = read_bound(&out->begin, &at, split->count, 0) && *at == ':';
        at += good;
        good = good && read_bound(&out->end, &at, split->count, split->count) && *at == ']';
        if (!good)
            return hint(error, fail(error, PLIM_BAD_JOB, "not a part of a split: '%.64s'", text),
                        "train[:80%%], test[100:200], train[-10%%:]");
        at++;
    }
    if (out->end <= out->begin)
        return fail(error, PLIM_BAD_JOB, "'%.64s' has no examples", text);
    at += strspn(at, " ");
    if (*at && *at != '+')
        return fail(error, PLIM_BAD_JOB, "not a part of a split: '%.64s'", text);
    *after = at;
    return PLIM_OK;
}
