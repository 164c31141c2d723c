/* planner.h - plans a run: its program, the memory that it takes, and whether it fits into the budget.

   The planner knows graphs and bytes. It knows neither models nor data: struct workload says how to get the graphs, and
   struct run_costs says what a run takes beside its program. A plan is made in this order:

     plan_graphs    builds the graphs at the job's own batch size
     plan_program   makes the program of them; whatever else the run loads is loaded now
     plan_explore   finds which values could be dropped or spilled, and what the smallest program of all takes
     plan_retime    where an earlier run has said what its steps took
     plan_measure   measures the process, as it is once everything is loaded
     plan_predict   predicts the peak, for one choice of how the data is read
     plan_decide    finds the smallest budget, and whether the run fits into the stated one
     plan_next      where it does not: makes the next smaller program; measure, predict and decide again

   A plan of data alone has no graphs and no program: it begins with plan_measure.

   Invariants:
    1. The figure that refuses a run is the figure that is printed.
    2. Only which point of the frontier is taken, and how the data is read, depends on the budget. */
#ifndef PLAN_PLANNER_H
#define PLAN_PLANNER_H

#include "plan/search/frontier.h"

/* What a run takes beside the program's tensor arena and the threads that run it: data, checkpoints, files. */
struct run_costs {
    uint64_t by_tag[TAG_COUNT];
    int threads; /* threads that read data; counted only in a plan without program */
};

/* What is to be run. */
struct workload {
    /* Builds the graphs for these batch sizes. The caller releases both, after a failure too. Without evaluation
       `evaluate` stays empty. */
    plim_status (*build)(struct graph *train, struct graph *evaluate, void *context, int64_t batch,
                         int64_t evaluate_batch, plim_error *error);
    void *context;
    int threads;
    uint64_t save_buffer_bytes;
    int64_t batch, evaluate_batch;                 /* the job's own; evaluate_batch 0: no evaluation */
    int64_t last_batch_train, last_batch_evaluate; /* see struct program_input */
    int64_t samples;                               /* in an epoch, which limits the batch; -1: unknown */
    uint64_t sample_bytes;                         /* of one sample in a batch */
    struct technique_rules rules;
    const char *scratch_folder; /* where values that are spilled lie */
};

/* Memory of the process that the allocator does not see, measured by process_measure. */
struct process_memory {
    uint64_t process_bytes, kernel_bytes; /* code, libraries and their heaps; page tables and kernel stacks */
    uint64_t planning_peak;               /* peak of the process during planning: no prediction is lower */
    uint64_t slack_bytes;                 /* by how much two measurements of the same run may differ */
    uint64_t address_bytes;               /* address space left under RLIMIT_AS */
};

/* What is printed of a program. */
struct plan_figures {
    int64_t kept, encoded, recomputed; /* values kept for the backward pass, kept in fewer bits, computed again */
    int64_t spilled;                   /* values that lie on the disk for a while */
    uint64_t spilled_bytes;            /* of them; a step writes and reads so many */
    int64_t paged;                     /* weights and states that lie on the disk but for their uses */
    uint64_t paged_bytes;              /* that a step moves for them */
    uint64_t tensor_arena_bytes;
    uint64_t live_bytes, packed_bytes; /* training step: lower bound of any packing, and what the packing needs */
    int threads;
    int reference_kernels; /* tasks that run in plain C */
};

struct plan {
    struct budget *budget;
    struct arena *arena; /* for texts that live as long as the plan */
    uint64_t limit_bytes;
    struct backend *backend; /* NULL: a plan of data alone */
    struct workload workload;

    struct graph train, evaluate;
    bool graphs_built;
    struct program *program; /* NULL: not made yet, or freed by plan_largest_batch */
    struct plan_figures figures;
    struct frontier frontier; /* its tables are in frontier_tables */
    struct arena frontier_tables;
    int point;         /* of the frontier: what the program drops */
    bool retimed;      /* times of the frontier are by what an earlier run took */
    double disk_bytes; /* a second, as that run measured it; 0: none has */
    uint64_t cost;     /* program_cost, and all that is allocated once the program is made */
    struct process_memory process;
    struct prediction prediction; /* of the last plan_predict */
    uint64_t least_peak;          /* the peak with the least that the data can do with */
    uint64_t smallest_bytes;      /* the budget to print for it */
    const char *obstacle;         /* the limit besides the budget that prevents the run, or NULL */
    bool fits;
    uint64_t reserved_process, reserved_kernel; /* what plan_enter_budget has reserved */
};

plim_status plan_graphs(struct plan *plan, plim_error *error);
plim_status plan_program(struct plan *plan, plim_error *error);
/* Needs a program that drops nothing; it is made again afterwards. */
plim_status plan_explore(struct plan *plan, plim_error *error);
/* After plan_explore: times of the points by what an earlier run took. */
plim_status plan_retime(struct plan *plan, const struct op_costs *costs, plim_error *error);
/* Whether the last plan_decide said no, and a smaller program may still fit. */
bool plan_has_next(const struct plan *plan);
plim_status plan_next(struct plan *plan, plim_error *error);
/* The program that plan_largest_batch freed, with the kernels that were measured and no others. *same false: it came out
   another, and the plan is to be made anew. */
plim_status plan_again(bool *same, struct plan *plan, plim_error *error);
plim_status plan_measure(struct plan *plan, plim_error *error);
/* Sets plan->prediction; the sum of all tags is the peak. Returns whether it fits into the budget. */
bool plan_predict(struct plan *plan, const struct run_costs *costs);
/* Sets least_peak, smallest_bytes, obstacle and fits. `least`: the least that the data can do with. */
plim_status plan_decide(struct plan *plan, const struct run_costs *least, plim_error *error);
/* Frees the graphs and the program; what was found out stays. */
void plan_release_program(struct plan *plan);
/* Frees the backend, too, and leaves the budget. */
void plan_release(struct plan *plan);

/* After plan_enter_budget the budget also counts the memory that the allocator does not see, and refuses everything
   beyond limit_bytes. plan_leave_budget undoes this: the limit holds for the memory that the system counts again. */
plim_status plan_enter_budget(struct plan *plan, plim_error *error);
void plan_leave_budget(struct plan *plan);

/* largest_batch.c: finds the largest batch whose plan fits into the budget; 0: none does, or there is not enough memory
   to search. Needs plan_decide. Frees the graphs and the program. */
plim_status plan_largest_batch(int64_t *out, struct plan *plan, plim_error *error);

/* process_memory.c: later_bytes: what the process may still touch after the measurement. */
plim_status process_measure(struct process_memory *out, struct budget *budget, const struct backend *backend,
                            uint64_t later_bytes, plim_error *error);
/* What depends on the program: the tensor arena, its page tables, the team, transfers. */
uint64_t program_cost(const struct program *program);
/* Page tables for `bytes` more of mapped memory, and the system's memory for `threads` more threads. */
uint64_t process_tables(uint64_t bytes, int threads);

#endif
