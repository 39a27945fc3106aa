# SPDX-License-Identifier: Apache-2.0
"""Makes tests/fixtures/schedules: noise levels, timesteps and toy runs of diffusers' schedulers, and values of torch.randn.

    python tests/reference/schedules.py tests/fixtures/schedules

Needs torch 2.11, diffusers 0.42.1 and safetensors. See the folder's README.md for what the tensors are.
"""
import sys
import numpy as np
import torch
from diffusers import DPMSolverMultistepScheduler, FlowMatchEulerDiscreteScheduler, UniPCMultistepScheduler
from safetensors.numpy import save_file

STEPS = range(1, 101)
FULL_SHIFTS = (3.0,)
TOY_SHIFTS = (0.37, 1.0, 5.0, 8.0, 12.0)
NOISE_SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 47, 100, 1025, 4099)
NOISE_SEEDS = [0, 1, 2, 3, 7, 42, 123, 999, 1234, 31337, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**32 + 42, 2**33 + 7,
               2**40 + 5, 2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 42, 2**64 - 1, -1, -2, -42, -1000, -(2**31), -(2**32), -(2**32) - 3,
               -(2**62), -(2**63)]
NOISE_SEEDS += [(i * 2654435761 + 97) % 2**48 for i in range(50 - len(NOISE_SEEDS))]


def scheduler(name, shift, order):
    if name == "unipc":
        return UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=shift, solver_order=order)
    if name == "euler":
        return FlowMatchEulerDiscreteScheduler(shift=shift)
    return DPMSolverMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=shift, solver_order=order)


def toy_run(sched):
    """Four scalars, v = 0.25 x + a cos(3 t / 1000) - 0.75: the last x and the sum of x over the steps."""
    a = torch.tensor([0.5, -1.0, 0.125, 2.0]).reshape(1, 4, 1, 1)
    x = torch.tensor([1.0, -0.5, 2.0, 0.25]).reshape(1, 4, 1, 1)
    total = torch.zeros(4, dtype=torch.float64)
    sched.set_begin_index(0)
    for t in sched.timesteps:
        v = 0.25 * x + a * torch.cos(3 * t.to(torch.float32) / 1000) - 0.75
        x = sched.step(v, t, x, return_dict=False)[0]
        total += x.reshape(4).double()
    return np.concatenate([x.reshape(4).double().numpy(), total.numpy()])


def schedules():
    out = {}
    for name in ("unipc", "euler", "dpm++"):
        for shift in FULL_SHIFTS + TOY_SHIFTS:
            sigmas, timesteps = [], []
            for order in (1, 2) if name != "euler" else (2,):
                toy = []
                for n in STEPS:
                    sched = scheduler(name, shift, order)
                    sched.set_timesteps(n)
                    if order == 2:
                        assert len(sched.timesteps) == n and float(sched.sigmas[-1]) == 0.0
                        sigmas.append(sched.sigmas.numpy()[:-1])
                        timesteps.append(sched.timesteps.numpy())
                    toy.append(toy_run(sched))
                out[f"{name}_toy_order_{order}_shift_{shift:g}"] = np.stack(toy).astype(np.float32)
            if shift in FULL_SHIFTS:
                out[f"{name}_sigmas_shift_{shift:g}"] = np.concatenate(sigmas)
                t = np.concatenate(timesteps)
                out[f"{name}_timesteps_shift_{shift:g}"] = t.astype(np.float32 if name == "euler" else np.int16)
    return out


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) % 2**64
    return h


def noise():
    assert len(NOISE_SEEDS) == 50
    hashes, first, last = (np.zeros((50, len(NOISE_SIZES)), d) for d in (np.uint64, np.float32, np.float32))
    for i, seed in enumerate(NOISE_SEEDS):
        for j, n in enumerate(NOISE_SIZES):
            x = torch.randn(n, generator=torch.Generator().manual_seed(seed)).numpy()
            hashes[i, j], first[i, j], last[i, j] = fnv(x.tobytes()), x[0], x[-1]
    big = torch.randn(2_096_653, generator=torch.Generator().manual_seed(42)).numpy()
    return {
        "seeds": np.array([s % 2**64 for s in NOISE_SEEDS], np.uint64).view(np.int64),
        "sizes": np.array(NOISE_SIZES, np.int32),
        "hashes": hashes.view(np.int64), "first": first, "last": last,
        "big_size": np.array([big.size], np.int32),
        "big_hash": np.array([fnv(big.tobytes())], np.uint64).view(np.int64),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    save_file(schedules(), sys.argv[1] + "/schedules.safetensors")
    save_file(noise(), sys.argv[1] + "/noise.safetensors")
