# SPDX-License-Identifier: Apache-2.0
"""Copies the recorded activations of wan-tiny-t2v into tests/fixtures, without what no test reads.

    python3 tests/reference/recordings.py RECORDINGS tests/fixtures/wan-tiny-t2v

RECORDINGS is the folder that tools/tiny-model/reference.py writes. Left out: inner_block_1 to 5, frames_float, and the per-step
latents of prompts 1 and 2, which keeps the fixtures small. Needs safetensors and numpy.
"""
import pathlib
import shutil
import sys

from safetensors.numpy import load_file, save_file


def keep(prompt: int, name: str) -> bool:
    if name == "frames_float" or name in {f"inner_block_{i}" for i in range(1, 6)}:
        return False
    return not (name == "latents" and prompt > 0)


def main() -> None:
    source, target = map(pathlib.Path, sys.argv[1:3])
    target.mkdir(parents=True, exist_ok=True)
    for prompt in range(3):
        tensors = load_file(source / f"prompt_{prompt}.safetensors")
        save_file({k: v for k, v in tensors.items() if keep(prompt, k)}, target / f"prompt_{prompt}.safetensors")
    for name in ("vae.safetensors", "schedules.safetensors", "tokens.json"):
        shutil.copyfile(source / name, target / name)


if __name__ == "__main__":
    main()
