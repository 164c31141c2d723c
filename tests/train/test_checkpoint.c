/* test_checkpoint.c - a checkpoint comes back as it was, damage is found, and
   no failure leaves less than one whole checkpoint. */
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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "train/trainer.h"

#define FILE_SITES   (FAULT_OPEN | FAULT_READ | FAULT_WRITE | FAULT_SYNC | FAULT_RENAME | FAULT_STAT)
#define BUFFER_BYTES 4096

/* A machine with four tensors that never runs, and a folder. */
struct studio {
    char folder[64], current[128], previous[128], older[128];
    struct checkpoint_folder checkpoints;
    struct budget *budget;
    struct tensor tensor[4];
    struct tensor *persistent[4];
    uint64_t offset[4];
    struct program program;
    struct machine machine;
    uint8_t tensor_arena[2048], buffer[BUFFER_BYTES]; /* one after the other, as in an arena */
    struct instance save;
    struct position position;
    uint64_t held; /* by the budget, at rest */
};

static void fill(struct studio *room, int seed)
{
    for (size_t i = 0; i < sizeof room->tensor_arena; i++)
        room->tensor_arena[i] = (uint8_t)(i * 31 + (size_t)seed * 7);
    memcpy(room->tensor_arena + room->offset[3], &(int64_t){seed}, sizeof(int64_t));
    room->position = (struct position){.epoch = seed,
                                       .step = 5,
                                       .total_steps = 17,
                                       .epoch_samples = 160,
                                       .loss_sum = 0.1 + seed,
                                       .metric_sum = {1.0 / 3},
                                       .seed = UINT64_MAX - 3,
                                       .batch = 32,
                                       .dataset_count = 1000,
                                       .instructions = "plain C",
                                       .job = "a digest of 64 digits, and not one of them may be lost, 12345678"};
}

static int set_up(void **state)
{
    struct studio *room = calloc(1, sizeof *room);
    const char *temporary = getenv("TMPDIR");
    snprintf(room->folder, sizeof room->folder, "%.30s/plim-checkpoint-XXXXXX", temporary ? temporary : "/var/tmp");
    assert_non_null(mkdtemp(room->folder));
    room->checkpoints.path = room->folder;
    snprintf(room->current, sizeof room->current, "%s/%s", room->folder, CHECKPOINT_NAME);
    snprintf(room->previous, sizeof room->previous, "%s/%s", room->folder, CHECKPOINT_PREVIOUS_NAME);
    snprintf(room->older, sizeof room->older, "%s/%s", room->folder, CHECKPOINT_OLDER_NAME);
    assert_int_equal(budget_make(&room->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    room->tensor[0] = (struct tensor){.name = "dense/kernel", .kind = KIND_WEIGHT, .shape = {2, {7, 9}}};
    room->tensor[1] = (struct tensor){.name = "dense/bias", .kind = KIND_WEIGHT, .shape = {1, {9}}};
    room->tensor[2] = (struct tensor){.name = "optimizer/dense/bias/momentum", .kind = KIND_STATE, .shape = {1, {9}}};
    room->tensor[3] =
        (struct tensor){.name = "optimizer/iteration", .kind = KIND_STATE, .type = TYPE_I64, .shape = {1, {1}}};
    for (int i = 0; i < 4; i++) {
        room->persistent[i] = &room->tensor[i];
        room->offset[i] = (uint64_t)i * 512;
    }
    room->program =
        (struct program){.persistent = room->persistent, .persistent_offset = room->offset, .persistent_count = 4};
    room->save = (struct instance){.name = "save",
                                   .bytes = BUFFER_BYTES,
                                   .offset = offsetof(struct studio, buffer) - offsetof(struct studio, tensor_arena)};
    room->program.phase[PHASE_SAVE] = (struct phase){.name = "save", .instance = &room->save, .instance_count = 1};
    room->machine =
        (struct machine){.program = &room->program, .budget = room->budget, .tensor_arena = room->tensor_arena};
    room->held = budget_usage(room->budget).now;
    fill(room, 1);
    *state = room;
    return 0;
}

static int tear_down(void **state)
{
    struct studio *room = *state;
    char path[512];
    DIR *dir = opendir(room->folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", room->folder, entry->d_name);
            unlink(path);
        }
    closedir(dir);
    rmdir(room->folder);
    assert_int_equal(budget_usage(room->budget).now, room->held);
    budget_free(room->budget);
    free(room);
    return 0;
}

static plim_status save(struct studio *room, plim_error *error)
{
    return checkpoint_save(&room->checkpoints, &room->machine, &room->position, error);
}

static void save_generation(struct studio *room, int seed)
{
    fill(room, seed);
    assert_int_equal(save(room, NULL), PLIM_OK);
}

static plim_status load(struct studio *room, bool *found, struct position *position, char note[256], plim_error *error)
{
    memset(room->tensor_arena, 0, sizeof room->tensor_arena);
    return checkpoint_load(found, position, note, &room->checkpoints, &room->machine, error);
}

/* Loads, and checks that all of generation `seed` is there. Returns it. */
static int load_generation(struct studio *room, char note[256])
{
    bool found = false;
    struct position position;
    plim_error error = {0};
    plim_status status = load(room, &found, &position, note, &error);
    if (status != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    if (!found)
        return 0;
    uint8_t loaded[sizeof room->tensor_arena];
    memcpy(loaded, room->tensor_arena, sizeof loaded);
    int seed = (int)position.epoch;
    fill(room, seed);
    for (int i = 0; i < 4; i++) {
        size_t bytes = (size_t)shape_count(&room->tensor[i].shape) * type_bytes(room->tensor[i].type);
        assert_memory_equal(loaded + room->offset[i], room->tensor_arena + room->offset[i], bytes);
    }
    assert_int_equal(position.step, room->position.step);
    assert_int_equal(position.total_steps, room->position.total_steps);
    assert_int_equal(position.epoch_samples, room->position.epoch_samples);
    assert_true(position.loss_sum == room->position.loss_sum && position.metric_sum[0] == room->position.metric_sum[0]);
    assert_true(position.seed == room->position.seed);
    assert_int_equal(position.batch, room->position.batch);
    assert_int_equal(position.dataset_count, room->position.dataset_count);
    assert_string_equal(position.instructions, room->position.instructions);
    assert_string_equal(position.job, room->position.job);
    return seed;
}

static bool there(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0;
}

static size_t read_whole(const char *path, uint8_t *to, size_t capacity)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t bytes = fread(to, 1, capacity, file);
    fclose(file);
    assert_true(bytes < capacity);
    return bytes;
}

static void write_whole(const char *path, const uint8_t *from, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(from, 1, bytes, file), bytes);
    fclose(file);
}

/* ---- round trips ---- */

static void comes_back_as_it_was(void **state)
{
    struct studio *room = *state;
    char note[256];
    assert_int_equal(load_generation(room, note), 0);
    save_generation(room, 1);
    assert_false(there(room->previous));
    assert_int_equal(load_generation(room, note), 1);
    assert_string_equal(note, "");
    save_generation(room, 2);
    save_generation(room, 3);
    assert_int_equal(load_generation(room, note), 3);
    assert_int_equal(rename(room->previous, room->current), 0);
    assert_int_equal(load_generation(room, note), 2);
}

static void not_a_number_comes_back(void **state)
{
    struct studio *room = *state;
    struct position position;
    char note[256];
    bool found = false;
    room->position.loss_sum = NAN;
    room->position.metric_sum[0] = -INFINITY;
    assert_int_equal(save(room, NULL), PLIM_OK);
    assert_int_equal(load(room, &found, &position, note, NULL), PLIM_OK);
    assert_true(found && isnan(position.loss_sum) && position.metric_sum[0] == -INFINITY);
}

/* ---- a folder, a run ---- */

static void one_run_at_a_time(void **state)
{
    struct studio *room = *state;
    struct checkpoint_folder first = {0}, second = {0};
    char lock[128];
    plim_error error = {0};
    snprintf(lock, sizeof lock, "%s/lock", room->folder);
    assert_int_equal(checkpoint_folder_open(&first, room->folder, room->budget, &error), PLIM_OK);
    assert_true(there(lock));
    assert_int_equal(checkpoint_folder_open(&second, room->folder, room->budget, &error), PLIM_IO);
    assert_non_null(strstr(error.message, "in use by another run"));
    assert_non_null(strstr(error.hint, "another folder"));
    checkpoint_folder_close(&first);
    assert_false(there(lock));
    write_whole(lock, (const uint8_t *)"", 0); /* as a killed run leaves it */
    assert_int_equal(checkpoint_folder_open(&second, room->folder, room->budget, &error), PLIM_OK);
    checkpoint_folder_close(&second);
}

static void missing_folders_are_made(void **state)
{
    struct studio *room = *state;
    struct checkpoint_folder checkpoints;
    char folder[128];
    snprintf(folder, sizeof folder, "%s/a/b", room->folder);
    assert_int_equal(checkpoint_folder_open(&checkpoints, folder, room->budget, NULL), PLIM_OK);
    checkpoint_folder_close(&checkpoints);
    assert_int_equal(rmdir(folder), 0);
    snprintf(folder, sizeof folder, "%s/a", room->folder);
    assert_int_equal(rmdir(folder), 0);
}

/* A run that starts anew: generation `seed`, before its first step. */
static bool begin(struct studio *room, int seed)
{
    bool set_aside = false;
    plim_error error = {0};
    fill(room, seed);
    room->position.total_steps = 0;
    if (checkpoint_begin(&set_aside, &room->checkpoints, &room->machine, &room->position, &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    return set_aside;
}

/* The generation that is in a file alone, by its position. */
static int generation_in(struct studio *room, const char *path)
{
    struct position position;
    bool whole;
    if (!there(path))
        return 0;
    assert_int_equal(checkpoint_read(&whole, &position, path, &room->machine, NULL), PLIM_OK);
    return (int)position.epoch;
}

static void holds(struct studio *room, int current, int previous, int older)
{
    assert_int_equal(generation_in(room, room->current), current);
    assert_int_equal(generation_in(room, room->previous), previous);
    assert_int_equal(generation_in(room, room->older), older);
}

static void a_new_run_sets_the_older_one_aside(void **state)
{
    struct studio *room = *state;
    assert_false(begin(room, 1));
    holds(room, 1, 0, 0);
    save_generation(room, 2);
    save_generation(room, 3);
    holds(room, 3, 2, 0);
    assert_true(begin(room, 4));
    holds(room, 4, 0, 3);
    assert_false(begin(room, 5)); /* 4 has no step in it: 3 stays */
    holds(room, 5, 0, 3);
    save_generation(room, 6);
    holds(room, 6, 5, 3);
    write_whole(room->current, (const uint8_t *)"12345678", 8);
    assert_false(begin(room, 7)); /* 6 is damaged, 5 has no step in it */
    holds(room, 7, 0, 3);
    save_generation(room, 8);
    save_generation(room, 9);
    write_whole(room->current, (const uint8_t *)"12345678", 8);
    assert_true(begin(room, 10));
    holds(room, 10, 0, 8);
    save_generation(room, 11);
    assert_int_equal(rename(room->current, room->previous), 0); /* a kill between the two renames */
    assert_true(begin(room, 12));
    holds(room, 12, 0, 11);
}

/* What cannot be opened for other reasons than damage is kept. */
static void in_doubt_it_is_set_aside(void **state)
{
    struct studio *room = *state;
    char note[256];
    bool set_aside = false;
    save_generation(room, 2);
    fill(room, 3);
    fault_arm(FAULT_READ, 1, true, EIO);
    assert_int_equal(checkpoint_begin(&set_aside, &room->checkpoints, &room->machine, &room->position, NULL), PLIM_OK);
    assert_true(fault_disarm());
    assert_true(set_aside);
    holds(room, 3, 0, 2);
    assert_int_equal(load_generation(room, note), 3);
}

/* Fails call 1, 2, ... of a start over an older run: one of both is there under
   its name, and never a part of one beside a part of the other. */
static void faults_while_beginning(void **state)
{
    struct studio *room = *state;
    char note[256];
    bool reached = true, set_aside;
    for (int nth = 1; reached; nth++) {
        unlink(room->current);
        unlink(room->previous);
        save_generation(room, 1);
        save_generation(room, 2);
        fill(room, 3);
        plim_error error = {0};
        fault_arm(FILE_SITES, nth, false, EIO);
        plim_status status = checkpoint_begin(&set_aside, &room->checkpoints, &room->machine, &room->position, &error);
        reached = fault_disarm();
        int loaded = load_generation(room, note);
        assert_true(loaded == 2 || loaded == 3);
        if (status == PLIM_OK)
            holds(room, 3, 0, 2);
        else
            assert_true(error.message[0]);
        if (loaded == 2)
            assert_true(generation_in(room, room->current) == 2);
        assert_int_equal(budget_usage(room->budget).now, room->held);
    }
}

/* ---- what is kept of older runs ---- */

/* A whole checkpoint of so many steps under this name. */
static void place_one(struct studio *room, const char *path, int64_t steps)
{
    unlink(room->current);
    unlink(room->previous);
    fill(room, 1);
    room->position.total_steps = steps;
    assert_int_equal(save(room, NULL), PLIM_OK);
    if (strcmp(path, room->current) != 0)
        assert_int_equal(rename(room->current, path), 0);
}

static int64_t steps_of(struct studio *room, const char *path)
{
    int64_t steps = 0;
    return there(path) && checkpoint_steps(&steps, path, room->budget, NULL) == PLIM_OK ? steps : 0;
}

static void begin_of_no_steps(struct studio *room)
{
    bool set_aside;
    fill(room, 2);
    room->position.total_steps = 0;
    assert_int_equal(checkpoint_begin(&set_aside, &room->checkpoints, &room->machine, &room->position, NULL), PLIM_OK);
    assert_true(set_aside);
}

static void kept_name(char out[160], const struct studio *room, int64_t steps)
{
    snprintf(out, 160, "%s/checkpoint.kept-%lld.safetensors", room->folder, (long long)steps);
}

/* `older` gives its name to one of as many steps or more, and keeps a name of its own else. */
static void more_steps_are_kept(void **state)
{
    struct studio *room = *state;
    char kept[160];
    static const struct {
        int64_t older, current;
        bool kept;
    } cases[] = {{100, 99, true}, {100, 100, false}, {100, 101, false}, {5640, 1, true}};
    for (int i = 0; i < COUNT(cases); i++) {
        place_one(room, room->older, cases[i].older);
        place_one(room, room->current, cases[i].current);
        begin_of_no_steps(room);
        kept_name(kept, room, cases[i].older);
        assert_int_equal(room->checkpoints.kept, cases[i].kept);
        assert_int_equal(steps_of(room, kept), cases[i].kept ? cases[i].older : 0);
        assert_int_equal(steps_of(room, room->older), cases[i].current);
        assert_int_equal(steps_of(room, room->current), 0);
        if (cases[i].kept)
            assert_int_equal(room->checkpoints.kept_steps, cases[i].older);
        unlink(kept);
    }
    place_one(room, room->older, 100); /* a damaged one is nothing to keep */
    write_whole(room->older, (const uint8_t *)"12345678", 8);
    place_one(room, room->current, 7);
    begin_of_no_steps(room);
    assert_false(room->checkpoints.kept);
}

static void eight_are_kept(void **state)
{
    struct studio *room = *state;
    char kept[160];
    for (int64_t steps = 30; steps > 18; steps--) {
        place_one(room, room->current, steps);
        begin_of_no_steps(room);
    }
    for (int64_t steps = 19; steps <= 30; steps++) {
        kept_name(kept, room, steps);
        assert_int_equal(there(kept), steps >= 24 || steps == 20); /* 20: what the last start has set aside */
    }
    assert_int_equal(steps_of(room, room->older), 19);
}

/* Those whose steps cannot be read are in doubt: none takes another's name. */
static void unknown_ones_are_kept(void **state)
{
    struct studio *room = *state;
    char kept[160];
    bool set_aside;
    for (int64_t i = 0; i < 3; i++) {
        place_one(room, room->older, 100 + i);
        place_one(room, room->current, 17);
        room->position.total_steps = 0;
        fault_arm(FAULT_READ, 1, true, EIO);
        assert_int_equal(checkpoint_begin(&set_aside, &room->checkpoints, &room->machine, &room->position, NULL),
                         PLIM_OK);
        assert_true(fault_disarm());
    }
    for (int64_t i = 0; i < 3; i++) {
        snprintf(kept, sizeof kept, "%s/checkpoint.kept-unknown-%d.safetensors", room->folder, (int)i + 1);
        assert_int_equal(steps_of(room, kept), 100 + i);
    }
}

/* Fails call 1, 2, ... of the start: both older runs are there, whole, under some name. */
static void faults_while_keeping(void **state)
{
    struct studio *room = *state;
    char kept[160], unknown[160];
    bool reached = true, set_aside;
    kept_name(kept, room, 100);
    snprintf(unknown, sizeof unknown, "%s/checkpoint.kept-unknown-1.safetensors", room->folder); /* it was not read */
    for (int nth = 1; reached; nth++) {
        unlink(kept);
        unlink(unknown);
        place_one(room, room->older, 100);
        place_one(room, room->current, 17);
        fill(room, 2);
        room->position.total_steps = 0;
        fault_arm(FILE_SITES, nth, false, EIO);
        plim_status status = checkpoint_begin(&set_aside, &room->checkpoints, &room->machine, &room->position, NULL);
        reached = fault_disarm();
        bool is_older = steps_of(room, room->older) == 100, is_kept = steps_of(room, kept) == 100;
        assert_true(is_older || is_kept || steps_of(room, unknown) == 100);
        assert_true(steps_of(room, room->older) == 17 || steps_of(room, room->current) == 17);
        assert_true(status != PLIM_OK || !is_older);
        assert_int_equal(budget_usage(room->budget).now, room->held);
    }
}

/* A note that is full ends with a whole character. */
static void notes_end_with_a_character(void **state)
{
    (void)state;
    struct trainer *trainer = calloc(1, sizeof *trainer);
    for (int first = 0; first < 3; first++) {
        memset(trainer->note, 'x', sizeof trainer->note);
        trainer->note[sizeof trainer->note - 12 + (size_t)first] = '\0';
        trainer_tell(trainer, "%s", "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
        size_t bytes = strlen(trainer->note);
        assert_true(bytes > sizeof trainer->note - 5);
        assert_memory_equal(trainer->note + bytes - 3, "\xe2\x82\xac", 3);
    }
    free(trainer);
}

/* The fingerprints of the data come back as they were; a checkpoint without is one without. */
static void fingerprints_come_back(void **state)
{
    struct studio *room = *state;
    struct position position;
    char note[256];
    bool found = false;
    fill(room, 1);
    room->position.data =
        (struct fingerprint){.digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                             .files = 1281167,
                             .bytes = (uint64_t)1 << 45,
                             .changed = 1763350000,
                             .name = "a \"name\" with \\ in it"};
    assert_int_equal(save(room, NULL), PLIM_OK);
    assert_int_equal(load(room, &found, &position, note, NULL), PLIM_OK);
    const struct fingerprint *saved = &room->position.data; /* by field: there is padding behind the digest */
    assert_string_equal(position.data.digest, saved->digest);
    assert_int_equal(position.data.files, saved->files);
    assert_int_equal(position.data.bytes, saved->bytes);
    assert_int_equal(position.data.changed, saved->changed);
    assert_string_equal(position.data.name, saved->name);
    assert_string_equal(position.validation.digest, "");
}

/* A newest file that was passed over must not take the place of the whole one before it. */
static void a_broken_newest_is_replaced_first(void **state)
{
    struct studio *room = *state;
    char note[256];
    save_generation(room, 1);
    save_generation(room, 2);
    write_whole(room->current, (const uint8_t *)"12345678", 8);
    assert_int_equal(load_generation(room, note), 1);
    fill(room, 3);
    fault_arm(FAULT_RENAME, 1, true, EIO); /* a save that ends before anything has its name */
    assert_int_equal(save(room, NULL), PLIM_IO);
    assert_true(fault_disarm());
    assert_int_equal(generation_in(room, room->previous), 1);
    save_generation(room, 3);
    holds(room, 3, 1, 0);
    save_generation(room, 4);
    holds(room, 4, 3, 0);
}

/* All files that are there together are proved: two more than the one that is written. */
static void a_disk_without_room_shows_at_the_start(void **state)
{
    struct studio *room = *state;
    plim_error error = {0};
    bool set_aside;
    int64_t writes;
    begin(room, 1);
    save_generation(room, 2);
    fault_arm(FAULT_WRITE, INT64_MAX, false, ENOSPC);
    assert_int_equal(checkpoint_rehearse(&room->checkpoints, &room->machine, &room->position, &error), PLIM_OK);
    writes = fault_calls(); /* current and previous are there: nothing more to prove */
    fault_disarm();
    assert_int_equal(unlink(room->previous), 0);
    fault_arm(FAULT_WRITE, writes + 1, false, ENOSPC);
    assert_int_equal(checkpoint_rehearse(&room->checkpoints, &room->machine, &room->position, &error), PLIM_IO);
    assert_true(fault_disarm());
    assert_non_null(strstr(error.message, "No space left"));
    assert_string_equal(error.where, room->folder);
    fault_arm(FAULT_WRITE, writes + 1, false, ENOSPC);
    assert_int_equal(checkpoint_begin(&set_aside, &room->checkpoints, &room->machine, &room->position, &error),
                     PLIM_IO);
    assert_true(fault_disarm());
    holds(room, 2, 0, 0);                                  /* nothing of the older run is gone */
    fault_arm(FAULT_WRITE, writes + 1, false, EOPNOTSUPP); /* a file system that promises nothing */
    assert_int_equal(checkpoint_begin(&set_aside, &room->checkpoints, &room->machine, &room->position, &error),
                     PLIM_OK);
    assert_true(fault_disarm());
}

static void the_length_is_known_before(void **state)
{
    struct studio *room = *state;
    struct stat facts;
    save_generation(room, 1);
    assert_int_equal(stat(room->current, &facts), 0);
    uint64_t most = checkpoint_bytes(&room->program, false);
    assert_true((uint64_t)facts.st_size <= most && most <= (uint64_t)facts.st_size + 8192);
    assert_true(checkpoint_bytes(&room->program, true) < most);
}

static void weights_that_could_not_be_saved_show_at_the_start(void **state)
{
    struct studio *room = *state;
    char path[160];
    plim_error error = {0};
    snprintf(path, sizeof path, "%s/none/weights.safetensors", room->folder);
    assert_int_equal(weights_rehearse(path, &room->machine, &error), PLIM_IO);
    assert_int_equal(weights_rehearse(room->folder, &room->machine, &error), PLIM_IO);
    assert_non_null(strstr(error.message, "folder"));
    snprintf(path, sizeof path, "%s/weights.safetensors", room->folder);
    assert_int_equal(weights_rehearse(path, &room->machine, &error), PLIM_OK);
    assert_false(there(path));
    strcat(path, ".partial");
    assert_false(there(path));
}

static void takes_no_more_than_it_says(void **state)
{
    struct studio *room = *state;
    char note[256];
    uint64_t cost = checkpoint_cost(&room->program);
    struct budget *wide = room->budget, *narrow = NULL;
    assert_int_equal(budget_make(&narrow, BUDGET_UNLIMITED, NULL), PLIM_OK);
    assert_int_equal(budget_limit(narrow, budget_usage(narrow).now + cost, NULL), PLIM_OK);
    room->machine.budget = narrow;
    assert_int_equal(checkpoint_folder_open(&room->checkpoints, room->folder, narrow, NULL), PLIM_OK);
    save_generation(room, 1);
    begin(room, 2);
    assert_int_equal(checkpoint_rehearse(&room->checkpoints, &room->machine, &room->position, NULL), PLIM_OK);
    assert_int_equal(weights_rehearse(room->older, &room->machine, NULL), PLIM_OK);
    save_generation(room, 3);
    assert_int_equal(load_generation(room, note), 3);
    checkpoint_folder_close(&room->checkpoints);
    room->machine.budget = wide;
    budget_free(narrow);
}

/* A name of 1 MB: what is predicted is what is taken, within 4 MiB. */
static void the_cost_of_long_names(void **state)
{
    struct studio *room = *state;
    enum { LONG = 1000000 };
    char *names = malloc(4 * (LONG + 1));
    struct budget *own = NULL, *wide = room->budget;
    for (int i = 0; i < 4; i++) {
        memset(names + i * (LONG + 1), 'a' + i, LONG);
        names[i * (LONG + 1) + LONG] = 0;
        room->tensor[i].name = names + i * (LONG + 1);
    }
    assert_int_equal(budget_make(&own, BUDGET_UNLIMITED, NULL), PLIM_OK);
    room->machine.budget = own;
    uint64_t before = budget_usage(own).now, cost = checkpoint_cost(&room->program);
    assert_int_equal(save(room, NULL), PLIM_OK);
    uint64_t taken = budget_usage(own).peak - before;
    assert_true(taken <= cost && cost - taken < 1 << 20);
    room->machine.budget = wide;
    budget_free(own);
    free(names);
}

/* ---- damage ---- */

static void every_flipped_bit_is_found(void **state)
{
    struct studio *room = *state;
    static uint8_t whole[16384];
    struct position position;
    char note[256];
    bool found;
    plim_error error;
    save_generation(room, 1);
    size_t bytes = read_whole(room->current, whole, sizeof whole);
    for (size_t i = 0; i < bytes; i++) {
        /* Every bit of header and data; of the blanks between them some. */
        int step = whole[i] == ' ' && i % 16 ? 8 : 1;
        for (int bit = 0; bit < 8; bit += step) {
            whole[i] ^= (uint8_t)(1 << bit);
            write_whole(room->current, whole, bytes);
            whole[i] ^= (uint8_t)(1 << bit);
            plim_status status = load(room, &found, &position, note, &error);
            if (status != PLIM_BAD_DATA)
                fail_msg("bit %d of byte %zu was not found", bit, i);
            for (size_t k = 0; k < sizeof room->tensor_arena; k++)
                assert_int_equal(room->tensor_arena[k], 0); /* nothing was put into place */
        }
    }
}

static void truncated_newest_is_passed_over(void **state)
{
    struct studio *room = *state;
    static uint8_t whole[16384];
    char note[256];
    save_generation(room, 1);
    save_generation(room, 2);
    size_t bytes = read_whole(room->current, whole, sizeof whole);
    for (size_t left = 0; left < bytes; left += left < 16 ? 1 : 97) {
        write_whole(room->current, whole, left);
        assert_int_equal(load_generation(room, note), 1);
        assert_non_null(strstr(note, CHECKPOINT_NAME));
    }
    assert_int_equal(unlink(room->current), 0); /* as after a kill between the two renames */
    assert_int_equal(load_generation(room, note), 1);
    assert_non_null(strstr(note, "missing"));
    save_generation(room, 3);
    assert_int_equal(load_generation(room, note), 3);
}

static void both_damaged_is_an_error(void **state)
{
    struct studio *room = *state;
    struct position position;
    bool found = false;
    char note[256];
    plim_error error = {0};
    save_generation(room, 1);
    save_generation(room, 2);
    write_whole(room->current, (const uint8_t *)"12345678", 8);
    write_whole(room->previous, (const uint8_t *)"", 0);
    assert_int_equal(load(room, &found, &position, note, &error), PLIM_BAD_DATA);
    assert_false(found);
}

/* ---- what does not fit ---- */

static void other_models_are_refused(void **state)
{
    struct studio *room = *state;
    struct position position;
    bool found = false;
    char note[256];
    plim_error error = {0};
    save_generation(room, 1);
    save_generation(room, 2); /* whole, but another model's: the one before is no way out */
    room->tensor[1].shape.dim[0] = 8;
    assert_int_equal(load(room, &found, &position, note, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "dense/bias"));
    assert_non_null(strstr(error.message, "(9,)"));
    room->tensor[1].shape.dim[0] = 9;
    room->tensor[0].name = "dense_1/kernel";
    assert_int_equal(load(room, &found, &position, note, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "dense_1/kernel"));
    room->tensor[0].name = "dense/kernel";
    room->program.persistent_count = 3;
    assert_int_equal(load(room, &found, &position, note, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "optimizer/iteration"));
    room->program.persistent_count = 4;
    assert_int_equal(load_generation(room, note), 2);
}

/* Sealed, and yet no run of ours wrote it. */
static void counts_that_no_run_has_reached(void **state)
{
    struct studio *room = *state;
    struct position position;
    bool found = false;
    char note[256];
    plim_error error = {0};
    static const int64_t most = (int64_t)1 << 53, iterations[] = {most + 1, INT64_MAX, -1, INT64_MIN};
    for (int i = 0; i < COUNT(iterations); i++) {
        memcpy(room->tensor_arena + room->offset[3], &iterations[i], sizeof iterations[i]);
        assert_int_equal(save(room, NULL), PLIM_OK);
        assert_int_equal(load(room, &found, &position, note, &error), PLIM_BAD_DATA);
        assert_non_null(strstr(error.message, "iteration"));
        assert_int_equal(room->tensor_arena[room->offset[0]], 0); /* nothing was read into place */
    }
    memcpy(room->tensor_arena + room->offset[3], &most, sizeof most);
    assert_int_equal(save(room, NULL), PLIM_OK);
    assert_int_equal(load(room, &found, &position, note, &error), PLIM_OK);
    room->position.step = most + 1;
    assert_int_equal(save(room, NULL), PLIM_OK);
    assert_int_equal(load(room, &found, &position, note, &error), PLIM_BAD_DATA);
}

/* What was there before stays, what this run made goes. */
static void a_start_that_failed_leaves_nothing(void **state)
{
    struct studio *room = *state;
    char folder[128];
    bool set_aside;
    snprintf(folder, sizeof folder, "%s/new", room->folder);
    assert_int_equal(checkpoint_folder_open(&room->checkpoints, folder, room->budget, NULL), PLIM_OK);
    checkpoint_folder_discard(&room->checkpoints);
    assert_false(there(folder));
    assert_int_equal(checkpoint_folder_open(&room->checkpoints, folder, room->budget, NULL), PLIM_OK);
    assert_int_equal(checkpoint_begin(&set_aside, &room->checkpoints, &room->machine, &room->position, NULL), PLIM_OK);
    checkpoint_folder_discard(&room->checkpoints);
    assert_false(there(folder));
    assert_int_equal(checkpoint_folder_open(&room->checkpoints, room->folder, room->budget, NULL), PLIM_OK);
    save_generation(room, 3);
    checkpoint_folder_discard(&room->checkpoints);
    assert_true(there(room->current));
}

static void weights_are_checked_before_they_are_loaded(void **state)
{
    struct studio *room = *state;
    uint64_t cost = 0;
    plim_error error = {0};
    save_generation(room, 1);
    assert_int_equal(weights_check(&cost, room->current, &room->program, room->budget, &error), PLIM_OK);
    assert_true(cost > 500 && cost < 64 * 1024);
    uint64_t now = budget_usage(room->budget).now;
    assert_int_equal(budget_limit(room->budget, now + cost, NULL), PLIM_OK);
    assert_int_equal(weights_load(room->current, &room->machine, &error), PLIM_OK);
    assert_int_equal(budget_limit(room->budget, now + cost / 2, NULL), PLIM_OK);
    assert_int_equal(weights_load(room->current, &room->machine, &error), PLIM_OVER_BUDGET);
    assert_int_equal(budget_limit(room->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    room->tensor[1].shape.dim[0] = 8;
    assert_int_equal(weights_check(&cost, room->current, &room->program, room->budget, &error), PLIM_BAD_DATA);
}

static void weights_alone(void **state)
{
    struct studio *room = *state;
    char path[128], digest[65], again[65], optimizer[65];
    uint8_t states[1024] = {0};
    snprintf(path, sizeof path, "%s/weights.safetensors", room->folder);
    fill(room, 4);
    assert_int_equal(digest_weights(digest, &room->machine, KIND_WEIGHT, NULL), PLIM_OK);
    assert_int_equal(digest_weights(optimizer, &room->machine, KIND_STATE, NULL), PLIM_OK);
    assert_string_not_equal(digest, optimizer);
    assert_int_equal(weights_save(path, &room->machine, NULL), PLIM_OK);
    memset(room->tensor_arena, 0, sizeof room->tensor_arena);
    assert_int_equal(weights_load(path, &room->machine, NULL), PLIM_OK);
    assert_int_equal(digest_weights(again, &room->machine, KIND_WEIGHT, NULL), PLIM_OK);
    assert_string_equal(digest, again);
    assert_memory_equal(room->tensor_arena + room->offset[2], states, sizeof states);
    /* A checkpoint has weights, too. */
    save_generation(room, 5);
    assert_int_equal(digest_weights(digest, &room->machine, KIND_WEIGHT, NULL), PLIM_OK);
    memset(room->tensor_arena, 0, sizeof room->tensor_arena);
    assert_int_equal(weights_load(room->current, &room->machine, NULL), PLIM_OK);
    assert_int_equal(digest_weights(again, &room->machine, KIND_WEIGHT, NULL), PLIM_OK);
    assert_string_equal(digest, again);
    /* The order of the program is not part of the digest; names are. */
    struct tensor *first = room->persistent[0];
    room->persistent[0] = room->persistent[1];
    room->persistent[1] = first;
    uint64_t offset = room->offset[0];
    room->offset[0] = room->offset[1];
    room->offset[1] = offset;
    assert_int_equal(digest_weights(again, &room->machine, KIND_WEIGHT, NULL), PLIM_OK);
    assert_string_equal(digest, again);
    room->tensor[0].name = "dense/other";
    assert_int_equal(digest_weights(again, &room->machine, KIND_WEIGHT, NULL), PLIM_OK);
    assert_string_not_equal(digest, again);
    assert_int_equal(weights_load(path, &room->machine, NULL), PLIM_BAD_DATA);
}

/* ---- faults ---- */

/* Every call of the sites fails once, or from then on, until a save needs no
   more calls. Whatever happens, a checkpoint of the last two can be loaded. */
static void sweep_saving(struct studio *room, unsigned sites, bool forever, int number)
{
    char note[256], partial[256];
    plim_error error;
    bool reached = true;
    int newest = 2, nth;
    snprintf(partial, sizeof partial, "%s.partial", room->current);
    save_generation(room, 1);
    save_generation(room, 2);
    for (nth = 1; reached; nth++) {
        assert_true(nth < 1000);
        fill(room, newest + 1);
        error = (plim_error){0};
        fault_arm(sites, nth, forever, number);
        plim_status status = save(room, &error);
        reached = fault_disarm();
        assert_true(!(status != PLIM_OK && error.message[0] == '\0'));
        if (!reached || number == 0)
            assert_int_equal(status, PLIM_OK);
        if (!forever)
            assert_false(there(partial));
        int loaded = load_generation(room, note);
        if (loaded != newest + 1 && loaded != newest)
            fail_msg("fault %d: generation %d came back, saved were %d and %d", nth, loaded, newest, newest + 1);
        if (status == PLIM_OK)
            assert_int_equal(loaded, newest + 1);
        else if (!forever)
            assert_true(there(room->current)); /* under its name */
        newest = loaded;
        assert_int_equal(budget_usage(room->budget).now, room->held);
        if (!there(room->previous))
            save_generation(room, ++newest); /* so that the next one has both again */
        if (!there(room->previous))
            save_generation(room, ++newest);
    }
    assert_true(nth > 3);
}

static void faults_while_saving(void **state)
{
    struct studio *room = *state;
    sweep_saving(room, FILE_SITES, false, EIO);
    sweep_saving(room, FILE_SITES, true, EIO);
    sweep_saving(room, FAULT_WRITE, false, ENOSPC);
    sweep_saving(room, FAULT_WRITE, true, ENOSPC);
    sweep_saving(room, FAULT_WRITE, false, 0); /* short writes are gone on with */
    sweep_saving(room, FAULT_ALLOCATE, false, ENOMEM);
    sweep_saving(room, FAULT_ALLOCATE, true, ENOMEM);
}

static void sweep_loading(struct studio *room, unsigned sites, bool forever, int number)
{
    char note[256];
    bool reached = true;
    for (int nth = 1; reached; nth++) {
        struct position position;
        plim_error error = {0};
        bool found = false;
        assert_true(nth < 1000);
        fault_arm(sites, nth, forever, number);
        plim_status status = load(room, &found, &position, note, &error);
        reached = fault_disarm();
        assert_true(status == PLIM_OK ? found : error.message[0] != '\0');
        if (!reached)
            assert_int_equal(status, PLIM_OK);
        assert_int_equal(budget_usage(room->budget).now, room->held);
    }
}

static void faults_while_loading(void **state)
{
    struct studio *room = *state;
    save_generation(room, 1);
    save_generation(room, 2);
    sweep_loading(room, FILE_SITES, false, EIO);
    sweep_loading(room, FILE_SITES, true, EIO);
    sweep_loading(room, FAULT_ALLOCATE, false, ENOMEM);
    sweep_loading(room, FAULT_ALLOCATE, true, ENOMEM);
    sweep_loading(room, FAULT_READ, false, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(comes_back_as_it_was),
        TEST(not_a_number_comes_back),
        TEST(one_run_at_a_time),
        TEST(missing_folders_are_made),
        TEST(a_new_run_sets_the_older_one_aside),
        TEST(in_doubt_it_is_set_aside),
        TEST(a_broken_newest_is_replaced_first),
        TEST(a_disk_without_room_shows_at_the_start),
        TEST(the_length_is_known_before),
        TEST(weights_that_could_not_be_saved_show_at_the_start),
        TEST(takes_no_more_than_it_says),
        TEST(the_cost_of_long_names),
        TEST(every_flipped_bit_is_found),
        TEST(truncated_newest_is_passed_over),
        TEST(both_damaged_is_an_error),
        TEST(other_models_are_refused),
        TEST(counts_that_no_run_has_reached),
        TEST(a_start_that_failed_leaves_nothing),
        TEST(weights_are_checked_before_they_are_loaded),
        TEST(weights_alone),
        TEST(faults_while_saving),
        TEST(faults_while_beginning),
        TEST(more_steps_are_kept),
        TEST(eight_are_kept),
        TEST(unknown_ones_are_kept),
        TEST(faults_while_keeping),
        TEST(notes_end_with_a_character),
        TEST(fingerprints_come_back),
        TEST(faults_while_loading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
