"""Who holds this memory: GET /pools, SIGUSR1 and the log say it, for every pool and at any moment."""
import json
import re
import signal
import time

from server import Client, chat_body, noise_png, picture_part, png, request_bytes, run, text_part

OWN = ("REQUEST", "TOKENS", "BODY_SMALL", "BODY_LARGE", "PAGE_LIST")  # held by one request each
SHARED = ("KV_PAGE", "FEATURE", "MM_PAGE")                            # an element may have several holders


def begin(server, content="Go on", **fields):
    """A stream that goes on until its client closes."""
    client = server.connect()
    body = json.dumps(chat_body(content, stream=True, max_tokens=3000, ignore_eos=True, **fields)).encode()
    client.send(request_bytes("POST", "/v1/chat/completions", body))
    return client


def held(listing, pool):
    return sum(request["holds"].get(pool, 0) for request in listing["requests"])


def check_listing(listing):
    """Every used element beyond the idle ones has a holder in the list."""
    excess = {row["pool"]: row["excess"] for row in listing["pools"]}
    for pool in OWN:
        assert held(listing, pool) == excess[pool], (pool, held(listing, pool), excess[pool])
    for pool in SHARED:
        assert held(listing, pool) >= excess[pool], (pool, held(listing, pool), excess[pool])
    assert len(listing["connections"]) == excess["CONN"], listing["connections"]
    for name, value in excess.items():
        known = OWN + SHARED + ("CONN", "PREFIX", "PIXELS", "LOG_LINE")
        assert value == 0 or name in known, (name, value)
    assert all(row["holders"] for row in listing["pools"])


def wait_for_lines(server, mark, count, seconds=5):
    deadline = time.monotonic() + seconds
    while True:
        lines = [line for line in server.log().split("\n") if mark in line]
        if len(lines) >= count:
            return lines
        assert time.monotonic() < deadline, (mark, count, lines)
        time.sleep(0.02)


def settled(server):
    """A listing taken while nothing moved: the engine writes down what is held once a round."""
    for _ in range(200):
        listing = server.get("/pools").json()
        try:
            check_listing(listing)
            return listing
        except AssertionError as error:
            last = error
        time.sleep(0.01)
    raise last


def every_used_element_has_a_holder(server):
    clients = [begin(server, n=2), begin(server), begin(server, [picture_part(noise_png(90, 80, 4)), text_part("?")])]
    for client in clients:
        client.until(b"data: ")
    reading = Client(server.port)
    reading.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 b"Content-Length: 100000\r\n\r\n{")
    waiting = begin(server, n=3)  # four run: this one is in the queue
    listing = None
    for _ in range(200):
        listing = settled(server)
        if len(listing["requests"]) == 8:
            break
        time.sleep(0.01)
    states = sorted(request["state"] for request in listing["requests"])
    assert states.count("queued") == 3 and states.count("reading") == 1, states
    assert all(request["client"] in ("answer", "body") for request in listing["requests"]), listing["requests"]
    running = [request for request in listing["requests"] if request["state"] in ("decode", "prefill", "paused")]
    assert len(running) == 4 and all(request["holds"]["KV_PAGE"] > 0 for request in running), running
    body = next(request for request in listing["requests"] if request["state"] == "reading")
    assert body["holds"]["BODY_LARGE"] == 1 and body["answer_tokens"] == 0, body
    assert all(0 <= request["age_ms"] < 60000 for request in listing["requests"])
    for client in clients + [reading, waiting]:
        client.close()
    server.wait_idle()
    assert settled(server)["requests"] == []


def a_signal_lists_the_same_in_the_log(server):
    with begin(server, n=2) as client, server.connect() as idle:
        client.until(b"data: ")
        names = {request["request"] for request in server.get("/pools").json()["requests"]}
        before = server.log().count(" pool name=")
        server.process.send_signal(signal.SIGUSR1)
        lines = wait_for_lines(server, " holder request=", 2)
        assert {re.search(r"request=(\S+)", line)[1] for line in lines} == names
        assert {re.search(r"choice=(\d)", line)[1] for line in lines} == {"0", "1"}
        for line in lines:
            assert re.search(r"state=(decode|prefill|paused) client=answer age_ms=\d+ REQUEST=1 TOKENS=1 body=none "
                             r"PAGE_LIST=1 KV_PAGE=[1-9]\d* FEATURE=0 MM_PAGE=0", line), line
        assert len(wait_for_lines(server, " holder connection=", 2)) >= 2
        pools = len(server.get("/pools").json()["pools"])
        assert server.log().count(" pool name=") - before == pools
        assert idle.socket is not None


def a_list_of_many_holders_is_whole(server):
    """More holders than the log has lines on their way."""
    clients = [server.connect() for _ in range(70)]
    for _ in range(100):
        if len(server.get("/pools").json()["connections"]) > 70:
            break
    dropped = [line for line in server.log().split("\n") if "dropped" in line]
    for i in range(5):
        count = server.log().count(" holder connection=")
        server.process.send_signal(signal.SIGUSR1)
        wait_for_lines(server, " holder connection=", count + 70)
    assert [line for line in server.log().split("\n") if "dropped" in line] == dropped
    for client in clients:
        client.close()


def steps_are_logged_as_scripts_expect(server):
    picture = [picture_part(png(60, 60)), text_part("x " * 40)]
    assert server.chat(picture, n=2, max_tokens=100, ignore_eos=True).status == 200
    line = wait_for_lines(server, "answer_tokens=100 ", 2)[1]  # behind the answer: the log has a writer of its own
    assert re.search(r"request id=\S+ choice=1 choices=2 err=OK finish=length ", line), line
    log = server.log()
    assert re.search(r"Prefill batch\. #new-seq: \d+, #new-token: \d+, #cached-token: \d+, token usage: \d\.\d\d, "
                     r"#running-req: \d+, #queue-req: \d+", log)
    assert re.search(r"Decode batch\. #running-req: \d+, #token: \d+, token usage: \d\.\d\d, gen throughput "
                     r"\(token/s\): \d+\.\d\d, #queue-req: \d+", log)


def gauges_name_what_is_held(server):
    with begin(server, n=3) as client:
        client.until(b"data: ")
        listing, values = settled(server), server.metrics()
        assert values['ashlar_pool_used{pool="TOKENS",domain="host"}'] == server.idle_pools["TOKENS"] + 3
        assert values['ashlar_pool_capacity{pool="TOKENS",domain="host"}'] == 21
        used = [value for name, value in values.items() if name.startswith("sglang:num_used_tokens")]
        assert used[0] > 0 and used[0] % 16 == 0, used
        assert held(listing, "KV_PAGE") > 0
        state = server.get("/server_info").json()["internal_states"][0]
        assert state["running_requests"] == 3 and state["paused_requests"] == state["queued_requests"] == 0, state
        assert state["claimed_kv_pages"] > state["used_kv_pages"] > 0 and state["free_kv_pages"] > 0, state
        assert values['ashlar_kv_claimed_tokens{model_name="ashlar-demo"}'] == 16 * state["claimed_kv_pages"], state
    server.wait_idle()
    values = server.metrics()
    assert [value for name, value in values.items() if name.startswith("sglang:num_used_tokens")] == [0]


if __name__ == "__main__":
    run("server/holders", globals())
