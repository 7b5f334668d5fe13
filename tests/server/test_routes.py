"""Properties of the routes without a model behind them, of keys, and of refusals by route."""
import json

from server import SMALL, Server, chat_body, check_refused, finish, request_bytes, run

GETS = ("/v1/models", "/health", "/model_info", "/get_model_info", "/server_info", "/get_server_info", "/metrics")


def models_lists_the_served_one(server):
    body = server.get("/v1/models").json()
    card = body["data"][0]
    assert body["object"] == "list" and len(body["data"]) == 1, body
    assert card["id"] == "ashlar-demo" and card["object"] == "model" and isinstance(card["created"], int), card
    assert card["owned_by"] and card["root"] and card["parent"] is None and card["max_model_len"] > 0, card
    assert server.get("/v1/models/ashlar-demo").json() == card
    error = check_refused(server.get("/v1/models/nosuch"), 404)["error"]
    assert error["code"] == "model_not_found" and error["param"] == "model", error


def health_is_an_empty_200(server):
    for target in ("/health", "/health_generate"):
        answer = server.get(target)
        assert answer.status == 200 and answer.body == b"", (target, answer)


def model_info_names_the_model(server):
    new, old = server.get("/model_info").json(), server.get("/get_model_info").json()
    assert new == old and new["model_path"].endswith("demo/model") and new["is_generation"] is True, new
    assert new["tokenizer_path"] and new["has_image_understanding"] is True and new["model_type"], new


def server_info_holds_flags_plan_and_states(server):
    for target in ("/server_info", "/get_server_info"):
        info = server.get(target).json()
        assert isinstance(info["internal_states"], list) and isinstance(info["internal_states"][0], dict), info
        assert info["max_total_num_tokens"] > 0 and info["version"] and info["status"], info
        assert info["port"] == server.port and info["served_model_name"] == "ashlar-demo", info
        assert info["pid"] == server.pid, (info.get("pid"), server.pid)
        assert info["internal_states"][0]["memory_usage"], info


def metrics_hold_pools_and_the_documented_names(server):
    answer = server.get("/metrics")
    assert answer.field("Content-Type").startswith("text/plain"), answer
    text = answer.body.decode()
    for name in ("num_running_reqs", "num_used_tokens", "token_usage", "gen_throughput", "num_queue_reqs",
                 "num_grammar_queue_reqs", "cache_hit_rate", "spec_accept_length", "prompt_tokens_total",
                 "generation_tokens_total", "cached_tokens_total", "num_requests_total"):
        assert "sglang:" + name in text, name
    for name in ("time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds"):
        for part in ("_sum{", "_count{", "_bucket{"):
            assert "sglang:" + name + part in text, name + part
    assert "model_name=" in text
    pools = server.pools()
    for pool in ("REQUEST", "TOKENS", "KV_PAGE", "CONN", "BODY_SMALL", "BODY_LARGE", "PIXELS", "MM_PAGE"):
        assert pool in pools, (pool, pools)


def metrics_count(server):
    before = server.metrics()
    usage = server.chat("Hello", max_tokens=3, ignore_eos=True).json()["usage"]
    after = server.metrics()

    def grown(prefix):
        return sum(value - before.get(name, 0) for name, value in after.items() if name.startswith(prefix))

    assert grown("sglang:num_requests_total") == 1
    assert grown("sglang:prompt_tokens_total") == usage["prompt_tokens"]
    assert grown("sglang:generation_tokens_total") == usage["completion_tokens"]
    assert grown("sglang:e2e_request_latency_seconds_count") == 1


def head_is_get_without_a_body(server):
    for target in ("/health", "/v1/models", "/model_info"):
        get = server.get(target)
        with server.connect() as client:
            client.send(request_bytes("HEAD", target) + request_bytes("GET", target))
            head = client.answer("HEAD")
            assert head.status == get.status, head
            assert head.field("Content-Length") == get.field("Content-Length"), (head.fields, get.fields)
            assert client.answer().body == get.body


def unknown_routes_are_404(server):
    for target in ("/nope", "/v1", "/v1/", "/v1/chat", "/v1/chat/completions/", "/v1/chat/completionsx", "//health",
                   "/HEALTH", "/v1/models/"):
        for method in ("GET", "POST", "DELETE"):
            answer = server.request(method, target, b"{}" if method == "POST" else None)
            check_refused(answer, 404)


def wrong_methods_are_405_with_allow(server):
    for method, target, allowed in (("GET", "/v1/chat/completions", "POST"), ("DELETE", "/v1/chat/completions", "POST"),
                                    ("PUT", "/v1/chat/completions", "POST"), ("POST", "/health", "GET"),
                                    ("POST", "/v1/models", "GET"), ("PATCH", "/metrics", "GET")):
        answer = server.request(method, target, b"{}" if method in ("PUT", "POST", "PATCH") else None)
        check_refused(answer, 405)
        assert allowed in answer.field("Allow"), answer.fields


def content_type_must_be_json(server):
    body = json.dumps(chat_body(max_tokens=1)).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json",
                 "application/jsonx"):
        check_refused(server.post(body, [("Content-Type", kind)]), 400)
    for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;x=y"):
        assert server.post(body, [("Content-Type", kind)]).status == 200, kind


def queries_are_not_part_of_the_path(server):
    assert server.get("/health?x=1").status == 200
    assert server.get("/v1/models?limit=5").json()["data"]


def caches_are_flushed_when_idle(server):
    for method in ("GET", "POST"):
        answer = server.request(method, "/flush_cache", b"" if method == "POST" else None)
        assert answer.status == 200, answer


def keys_guard_all_but_health_and_metrics():
    with Server(SMALL + ["--api-key", "secret"]) as server:
        body = json.dumps(chat_body(max_tokens=1)).encode()
        for field in ((), (("Authorization", "Bearer wrong"),), (("Authorization", "Bearer secretx"),),
                      (("Authorization", "Bearer secre"),), (("Authorization", "secret"),), (("Authorization", ""),),
                      (("Authorization", "Basic secret"),)):
            for method, target in (("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/server_info")):
                answer = server.request(method, target, body if method == "POST" else None, field)
                check_refused(answer, 401)
        for target in ("/health", "/health_generate", "/metrics"):
            assert server.get(target).status == 200, target
        server.key = "secret"
        for target in GETS:
            assert server.get(target).status == 200, target
        assert server.post(body).status == 200
        assert server.stop() == 0


if __name__ == "__main__":
    try:
        keys_guard_all_but_health_and_metrics()
    except (AssertionError, RuntimeError) as error:
        print("keys_guard_all_but_health_and_metrics: FAILED\n%s" % error)
        finish("server/routes", 0, 1)
    run("server/routes", globals())
