/* word_text.c - lines of text files: one column of strings.

   text: corpus.txt
   text: {files: ..., interleave: {cycle_length: 4}, shuffle_files: true, compression: gzip, buffer_size: 1MiB} */
#include "formats/sources/line_source.h"
#include "job/file_words.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct setting text_settings[] = {FILE_SETTINGS(
    struct { struct file_words own; }, own)};

static plim_status open_text(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    struct file_words words = {.files = yaml};
    struct file_choice choice;
    struct source *source;
    if (yaml->kind == YAML_MAP) {
        words.files = NULL;
        TRY(settings_read(&words, text_settings, COUNT(text_settings), job->path, yaml, error));
    }
    TRY(file_words_read(&choice, job, yaml, "text", &words, error));
    TRY(lines_source_open(&source, job->budget, choice.files, &choice.turns, choice.compression, choice.buffer_bytes,
                          error));
    *out = dataset_from_source(source);
    return PLIM_OK;
}

const struct source_word source_word_text = {"text", open_text, OF_FILES};
