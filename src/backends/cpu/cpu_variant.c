/* cpu_variant.c - the table of own kernels of one instruction set. */
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

#define ENTRY(what, maker, runner)                                                                                     \
    {                                                                                                                  \
        &op_##what, VARIANT(maker), VARIANT(runner)                                                                    \
    }
/* The maker chooses among several runners. */
#define CHOICE(what, maker)                                                                                            \
    {                                                                                                                  \
        &op_##what, VARIANT(maker), NULL                                                                               \
    }

static const struct cpu_entry entries[] = {
    CHOICE(matmul, make_matmul),
    CHOICE(matmul_weight_gradient, make_matmul_weight_gradient),
    ENTRY(depthwise_conv1d, make_depthwise, run_depthwise),
    ENTRY(depthwise_conv1d_input_gradient, make_depthwise, run_depthwise_input_gradient),
    ENTRY(depthwise_conv1d_weight_gradient, make_depthwise, run_depthwise_weight_gradient),
    ENTRY(depthwise_conv2d, make_depthwise, run_depthwise),
    ENTRY(depthwise_conv2d_input_gradient, make_depthwise, run_depthwise_input_gradient),
    ENTRY(depthwise_conv2d_weight_gradient, make_depthwise, run_depthwise_weight_gradient),
    ENTRY(max_pool, make_max_pool, run_max_pool),
    ENTRY(max_pool_gradient, make_max_pool_gradient, run_max_pool_gradient),
    ENTRY(relu, make_each, run_relu),
    ENTRY(relu_gradient, make_each, run_relu_gradient),
    ENTRY(sigmoid, make_each, run_sigmoid),
    ENTRY(sigmoid_gradient, make_each, run_sigmoid_gradient),
    ENTRY(softmax, make_last_axis, run_softmax),
    ENTRY(softmax_gradient, make_last_axis, run_softmax_gradient),
    ENTRY(dropout, make_dropout, run_dropout),
    ENTRY(gaussian_noise, make_noise, run_gaussian_noise),
    ENTRY(gaussian_dropout, make_noise, run_gaussian_dropout),
    ENTRY(batch_moments, make_batch_moments, run_batch_moments),
    ENTRY(batch_statistics, make_batch_statistics, run_batch_statistics),
    ENTRY(batch_moving, make_each, run_batch_moving),
    ENTRY(batch_normalize, make_batch_normalize, run_batch_normalize),
    ENTRY(batch_normalize_sums, make_batch_normalize_sums, run_batch_normalize_sums),
    ENTRY(batch_normalize_gradient, make_batch_normalize_gradient, run_batch_normalize_gradient),
    ENTRY(layer_normalize, make_layer_normalize, run_layer_normalize),
    ENTRY(layer_normalize_gradient, make_layer_normalize_gradient, run_layer_normalize_gradient),
    ENTRY(group_normalize, make_group_normalize, run_group_normalize),
    ENTRY(group_normalize_gradient, make_group_normalize_gradient, run_group_normalize_gradient),
    ENTRY(flatten, make_copy, run_copy),
    ENTRY(unflatten, make_copy, run_copy),
    CHOICE(slice, make_remap),
    CHOICE(pad, make_remap),
    CHOICE(tile, make_remap),
    CHOICE(repeat, make_remap),
    CHOICE(roll, make_remap),
    CHOICE(resize_nearest, make_remap),
    CHOICE(remap_gradient, make_remap_gradient),
    ENTRY(transpose, make_transpose, run_transpose),
    ENTRY(concatenate, make_concatenate, run_concatenate),
    ENTRY(embedding, make_embedding, run_embedding),
    ENTRY(embedding_gradient, make_embedding_gradient, run_embedding_gradient),
    ENTRY(gather, make_gather, run_gather),
    ENTRY(scatter_add, make_scatter_add, run_scatter_add),
    ENTRY(one_hot, make_one_hot, run_one_hot),
    ENTRY(bucketize, make_bucketize, run_bucketize),
    ENTRY(resize, make_resize, run_resize),
    ENTRY(resize_gradient, make_resize_gradient, run_resize_gradient),
    CHOICE(rescale, make_rescale),
    ENTRY(add, make_each, run_add),
    ENTRY(multiply, make_each, run_multiply),
    ENTRY(scale, make_each, run_scale),
    ENTRY(sum_rows, make_last_axis, run_sum_rows),
    ENTRY(sum_last, make_last_axis, run_sum_last),
    ENTRY(spread_last, make_last_axis, run_spread_last),
    ENTRY(batch_mean, make_each, run_batch_mean),
    ENTRY(batch_mean_gradient, make_each, run_batch_mean_gradient),
    ENTRY(mask_of, make_mask_of, run_mask_of),
    ENTRY(mask_rows, make_steps, run_mask_rows),
    ENTRY(mask_count, make_mask_count, run_mask_count),
    ENTRY(mask_share, make_each, run_mask_share),
    ENTRY(sum_time, make_steps, run_sum_time),
    ENTRY(sum_time_gradient, make_steps, run_sum_time_gradient),
    ENTRY(clip_log, make_clip_log, run_clip_log),
    ENTRY(clip_log_gradient, make_clip_log, run_clip_log_gradient),
    ENTRY(softmax_crossentropy, make_loss, run_softmax_crossentropy),
    ENTRY(softmax_crossentropy_gradient, make_loss, run_softmax_crossentropy_gradient),
    ENTRY(sigmoid_crossentropy, make_loss, run_sigmoid_crossentropy),
    ENTRY(sigmoid_crossentropy_gradient, make_loss, run_sigmoid_crossentropy_gradient),
    ENTRY(binary_crossentropy, make_loss, run_binary_crossentropy),
    ENTRY(binary_crossentropy_gradient, make_loss, run_binary_crossentropy_gradient),
    ENTRY(sparse_accuracy, make_loss, run_sparse_accuracy),
    ENTRY(binary_accuracy, make_loss, run_binary_accuracy),
    ENTRY(sgd, make_update, run_sgd),
    ENTRY(adam, make_update, run_adam),
    ENTRY(count_step, make_count_step, run_count_step),
};

const struct cpu_variant VARIANT(cpu_variant) = {
    .name = VARIANT_NAME,
    .implementation = "own " VARIANT_NAME,
    .entry = entries,
    .entry_count = sizeof entries / sizeof *entries,
};
