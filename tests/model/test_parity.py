"""Parity with the reference: every fixture case in both types, with every variant of the kernels that this machine has,
and the demo model's whole evaluation set. The same numbers come from config.json as transformers 5 writes it, and from
checkpoints in f32 and f16."""
import json
import os
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACKS_KERNELS = 3
EVAL = ["--eval", "demo/eval", "--model-path", "demo/model"]
FIXTURES = ["tests/data/fixtures"]
RUNS = [FIXTURES, EVAL] + [FIXTURES + ["--kernels", level] for level in ("generic", "avx2", "avx512", "avx512bf16")] + [
    EVAL + ["--kernels", "avx2"]]


def folder_of_q25vl_a(place, changed):
    """The fixtures' q25vl-a with some files changed, in the format that ashlar-parity reads."""
    fixtures = os.path.join(ROOT, FIXTURES[0])
    model = os.path.join("models", "q25vl-a")
    os.makedirs(os.path.join(place, model))
    for name in ("cases", "images"):
        os.symlink(os.path.join(fixtures, name), os.path.join(place, name))
    for name in os.listdir(os.path.join(fixtures, model)):
        target = os.path.join(place, model, name)
        if name in changed:
            with open(target, "wb") as file:
                file.write(changed[name])
        else:
            os.symlink(os.path.join(fixtures, model, name), target)
    return place


def file_of_q25vl_a(name):
    with open(os.path.join(ROOT, FIXTURES[0], "models", "q25vl-a", name), "rb") as file:
        return file.read()


def wide(bf16):
    """The bytes of float32 numbers, from those of bfloat16 ones."""
    out = bytearray(2 * len(bf16))
    out[2::4], out[3::4] = bf16[0::2], bf16[1::2]
    return bytes(out)


def half(bf16):
    count = len(bf16) // 2
    return struct.pack("<%de" % count, *struct.unpack("<%df" % count, wide(bf16)))


def checkpoint_as(name, convert):
    """model.safetensors with every tensor in another type."""
    data = file_of_q25vl_a("model.safetensors")
    length = struct.unpack("<Q", data[:8])[0]
    header, tensors, at = json.loads(data[8:8 + length]), [], 0
    for entry in (entry for key, entry in header.items() if key != "__metadata__"):
        begin, end = entry["data_offsets"]
        tensors.append(convert(data[8 + length + begin:8 + length + end]))
        entry.update(dtype=name, data_offsets=[at, at + len(tensors[-1])])
        at += len(tensors[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensors)


def other_forms(place):
    """The same model in other forms; the reference's numbers hold for all of them."""
    forms = {"config of transformers 5": {"config.json": file_of_q25vl_a("config_transformers5.json")},
             "f32": {"model.safetensors": checkpoint_as("F32", wide)},
             "f16": {"model.safetensors": checkpoint_as("F16", half)}}
    assert forms["config of transformers 5"]["config.json"] != file_of_q25vl_a("config.json")
    return [[folder_of_q25vl_a(os.path.join(place, form), changed)] for form, changed in forms.items()]


def main():
    with tempfile.TemporaryDirectory() as place:
        return run_all(RUNS + other_forms(place))


def run_all(runs):
    passed = failed = 0
    for arguments in runs:
        done = subprocess.run(["build/ashlar-parity"] + arguments, cwd=ROOT, capture_output=True, text=True,
                              check=False)
        if done.returncode == LACKS_KERNELS:
            print(done.stderr.strip())
            continue
        lines = done.stdout.splitlines()
        good = sum(line.startswith("ok ") for line in lines)
        bad = sum(line.startswith("FAIL") for line in lines)
        if good == 0 or (done.returncode != 0 and bad == 0):
            bad += 1
        if bad > 0:
            print(done.stdout + done.stderr)
        passed, failed = passed + good, failed + bad
    print("model/parity: %d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
