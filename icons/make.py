#!/usr/bin/env python3
"""Makes every icon file from steward.svg and tray.svg.

Needs rsvg-convert (package librsvg2-bin). The results are committed; run this after a change
of a drawing: `python3 icons/make.py`.
"""

import struct
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
PNGS = {"32x32.png": 32, "128x128.png": 128, "128x128@2x.png": 256, "icon.png": 512}
ICO_SIZES = (16, 24, 32, 48, 64, 256)
# Apple's type codes for PNG entries, by pixels.
ICNS_TYPES = ((b"icp4", 16), (b"icp5", 32), (b"ic11", 32), (b"ic12", 64), (b"ic07", 128),
              (b"ic13", 256), (b"ic08", 256), (b"ic14", 512), (b"ic09", 512), (b"ic10", 1024))


def render(drawing: str, size: int) -> bytes:
    """The drawing as an RGBA PNG of `size` by `size` pixels."""
    command = ["rsvg-convert", "--width", str(size), "--height", str(size), str(HERE / drawing)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def ico(images: dict[int, bytes]) -> bytes:
    """An ICO of PNG entries. A size of 256 is written as 0, as the format has one byte for it."""
    header = struct.pack("<HHH", 0, 1, len(images))
    offset = len(header) + 16 * len(images)
    entries, bodies = b"", b""
    for size, png in images.items():
        entries += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(png), offset + len(bodies))
        bodies += png
    return header + entries + bodies


def icns(images: list[tuple[bytes, bytes]]) -> bytes:
    """An ICNS: each entry is its type, its length with these 8 bytes, and a PNG."""
    body = b"".join(kind + struct.pack(">I", len(png) + 8) + png for kind, png in images)
    return b"icns" + struct.pack(">I", len(body) + 8) + body


def main() -> None:
    for name, size in PNGS.items():
        (HERE / name).write_bytes(render("steward.svg", size))
    (HERE / "tray.png").write_bytes(render("tray.svg", 64))
    (HERE / "icon.ico").write_bytes(ico({size: render("steward.svg", size) for size in ICO_SIZES}))
    (HERE / "icon.icns").write_bytes(icns([(kind, render("steward.svg", size)) for kind, size in ICNS_TYPES]))


if __name__ == "__main__":
    main()
