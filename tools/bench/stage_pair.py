# SPDX-License-Identifier: Apache-2.0
"""One transformer forward, or one text encoding, reel beside diffusers or transformers on the same random weights, two threads each, in pairs.

    python tools/bench/stage_pair.py build/cpu/bench_stage_forward dit  --layers 4 --latents 5x60x104 --dtype bf16 --pairs 5 --csv bench/results/<cpu>/dit.csv
    python tools/bench/stage_pair.py build/cpu/bench_stage_forward umt5 --layers 4 --tokens 512 --dtype f32 --pairs 5 --csv bench/results/<cpu>/umt5.csv
    (needs torch, diffusers, transformers; the first pair is a warm-up and is not written)

The transformer has the 1.3B shape (12 heads of 128, ffn 8960), the encoder that of umT5-xxl (width 4096, 64 heads of 64, ffn 10240), with random bf16 weights.
Both peers run in a process of their own and are warm; every sample is a row of the CSV. The last line compares medians and results. --lock: a file locked
around each pair. --weights mapped|packed: how reel holds matrices."""
import argparse
import csv
import fcntl
import json
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np


def noise(seed, *shape):
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def peer(stage, folder, dtype, shape, out):
    import torch

    torch.set_num_threads(2)
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    if stage == "dit":
        import diffusers
        from diffusers import WanTransformer3DModel

        model = WanTransformer3DModel.from_pretrained(folder, torch_dtype=kind).eval()
        latents, text = noise(1, 16, *shape)[None].to(kind), noise(2, 512, 4096)[None].to(kind)
        library = f"diffusers {diffusers.__version__}, torch {torch.__version__}"
        run = lambda: model(latents, torch.tensor([500]), text, return_dict=False)[0]
    else:
        import transformers
        from transformers import UMT5EncoderModel

        model = UMT5EncoderModel.from_pretrained(folder, torch_dtype=kind).eval()
        ids = torch.tensor([[(i + 1) % model.config.vocab_size for i in range(shape[0])]])
        mask = torch.ones_like(ids)
        library = f"transformers {transformers.__version__}, torch {torch.__version__}"
        run = lambda: model(ids, mask).last_hidden_state
    for _ in sys.stdin:
        begin = time.perf_counter()
        with torch.no_grad():
            result = run()
        print(json.dumps({"seconds": time.perf_counter() - begin, "library": library, "isa": torch.backends.cpu.get_cpu_capability()}), flush=True)
    result[0].float().contiguous().numpy().tofile(out)


def make_model(stage, folder, layers):
    import torch

    if (folder / "config.json").exists():
        return
    torch.manual_seed(0)
    if stage == "dit":
        from diffusers import WanTransformer3DModel

        model = WanTransformer3DModel(num_attention_heads=12, attention_head_dim=128, num_layers=layers, ffn_dim=8960)
        with torch.no_grad():
            for name, p in model.named_parameters():
                if name.endswith("scale_shift_table"):
                    p.copy_(torch.randn_like(p) * 0.02)
    else:
        from transformers import UMT5Config, UMT5EncoderModel

        model = UMT5EncoderModel(UMT5Config(vocab_size=1024, d_model=4096, d_kv=64, d_ff=10240, num_layers=layers, num_heads=64, feed_forward_proj="gated-gelu"))
    model.to(torch.bfloat16).save_pretrained(folder)


@contextmanager
def locked(path):
    if not path:
        yield
        return
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def sample(process):
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise SystemExit("a peer ended: see its messages above")
    return json.loads(line)


def compare(a, b):
    x, y = np.fromfile(a, np.float32).astype(np.float64), np.fromfile(b, np.float32).astype(np.float64)
    return float(np.linalg.norm(x - y) / np.linalg.norm(y))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("stage", choices=["dit", "umt5"])
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--latents", default="5x60x104")
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--dtype", choices=["f32", "bf16"], default="bf16")
    p.add_argument("--weights", choices=["mapped", "packed"], default="packed")
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--csv")
    p.add_argument("--lock")
    p.add_argument("--work", default="/tmp/reel-stage-pair")
    p.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    shape = [int(x) for x in a.latents.split("x")] if a.stage == "dit" else [a.tokens]
    if a.peer:
        return peer(a.stage, a.peer[0], a.dtype, shape, a.peer[1])
    work = Path(a.work) / f"{a.stage}-{a.layers}"
    work.mkdir(parents=True, exist_ok=True)
    make_model(a.stage, work, a.layers)
    ours, theirs = str(work / "ours.f32"), str(work / "theirs.f32")
    pipe = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    first = subprocess.Popen([a.program, a.stage, str(work), a.dtype, a.weights, *map(str, shape), ours], **pipe)
    second = subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--peer", str(work), theirs], **pipe)
    rows = []
    for i in range(a.pairs + 1):
        with locked(a.lock):
            for name, process in (("reel", first), ("peer", second)):
                s = sample(process)
                if i > 0:
                    rows.append({"stage": a.stage, "layers": a.layers, "shape": "x".join(map(str, shape)), "dtype": a.dtype, "weights": a.weights if name == "reel" else "",
                                 "who": name, "pair": i, "seconds": s["seconds"], "library": s["library"], "isa": s["isa"]})
    for process in (first, second):
        process.stdin.close()
        process.wait()
    if a.csv:
        Path(a.csv).parent.mkdir(parents=True, exist_ok=True)
        is_new = not Path(a.csv).exists()
        with open(a.csv, "a", newline="") as f:
            w = csv.DictWriter(f, rows[0].keys())
            if is_new:
                w.writeheader()
            w.writerows(rows)
    times = {who: [r["seconds"] for r in rows if r["who"] == who] for who in ("reel", "peer")}
    median = {who: statistics.median(t) for who, t in times.items()}
    print(f"{a.stage} {a.dtype} {a.weights}: reel {median['reel']:.3f} s ({min(times['reel']):.3f}-{max(times['reel']):.3f}), peer {median['peer']:.3f} s "
          f"({min(times['peer']):.3f}-{max(times['peer']):.3f}), ratio {median['peer'] / median['reel']:.2f}, relative L2 between them {compare(ours, theirs):.2e}")


if __name__ == "__main__":
    main()
