/* await.h - tests wait for what they need to have happened, not for a time that is long enough on most machines. */
#ifndef TESTS_SUPPORT_AWAIT_H
#define TESTS_SUPPORT_AWAIT_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define AWAIT_MS 60000

/* Asks once a millisecond; false when it did not happen within a minute. */
static inline bool await(bool (*happened)(const void *context), const void *context)
{
    for (int i = 0; i < AWAIT_MS && !happened(context); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return happened(context);
}

/* The state letter of /proc/PATH/stat, behind the name in parentheses; 0: there is none. */
static inline char task_state(const char *path)
{
    char name[128], line[512], state = 0;
    snprintf(name, sizeof name, "/proc/%s/stat", path);
    FILE *file = fopen(name, "r");
    if (!file)
        return 0;
    if (fgets(line, sizeof line, file)) {
        const char *end = NULL;
        for (const char *at = line; *at; at++)
            if (*at == ')')
                end = at;
        state = end && end[1] ? end[2] : 0;
    }
    fclose(file);
    return state;
}

/* Context: pid_t. The process waits for something, or is gone. */
static inline bool process_sleeps(const void *context)
{
    char path[32];
    snprintf(path, sizeof path, "%d", (int)*(const pid_t *)context);
    return task_state(path) != 'R';
}

/* Context: pid_t of a thread of this process. The kernel lists a joined thread for a moment longer. */
static inline bool thread_is_gone(const void *context)
{
    char path[64];
    snprintf(path, sizeof path, "self/task/%d", (int)*(const pid_t *)context);
    return task_state(path) == 0;
}

/* All other threads of this process wait for something. Takes no context. */
static inline bool others_sleep(const void *context)
{
    char path[64];
    bool all = true;
    long own = syscall(SYS_gettid);
    (void)context;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        long thread = strtol(entry->d_name, NULL, 10); /* 0: "." and ".." */
        if (thread == 0 || thread == own)
            continue;
        snprintf(path, sizeof path, "self/task/%ld", thread);
        all = all && task_state(path) != 'R';
    }
    if (folder)
        closedir(folder);
    return all;
}

#endif
