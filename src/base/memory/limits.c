/* limits.c - how much memory there is for us: the least headroom of the cgroup
   chain, RLIMIT_AS and MemAvailable.

   1. Headroom of a cgroup = limit - (usage - file pages). File pages go when
      somebody needs them; tmpfs is not among them. Swap counts nowhere.
      A budget is of the whole process: what we hold already is part of it.
   2. Every cgroup from ours up to the root of the mount binds us. Where the
      path in /proc/self/cgroup cannot be seen under the mount (containers),
      the root of the mount is what we can see of our own cgroup.
   3. A file that is missing is no limit; one that cannot be read is an error:
      a limit that we overlook would get us killed. */
#include "base/memory/limits.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/files/file.h"
#include "base/numbers/checked.h"
#include "base/text/text.h"

#define LOAD_MOST ((size_t)1024 * 1024)
#define PATH_MOST 4096
/* v1 says "no limit" with the largest multiple of the page size in 63 bits. */
#define NO_LIMIT (1ull << 62)

struct search {
    const char *root;
    struct budget *budget;
    plim_error *error;
    bool found;
    uint64_t anonymous, resident; /* of this process, now */
    struct limits least;          /* without margin */
};

/* ---- files and fields ------------------------------------------------ */

static void loaded_release(struct search *search, struct file_content *file)
{
    if (file->text != NULL)
        budget_give(search->budget, TAG_PROCESS, file->text, file->bytes + 1);
    *file = (struct file_content){0};
}

/* A whole file below the root; empty text when there is none. */
static plim_status load(struct file_content *out, struct search *search, const char *path)
{
    bool exists;
    char whole[PATH_MOST + 64];
    *out = (struct file_content){0};
    snprintf(whole, sizeof whole, "%s%s", search->root, path);
    TRY(file_exists(&exists, whole, search->error));
    if (!exists)
        return PLIM_OK;
    return file_load(out, search->budget, TAG_PROCESS, whole, LOAD_MOST, search->error);
}

static bool parse_number(uint64_t *out, const char *text)
{
    uint64_t value = 0;
    const char *p = text + strspn(text, " \t");
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (!mul_u64(&value, value, 10) || !add_u64(&value, value, (uint64_t)(*p - '0')))
            value = UINT64_MAX / 16;
    *out = value;
    return true;
}

/* The number in the line that begins with `key`, times unit; false if there
   is no such line. text may be NULL. */
static bool find_field(uint64_t *out, const char *text, const char *key, uint64_t unit)
{
    uint64_t value;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) != 0 || !parse_number(&value, line + strlen(key)))
            continue;
        *out = value > UINT64_MAX / unit ? UINT64_MAX : value * unit;
        return true;
    }
    return false;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void consider(struct search *search, uint64_t headroom, uint64_t own, const char *source, const char *place)
{
    uint64_t bytes;
    if (!add_u64(&bytes, headroom, own))
        bytes = UINT64_MAX;
    if (search->found && search->least.bytes <= bytes)
        return;
    search->found = true;
    search->least.bytes = bytes;
    search->least.headroom = headroom;
    search->least.source = source;
    snprintf(search->least.place, sizeof search->least.place, "%.255s", place);
}

/* `held` of a limit is in use, and `own` of that may be ours. */
static void consider_limit(struct search *search, uint64_t limit, uint64_t held, uint64_t own, const char *source,
                           const char *place)
{
    uint64_t headroom = less(limit, held), all = less(limit, less(held, own));
    consider(search, headroom, all - headroom, source, place);
}

/* ---- cgroups --------------------------------------------------------- */

/* What the two versions call things. */
struct dialect {
    const char *file_system, *limit, *usage;
    const char *file_pages[2], *own_file_pages[2]; /* lines of memory.stat: with children, without */
    const char *limit_above;                       /* line of memory.stat: the least limit of the whole chain */
};

static const struct dialect version_1 = {
    .file_system = "cgroup",
    .limit = "memory.limit_in_bytes",
    .usage = "memory.usage_in_bytes",
    .file_pages = {"total_inactive_file ", "total_active_file "},
    .own_file_pages = {"inactive_file ", "active_file "},
    .limit_above = "hierarchical_memory_limit ",
};

static const struct dialect version_2 = {
    .file_system = "cgroup2",
    .limit = "memory.max",
    .usage = "memory.current",
    .file_pages = {"inactive_file ", "active_file "},
    .own_file_pages = {"inactive_file ", "active_file "},
    .limit_above = "hierarchical_memory_limit ", /* not there: never found */
};

/* The number in a file of a cgroup; `none` when it is missing or "max". */
static plim_status read_number(uint64_t *out, struct search *search, const char *folder, const char *name,
                               uint64_t none)
{
    char path[PATH_MOST + 32];
    struct file_content file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    TRY(load(&file, search, path));
    if (file.text == NULL || !parse_number(out, file.text))
        *out = none;
    loaded_release(search, &file);
    return PLIM_OK;
}

static uint64_t file_pages(const char *stat, const struct dialect *dialect)
{
    uint64_t total = 0;
    for (int i = 0; i < 2; i++) {
        uint64_t pages = 0;
        if (!find_field(&pages, stat, dialect->file_pages[i], 1))
            find_field(&pages, stat, dialect->own_file_pages[i], 1);
        total += pages;
    }
    return total;
}

static plim_status check_level(struct search *search, const struct dialect *dialect, const char *folder)
{
    uint64_t limit, usage, above = UINT64_MAX;
    char path[PATH_MOST + 32];
    struct file_content stat;
    TRY(read_number(&limit, search, folder, dialect->limit, UINT64_MAX));
    TRY(read_number(&usage, search, folder, dialect->usage, 0));
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    TRY(load(&stat, search, path));
    uint64_t held = less(usage, file_pages(stat.text, dialect));
    find_field(&above, stat.text, dialect->limit_above, 1);
    loaded_release(search, &stat);
    snprintf(path, sizeof path, "%s/%s", folder, above < limit ? "memory.stat" : dialect->limit);
    limit = above < limit ? above : limit;
    if (limit < NO_LIMIT)
        consider_limit(search, limit, held, search->anonymous, "cgroup", path);
    return PLIM_OK;
}

/* From folder up to the mount point. */
static plim_status check_chain(struct search *search, const struct dialect *dialect, char *folder, size_t point_length)
{
    for (;;) {
        TRY(check_level(search, dialect, folder));
        char *slash = strrchr(folder, '/');
        if (slash == NULL || strlen(folder) <= point_length || (size_t)(slash - folder) < point_length)
            return PLIM_OK;
        *slash = 0;
    }
}

struct mount {
    char *root, *point; /* in the loaded mountinfo */
    const char *kind, *options;
};

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* "\040" stands for a blank. */
static void decode_octal(char *text)
{
    char *to = text;
    for (const char *p = text; *p != 0; to++) {
        bool octal = p[0] == '\\' && is_octal(p[1]) && is_octal(p[2]) && is_octal(p[3]);
        *to = octal ? (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0')) : *p;
        p += octal ? 4 : 1;
    }
    *to = 0;
}

/* id parent device root point options [tags...] - kind source options */
static bool parse_mount(struct mount *out, char *line)
{
    char *rest = line, *field;
    *out = (struct mount){0};
    for (int i = 0; i < 6; i++) {
        if ((field = strsep(&rest, " ")) == NULL)
            return false;
        if (i == 3)
            out->root = field;
        if (i == 4)
            out->point = field;
    }
    do {
        if ((field = strsep(&rest, " ")) == NULL)
            return false;
    } while (strcmp(field, "-") != 0);
    out->kind = strsep(&rest, " ");
    strsep(&rest, " ");
    out->options = strsep(&rest, " ");
    decode_octal(out->root);
    decode_octal(out->point);
    return out->kind != NULL && out->options != NULL;
}

/* Is `word` one of the words between commas? */
static bool has_word(const char *list, size_t bytes, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list, *end = list + bytes; p < end; p++) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t part = (size_t)((comma != NULL ? comma : end) - p);
        if (part == length && memcmp(p, word, length) == 0)
            return true;
        p += part;
    }
    return false;
}

static bool carries_memory(const struct mount *mount, const struct dialect *dialect)
{
    if (strcmp(mount->kind, dialect->file_system) != 0)
        return false;
    return dialect == &version_2 || has_word(mount->options, strlen(mount->options), "memory");
}

/* What of `path` lies below the mount's root; NULL when it lies elsewhere. */
static const char *path_below(const char *root, const char *path)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strstr(path, "/..") != NULL || strncmp(path, root, length) != 0)
        return NULL;
    path += length;
    return *path == 0 || *path == '/' ? path : NULL;
}

/* Our cgroup under this mount, if it can be seen there. */
static plim_status own_folder(bool *seen, char folder[PATH_MOST], struct search *search, const struct mount *mount,
                              const char *path)
{
    const char *below = path_below(mount->root, path);
    char whole[PATH_MOST + 64];
    *seen = false;
    if (below == NULL)
        return PLIM_OK;
    below = strcmp(below, "/") == 0 ? "" : below;
    if (snprintf(folder, PATH_MOST, "%s%s", mount->point, below) >= PATH_MOST)
        return PLIM_OK;
    snprintf(whole, sizeof whole, "%s%s", search->root, folder);
    return file_exists(seen, whole, search->error);
}

/* Cuts the next line off; NULL at the end. */
static char *next_line(char **rest)
{
    return *rest != NULL && **rest != 0 ? strsep(rest, "\n") : NULL;
}

static plim_status check_mounts(struct search *search, const struct dialect *dialect, const char *path, char *mounts)
{
    char folder[PATH_MOST], first[PATH_MOST] = "";
    for (char *line; (line = next_line(&mounts)) != NULL;) {
        struct mount mount;
        bool seen;
        if (!parse_mount(&mount, line) || !carries_memory(&mount, dialect))
            continue;
        TRY(own_folder(&seen, folder, search, &mount, path));
        if (seen)
            return check_chain(search, dialect, folder, strlen(mount.point));
        if (first[0] == 0)
            snprintf(first, sizeof first, "%s", mount.point);
    }
    return first[0] != 0 ? check_chain(search, dialect, first, strlen(first)) : PLIM_OK;
}

/* The path of our cgroup: the line "0::/path" of version 2, or the one of
   version 1 that lists memory. False when there is none. */
static bool own_path(char out[PATH_MOST], const char *cgroups, const struct dialect *dialect)
{
    for (const char *line = cgroups; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *names = strchr(line, ':');
        const char *path = names != NULL ? strchr(names + 1, ':') : NULL;
        size_t length = strcspn(line, "\n");
        if (path == NULL || path > line + length)
            continue;
        size_t names_length = (size_t)(path - names - 1);
        bool ours = dialect == &version_2 ? names_length == 0 : has_word(names + 1, names_length, "memory");
        int path_length = (int)(line + length - path - 1);
        if (ours && path_length < PATH_MOST) {
            snprintf(out, PATH_MOST, "%.*s", path_length, path + 1);
            return true;
        }
    }
    return false;
}

static plim_status check_cgroups(struct search *search, const struct dialect *dialect)
{
    struct file_content cgroups, mounts;
    char path[PATH_MOST];
    TRY(load(&cgroups, search, "/proc/self/cgroup"));
    bool member = own_path(path, cgroups.text, dialect);
    loaded_release(search, &cgroups);
    if (!member)
        return PLIM_OK;
    TRY(load(&mounts, search, "/proc/self/mountinfo"));
    plim_status status = mounts.text != NULL ? check_mounts(search, dialect, path, mounts.text) : PLIM_OK;
    loaded_release(search, &mounts);
    return status;
}

/* ---- the others ------------------------------------------------------ */

/* File pages of ours are among those that headroom leaves out already. */
static plim_status find_own(struct search *search)
{
    struct file_content status;
    uint64_t shared = 0;
    TRY(load(&status, search, "/proc/self/status"));
    find_field(&search->resident, status.text, "VmRSS:", 1024);
    find_field(&search->anonymous, status.text, "RssAnon:", 1024);
    find_field(&shared, status.text, "RssShmem:", 1024);
    if (!add_u64(&search->anonymous, search->anonymous, shared))
        search->anonymous = 0;
    loaded_release(search, &status);
    return PLIM_OK;
}

/* Address space: what is mapped already cannot be mapped again. */
static plim_status check_rlimit(struct search *search, uint64_t rlimit_as)
{
    struct file_content status;
    uint64_t mapped = 0;
    if (rlimit_as >= NO_LIMIT)
        return PLIM_OK;
    TRY(load(&status, search, "/proc/self/status"));
    find_field(&mapped, status.text, "VmSize:", 1024);
    loaded_release(search, &status);
    consider_limit(search, rlimit_as, mapped, search->resident, "rlimit", "RLIMIT_AS");
    return PLIM_OK;
}

/* Kernels before 3.14 have no MemAvailable: free pages and the page cache,
   of which tmpfs is a part that cannot be dropped. */
static plim_status check_available(struct search *search)
{
    struct file_content info;
    uint64_t bytes, cached = 0, shared = 0;
    TRY(load(&info, search, "/proc/meminfo"));
    if (find_field(&bytes, info.text, "MemAvailable:", 1024)) {
        consider(search, bytes, search->anonymous, "available", "/proc/meminfo: MemAvailable");
    } else if (find_field(&bytes, info.text, "MemFree:", 1024)) {
        find_field(&cached, info.text, "Cached:", 1024);
        find_field(&shared, info.text, "Shmem:", 1024);
        consider(search, bytes + less(cached, shared), search->anonymous, "available",
                 "/proc/meminfo: MemFree and Cached");
    }
    loaded_release(search, &info);
    return PLIM_OK;
}

static plim_status find_headroom(struct search *search, uint64_t rlimit_as)
{
    TRY(find_own(search));
    TRY(check_cgroups(search, &version_2));
    TRY(check_cgroups(search, &version_1));
    TRY(check_rlimit(search, rlimit_as));
    TRY(check_available(search));
    if (search->found)
        return PLIM_OK;
    plim_status status = fail(search->error, PLIM_IO, "cannot find out how much memory there is");
    return hint(search->error, status, "state it: --memory 256MiB");
}

plim_status limits_find(struct limits *out, const struct limits_input *input, struct budget *budget, plim_error *error)
{
    struct search search = {.root = input->root, .budget = budget, .error = error};
    TRY(find_headroom(&search, input->rlimit_as));
    *out = search.least;
    out->bytes -= out->bytes / 16;
    return PLIM_OK;
}

static uint64_t address_space_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

plim_status limits_here(struct limits *out, struct budget *budget, plim_error *error)
{
    const struct limits_input input = {.root = "", .rlimit_as = address_space_limit()};
    return limits_find(out, &input, budget, error);
}

/* "80%" into 80. */
static bool parse_percent(uint64_t *out, const char *text)
{
    uint64_t value;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 3 || strcmp(text + digits, "%") != 0 || !parse_number(&value, text))
        return false;
    *out = value;
    return value >= 1 && value <= 100;
}

plim_status limits_parse(uint64_t *bytes, const char **source, char place[256], const char *text, struct budget *budget,
                         plim_error *error)
{
    uint64_t percent = 0, stated;
    if (text != NULL && text_lacks_unit(text))
        return hint(error, fail(error, PLIM_USAGE, "memory: '%s' is a number of bytes, and too few for anything", text),
                    "%sMiB", text);
    if (text != NULL && text_parse_size(&stated, text) && stated > 0) {
        *bytes = stated;
        *source = "stated";
        snprintf(place, 256, "%s", text);
        return PLIM_OK;
    }
    if (text != NULL && strcmp(text, "auto") != 0 && !parse_percent(&percent, text)) {
        plim_status status = fail(error, PLIM_USAGE, "'%s' is not an amount of memory", text);
        return hint(error, status, "write 48MiB, 80%% or auto");
    }
    struct search search = {.root = "", .budget = budget, .error = error};
    TRY(find_headroom(&search, address_space_limit()));
    uint64_t all = search.least.bytes;
    *bytes = percent > 0 ? all / 100 * percent + all % 100 * percent / 100 : all - all / 16;
    *source = search.least.source;
    snprintf(place, 256, "%s", search.least.place);
    return PLIM_OK;
}
