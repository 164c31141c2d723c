/* plan_plot.c - the frontier of a plan as an SVG file: budgets to the right, time upwards, a step where the next point
   fits. */
#include <string.h>

#include "formats/files/partial_file.h"
#include "report/plan_view.h"

#define MIB (1024.0 * 1024.0)

/* Of the picture, and of the area within the axes. */
enum { WIDTH = 720, HEIGHT = 420, LEFT = 70, RIGHT = 690, TOP = 60, BOTTOM = 360 };

/* What the axes show: from 0 to the end. */
struct axes {
    double mib, percent;           /* the ends */
    double mib_step, percent_step; /* between two marks */
};

static const char head[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"system-ui, sans-serif\" "
    "font-size=\"13\">\n"
    "<style>\n"
    "  .back { fill: #fff } text { fill: #222 } .soft { fill: #666 } .grid { stroke: #ddd }\n"
    "  .curve { stroke: #2563eb; fill: none; stroke-width: 2 } .point { fill: #2563eb } .guess { fill: #fff; stroke: #2563eb } .taken { fill: #dc2626 }\n"
    "  .budget { stroke: #dc2626; stroke-dasharray: 5 4 }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    .back { fill: #16181d } text { fill: #e6e6e6 } .soft { fill: #9aa } .grid { stroke: #333 }\n"
    "    .curve { stroke: #60a5fa } .point { fill: #60a5fa } .guess { fill: #16181d; stroke: #60a5fa } .taken { fill: #f87171 } .budget { stroke: #f87171 }\n"
    "  }\n"
    "</style>\n"
    "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n";

/* U+FFFE and U+FFFF, which are no characters of XML, as controls are none. */
static bool is_no_character(const char *words)
{
    return memcmp(words, "\xef\xbf", 2) == 0 && (unsigned char)words[2] >= 0xbe;
}

/* Any UTF-8 as the content of an element. */
static void add_escaped(struct text *out, const char *words)
{
    for (; *words; words++)
        if (*words == '<' || *words == '>' || *words == '&')
            text_add(out, "&#%d;", *words);
        else if ((unsigned char)*words == 0xef && is_no_character(words))
            words += 2;
        else if ((unsigned char)*words >= 0x20)
            text_add_bytes(out, words, 1);
}

/* About six marks up to `end`, at 1, 2 or 5 times a power of ten. */
static double mark_step(double end)
{
    static const double factors[] = {1, 2, 5, 10};
    double power = 1e-3;
    while (power * 60 < end)
        power *= 10;
    for (int i = 0; i < 3; i++)
        if (factors[i] * power * 6 >= end)
            return factors[i] * power;
    return 10 * power;
}

static double percent_of(const struct frontier_point *point)
{
    return 100 * (point->relative_time - 1);
}

static double mib_of(const struct frontier_point *point)
{
    return (double)point->budget_bytes / MIB;
}

static double x_of(const struct axes *axes, double mib)
{
    return LEFT + (RIGHT - LEFT) * mib / axes->mib;
}

static double y_of(const struct axes *axes, double percent)
{
    return BOTTOM - (BOTTOM - TOP) * percent / axes->percent;
}

static struct axes find_axes(const struct frontier *frontier)
{
    double mib = 1, percent = 1; /* a plan without a choice has one point, at 0 % */
    for (int k = 0; k < frontier->count; k++) {
        mib = mib_of(&frontier->point[k]) > mib ? mib_of(&frontier->point[k]) : mib;
        percent = percent_of(&frontier->point[k]) > percent ? percent_of(&frontier->point[k]) : percent;
    }
    return (struct axes){mib * 1.05, percent * 1.05, mark_step(mib), mark_step(percent)};
}

static void add_marks(struct text *out, const struct axes *axes)
{
    for (int i = 0; i * axes->mib_step <= axes->mib; i++) {
        double mib = i * axes->mib_step, x = x_of(axes, mib);
        text_add(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", x, TOP, x, BOTTOM);
        text_add(out, "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x, BOTTOM + 20,
                 mib);
    }
    for (int i = 0; i * axes->percent_step <= axes->percent; i++) {
        double percent = i * axes->percent_step, y = y_of(axes, percent);
        text_add(out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", LEFT, y, RIGHT, y);
        text_add(out, "<text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">+%g %%</text>\n", LEFT - 8, y + 4,
                 percent);
    }
    text_add(out,
             "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">budget of the whole process, MiB</text>\n",
             (LEFT + RIGHT) / 2, BOTTOM + 42);
}

/* A budget between two points pays for the smaller one. */
static void add_curve(struct text *out, const struct axes *axes, const struct frontier *frontier)
{
    text_add(out, "<path class=\"curve\" d=\"M %d %.1f", RIGHT, y_of(axes, percent_of(&frontier->point[0])));
    for (int k = 0; k < frontier->count; k++) {
        if (k > 0)
            text_add(out, " V %.1f", y_of(axes, percent_of(&frontier->point[k])));
        text_add(out, " H %.1f", x_of(axes, mib_of(&frontier->point[k])));
    }
    text_add(out, "\"/>\n");
}

/* Full ones are of programs that were made, the others are estimates. */
static void add_points(struct text *out, const struct axes *axes, const struct plan *plan)
{
    for (int k = 0; k < plan->frontier.count; k++) {
        const struct frontier_point *point = &plan->frontier.point[k];
        const char *kind = k == plan->point ? "taken" : point->cost ? "point" : "guess";
        text_add(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\">", kind, x_of(axes, mib_of(point)),
                 y_of(axes, percent_of(point)), k == plan->point ? 6 : 4);
        text_add(out, "<title>%s%.1f MiB, %+.1f %%</title></circle>\n", point->cost ? "" : "about ", mib_of(point),
                 percent_of(point));
    }
}

/* Where it is among the points; one beyond them would have a mark outside of the picture. */
static void add_budget(struct text *out, const struct axes *axes, uint64_t limit_bytes)
{
    double x = x_of(axes, (double)limit_bytes / MIB);
    if (x <= RIGHT)
        text_add(out, "<line class=\"budget\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", x, TOP, x, BOTTOM);
}

static void add_plot(struct text *out, const struct plan *plan, const char *title)
{
    struct axes axes = find_axes(&plan->frontier);
    char budget[16];
    text_size(budget, plan->limit_bytes);
    text_add(out, head, WIDTH, HEIGHT, WIDTH, HEIGHT);
    text_add(out, "<text x=\"%d\" y=\"26\" font-size=\"16\">", LEFT);
    add_escaped(out, title);
    text_add(out,
             "</text>\n<text class=\"soft\" x=\"%d\" y=\"46\">time of a step by estimate, against no limit; budget %s%s"
             "</text>\n",
             LEFT, budget,
             plan->fits       ? ""
             : plan->obstacle ? ", which is not there"
                              : ", which is too small");
    add_marks(out, &axes);
    add_curve(out, &axes, &plan->frontier);
    add_budget(out, &axes, plan->limit_bytes);
    add_points(out, &axes, plan);
    text_add(out, "</svg>\n");
}

plim_status plan_view_plot(const char *path, const struct plan *plan, const char *title, plim_error *error)
{
    struct text text;
    struct partial_file file;
    TRY(partial_open(&file, plan->budget, path, error));
    text_init(&text, plan->budget, TAG_PLANNER);
    add_plot(&text, plan, title);
    plim_status status = text.failed ? budget_refused(plan->budget, TAG_PLANNER, text.length, error)
                                     : partial_put(&file, text.data, text.length, error);
    text_release(&text);
    if (status == PLIM_OK)
        return partial_commit(&file, error);
    partial_abandon(&file);
    return status;
}
