/* SPDX-License-Identifier: Apache-2.0
 *
 * What onednn.c shares with the two files that create primitives. Only these three include oneDNN's header. */
#ifndef REEL_CPU_ONEDNN_API_H
#define REEL_CPU_ONEDNN_API_H

#include <oneapi/dnnl/dnnl.h>

#include "backends/device/cpu/onednn.h"

/* A struct in 2.x, a handle in 3.x. */
typedef dnnl_memory_desc_t reel_dnn_md;

enum { REEL_DNN_N_ARG = 5, REEL_DNN_N_PRIM = 256 };

/* Argument slots of a primitive. */
enum { REEL_DNN_X, REEL_DNN_W, REEL_DNN_BIAS, REEL_DNN_Y, REEL_DNN_SCRATCH };

typedef struct reel_dnn_prim {
    reel_dnn_spec spec;
    uint64_t last_use;
    dnnl_primitive_t handle;
    dnnl_memory_t memory[REEL_DNN_N_ARG]; /* without data of their own; NULL: not an argument */
    size_t scratch_bytes;
    char name[48];
} reel_dnn_prim;

typedef struct reel_dnn_layout {
    reel_dnn_md md;
    size_t bytes;
} reel_dnn_layout;

typedef struct reel_dnn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint64_t n_use;
    void *scratch; /* the largest that a primitive asked for */
    size_t scratch_bytes;
    int32_t n_prim, n_layout, layout_capacity;
    reel_dnn_prim prim[REEL_DNN_N_PRIM];
    reel_dnn_layout *layout; /* grown */
} reel_dnn;

/* onednn_v2.c, onednn_v3.c. Each returns oneDNN's status; on failure *out holds only what reel_dnn_prim_deinit takes back. */
dnnl_status_t reel_dnn_api_create(reel_dnn *dnn, const reel_dnn_spec *spec, reel_dnn_prim *out);
/* The layout that a primitive without a fixed one takes. */
dnnl_status_t reel_dnn_api_any(reel_dnn *dnn, const reel_dnn_spec *spec, reel_dnn_layout *out);
bool reel_dnn_api_same_layout(const reel_dnn_layout *a, const reel_dnn_layout *b);
void reel_dnn_api_layout_deinit(reel_dnn_layout *layout);
/* A primitive that copies plain weights into a layout: arguments X and Y. */
dnnl_status_t reel_dnn_api_reorder(reel_dnn *dnn, const reel_dnn_spec *spec, reel_dtype w_dtype, const reel_dnn_layout *layout,
                                   reel_dnn_prim *out);

dnnl_data_type_t reel_dnn_type(int32_t dtype);

#endif
