/* limits.h - how much memory there is for us, and how much we use.

   `auto` is the least that the cgroup chain (v1 and v2), RLIMIT_AS and
   MemAvailable leave us (limit less what others use: what this process holds
   already is its own), less a margin of 1/16, and says which one it took. Reads below `root` ("" on a real machine), so
   that tests can lay out a machine of their own. */
#ifndef BASE_MEMORY_LIMITS_H
#define BASE_MEMORY_LIMITS_H

#include "base/memory/budget.h"

struct limits {
    uint64_t bytes;     /* the least limit less what others use, less the margin */
    uint64_t headroom;  /* of it, what is not in use by us: no margin taken off */
    const char *source; /* cgroup | rlimit | available */
    char place[256];    /* the file or limit it came from */
};

struct limits_input {
    const char *root;   /* "" or a test's folder with proc/ and sys/ */
    uint64_t rlimit_as; /* UINT64_MAX: none */
};

plim_status limits_find(struct limits *out, const struct limits_input *input, struct budget *budget, plim_error *error);
/* The same for this process. */
plim_status limits_here(struct limits *out, struct budget *budget, plim_error *error);

/* "48MiB" | "80%" | "auto" | NULL (auto) into bytes and source ("stated" for
   the first). A small number without a unit is refused. A percentage is of `auto`'s figure before the margin. */
plim_status limits_parse(uint64_t *bytes, const char **source, char place[256], const char *text, struct budget *budget,
                         plim_error *error);

/* Memory of the whole process, as the kernel counts it. */
struct process_usage {
    uint64_t rss;         /* VmRSS now (smaps_rollup: exact) */
    uint64_t peak_rss;    /* VmHWM */
    uint64_t page_tables; /* VmPTE */
    uint64_t mapped;      /* VmSize: what RLIMIT_AS counts */
};
/* Resident memory and page tables, at most: a look that takes microseconds, whatever the process holds. 0: not
   known. */
uint64_t process_usage_at_most(void);
/* Allocates nothing: may be called in a step. false when /proc cannot be read. Goes through all page tables: some 50 us
   for a small process, milliseconds for one of GiBs. */
bool process_usage_now(struct process_usage *out);
/* The file of /proc with the exact resident size; NULL: the system's counters have to do (usage_sanitized.c). */
extern const char *const usage_exact_file;

#endif
