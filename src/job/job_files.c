/* job_files.c - a job over files alone: what they are is found out, and said in the words of a job file. */
#include "job/job.h"

#include <string.h>

#include "base/text/json.h"

/* A job file is UTF-8: what is said in its words is, too. */
static plim_status check_name(const char *path, plim_error *error)
{
    size_t bytes = strlen(path);
    for (size_t at = 0, length; at < bytes; at += length) {
        length = json_utf8_length(path + at, bytes - at);
        if (length == 0)
            return hint(error, fail_at(error, PLIM_USAGE, path, "the file's name is not UTF-8"),
                        "rename it, or the folder it is in");
    }
    return PLIM_OK;
}

/* A double-quoted scalar. */
static void add_quoted(struct text *out, const char *word)
{
    text_add(out, "\"");
    for (const char *c = word; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\')
            text_add(out, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            text_add(out, "\\x%02x", byte);
        else
            text_add_bytes(out, c, 1);
    }
    text_add(out, "\"");
}

static plim_status find_word(const char **word, struct plim_job *job, plim_error *error)
{
    for (int i = 0; i < job->file_count; i++) {
        const struct source_key *key;
        TRY(source_key_probe(&key, job->budget, job->files[i], error));
        TRY(check_name(job->files[i], error));
        if (i && strcmp(key->word, *word) != 0)
            return fail_at(error, PLIM_USAGE, job->files[i], "is %s, but %s is %s", key->word, job->files[0], *word);
        *word = key->word;
    }
    return PLIM_OK;
}

plim_status job_files_text(const char **out, struct plim_job *job, plim_error *error)
{
    const char *word = NULL;
    struct text text;
    TRY(find_word(&word, job, error));
    text_init(&text, job->budget, TAG_PLANNER);
    const char *open = job->file_count > 1 ? "[" : "", *close = job->file_count > 1 ? "]" : "";
    text_add(&text, "data: {train: {%s: %s", word, open);
    for (int i = 0; i < job->file_count; i++) {
        text_add(&text, i ? ", " : "");
        add_quoted(&text, job->files[i]);
    }
    text_add(&text, "%s}}\n", close);
    *out = text.failed ? NULL : arena_string(&job->arena, text.data);
    text_release(&text);
    return *out ? PLIM_OK : arena_refused(&job->arena, error);
}
