/* test_trainer.c - a small model learns; a run that is stopped anywhere and
   resumed is the same run; nothing is allocated in a step; faults are errors. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "train/trainer.h"

#define MOST_EPOCHS 16

static const char MLP[] = "[Dense: {units: 16, activation: relu}, Dense: {units: 4, activation: softmax}]";
static const char CNN[] = "[Conv2D: {filters: 4, kernel_size: 3, activation: relu, padding: same}, MaxPooling2D: 2, "
                          "Conv2D: {filters: 6, kernel_size: 2, activation: relu}, Flatten, Dense: 4, Softmax]";

/* What a run is made with. */
struct setup {
    int64_t elements, batch, epochs, steps_per_epoch, validation_steps, every;
    int threads, slots;
    uint64_t seed;
    bool resume, validation;
    const char *model; /* on elements of 12 features, or of (6, 6, 2) */
    const char *optimizer, *save_weights, *load_weights;
    const char *job;     /* digest of the job; NULL: none */
    uint64_t room_bytes; /* what the budget leaves beside the plan; 0: no budget */
    int64_t stop_at;     /* total step after which the stop flag is raised; 0: never */
};

static const struct setup usual = {.elements = 203,
                                   .batch = 16,
                                   .epochs = 3,
                                   .threads = 1,
                                   .slots = 1,
                                   .seed = 7,
                                   .validation = true,
                                   .model = MLP,
                                   .optimizer = "{adam: {learning_rate: 0.01}}"};
#define USUAL_STEPS 13

/* What it told. */
struct told {
    plim_status status;
    plim_error error;
    int begins, steps, epochs, ends;
    plim_progress epoch[MOST_EPOCHS]; /* by number, from 0 */
    plim_end end;
    char word[16], weights[65], optimizer[65], checkpoint[256], note[256];
    double first_loss, last_loss;
    /* For the listener: */
    int64_t stop_at;
    struct stop stop;
};

struct folder {
    char path[64];
};

static int set_up(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    const char *temporary = getenv("TMPDIR");
    snprintf(folder->path, sizeof folder->path, "%.30s/plim-trainer-XXXXXX", temporary ? temporary : "/var/tmp");
    assert_non_null(mkdtemp(folder->path));
    *state = folder;
    return 0;
}

static void empty(const struct folder *folder)
{
    char path[512];
    DIR *dir = opendir(folder->path);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder->path, entry->d_name);
            unlink(path);
        }
    closedir(dir);
}

static int tear_down(void **state)
{
    struct folder *folder = *state;
    empty(folder);
    rmdir(folder->path);
    free(folder);
    return 0;
}

static void listen(void *context, const plim_event *event)
{
    struct told *told = context;
    if (event->kind == PLIM_EVENT_BEGIN)
        told->begins++;
    if (event->kind == PLIM_EVENT_STEP) {
        if (told->steps++ == 0)
            told->first_loss = event->progress->step_loss;
        told->last_loss = event->progress->step_loss;
        if (event->progress->total_steps == told->stop_at)
            stop_ask(&told->stop);
    }
    if (event->kind == PLIM_EVENT_EPOCH) {
        told->epochs++;
        if (event->progress->epoch <= MOST_EPOCHS)
            told->epoch[event->progress->epoch - 1] = *event->progress;
    }
    if (event->kind == PLIM_EVENT_END) {
        told->ends++;
        told->end = *event->end;
        snprintf(told->word, sizeof told->word, "%s", event->end->status);
        snprintf(told->weights, sizeof told->weights, "%s",
                 event->end->weights_digest ? event->end->weights_digest : "");
        snprintf(told->optimizer, sizeof told->optimizer, "%s",
                 event->end->optimizer_digest ? event->end->optimizer_digest : "");
        snprintf(told->checkpoint, sizeof told->checkpoint, "%s", event->end->checkpoint ? event->end->checkpoint : "");
    }
}

/* Everything from data to trainer, made and freed around one run. */
struct rig {
    struct budget *budget;
    struct shape shape;
    struct arena arena;
    struct model *model;
    struct training training;
    struct dataset *train, *validation;
    struct backend *backend;
    struct graph train_graph, evaluate_graph;
    struct model_tensors train_tensors, evaluate_tensors;
    struct program *program;
};

static struct yaml *parse(struct rig *rig, const char *text)
{
    struct yaml *root = NULL;
    assert_int_equal(yaml_parse(&root, &rig->arena, "job.yaml", text, strlen(text), NULL), PLIM_OK);
    return root;
}

static struct dataset *data(struct rig *rig, int64_t elements, int64_t batch, uint64_t seed, bool shuffled)
{
    struct random_options options = {
        .elements = elements, .shape = rig->shape, .classes = 4, .seed = seed, .learnable = true};
    struct source *source = NULL;
    assert_int_equal(random_open(&source, rig->budget, &options, NULL), PLIM_OK);
    struct dataset *dataset = dataset_from_source(source);
    return dataset_batch(shuffled ? dataset_shuffle(dataset, 5) : dataset, batch, false);
}

static void build(struct graph *graph, struct model_tensors *tensors, struct rig *rig, int64_t batch, bool backward)
{
    struct column_spec input = {.type = TYPE_F32, .shape = rig->shape}, label = {.type = TYPE_I32};
    plim_error error = {0};
    graph_init(graph, rig->budget, batch);
    if (model_build(tensors, graph, rig->model,
                    &(struct step_spec){.column = (struct column_spec[]){input, label},
                                        .column_count = 2,
                                        .training = &rig->training,
                                        .backward = backward},
                    &error) != PLIM_OK)
        fail_msg("%s", error.message);
}

static void make_rig(struct rig *rig, const struct setup *setup)
{
    struct program_input input = {.threads = setup->threads,
                                  .train = &rig->train_graph,
                                  .evaluate = &rig->evaluate_graph,
                                  .save_buffer_bytes = 4096};
    plim_error error = {0};
    struct output_loss *loss = &rig->training.output_loss[0];
    *rig = (struct rig){.training.output_loss[0].weight = 1.0};
    rig->shape = setup->model == CNN ? (struct shape){3, {6, 6, 2}} : (struct shape){1, {12}};
    assert_int_equal(budget_make(&rig->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    arena_init(&rig->arena, rig->budget, TAG_PLANNER);
    assert_int_equal(model_read(&rig->model, rig->budget, "job.yaml", parse(rig, setup->model), NULL), PLIM_OK);
    assert_int_equal(optimizer_read(&rig->training.optimizer, "job.yaml", parse(rig, setup->optimizer), NULL), PLIM_OK);
    const struct yaml *name = parse(rig, "sparse_categorical_crossentropy");
    assert_int_equal(loss_read(&loss->loss, &loss->kind, "job.yaml", name, NULL), PLIM_OK);
    const struct yaml *words =
        parse(rig, "[accuracy, {MeanIoU: {num_classes: 4, sparse_y_pred: false}}]"); /* and sums over the epoch */
    assert_int_equal(metrics_read(&rig->training, &(struct metric_place){0}, &rig->arena, "job.yaml", words, NULL),
                     PLIM_OK);
    rig->train = data(rig, setup->elements, setup->batch, 1, true);
    rig->validation = data(rig, 50, 20, 1, false);
    build(&rig->train_graph, &rig->train_tensors, rig, setup->batch, true);
    build(&rig->evaluate_graph, &rig->evaluate_tensors, rig, 20, false);
    assert_int_equal(reference_backend.open(&rig->backend, rig->budget, NULL), PLIM_OK);
    input.budget = rig->budget;
    input.backend = rig->backend;
    dataset_steps(rig->train, &input.last_batch_train);
    dataset_steps(rig->validation, &input.last_batch_evaluate);
    if (program_make(&rig->program, &input, &error) != PLIM_OK)
        fail_msg("%s", error.message);
}

static void free_rig(struct rig *rig)
{
    program_free(rig->program);
    graph_release(&rig->train_graph);
    graph_release(&rig->evaluate_graph);
    rig->backend->type->close(rig->backend);
    dataset_unref(rig->train);
    dataset_unref(rig->validation);
    model_free(rig->model);
    arena_release(&rig->arena);
    budget_free(rig->budget);
}

static plim_status run_trainer(struct told *told, struct rig *rig, const struct setup *setup,
                               const struct folder *folder)
{
    struct scratch_disk scratch = {.folder = folder->path, .limit_bytes = 1 << 20};
    struct trainer trainer = {
        .budget = rig->budget,
        .build = rig->train_graph.build,
        .train_tensors = rig->train_tensors,
        .evaluate_tensors = rig->evaluate_tensors,
        .train = rig->train,
        .validation = setup->validation ? rig->validation : NULL,
        .scratch = &scratch,
        .stop = &told->stop,
        .options = {.epochs = setup->epochs,
                    .steps_per_epoch = setup->steps_per_epoch,
                    .validation_steps = setup->validation_steps,
                    .checkpoint_every = setup->every,
                    .checkpoint_folder = folder->path,
                    .save_weights = setup->save_weights,
                    .load_weights = setup->load_weights,
                    .seed = setup->seed,
                    .resume = setup->resume,
                    .digest = true,
                    .save_buffer_bytes = 4096,
                    .train_grant = {.slots = setup->slots, .workers = setup->slots > 1},
                    .validation_grant.slots = 1},
    };
    snprintf(trainer.options.job_digest, sizeof trainer.options.job_digest, "%s", setup->job ? setup->job : "");
    if (setup->room_bytes) {
        trainer.predicted_peak = 1000000;
        trainer.budget_bytes = trainer.predicted_peak + setup->room_bytes;
    }
    TRY(machine_open(&trainer.machine, rig->program, rig->budget, NULL, &told->error));
    plim_status status = trainer_initialize(&trainer, &told->error);
    if (status == PLIM_OK)
        status = trainer_run(&trainer, listen, told, &told->error);
    machine_close(&trainer.machine);
    memcpy(told->note, trainer.note, sizeof told->note);
    return status;
}

static void run(struct told *told, const struct setup *setup, const struct folder *folder)
{
    struct rig rig;
    *told = (struct told){.stop_at = setup->stop_at};
    make_rig(&rig, setup);
    uint64_t before = budget_usage(rig.budget).now;
    told->status = run_trainer(told, &rig, setup, folder);
    assert_int_equal(budget_usage(rig.budget).now, before);
    free_rig(&rig);
}

static void run_well(struct told *told, const struct setup *setup, const struct folder *folder)
{
    run(told, setup, folder);
    if (told->status != PLIM_OK)
        fail_msg("%s: %s", told->error.where, told->error.message);
    assert_string_equal(told->word, "done");
}

static void same_run(const struct told *a, const struct told *b)
{
    assert_string_equal(a->weights, b->weights);
    assert_string_equal(a->optimizer, b->optimizer);
    assert_int_equal(strlen(a->weights), 64);
}

/* ---- learning ---- */

static void it_learns_and_tells(void **state)
{
    struct setup setup = usual;
    struct told told;
    setup.epochs = 12;
    run_well(&told, &setup, *state);
    assert_int_equal(told.begins, 12);
    assert_int_equal(told.epochs, 12);
    assert_int_equal(told.steps, 12 * USUAL_STEPS);
    assert_int_equal(told.ends, 1);
    assert_int_equal(told.end.steps, 12 * USUAL_STEPS);
    assert_int_equal(told.end.samples, 12 * 203);
    const plim_progress *first = &told.epoch[0], *last = &told.epoch[11];
    assert_int_equal(last->step, USUAL_STEPS);
    assert_int_equal(last->steps, USUAL_STEPS);
    assert_int_equal(last->samples, 203);
    assert_true(last->validated);
    assert_true(last->loss < 0.7 * first->loss);
    assert_true(last->metric_value[0] > 0.6 && last->metric_value[0] > first->metric_value[0]);
    assert_true(last->val_loss < first->val_loss && last->val_metric_value[0] > 0.5);
    assert_true(told.end.samples_per_s > 0 && told.end.seconds > 0 && told.end.peak_rss_bytes > 0);
    assert_true(told.end.data_wait_share >= 0 && told.end.data_wait_share <= 1);
    assert_true(told.end.allocations_per_step == 0);
    assert_int_equal(told.end.malloc_growth_bytes, 0);
    assert_non_null(strstr(told.checkpoint, CHECKPOINT_NAME));
}

static void sgd_learns_too(void **state)
{
    static const char *const optimizers[] = {"{sgd: {learning_rate: 0.2}}",
                                             "{sgd: {learning_rate: 0.05, momentum: 0.9}}",
                                             "{sgd: {learning_rate: 0.05, momentum: 0.9, nesterov: true}}"};
    for (int i = 0; i < COUNT(optimizers); i++) {
        struct setup setup = usual;
        struct told told;
        setup.optimizer = optimizers[i];
        setup.epochs = 6;
        run_well(&told, &setup, *state);
        assert_true(told.epoch[5].loss < 0.9 * told.epoch[0].loss);
    }
}

static void a_convolution_learns_too(void **state)
{
    struct setup setup = usual;
    struct told whole, part, rest;
    setup.model = CNN;
    setup.epochs = 6;
    run_well(&whole, &setup, *state);
    assert_true(whole.epoch[5].loss < 0.9 * whole.epoch[0].loss);
    assert_true(whole.end.allocations_per_step == 0);
    setup.stop_at = 31;
    run(&part, &setup, *state);
    assert_int_equal(part.status, PLIM_INTERRUPTED);
    setup.stop_at = 0;
    setup.resume = true;
    setup.threads = 2;
    run_well(&rest, &setup, *state);
    same_run(&whole, &rest);
}

static void the_same_bits_each_time(void **state)
{
    struct told first, other;
    struct setup setup = usual;
    run_well(&first, &setup, *state);
    setup.threads = 3;
    setup.slots = 3;
    setup.validation = false;
    setup.every = 3;
    run_well(&other, &setup, *state);
    same_run(&first, &other);
    assert_true(other.epoch[2].loss == first.epoch[2].loss);
    assert_true(first.epoch[2].validated && !other.epoch[2].validated);
    assert_true(other.end.allocations_per_step == 0);
    setup.seed = 8;
    run_well(&other, &setup, *state);
    assert_string_not_equal(first.weights, other.weights);
}

static void not_a_number_is_no_error(void **state)
{
    struct told told;
    struct setup setup = usual;
    setup.optimizer = "{sgd: {learning_rate: 1e30}}";
    run_well(&told, &setup, *state);
    assert_true(!isfinite(told.last_loss));
    assert_int_equal(told.epochs, 3);
}

static void steps_per_epoch_cut_epochs(void **state)
{
    struct told told, other;
    struct setup setup = usual;
    setup.steps_per_epoch = 5;
    setup.validation_steps = 1;
    run_well(&told, &setup, *state);
    assert_int_equal(told.steps, 15);
    assert_int_equal(told.epoch[0].samples, 80);
    assert_int_equal(told.epoch[2].steps, 5);
    setup.stop_at = 7;
    run(&other, &setup, *state);
    assert_int_equal(other.status, PLIM_INTERRUPTED);
    setup.stop_at = 0;
    setup.resume = true;
    setup.slots = 2;
    run_well(&other, &setup, *state);
    same_run(&told, &other);
    setup = usual;
    setup.steps_per_epoch = 1000; /* fewer are there: the epoch ends with them */
    run_well(&told, &setup, *state);
    run_well(&other, &usual, *state);
    same_run(&told, &other);
    assert_int_equal(told.epoch[0].steps, USUAL_STEPS);
}

/* ---- stopping and resuming ---- */

static void resuming_anywhere_is_the_same_run(void **state)
{
    static const int64_t stops[] = {1, 2, 6, 12, 13, 14, 25, 26, 27, 38, 39};
    struct told whole, part, rest;
    run_well(&whole, &usual, *state);
    for (int i = 0; i < COUNT(stops); i++) {
        struct setup setup = usual;
        empty(*state);
        setup.stop_at = stops[i];
        run(&part, &setup, *state);
        assert_int_equal(part.status, PLIM_INTERRUPTED);
        assert_string_equal(part.word, "stopped");
        assert_int_equal(part.steps, stops[i]);
        assert_string_not_equal(part.checkpoint, "");
        setup.stop_at = 0;
        setup.resume = true;
        setup.slots = 1 + i % 3;
        run_well(&rest, &setup, *state);
        assert_int_equal(part.steps + rest.steps, 3 * USUAL_STEPS);
        assert_int_equal(part.epochs + rest.epochs, 3);
        same_run(&whole, &rest);
        const plim_progress *a = &whole.epoch[2], *b = &rest.epoch[2];
        assert_true(a->loss == b->loss && a->metric_value[0] == b->metric_value[0] && a->samples == b->samples);
        assert_true(a->val_loss == b->val_loss && a->val_metric_value[0] == b->val_metric_value[0]);
        assert_true(a->metric_count == 2 && a->metric_value[1] > 0 && a->metric_value[1] == b->metric_value[1]);
        assert_true(a->val_metric_value[1] > 0 && a->val_metric_value[1] == b->val_metric_value[1]);
        assert_int_equal(a->total_steps, b->total_steps);
        const plim_progress *cut = &rest.epoch[(stops[i] - 1) / USUAL_STEPS],
                            *uncut = &whole.epoch[(stops[i] - 1) / USUAL_STEPS];
        assert_true(cut->loss == uncut->loss && cut->metric_value[0] == uncut->metric_value[0]);
        assert_true(cut->metric_value[1] == uncut->metric_value[1]);
    }
}

static void many_stops_in_one_run(void **state)
{
    struct told whole, part;
    struct setup setup = usual;
    run_well(&whole, &usual, *state);
    empty(*state);
    setup.resume = true; /* at first there is nothing to resume */
    for (setup.stop_at = 5; setup.stop_at < 39; setup.stop_at += 5) {
        run(&part, &setup, *state);
        assert_int_equal(part.status, PLIM_INTERRUPTED);
        assert_true(setup.stop_at == 5 ? part.note[0] : !part.note[0]);
    }
    setup.stop_at = 0;
    run_well(&part, &setup, *state);
    same_run(&whole, &part);
}

static void resuming_a_finished_run(void **state)
{
    struct told whole, again, longer, straight;
    struct setup setup = usual;
    run_well(&whole, &setup, *state);
    setup.resume = true;
    run_well(&again, &setup, *state);
    assert_int_equal(again.end.steps, 0);
    assert_int_equal(again.begins, 0);
    same_run(&whole, &again);
    setup.epochs = 5; /* and going on with it */
    run_well(&longer, &setup, *state);
    assert_int_equal(longer.end.steps, 2 * USUAL_STEPS);
    setup.resume = false;
    run_well(&straight, &setup, *state);
    same_run(&longer, &straight);
}

static void a_failed_save_loses_nothing(void **state)
{
    struct told whole, part, rest;
    struct setup setup = usual;
    run_well(&whole, &setup, *state);
    empty(*state);
    setup.every = 4;
    fault_arm(FAULT_SYNC, 7, true, EIO);
    run(&part, &setup, *state);
    assert_true(fault_disarm());
    assert_int_equal(part.status, PLIM_IO);
    assert_string_equal(part.word, "failed");
    assert_true(part.steps > 4);
    setup.resume = true;
    run_well(&rest, &setup, *state);
    assert_true(rest.steps < 39);
    same_run(&whole, &rest);
}

static void other_jobs_are_refused(void **state)
{
    struct told told;
    struct setup setup = usual;
    run_well(&told, &setup, *state);
    setup.resume = true;
    setup.epochs = 4;
    setup.batch = 8;
    run(&told, &setup, *state);
    assert_int_equal(told.status, PLIM_BAD_DATA);
    assert_non_null(strstr(told.error.message, "batch of 16"));
    setup.batch = 16;
    setup.elements = 204;
    run(&told, &setup, *state);
    assert_int_equal(told.status, PLIM_BAD_DATA);
    assert_non_null(strstr(told.error.message, "203"));
    setup.elements = 203;
    setup.seed = 9;
    run(&told, &setup, *state);
    assert_int_equal(told.status, PLIM_BAD_DATA);
    assert_non_null(strstr(told.error.message, "seed 7"));
    setup.seed = 7;
    setup.optimizer = "sgd"; /* other states */
    run(&told, &setup, *state);
    assert_int_equal(told.status, PLIM_BAD_DATA);
    assert_int_equal(told.ends, 0);
}

/* Two jobs that differ in what no single figure of the checkpoint tells. */
static void a_checkpoint_knows_its_job(void **state)
{
    static const char this_job[] = "1111111111111111111111111111111111111111111111111111111111111111";
    static const char other_job[] = "1111111111111111111111111111111111111111111111111111111111111112";
    struct told told;
    struct setup setup = usual;
    setup.stop_at = 5;
    setup.job = this_job;
    run(&told, &setup, *state);
    assert_int_equal(told.status, PLIM_INTERRUPTED);
    setup.resume = true;
    setup.stop_at = 9;
    run(&told, &setup, *state);
    assert_int_equal(told.status, PLIM_INTERRUPTED);
    setup.job = other_job;
    run(&told, &setup, *state);
    assert_int_equal(told.status, PLIM_BAD_DATA);
    assert_non_null(strstr(told.error.message, "of another job"));
    assert_non_null(strstr(told.error.hint, "without --resume"));
    setup.job = NULL; /* nobody knows: not compared */
    setup.stop_at = 0;
    run_well(&told, &setup, *state);
    assert_int_equal(told.steps, 3 * USUAL_STEPS - 9);
}

/* A run that starts anew and is killed before it saves: what goes on is that run, and not an older one. */
static void a_new_run_is_resumed_from_its_own_beginning(void **state)
{
    struct told older, whole, part, rest;
    struct setup setup = usual;
    struct folder *folder = *state;
    char path[128];
    setup.optimizer = "{adam: {learning_rate: 0.02}}";
    run_well(&whole, &setup, folder);
    empty(folder);
    run_well(&older, &usual, folder);
    fault_arm(FAULT_SYNC, 3, true, EIO); /* the first save of the run fails, as if it had been killed before */
    run(&part, &setup, folder);
    assert_true(fault_disarm());
    assert_int_equal(part.status, PLIM_IO);
    assert_int_equal(part.steps, USUAL_STEPS);
    assert_non_null(strstr(part.note, CHECKPOINT_OLDER_NAME));
    setup.resume = true;
    run_well(&rest, &setup, folder);
    assert_int_equal(rest.steps, 3 * USUAL_STEPS);
    same_run(&whole, &rest);
    /* The older run is there under its new name. */
    snprintf(path, sizeof path, "%s/%s", folder->path, CHECKPOINT_OLDER_NAME);
    struct setup look = usual;
    look.load_weights = path;
    look.every = -1;
    look.optimizer = "{sgd: {learning_rate: 0}}";
    run_well(&rest, &look, folder);
    assert_string_equal(rest.weights, older.weights);
}

static void a_folder_in_use_is_refused(void **state)
{
    struct told told;
    const struct folder *folder = *state;
    struct budget *budget;
    struct checkpoint_folder other;
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    assert_int_equal(checkpoint_folder_open(&other, folder->path, budget, NULL), PLIM_OK);
    run(&told, &usual, folder);
    assert_int_equal(told.status, PLIM_IO);
    assert_non_null(strstr(told.error.message, "in use by another run"));
    assert_int_equal(told.steps, 0);
    checkpoint_folder_close(&other);
    budget_free(budget);
    run_well(&told, &usual, folder);
}

/* Checkpoints in memory have to fit beside the plan. */
static void a_folder_in_memory_is_no_disk(void **state)
{
    struct told told;
    struct setup setup = usual;
    struct folder memory;
    (void)state;
    snprintf(memory.path, sizeof memory.path, "/dev/shm/plim-trainer-XXXXXX");
    if (!mkdtemp(memory.path))
        skip();
    if (file_folder_in_memory(memory.path)) {
        setup.room_bytes = 1000;
        run(&told, &setup, &memory);
        assert_int_equal(told.status, PLIM_OVER_BUDGET);
        assert_non_null(strstr(told.error.message, "in memory"));
        assert_non_null(strstr(told.error.hint, "--checkpoint"));
        assert_int_equal(told.steps, 0);
        setup.room_bytes = 1000000;
        run_well(&told, &setup, &memory);
    }
    empty(&memory);
    assert_int_equal(rmdir(memory.path), 0);
}

static void what_cannot_be_saved_is_refused_before(void **state)
{
    struct told told;
    struct setup setup = usual;
    setup.save_weights = "/nowhere/weights.safetensors";
    run(&told, &setup, *state);
    assert_int_equal(told.status, PLIM_IO);
    assert_non_null(strstr(told.error.where, "/nowhere"));
    assert_int_equal(told.steps, 0);
}

static void without_checkpoints(void **state)
{
    struct told told;
    struct setup setup = usual;
    const struct folder *folder = *state;
    char path[128];
    setup.every = -1;
    setup.stop_at = 3;
    run(&told, &setup, folder);
    assert_int_equal(told.status, PLIM_INTERRUPTED);
    assert_string_equal(told.checkpoint, "");
    assert_non_null(strstr(told.error.message, "no checkpoint was written"));
    snprintf(path, sizeof path, "%s/%s", folder->path, CHECKPOINT_NAME);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void weights_are_saved_and_loaded(void **state)
{
    struct told saved, loaded;
    struct setup setup = usual;
    const struct folder *folder = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/weights.safetensors", folder->path);
    setup.save_weights = path;
    run_well(&saved, &setup, folder);
    setup.save_weights = NULL;
    setup.load_weights = path;
    setup.seed = 99;
    setup.optimizer = "{sgd: {learning_rate: 0}}";
    run_well(&loaded, &setup, folder);
    assert_string_equal(saved.weights, loaded.weights);
    setup.load_weights = "/nowhere/weights.safetensors";
    run(&loaded, &setup, folder);
    assert_int_equal(loaded.status, PLIM_IO);
}

/* Runs on other data than the rig was made for: without end, or too little for a batch. */
static plim_status run_on(struct told *told, const struct setup *setup, const struct folder *folder, bool endless)
{
    struct rig rig;
    struct random_options options = {.elements = 5, .shape = {1, {12}}, .classes = 4};
    struct source *source = NULL;
    make_rig(&rig, setup);
    dataset_unref(rig.train);
    assert_int_equal(random_open(&source, rig.budget, &options, NULL), PLIM_OK);
    rig.train = dataset_from_source(source);
    rig.train = dataset_batch(endless ? dataset_repeat(rig.train, -1) : rig.train, 16, true);
    *told = (struct told){0};
    plim_status status = run_trainer(told, &rig, setup, folder);
    free_rig(&rig);
    return status;
}

static void data_without_end_or_batch(void **state)
{
    struct told told;
    struct setup setup = usual;
    assert_int_equal(run_on(&told, &setup, *state, true), PLIM_BAD_JOB);
    assert_non_null(strstr(told.error.hint, "steps_per_epoch"));
    setup.steps_per_epoch = 4;
    assert_int_equal(run_on(&told, &setup, *state, true), PLIM_OK);
    assert_int_equal(told.steps, 12);
    assert_int_equal(run_on(&told, &setup, *state, false), PLIM_BAD_JOB);
    assert_non_null(strstr(told.error.message, "16"));
}

/* ---- faults ---- */

static void sweep(const struct folder *folder, unsigned sites, bool forever, int number, bool resume)
{
    struct setup setup = usual;
    struct told whole, part, rest;
    bool reached = true;
    setup.elements = 40;
    setup.epochs = 2;
    setup.every = 4;
    setup.slots = setup.threads = 2;
    run_well(&whole, &setup, folder);
    for (int nth = 1; reached; nth++) {
        struct rig rig;
        assert_true(nth < 2000);
        empty(folder);
        setup.resume = resume;
        if (resume) { /* leave something to go on from */
            struct setup first = setup;
            first.resume = false;
            first.stop_at = 3;
            run(&part, &first, folder);
        }
        part = (struct told){0};
        make_rig(&rig, &setup);
        uint64_t before = budget_usage(rig.budget).now;
        fault_arm(sites, nth, forever, number);
        part.status = run_trainer(&part, &rig, &setup, folder);
        reached = fault_disarm();
        assert_int_equal(budget_usage(rig.budget).now, before);
        free_rig(&rig);
        if (part.status != PLIM_OK)
            assert_true(part.error.message[0]);
        else
            same_run(&whole, &part);
        setup.resume = true;
        run_well(&rest, &setup, folder);
        same_run(&whole, &rest);
    }
}

static void faults_are_errors(void **state)
{
    const struct folder *folder = *state;
    const unsigned files = FAULT_OPEN | FAULT_READ | FAULT_WRITE | FAULT_SYNC | FAULT_RENAME | FAULT_STAT;
    for (int forever = 0; forever < 2; forever++) {
        sweep(folder, FAULT_ALLOCATE, forever, ENOMEM, !forever);
        sweep(folder, files, forever, EIO, !forever);
        sweep(folder, FAULT_THREAD, forever, EAGAIN, forever);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_learns_and_tells),
        TEST(sgd_learns_too),
        TEST(a_convolution_learns_too),
        TEST(the_same_bits_each_time),
        TEST(not_a_number_is_no_error),
        TEST(steps_per_epoch_cut_epochs),
        TEST(resuming_anywhere_is_the_same_run),
        TEST(many_stops_in_one_run),
        TEST(resuming_a_finished_run),
        TEST(a_failed_save_loses_nothing),
        TEST(other_jobs_are_refused),
        TEST(a_checkpoint_knows_its_job),
        TEST(a_new_run_is_resumed_from_its_own_beginning),
        TEST(a_folder_in_use_is_refused),
        TEST(a_folder_in_memory_is_no_disk),
        TEST(what_cannot_be_saved_is_refused_before),
        TEST(without_checkpoints),
        TEST(weights_are_saved_and_loaded),
        TEST(data_without_end_or_batch),
        TEST(faults_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
