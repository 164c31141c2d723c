/* trainer.c - epochs, metrics and checkpoints over a machine that runs steps.

   The position says which batch comes next and holds the running sums of the
   epoch, so a run that is stopped anywhere goes on with the same bits.

   Inside a step nothing is allocated. What validation and saving take for a
   while is counted apart, and so is their time: samples_per_s is of training
   steps alone, the first one left out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files/transfer_file.h"
#include "base/memory/budget_stop.h"
#include "base/memory/limits.h"
#include "base/threads/clock.h"
#include "ops/sample_state.h"
#include "pipeline/maps/images/value_scale.h"
#include "train/calibration.h"

#define WARM_UP_STEPS   2
#define HEAP_WATCH_STEP 100

/* One call of trainer_run. */
struct run {
    struct trainer *trainer;
    plim_listener *listener;
    void *context;
    plim_progress progress;
    const float *loss;          /* of the training step, in the tensor arena */
    void *metric[MOST_METRICS]; /* a mean of the step, or sums of the epoch */

    uint64_t begin_ns, epoch_ns;
    uint64_t epoch_first_ns; /* end of the epoch's first step here; 0: not yet */
    int64_t epoch_steps;     /* of this epoch, in this run */
    int64_t steps, samples;  /* of this run */

    uint64_t mark_ns;  /* time in steps is counted from here; 0: not yet */
    uint64_t steps_ns; /* without the first step, validation and saving */
    int64_t counted_samples;
    uint64_t first_wait_ns; /* what the first step waited for data */
    uint64_t warm_takes, paused_takes, outside_takes;
    uint64_t heap_bytes;            /* held by malloc at step HEAP_WATCH_STEP */
    bool checkpointed;              /* there is a checkpoint of this run */
    int64_t kept_epoch, kept_steps; /* where the newest checkpoint stands */
    bool nan_told;
    const int64_t *skipped;                /* steps that loss scaling left out, in the tensor arena; NULL without it */
    int64_t skipped_before, skipped_first; /* as the last step, and as this run found it */
    char skipped_note[160];
    char checkpoint[4096];
};

/* ---- first values ---- */

plim_status trainer_initialize(struct trainer *trainer, plim_error *error)
{
    struct machine *machine = &trainer->machine;
    const struct program *program = machine->program;
    int guess = 0;
    for (int i = 0; i < program->persistent_count; i++) {
        const struct tensor *tensor = program->persistent[i];
        if (tensor->kind != KIND_WEIGHT) {
            TRY(state_initialize(machine, i, error));
            continue;
        }
        const struct weight *weight = weight_named(trainer->build, tensor->name, &guess);
        if (!weight)
            return fail(error, PLIM_INTERNAL, "the plan has a weight '%s', the model has none", tensor->name);
        initializer_fill(state_piece(machine, i, 0).data, tensor->type, shape_count(&tensor->shape),
                         &weight->initializer, trainer->options.seed, tensor->name);
        TRY(state_store(machine, i, 0, error));
        /* NEEDSWORK: one tensor is filled without a look at the stop flag: 0.5 s at some 60 million elements, and
           more for an orthogonal matrix of thousands of columns. */
        TRY(budget_go_on(trainer->budget, error));
    }
    return PLIM_OK;
}

/* ---- figures ---- */

static double seconds_since(uint64_t begin_ns, uint64_t now_ns)
{
    return (double)(now_ns - begin_ns) * 1e-9;
}

static void send(struct run *run, plim_event_kind kind, const plim_end *end)
{
    if (run->listener)
        run->listener(run->context, &(plim_event){.kind = kind, .progress = end ? NULL : &run->progress, .end = end});
}

/* Figures of the epoch so far. */
static void send_progress(struct run *run, plim_event_kind kind, uint64_t now_ns)
{
    const struct position *position = &run->trainer->position;
    plim_progress *progress = &run->progress;
    double samples = (double)position->epoch_samples;
    progress->epoch = position->epoch + 1;
    progress->step = position->step;
    progress->total_steps = position->total_steps;
    progress->samples = position->epoch_samples;
    progress->seconds = seconds_since(run->epoch_ns, now_ns);
    progress->seconds_per_step = run->epoch_steps > 1
                                     ? seconds_since(run->epoch_first_ns, now_ns) / (double)(run->epoch_steps - 1)
                                     : progress->seconds;
    progress->loss = position->epoch_samples ? position->loss_sum / samples : NAN;
    for (int m = 0; m < progress->metric_count; m++) {
        const struct metric_tensor *metric = &run->trainer->train_tensors.metric[m];
        double value = metric_value(metric, run->metric[m], position->metric_sum[m] / samples);
        progress->metric_value[m] = position->epoch_samples ? value : NAN;
        progress->metric_each_count[m] = metric_each(&progress->metric_each[m], metric, run->metric[m]);
    }
    send(run, kind, NULL);
}

static uint64_t allocation_count(const struct run *run)
{
    return budget_usage(run->trainer->budget).takes;
}

/* What happens between pause and go_on is not part of a step. */
static void pause_steps(struct run *run)
{
    if (run->mark_ns)
        run->steps_ns += clock_ns() - run->mark_ns;
    run->paused_takes = allocation_count(run);
}

static void go_on(struct run *run)
{
    if (run->mark_ns)
        run->mark_ns = clock_ns();
    run->outside_takes += allocation_count(run) - run->paused_takes;
}

static uint64_t data_wait_ns(const struct run *run)
{
    struct iterator_figures figures = {0};
    if (run->trainer->train_iterator)
        iterator_figures(&figures, run->trainer->train_iterator);
    return figures.wait_ns;
}

/* ---- one step ---- */

/* Figures that start when the first steps are done. */
static void count_step(struct run *run, int64_t samples, uint64_t now_ns)
{
    run->steps++;
    run->samples += samples;
    run->epoch_steps++;
    if (run->epoch_steps == 1)
        run->epoch_first_ns = now_ns;
    if (run->steps == 1) {
        run->mark_ns = now_ns;
        run->first_wait_ns = data_wait_ns(run);
    } else {
        run->counted_samples += samples;
    }
    if (run->steps == WARM_UP_STEPS) {
        run->warm_takes = allocation_count(run);
        run->outside_takes = 0;
    }
    if (run->steps == HEAP_WATCH_STEP)
        run->heap_bytes = budget_heap_bytes();
}

/* Training goes on, as Keras does: but nothing comes of it any more. */
static void tell_nan(struct run *run)
{
    if (run->nan_told || !isnan(run->progress.step_loss))
        return;
    run->nan_told = true;
    run->progress.note = trainer_tell(
        run->trainer, "the loss is nan from step %lld on: lower the learning rate, or look for nan in the data",
        (long long)run->trainer->position.total_steps);
}

/* Loss scaling left this step out: said of the first, the second, the fourth ... */
static void tell_skipped(struct run *run)
{
    int64_t skipped = run->skipped ? *run->skipped : 0;
    bool more = skipped > run->skipped_before;
    run->skipped_before = run->progress.skipped_steps = skipped;
    if (!more || run->progress.note || (skipped & (skipped - 1)))
        return;
    snprintf(run->skipped_note, sizeof run->skipped_note,
             "step %lld changed no weight: a gradient is not finite, and the loss scale is halved; %lld so far",
             (long long)run->trainer->position.total_steps, (long long)skipped);
    run->progress.note = run->skipped_note;
}

/* Where the state lies that counts them. */
static const int64_t *find_skipped(const struct machine *machine)
{
    const struct program *program = machine->program;
    for (int i = 0; i < program->persistent_count; i++)
        if (strcmp(program->persistent[i]->name, "optimizer/skipped_steps") == 0)
            return machine_data(machine, PHASE_TRAIN, program->persistent[i]);
    return NULL;
}

static plim_status step(struct run *run, const struct batch *batch, plim_error *error)
{
    struct trainer *trainer = run->trainer;
    struct position *position = &trainer->position;
    TRY(trainer_check_batch(trainer, batch, error));
    TRY(machine_run(&trainer->machine, PHASE_TRAIN, batch, error));
    position->step++;
    position->total_steps++;
    position->epoch_samples += batch->count;
    position->loss_sum += (double)*run->loss * (double)batch->count;
    for (int m = 0; m < run->progress.metric_count; m++)
        if (!metric_has_sums(&trainer->train_tensors.metric[m]))
            position->metric_sum[m] += (double)*(const float *)run->metric[m] * (double)batch->count;
    run->progress.step_loss = (double)*run->loss;
    tell_nan(run);
    tell_skipped(run);
    uint64_t now_ns = clock_ns();
    count_step(run, batch->count, now_ns);
    send_progress(run, PLIM_EVENT_STEP, now_ns);
    run->progress.note = NULL; /* said once */
    return PLIM_OK;
}

/* ---- checkpoints ---- */

static void note_kept(struct run *run)
{
    run->kept_epoch = run->trainer->position.epoch;
    run->kept_steps = run->trainer->position.total_steps;
}

static bool is_kept(const struct run *run)
{
    const struct position *position = &run->trainer->position;
    return run->checkpointed && run->kept_epoch == position->epoch && run->kept_steps == position->total_steps;
}

static plim_status save(struct run *run, plim_error *error)
{
    struct trainer *trainer = run->trainer;
    pause_steps(run);
    plim_status status = checkpoint_save(&trainer->checkpoints, &trainer->machine, &trainer->position, error);
    go_on(run);
    if (status == PLIM_OK)
        note_kept(run);
    return status;
}

bool trainer_stop_asked(const struct trainer *trainer)
{
    return trainer->stop && stop_asked(trainer->stop);
}

/* With a checkpoint of where it stands, if there is none yet. */
static plim_status stop(struct run *run, plim_error *error)
{
    struct trainer *trainer = run->trainer;
    bool saves = trainer_saves(trainer);
    if (saves && !is_kept(run))
        TRY(save(run, error));
    fail(error, PLIM_INTERRUPTED, "stopped after step %lld of epoch %lld%s", (long long)trainer->position.step,
         (long long)trainer->position.epoch + 1, saves ? "" : ": no checkpoint was written, they are turned off");
    return PLIM_INTERRUPTED;
}

/* ---- validation ---- */

/* States of layers go on through validation: a stop in the middle of it leaves a state that no run that was not
   stopped comes to. The checkpoint of before it is what a resume goes on from, so it is written first. */
static plim_status validate(struct run *run, plim_error *error)
{
    struct evaluation sums = {0};
    if (!run->trainer->validation_iterator)
        return PLIM_OK;
    if (run->trainer->sample_state && trainer_saves(run->trainer) && !is_kept(run))
        TRY(save(run, error));
    pause_steps(run);
    plim_status status = evaluate(&sums, run->trainer, error);
    go_on(run);
    run->progress.validated = status == PLIM_OK && sums.samples;
    run->progress.val_loss = sums.loss / (double)sums.samples;
    for (int m = 0; m < run->progress.metric_count; m++) {
        run->progress.val_metric_value[m] = sums.metric[m];
        run->progress.val_metric_each[m] = sums.each[m];
    }
    return status;
}

/* ---- epochs ---- */

static plim_status no_batches(const struct trainer *trainer, plim_error *error)
{
    char elements[48];
    elements_text(elements, dataset_cardinality(trainer->train));
    return fail(error, PLIM_BAD_DATA, "the training data has no batch: %s, batches of %lld", elements,
                (long long)dataset_batch_size(trainer->train));
}

/* The rest of this epoch's data is passed over. */
static plim_status next_epoch(struct trainer *trainer, plim_error *error)
{
    int64_t next = trainer->position.epoch + 1;
    return next < trainer->options.epochs ? iterator_seek(trainer->train_iterator, next, 0, error) : PLIM_OK;
}

/* Whoever stops us may have stopped the program that we read from, too (a whole process group or cgroup): an error that
   follows a stop must not keep the checkpoint from being written. */
static bool failed_of_stop(const struct trainer *trainer, plim_status status)
{
    return status == PLIM_INTERRUPTED || (status != PLIM_OK && trainer_stop_asked(trainer));
}

/* Steps until the epoch's data, or its number of steps, ends. */
static plim_status run_steps(struct run *run, plim_error *error)
{
    struct trainer *trainer = run->trainer;
    const struct trainer_options *options = &trainer->options;
    struct position *position = &trainer->position;
    struct batch *batch;
    for (;;) {
        if (options->steps_per_epoch && position->step >= options->steps_per_epoch)
            return next_epoch(trainer, error);
        plim_status status = iterator_next(&batch, trainer->train_iterator, error);
        if (failed_of_stop(trainer, status)) /* while it waited for data */
            return stop(run, error);
        if (status != PLIM_OK)
            return status;
        if (!batch)
            return position->step ? PLIM_OK : no_batches(trainer, error);
        TRY(step(run, batch, error));
        if (trainer_stop_asked(trainer))
            return stop(run, error);
        int64_t every = options->checkpoint_every;
        if (trainer_saves(trainer) && every && position->total_steps % every == 0)
            TRY(save(run, error));
    }
}

static void begin_epoch(struct run *run)
{
    run->epoch_ns = clock_ns();
    run->epoch_first_ns = 0;
    run->epoch_steps = 0;
    run->progress.validated = false;
    send_progress(run, PLIM_EVENT_BEGIN, run->epoch_ns);
    run->progress.note = NULL; /* said once */
}

static plim_status run_epoch(struct run *run, plim_error *error)
{
    struct trainer *trainer = run->trainer;
    struct position *position = &trainer->position;
    begin_epoch(run);
    TRY(run_steps(run, error));
    plim_status status = validate(run, error);
    if (failed_of_stop(trainer, status)) /* in the middle of validation: done again after a resume */
        return stop(run, error);
    if (status != PLIM_OK)
        return status;
    send_progress(run, PLIM_EVENT_EPOCH, clock_ns());
    position->epoch++;
    position->step = position->epoch_samples = 0;
    position->loss_sum = 0.0;
    memset(position->metric_sum, 0, sizeof position->metric_sum);
    clear_sums(trainer, PHASE_TRAIN, &trainer->train_tensors);
    return trainer_saves(trainer) ? save(run, error) : PLIM_OK;
}

/* ---- the whole ---- */

static plim_status open_iterators(struct trainer *trainer, plim_error *error)
{
    const struct trainer_options *options = &trainer->options;
    const struct position *position = &trainer->position;
    const struct data_run run = {.budget = trainer->budget, .scratch = trainer->scratch, .seed = options->seed};
    const struct batch_place start = {.epoch = position->epoch, .step = position->step};
    TRY(iterator_open(&trainer->train_iterator, trainer->train, &run, options->train_grant, &start, error));
    if (!trainer->validation)
        return PLIM_OK;
    return iterator_open(&trainer->validation_iterator, trainer->validation, &run, options->validation_grant, NULL,
                         error);
}

static void close_iterators(struct trainer *trainer)
{
    if (trainer->validation_iterator)
        iterator_close(trainer->validation_iterator);
    if (trainer->train_iterator)
        iterator_close(trainer->train_iterator);
    trainer->validation_iterator = trainer->train_iterator = NULL;
}

/* Keras warns of it too. */
static void tell_short(struct trainer *trainer, const char *word, int64_t wanted, const struct dataset *dataset)
{
    int64_t last, steps = dataset ? dataset_steps(dataset, &last) : -1;
    if (steps >= 0 && wanted > steps)
        trainer_tell(trainer, "train.%s is %lld, the data has %lld batches: each epoch ends with them", word,
                     (long long)wanted, (long long)steps);
}

static struct value_map values_of_column(const void *dataset, int column)
{
    return dataset_value_map(dataset, column);
}

/* Bytes that were rescaled to 0 to 1 and brightened by parts of 255 are black or white: nothing is left to learn. */
static void tell_range(struct trainer *trainer)
{
    struct value_map map;
    double range[2];
    const struct node *node = NULL;
    const char *column = dataset_outgrown_range(&map, range, trainer->train);
    if (!column)
        node = graph_outgrown_range(&map, range, trainer->machine.program->phase[PHASE_TRAIN].graph, values_of_column,
                                    trainer->train);
    if (column || node)
        trainer_tell(trainer,
                     "%s '%s': value_range is [%g, %g], but after rescaling values are about [%g, %g]; say "
                     "value_range: [%g, %g]",
                     column ? "random_brightness of column" : "RandomBrightness", column ? column : node->name,
                     range[0], range[1], map.offset, 255 * map.scale + map.offset, map.offset,
                     255 * map.scale + map.offset);
}

static plim_status prepare(struct run *run, plim_error *error)
{
    struct trainer *trainer = run->trainer;
    struct backend *backend = trainer->machine.program->backend;
    int64_t last, steps = dataset_steps(trainer->train, &last);
    if (steps == CARDINALITY_INFINITE && !trainer->options.steps_per_epoch)
        return hint(error, fail(error, PLIM_BAD_JOB, "the training data never ends"), "set train.steps_per_epoch");
    trainer->note[0] = '\0';
    trainer->sample_state = graph_find_sample_state(trainer->machine.program->phase[PHASE_TRAIN].graph);
    trainer->position = (struct position){
        .seed = trainer->options.seed,
        .batch = dataset_batch_size(trainer->train),
        .dataset_count = dataset_cardinality(trainer->train),
        .data = trainer->options.data,
        .validation = trainer->options.validation_data,
    };
    snprintf(trainer->position.instructions, sizeof trainer->position.instructions, "%s",
             backend->type->features(backend));
    snprintf(trainer->position.job, sizeof trainer->position.job, "%s", trainer->options.job_digest);
    TRY(trainer_begin(&run->checkpointed, trainer, error));
    trainer->machine.times = run->checkpointed;
    note_kept(run);
    tell_short(trainer, "steps_per_epoch", trainer->options.steps_per_epoch, trainer->train);
    tell_short(trainer, "validation_steps", trainer->options.validation_steps, trainer->validation);
    tell_range(trainer);
    run->progress.note = trainer->note[0] ? trainer->note : NULL;
    int64_t most = trainer->options.steps_per_epoch;
    run->progress.epochs = trainer->options.epochs;
    run->progress.steps = most && (steps < 0 || most < steps) ? most : steps < 0 ? -1 : steps;
    const struct model_tensors *tensors = &trainer->train_tensors;
    run->progress.metric_count = tensors->metric_count;
    for (int m = 0; m < tensors->metric_count; m++) {
        run->progress.metric[m] = tensors->metric[m].name;
        run->metric[m] = machine_data(&trainer->machine, PHASE_TRAIN, tensors->metric[m].tensor);
    }
    run->progress.budget_bytes = trainer->budget_bytes;
    run->loss = machine_data(&trainer->machine, PHASE_TRAIN, trainer->train_tensors.loss);
    run->skipped = find_skipped(&trainer->machine);
    run->skipped_before = run->skipped_first = run->progress.skipped_steps = run->skipped ? *run->skipped : 0;
    return PLIM_OK;
}

static plim_status train(struct run *run, plim_error *error)
{
    struct trainer *trainer = run->trainer;
    if (trainer->position.epoch >= trainer->options.epochs)
        return PLIM_OK;
    plim_status status = open_iterators(trainer, error);
    if (status == PLIM_INTERRUPTED)
        return stop(run, error);
    if (status != PLIM_OK)
        return status;
    while (trainer->position.epoch < trainer->options.epochs)
        TRY(run_epoch(run, error));
    return PLIM_OK;
}

/* The weight that `name`, the state of its average, belongs to; -1: it is no average. *guess: where to look first. */
static int averaged_weight(const struct program *program, const char *name, int *guess)
{
    size_t length = strlen(name), first = strlen("optimizer/"), last = strlen("/average");
    if (length <= first + last || strcmp(name + length - last, "/average") != 0)
        return -1;
    for (int tried = 0; tried < program->persistent_count; tried++, *guess = (*guess + 1) % program->persistent_count) {
        const struct tensor *weight = program->persistent[*guess];
        if (weight->kind == KIND_WEIGHT && strlen(weight->name) == length - first - last &&
            strncmp(weight->name, name + first, length - first - last) == 0)
            return *guess;
    }
    return -1;
}

/* NEEDSWORK: averages and their weights are never paged: both would have to be in the window. */
static void finish_averages(struct trainer *trainer)
{
    const struct program *program = trainer->machine.program;
    int guess = 0;
    for (int i = 0; i < program->persistent_count; i++) {
        int weight = averaged_weight(program, program->persistent[i]->name, &guess);
        struct state_bytes average = state_piece(&trainer->machine, i, 0);
        if (weight >= 0) /* they take the weights' places in the end, as in Keras's fit */
            memcpy(state_piece(&trainer->machine, weight, 0).data, average.data, average.bytes);
    }
}

/* While the iterators are still open: their figures and bytes belong to it. */
static void end_figures(plim_end *end, struct run *run)
{
    struct trainer *trainer = run->trainer;
    struct process_usage usage = {0};
    uint64_t outside = run->steps >= WARM_UP_STEPS ? run->warm_takes + run->outside_takes : allocation_count(run);
    int64_t warm_steps = run->steps - WARM_UP_STEPS;
    if (run->mark_ns)
        run->steps_ns += clock_ns() - run->mark_ns;
    double seconds = (double)run->steps_ns * 1e-9;
    end->steps = run->steps;
    end->samples = run->samples;
    end->seconds = seconds_since(run->begin_ns, clock_ns());
    end->samples_per_s = seconds > 0.0 && run->counted_samples ? (double)run->counted_samples / seconds : 0.0;
    end->predicted_peak_bytes = trainer->predicted_peak;
    end->allocations_per_step = warm_steps > 0 ? (double)(allocation_count(run) - outside) / (double)warm_steps : 0.0;
    end->malloc_growth_bytes = run->heap_bytes ? (int64_t)(budget_heap_bytes() - run->heap_bytes) : 0;
    if (run->steps_ns)
        end->data_wait_share = fmin((double)(data_wait_ns(run) - run->first_wait_ns) / (double)run->steps_ns, 1.0);
    if (process_usage_now(&usage))
        end->peak_rss_bytes = usage.peak_rss;
}

static const char *status_word(plim_status status)
{
    return status == PLIM_OK ? "done" : status == PLIM_INTERRUPTED ? "stopped" : "failed";
}

/* Notes of steps tell of the first, the second, the fourth: the end tells of all. */
static void tell_all_skipped(const struct run *run)
{
    int64_t skipped = run->skipped_before - run->skipped_first;
    if (skipped)
        trainer_tell(run->trainer, "%lld of %lld steps changed no weight: a gradient was not finite",
                     (long long)skipped, (long long)run->steps);
}

/* The plan counts on transfers that take nothing from those that compute. */
static void tell_slow_disk(const struct run *run)
{
    const struct transfer_file *scratch = run->trainer->machine.scratch;
    if (scratch && !transfer_file_is_direct(scratch))
        trainer_tell(run->trainer,
                     "values that lay on the disk went through the page cache, which is slower than planned: "
                     "%s takes no direct transfers; --scratch names another folder",
                     run->trainer->scratch->folder);
}

static plim_status digest_all(char weights[65], char optimizer[65], struct trainer *trainer, plim_error *error)
{
    TRY(digest_weights(weights, &trainer->machine, KIND_WEIGHT, error));
    return digest_weights(optimizer, &trainer->machine, KIND_STATE, error);
}

/* Returns the status of the run, which fails if what is to be digested cannot be read. */
static plim_status finish(struct run *run, plim_status status, plim_end *end, plim_error *error)
{
    struct trainer *trainer = run->trainer;
    char weights[65], optimizer[65];
    bool ended = status == PLIM_OK || status == PLIM_INTERRUPTED;
    plim_error unread = {0};
    plim_status digested =
        trainer->options.digest && ended ? digest_all(weights, optimizer, trainer, &unread) : PLIM_OK;
    if (digested != PLIM_OK) {
        status = digested;
        if (error)
            *error = unread;
    } else if (trainer->options.digest && ended) {
        end->weights_digest = weights;
        end->optimizer_digest = optimizer;
    }
    end->status = status_word(status);
    end->skipped_steps = run->skipped_before;
    tell_all_skipped(run);
    tell_slow_disk(run);
    end->note = trainer->note[0] ? trainer->note : NULL;
    if (run->checkpointed) {
        snprintf(run->checkpoint, sizeof run->checkpoint, "%s/%s", trainer->options.checkpoint_folder, CHECKPOINT_NAME);
        end->checkpoint = run->checkpoint;
    }
    send(run, PLIM_EVENT_END, end);
    return status;
}

/* For the next plan of the job. All that matters is on the disk already. */
static void keep_times(struct trainer *trainer)
{
    plim_error error = {0};
    if (calibration_write(&trainer->machine, trainer->options.checkpoint_folder, &error) != PLIM_OK)
        trainer_tell(trainer, "what the steps took was not kept: %s: %s", error.where, error.message);
}

/* Data that cannot be opened, or a first batch that cannot be read: there is nothing to go on from. */
static void discard(struct run *run)
{
    run->checkpointed = run->checkpointed && !run->trainer->checkpoints.made;
    checkpoint_folder_discard(&run->trainer->checkpoints);
}

plim_status trainer_run(struct trainer *trainer, plim_listener *listener, void *context, plim_error *error)
{
    struct run run = {.trainer = trainer, .listener = listener, .context = context, .begin_ns = clock_ns()};
    plim_end end = {0};
    TRY(prepare(&run, error));
    plim_status status = train(&run, error);
    end_figures(&end, &run);
    close_iterators(trainer);
    if (status == PLIM_OK)
        finish_averages(trainer);
    if (status == PLIM_OK && trainer->options.save_weights)
        status = weights_save(trainer->options.save_weights, &trainer->machine, error);
    if (run.checkpointed && (status == PLIM_OK || status == PLIM_INTERRUPTED))
        keep_times(trainer);
    bool started = run.steps > 0 || status == PLIM_OK || status == PLIM_INTERRUPTED;
    if (started)
        checkpoint_folder_close(&trainer->checkpoints);
    else
        discard(&run);
    status = finish(&run, status, &end, error);
    trainer->checkpointed = run.checkpointed;
    return status;
}
