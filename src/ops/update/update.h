/* update.h - updates of weights: Keras's optimizers, and what stands between a
   gradient and its weight (clipping, accumulation, averages, loss scaling).

   Every update reads the step's facts from one tensor, `control`, f64
   [CONTROL_COUNT], which step_control makes once a step. Where
   control[CONTROL_APPLIES] is 0 an update touches nothing: the step only adds
   to accumulators, or was skipped for gradients that are not finite.

   Numbers that Keras computes in float32 from a beta and the step (1 - beta^t) are
   rounded as it does: 1 - 0.999^t has few digits there, and the step shows it. */
#ifndef OPS_UPDATE_UPDATE_H
#define OPS_UPDATE_UPDATE_H

#include "graph/op.h"
#include "ops/update/schedule.h"

enum {
    CONTROL_RATE,    /* the learning rate of this step, a float32 */
    CONTROL_STEP,    /* t: updates done before, plus 1 */
    CONTROL_APPLIES, /* not 0: weights change */
    CONTROL_RUNS,    /* not 0: the step counts (its gradients are finite) */
    CONTROL_COUNT
};

/* step_control: inputs learning_rate f32 [1] (written where there is a schedule),
   iteration i64 [1], nonfinite f32 [1] (optional: elements of gradients that are not
   finite) -> control. With `accumulation` k > 1: t counts whole groups of k
   steps and every k-th applies. As an update it
   runs as soon as it can, so that no gradient waits for it. */
struct step_control_attributes {
    struct schedule schedule;
    int64_t accumulation;
};

/* Updates element by element: inputs w, g, control, then the states, all like
   w. w is first decayed: w -= w * weight_decay * rate.
     sgd       [momentum]                  m = mu m - r g; w += m (nesterov: mu m - r g)
     rmsprop   velocity, [momentum], [average_gradient] (centered)
               v = rho v + (1 - rho) g^2; a = rho a + (1 - rho) g
               d = r g / sqrt(v - a^2 + e); m = mu m + d; w -= m
     adagrad   accumulator                 a += g^2; w -= r g / sqrt(a + e)
     adadelta  accumulated_grad, accumulated_delta_var
     adam      momentum, velocity, [velocity_hat] (amsgrad)
               m += (g - m)(1 - b1); v += (g^2 - v)(1 - b2); w -= m a / (sqrt(v) + e),
               a = r sqrt(1 - b2^t) / (1 - b1^t)
     adamax    momentum, norm              u = max(b2 u, |g|); w -= r m / ((1 - b1^t)(u + e))
     nadam     momentum, velocity, product f32 [1] (whole; made by nadam_product)
     lion      momentum                    w -= r sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g
     ftrl      accumulator, linear
   Cut along axis 0 of w. nadam_product: inputs product f32 [1], control:
   product *= b1 (1 - 0.96^t / 2). decay_weight: inputs w, control: the decay alone. */
struct update_attributes {
    double weight_decay;
    double momentum, rho, beta_1, beta_2, epsilon;
    double power, l1, l2, shrinkage, beta; /* ftrl */
    double epsilon_2, decay, threshold;    /* adafactor: epsilon is epsilon_1, decay is beta_2_decay */
    bool nesterov;
};
/* What a step needs of the attributes, for references and kernels alike: up
   to UPDATE_NUMBERS numbers, the last is weight_decay * rate. */
#define UPDATE_NUMBERS 8
void update_numbers(double out[UPDATE_NUMBERS], const struct node *node, const double *control, double product);

/* adam_8bit: inputs w, g, control, momentum int8, velocity uint8 (both like w), scales f32 [rows of w, blocks of a row,
   2]: Adam whose states lie in a byte an element (quantize.h says how). */
struct shape quantized_scales(const struct shape *weight);
struct quantized_step;
void quantized_numbers(struct quantized_step *out, const struct node *node, const double *control);

/* assign: inputs state, value (alike, neither of a batch): the state becomes the value, or with `adds` their sum. */
struct assign_attributes {
    int64_t adds;
};
/* The value is one number for every element of a state of another shape: WHOLE in every slice. */
bool assign_broadcasts(const struct node *node);

/* clip_value: g -> y = min(max(g, -limit), limit).
   square_sum: x -> f64 [1], the sum of squares; cut along axis 0, SUM.
   clip_norm: inputs g, squares f64 [1] -> y = g * limit / max(norm, limit), norm = sqrt(squares);
     `global` as Keras's clip_by_global_norm: NaN where the norm is not finite. */
struct clip_attributes {
    double limit;
    bool global;
};

/* lamb_direction: inputs w, g, control, momentum, velocity -> u like w: Adam's step without its rate.
   lamb: inputs w, u, control, squares of w, squares of u: w -= |w| / |u| * r * u (1 where a norm is 0).
   square_rows: g [..., r, c] -> mean over c of g^2 + e [..., r]; square_columns: over r [..., c].
   adafactor_average: inputs state, mean, control: state = b state + (1 - b) mean, b = 1 - t^decay.
   adafactor_factored: inputs g, rows, columns -> u = g / sqrt(rows / mean(rows) * columns).
   adafactor_direction: inputs g, control, velocity (of rank < 2) -> u = g / sqrt(v).
   adafactor: inputs w, u, control, squares of w, squares of u:
     w -= max(e2, rms(w)) min(r, 1 / sqrt(t)) u / max(1, rms(u) / threshold). */

double clip_norm_factor(const struct clip_attributes *attributes, double squares);
/* What u is multiplied by before it is taken off w; what adafactor_average keeps. */
double lamb_factor(const struct node *node, const double *control, double weight_squares, double step_squares);
double adafactor_factor(const struct node *node, const double *control, double weight_squares, double step_squares);
double adafactor_keep(const struct node *node, const double *control);

/* accumulate_gradient: inputs g, control, accumulator -> (g + accumulator) / steps; the accumulator
   becomes g + accumulator, or 0 where the step applies.
   moving_average: inputs w, average, control: Keras's use_ema; every `overwrite` updates (0: never) w becomes it. */
struct accumulate_attributes {
    int64_t steps;
};
struct average_attributes {
    double momentum;
    int64_t overwrite;
};

/* Dynamic loss scaling.
   gradient_seed: input scale f32 [1] (optional: 1) -> where backward begins, of the type in the attributes.
   unscale_gradient: inputs g, scale -> g / scale.   count_nonfinite: g -> f32 [1]; SUM.
   loss_scale: inputs scale f32 [1], good steps i64 [1], skipped i64 [1], control: halves the scale and
     counts a skipped step, doubles it after `growth` good steps in a row. */
struct seed_attributes {
    enum type type;
};
struct loss_scale_attributes {
    int64_t growth;
};

/* count_step: inputs iteration i64 [1], control (optional): adds 1 where the step runs. */

#endif
