/* job_texts.c - the texts that a job hands out. Those of plans and of the summary live as long as the job, whatever is
   planned after them. */
#include "job/job.h"

struct old_texts {
    struct job_text text;
    struct old_texts *next;
};

static void init(struct job_text *text, struct budget *budget)
{
    text_init(&text->text, budget, TAG_PLANNER);
    text_init(&text->json, budget, TAG_PLANNER);
}

static void release(struct job_text *text)
{
    text_release(&text->text);
    text_release(&text->json);
}

void job_init_texts(struct plim_job *job)
{
    init(&job->plan_text, job->budget);
    init(&job->summary_text, job->budget);
    init(&job->data_text, job->budget);
}

void job_release_texts(struct plim_job *job)
{
    release(&job->plan_text);
    release(&job->summary_text);
    release(&job->data_text);
    for (struct old_texts *old = job->old_texts; old; old = old->next)
        release(&old->text);
}

void job_text_clear(struct job_text *text)
{
    text_clear(&text->text);
    text_clear(&text->json);
}

plim_status job_text_done(const struct job_text *text, plim_error *error)
{
    bool failed = text->text.failed || text->json.failed;
    return failed ? budget_refused(text->text.budget, TAG_PLANNER, 4096, error) : PLIM_OK;
}

plim_status job_keep_texts(struct plim_job *job, plim_error *error)
{
    if (!job->plan_text.text.length) {
        job_text_clear(&job->plan_text);
        return PLIM_OK;
    }
    struct old_texts *old = arena_take(&job->arena, sizeof *old);
    if (!old)
        return arena_refused(&job->arena, error);
    *old = (struct old_texts){job->plan_text, job->old_texts};
    job->old_texts = old;
    init(&job->plan_text, job->budget);
    return PLIM_OK;
}
