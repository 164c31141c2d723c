/* job_texts.c - texts that were given out live as long as the job says, whatever is planned after them. */
#include "job/job.h"

struct old_texts {
    struct text text, json;
    struct old_texts *next;
};

plim_status job_keep_texts(struct plim_job *job, plim_error *error)
{
    if (!job->plan_text.length) {
        text_clear(&job->plan_text);
        text_clear(&job->plan_json);
        return PLIM_OK;
    }
    struct old_texts *old = arena_take(&job->arena, sizeof *old);
    if (!old)
        return arena_refused(&job->arena, error);
    *old = (struct old_texts){job->plan_text, job->plan_json, job->old_texts};
    job->old_texts = old;
    text_init(&job->plan_text, job->budget, TAG_PLANNER);
    text_init(&job->plan_json, job->budget, TAG_PLANNER);
    return PLIM_OK;
}

void job_release_texts(struct plim_job *job)
{
    text_release(&job->plan_text);
    text_release(&job->plan_json);
    text_release(&job->summary_text);
    text_release(&job->summary_json);
    text_release(&job->data_text);
    text_release(&job->data_json);
    for (const struct old_texts *old = job->old_texts; old; old = old->next) {
        struct text text = old->text, json = old->json;
        text_release(&text);
        text_release(&json);
    }
}
