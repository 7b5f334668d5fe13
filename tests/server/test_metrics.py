"""Metrics: what Prometheus' own parser reads; counters are the sums over requests, gauges return to idle."""
import re
import threading
import time

from prometheus_client.parser import text_string_to_metric_families

from mixture import Mixture
from server import chat_body, noise_png, picture_part, run, text_part

SEED = {
    "gauge": ["num_running_reqs", "num_queue_reqs", "num_grammar_queue_reqs", "num_used_tokens", "token_usage",
              "gen_throughput", "cache_hit_rate", "spec_accept_length", "avg_request_queue_latency",
              "total_retracted_reqs", "num_prefill_prealloc_queue_reqs", "num_prefill_inflight_queue_reqs",
              "num_decode_prealloc_queue_reqs", "num_decode_transfer_queue_reqs"],
    "counter": ["prompt_tokens", "generation_tokens", "num_requests", "cached_tokens", "num_so_requests",
                "num_aborted_requests"],
    "histogram": ["time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds"],
}


def families(server):
    text = server.get("/metrics").body.decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(found, name):
    """The one sample of a gauge or counter."""
    samples = [sample for sample in found[name].samples]
    assert len(samples) == 1, samples
    return samples[0].value


def every_name_of_the_contract_has_its_type_and_label(server):
    found = families(server)
    for kind, names in SEED.items():
        for name in names:
            family = found["sglang:" + name]
            assert family.type == kind and family.documentation, (name, family.type)
            assert all(sample.labels.get("model_name") == "ashlar-demo" for sample in family.samples), name


def histograms_are_cumulative(server):
    assert server.chat("Hello", max_tokens=5, ignore_eos=True).status == 200
    for name in SEED["histogram"]:
        samples = families(server)["sglang:" + name].samples
        buckets = [sample.value for sample in samples if sample.name.endswith("_bucket")]
        bounds = [float(sample.labels["le"]) for sample in samples if sample.name.endswith("_bucket")]
        count = next(sample.value for sample in samples if sample.name.endswith("_count"))
        total = next(sample.value for sample in samples if sample.name.endswith("_sum"))
        assert buckets == sorted(buckets) and bounds == sorted(bounds) and bounds[-1] == float("inf"), (name, buckets)
        assert buckets[-1] == count > 0 and total > 0, (name, count, total)


def counters_are_the_sums_over_requests(server):
    before = families(server)
    usages = []
    picture = picture_part(noise_png(100, 80, 3))

    def ask(i):
        content = [picture, text_part("?")] if i % 3 == 0 else "Hello %d" % i
        usages.append(server.chat(content, max_tokens=2 + i, ignore_eos=True).json()["usage"])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.post({"messages": []})  # refused: not one of them
    after = families(server)

    def grown(name):
        return value(after, name) - value(before, name)

    assert grown("sglang:num_requests") == 6
    assert grown("sglang:prompt_tokens") == sum(usage["prompt_tokens"] for usage in usages)
    assert grown("sglang:generation_tokens") == sum(usage["completion_tokens"] for usage in usages)
    assert grown("ashlar_requests_refused") == 1
    for name, expected in (("time_to_first_token_seconds", 6), ("e2e_request_latency_seconds", 6),
                           ("inter_token_latency_seconds", sum(usage["completion_tokens"] - 1 for usage in usages))):
        counts = [next(sample.value for sample in found["sglang:" + name].samples if sample.name.endswith("_count"))
                  for found in (before, after)]
        assert counts[1] - counts[0] == expected, (name, counts, expected)


def gauges_return_to_idle(server):
    assert server.chat("Hello", max_tokens=3).status == 200
    server.wait_idle()
    deadline = time.monotonic() + 2  # the engine publishes its gauges at the end of a round, after the pools' elements
    names = ("num_running_reqs", "num_queue_reqs", "num_paused_reqs", "http_requests_active")
    while True:
        found = families(server)
        busy = [name for name in names if value(found, "sglang:" + name) != 0]
        if not busy or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    assert not busy, busy
    assert value(found, "sglang:num_used_tokens") == 0
    total = value(found, "sglang:max_total_num_tokens")
    held = value(found, "sglang:kv_evictable_tokens") + value(found, "sglang:kv_available_tokens")
    assert total - held == 16, (total, held)  # the health check has a page of its own


def pools_have_their_four_families(server):
    found = families(server)
    pools = [{sample.labels["pool"] for sample in found["ashlar_pool_" + name].samples}
             for name in ("capacity", "used", "high_water", "refused")]
    assert all(names == pools[0] for names in pools) and len(pools[0]) > 20, pools
    assert {sample.labels["domain"] for sample in found["ashlar_pool_used"].samples} <= {"device", "pinned", "host"}


def the_text_keeps_the_rules_of_the_format(server):
    """What promtool checks: HELP and TYPE once and first, families together, counters in _total, no series twice."""
    answer = server.get("/metrics")
    assert re.match(r"text/plain; version=0\.0\.4", answer.field("Content-Type")), answer.fields
    text = answer.body.decode()
    assert text.endswith("\n") and "\n\n" not in text and "\r" not in text
    kinds, helped, series, closed, current = {}, set(), set(), set(), None
    for line in text[:-1].split("\n"):
        found = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
        if found and found[1] == "HELP":
            assert found[2] not in helped and found[3].endswith("."), line
            closed.add(current)
            current = found[2]
            helped.add(current)
        elif found:
            assert found[2] == current and found[2] not in kinds and found[3] in ("gauge", "counter", "histogram"), line
            kinds[current] = found[3]
        else:
            name, _, number = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[^}]*\})? (\S+)", line).groups()
            family = re.sub(r"_(bucket|sum|count)$", "", name) if kinds[current] == "histogram" else name
            assert family == current and family not in closed, line
            assert line.rsplit(" ", 1)[0] not in series, line
            series.add(line.rsplit(" ", 1)[0])
            assert float(number) >= 0, line
    assert helped == set(kinds)
    # ashlar_pool_refused is counted, but its name is older than the rule.
    wrong = [name for name, kind in kinds.items() if (kind == "counter") != name.endswith("_total")]
    assert set(wrong) <= {"ashlar_pool_refused"}, wrong


def answers_are_counted_by_status(server):
    before = server.metrics()
    expected = {200: 1, 400: 0, 404: 0, 405: 0, 413: 0}  # the look at /metrics itself
    for status, act in ((200, lambda: server.chat("Hi", max_tokens=1)), (400, lambda: server.post(b"{")),
                        (404, lambda: server.get("/nope")), (405, lambda: server.get("/v1/chat/completions")),
                        (413, lambda: server.request("POST", "/v1/chat/completions", b"", [
                            ("Content-Length", "99999999999")]))):
        for _ in range(status % 7 + 1):
            assert act().status == status
            expected[status] += 1
    after = server.metrics()
    for status, count in expected.items():
        name = 'sglang:http_responses_total{status_code="%d"}' % status
        assert after[name] - before[name] == count, (status, after[name] - before[name], count)


def who_leaves_is_counted_as_aborted(server):
    before = families(server)
    for i in range(5):
        with server.connect() as client:
            body = b'{"model":"m","messages":[{"role":"user","content":"%d"}],"max_tokens":3000,"ignore_eos":true,' \
                b'"stream":true}' % i
            client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body) + body)
            client.until(b"data: ")
    server.wait_idle()
    after = families(server)
    assert value(after, "sglang:num_aborted_requests") - value(before, "sglang:num_aborted_requests") == 5
    assert value(after, "sglang:num_requests") - value(before, "sglang:num_requests") == 5


def gauges_of_what_happens_now(server):
    """All gauges but those of sizes, of marks left by what was, and of what the caches keep."""
    left = ("capacity", "high_water", "cached", "evictable", "available", "hit_rate", "latency", "total", "process_",
            "throughput")
    return {(sample.name, tuple(sample.labels.items())): sample.value for family in families(server).values()
            if family.type == "gauge" and not any(word in family.name for word in left) for sample in family.samples}


def every_gauge_returns_to_what_it_was_at_idle(server):
    server.wait_idle()
    before = gauges_of_what_happens_now(server)
    assert len(before) > 30, len(before)
    mixture = Mixture(server, 60, seed=5)
    mixture.run()
    server.wait_idle()
    deadline = time.monotonic() + 2
    while (after := gauges_of_what_happens_now(server)) != before:
        changed = {name: (number, after[name]) for name, number in before.items() if after[name] != number}
        assert time.monotonic() < deadline, changed
        time.sleep(0.05)


def throughput_is_of_now(server):
    server.chat("Hi", max_tokens=3000, ignore_eos=True)
    deadline = time.monotonic() + 5
    while value(families(server), "sglang:gen_throughput") != 0:
        assert time.monotonic() < deadline, "an idle server generates nothing"
        time.sleep(0.2)


def refused_gets_are_counted(server):
    name = 'ashlar_pool_refused{pool="BODY_LARGE",domain="host"}'
    before = server.metrics()[name]
    clients = []
    for _ in range(3):  # two slots
        client = server.connect()
        client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 100000\r\n\r\n")
        clients.append(client)
    deadline = time.monotonic() + 2
    while server.metrics()[name] == before:
        assert time.monotonic() < deadline, "no refusal was counted"
        time.sleep(0.02)
    for client in clients:
        client.close()
    server.wait_idle()


def the_log_has_the_lines_that_tools_look_for(server):
    server.post(chat_body("Log me", max_tokens=100, ignore_eos=True))
    deadline = time.monotonic() + 2
    while not all(word in server.log() for word in ("Prefill batch", "Decode batch", "#running-req: 1", "#queue-req: 0",
                                                    "The server is fired up and ready to roll!")):
        assert time.monotonic() < deadline, server.log()[-2000:]
        time.sleep(0.05)


if __name__ == "__main__":
    run("server/metrics", globals())
