/* SPDX-License-Identifier: Apache-2.0
 *
 * Creation of primitives through oneDNN 2.x (operation descriptors, memory descriptors as structs). */
#include "backends/device/cpu/onednn.h"

#if defined(REEL_WITH_ONEDNN)
#include "backends/device/cpu/onednn_api.h"

#if DNNL_VERSION_MAJOR < 3

#include <stdio.h>
#include <string.h>

#define TRY_DNNL(call)                                       \
    do {                                                     \
        dnnl_status_t dnnl_result = (call);                  \
        if (dnnl_result != dnnl_success) return dnnl_result; \
    } while (0)

typedef struct descs {
    dnnl_memory_desc_t x, w, bias, y;
} descs;

static dnnl_status_t strided(dnnl_memory_desc_t *md, int32_t dtype, int n_dim, const dnnl_dim_t *dims, const dnnl_dim_t *strides)
{
    return dnnl_memory_desc_init_by_strides(md, n_dim, dims, reel_dnn_type(dtype), strides);
}

static dnnl_status_t plain_weight(const reel_dnn_spec *s, int32_t dtype, dnnl_memory_desc_t *out)
{
    if (s->kind == REEL_DNN_MATMUL) return strided(out, dtype, 2, (dnnl_dims_t){s->k, s->n}, (dnnl_dims_t){1, s->w_stride});
    return dnnl_memory_desc_init_by_tag(out, 5, (dnnl_dims_t){s->n_out, s->n_in, s->kernel[0], s->kernel[1], s->kernel[2]},
                                        reel_dnn_type(dtype), dnnl_oidhw);
}

/* layout NULL: oneDNN chooses (or plain for products that ask for it) */
static dnnl_status_t describe(const reel_dnn_spec *s, const reel_dnn_layout *layout, bool any, descs *d)
{
    if (s->kind == REEL_DNN_MATMUL) {
        TRY_DNNL(strided(&d->x, s->x_dtype, 2, (dnnl_dims_t){s->m, s->k}, (dnnl_dims_t){s->x_stride, 1}));
        TRY_DNNL(strided(&d->y, s->y_dtype, 2, (dnnl_dims_t){s->m, s->n}, (dnnl_dims_t){s->y_stride, 1}));
        TRY_DNNL(strided(&d->bias, REEL_DTYPE_F32, 2, (dnnl_dims_t){1, s->n}, (dnnl_dims_t){s->n, 1}));
        if (any) {
            TRY_DNNL(dnnl_memory_desc_init_by_tag(&d->w, 2, (dnnl_dims_t){s->k, s->n}, reel_dnn_type(s->x_dtype), dnnl_format_tag_any));
        }
    } else {
        TRY_DNNL(dnnl_memory_desc_init_by_tag(&d->x, 5, (dnnl_dims_t){1, s->n_in, s->in[0], s->in[1], s->in[2]}, reel_dnn_type(s->x_dtype),
                                              dnnl_ndhwc));
        TRY_DNNL(dnnl_memory_desc_init_by_tag(&d->y, 5, (dnnl_dims_t){1, s->n_out, s->out[0], s->out[1], s->out[2]},
                                              reel_dnn_type(s->y_dtype), dnnl_ndhwc));
        TRY_DNNL(dnnl_memory_desc_init_by_tag(&d->bias, 1, (dnnl_dims_t){s->n_out}, dnnl_f32, dnnl_a));
        if (any) {
            TRY_DNNL(dnnl_memory_desc_init_by_tag(&d->w, 5, (dnnl_dims_t){s->n_out, s->n_in, s->kernel[0], s->kernel[1], s->kernel[2]},
                                                  reel_dnn_type(s->x_dtype), dnnl_format_tag_any));
        }
    }
    if (any) return dnnl_success;
    if (!layout) return plain_weight(s, s->x_dtype, &d->w);
    d->w = layout->md;
    return dnnl_success;
}

static dnnl_status_t attributes(const reel_dnn_spec *s, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t post = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) status = dnnl_post_ops_create(&post);
    if (status == dnnl_success && s->adds) status = dnnl_post_ops_append_sum(post, 1.0F);
    if (status == dnnl_success && s->act != REEL_ACTIVATION_NONE) {
        status = dnnl_post_ops_append_eltwise(post, 1.0F, reel_dnn_algorithm(s->act), 1.0F, 0.0F);
    }
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(*out, post);
    if (post) (void)dnnl_post_ops_destroy(post);
    return status;
}

static dnnl_status_t descriptor(reel_dnn *dnn, const reel_dnn_spec *s, const descs *d, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = attributes(s, &attr);
    const dnnl_memory_desc_t *bias = s->has_bias ? &d->bias : NULL;
    if (status == dnnl_success && s->kind == REEL_DNN_MATMUL) {
        dnnl_matmul_desc_t op;
        status = dnnl_matmul_desc_init(&op, &d->x, &d->w, bias, &d->y);
        if (status == dnnl_success) status = dnnl_primitive_desc_create(out, &op, attr, dnn->engine, NULL);
    } else if (status == dnnl_success) {
        dnnl_convolution_desc_t op;
        dnnl_dims_t stride = {s->stride[0], s->stride[1], s->stride[2]};
        dnnl_dims_t before = {s->pad_begin[0], s->pad_begin[1], s->pad_begin[2]}, after = {s->pad_end[0], s->pad_end[1], s->pad_end[2]};
        status = dnnl_convolution_forward_desc_init(&op, dnnl_forward_inference, dnnl_convolution_direct, &d->x, &d->w, bias, &d->y, stride,
                                                    before, after);
        if (status == dnnl_success) status = dnnl_primitive_desc_create(out, &op, attr, dnn->engine, NULL);
    }
    if (attr) (void)dnnl_primitive_attr_destroy(attr);
    return status;
}

static dnnl_status_t slot(reel_dnn *dnn, reel_dnn_prim *prim, int index, const dnnl_memory_desc_t *md)
{
    return dnnl_memory_create(&prim->memory[index], md, dnn->engine, DNNL_MEMORY_NONE);
}

dnnl_status_t reel_dnn_api_create(reel_dnn *dnn, const reel_dnn_spec *spec, reel_dnn_prim *out)
{
    descs d;
    dnnl_primitive_desc_t pd = NULL;
    TRY_DNNL(describe(spec, spec->layout >= 0 ? &dnn->layout[spec->layout] : NULL, false, &d));
    TRY_DNNL(descriptor(dnn, spec, &d, &pd));
    const char *name = "";
    (void)dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    out->scratch_bytes = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
    dnnl_status_t status = dnnl_primitive_create(&out->handle, pd);
    if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_X, &d.x);
    if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_W, &d.w);
    if (status == dnnl_success && spec->has_bias) status = slot(dnn, out, REEL_DNN_BIAS, &d.bias);
    if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_Y, &d.y);
    if (status == dnnl_success && out->scratch_bytes > 0) status = slot(dnn, out, REEL_DNN_SCRATCH, scratch);
    (void)dnnl_primitive_desc_destroy(pd);
    return status;
}

dnnl_status_t reel_dnn_api_any(reel_dnn *dnn, const reel_dnn_spec *spec, reel_dnn_layout *out)
{
    descs d;
    dnnl_primitive_desc_t pd = NULL;
    TRY_DNNL(describe(spec, NULL, true, &d));
    TRY_DNNL(descriptor(dnn, spec, &d, &pd));
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    out->md = *md;
    out->bytes = dnnl_memory_desc_get_size(md);
    return dnnl_primitive_desc_destroy(pd);
}

bool reel_dnn_api_same_layout(const reel_dnn_layout *a, const reel_dnn_layout *b)
{
    return dnnl_memory_desc_equal(&a->md, &b->md) != 0;
}

void reel_dnn_api_layout_deinit(reel_dnn_layout *layout)
{
    (void)layout;
}

dnnl_status_t reel_dnn_api_reorder(reel_dnn *dnn, const reel_dnn_spec *spec, reel_dtype w_dtype, const reel_dnn_layout *layout,
                                   reel_dnn_prim *out)
{
    dnnl_memory_desc_t plain;
    dnnl_primitive_desc_t pd = NULL;
    TRY_DNNL(plain_weight(spec, (int32_t)w_dtype, &plain));
    TRY_DNNL(dnnl_reorder_primitive_desc_create(&pd, &plain, dnn->engine, &layout->md, dnn->engine, NULL));
    dnnl_status_t status = dnnl_primitive_create(&out->handle, pd);
    if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_X, &plain);
    if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_Y, &layout->md);
    (void)dnnl_primitive_desc_destroy(pd);
    return status;
}

#endif
#endif
