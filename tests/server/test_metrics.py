"""Metrics: what Prometheus' own parser reads; counters are the sums over requests, gauges return to idle."""
import threading

from prometheus_client.parser import text_string_to_metric_families

from server import noise_png, picture_part, run, text_part

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
    found = families(server)
    for name in ("num_running_reqs", "num_queue_reqs", "num_paused_reqs", "http_requests_active"):
        assert value(found, "sglang:" + name) == 0, name
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


if __name__ == "__main__":
    run("server/metrics", globals())
