# SPDX-License-Identifier: Apache-2.0
"""A whole generation, start of the process to finished file: reel beside a diffusers script, two threads each, in pairs.

    python tools/bench/generate_pair.py build/cpu/reel models/wan-tiny-t2v --dtype f32 --steps 20 --pairs 5 --csv bench/results/<cpu>/generate.csv
    (needs torch, diffusers, transformers and ffmpeg)

The same prompt, seed, size, steps and guidance; the diffusers script loads WanPipeline, draws, and hands the frames to ffmpeg's libx264. Every sample is a row."""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROMPT = "A red circle moves from left to right on a white background."


def peer(model, dtype, steps, out):
    import torch
    from diffusers import WanPipeline
    from transformers import AutoTokenizer

    torch.set_num_threads(2)
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    pipe = WanPipeline.from_pretrained(model, torch_dtype=kind, tokenizer=AutoTokenizer.from_pretrained(f"{model}/tokenizer"))
    pipe.vae.to(torch.float32)
    pipe.set_progress_bar_config(disable=True)
    frames = pipe(PROMPT, negative_prompt="", height=128, width=128, num_frames=17, num_inference_steps=steps, guidance_scale=4.0, generator=torch.Generator().manual_seed(42)).frames[0]
    data = (frames * 255).round().astype("uint8").tobytes()
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "128x128", "-r", "8", "-i", "-", "-c:v", "libx264", "-pix_fmt", "yuv420p", out],
                   input=data, check=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("model")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--csv")
    p.add_argument("--peer")
    a = p.parse_args()
    if a.peer:
        return peer(a.model, a.dtype, a.steps, a.peer)
    folder = tempfile.mkdtemp()
    ours = [a.program, "generate", "-q", "--model", a.model, "--prompt", PROMPT, "--seed", "42", "--steps", str(a.steps), "--guidance-scale", "4", "--dtype", a.dtype, "-o", f"{folder}/ours.mp4"]
    theirs = [sys.executable, __file__, a.program, a.model, "--dtype", a.dtype, "--steps", str(a.steps), "--peer", f"{folder}/theirs.mp4"]
    rows = []
    for i in range(a.pairs + 1):
        for who, command in (("reel", ours), ("diffusers", theirs)):
            begin, before = time.perf_counter(), os.times()
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            if i > 0:
                rows.append({"dtype": a.dtype, "steps": a.steps, "who": who, "pair": i, "seconds": time.perf_counter() - begin, "cpu_seconds": cpu})
    import diffusers
    import torch

    if a.csv:
        Path(a.csv).parent.mkdir(parents=True, exist_ok=True)
        is_new = not Path(a.csv).exists()
        with open(a.csv, "a", newline="") as f:
            w = csv.DictWriter(f, [*rows[0].keys(), "peer"])
            if is_new:
                w.writeheader()
            w.writerows({**r, "peer": f"diffusers {diffusers.__version__}, torch {torch.__version__}"} for r in rows)
    for key in ("seconds", "cpu_seconds"):
        m = {who: statistics.median(r[key] for r in rows if r["who"] == who) for who in ("reel", "diffusers")}
        print(f"{a.dtype} {a.steps} steps, {key}: reel {m['reel']:.2f}, diffusers {m['diffusers']:.2f}, ratio {m['reel'] / m['diffusers']:.3f}")


if __name__ == "__main__":
    main()
