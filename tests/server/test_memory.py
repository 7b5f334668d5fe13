"""Memory: what was planned is what is resident, and it stays so under everything that can happen."""
import json
import subprocess

from mixture import Mixture
from server import SMALL, binary, path, run

FILE_GROWTH_KIB_MAX = 256  # 64 pages


def resident_bytes_are_the_planned_ones(server):
    flags = ["--json", "--model-path", path("demo/model")] + SMALL
    plan = json.loads(subprocess.run([binary(), "plan"] + flags, capture_output=True, check=True).stdout)
    info = server.get("/server_info").json()
    planned = info["planned_bytes"]
    resident = server.memory()[0] * 1024
    assert abs(resident - planned) < planned // 100 + 8 * 2**20, (resident, planned)
    assert plan["fits"] and plan["total_bytes"] > 0, plan


def nothing_grows_under_a_mixture(server):
    Mixture(server, 20, seed=2).run()
    server.wait_idle()
    before = server.memory()
    mixture = Mixture(server, 120, seed=3)
    statuses = mixture.run()
    server.wait_idle()
    after = server.memory()
    assert after[0] == before[0] and after[1] - before[1] <= FILE_GROWTH_KIB_MAX, (before, after)
    assert not mixture.failures, mixture.failures[:5]
    assert all(status not in (500, 502) for _, status in statuses), statuses
    for kind in ("text", "pictures_asked", "stream", "chunked", "pipelined", "sampled"):
        assert statuses.get((kind, 200), 0) > 0, statuses


def heap_calls_are_not_counted_without_an_interposer(server):
    assert server.get("/server_info").json().get("heap_calls_since_ready") is None


if __name__ == "__main__":
    run("server/memory", globals())
