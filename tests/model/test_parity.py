"""Parity with the reference: every fixture case in both types, with every variant of the kernels that this machine has,
and the demo model's whole evaluation set."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACKS_KERNELS = 3
EVAL = ["--eval", "demo/eval", "--model-path", "demo/model"]
FIXTURES = ["tests/data/fixtures"]
RUNS = [FIXTURES, EVAL] + [FIXTURES + ["--kernels", level] for level in ("generic", "avx2", "avx512", "avx512bf16")] + [
    EVAL + ["--kernels", "avx2"]]


def main():
    passed = failed = 0
    for arguments in RUNS:
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
