#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the bundled model draw what the prompt says, and what do the lossy settings cost?

    fidelity.py PROGRAM [--work DIR]      24 prompts, plain and lossy arithmetic; rows go to tests/e2e/results.csv (./dev fidelity)
    fidelity.py PROGRAM --known           the few clips of known.json with the program's own settings: all must be right (part of ./dev test)

Makes clips with the program (the model's own settings: 25 steps of UniPC, guidance 4), as PNG frames, which hold the exact bytes, and measures them with
tools/tiny-model/measure.py. With --work the frames stay in DIR, and clips that are already there are measured, not made again. Needs NumPy and the ffmpeg
program. The prompts are the first 24 with which the model was judged when it was trained, with the same seeds
(tools/tiny-model/measure.py --prompts 24 > tests/e2e/prompts.json).

Fails when fewer than 70 % of a row's prompts are right in all four attributes. The model is right for 85.4 % of 192 prompts; of 24 such prompts at most 16
(67 %) are right by chance in 2.0 % of draws. Prompts and seeds are fixed, so a machine's arithmetic moves the count by one or two at most; a wrong text
encoder, schedule or transformer costs far more.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools" / "tiny-model"))
import numpy as np  # noqa: E402

import measure  # noqa: E402
import render  # noqa: E402

MODEL = ROOT / "models" / "wan-tiny-t2v"
RESULTS = HERE / "results.csv"
LEAST = 0.70
ARITHMETIC = (("f32", "f32"), ("bf16", "f32"), ("f32", "bf16"))     # transformer and text encoder, VAE; the first is what the others are held against
ATTRIBUTES = ("background", "color", "motion", "shape", "size", "all_four")
KEYS = ("version", "device", "isa", "dtype", "vae_dtype", "scheduler", "steps", "guidance", "prompts")
FIELDS = KEYS + ATTRIBUTES + ("psnr_mean_db", "psnr_least_db", "ssim_mean", "ssim_least")


def make_clip(program, row, folder, options):
    """The clip of a row [T,H,W,3] uint8. One thread for each: several programs at once are quicker than one with several threads."""
    if not folder.is_dir():
        subprocess.run([program, "generate", "--model", MODEL, "--prompt", row["prompt"], "--seed", str(row["seed"]), "--threads", "1", "-q", *options,
                        "-o", f"{folder}/"], check=True, stdin=subprocess.DEVNULL)
    clip = render.read_frames(folder)
    if clip.shape != (17, 128, 128, 3):
        raise SystemExit(f"fidelity: {folder} holds a clip of {clip.shape}, wanted (17, 128, 128, 3)")
    return clip


def judge(program, rows, work, options):
    """(clips, attributes that are right) of all rows."""
    work.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        clips = list(pool.map(lambda i: make_clip(program, rows[i], work / f"{i:02d}", options), range(len(rows))))
    marks = []
    for row, clip in zip(rows, clips):
        seen = measure.measure(clip)
        marks.append(measure.right(row, seen))
        if not all(marks[-1].values()):
            wrong = ", ".join(f"{k} {seen.get(k, '')}".strip() for k, ok in marks[-1].items() if not ok and k != "all_four")
            print(f"  wrong: {wrong} | {row['prompt']} (seed {row['seed']})")
    return clips, marks


def psnr(a, b):
    mse = np.mean((a.astype(np.float64) - b) ** 2)
    return float("inf") if mse == 0 else 10 * np.log10(255.0 ** 2 / mse)


def ssim(a, b):
    """Mean structural similarity of two clips' BT.709 luma: Gaussian windows of 11 pixels with deviation 1.5, as Wang et al. 2004 define it."""
    g = np.exp(-0.5 * (np.arange(11) - 5.0) ** 2 / 1.5 ** 2)
    g /= g.sum()

    def blur(x):
        x = sum(w * x[:, i:x.shape[1] - 10 + i] for i, w in enumerate(g))
        return sum(w * x[:, :, i:x.shape[2] - 10 + i] for i, w in enumerate(g))
    x, y = (c.astype(np.float64) @ np.array([0.2126, 0.7152, 0.0722]) for c in (a, b))
    mx, my = blur(x), blur(y)
    vx, vy, cov = blur(x * x) - mx * mx, blur(y * y) - my * my, blur(x * y) - mx * my
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    return float(np.mean((2 * mx * my + c1) * (2 * cov + c2) / ((mx * mx + my * my + c1) * (vx + vy + c2))))


def ask(program, *words):
    return subprocess.run([program, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def settings(program):
    """The columns that name what was measured."""
    device = json.loads(ask(program, "devices", "--json"))["devices"][0]
    defaults = json.loads((MODEL / "reel.json").read_text())
    return dict(version=ask(program, "--version").split()[1], device=device["kind"], isa=device["isa"], scheduler="unipc", steps=defaults["steps"],
                guidance=f"{defaults['guidance_scale']:g}")


def keep(new):
    """Put rows into results.csv: in the place of a row about the same thing, or at the end."""
    old = list(csv.DictReader(RESULTS.open(newline=""))) if RESULTS.is_file() else []
    for row in new:
        row = {k: str(row[k]) for k in FIELDS}
        same = [i for i, r in enumerate(old) if all(r[k] == row[k] for k in KEYS)]
        if same:
            old[same[0]] = row
        else:
            old.append(row)
    with RESULTS.open("w", newline="") as f:
        writer = csv.DictWriter(f, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(old)


def whole(program, work):
    """All prompts with each arithmetic; the exit code."""
    rows = json.loads((HERE / "prompts.json").read_text())
    named, table, plain, short = settings(program), [], None, False
    for dtype, vae in ARITHMETIC:
        print(f"{dtype}, VAE {vae}:", flush=True)
        clips, marks = judge(program, rows, work / f"{dtype}-{vae}", ["--dtype", dtype, "--vae-dtype", vae])
        counts = {k: [m[k] for m in marks if k in m] for k in ATTRIBUTES}
        row = dict(named, dtype=dtype, vae_dtype=vae, prompts=len(rows), psnr_mean_db="", psnr_least_db="", ssim_mean="", ssim_least="")
        row.update({k: f"{sum(v)}/{len(v)}" for k, v in counts.items()})
        if plain is None:
            plain = clips
        else:
            p, s = [psnr(a, b) for a, b in zip(plain, clips)], [ssim(a, b) for a, b in zip(plain, clips)]
            row.update(psnr_mean_db=f"{np.mean(p):.2f}", psnr_least_db=f"{min(p):.2f}", ssim_mean=f"{np.mean(s):.4f}", ssim_least=f"{min(s):.4f}")
        print("  " + ", ".join(f"{k} {row[k]}" for k in FIELDS[len(KEYS):] if row[k]), flush=True)
        table.append(row)
        short |= sum(counts["all_four"]) < LEAST * len(rows)
    keep(table)
    if short:
        print(f"fidelity: fewer than {LEAST:.0%} of the prompts are right in all four attributes")
    return 1 if short else 0


def known(program, work):
    """The clips of known.json with the program's own settings; the exit code."""
    rows = json.loads((HERE / "known.json").read_text())
    _, marks = judge(program, rows, work / "known", [])
    n = sum(all(m.values()) for m in marks)
    print(f"fidelity: {n} of {len(rows)} known clips are right")
    return 0 if n == len(rows) else 1


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("--known", action="store_true")
    p.add_argument("--work", type=pathlib.Path)
    a = p.parse_args()
    program = os.path.realpath(a.program)
    with tempfile.TemporaryDirectory() as folder:
        return (known if a.known else whole)(program, (a.work or pathlib.Path(folder)).resolve())


if __name__ == "__main__":
    sys.exit(main())
