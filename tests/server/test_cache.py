"""Caches over the wire: what is computed once is not computed again, and never taken for something else."""
import json
import threading
import time

from server import (SMALL, Server, chat_body, check_refused, noise_png, picture_part, png, read, run_cases, run_groups,
                    text_part)

REPORT = ["--enable-cache-report"]
EVAL = "demo/eval/"
NO_FEATURES = {"SGLANG_VLM_CACHE_SIZE_MB": "0"}


def ask(server, content, **fields):
    """Text, cached tokens, usage of one greedy answer. `content` is what a user says, or a list of whole messages."""
    body = chat_body(content, max_tokens=24)
    if isinstance(content, list) and "role" in content[0]:
        body["messages"] = content
    body.update(fields)
    answer = server.post(body)
    assert answer.status == 200, answer
    usage = answer.json()["usage"]
    cached = (usage["prompt_tokens_details"] or {}).get("cached_tokens", 0)
    return answer.json()["choices"][0]["message"]["content"], cached, usage


def pictures_of_eval(count):
    """Pictures of the demo model's evaluation: it answers each in its own way."""
    items = json.loads(read(EVAL + "eval.json"))["items"]
    found = []
    for item in items:
        parts = [part for message in item["messages"] for part in message["content"] if isinstance(part, dict)]
        if len(item["messages"]) == 1 and [part["type"] for part in parts] == ["image_url", "text"]:
            name = parts[0]["image_url"]["url"]
            kind = "image/png" if name.endswith("png") else "image/jpeg"
            found.append(picture_part(read(EVAL + name), kind))
    return found[:count]


def state(server):
    return server.get("/server_info").json()["internal_states"][0]


def grown(server, act, *names):
    """What `act` returns, and by how much the server's counters grew."""
    before = state(server)
    result = act()
    after = state(server)
    return result, [after[name] - before[name] for name in names]


def flush(server):
    assert server.request("POST", "/flush_cache", b"").status == 200


PICTURE_COUNTERS = ("pictures_decoded", "pictures_encoded", "feature_hits")


# ---- prefixes ----

def an_exact_repeat_is_cached_but_for_one_token(server):
    for content in ("Hi", "word " * 500, "x" * 37, [picture_part(noise_png(100, 80, 7)), text_part("What is it?")],
                    [text_part("One"), picture_part(png(60, 60)), text_part("two"),
                     picture_part(noise_png(90, 30, 1))]):
        first, _, usage = ask(server, content)
        for _ in range(3):
            text, cached, usage = ask(server, content)
            assert text == first and cached == usage["prompt_tokens"] - 1, (text, first, cached, usage)
        streamed = server.chat(content, max_tokens=24, stream=True, stream_options={"include_usage": True}).events()
        assert streamed[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] - 1, \
            streamed[-1]


def a_first_request_is_not_cached(server):
    flush(server)
    _, cached, usage = ask(server, "Hi")
    assert cached == 0, usage


def a_dialogue_reuses_all_that_was_said(server):
    """Each turn's prompt goes on behind the ids of the turn before, its generated ones but the last included."""
    flush(server)
    known, messages = 0, []
    for question in ("Hi", "What can you do?", "And then?", [picture_part(png(80, 80)), text_part("Which colour?")],
                     "Why?", "Thank you", "Hi"):
        messages.append({"role": "user", "content": question})
        text, cached, usage = ask(server, messages)
        assert cached == known, (cached, known, usage)
        known = usage["prompt_tokens"] + usage["completion_tokens"] - 1
        messages.append({"role": "assistant", "content": text})


def dialogues_that_part_share_what_they_have_in_common(server):
    flush(server)
    start = "word " * 300
    _, _, usage = ask(server, start + "alpha")
    longest = 0
    for end in ("beta", "gamma delta", "1", "alphabet"):
        _, cached, other = ask(server, start + end)
        assert usage["prompt_tokens"] - 25 < cached < other["prompt_tokens"] - 1, (cached, usage, other)
        longest = max(longest, cached)
    _, cached, _ = ask(server, "other " + start)
    assert cached < 25, cached


def choices_and_lengths_share_the_prompt(server):
    flush(server)
    ask(server, "word " * 100, max_tokens=1)
    _, cached, usage = ask(server, "word " * 100, max_tokens=60, ignore_eos=True)
    assert cached == usage["prompt_tokens"] - 1
    _, cached, usage = ask(server, "word " * 100, max_tokens=5, temperature=1.5, seed=3)
    assert cached == usage["prompt_tokens"] - 1


def a_flush_forgets_everything_and_waits_for_idleness(server):
    content = [picture_part(noise_png(64, 64, 11)), text_part("?")]
    ask(server, content)
    with server.connect() as client:
        body = json.dumps(chat_body("Hi", max_tokens=3000, ignore_eos=True, stream=True)).encode()
        client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body) + body)
        client.until(b"data: ")
        check_refused(server.request("POST", "/flush_cache", b""), 400)
        _, cached, usage = ask(server, content)
        assert cached == usage["prompt_tokens"] - 1  # refused: nothing was forgotten
    server.wait_idle()
    flush(server)
    deadline = time.monotonic() + 1
    while server.metrics()['ashlar_pool_cached{pool="KV_PAGE",domain="device"}'] > 0:
        assert time.monotonic() < deadline, "KV pages stay cached"
    assert server.metrics()['ashlar_pool_cached{pool="MM_PAGE",domain="device"}'] == 0
    (_, cached, _), counters = grown(server, lambda: ask(server, content), *PICTURE_COUNTERS)
    assert cached == 0 and counters == [1, 1, 0], (cached, counters)


# ---- pictures ----

def equal_text_with_another_picture_is_another_request(server):
    flush(server)
    pictures = pictures_of_eval(12)
    lone = []
    for picture in pictures:
        flush(server)
        lone.append(ask(server, [picture, text_part("What is shown?")])[0])
    assert len(set(lone)) > 6, lone
    flush(server)
    before = None
    for _ in range(2):
        for picture, expected in zip(pictures, lone):
            text, cached, usage = ask(server, [picture, text_part("What is shown?")])
            assert text == expected, (text, expected)
            picture_tokens = usage["prompt_tokens_details"]["image_tokens"] if cached else 0
            if cached and cached != usage["prompt_tokens"] - 1:
                assert cached < usage["prompt_tokens"] - picture_tokens, usage  # ends where the picture begins
                before = cached if before is None else before
                assert cached == before, (cached, before)
    wrong = []

    def alternate(i):
        for j in range(6):
            at = (i + j * 5) % len(pictures)
            text = ask(server, [pictures[at], text_part("What is shown?")])[0]
            if text != lone[at]:
                wrong.append((at, text, lone[at]))

    threads = [threading.Thread(target=alternate, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]


def the_second_of_two_pictures_counts_too(server):
    flush(server)
    a, b, c = (picture_part(noise_png(100, 100, seed)) for seed in (21, 22, 23))
    question = text_part("Compare.")
    ask(server, [a, b, question])
    _, cached, usage = ask(server, [a, c, question])
    half = usage["prompt_tokens_details"]["image_tokens"] // 2
    assert half < cached < usage["prompt_tokens"] - half, usage  # the first picture, not the second
    _, cached, usage = ask(server, [b, a, question])
    assert cached < half, usage
    _, cached, usage = ask(server, [a, b, question])
    assert cached == usage["prompt_tokens"] - 1, usage


def many_small_pictures_never_collide(server):
    flush(server)
    for seed in range(150):
        _, cached, usage = ask(server, [picture_part(png(56, 56, (seed, 255 - seed, seed // 2))), text_part("?")],
                               max_tokens=1)
        assert cached < 25, (seed, usage)


def a_known_picture_is_neither_decoded_nor_encoded_again(server):
    flush(server)
    picture = picture_part(noise_png(200, 150, 31))
    _, counters = grown(server, lambda: ask(server, [picture, text_part("One?")]), *PICTURE_COUNTERS)
    assert counters == [1, 1, 0], counters
    (_, cached, usage), counters = grown(server, lambda: ask(server, [text_part("Another place:"), picture]),
                                         *PICTURE_COUNTERS)
    assert counters == [0, 0, 1] and cached < 25, (counters, usage)
    (_, cached, _), counters = grown(server, lambda: ask(server, [picture, text_part("One?")]), *PICTURE_COUNTERS)
    assert counters[:2] == [0, 0], counters  # in the prefix cache: its features are not even looked for
    _, counters = grown(server, lambda: ask(server, [text_part("Thrice"), picture, picture, picture]),
                        *PICTURE_COUNTERS)
    assert counters == [0, 0, 3], counters


def a_picture_twice_in_a_request_is_encoded_once(server):
    flush(server)
    picture = picture_part(noise_png(120, 90, 33))
    _, counters = grown(server, lambda: ask(server, [picture, text_part("and"), picture]), *PICTURE_COUNTERS)
    assert counters == [1, 1, 1], counters


# ---- small and absent caches ----

def nothing_is_cached_without_caches(server):
    content = [picture_part(noise_png(100, 100, 41)), text_part("?")]
    for _ in range(2):
        (_, cached, _), counters = grown(server, lambda: ask(server, content), *PICTURE_COUNTERS)
        assert cached == 0 and counters == [1, 1, 0], (cached, counters)
    metrics = server.metrics()
    for pool, domain in (("KV_PAGE", "device"), ("MM_PAGE", "device"), ("PREFIX", "host"), ("FEATURE", "host")):
        assert metrics['ashlar_pool_cached{pool="%s",domain="%s"}' % (pool, domain)] == 0, pool


def twenty_pictures_pass_through_the_pages_of_two(server):
    pictures = [picture_part(noise_png(448, 224, 50 + i)) for i in range(20)]
    with Server(SMALL) as roomy:
        expected = ask(roomy, pictures + [text_part("How many?")])[0]
    info = server.get("/server_info").json()
    pools = {row["pool"]: row for row in info["internal_states"][0]["memory_usage"]["plan"]}
    largest = pools["MM_PAGE"]["holders"][0]["count"]
    assert pools["MM_PAGE"]["count"] == 2 * largest and pools["PIXELS"]["count"] == 2, pools["MM_PAGE"]
    (text, _, usage), counters = grown(server, lambda: ask(server, pictures + [text_part("How many?")]),
                                       *PICTURE_COUNTERS)
    assert text == expected, (text, expected)
    assert usage["prompt_tokens_details"]["image_tokens"] > 6 * 64 * largest, usage
    assert counters == [20, 20, 0], counters
    results = []
    threads = [threading.Thread(target=lambda: results.append(ask(server, pictures + [text_part("How many?")])[0]))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4, results


def what_was_not_used_for_longest_goes_first(server):
    prompts = ["%d " % i + "word " * 300 for i in range(20)]
    for prompt in prompts:
        ask(server, prompt, max_tokens=1)
    _, cached, usage = ask(server, prompts[-1], max_tokens=1)
    assert cached == usage["prompt_tokens"] - 1, usage
    _, cached, usage = ask(server, prompts[0], max_tokens=1)
    assert cached < 40, usage
    for i in range(20):  # what is used over and over stays
        ask(server, "anew %d " % i + "word " * 300, max_tokens=1)
        _, cached, usage = ask(server, prompts[0], max_tokens=1)
        assert cached == usage["prompt_tokens"] - 1, (i, usage)


def usage_tells_nothing_without_the_report(server):
    for _ in range(2):
        usage = server.chat("Hello", max_tokens=2).json()["usage"]
        assert not (usage.get("prompt_tokens_details") or {}).get("cached_tokens"), usage


PREFIXES = [an_exact_repeat_is_cached_but_for_one_token, a_first_request_is_not_cached,
            a_dialogue_reuses_all_that_was_said, dialogues_that_part_share_what_they_have_in_common,
            choices_and_lengths_share_the_prompt]
GROUPS = [
    (REPORT, *PREFIXES, a_flush_forgets_everything_and_waits_for_idleness,
     equal_text_with_another_picture_is_another_request, the_second_of_two_pictures_counts_too,
     many_small_pictures_never_collide, a_known_picture_is_neither_decoded_nor_encoded_again,
     a_picture_twice_in_a_request_is_encoded_once),
    (REPORT + ["--chunked-prefill-size", "40"], *PREFIXES, the_second_of_two_pictures_counts_too),
    (REPORT + ["--max-running-requests", "1", "--max-total-tokens", "8k"], what_was_not_used_for_longest_goes_first),
    ([], usage_tells_nothing_without_the_report),
]


def servers_without_a_feature_cache_do_as_well():
    for flags, case in ((REPORT + ["--disable-radix-cache"], nothing_is_cached_without_caches),
                        (REPORT + ["--disable-radix-cache"], twenty_pictures_pass_through_the_pages_of_two),
                        (REPORT, twenty_pictures_pass_through_the_pages_of_two)):
        assert run_cases([case], flags, environment=NO_FEATURES)[1] == 0, (flags, case.__name__)


if __name__ == "__main__":
    run_groups("server/cache", GROUPS, [servers_without_a_feature_cache_do_as_well])
