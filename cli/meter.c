/* meter.c - a bar on standard error while something long goes on. */
#include "command.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAR_COLUMNS  30
#define DRAW_SECONDS 0.1

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void meter_init(struct meter *meter, const char *what, const char *unit)
{
    const char *kind = getenv("TERM");
    *meter = (struct meter){.unit = unit, .begin = now()};
    put_clean(meter->what, sizeof meter->what, what);
    meter->terminal = isatty(STDERR_FILENO) && !(kind && strcmp(kind, "dumb") == 0);
}

/* A terminal that is held (Ctrl-S) holds up nothing but the bar. */
static bool has_room(void)
{
    return poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, 0) > 0;
}

static void draw(const struct meter *meter, uint64_t done, uint64_t total, double at)
{
    double seconds = at - meter->begin, rate = seconds > 0 ? (double)done / seconds : 0;
    char bar[BAR_COLUMNS + 1];
    if (!total) {
        fprintf(stderr, "\r%.30s  %llu %s  %.0f/s\033[K", meter->what, (unsigned long long)done, meter->unit, rate);
        return;
    }
    int filled = (int)((double)BAR_COLUMNS * (double)done / (double)total);
    for (int i = 0; i < BAR_COLUMNS; i++)
        bar[i] = i < filled ? '=' : i == filled ? '>' : '.';
    bar[BAR_COLUMNS] = 0;
    double left = rate > 0 ? (double)(total - (done < total ? done : total)) / rate : 0;
    fprintf(stderr, "\r%.30s  [%s] %3.0f %%  %.0f s left\033[K", meter->what, bar, 100.0 * (double)done / (double)total,
            left);
}

bool meter_tell(void *context, uint64_t done, uint64_t total)
{
    struct meter *meter = context;
    double at = meter->terminal ? now() : 0;
    if (meter->terminal && at - meter->drawn > DRAW_SECONDS && has_room()) {
        draw(meter, done, total, at);
        meter->drawn = at;
    }
    return !signals_asked();
}

void meter_end(struct meter *meter)
{
    if (meter->terminal && meter->drawn > 0)
        fprintf(stderr, "\r\033[K");
}
