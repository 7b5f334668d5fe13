#!/usr/bin/env python3
"""Writes tests/data/goldens/unicode.txt: what Hugging Face tokenizers makes of code points. Needs tokenizers 0.23.3.

python3 tests/text/make_unicode_golden.py > tests/data/goldens/unicode.txt
"""
import random
import unicodedata

from tokenizers import Regex, normalizers

CODES = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
NFC = normalizers.NFC()


def ranges_of(pattern):
    """Ranges of code points that a regular expression matches."""
    strip = normalizers.Replace(Regex(pattern), "")
    found = []
    for start in range(0, len(CODES), 4096):
        part = CODES[start:start + 4096]
        kept = set(map(ord, strip.normalize_str("".join(map(chr, part)))))
        for code in part:
            if code in kept:
                continue
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return found


def hexed(text):
    return " ".join(f"{ord(c):x}" for c in text)


print("# made by: python3 tests/text/make_unicode_golden.py > tests/data/goldens/unicode.txt")
for name, pattern in (("L", r"\p{L}"), ("N", r"\p{N}"), ("S", r"\s")):
    for first, last in ranges_of(pattern):
        print(f"{name} {first:x} {last:x}")

random.seed(1)
MARKS = [c for c in CODES if unicodedata.combining(chr(c))]
SECONDS = [c for c in CODES if len(unicodedata.normalize("NFD", chr(c))) > 1]
SECONDS = sorted({ord(unicodedata.normalize("NFD", chr(c))[-1]) for c in SECONDS})
WHOLE = [c for c in CODES if unicodedata.normalize("NFD", chr(c)) != chr(c) and not 0xAC00 <= c < 0xD7A4]
HANGUL = [0x1100, 0x1112, 0x1161, 0x1175, 0x11A7, 0x11A8, 0x11C2, 0x11C3, 0xAC00, 0xAC01, 0xD7A3]
FIRSTS = [ord(unicodedata.normalize("NFD", chr(c))[0]) for c in WHOLE]
TEXTS = [chr(c) for c in WHOLE] + [unicodedata.normalize("NFD", chr(c)) for c in WHOLE]
for pool in range(3000):
    length = random.randint(1, 8)
    TEXTS.append("".join(chr(random.choice(random.choice((FIRSTS, MARKS, SECONDS, WHOLE, HANGUL, [0x61]))))
                         for _ in range(length)))
for text in TEXTS:
    print(f"C {hexed(text)} = {hexed(NFC.normalize_str(text))}")
