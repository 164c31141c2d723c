/* evaluate.c - loss and metrics over the validation data. */
#include <string.h>

#include "train/trainer.h"
#include "transform/in_place.h"

void clear_sums(struct trainer *trainer, int phase, const struct model_tensors *tensors)
{
    for (int m = 0; m < tensors->metric_count; m++)
        if (metric_has_sums(&tensors->metric[m]))
            memset(machine_data(&trainer->machine, phase, tensors->metric[m].tensor), 0,
                   tensor_bytes(tensors->metric[m].tensor));
}

plim_status trainer_check_batch(const struct trainer *trainer, const struct batch *batch, plim_error *error)
{
    int64_t rows = trainer->sample_state ? trainer->sample_state->shape.dim[0] : batch->count;
    if (rows == batch->count)
        return PLIM_OK;
    plim_status status =
        fail(error, PLIM_BAD_DATA, "%s: a stateful layer takes batches of %lld samples, this one has %lld",
             trainer->sample_state->name, (long long)rows, (long long)batch->count);
    return hint(error, status, "batch: {size: %lld, drop_remainder: true}", (long long)rows);
}

plim_status evaluate(struct evaluation *sums, struct trainer *trainer, plim_error *error)
{
    const struct model_tensors *tensors = &trainer->evaluate_tensors;
    const float *loss = machine_data(&trainer->machine, PHASE_EVALUATE, tensors->loss);
    void *metric[MOST_METRICS] = {0};
    double sum[MOST_METRICS] = {0};
    for (int m = 0; m < tensors->metric_count; m++)
        metric[m] = machine_data(&trainer->machine, PHASE_EVALUATE, tensors->metric[m].tensor);
    clear_sums(trainer, PHASE_EVALUATE, tensors);
    struct batch *batch;
    TRY(iterator_seek(trainer->validation_iterator, 0, 0, error));
    for (int64_t i = 0; !trainer->options.validation_steps || i < trainer->options.validation_steps; i++) {
        TRY(iterator_next(&batch, trainer->validation_iterator, error));
        if (!batch)
            break;
        if (trainer_stop_asked(trainer))
            return fail(error, PLIM_INTERRUPTED, "stopped in the middle of validation");
        TRY(trainer_check_batch(trainer, batch, error));
        TRY(machine_run(&trainer->machine, PHASE_EVALUATE, batch, error));
        sums->samples += batch->count;
        sums->loss += (double)*loss * (double)batch->count;
        for (int m = 0; m < tensors->metric_count; m++)
            if (!metric_has_sums(&tensors->metric[m]))
                sum[m] += (double)*(const float *)metric[m] * (double)batch->count;
    }
    for (int m = 0; m < tensors->metric_count; m++) {
        sums->metric[m] = metric_value(&tensors->metric[m], metric[m], sum[m] / (double)sums->samples);
        metric_each(&sums->each[m], &tensors->metric[m], metric[m]);
    }
    return PLIM_OK;
}
