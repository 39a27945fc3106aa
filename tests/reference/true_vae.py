# SPDX-License-Identifier: Apache-2.0
"""Makes what tests/stages/test_vae.c compares at the true Wan2.1 size (base_dim 96, random weights) when REEL_TEST_DATA names the folder.

    python tests/reference/true_vae.py FOLDER      # a folder outside the repository; two files of 100 KB, 2 minutes, 3 GB of memory
    REEL_TEST_DATA=FOLDER build/cpu/stages_vae     # 1 GB of memory more, for the weights

Same files as tests/reference/vae.py makes: weights and inputs come from hashes, the file holds the outputs."""
import sys
from pathlib import Path

import torch

import vae

CASES = {
    "vae_true_4x6": (96, None, [1, 2, 4, 4], 2, [False, True, True], 16, "F32", 4, 6, 2, 32, 48),
    "vae_true_5x3": (96, None, [1, 2, 4, 4], 2, [False, True, True], 16, "BF16", 5, 3, 1, 45, 30),
}

if __name__ == "__main__":
    torch.set_num_threads(2)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for case, sizes in CASES.items():
        vae.make(str(folder / f"{case}.safetensors"), *sizes)
