/* SPDX-License-Identifier: Apache-2.0
 *
 * Creation of primitives through oneDNN 3.x (no operation descriptors, memory descriptors as handles). */
#include "backends/device/cpu/onednn.h"

#if defined(REEL_WITH_ONEDNN)
#include "backends/device/cpu/onednn_api.h"

#if DNNL_VERSION_MAJOR >= 3

#include <stdio.h>

typedef struct descs {
    dnnl_memory_desc_t x, w, bias, y; /* owned */
} descs;

static void descs_deinit(descs *d)
{
    dnnl_memory_desc_t all[] = {d->x, d->w, d->bias, d->y};
    for (size_t i = 0; i < REEL_COUNT(all); i++) {
        if (all[i]) (void)dnnl_memory_desc_destroy(all[i]);
    }
}

static dnnl_status_t strided(dnnl_memory_desc_t *md, int32_t dtype, dnnl_dim_t n_row, dnnl_dim_t n_col, dnnl_dim_t row, dnnl_dim_t col)
{
    dnnl_dims_t dims = {n_row, n_col}, strides = {row, col};
    return dnnl_memory_desc_create_with_strides(md, 2, dims, reel_dnn_type(dtype), strides);
}

/* oneDNN's weight is [K][N]: ours seen the other way round. */
static dnnl_status_t plain_weight(const reel_dnn_spec *s, int32_t dtype, dnnl_memory_desc_t *out)
{
    return strided(out, dtype, s->k, s->n, 1, s->w_stride);
}

static dnnl_status_t describe(const reel_dnn_spec *s, const reel_dnn_layout *layout, bool any, descs *d)
{
    dnnl_dims_t w = {s->k, s->n};
    dnnl_status_t status = strided(&d->x, s->x_dtype, s->m, s->k, s->x_stride, 1);
    if (status == dnnl_success) status = strided(&d->y, s->y_dtype, s->m, s->n, s->y_stride, 1);
    if (status == dnnl_success) status = strided(&d->bias, REEL_DTYPE_F32, 1, s->n, s->n, 1);
    if (status != dnnl_success) return status;
    if (any) return dnnl_memory_desc_create_with_tag(&d->w, 2, w, reel_dnn_type(s->x_dtype), dnnl_format_tag_any);
    return layout ? dnnl_memory_desc_clone(&d->w, layout->md) : plain_weight(s, s->x_dtype, &d->w);
}

static dnnl_status_t descriptor(reel_dnn *dnn, const reel_dnn_spec *s, const descs *d, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) {
        status = dnnl_matmul_primitive_desc_create(out, dnn->engine, d->x, d->w, s->has_bias ? d->bias : NULL, d->y, attr);
    }
    if (attr) (void)dnnl_primitive_attr_destroy(attr);
    return status;
}

static dnnl_status_t slot(reel_dnn *dnn, reel_dnn_prim *prim, int index, const_dnnl_memory_desc_t md)
{
    return dnnl_memory_create(&prim->memory[index], md, dnn->engine, DNNL_MEMORY_NONE);
}

dnnl_status_t reel_dnn_api_create(reel_dnn *dnn, const reel_dnn_spec *spec, reel_dnn_prim *out)
{
    descs d = {NULL, NULL, NULL, NULL};
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = describe(spec, spec->layout >= 0 ? &dnn->layout[spec->layout] : NULL, false, &d);
    if (status == dnnl_success) status = descriptor(dnn, spec, &d, &pd);
    if (status == dnnl_success) {
        const char *name = "";
        (void)dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
        (void)snprintf(out->name, sizeof out->name, "%s", name);
        const_dnnl_memory_desc_t scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
        out->scratch_bytes = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
        status = dnnl_primitive_create(&out->handle, pd);
        if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_X, d.x);
        if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_W, d.w);
        if (status == dnnl_success && spec->has_bias) status = slot(dnn, out, REEL_DNN_BIAS, d.bias);
        if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_Y, d.y);
        if (status == dnnl_success && out->scratch_bytes > 0) status = slot(dnn, out, REEL_DNN_SCRATCH, scratch);
    }
    if (pd) (void)dnnl_primitive_desc_destroy(pd);
    descs_deinit(&d);
    return status;
}

dnnl_status_t reel_dnn_api_any(reel_dnn *dnn, const reel_dnn_spec *spec, reel_dnn_layout *out)
{
    descs d = {NULL, NULL, NULL, NULL};
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = describe(spec, NULL, true, &d);
    if (status == dnnl_success) status = descriptor(dnn, spec, &d, &pd);
    if (status == dnnl_success) {
        const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
        out->bytes = dnnl_memory_desc_get_size(md);
        status = dnnl_memory_desc_clone(&out->md, md);
    }
    if (pd) (void)dnnl_primitive_desc_destroy(pd);
    descs_deinit(&d);
    return status;
}

bool reel_dnn_api_same_layout(const reel_dnn_layout *a, const reel_dnn_layout *b)
{
    return dnnl_memory_desc_equal(a->md, b->md) != 0;
}

void reel_dnn_api_layout_deinit(reel_dnn_layout *layout)
{
    if (layout->md) (void)dnnl_memory_desc_destroy(layout->md);
    layout->md = NULL;
}

dnnl_status_t reel_dnn_api_reorder(reel_dnn *dnn, const reel_dnn_spec *spec, reel_dtype w_dtype, const reel_dnn_layout *layout,
                                   reel_dnn_prim *out)
{
    dnnl_memory_desc_t plain = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = plain_weight(spec, (int32_t)w_dtype, &plain);
    if (status == dnnl_success) status = dnnl_reorder_primitive_desc_create(&pd, plain, dnn->engine, layout->md, dnn->engine, NULL);
    if (status == dnnl_success) status = dnnl_primitive_create(&out->handle, pd);
    if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_X, plain);
    if (status == dnnl_success) status = slot(dnn, out, REEL_DNN_Y, layout->md);
    if (pd) (void)dnnl_primitive_desc_destroy(pd);
    if (plain) (void)dnnl_memory_desc_destroy(plain);
    return status;
}

#endif
#endif
