"""Fence 1 (pools/no_heap.h): no product file can name an allocator, and the libraries' headers compile behind it."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
         "-include", "pools/no_heap.h", "-I.", "-fsyntax-only", "-x", "c", "-"]
HEADERS = ["arpa/inet.h", "errno.h", "fcntl.h", "linux/futex.h", "math.h", "png.h", "zlib.h", "nettle/sha2.h",
           "sched.h", "setjmp.h", "stdatomic.h", "sys/epoll.h", "sys/eventfd.h", "sys/resource.h", "sys/signalfd.h",
           "sys/socket.h", "sys/syscall.h", "time.h", "utf8proc.h"]
if os.uname().machine == "x86_64":
    HEADERS.append("immintrin.h")


def compilers():
    return [name for name in ("gcc", "clang") if subprocess.run(["which", name], capture_output=True).returncode == 0]


def compile_text(compiler, text, flags=()):
    return subprocess.run([compiler, *flags] + FLAGS, cwd=ROOT, input=text, capture_output=True, text=True)


def poisoned_names():
    with open(os.path.join(ROOT, "pools/no_heap.h")) as file:
        lines = re.findall(r"#pragma GCC poison (.*)", file.read())
    return [name for line in lines for name in line.split()]


def every_allocator_is_poisoned(compiler):
    names = poisoned_names()
    for wanted in ("malloc", "calloc", "realloc", "free", "strdup", "mmap", "munmap", "qsort", "fopen", "getaddrinfo",
                   "localtime_r", "cudaMalloc", "pthread_exit"):
        assert wanted in names, wanted
    uses = "".join(f"void use_{i}(void) {{ (void){name}; }}\n" for i, name in enumerate(names))
    done = compile_text(compiler, uses, ["-ferror-limit=0"] if compiler == "clang" else [])
    assert done.returncode != 0
    for line, name in enumerate(names, start=1):
        assert re.search(rf"^<stdin>:{line}:\d+: error: .*poisoned", done.stderr, re.M), f"{name} passes the fence"


def a_file_that_needs_gnu_names_gets_them(compiler):
    done = compile_text(compiler, "#define _GNU_SOURCE\n#include <sys/socket.h>\n"
                        "int use(int fd);\nint use(int fd) { return accept4(fd, NULL, NULL, SOCK_CLOEXEC); }\n")
    assert done.returncode == 0, done.stderr


def the_libraries_headers_compile_behind_it(compiler):
    text = "".join(f"#include <{header}>\n" for header in HEADERS) + "#include <jpeglib.h>\nint nothing;\n"
    done = compile_text(compiler, text)
    assert done.returncode == 0, done.stderr


def main():
    passed = failed = 0
    for compiler in compilers():
        for check in (every_allocator_is_poisoned, a_file_that_needs_gnu_names_gets_them,
                      the_libraries_headers_compile_behind_it):
            try:
                check(compiler)
                passed += 1
            except AssertionError as error:
                failed += 1
                print(f"{compiler}: {check.__name__}: {error}", file=sys.stderr)
    print(f"pools/fence: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
