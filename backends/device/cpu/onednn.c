/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN, as far as its 2.x and 3.x C APIs agree: the process-wide level of instruction sets, the table of primitives, running them. */
#include "backends/device/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(REEL_WITH_ONEDNN)
#include "backends/device/cpu/onednn_api.h"

#if defined(REEL_WITH_OPENMP)
#include <omp.h>
#else
#include <dlfcn.h>
#endif

/* ---- level ------------------------------------------------------------------------------------------------------------------ */

static dnnl_cpu_isa_t dnnl_isa(reel_cpu_isa isa)
{
    switch (isa) {
    case REEL_CPU_ISA_BASE: return dnnl_cpu_isa_sse41;
    case REEL_CPU_ISA_AVX2: return dnnl_cpu_isa_avx2;
    case REEL_CPU_ISA_AVX512: return dnnl_cpu_isa_avx512_core;
    case REEL_CPU_ISA_AVX512_BF16: return dnnl_cpu_isa_avx512_core_bf16;
    case REEL_CPU_ISA_AMX: return dnnl_cpu_isa_avx512_core_amx;
    }
    return dnnl_cpu_isa_sse41;
}

/* oneDNN takes a new level until somebody first reads it; reading it here at once makes "first device" mean the same whether
 * or not that device has computed something. */
static reel_status set_level(const reel_device *device, reel_error *err)
{
    dnnl_cpu_isa_t wanted = dnnl_isa(device->isa);
    (void)dnnl_set_max_cpu_isa(wanted);
    dnnl_cpu_isa_t got = dnnl_get_effective_cpu_isa();
    if (got == wanted) return REEL_OK;
    reel_cpu_isa has = REEL_CPU_ISA_BASE;
    for (int i = REEL_CPU_ISA_AVX2; i <= REEL_CPU_ISA_AMX; i++) {
        if (dnnl_isa((reel_cpu_isa)i) == got) has = (reel_cpu_isa)i;
    }
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "oneDNN keeps one instruction-set level for the whole process, and it has been set already\n"
                     "given: level %s\nallowed: %s, as the process began with\n"
                     "remedy: open every device of a process with the same isa_max, or use a second process",
                     reel_cpu_isa_name(device->isa), reel_cpu_isa_name(has));
}

/* ---- open and close --------------------------------------------------------------------------------------------------------- */

static reel_status failed(reel_error *err, const char *what, dnnl_status_t status)
{
    reel_status code = status == dnnl_out_of_memory ? REEL_E_MEMORY : REEL_E_DEVICE;
    return REEL_FAIL(err, code, "oneDNN could not %s\ngiven: its status %d\nremedy: %s", what, (int)status,
                     code == REEL_E_MEMORY ? "close other programs" : "report this with the processor's name and oneDNN's version");
}

reel_status reel_cpu_onednn_open(reel_device *device, reel_error *err)
{
    REEL_TRY(set_level(device, err));
    reel_dnn *dnn = calloc(1, sizeof *dnn);
    if (!dnn) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for oneDNN\nremedy: close other programs");
    device->onednn = dnn;
    dnnl_status_t status = dnnl_engine_create(&dnn->engine, dnnl_cpu, 0);
    if (status == dnnl_success) status = dnnl_stream_create(&dnn->stream, dnn->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) return failed(err, "start", status);
    return REEL_OK;
}

static void prim_deinit(reel_dnn_prim *prim)
{
    for (int i = 0; i < REEL_DNN_N_ARG; i++) {
        if (prim->memory[i]) (void)dnnl_memory_destroy(prim->memory[i]);
    }
    if (prim->handle) (void)dnnl_primitive_destroy(prim->handle);
    memset(prim, 0, sizeof *prim);
}

void reel_cpu_onednn_close(reel_device *device)
{
    reel_dnn *dnn = device->onednn;
    if (!dnn) return;
    for (int32_t i = 0; i < dnn->n_prim; i++) prim_deinit(&dnn->prim[i]);
    for (int32_t i = 0; i < dnn->n_layout; i++) reel_dnn_api_layout_deinit(&dnn->layout[i]);
    if (dnn->stream) (void)dnnl_stream_destroy(dnn->stream);
    if (dnn->engine) (void)dnnl_engine_destroy(dnn->engine);
    free(dnn->layout);
    free(dnn->scratch);
    free(dnn);
    device->onednn = NULL;
}

void reel_cpu_onednn_version(char *out, size_t out_bytes)
{
    const dnnl_version_t *v = dnnl_version();
    (void)snprintf(out, out_bytes, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

dnnl_data_type_t reel_dnn_type(int32_t dtype)
{
    return dtype == REEL_DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* ---- threads ---------------------------------------------------------------------------------------------------------------- */

/* oneDNN takes its number of threads from OpenMP's setting of the calling thread, which is put back afterwards. A build with plain threads
 * reaches it through the libgomp that oneDNN has loaded, and under the thread sanitizer asks for one thread. */
#if defined(REEL_WITH_OPENMP)
static int swap_threads(int n)
{
    int old = omp_get_max_threads();
    omp_set_num_threads(n);
    return old;
}
#else
static int swap_threads(int n)
{
    void (*set)(int) = NULL;
    int (*get)(void) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    memcpy(&set, &symbol, sizeof set);
    symbol = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    memcpy(&get, &symbol, sizeof get);
    if (!set || !get) return n;
    int old = get();
    set(n);
    return old;
}
#endif

static int dnn_threads(const reel_device *device)
{
#if defined(__SANITIZE_THREAD__)
    (void)device;
    return 1;
#else
    return device->n_thread;
#endif
}

/* ---- primitives ------------------------------------------------------------------------------------------------------------- */

/* A free place, or the one that was used longest ago. */
static reel_dnn_prim *place(reel_dnn *dnn)
{
    if (dnn->n_prim < REEL_DNN_N_PRIM) return &dnn->prim[dnn->n_prim++];
    reel_dnn_prim *oldest = &dnn->prim[0];
    for (int32_t i = 1; i < dnn->n_prim; i++) {
        if (dnn->prim[i].last_use < oldest->last_use) oldest = &dnn->prim[i];
    }
    prim_deinit(oldest);
    return oldest;
}

static reel_status grow_scratch(reel_dnn *dnn, size_t bytes, reel_error *err)
{
    void *memory = NULL;
    if (bytes <= dnn->scratch_bytes) return REEL_OK;
    if (posix_memalign(&memory, 4096, bytes) != 0) {
        return REEL_FAIL(err, REEL_E_MEMORY, "no memory for oneDNN's scratchpad\ngiven: %zu bytes\nremedy: close other programs", bytes);
    }
    free(dnn->scratch);
    dnn->scratch = memory;
    dnn->scratch_bytes = bytes;
    return REEL_OK;
}

static reel_status get(reel_device *device, const reel_dnn_spec *spec, reel_dnn_prim **out, reel_error *err)
{
    reel_dnn *dnn = device->onednn;
    reel_dnn_prim *prim = NULL;
    for (int32_t i = 0; i < dnn->n_prim && !prim; i++) {
        if (dnn->prim[i].handle && memcmp(&dnn->prim[i].spec, spec, sizeof *spec) == 0) prim = &dnn->prim[i];
    }
    if (!prim) {
        prim = place(dnn);
        int old = swap_threads(dnn_threads(device)); /* scratchpads are sized for that many */
        dnnl_status_t status = reel_dnn_api_create(dnn, spec, prim);
        (void)swap_threads(old);
        if (status != dnnl_success) {
            prim_deinit(prim);
            return failed(err, "set up a matrix product", status);
        }
        prim->spec = *spec;
        REEL_TRY(grow_scratch(dnn, prim->scratch_bytes, err));
    }
    prim->last_use = ++dnn->n_use;
    *out = prim;
    return REEL_OK;
}

static dnnl_status_t execute(reel_device *device, reel_dnn_prim *prim, void *const data[REEL_DNN_N_ARG], const int ids[REEL_DNN_N_ARG])
{
    reel_dnn *dnn = device->onednn;
    dnnl_exec_arg_t args[REEL_DNN_N_ARG];
    int n = 0;
    for (int i = 0; i < REEL_DNN_N_ARG; i++) {
        if (!prim->memory[i]) continue;
        dnnl_status_t status = dnnl_memory_set_data_handle(prim->memory[i], data[i]);
        if (status != dnnl_success) return status;
        args[n].arg = ids[i];
        args[n++].memory = prim->memory[i];
    }
    int old = swap_threads(dnn_threads(device));
    dnnl_status_t status = dnnl_primitive_execute(prim->handle, dnn->stream, n, args);
    if (status == dnnl_success) status = dnnl_stream_wait(dnn->stream);
    (void)swap_threads(old);
    return status;
}

reel_status reel_dnn_run(reel_device *device, const reel_dnn_spec *spec, const void *x, const void *w, const float *bias, void *y,
                         reel_error *err)
{
    static const int ids[REEL_DNN_N_ARG] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    reel_dnn *dnn = device->onednn;
    reel_dnn_prim *prim = NULL;
    REEL_TRY(get(device, spec, &prim, err));
    /* oneDNN's handles are not const; it only reads x, w and bias. */
    void *const data[REEL_DNN_N_ARG] = {(void *)(uintptr_t)x, (void *)(uintptr_t)w, (void *)(uintptr_t)bias, y, dnn->scratch};
    dnnl_status_t status = execute(device, prim, data, ids);
    return status == dnnl_success ? REEL_OK : failed(err, "compute", status);
}

reel_status reel_dnn_name(reel_device *device, const reel_dnn_spec *spec, const char **out, reel_error *err)
{
    reel_dnn_prim *prim = NULL;
    REEL_TRY(get(device, spec, &prim, err));
    *out = prim->name;
    return REEL_OK;
}

/* ---- layouts ---------------------------------------------------------------------------------------------------------------- */

reel_status reel_dnn_layout_any(reel_device *device, const reel_dnn_spec *spec, int32_t *layout, size_t *bytes, reel_error *err)
{
    reel_dnn *dnn = device->onednn;
    reel_dnn_layout found;
    memset(&found, 0, sizeof found);
    int old = swap_threads(1); /* the choice may follow the number of threads, which results must not */
    dnnl_status_t status = reel_dnn_api_any(dnn, spec, &found);
    (void)swap_threads(old);
    if (status != dnnl_success) return failed(err, "choose a weight layout", status);
    for (int32_t i = 0; i < dnn->n_layout; i++) {
        if (!reel_dnn_api_same_layout(&dnn->layout[i], &found)) continue;
        reel_dnn_api_layout_deinit(&found);
        *layout = i;
        *bytes = dnn->layout[i].bytes;
        return REEL_OK;
    }
    if (dnn->n_layout == dnn->layout_capacity) {
        int32_t capacity = dnn->layout_capacity ? 2 * dnn->layout_capacity : 64;
        reel_dnn_layout *grown = realloc(dnn->layout, (size_t)capacity * sizeof *grown);
        if (!grown) {
            reel_dnn_api_layout_deinit(&found);
            return REEL_FAIL(err, REEL_E_MEMORY, "no memory for a weight layout\nremedy: close other programs");
        }
        dnn->layout = grown;
        dnn->layout_capacity = capacity;
    }
    dnn->layout[dnn->n_layout] = found;
    *layout = dnn->n_layout++;
    *bytes = found.bytes;
    return REEL_OK;
}

reel_status reel_dnn_pack(reel_device *device, const reel_dnn_spec *spec, const void *w, reel_dtype w_dtype, int32_t layout, void *out,
                          reel_error *err)
{
    static const int ids[REEL_DNN_N_ARG] = {DNNL_ARG_SRC, 0, 0, DNNL_ARG_DST, 0};
    reel_dnn *dnn = device->onednn;
    reel_dnn_prim prim;
    memset(&prim, 0, sizeof prim);
    dnnl_status_t status = reel_dnn_api_reorder(dnn, spec, w_dtype, &dnn->layout[layout], &prim);
    void *const data[REEL_DNN_N_ARG] = {(void *)(uintptr_t)w, NULL, NULL, out, NULL};
    if (status == dnnl_success) status = execute(device, &prim, data, ids);
    prim_deinit(&prim);
    return status == dnnl_success ? REEL_OK : failed(err, "pack a weight", status);
}

#else

reel_status reel_cpu_onednn_open(reel_device *device, reel_error *err)
{
    (void)device, (void)err;
    return REEL_OK;
}

void reel_cpu_onednn_close(reel_device *device)
{
    (void)device;
}

void reel_cpu_onednn_version(char *out, size_t out_bytes)
{
    (void)snprintf(out, out_bytes, "built without oneDNN");
}

#endif
