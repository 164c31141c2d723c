/* evaluate.c - loss and metric over the validation data. */
#include "train/trainer.h"

plim_status evaluate(struct evaluation *sums, struct trainer *trainer, plim_error *error)
{
    const struct model_tensors *tensors = &trainer->evaluate_tensors;
    const float *loss = machine_data(&trainer->machine, PHASE_EVALUATE, tensors->loss);
    const float *metric[MOST_METRICS] = {0};
    for (int m = 0; m < tensors->metric_count; m++)
        metric[m] = machine_data(&trainer->machine, PHASE_EVALUATE, tensors->metric[m].tensor);
    struct batch *batch;
    TRY(iterator_seek(trainer->validation_iterator, 0, 0, error));
    for (int64_t i = 0; !trainer->options.validation_steps || i < trainer->options.validation_steps; i++) {
        TRY(iterator_next(&batch, trainer->validation_iterator, error));
        if (!batch || trainer_stop_asked(trainer))
            break;
        machine_run(&trainer->machine, PHASE_EVALUATE, batch);
        TRY(backend_check(trainer->machine.program->backend, error));
        sums->samples += batch->count;
        sums->loss += (double)*loss * (double)batch->count;
        for (int m = 0; m < tensors->metric_count; m++)
            sums->metric[m] += (double)*metric[m] * (double)batch->count;
    }
    return PLIM_OK;
}
