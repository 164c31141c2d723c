/* report.h - events of a run as people and programs read them.

   A report allocates once, when it is made: a step must not. Each form is one
   function over an event; report.c picks it, nobody else knows the forms. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/text/text.h"
#include "base/threads/busy.h"

#define REPORT_LINE_BYTES  4096
#define REPORT_NOTES_BYTES 3072

struct stop;

struct plim_report {
    struct budget *budget; /* the report's own: made before there is a job */
    plim_report_form form;
    int descriptor;
    uint64_t drawn_ns;              /* when the progress line was drawn last */
    struct busy busy;               /* an event is being written */
    bool plain;                     /* no colours: NO_COLOR is set */
    bool open;                      /* a progress line stands there without its newline */
    bool begun;                     /* what is to be reported of the beginning was reported */
    char notes[REPORT_NOTES_BYTES]; /* JSON: reported since the last epoch's line, each with its NUL */
    size_t notes_bytes;
    int notes_lost;                    /* that did not fit there */
    int lost;                          /* error number of the first line that did not arrive, or 0 */
    _Atomic(const struct stop *) stop; /* of the job that it reports, or NULL; once it was asked for, it stays so */
    struct text line;                  /* REPORT_LINE_BYTES long from the start */
};

/* Whose stop ends waiting for a reader that does not read. The flag has to live as long as the report, or until NULL
   is set: what was asked for by then stays asked for. */
void report_watch(struct plim_report *report, const struct stop *stop);
/* Sends what is in report->line and empties it. */
void report_flush(struct plim_report *report);

/* progress.c */
void progress_event(struct plim_report *report, const plim_event *event, bool terminal);
/* event_json.c */
void event_json(struct plim_report *report, const plim_event *event, bool steps);
void event_json_error(struct plim_report *report, const plim_error *error);

#endif
