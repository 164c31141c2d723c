/* plan_page.c - a plan as one HTML file: plan_page.html, with the plan as JSON where it says @PLAN@.

   The page draws; this file only says what there is. It is written a piece at a time, because a plan of thousands of
   layers has more to say than there is memory to spare. */
#include <string.h>

#include "base/memory/budget_stop.h"
#include "base/text/json.h"
#include "formats/files/partial_file.h"
#include "plan/search/op_time.h"
#include "report/plan_page.h"
#include "report/plan_timeline.h"
#include "report/plan_view.h"

struct page_file {
    struct partial_file file;
    struct text text;
    struct json_writer json;
    const struct plan *plan;
};

/* What was said so far goes to the file. '<' stands only in strings, and would end the script that the JSON is in. */
static plim_status flush(struct page_file *page, plim_error *error)
{
    const char *at = page->text.data;
    if (page->text.failed)
        return budget_refused(page->text.budget, TAG_PLANNER, page->text.length, error);
    for (const char *next; at && (next = strchr(at, '<')); at = next + 1) {
        TRY(partial_put(&page->file, at, (uint64_t)(next - at), error));
        TRY(partial_put(&page->file, "\\u003c", 6, error));
    }
    if (at)
        TRY(partial_put(&page->file, at, strlen(at), error));
    text_clear(&page->text);
    return budget_go_on(page->text.budget, error);
}

/* ---- the figures ---- */

static void add_tags(struct json_writer *json, const struct plan *plan)
{
    uint64_t arena[TAG_COUNT];
    const char *peak_at;
    program_tensor_arena_tags(arena, &peak_at, plan->program);
    json_array(json, "tags");
    for (int tag = 0; tag < TAG_COUNT; tag++)
        json_string(json, NULL, tag_name(tag));
    json_end_array(json);
    json_array(json, "outside"); /* bytes beside the tensor arena */
    for (int tag = 0; tag < TAG_COUNT; tag++)
        json_uint(json, NULL, plan->prediction.by_tag[tag] - arena[tag]);
    json_end_array(json);
}

static void add_frontier(struct json_writer *json, const struct plan *plan)
{
    json_int(json, "point", plan->point);
    json_array(json, "frontier");
    for (int k = 0; k < plan->frontier.count; k++) {
        json_array(json, NULL);
        json_uint(json, NULL, plan->frontier.point[k].budget_bytes);
        json_double(json, NULL, plan->frontier.point[k].relative_time);
        json_bool(json, NULL, plan->frontier.point[k].cost == 0); /* an estimate */
        json_end_array(json);
    }
    json_end_array(json);
}

static void add_figures(struct json_writer *json, const struct plan *plan, const char *title)
{
    json_string(json, "title", title);
    json_int(json, "batch", plan->workload.batch);
    json_int(json, "threads", plan->figures.threads);
    json_bool(json, "fits", plan->fits);
    json_string(json, "obstacle", plan->obstacle);
    json_bool(json, "smallest_is_estimate", plan->backend->missing_bytes > 0);
    json_string(json, "run_peak_at", plan->prediction.peak_at);
    json_uint(json, "budget", plan->limit_bytes);
    json_uint(json, "predicted", plan->prediction.peak);
    json_uint(json, "smallest", plan->smallest_bytes);
    json_uint(json, "arena", plan->program->tensor_arena_bytes);
    json_int(json, "peak_at", plan->program->phase[PHASE_TRAIN].peak);
    add_tags(json, plan);
    add_frontier(json, plan);
}

/* ---- the step ---- */

static double instruction_seconds(const struct phase *phase, const struct instruction *instruction)
{
    double seconds = 0;
    if (instruction->kind != INSTRUCTION_COMPUTE)
        return instruction->kind == INSTRUCTION_WAIT
                   ? 0
                   : transfer_seconds(NULL, phase->transfer[instruction->transfer].bytes);
    for (int i = 0; i < instruction->task_count; i++)
        seconds += node_seconds(NULL, instruction->task[i].node);
    return seconds * (instruction->end_unit - instruction->first_unit) / instruction->chain.units;
}

/* [name, kind, seconds, blocks it reads, blocks it writes] */
static void add_instruction(struct json_writer *json, const struct timeline *timeline)
{
    static const char *const kinds[] = {[INSTRUCTION_COMPUTE] = "compute",
                                        [INSTRUCTION_OUT] = "out",
                                        [INSTRUCTION_IN] = "in",
                                        [INSTRUCTION_WAIT] = "wait"};
    const struct instruction *instruction = &timeline->phase->instruction[timeline->at];
    json_array(json, NULL);
    json_string(json, NULL, instruction->name);
    json_string(json, NULL, kinds[instruction->kind]);
    json_double(json, NULL, instruction_seconds(timeline->phase, instruction));
    for (int writes = 0; writes < 2; writes++) {
        json_array(json, NULL);
        for (int a = 0; a < timeline->access_count; a++)
            if (timeline->access[a].writes == writes)
                json_int(json, NULL, timeline->access[a].block);
        json_end_array(json);
    }
    json_end_array(json);
}

/* [name, tag, offset, bytes, first, last] */
static void add_block(struct json_writer *json, const struct instance *block)
{
    json_array(json, NULL);
    json_string(json, NULL, block->name);
    json_int(json, NULL, block->tag);
    json_uint(json, NULL, block->offset);
    json_uint(json, NULL, block->bytes);
    json_int(json, NULL, block->first);
    json_int(json, NULL, block->last);
    json_end_array(json);
}

static plim_status add_step(struct page_file *page, struct timeline *timeline, plim_error *error)
{
    struct json_writer *json = &page->json;
    json_array(json, "blocks");
    for (int b = 0; b < timeline->block_count; b++) {
        add_block(json, &timeline->block[b]);
        TRY(flush(page, error));
    }
    json_end_array(json);
    json_array(json, "instructions");
    while (timeline_next(timeline)) {
        add_instruction(json, timeline);
        TRY(flush(page, error));
    }
    json_end_array(json);
    return PLIM_OK;
}

/* ---- the whole ---- */

static plim_status write_page(struct page_file *page, struct timeline *timeline, const char *title, plim_error *error)
{
    const char *place = strstr(plan_page_html, "@PLAN@"), *rest = place + strlen("@PLAN@");
    TRY(partial_put(&page->file, plan_page_html, (uint64_t)(place - plan_page_html), error));
    json_init(&page->json, &page->text);
    json_object(&page->json, NULL);
    add_figures(&page->json, page->plan, title);
    TRY(flush(page, error));
    TRY(add_step(page, timeline, error));
    json_end_object(&page->json);
    TRY(flush(page, error));
    return partial_put(&page->file, rest, strlen(rest), error);
}

static plim_status fill_page(struct page_file *page, const char *title, plim_error *error)
{
    struct arena work;
    struct timeline timeline;
    arena_init(&work, page->plan->budget, TAG_PLANNER);
    text_init(&page->text, page->plan->budget, TAG_PLANNER);
    plim_status status = timeline_begin(&timeline, page->plan->program, &work, error);
    if (status == PLIM_OK)
        status = write_page(page, &timeline, title, error);
    text_release(&page->text);
    arena_release(&work);
    return status;
}

plim_status plan_view_page(const char *path, const struct plan *plan, const char *title, plim_error *error)
{
    struct page_file page = {.plan = plan};
    TRY(partial_open(&page.file, plan->budget, path, error));
    plim_status status = fill_page(&page, title, error);
    if (status == PLIM_OK)
        return partial_commit(&page.file, error);
    partial_abandon(&page.file);
    return status;
}
