# SPDX-License-Identifier: Apache-2.0
"""reel's attention beside PyTorch's scaled_dot_product_attention on the same machine in one run, two threads each.

    python tools/bench/attention_pair.py build/cpu/reel --model models/wan-tiny-t2v --pairs 5 --csv bench/results/<cpu>/attention.csv
    (needs torch)

`reel bench --what attention` times every implementation over its table of shapes; PyTorch runs the same shapes before and after it, in turn. Every sample is a row."""
import argparse
import csv
import json
import statistics
import subprocess
import time
from pathlib import Path


def torch_times(case, pairs):
    import torch

    torch.set_num_threads(2)
    kind = {"F32": torch.float32, "BF16": torch.bfloat16}[case["dtype"]]
    q, k, v = (torch.randn(1, case["heads"], case["tokens"], case["head_dim"]).to(kind) for _ in range(3))
    out = []
    with torch.no_grad():
        for i in range(pairs + 1):
            begin = time.perf_counter()
            torch.nn.functional.scaled_dot_product_attention(q, k, v)
            if i > 0:
                out.append(time.perf_counter() - begin)
    return out


def main():
    import torch

    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--model", required=True)
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--csv")
    a = p.parse_args()
    report = json.loads(subprocess.run([a.program, "bench", "--what", "attention", "--json", "--model", a.model, "--repeats", str(a.pairs)], check=True, capture_output=True, text=True).stdout)
    rows, peers = [], {}
    for case in report["attention"]:
        key = (case["tokens"], case["heads"], case["head_dim"], case["dtype"])
        if "times" not in case:
            continue
        if key not in peers:
            peers[key] = torch_times(case, a.pairs)
            rows += [[*key, f"torch {torch.__version__}", i, s] for i, s in enumerate(peers[key])]
        rows += [[*key, case["name"], i, s] for i, s in enumerate(case["times"]["samples_s"])]
        flop = 4 * case["tokens"] ** 2 * case["heads"] * case["head_dim"]
        mine, theirs = case["times"]["median_s"], statistics.median(peers[key])
        print(f"{case['dtype']:5} {case['heads']:3} x {case['tokens']:5} x {case['head_dim']:3}  {case['name']:18} {flop / mine / 1e9:7.0f} GFLOP/s   torch {flop / theirs / 1e9:7.0f}   ratio {theirs / mine:.2f}")
    if a.csv:
        Path(a.csv).parent.mkdir(parents=True, exist_ok=True)
        with open(a.csv, "w", newline="") as f:
            csv.writer(f).writerows([["tokens", "heads", "head_dim", "dtype", "who", "sample", "seconds"], *rows])


if __name__ == "__main__":
    main()
