# SPDX-License-Identifier: Apache-2.0
"""Makes what tests/stages/test_random_dit.c and test_random_umt5.c compare at true sizes (random weights) when REEL_TEST_DATA names the folder.

    python tests/reference/true_sizes.py FOLDER [CASE ...]   # a folder outside the repository; 2 MB at most each; 6 GB of memory and 3 GB of mapped file
    REEL_TEST_DATA=FOLDER build/cpu/stages_random_dit        # 1.3B whole, one block of 5B and of A14B: 3.2 GB
    REEL_TEST_DATA=FOLDER build/cpu/stages_random_umt5       # two layers of umT5-xxl's width

Same files as tests/reference/stages.py makes: weights and inputs come from hashes, the file holds the outputs. Weights are stored as BF16."""
import sys
from pathlib import Path

import torch

import stages

CASES = {
    "umt5_xxl_2layers": (4096, 64, 64, 10240, 2, 1000, 32, 128, "BF16", [7, 120], 512),
    "dit_5b_1layer": (24, 128, 1, 14336, 48, 48, 4096, 256, True, "BF16", (5, 16, 16), [20], 512, 999),
    "dit_a14b_1layer": (40, 128, 1, 13824, 16, 16, 4096, 256, True, "BF16", (5, 16, 16), [20], 512, 875),
    "dit_1_3b": (12, 128, 30, 8960, 16, 16, 4096, 256, True, "BF16", (5, 16, 16), [20], 512, 999),
}

if __name__ == "__main__":
    torch.set_num_threads(2)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for case, sizes in CASES.items():
        if len(sys.argv) == 2 or case in sys.argv[2:]:
            stages.make(folder / f"{case}.safetensors", sizes, scratch=folder)
