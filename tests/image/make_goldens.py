#!/usr/bin/env python3
"""Writes tests/image/decoded.golden and tests/image/resized.golden with Pillow, from the pictures in tests/data.

Run from the repository root: python3 tests/image/make_goldens.py (needs Pillow and numpy; checks itself against
tests/data/fixtures/preprocess/preprocess.json where the two mean the same).
"""
import glob
import hashlib
import json
import os

import numpy as np
from PIL import Image, ImageOps

DATA = "tests/data/"
FOLDERS = ["fixtures/images/*.*", "images/exif-orientation/*", "images/photos/*", "images/libjpeg-turbo/*",
           "images/pillow/*", "images/zune/jpeg/*", "images/jpeg-decoder/reftest/**/*", "images/pngsuite/*.png",
           "images/pngsuite-extra/*", "images/png-bugfixes/*"]
COMMAND = "# made by tests/image/make_goldens.py (Pillow %s); see there"


def load(path):
    """The picture upright, on white, 16-bit gray by its high byte: the rules of engine/image."""
    image = ImageOps.exif_transpose(Image.open(path))
    if image.mode.startswith("I;16"):
        samples = (np.asarray(image) >> 8).astype(np.uint8)
        key = image.info.get("transparency")
        image = Image.fromarray(samples).convert("RGB")
        if key is not None:
            return None     # compared by test_png with a picture of its own
    if "A" in image.mode or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, (255, 255, 255))
        white.alpha_composite(rgba)
        return white.convert("RGB")
    return image.convert("RGB")


def sha(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def decoded():
    rows = []
    for path in sorted({f for pattern in FOLDERS for f in glob.glob(DATA + pattern, recursive=True)}):
        is_broken = "/png-bugfixes/x_" in path or "/pngsuite/x" in path
        if not os.path.isfile(path) or path.rsplit(".", 1)[-1] not in ("jpg", "png") or is_broken:
            continue
        try:
            image = load(path)
        except (OSError, SyntaxError, ValueError):
            continue        # what Pillow refuses is listed by the tests themselves
        if image is not None:
            rows.append(f"{path}\t{image.width}\t{image.height}\t{sha(image)}")
    return rows


def resized():
    rows = []
    golden = json.load(open(DATA + "fixtures/preprocess/preprocess.json"))
    for entry in golden["images"]:
        path = DATA + entry["file"].removeprefix("data/")
        image = load(path)
        is_own = image.tobytes() != Image.open(path).convert("RGB").tobytes()
        assert is_own or sha(image) == entry["rgb_sha256"], path
        for processor, units in (("qwen2.5-vl", (14, 3136, 12845056)), ("qwen3-vl", (16, 65536, 16777216))):
            width, height = entry["out"][processor]["resized_wh"]
            out = image.resize((width, image.height), Image.BICUBIC).resize((width, height), Image.BICUBIC)
            expected = entry["out"][processor]["resized_hv_sha256"]
            same = not entry["white_differs"] and not path.endswith("gray16_90x60.png")
            assert not same or sha(out) == expected, path
            rows.append("\t".join(map(str, (path, *units, width, height, sha(out)))))
    return rows


for name, rows, columns in (("decoded", decoded(), "file\twidth\theight\tsha256 of RGB"),
                            ("resized", resized(), "file\tpatch\tmin\tmax\twidth\theight\tsha256 of RGB")):
    with open(f"tests/image/{name}.golden", "w") as file:
        file.write(COMMAND % Image.__version__ + f"\n# {columns}\n" + "\n".join(rows) + "\n")
    print(name, len(rows))
