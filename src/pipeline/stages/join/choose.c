/* choose.c - tf.data's choose_from_datasets and sample_from_datasets: the next input is chosen by a dataset of indices,
   or at random with weights.

   As in tf.data, a choice of an input that has ended is skipped, or it ends the whole dataset (stop_on_empty_dataset).
   Random choice p of an epoch is a function of (seed, epoch, p) alone. */
#include <string.h>

#include "base/numbers/checked.h"
#include "pipeline/stages/join/join.h"

#define CHOICES 64
/* The smallest share of the weights that an input may have. Once the other inputs have ended, every draw that does not
   choose it is skipped, so each element costs 1 / share draws. */
#define LEAST_SHARE  1e-6
#define GATHER_BYTES ((uint64_t)64 * 1024)

struct choose_options {
    bool draws; /* true: sample_from_datasets */
    bool stop_on_empty;
    int inputs;                /* without the dataset of choices, which is the last input */
    double until[MOST_INPUTS]; /* sample: cumulative weights; the last one is 1 */
};

struct choose_stream {
    struct stream stream;
    const struct choose_options *options;
    uint64_t key;
    int64_t given; /* elements yielded this epoch: the index of the next one */
    int64_t drawn; /* choices made this epoch */
    int left;      /* number of inputs that have not ended */
    bool over;
    int choice[CHOICES];
    int at, count; /* choice[at..count) are still to be used */
    struct chunk rows;
    bool ended[MOST_INPUTS];
    void *widen;
    struct chunk part; /* rows of one input before gather() moves them; capacity 0: one pull per run of choices */
};

static int inputs_of(const struct dataset *dataset)
{
    return ((const struct choose_options *)dataset->options)->inputs;
}

static uint64_t choices_bytes(const struct dataset *dataset)
{
    const struct choose_options *options = dataset->options;
    const struct dataset *choices = join_input(dataset, options->inputs);
    return options->draws ? 0 : chunk_bytes(choices->spec, CHOICES, choices->value_bytes);
}

/* The number of choices that gather() serves with one pull per input; 0: gather() is not used. It requires that no
   column is variable-size, because only then can rows be filled in any order. */
static int64_t gather_rows(const struct dataset *dataset)
{
    const struct spec *spec = dataset->spec;
    uint64_t rows = spec->element_bytes ? GATHER_BYTES / spec->element_bytes : CHOICES;
    if (spec_has_values(spec) || rows < 2)
        return 0;
    return rows < CHOICES ? (int64_t)rows : CHOICES;
}

static uint64_t part_bytes(const struct dataset *dataset)
{
    return gather_rows(dataset) ? chunk_bytes(dataset->spec, gather_rows(dataset), 0) : 0;
}

static uint64_t choose_bytes(const struct dataset *dataset)
{
    uint64_t own = add_most(round_up(sizeof(struct choose_stream), 64), choices_bytes(dataset));
    return add_most(add_most(own, part_bytes(dataset)), widen_bytes(dataset, inputs_of(dataset)));
}

static plim_status choose_start(struct stream *stream, plim_error *error)
{
    struct choose_stream *self = (struct choose_stream *)stream;
    uint8_t *at = (uint8_t *)stream + round_up(sizeof *self, 64);
    (void)error;
    self->options = stream->dataset->options;
    if (!self->options->draws) {
        const struct dataset *choices = join_input(stream->dataset, self->options->inputs);
        chunk_lay(&self->rows, at, choices->spec, CHOICES, choices->value_bytes);
    }
    at += choices_bytes(stream->dataset);
    if (gather_rows(stream->dataset))
        chunk_lay(&self->part, at, stream->dataset->spec, gather_rows(stream->dataset), 0);
    self->widen = at + part_bytes(stream->dataset);
    return PLIM_OK;
}

static plim_status choose_rewind(struct stream *stream, uint64_t epoch, plim_error *error)
{
    struct choose_stream *self = (struct choose_stream *)stream;
    self->key = random_key(stream_key(stream, epoch), stream->dataset->seed, 0);
    self->given = self->drawn = 0;
    self->at = self->count = 0;
    self->left = self->options->inputs;
    self->over = false;
    memset(self->ended, 0, sizeof self->ended);
    return stream_rewind_inputs(stream, epoch, error);
}

/* ---- choices ---- */

/* Draws an input: binary search of 53 random bits in the cumulative weights. */
static int draw(const struct choose_stream *self, int64_t number)
{
    const struct choose_options *options = self->options;
    uint32_t bits[4];
    random_block(bits, self->key, 0, (uint64_t)number);
    double u = (double)((((uint64_t)bits[0] << 32) | bits[1]) >> 11) * 0x1p-53;
    int low = 0, high = options->inputs - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (u < options->until[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static plim_status read_choices(struct choose_stream *self, plim_error *error)
{
    struct stream *stream = &self->stream;
    int inputs = self->options->inputs;
    TRY(stream_pull(stream_input(stream, inputs), &self->rows, stream->careful ? 1 : CHOICES, error));
    for (int64_t i = 0; i < self->rows.count; i++) {
        int64_t choice;
        memcpy(&choice, chunk_row(&self->rows, 0, i), sizeof choice);
        if (choice < 0 || choice >= inputs)
            return fail(error, PLIM_BAD_DATA, "choose_from_datasets: choice %lld is %lld, there are %d data sets",
                        (long long)(self->drawn + i), (long long)choice, inputs);
        self->choice[i] = (int)choice;
    }
    self->count = (int)self->rows.count;
    return PLIM_OK;
}

static plim_status more_choices(struct choose_stream *self, plim_error *error)
{
    self->at = self->count = 0;
    if (self->options->draws) {
        for (int i = 0; i < CHOICES; i++)
            self->choice[i] = draw(self, self->drawn + i);
        self->count = CHOICES;
    } else {
        TRY(read_choices(self, error));
    }
    self->drawn += self->count;
    self->over = self->over || self->count == 0;
    return PLIM_OK;
}

/* Finds the next chosen input that has not ended, and how many consecutive choices select it. *run == 0: the epoch is
   over. */
static plim_status next_run(int *input, int64_t *run, struct choose_stream *self, plim_error *error)
{
    *run = 0;
    while (!self->over && self->left) {
        if (self->at == self->count)
            TRY(more_choices(self, error));
        while (self->at < self->count && self->ended[self->choice[self->at]])
            self->at++;
        if (self->at == self->count)
            continue;
        *input = self->choice[self->at];
        while (self->at + *run < self->count && self->choice[self->at + *run] == *input)
            (*run)++;
        return PLIM_OK;
    }
    return PLIM_OK;
}

static void note_end(struct choose_stream *self, int input)
{
    self->ended[input] = true;
    self->left--;
    self->over = self->over || self->options->stop_on_empty;
}

/* ---- running ---- */

static void number_rows(struct choose_stream *self, struct chunk *to)
{
    chunk_number(to, self->given, self->stream.epoch);
    self->given += to->count;
}

/* Pulls `count` rows of one input and copies them to rows place[] of `to`. Sets there[i] for each row i filled. */
static plim_status gather_input(bool *there, struct choose_stream *self, int input, const int *place, int64_t count,
                                struct chunk *to, plim_error *error)
{
    const struct spec *spec = to->spec;
    for (int64_t got = 0; got < count; got += self->part.count) {
        TRY(stream_pull(stream_input(&self->stream, input), &self->part, count - got, error));
        if (!self->part.count) {
            note_end(self, input);
            return PLIM_OK;
        }
        for (int64_t i = 0; i < self->part.count; i++) {
            for (int c = 0; c < spec->column_count; c++)
                memcpy(chunk_row(to, c, place[got + i]), chunk_row(&self->part, c, i), spec->column[c].bytes);
            there[place[got + i]] = true;
        }
    }
    return PLIM_OK;
}

/* Serves the next `count` choices, one input after the other. */
static plim_status gather(bool *there, struct choose_stream *self, int64_t count, struct chunk *to, plim_error *error)
{
    const int *choice = self->choice + self->at;
    bool asked[CHOICES] = {false};
    int place[CHOICES];
    for (int64_t i = 0; i < count; i++) {
        int64_t places = 0;
        if (asked[i])
            continue;
        for (int64_t j = i; j < count; j++)
            if (choice[j] == choice[i]) {
                asked[j] = true;
                place[places++] = (int)j;
            }
        if (!self->ended[choice[i]])
            TRY(gather_input(there, self, choice[i], place, places, to, error));
    }
    return PLIM_OK;
}

static plim_status gather_pull(struct choose_stream *self, struct chunk *to, int64_t most, plim_error *error)
{
    while (!self->over && self->left && !to->count) {
        bool there[CHOICES] = {false};
        if (self->at == self->count)
            TRY(more_choices(self, error));
        int64_t count = self->count - self->at < most ? self->count - self->at : most;
        count = count < self->part.capacity ? count : self->part.capacity;
        TRY(gather(there, self, count, to, error));
        for (int64_t i = 0; i < count && (there[i] || !self->options->stop_on_empty); i++)
            if (there[i])
                chunk_move(to, to->count++, i);
        self->at += (int)count;
    }
    number_rows(self, to);
    return PLIM_OK;
}

static plim_status choose_pull(struct stream *stream, struct chunk *to, int64_t most, plim_error *error)
{
    struct choose_stream *self = (struct choose_stream *)stream;
    if (self->part.capacity && !stream->careful)
        return gather_pull(self, to, most, error);
    for (;;) {
        int input = 0;
        int64_t run;
        TRY(next_run(&input, &run, self, error));
        if (!run)
            return PLIM_OK;
        plim_status status = widen_pull(stream, input, self->widen, to, run < most ? run : most, error);
        if (status != PLIM_OK) {
            self->at += status == PLIM_BAD_DATA;
            self->given += status == PLIM_BAD_DATA;
            return status;
        }
        if (to->count) {
            self->at += (int)to->count;
            number_rows(self, to);
            return PLIM_OK;
        }
        note_end(self, input);
    }
}

static plim_status choose_skip(int64_t *passed, struct stream *stream, int64_t count, struct chunk *by,
                               plim_error *error)
{
    struct choose_stream *self = (struct choose_stream *)stream;
    *passed = 0;
    while (*passed < count) {
        int input = 0;
        int64_t run, some, rest = count - *passed;
        TRY(next_run(&input, &run, self, error));
        if (!run)
            break;
        run = run < rest ? run : rest;
        TRY(widen_skip(&some, stream, input, self->widen, run, by, error));
        self->at += (int)some;
        self->given += some;
        *passed += some;
        if (some < run)
            note_end(self, input);
    }
    return PLIM_OK;
}

static const struct stream_type choose_stream = {
    .bytes = choose_bytes,
    .start = choose_start,
    .rewind = choose_rewind,
    .pull = choose_pull,
    .skip = choose_skip,
};

/* ---- building ---- */

static plim_status choose_build(struct dataset *dataset, plim_error *error)
{
    const struct choose_options *options = dataset->options;
    int64_t endless = 0;
    TRY(join_widen(dataset, options->inputs, error));
    for (int i = 0; i < options->inputs; i++)
        endless += join_input(dataset, i)->cardinality == CARDINALITY_INFINITE;
    dataset->cardinality = CARDINALITY_UNKNOWN;
    bool all = endless == options->inputs || (endless && !options->stop_on_empty);
    if (options->draws)
        dataset->cardinality = all ? CARDINALITY_INFINITE : CARDINALITY_UNKNOWN;
    if (options->draws)
        return PLIM_OK;
    const struct dataset *choices = join_input(dataset, options->inputs);
    if (choices->spec->column_count != 1 || choices->spec->column[0].type != TYPE_I64 ||
        choices->spec->column[0].shape.rank != 0)
        return fail(error, PLIM_BAD_JOB, "choose_from_datasets: the choices must be one column of int64 numbers");
    if (endless == options->inputs) /* every choice yields an element */
        dataset->cardinality = choices->cardinality;
    return PLIM_OK;
}

static const struct stage stage_choose = {
    .name = "choose_from_datasets",
    .build = choose_build,
    .stream = &choose_stream,
    .sequential = true,
    .changes_spec = true,
};

static const struct stage stage_sample = {
    .name = "sample_from_datasets",
    .build = choose_build,
    .stream = &choose_stream,
    .sequential = true,
    .changes_spec = true,
};

static struct dataset *choosing(const struct stage *stage, struct dataset *const *datasets, int count,
                                const struct choose_options *options, uint64_t seed)
{
    struct dataset *failed;
    void *rest;
    struct dataset *node = join_stage(&failed, stage, datasets, count, sizeof *options, &rest);
    if (!node)
        return failed;
    node->options = memcpy(rest, options, sizeof *options);
    node->seed = seed;
    return dataset_built(node);
}

struct dataset *dataset_choose_from_datasets(struct dataset *const *datasets, int count, struct dataset *choices,
                                             bool stop_on_empty)
{
    struct dataset *all[MOST_INPUTS + 1];
    const struct choose_options options = {.stop_on_empty = stop_on_empty, .inputs = count};
    if (count < 1 || count >= MOST_INPUTS) {
        plim_error error = {0};
        fail(&error, PLIM_BAD_JOB, "choose_from_datasets: 1 to %d data sets are possible, not %d", MOST_INPUTS - 1,
             count);
        struct dataset *failed = dataset_failed(choices->budget, &error);
        join_unref(datasets, count);
        dataset_unref(choices);
        return failed;
    }
    memcpy(all, datasets, (size_t)count * sizeof *all);
    all[count] = choices;
    return choosing(&stage_choose, all, count + 1, &options, 0);
}

/* Leaves out the datasets of weight 0, as tf.data does: they are never drawn, so the sampling
   would wait forever for their end. */
static plim_status add_weights(struct choose_options *options, struct dataset **all, struct dataset *const *datasets,
                               int count, const double *weights, plim_error *error)
{
    double total = 0, sum = 0;
    for (int i = 0; i < count; i++) {
        double weight = weights ? weights[i] : 1;
        if (!(weight >= 0) || weight > 1e300)
            return fail(error, PLIM_BAD_JOB, "sample_from_datasets: weight %d is %g: must be at least 0", i + 1,
                        weight);
        total += weight;
    }
    if (!(total > 0))
        return fail(error, PLIM_BAD_JOB, "sample_from_datasets: all weights are 0");
    for (int i = 0; i < count; i++) {
        double weight = weights ? weights[i] : 1;
        if (weight == 0)
            continue;
        if (weight < total * LEAST_SHARE)
            return hint(error,
                        fail(error, PLIM_BAD_JOB,
                             "sample_from_datasets: weight %d is %g of %g: its turn would be waited for too long",
                             i + 1, weight, total),
                        "at least a millionth of all weights, or 0");
        sum += weight;
        options->until[options->inputs] = sum / total;
        all[options->inputs++] = datasets[i];
    }
    options->until[options->inputs - 1] = 1;
    return PLIM_OK;
}

struct dataset *dataset_sample_from_datasets(struct dataset *const *datasets, int count, const double *weights,
                                             uint64_t seed, bool stop_on_empty)
{
    struct choose_options options = {.draws = true, .stop_on_empty = stop_on_empty};
    struct dataset *all[MOST_INPUTS];
    plim_error error = {0};
    if (count < 1 || count > MOST_INPUTS)
        return choosing(&stage_sample, datasets, count, &options, seed);
    if (add_weights(&options, all, datasets, count, weights, &error) != PLIM_OK) {
        struct dataset *failed = dataset_failed(datasets[0]->budget, &error);
        join_unref(datasets, count);
        return failed;
    }
    for (int i = 0; i < count; i++)
        if (weights && weights[i] == 0)
            dataset_unref(datasets[i]);
    return choosing(&stage_sample, all, options.inputs, &options, seed);
}
