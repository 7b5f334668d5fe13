"""tools/tidy.c and tools/symcheck.sh: each rule finds what it is for, and nothing else; and this tree is clean."""
import os
import subprocess
import sys
import tempfile
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEAD = "/* x: a file. */\n"
TEST = {"tests/pools/test_x.c": HEAD}


def tidy(files, exceptions=""):
    """Findings of the linter over these files (path: text)."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**files, "exceptions.txt": exceptions}.items():
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(folder, path), "w") as file:
                file.write(text)
        done = subprocess.run([os.path.join(ROOT, "build/tools/tidy"), "exceptions.txt"] + list(files), cwd=folder,
                              capture_output=True, text=True)
        findings = done.stdout.strip().split("\n")[:-1]
        assert done.returncode == (1 if findings else 0), done
        return findings


def finds(word, path, text, **others):
    findings = tidy({path: text, **TEST, **others})
    assert len(findings) == 1 and word in findings[0] and findings[0].startswith(path), (word, findings)


def clean(path, text, **others):
    findings = tidy({path: text, **TEST, **others})
    assert not findings, findings


def lines_are_judged():
    finds("120", "pools/x.c", HEAD + "/* " + "a" * 120 + " */\n")
    finds("blanks", "pools/x.c", HEAD + "int a; \n")
    finds("tab", "pools/x.c", HEAD + "\tint a;\n")
    finds("newline", "pools/x.c", HEAD + "int a;")
    finds("issue", "pools/x.c", HEAD + "/* TO" + "DO: later */\n")
    finds("opening comment", "pools/x.c", "int a;\n")
    finds("split the file", "pools/x.c", HEAD + "\n" * 800)
    clean("pools/x.c", HEAD + "/* " + "ä" * 110 + " */\n")
    clean("pools/x_table.h", HEAD + "ROW(" + "a" * 150 + ")\n", **{"pools/x.c": HEAD + '#include "pools/x_table.h"\n'})


def functions_are_measured():
    def body(lines):
        return HEAD + "static const int a[] = {\n" + "1,\n" * 90 + "};\nint f(void)\n{\n" + "    g();\n" * lines + "}\n"
    clean("pools/x.c", body(67))
    finds("f has 71 lines", "pools/x.c", body(68))
    assert not tidy({"pools/x.c": body(68), **TEST}, "function pools/x.c:f 71 a table\n")
    assert "lower it" in tidy({"pools/x.c": body(68), **TEST}, "function pools/x.c:f 90 a table\n")[0]
    assert "not needed" in tidy({"pools/x.c": body(60), **TEST}, "function pools/x.c:f 71 a table\n")[0]


def calls_are_forbidden_in_code_only():
    finds("malloc()", "pools/x.c", HEAD + "int *f = malloc(3);\n")
    finds("qsort()", "pools/x.c", HEAD + "void f(void)\n{\n    qsort (a);\n}\n")
    finds("mmap()", "pools/x.c", HEAD + "void *p = mmap(0);\n")
    clean("pools/domain_x.c", HEAD + "void *p = mmap(0);\n", **{"tests/pools/test_domain_x.c": HEAD})
    clean("pools/x.c",
          HEAD + "/* malloc(3) */ const char *a = \"free(x)\\\"malloc(\"; char b = '\"'; int c = x.free(1);\n")
    clean("tools/x.c", HEAD + "int *f = malloc(3);\n")


def asserts_have_no_effects():
    for text in ("a = 3", "a++", "--a", "slab_get(x) == 1", "f(a += 1)"):
        finds("assert", "pools/x.c", HEAD + "void f(void)\n{\n    assert(%s);\n}\n" % text)
    for text in ("a == 3 && b <= 4 && c != 5 && d >= 6", "pools_used(x) == 0", "file_map_count() == 0",
                 "strlen(a) > 0"):
        clean("pools/x.c", HEAD + "void f(void)\n{\n    assert(%s);\n}\n" % text)


def layers_are_kept():
    for path, target in (("pools/x.c", "engine/y.h"), ("pools/x.c", "kernels/y.h"), ("kernels/x.c", "pools/y.h"),
                         ("engine/model/x.c", "engine/http/y.h"), ("engine/http/x.c", "engine/model/y.h")):
        folder = path.split("/")[-2]
        findings = tidy({path: HEAD + '#include "%s"\n' % target, "tests/%s/test_x.c" % folder: HEAD})
        assert len(findings) == 1 and "one way" in findings[0], findings
    finds("repository root", "tools/x.c", HEAD + '#include "y.h"\n')
    clean("pools/x.c", HEAD + '#include "config.h"\n#include <stdio.h>\n')


def names_are_judged():
    finds("'utils'", "tools/x_utils.c", HEAD)
    finds("path parts", "tests/a/b/c/d.py", "x = 1\n")
    finds("a model's name", "pools/x.c", HEAD + 'const char *a = "Qwen2";\n')
    clean("engine/model/arch/x.c", HEAD + 'const char *a = "Qwen2";\n')
    clean("pools/x.c", HEAD + "/* as Qwen2 does */\n")


def the_tree_is_judged():
    assert "write tests/text/test_y.c" in tidy({"engine/text/y.c": HEAD})[0]
    assert not tidy({"engine/text/y.c": HEAD}, "untested engine/text/y.c 1 tested elsewhere\n")
    assert "is taken" in tidy({"pools/x.c": HEAD, "tools/x.c": HEAD, **TEST})[0]
    assert "no file includes" in tidy({"pools/x.h": HEAD})[0]
    assert not tidy({"kernels/ref/x.c": HEAD, "kernels/cpu/x.c": HEAD})


def symcheck(source, path):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("pools", "kernels", "engine"):
            os.makedirs(os.path.join(folder, name))
        subprocess.run(["gcc", "-c", "-x", "c", "-o", os.path.join(folder, path), "-"], input=source, text=True,
                       check=True)
        done = subprocess.run([os.path.join(ROOT, "tools/symcheck.sh"), folder], capture_output=True, text=True)
        return done.returncode, done.stdout


def symbols_are_judged():
    heap = "#include <stdlib.h>\nvoid *%s(void) { return malloc(3); }\n"
    for path, name, is_fine in (("pools/x.o", "x_a", False), ("pools/domain_x.o", "domain_a", True),
                                ("engine/x.o", "x_a", False)):
        status, text = symcheck(heap % name, path)
        assert (status == 0) == is_fine and ("malloc" in text) != is_fine, text
    for source, path, word in (("int other_name(void) { return 1; }", "engine/x.o", "exports other_name"),
                               ("int pools_put(int); int x_a(void) { return pools_put(1); }", "kernels/x.o",
                                "pools_put")):
        status, text = symcheck(source, path)
        assert status == 1 and word in text, text
    assert symcheck("double sqrt(double); double x_a(double a) { return sqrt(a); }", "kernels/x.o")[0] == 0


def this_tree_is_clean():
    for target in ("tidy", "symcheck"):
        done = subprocess.run(["make", "--no-print-directory", "-s", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def main():
    passed = failed = 0
    for case in (lines_are_judged, functions_are_measured, calls_are_forbidden_in_code_only, asserts_have_no_effects,
                 layers_are_kept, names_are_judged, the_tree_is_judged, symbols_are_judged, this_tree_is_clean):
        try:
            case()
            passed += 1
        except Exception:
            failed += 1
            print("%s: FAILED\n%s" % (case.__name__, traceback.format_exc(limit=-1)))
    print("tools/tidy: %d passed, %d failed" % (passed, failed))
    sys.exit(0 if failed == 0 else 1)


if __name__ == "__main__":
    main()
