"""Several choices over the wire: `n` answers to one prompt, which is read, computed and stored once."""
import json

from server import (Server, chat_body, check_refused, noise_png, picture_part, png, request_bytes, run_groups,
                    text_part)

PICTURE = [picture_part(noise_png(120, 90, 5)), text_part("What is shown?")]
DRAWN = {"temperature": 1.5, "seed": 7, "max_tokens": 16, "ignore_eos": True}
NO_CACHE = ["--disable-radix-cache"]
NAMES = ("pictures_decoded", "pictures_encoded")


def texts_of(answer, n):
    """The choices' texts of a whole answer, in their order."""
    assert answer.status == 200, answer
    choices = answer.json()["choices"]
    assert [choice["index"] for choice in choices] == list(range(n)), choices
    assert all(choice["finish_reason"] in ("stop", "length") for choice in choices), choices
    return [choice["message"]["content"] for choice in choices]


def texts_of_stream(answer, n, wants_usage):
    """The same of a stream: a role and a finish each, one usage behind them."""
    assert answer.status == 200, answer
    events = answer.events()
    if wants_usage:
        assert events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] > 0, events[-1]
        events = events[:-1]
    assert len({event["id"] for event in events}) == 1
    choices = [event["choices"][0] for event in events]
    texts = []
    for index in range(n):
        own = [choice for choice in choices if choice["index"] == index]
        assert own[0]["delta"].get("role") == "assistant", own[0]
        assert all("role" not in choice["delta"] for choice in own[1:]), own
        assert [choice["finish_reason"] is not None for choice in own] == [False] * (len(own) - 1) + [True], own
        texts.append("".join(choice["delta"].get("content") or "" for choice in own))
    assert len(choices) == sum(choice["index"] < n for choice in choices)
    return texts


def ask(server, n, is_stream, content="Tell me something", **fields):
    if is_stream:
        answer = server.chat(content, n=n, stream=True, stream_options={"include_usage": True}, **fields)
        return texts_of_stream(answer, n, True), answer.events()[-1]["usage"]
    answer = server.chat(content, n=n, **fields)
    return texts_of(answer, n), answer.json()["usage"]


def counters(server):
    state = server.get("/server_info").json()["internal_states"][0]
    return [state[name] for name in NAMES]


def without_noise_all_are_equal(server):
    for n in range(1, 5):
        for is_stream in (False, True):
            texts, usage = ask(server, n, is_stream, temperature=0, max_tokens=12)
            assert texts == [texts[0]] * n and texts[0], texts
            assert usage["completion_tokens"] % n == 0, usage


def drawn_ones_differ_and_repeat(server):
    """Choice i is the same whatever n is, whether streamed; choice 0 is the answer of one alone."""
    four, _ = ask(server, 4, False, **DRAWN)
    assert len(set(four)) == 4, four
    for n in range(1, 5):
        for is_stream in (False, True):
            texts, usage = ask(server, n, is_stream, **DRAWN)
            assert texts == four[:n], (n, is_stream, texts, four)
            assert usage["completion_tokens"] == 16 * n, usage
            assert usage["total_tokens"] == usage["prompt_tokens"] + 16 * n, usage
    alone = server.chat("Tell me something", **DRAWN).json()["usage"]["prompt_tokens"]
    assert usage["prompt_tokens"] == alone


def one_token_each_is_enough(server):
    for n in (1, 3, 4):
        texts, usage = ask(server, n, False, "one token " * n, temperature=1.5, seed=3, max_tokens=1)
        assert len(texts) == n and usage["completion_tokens"] == n, usage


def chunks_of_choices_are_mixed(server):
    events = server.chat("Go on", n=4, stream=True, max_tokens=60, ignore_eos=True).events()
    order = [event["choices"][0]["index"] for event in events]
    changes = sum(a != b for a, b in zip(order, order[1:]))
    assert changes > 20, order
    usages = server.chat("Go on", n=2, stream=True, max_tokens=5, ignore_eos=True,
                         stream_options={"include_usage": True, "continuous_usage_stats": True}).events()
    assert max(event["usage"]["completion_tokens"] for event in usages[:-1]) == 5
    assert usages[-1]["usage"]["completion_tokens"] == 10, usages[-1]


def stop_strings_end_each_choice_alone(server):
    texts, _ = ask(server, 4, False, temperature=1.5, seed=9, max_tokens=40, ignore_eos=True)
    stop = texts[1][4:7]
    answer = server.chat("Tell me something", n=4, temperature=1.5, seed=9, max_tokens=40, ignore_eos=True, stop=stop)
    for choice, text in zip(answer.json()["choices"], texts):
        at = text.find(stop)
        assert choice["message"]["content"] == (text if at < 0 else text[:at]), (choice, text)
        assert choice["finish_reason"] == ("length" if at < 0 else "stop")


def a_picture_is_decoded_and_encoded_once(server):
    for is_stream in (False, True):
        picture = [picture_part(noise_png(100 + 40 * is_stream, 90, 6)), text_part("What is shown?")]
        before = counters(server)
        texts, usage = ask(server, 4, is_stream, picture, **DRAWN)
        assert [b - a for a, b in zip(before, counters(server))] == [1, 1]
        assert len(set(texts)) > 1 and usage["prompt_tokens_details"]["image_tokens"] > 0, (texts, usage)
        assert server.chat(picture, **DRAWN).json()["choices"][0]["message"]["content"] == texts[0]


def more_than_run_at_once_is_refused(server):
    for n in (5, 100, 2**31 - 1):
        body = check_refused(server.chat("Hi", n=n), 400, n, 4, "--max-running-requests")
        assert body["param"] == "n", body
    for n in (0, -1, 1.5, "2", True):
        check_refused(server.chat("Hi", n=n), 400, "n")
    assert server.chat("Hi", n=None).status == 200


def a_damaged_picture_refuses_all(server):
    data = bytearray(png(200, 200))
    data[60:90] = bytes(30)
    for is_stream in (False, True):
        answer = server.chat([picture_part(bytes(data)), text_part("?")], n=4, stream=is_stream)
        check_refused(answer, 400, "messages[0].content[0]")
    server.wait_idle()


def who_leaves_takes_all_along(server):
    for content in ("Go on", PICTURE):
        for is_stream in (True, False):
            body = json.dumps(chat_body(content, n=4, stream=is_stream, max_tokens=3000, ignore_eos=True)).encode()
            for wait in (b"", b"data: "):
                if not is_stream and wait:
                    continue
                with server.connect() as client:
                    client.send(request_bytes("POST", "/v1/chat/completions", body))
                    client.until(wait) if wait else None
                server.wait_idle()


def places_are_taken_all_or_none(server):
    """20 places: four requests for four choices fill 16, and one for three is too many behind a fifth of four."""
    body = json.dumps(chat_body("Go on", n=4, stream=True, max_tokens=3000, ignore_eos=True)).encode()
    clients = [server.connect() for _ in range(5)]
    for client in clients:
        client.send(request_bytes("POST", "/v1/chat/completions", body))
    clients[0].until(b"data: ")
    answer = None
    for _ in range(100):
        if server.pools()["REQUEST"] == server.idle_pools["REQUEST"] + 20:
            answer = server.chat("Hi", n=3)
            break
    check_refused(answer, 503)
    assert answer.field("Retry-After") is not None
    for client in clients:
        client.close()
    server.wait_idle()


def holders_are_listed(server):
    body = json.dumps(chat_body("Go on", n=3, stream=True, max_tokens=3000, ignore_eos=True)).encode()
    with server.connect() as client:
        client.send(request_bytes("POST", "/v1/chat/completions", body))
        client.until(b"data: ")
        requests = server.get("/pools").json()["requests"]
        assert len(requests) == 3 and len({row["request"] for row in requests}) == 1, requests
        assert sorted(row["choice"] for row in requests) == [0, 1, 2], requests


def counters_count_one_request(server):
    before = server.metrics()
    answer = server.chat("Count me", n=3, max_tokens=5, ignore_eos=True)
    server.wait_idle()
    after = server.metrics()

    def grown(name):
        return sum(after[key] - before.get(key, 0) for key in after if key.split("{")[0] == name)

    usage = answer.json()["usage"]
    assert grown("sglang:num_requests_total") == 1
    assert grown("sglang:prompt_tokens_total") == usage["prompt_tokens"]
    assert grown("sglang:generation_tokens_total") == usage["completion_tokens"] == 15
    assert grown("sglang:time_to_first_token_seconds_count") == 1
    assert grown("sglang:e2e_request_latency_seconds_count") == 1


CASES = (without_noise_all_are_equal, drawn_ones_differ_and_repeat, one_token_each_is_enough,
         chunks_of_choices_are_mixed, stop_strings_end_each_choice_alone, a_picture_is_decoded_and_encoded_once,
         more_than_run_at_once_is_refused, a_damaged_picture_refuses_all, who_leaves_takes_all_along,
         places_are_taken_all_or_none, holders_are_listed, counters_count_one_request)


def choices_do_not_depend_on_the_caches():
    found = []
    for flags in ([], NO_CACHE, NO_CACHE + ["--max-total-tokens", "512"]):
        with Server(["--max-running-requests", "4", "--max-source-pixels", "1Mi", "--large-bodies", "1",
                     "--large-body-bytes", "1Mi", "--threads", "2", "--enable-metrics"] + flags) as server:
            found.append([texts_of(server.chat(content, n=4, **DRAWN), 4) for content in ("Tell me", PICTURE)])
            assert server.stop() == 0
    assert found[0] == found[1] == found[2], found


if __name__ == "__main__":
    run_groups("server/choices", [([], *CASES), (NO_CACHE, *CASES)], [choices_do_not_depend_on_the_caches])
