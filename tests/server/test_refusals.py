"""Fence 6: the n-th get of each pool is refused, once and from then on; requests end as documented, nothing is lost.

A quick run takes the first gets of each pool; `FAULTS=all` goes on until a run sees no refusal. make faults does more.
"""
import os
import sys
import traceback

from server import SMALL, Server, chat_body, finish, noise_png, picture_part, read, text_part

# What a client may see beside 200 while a pool refuses. None: no answer within the time (it waits for its turn).
OUTCOMES = {
    "REQUEST": {503}, "TOKENS": {503}, "BODY_SMALL": {503}, "BODY_LARGE": {503}, "CONN": {503, "closed", None},
    "PAGE_LIST": {503, None}, "KV_PAGE": {503, None}, "PREFIX": set(), "MM_PAGE": {503, None}, "FEATURE": {503, None},
    "PIXELS": {503, None},
}
FLAGS = SMALL + ["--body-wait", "1", "--context-length", "2048"]
QUICK_GETS = 2


def bodies():
    small = [picture_part(read("demo/samples/number.png")), text_part("Which number?")]
    large = [picture_part(noise_png(200, 200, 7)), text_part("What is shown?")]  # beyond 64 KiB
    return [chat_body("Hello " * 40), chat_body(small), chat_body(small), chat_body(large)]


def outcome_of(server, body, may_wait):
    try:
        return server.request("POST", "/v1/chat/completions", body, timeout=1 if may_wait else 30).status
    except TimeoutError:
        return None
    except (EOFError, ConnectionResetError):
        return "closed"


def domain_of(pool):
    return "device" if pool in ("KV_PAGE", "MM_PAGE", "PIXELS") else "host"


def refused_count(server, pool):
    return server.metrics()['ashlar_pool_refused{pool="%s",domain="%s"}' % (pool, domain_of(pool))]


def try_refusal(pool, number, is_once):
    """True if the refusal happened."""
    text = "%s:%d%s" % (pool, number, ":once" if is_once else "")
    with Server(FLAGS, environment={"ASHLAR_REFUSE": text, "ASHLAR_GUARDS": "1"}) as server:
        if pool != "CONN":  # asking would itself use up connections
            server.note_idle()
        outcomes = [outcome_of(server, body, not is_once and None in OUTCOMES[pool]) for body in bodies()]
        allowed = {200} | (OUTCOMES[pool] - {None} if is_once else OUTCOMES[pool])
        assert allowed.issuperset(outcomes), outcomes
        assert server.process.poll() is None, server.log()[-2000:]
        happened = any(outcome != 200 for outcome in outcomes)
        if is_once or pool != "CONN":
            happened = refused_count(server, pool) > 0
        if pool != "CONN":
            server.wait_idle(5)
        if is_once and happened:
            server.check_lives()
            assert outcomes.count(200) >= len(outcomes) - 1, outcomes
        status = server.stop()
        assert status == 0, "exit status %d" % status
        return happened


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    is_thorough = os.environ.get("FAULTS") == "all"
    passed = failed = 0
    for pool in OUTCOMES:
        for is_once in (True, False):
            name = "%s%s" % (pool, "_once" if is_once else "_from_then_on")
            if wanted not in name:
                continue
            number = 0
            while is_thorough or number < (QUICK_GETS if is_once else 1):
                try:
                    happened = try_refusal(pool, number, is_once)
                    passed += 1
                    if not happened:
                        break
                except Exception:
                    failed += 1
                    print("%s, get %d: FAILED\n%s" % (name, number, traceback.format_exc(limit=-3)), flush=True)
                    break
                number += 1
    finish("server/refusals", passed, failed)


if __name__ == "__main__":
    main()
