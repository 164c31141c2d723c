/* job_call.c - one public call on a job: nobody else works on it meanwhile, and the host's floating-point environment
   comes back. */
#include "job/job.h"

plim_status job_begin(struct job_call *call, struct plim_job *job, const char *verb, plim_error *error)
{
    if (!job)
        return fail(error, PLIM_USAGE, "%s: no job given: it is NULL", verb);
    if (!busy_enter(&job->busy)) {
        fail_at(error, PLIM_USAGE, job->path, "is at work already: %s would change what another call reads", verb);
        return hint(error, PLIM_USAGE, "wait until that call returns; only plim_job_stop may come before");
    }
    if (stop_asked(&job->stop)) {
        if (!busy_leave(&job->busy))
            job_free(job);
        return fail(error, PLIM_INTERRUPTED, "%s: the job was asked to stop before", verb);
    }
    floats_begin(&call->host);
    call->job = job;
    job->verb = verb;
    return PLIM_OK;
}

plim_status job_end(struct job_call *call, plim_status status)
{
    floats_end(&call->host);
    if (!busy_leave(&call->job->busy))
        job_free(call->job);
    return status;
}

void job_tell(void *context, const plim_event *event)
{
    struct job_listener *self = context;
    floats_end(self->host);
    self->listener(self->context, event);
    floats_begin(self->host);
}

bool job_meter(void *context, uint64_t done, uint64_t total)
{
    struct job_meter *self = context;
    floats_end(self->host);
    bool go_on = self->meter(self->context, done, total);
    floats_begin(self->host);
    return go_on;
}
