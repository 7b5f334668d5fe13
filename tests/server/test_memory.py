"""Memory: what was planned is what is resident, and it stays so under everything that can happen."""
import json
import subprocess

from mixture import Mixture
from server import (SMALL, binary, chat_body, noise_png, path, picture_part, request_bytes, run, text_part)

FILE_GROWTH_KIB_MAX = 256  # 64 pages


def resident_bytes_are_the_planned_ones(server):
    flags = ["--json", "--model-path", path("demo/model")] + SMALL
    plan = json.loads(subprocess.run([binary(), "plan"] + flags, capture_output=True, check=True).stdout)
    info = server.get("/server_info").json()
    planned = info["planned_bytes"]
    resident = server.memory()[0] * 1024
    assert abs(resident - planned) < planned // 100 + 8 * 2**20, (resident, planned)
    assert resident == info["resident_bytes"] == info["resident_bytes_at_ready"], (resident, info)
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


def pictures_hold_nothing_while_their_answer_grows(server):
    """Pixels, features and the body are back as soon as the prompt is in the KV (a04 of the fault cases)."""
    content = [picture_part(noise_png(640, 480, 9)), picture_part(noise_png(300, 500, 8)), text_part("?")]
    body = chat_body(content, max_tokens=3500, ignore_eos=True, stream=True)
    with server.connect() as client:
        client.send(request_bytes("POST", "/v1/chat/completions", json.dumps(body).encode()))
        for _ in range(5):
            client.until(b"\n\n")
        pools = server.pools()
        for pool in ("PIXELS", "MM_PAGE", "FEATURE", "BODY_SMALL", "BODY_LARGE", "IMAGE_RGB", "IMAGE_WORK"):
            assert pools[pool] == server.idle_pools[pool], (pool, pools[pool], server.idle_pools[pool])
        assert pools["REQUEST"] == server.idle_pools["REQUEST"] + 1, pools


def sizes_may_alternate(server):
    pictures = [picture_part(noise_png(56, 56, 1)), picture_part(noise_png(1792, 600, 2))]
    before = None
    for i in range(20):
        for picture in pictures:
            assert server.chat([picture, text_part("%d?" % i)], max_tokens=2).status == 200
        before = before or server.memory()[0]
    assert server.memory()[0] == before, (before, server.memory())


def heap_calls_are_not_counted_without_an_interposer(server):
    assert server.get("/server_info").json().get("heap_calls_since_ready") is None


if __name__ == "__main__":
    run("server/memory", globals())
