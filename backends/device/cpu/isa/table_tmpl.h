/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of one instruction set, named by REEL_CPU_TABLE, after the kernel templates. */
const reel_cpu_kernels REEL_CPU_TABLE = {
    .gemm = {.panel = GEMM_PANEL, .tile_rows = GEMM_ROWS, .pack = gemm_pack, .product = gemm_product},
    .conv =
        {.panel = GEMM_PANEL, .product = conv_product, .narrow = conv_narrow, .lanes = VEC_N, .dot = conv_dot, .add_lanes = conv_add_lanes},
    .to_f32 = to_f32,
    .from_f32 = from_f32,
    .finish = finish,
    .layer_norm = layer_norm,
    .rms_norm = rms_norm,
    .rms_sum = rms_sum,
    .rms_rope = rms_rope,
    .channel_norm = channel_norm,
    .gate_residual = gate_residual,
    .gated_gelu = gated_gelu,
    .combine = combine,
    .silu = silu,
    .frame_u8 = frame_u8,
    .count_nonfinite = count_nonfinite,
};
