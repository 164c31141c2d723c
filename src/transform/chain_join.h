/* chain_join.h - the nodes that are ready, and which of them may join the current chain. */
#ifndef TRANSFORM_CHAIN_JOIN_H
#define TRANSFORM_CHAIN_JOIN_H

#include "base/sets/min_tree.h"
#include "base/sets/number_set.h"
#include "transform/chain_work.h"

/* How the current chain has touched a tensor. */
struct touch {
    int chain;
    bool whole, written; /* some access was not CUT; some access wrote */
};

/* A ready node that reads a tensor as a whole, in a list of that tensor. */
struct whole_reader {
    int leader, next;
};

/* What a node means to the number of units of its chain. */
enum share {
    SHARE_ONE,    /* it has a sum of one part: the chain is one unit */
    SHARE_LITTLE, /* its work alone is not worth several units */
    SHARE_MUCH,
    SHARES
};

/* Places begin..end-1. */
struct range {
    int begin, end;
};

/* Leaders that are cut alike, by share. */
struct alike {
    int64_t extent, grain;
    bool by_sample;
    struct range range[SHARES];
};

struct joining {
    struct chain_work *work;
    const int *pair;                   /* by node id: the update that runs right after it; -1 */
    struct number_set updates, others; /* leaders that are ready: updates and pairs, and the rest */
    struct min_tree bytes; /* by place: what it adds to whole_bytes; no key: not ready, or not for this chain */
    int *place;            /* by leader: those that are cut alike and have one share stand together, in program order */
    int *leader_at;        /* by place */
    int *alike_of;         /* by leader: into alike */
    struct alike *alike;
    struct touch *touch; /* by tensor id */
    int *reader_head;    /* by tensor id: into reader; -1 */
    struct whole_reader *reader;
    int reader_count;
    int *changed; /* leaders whose key holds for the current chain only */
    int changed_count;
    bool *is_changed;        /* by leader */
    int index;               /* the current chain */
    const struct alike *now; /* of the current chain */
    uint64_t steps;          /* nodes, and entries of lists, that were looked at */
    double sum_of_work;      /* of the current chain */
    bool serial;             /* the current chain has a sum of one part */
    int64_t whole_bytes;     /* that slices of the current chain walk through as a whole */
};

/* leader: by node id, itself or the node that it is paired with. False: the arena refuses. */
bool joining_init(struct joining *j, struct chain_work *work, const int *pair, const int *leader);
/* It is ready from now on. */
void joining_add(struct joining *j, int leader);
/* Where chain `index` begins: an update that is ready, else the first that is; -1: none is. */
int joining_begin(struct joining *j, int index);
/* The first in program order that may join the current chain; -1: none may. */
int joining_next(struct joining *j);
/* It is no longer ready: it and its pair are of the current chain. */
void joining_take(struct joining *j, int leader);

#endif
