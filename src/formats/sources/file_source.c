/* file_source.c - many files of one format: whose turn it is, ends of files, damage, the order of files. */
#include "formats/sources/file_source.h"

#include <pthread.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/random.h"
#include "formats/files/cursor.h"
#include "formats/files/interleave_order.h"

#define MOST_TURNS   64
#define LEDGER_BYTES ((uint64_t)4096) /* of a budget's own */
/* Runs of elements whose file is remembered: a run is a whole file, or where files take turns one turn. */
#define TRAIL_FILES 64
#define TRAIL_TURNS 1024

/* Elements `number`.. of an epoch are records `record`.. of a file, up to where the next run begins. */
struct run {
    int64_t number, record;
    int64_t file;
    uint64_t epoch;
};

struct reader {
    struct file_source *source;
    struct budget *budget;
    struct budget *files_budget; /* a part of the other, reserved there: files come and go within it */
    bool reserved;
    uint64_t epoch;
    struct interleave_order order;
    struct held_error held;
    char path[FILE_PATH_MOST + 1];
    int64_t open[MOST_TURNS];
    void *file[MOST_TURNS];
    int64_t which[MOST_TURNS];  /* file of the list is open there */
    int64_t record[MOST_TURNS]; /* of that file comes next */
    int64_t number;             /* of the next element of this epoch; bad ones count */
    pthread_mutex_t lock;       /* of the trail: another thread's error may ask for it */
    uint64_t runs;              /* remembered so far; run i is at trail[i % trail_most] */
    struct run trail[];         /* trail_most(source) of them */
};

/* ---- where elements are from ---- */

static uint64_t trail_most(const struct file_source *source)
{
    return source->turns > 1 ? TRAIL_TURNS : TRAIL_FILES;
}

static size_t reader_struct_bytes(const struct file_source *source)
{
    return sizeof(struct reader) + (size_t)trail_most(source) * sizeof(struct run);
}

static bool goes_on(const struct run *last, const struct run *next)
{
    return last->epoch == next->epoch && last->file == next->file &&
           next->number - last->number == next->record - last->record;
}

/* `count` elements of the file at this place were given. */
static void note_run(struct reader *reader, int64_t place, int64_t count)
{
    uint64_t most = trail_most(reader->source);
    const struct run run = {reader->number, reader->record[place], reader->which[place], reader->epoch};
    pthread_mutex_lock(&reader->lock);
    if (!reader->runs || !goes_on(&reader->trail[(reader->runs - 1) % most], &run))
        reader->trail[reader->runs++ % most] = run;
    pthread_mutex_unlock(&reader->lock);
    reader->number += count;
    reader->record[place] += count;
}

static bool find_run(struct run *out, struct reader *reader, uint64_t epoch, int64_t number)
{
    uint64_t most = trail_most(reader->source), kept = reader->runs < most ? reader->runs : most;
    for (uint64_t back = 1; back <= kept; back++) {
        *out = reader->trail[(reader->runs - back) % most];
        if (out->epoch == epoch && out->number <= number)
            return true;
    }
    return false;
}

bool file_source_describe(char out[256], struct reader *reader, uint64_t epoch, int64_t number)
{
    struct file_source *source = reader->source;
    char path[FILE_PATH_MOST + 1];
    struct run run;
    uint64_t byte = SOURCE_BYTE_UNKNOWN;
    pthread_mutex_lock(&reader->lock);
    bool found = find_run(&run, reader, epoch, number);
    pthread_mutex_unlock(&reader->lock);
    if (!found)
        return false;
    int64_t record = run.record + (number - run.number);
    file_list_path(path, source->base.files, run.file);
    if (source->format->find && !source->format->find(&byte, source, path, record))
        byte = SOURCE_BYTE_UNKNOWN;
    source_place(out, path, record, byte);
    return true;
}

int64_t file_source_file_of(const int64_t *first, int64_t files, int64_t number)
{
    int64_t low = 0, high = files;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (first[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void file_source_place(char out[256], const struct file_source *source, int64_t file, int64_t record, uint64_t byte)
{
    char path[FILE_PATH_MOST + 1];
    file_list_path(path, source->base.files, file);
    source_place(out, path, record, byte);
}

/* ---- whose turn it is ---- */

/* Which file comes at this place of the epoch. */
static int64_t file_at(const struct reader *reader, int64_t place)
{
    const struct file_source *source = reader->source;
    if (!source->options.shuffle_files)
        return place;
    struct permutation permutation;
    uint64_t count = (uint64_t)file_list_count(source->base.files);
    permutation_init(&permutation, count, random_key(source->options.seed, reader->epoch, UINT64_MAX - 1), 0);
    return (int64_t)permutation_at(&permutation, (uint64_t)place);
}

/* A file that is none of the format is over at once; one that cannot be opened is asked for again. */
static plim_status open_file(struct reader *reader, int64_t place, int64_t number, plim_error *error)
{
    struct file_source *source = reader->source;
    reader->which[place] = file_at(reader, number);
    reader->record[place] = 0;
    file_list_path(reader->path, source->base.files, reader->which[place]);
    plim_status status = file_source_check_packing(source, reader->files_budget, reader->path, error);
    if (status == PLIM_OK)
        status = source->format->open(&reader->file[place], source, reader->files_budget, reader->path, error);
    reader->number += status == PLIM_BAD_DATA;
    if (status == PLIM_BAD_DATA)
        interleave_ended(&reader->order);
    else if (status != PLIM_OK)
        interleave_not_opened(&reader->order, false);
    return status;
}

/* The place whose file gives the next element, or -1 at the end. */
static plim_status whose_turn(int64_t *place, struct reader *reader, plim_error *error)
{
    int64_t opens;
    *place = interleave_turn(&opens, &reader->order);
    return opens < 0 ? PLIM_OK : open_file(reader, *place, opens, error);
}

static void end_turn(struct reader *reader, int64_t place)
{
    reader->source->format->close(reader->file[place]);
    reader->file[place] = NULL;
    interleave_ended(&reader->order);
}

static int64_t turn_left(const struct reader *reader, int64_t most)
{
    int64_t left = interleave_left(&reader->order);
    return left < most ? left : most;
}

/* A bad element is behind us when its error is reported. It takes no turn, as in tf.data. */
static plim_status pass_damage(struct reader *reader, int64_t place, plim_status status)
{
    const struct file_format *format = reader->source->format;
    reader->number += status == PLIM_BAD_DATA;
    reader->record[place] += status == PLIM_BAD_DATA;
    if (status == PLIM_BAD_DATA && format->pass && !format->pass(reader->file[place]))
        end_turn(reader, place);
    return status;
}

/* ---- reading ---- */

static bool is_full(const struct value_buffer *values)
{
    return values && values->wanted;
}

/* Elements of one file. None: the epoch is over, or the value buffer is full. */
static plim_status read_turn(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target,
                             plim_error *error)
{
    struct file_source *source = reader->source;
    int64_t place;
    *got = 0;
    for (;;) {
        TRY(whose_turn(&place, reader, error));
        if (place < 0)
            return PLIM_OK;
        plim_status status =
            source->format->next(got, source, reader->file[place], turn_left(reader, most), target, error);
        if (status != PLIM_OK) {
            *got = 0;
            return pass_damage(reader, place, status);
        }
        if (*got) {
            note_run(reader, place, *got);
            interleave_gave(&reader->order, *got);
            return PLIM_OK;
        }
        if (is_full(target->values))
            return PLIM_OK;
        end_turn(reader, place);
    }
}

/* The rows behind those that are there already. */
static struct row_target behind(void **to, const struct spec *spec, const struct row_target *target, int64_t rows)
{
    for (int c = 0; c < spec->column_count; c++)
        to[c] = (char *)target->to[c] + (uint64_t)rows * target->stride[c];
    return (struct row_target){.to = to, .stride = target->stride, .values = target->values};
}

/* Rows until the call is full, the buffer is, or something is wrong: what is wrong behind good elements is reported by
   the next call. */
static plim_status read_turns(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target)
{
    const struct file_source *source = reader->source;
    void *to[MOST_COLUMNS];
    for (int64_t some = 1; *got < most && some; *got += some) {
        const struct row_target rest = behind(to, &source->base.spec, target, *got);
        TRY(read_turn(&some, reader, most - *got, &rest, &reader->held.error));
        if (source->turns == 1) { /* rows may refer to the file's own memory: one call */
            *got += some;
            break;
        }
    }
    return PLIM_OK;
}

plim_status file_source_next(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target,
                             plim_error *error)
{
    *got = 0;
    TRY(held_error_report(&reader->held, error));
    reader->held.status = read_turns(got, reader, most, target);
    if (!*got)
        return held_error_report(&reader->held, error);
    if (target->values)
        target->values->wanted = 0; /* there are some: whoever comes next is asked again, with an empty buffer */
    return PLIM_OK;
}

plim_status file_source_skip(int64_t *passed, struct reader *reader, int64_t count, plim_error *error)
{
    const struct file_format *format = reader->source->format;
    *passed = 0;
    TRY(held_error_report(&reader->held, error));
    while (*passed < count) {
        int64_t place, some = 0;
        TRY(whose_turn(&place, reader, error));
        if (place < 0)
            return PLIM_OK;
        int64_t wanted = turn_left(reader, count - *passed);
        plim_status status = format->skip(&some, reader->file[place], wanted, error);
        *passed += some;
        reader->number += some;
        reader->record[place] += some;
        if (status != PLIM_OK) {
            interleave_gave(&reader->order, some);
            return pass_damage(reader, place, status);
        }
        if (some < wanted)
            end_turn(reader, place);
        else
            interleave_gave(&reader->order, some);
    }
    return PLIM_OK;
}

/* ---- a reader ---- */

static void close_files(struct reader *reader)
{
    for (int i = 0; i < reader->source->turns; i++) {
        if (reader->file[i])
            reader->source->format->close(reader->file[i]);
        reader->file[i] = NULL;
    }
}

plim_status file_source_rewind(struct reader *reader, uint64_t epoch, plim_error *error)
{
    const struct file_source *source = reader->source;
    int64_t block = source->turns > 1 ? source->options.block_length : INT64_MAX;
    (void)error;
    close_files(reader);
    reader->epoch = epoch;
    reader->number = 0;
    reader->held.status = PLIM_OK;
    interleave_begin(&reader->order, file_list_count(source->base.files), source->turns, block, reader->open);
    return PLIM_OK;
}

/* What all open files may take together. */
static uint64_t files_bytes(const struct file_source *source)
{
    return LEDGER_BYTES + (uint64_t)source->turns * source->file_bytes;
}

static plim_status start_reader(struct reader *reader, plim_error *error)
{
    uint64_t bytes = files_bytes(reader->source);
    TRY(budget_reserve(reader->budget, TAG_FORMATS, bytes, error));
    reader->reserved = true;
    TRY(budget_make(&reader->files_budget, bytes, error));
    return file_source_rewind(reader, 0, error);
}

plim_status file_source_reader_open(struct reader **out, struct source *base, struct budget *budget, plim_error *error)
{
    size_t bytes = reader_struct_bytes((struct file_source *)base);
    struct reader *reader;
    TRY(budget_alloc(&reader, budget, TAG_FORMATS, bytes, error));
    reader->source = (struct file_source *)base;
    reader->budget = budget;
    pthread_mutex_init(&reader->lock, NULL);
    return OPENED(out, reader, file_source_reader_close, start_reader(reader, error));
}

void file_source_reader_close(struct reader *reader)
{
    close_files(reader);
    budget_free(reader->files_budget);
    if (reader->reserved)
        budget_release(reader->budget, TAG_FORMATS, files_bytes(reader->source));
    pthread_mutex_destroy(&reader->lock);
    budget_give(reader->budget, TAG_FORMATS, reader, reader_struct_bytes(reader->source));
}

/* ---- the source ---- */

static plim_status check_turns(const struct turn_options *options, plim_error *error)
{
    if (options->cycle_length != CYCLE_AUTO && (options->cycle_length < 1 || options->cycle_length > MOST_TURNS))
        return fail(error, PLIM_BAD_JOB, "interleave: cycle_length must be auto or 1 to %d", MOST_TURNS);
    if (options->block_length < 1)
        return fail(error, PLIM_BAD_JOB, "interleave: block_length must be at least 1");
    return PLIM_OK;
}

static int count_turns(const struct turn_options *options, int64_t files)
{
    int64_t turns = options->cycle_length == CYCLE_AUTO ? 8 : options->cycle_length;
    return (int)(files < 1 ? 1 : turns < files ? turns : files);
}

plim_status file_source_make(struct file_source **out, const struct source_type *type, const struct file_format *format,
                             struct budget *budget, const struct file_choice *choice, plim_error *error)
{
    struct file_source *source;
    plim_status status = check_turns(&choice->turns, error);
    if (status == PLIM_OK)
        status = source_make(&source, format->source_bytes, type, budget, error);
    if (status != PLIM_OK) {
        file_list_free(choice->files);
        return status;
    }
    source->base.count = CARDINALITY_UNKNOWN;
    source->base.files = choice->files;
    source->format = format;
    source->options = choice->turns;
    source->turns = count_turns(&choice->turns, file_list_count(choice->files));
    *out = source;
    return PLIM_OK;
}

void file_source_cost(struct file_source *source, uint64_t file_bytes)
{
    source->file_bytes = file_bytes;
    source->base.reader_bytes = budget_charge(reader_struct_bytes(source)) + files_bytes(source);
}

/* ---- compression ---- */

plim_status file_source_find_compression(struct file_source *source, enum compression stated, plim_error *error)
{
    struct budget *budget = source->base.budget;
    struct byte_stream *stream;
    char path[FILE_PATH_MOST + 1];
    source->compression = stated;
    source->compression_stated = stated != COMPRESSION_AUTO;
    if (stated != COMPRESSION_AUTO || !file_list_count(source->base.files))
        return PLIM_OK;
    file_list_path(path, source->base.files, 0);
    TRY(byte_stream_open(&stream, budget, path, COMPRESSION_AUTO, error));
    source->compression = byte_stream_compression(stream);
    byte_stream_close(stream);
    return PLIM_OK;
}

static plim_status wrong_packing(const struct file_source *source, const char *path, plim_error *error)
{
    static const struct {
        const char *is, *others, *word;
    } words[] = {
        [COMPRESSION_NONE] = {"a gzip file", " among files that are not", "none"},
        [COMPRESSION_GZIP] = {"not a gzip file", ", among files that are", "gzip"},
        [COMPRESSION_ZLIB] = {"not a zlib file", ", among files that are", "zlib"},
    };
    const char *is = words[source->compression].is;
    if (source->compression_stated) {
        fail_byte(error, PLIM_BAD_DATA, path, 0, "%s, but compression is %s", is, words[source->compression].word);
        return hint(error, PLIM_BAD_DATA, "compression: auto");
    }
    fail_byte(error, PLIM_BAD_DATA, path, 0, "%s%s", is, words[source->compression].others);
    return hint(error, PLIM_BAD_DATA, "all files of a source are packed the same way");
}

plim_status file_source_check_packing(const struct file_source *source, struct budget *budget, const char *path,
                                      plim_error *error)
{
    struct file *file;
    uint8_t head[3];
    size_t got;
    if (source->compression == COMPRESSION_AUTO) /* each file is looked at by itself */
        return PLIM_OK;
    TRY(file_open(&file, budget, path, FILE_READ, error));
    plim_status status = file_read_some(&got, file, 0, head, sizeof head, error);
    file_close(file);
    if (status != PLIM_OK || byte_stream_may_be(source->compression, head, got))
        return status;
    return wrong_packing(source, path, error);
}
