#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The program draws what the prompt says: the clips of known.json, all measured right, with the program's own settings. The first row is what `./dev demo`
# makes. Usage: test_fidelity.sh PROGRAM SOURCE_DIR
set -eu
source_dir=$2
# the first python3 of the path may be one without Debian's python3-numpy
python=python3
"$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3
"$python" -c 'import numpy' || { echo "NumPy is missing: ./dev setup, or apt-get install python3-numpy"; exit 1; }
"$python" - "$source_dir" <<'EOF'
import json, pathlib, sys
root = pathlib.Path(sys.argv[1])
first = json.loads((root / "tests/e2e/known.json").read_text())[0]
dev = (root / "dev").read_text()
for text in (f'prompt=${{1:-"{first["prompt"]}"}}', f'seed=${{2:-{first["seed"]}}}'):
    if text not in dev:
        sys.exit(f"./dev demo and the first row of known.json differ: no {text} in dev")
EOF
exec "$python" "$source_dir/tests/e2e/fidelity.py" "$1" --known
