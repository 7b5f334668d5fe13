"""Golden plans: what `ashlar plan` prints for each card and model, to the byte. A change of memory shows in review.
The README shows one too, which must be what its command prints.

python3 tests/plan/test_plans.py         compares
python3 tests/plan/test_plans.py make    writes the golden files anew (make plan-goldens)
"""
import difflib
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "tests", "plan")
README = os.path.join(ROOT, "README.md")
README_PLAN = re.compile(r"^\$ build/ashlar plan (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
ASHLAR = os.environ.get("ASHLAR", "build/ashlar")

CARDS = {"24gib": "24Gi", "40gib": "40Gi", "80gib": "80Gi", "141gib": "143771Mi"}
MODELS = {"3b": ("tests/data/models/Qwen2.5-VL-3B-Instruct", "8192"),
          "7b": ("tests/data/models/Qwen2.5-VL-7B-Instruct", "32768")}
BUSY = ["--max-running-requests", "64", "--chunked-prefill-size", "8192"]


def serving(model, memory):
    """Threads are named, since their default is the machine's."""
    folder, context = MODELS[model]
    return ["--model-path", folder, "--device-memory", memory, "--mem-fraction-static", "0.85",
            "--context-length", context, "--threads", "8"]


def plans():
    """Name -> (arguments, exit code)."""
    found = {}
    for card, memory in CARDS.items():
        for model in MODELS:
            found[f"{model}-{card}"] = (serving(model, memory), 0)
    found["7b-141gib-busy"] = (serving("7b", CARDS["141gib"]) + BUSY, 0)
    found["7b-16gib-missing"] = (serving("7b", "16Gi"), 3)
    demo = ["--model-path", "demo/model", "--threads", "2"]
    found["demo-2gib"] = (demo + ["--device-memory", "2Gi"], 0)
    small = ["--max-running-requests", "2", "--context-length", "1024", "--max-source-pixels", "4Mi",
             "--large-bodies", "1", "--large-body-bytes", "8Mi"]
    found["demo-small"] = (demo + ["--device-memory", "512Mi"] + small, 0)
    return found


def printed(arguments):
    done = subprocess.run([ASHLAR, "plan"] + arguments, cwd=ROOT, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def golden(arguments, text):
    return f"# Made by `make plan-goldens`: build/ashlar plan {' '.join(arguments)}\n{text}"


def path_of(name):
    return os.path.join(FOLDER, name + ".golden")


def make():
    for name, (arguments, wanted) in plans().items():
        code, out, err = printed(arguments)
        if code != wanted:
            sys.exit(f"{name}: exit code {code}, not {wanted}\n{out}{err}")
        with open(path_of(name), "w") as file:
            file.write(golden(arguments, out))
    with open(README) as file:
        text = file.read()
    shown = README_PLAN.search(text)
    _, out, _ = printed(shown.group(1).split())
    with open(README, "w") as file:
        file.write(text[:shown.start(2)] + out + text[shown.end(2):])


def check_same(name, expected, now):
    difference = "\n".join(difflib.unified_diff(expected.splitlines(), now.splitlines(), name, "now", lineterm=""))
    assert not difference, difference + "\n(if it is meant: make plan-goldens)"


def compare(name, arguments, wanted):
    code, out, err = printed(arguments)
    assert code == wanted, f"exit code {code}, not {wanted}\n{err}"
    with open(path_of(name)) as file:
        check_same(name, file.read(), golden(arguments, out))


def readme_is_true():
    with open(README) as file:
        shown = README_PLAN.search(file.read())
    check_same("README.md", shown.group(2), printed(shown.group(1).split())[1])


def json_agrees(name, arguments, wanted):
    code, out, err = printed(arguments + ["--json"])
    assert code == wanted, err
    plan = json.loads(out)
    assert plan["fits"] == (wanted == 0)
    assert plan["total_bytes"] == plan["device_bytes"] + plan["pinned_bytes"] + plan["host_bytes"]
    rows = sum(pool["bytes"] for pool in plan["pools"]) + plan["books_bytes"]
    assert plan["total_bytes"] == rows, "bytes outside of every row"
    for pool in plan["pools"]:
        assert pool["count"] in (0, sum(holder["count"] for holder in pool["holders"])), pool["name"]
    if wanted == 0:
        assert plan["total_bytes"] <= plan["limit_bytes"]
    if "7B" in " ".join(arguments):
        assert (plan["tensors"], plan["weight_file_bytes"], plan["kv_token_bytes"]) == (729, 16584333312, 57344)


def main():
    if sys.argv[1:] == ["make"]:
        return make()
    passed = failed = 0
    checks = [(check, (name, *plan)) for name, plan in plans().items() for check in (compare, json_agrees)]
    for check, arguments in checks + [(readme_is_true, ())]:
        try:
            check(*arguments)
            passed += 1
        except (AssertionError, AttributeError, OSError, ValueError, KeyError) as error:
            failed += 1
            print(f"{check.__name__} {arguments[:1]}: {error}", file=sys.stderr)
    print(f"plan: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
