/* text_split.h - tf.strings.split: a text into pieces that refer to its bytes. */
#ifndef PIPELINE_TEXT_TEXT_SPLIT_H
#define PIPELINE_TEXT_TEXT_SPLIT_H

#include "base/memory/room.h"
#include "graph/tensor.h"

struct splitter {
    const uint8_t *at, *end;
    const uint8_t *separator; /* NULL: white space (ASCII), runs of it as one, none at the ends */
    uint64_t separator_bytes;
    bool over;
};

/* separator == "" or NULL: white space. It is borrowed. With a separator, an empty text is one empty piece. */
void splitter_init(struct splitter *splitter, const struct string *text, const char *separator);
bool splitter_next(struct string *piece, struct splitter *splitter);

/* All pieces, as an array in the room; false when the room is full (room->wanted tells). */
bool text_split(struct string **pieces, int64_t *count, const struct string *text, const char *separator,
                struct room *room);

#endif
