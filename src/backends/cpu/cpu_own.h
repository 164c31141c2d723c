/* cpu_own.h - for the files that are compiled once an instruction set: the
   makers and runners that cpu_variant.c lists. */
#ifndef CPU_OWN_H
#define CPU_OWN_H

#include "backends/cpu/cpu.h"
#include "backends/cpu/vector.h"

/* Before a loop over elements whose output may be its input: iterations do
   not depend on one another. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define MAKER(name)                                                                                                    \
    plim_status VARIANT(name)(struct cpu_kernel * out, const struct cpu_entry *entry,                                  \
                              const struct cpu_request *request, plim_error *error)
#define RUNNER(name) void VARIANT(name)(const struct kernel *kernel, const struct call *call)

/* Label (or weight) i of a loss or a tally, whose second input they are; any
   type that a column of the data may have. */
static inline double label_at(const struct call *call, int64_t i)
{
    return element_get(call->input[1], call->node->input[1]->type, i);
}

/* cpu_variant's. */
void VARIANT(widen)(float *to, const void *from, enum type type, int64_t count);
void VARIANT(narrow)(void *to, const float *from, enum type type, int64_t count);

/* Every operand that is there is f32. size[0]: elements of a row of output 0
   (of input 0 where there is no output). */
MAKER(make_each);
MAKER(make_rescale);
RUNNER(run_relu);
RUNNER(run_relu_gradient);
MAKER(make_slope);
RUNNER(run_slope_bits);
RUNNER(run_slope_gradient);
RUNNER(run_sigmoid);
RUNNER(run_sigmoid_gradient);
RUNNER(run_scale);
RUNNER(run_rescale);
RUNNER(run_rescale_u8);
RUNNER(run_rescale_f64);
MAKER(make_copy);
RUNNER(run_copy);
RUNNER(run_constant);
MAKER(make_clip_log);
RUNNER(run_clip_log);
RUNNER(run_clip_log_gradient);

MAKER(make_last_axis);
MAKER(make_sum_rows);
MAKER(make_axis);
RUNNER(run_softmax);
RUNNER(run_softmax_gradient);
RUNNER(run_log_softmax);
RUNNER(run_log_softmax_gradient);
RUNNER(run_sparsemax);
RUNNER(run_sparsemax_gradient);
RUNNER(run_glu);
RUNNER(run_glu_gradient);

MAKER(make_predicate);
MAKER(make_spread);
MAKER(make_sum_to);
MAKER(make_cast);
RUNNER(run_negative);
RUNNER(run_where);
RUNNER(run_where_gradient);
RUNNER(run_sum_to);
RUNNER(run_cast);
/* A runner a line: unary.def, binary.def. */
#define FLAT(name, ...)      RUNNER(run_##name);
#define PREDICATE(name, ...) RUNNER(run_##name);
#define FROM_X(name, ...)                                                                                              \
    RUNNER(run_##name);                                                                                                \
    RUNNER(run_##name##_gradient);
#define FROM_Y FROM_X
#define FAR_X  FROM_X
#define FAR_Y  FROM_X
#include "ops/elementwise/unary.def"
#undef FLAT
#undef PREDICATE
#undef FROM_X
#undef FROM_Y
#undef FAR_X
#undef FAR_Y
#define COMPOSED(name, ...) RUNNER(run_##name);
#define STEPPED(name, ...)  RUNNER(run_##name);
#define TRUTH(name, ...)    RUNNER(run_##name);
#define SLOPED(name, ...)                                                                                              \
    RUNNER(run_##name);                                                                                                \
    RUNNER(run_##name##_gradient);
#define TESTED SLOPED
#include "ops/elementwise/binary.def"
#undef COMPOSED
#undef STEPPED
#undef TRUTH
#undef SLOPED
#undef TESTED

MAKER(make_last_axis);
RUNNER(run_sum_rows);
RUNNER(run_sum_last);
RUNNER(run_spread_last);
RUNNER(run_batch_mean);
RUNNER(run_batch_mean_gradient);

MAKER(make_steps);
RUNNER(run_mask_rows);
RUNNER(run_mask_share);
RUNNER(run_sum_time);
RUNNER(run_sum_time_gradient);
MAKER(make_mask_of);
RUNNER(run_mask_of);
MAKER(make_mask_count);
RUNNER(run_mask_count);
MAKER(make_batch_moments);
RUNNER(run_batch_moments);
MAKER(make_batch_statistics);
RUNNER(run_batch_statistics);
RUNNER(run_batch_moving);
MAKER(make_batch_normalize);
RUNNER(run_batch_normalize);
MAKER(make_batch_normalize_sums);
RUNNER(run_batch_normalize_sums);
MAKER(make_batch_normalize_gradient);
RUNNER(run_batch_normalize_gradient);
MAKER(make_layer_normalize);
RUNNER(run_layer_normalize);
MAKER(make_layer_normalize_gradient);
RUNNER(run_layer_normalize_gradient);
MAKER(make_group_normalize);
RUNNER(run_group_normalize);
MAKER(make_group_normalize_gradient);
RUNNER(run_group_normalize_gradient);
MAKER(make_standardize);
RUNNER(run_standardize);

MAKER(make_reduce);
RUNNER(run_reduce_sum);
MAKER(make_reduce_spread);
RUNNER(run_reduce_spread);
RUNNER(run_reduce_max);
MAKER(make_reduce_gradient);
RUNNER(run_reduce_max_gradient);
RUNNER(run_reduce_prod);
RUNNER(run_reduce_prod_gradient);
RUNNER(run_reduce_variance);
RUNNER(run_reduce_variance_gradient);
RUNNER(run_reduce_logsumexp);
RUNNER(run_reduce_logsumexp_gradient);
MAKER(make_reduce_any);
RUNNER(run_reduce_any);
MAKER(make_arg_max);
RUNNER(run_arg_max);
MAKER(make_top_k);
RUNNER(run_top_k);
MAKER(make_top_k_gradient);
RUNNER(run_top_k_gradient);
MAKER(make_cumulative_sum);
RUNNER(run_cumulative_sum);
MAKER(make_batch_sum);
RUNNER(run_batch_sum);
RUNNER(run_batch_spread);

MAKER(make_loss);
RUNNER(run_softmax_crossentropy);
RUNNER(run_softmax_crossentropy_gradient);
RUNNER(run_sigmoid_crossentropy);
RUNNER(run_sigmoid_crossentropy_gradient);
RUNNER(run_binary_crossentropy);
RUNNER(run_binary_crossentropy_gradient);
RUNNER(run_sparse_accuracy);
MAKER(make_formula);
MAKER(make_formula_gradient);
MAKER(make_row_loss);
RUNNER(run_row_loss);
RUNNER(run_row_loss_gradient);
MAKER(make_values);
RUNNER(run_weigh);
RUNNER(run_loss_mean);
RUNNER(run_loss_mean_gradient);
RUNNER(run_count_valid);
RUNNER(run_count_others);
RUNNER(run_binary_accuracy);
RUNNER(run_ranked_accuracy);
MAKER(make_tally);
RUNNER(run_class_weight);
RUNNER(run_tally);

MAKER(make_penalty);
RUNNER(run_penalty);
RUNNER(run_penalty_gradient);
MAKER(make_constrain);
RUNNER(run_constrain);

MAKER(make_update);
RUNNER(run_sgd);
RUNNER(run_rmsprop);
RUNNER(run_adagrad);
RUNNER(run_adadelta);
RUNNER(run_adam);
MAKER(make_adam_8bit);
RUNNER(run_adam_8bit);
RUNNER(run_adamax);
RUNNER(run_nadam);
RUNNER(run_lion);
RUNNER(run_ftrl);
RUNNER(run_square_sum);
RUNNER(run_clip_value);
RUNNER(run_clip_norm);
RUNNER(run_lamb_direction);
RUNNER(run_lamb);
MAKER(make_factored);
RUNNER(run_square_rows);
RUNNER(run_square_columns);
RUNNER(run_adafactor_average);
RUNNER(run_adafactor_factored);
RUNNER(run_adafactor_direction);
RUNNER(run_adafactor);
RUNNER(run_decay_weight);
RUNNER(run_assign);
RUNNER(run_recall);
RUNNER(run_remember);
MAKER(make_spectral_sums);
RUNNER(run_spectral_sums);
RUNNER(run_spectral_divide);
MAKER(make_lstm_step);
RUNNER(run_lstm_step);
RUNNER(run_lstm_step_gradient);
RUNNER(run_accumulate_gradient);
RUNNER(run_moving_average);
RUNNER(run_unscale_gradient);
RUNNER(run_count_nonfinite);
MAKER(make_once);
RUNNER(run_once);

MAKER(make_noise);
MAKER(make_dropout);
RUNNER(run_dropout);
RUNNER(run_dropout_shared);
RUNNER(run_gaussian_noise);
RUNNER(run_gaussian_dropout);

MAKER(make_remap);
MAKER(make_remap_gradient);
MAKER(make_transpose);
RUNNER(run_transpose);
MAKER(make_concatenate);
RUNNER(run_concatenate);

MAKER(make_embedding);
RUNNER(run_embedding);
MAKER(make_embedding_gradient);
RUNNER(run_embedding_gradient);
MAKER(make_gather);
RUNNER(run_gather);
MAKER(make_scatter_add);
RUNNER(run_scatter_add);
MAKER(make_one_hot);
RUNNER(run_one_hot);
MAKER(make_bucketize);
RUNNER(run_bucketize);
MAKER(make_resize);
RUNNER(run_resize);
MAKER(make_resize_gradient);
RUNNER(run_resize_gradient);

MAKER(make_recurrent);
RUNNER(run_recurrent);
MAKER(make_recurrent_gradient);
RUNNER(run_recurrent_gradient);
MAKER(make_recurrent_weight_gradient);
RUNNER(run_recurrent_weight_gradient);

MAKER(make_random_warp);
RUNNER(run_random_warp);
RUNNER(run_random_warp_gradient);
MAKER(make_random_tone);
RUNNER(run_random_tone);
RUNNER(run_random_tone_gradient);

MAKER(make_matmul);
MAKER(make_matmul_weight_gradient);

MAKER(make_depthwise);
RUNNER(run_depthwise);
RUNNER(run_depthwise_input_gradient);
RUNNER(run_depthwise_weight_gradient);

MAKER(make_batch_matmul);
MAKER(make_vocabulary_crossentropy);
MAKER(make_vocabulary_crossentropy_gradient);
MAKER(make_attention);
MAKER(make_attention_gradient);

MAKER(make_columns);
MAKER(make_columns_input_gradient);
MAKER(make_points);
MAKER(make_points_input_gradient);
MAKER(make_points_weight_gradient);
MAKER(make_point_weight_gradient);
MAKER(make_lines_weight_gradient);
MAKER(make_taps_weight_gradient);
RUNNER(run_columns);
RUNNER(run_columns_input_gradient);
RUNNER(run_columns_weight_gradient);

MAKER(make_pool);
RUNNER(run_max_pool);
RUNNER(run_max_pool_gradient);
RUNNER(run_average_pool);
RUNNER(run_average_pool_gradient);

double VARIANT(cpu_peak)(int64_t rounds, float *result);
void VARIANT(cpu_stream)(float *y, const float *a, const float *b, float factor, int64_t count);

#endif
