"""Writes quants.json: blocks of every quantised type, and what the `gguf` package makes of them.

    pip install gguf numpy && python3 tests/goldens/quants.py
"""

import hashlib
import json
from pathlib import Path

import numpy
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

ROWS, COLS = 18, 256
# The type, its bytes for a block, its elements, and where its f16 scales are.
KINDS = [
    ("F16", 2, 1, []),
    ("BF16", 2, 1, []),
    ("Q4_0", 18, 32, [0]),
    ("Q4_1", 20, 32, [0, 2]),
    ("Q5_0", 22, 32, [0]),
    ("Q5_1", 24, 32, [0, 2]),
    ("Q8_0", 34, 32, [0]),
    ("Q4_K", 144, 256, [0, 2]),
    ("Q5_K", 176, 256, [0, 2]),
    ("Q6_K", 210, 256, [208]),
]


def main() -> None:
    random = numpy.random.default_rng(7)
    goldens = []
    for kind, size, length, scales in KINDS:
        blocks = random.integers(0, 256, (ROWS * COLS // length, size), dtype=numpy.uint8)
        blocks[0] = 255
        blocks[1] = 0
        for at in scales:
            scale = random.standard_normal(len(blocks)).astype(numpy.float16)
            scale[2:5] = [65504, 6e-8, -0.0]
            blocks[:, at : at + 2] = scale.view(numpy.uint8).reshape(-1, 2)
        if not scales:
            dtype = numpy.float16 if kind == "F16" else numpy.float32
            values = random.standard_normal(ROWS * COLS).astype(dtype)
            # A BF16 is the upper half of a float.
            blocks = values.view(numpy.uint8).reshape(len(values), -1)[:, -2:].copy()
        data = blocks.reshape(ROWS, -1)
        values = dequantize(data, getattr(Type, kind)).astype(numpy.float32) + numpy.float32(0)
        assert values.shape == (ROWS, COLS) and numpy.isfinite(values).all()
        goldens.append({
            "kind": kind,
            "rows": ROWS,
            "cols": COLS,
            "bytes": data.tobytes().hex(),
            "sha256": hashlib.sha256(values.astype("<f4").tobytes()).hexdigest(),
            "first": [float(value) for value in values[0, :64]],
        })
    Path(__file__).with_name("quants.json").write_text(json.dumps(goldens, indent=1) + "\n")


if __name__ == "__main__":
    main()
