#!/bin/sh
# Runs test programs one after the other and closes with the sum of their `N passed, N failed` lines. Programs in Python
# run under $PYTHON.
passed=0 failed=0 out=$(mktemp)
trap 'rm -f "$out"' EXIT
for test in "$@"; do
    case "$test" in
    *.py) "${PYTHON:-python3}" "$test" >"$out" ;;
    *) "$test" >"$out" ;;
    esac
    status=$?
    cat "$out"
    line=$(grep -E '[0-9]+ passed, [0-9]+ failed' "$out" | tail -n 1)
    p=$(echo "$line" | sed -E 's/.*[^0-9]([0-9]+) passed.*/\1/') f=$(echo "$line" | sed -E 's/.* ([0-9]+) failed.*/\1/')
    if [ -z "$line" ]; then echo "$test: ended without a result (status $status)"; p=0 f=1; fi
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then echo "$test: status $status"; f=1; fi
    passed=$((passed + p)) failed=$((failed + f))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
