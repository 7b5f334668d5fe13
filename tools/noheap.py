#!/usr/bin/env python3
"""make noheap: fence 4. A real server, 300 requests: no heap call, brk or mmap from "ready" to SIGTERM.

Two runs of the same load: under the interposer (which sees the heap calls of every library) and under strace (which
sees libc's own mmap and brk). Ends with `noheap: N passed, N failed`.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "server"))

from mixture import Mixture  # noqa: E402
from server import SMALL, Server, path  # noqa: E402

REQUESTS = int(os.environ.get("NOHEAP_REQUESTS", "300"))
FILE_GROWTH_KIB_MAX = 256  # 64 pages: design, section 4
CALLS = ("mmap", "munmap", "mremap", "brk")

results = []


def check(what, is_good, detail=""):
    results.append(is_good)
    print("  %-52s %s%s" % (what, "ok" if is_good else "FAILED", "" if is_good or not detail else ": " + str(detail)),
          flush=True)


def load(server):
    """The mixture, and what every run must show whatever it is watched by."""
    server.note_idle()
    before = server.memory()
    mixture = Mixture(server, REQUESTS)
    statuses = mixture.run()
    os.kill(server.pid, signal.SIGUSR1)  # the list of holders
    try:
        server.wait_idle()
        idle = ""
    except AssertionError as error:
        idle = error
    after = server.memory()
    print("  " + ", ".join("%s %s: %d" % (kind, status, count) for (kind, status),
                           count in sorted(statuses.items(), key=str)))
    check("all requests were answered", not mixture.failures, mixture.failures[:3])
    check("pools are as at ready", not idle, idle)
    check("RssAnon is as at ready (%d KiB)" % before[0], after[0] == before[0], after[0])
    check("RssFile grew by at most 64 pages (%+d KiB)" % (after[1] - before[1]),
          after[1] - before[1] <= FILE_GROWTH_KIB_MAX)


def under_the_interposer():
    print("under the malloc interposer")
    environment = {"LD_PRELOAD": path("build/tools/interposer.so"), "ASHLAR_HEAP": "count"}
    offender = subprocess.run([sys.executable, "-c", "import ctypes; libc = ctypes.CDLL(None); libc.seal_hook(1); "
                               "libc.strdup(b'x')"], env=dict(os.environ, LD_PRELOAD=environment["LD_PRELOAD"]),
                              capture_output=True)
    check("the interposer aborts on an offence", offender.returncode == -6 and b"after the seal" in offender.stderr)
    with Server(SMALL, environment=environment) as server:
        load(server)
        calls = server.get("/server_info").json().get("heap_calls_since_ready")
        offences = re.findall(r"interposer: (\w+) after the seal", server.log())
        check("the interposer counts", calls is not None, "no heap_calls_since_ready in /server_info")
        check("no heap call since ready", calls == 0 and not offences, "%s calls, %s" % (calls, offences[:5]))
        if offences:
            at = server.log().index("interposer: ")
            print(server.log()[at:at + 3000])
        check("exit status 0 after SIGTERM", server.stop() == 0)


def under_strace():
    if shutil.which("strace") is None:
        check("strace is installed", False)
        return
    print("under strace")
    with tempfile.NamedTemporaryFile(suffix=".strace") as trace:
        wrapper = ["strace", "-f", "-ttt", "-e", "trace=" + ",".join(CALLS), "-e", "signal=none", "-o", trace.name]
        with Server(SMALL, wrapper=wrapper) as server:
            ready = time.time()
            with open("/proc/%d/task/%d/children" % (server.process.pid, server.process.pid)) as file:
                server.pid = int(file.read().split()[0])  # strace's child
            load(server)
            end = time.time()
            os.kill(server.pid, 15)
            check("exit status 0 after SIGTERM", server.process.wait(60) == 0)
        with open(trace.name) as file:
            lines = [line for line in file if any(call + "(" in line for call in CALLS)]
        late = [line.strip() for line in lines if ready < float(line.split()[1]) < end]
        check("strace saw the start (%d calls)" % len(lines), len(lines) > 20)
        check("no mmap, munmap, mremap or brk since ready", not late, "%d calls: %s" % (len(late), late[:5]))


def main():
    under_the_interposer()
    under_strace()
    print("noheap: %d passed, %d failed" % (sum(results), len(results) - sum(results)))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
