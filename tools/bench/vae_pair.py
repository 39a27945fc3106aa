# SPDX-License-Identifier: Apache-2.0
"""Wan2.1 VAE decode, reel beside diffusers on the same random weights and latents, two threads each, one after the other in pairs.

    python tools/bench/vae_pair.py build/cpu/bench_vae_decode --size 240x416 --latents 5 --dtype f32 --pairs 5 \\
           --csv bench/results/<cpu>/vae.csv [--chunk 1] [--lock FILE] [--work FOLDER]
    (needs torch and diffusers; the first pair is a warm-up and is not written)

Both peers run in a process of their own, are loaded and warm, and decode the same latents (float32, not normalised) in turn, so a disturbance meets
both. Peak memory is the process's largest resident size during the decode above its resident size before it. Every sample is a row of
the CSV, with the machine's load (2 when nothing else runs); the last line printed compares medians and the frames themselves. --lock: a file locked around each pair, where several
benchmarks share a machine."""
import argparse
import csv
import fcntl
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path


def resident(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def peer(folder, dtype, out):
    """The diffusers process: one decode per line of standard input."""
    import diffusers
    import torch
    from diffusers import AutoencoderKLWan
    from safetensors.torch import load_file

    torch.set_num_threads(2)
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    vae = AutoencoderKLWan.from_pretrained(folder, torch_dtype=kind).eval()
    vae.encoder = vae.quant_conv = None
    latents = load_file(f"{folder}/latents.safetensors")["latents"][None].to(kind)
    for _ in sys.stdin:
        before = resident("VmRSS")
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
        begin = time.perf_counter()
        with torch.no_grad():
            frames = vae.decode(latents).sample
        seconds = time.perf_counter() - begin
        print(json.dumps({"seconds": seconds, "resident_before": before, "resident_peak": resident("VmHWM"), "session": 0, "packed_weights": 0,
                          "device": "cpu", "isa": torch.backends.cpu.get_cpu_capability(),
                          "library": f"diffusers {diffusers.__version__}, torch {torch.__version__}"}), flush=True)
    frames[0].permute(1, 2, 3, 0).float().contiguous().numpy().tofile(out)


def make_inputs(folder, height, width, frames):
    import torch
    from diffusers import AutoencoderKLWan
    from safetensors.torch import save_file

    if not (folder / "config.json").exists():
        torch.manual_seed(1)
        AutoencoderKLWan().save_pretrained(folder)
    torch.manual_seed(2)
    save_file({"latents": torch.randn(16, frames, height // 8, width // 8)}, folder / "latents.safetensors")


@contextmanager
def locked(path):
    if not path:
        yield
        return
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def sample(process):
    process.stdin.write("go\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        sys.exit(f"a peer stopped with code {process.wait()}")
    return json.loads(line)


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--peer":
        peer(*sys.argv[2:5])
        return
    ap = argparse.ArgumentParser()
    ap.add_argument("program")
    ap.add_argument("--size", default="240x416")
    ap.add_argument("--latents", type=int, default=5)
    ap.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    ap.add_argument("--pairs", type=int, default=5)
    ap.add_argument("--chunk", default="1")
    ap.add_argument("--csv")
    ap.add_argument("--lock")
    ap.add_argument("--work", default="/tmp/reel-vae-pair")
    a = ap.parse_args()
    height, width = (int(v) for v in a.size.split("x"))
    work = Path(a.work)
    work.mkdir(parents=True, exist_ok=True)
    make_inputs(work, height, width, a.latents)
    env = dict(os.environ, OMP_NUM_THREADS="2")
    ours = [a.program, a.work, a.dtype, a.chunk, str(height // 8), str(width // 8), str(a.latents), str(work / "reel.f32")]
    theirs = [sys.executable, __file__, "--peer", a.work, a.dtype, str(work / "diffusers.f32")]
    peers = {"reel": ours, "diffusers": theirs}
    running = {k: subprocess.Popen(c, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) for k, c in peers.items()}
    rows = []
    for pair in range(a.pairs + 1):
        with locked(a.lock):
            order = list(running) if pair % 2 == 0 else list(running)[::-1]
            for name in order:
                s = sample(running[name])
                rows.append({"peer": name, "dtype": a.dtype, "size": a.size, "latent_frames": a.latents, "pair": pair, "warm_up": int(pair == 0),
                             "chunk_frames": a.chunk if name == "reel" else "", "seconds": round(s["seconds"], 3),
                             "load": round(os.getloadavg()[0], 1),
                             "peak_above_mb": round((s["resident_peak"] - s["resident_before"]) / 1e6, 1), "session_mb": round(s["session"] / 1e6, 1),
                             "packed_weights_mb": round(s["packed_weights"] / 1e6, 1), "device": s["device"], "isa": s["isa"], "library": s["library"]})
                print(rows[-1], flush=True)
    for p in running.values():
        p.stdin.close()
        p.wait()
    if a.csv:
        path = Path(a.csv)
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with path.open("a", newline="") as f:
            writer = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerows(rows)
    summary(rows, work)


def summary(rows, work):
    import numpy as np

    def of(name, key, first=1):
        return statistics.median(r[key] for r in rows if r["peer"] == name and r["pair"] >= first)

    x, y = (np.fromfile(work / f"{n}.f32", dtype=np.float32) for n in ("reel", "diffusers"))
    x = x.clip(-1, 1)
    print("median seconds: reel %.2f, diffusers %.2f, ratio %.3f; peak memory: %.0f and %.0f MB, ratio %.3f; frames differ by %.2e (relative L2)" % (
        of("reel", "seconds"), of("diffusers", "seconds"), of("diffusers", "seconds") / of("reel", "seconds"), of("reel", "peak_above_mb", 0),
        of("diffusers", "peak_above_mb", 0), of("reel", "peak_above_mb", 0) / of("diffusers", "peak_above_mb", 0),
        np.linalg.norm((x - y).astype(np.float64)) / np.linalg.norm(y.astype(np.float64))))


if __name__ == "__main__":
    main()
