"""Overload and faults: who is refused and how soon, who waits for whom, who leaves, how the server ends."""
import json
import os
import signal
import socket
import threading
import time

from server import (SMALL, Server, chat_body, check_refused, noise_png, picture_part, request_bytes, run_groups,
                    text_part)

CHAT = "/v1/chat/completions"
LONG = dict(max_tokens=3500, ignore_eos=True)
TEXT_SECONDS_MAX = 1.0      # for a short text request, beside whatever else; it needs about 10 ms alone
REFUSAL_SECONDS_MAX = 0.25  # for a refusal that needs no body


def chat_bytes(content="Hello", fields=(), **options):
    return request_bytes("POST", CHAT, json.dumps(chat_body(content, **options)).encode(), fields)


def open_chat(server, content="Hello", **options):
    """Sends a chat request and does not wait."""
    client = server.connect()
    client.send(chat_bytes(content, **options))
    return client


def running_stream(server, **options):
    """A stream that has begun."""
    client = open_chat(server, stream=True, **dict(LONG, **options))
    client.until(b"\n\n")
    return client


def gauge(server, name):
    return sum(value for key, value in server.metrics().items() if key.startswith(name + "{"))


def wait_until(is_true, seconds=5, what="it"):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "%s did not come true" % what
        time.sleep(0.01)


def timed(act):
    started = time.monotonic()
    result = act()
    return result, time.monotonic() - started


def short_text_is_prompt(server):
    answer, seconds = timed(lambda: server.chat("Hi", max_tokens=2))
    assert answer.status == 200 and seconds < TEXT_SECONDS_MAX, (answer, seconds)


def in_threads(count, act):
    """The results of `act(i)`, all at once; raises what one of them raised."""
    results, errors = [None] * count, []

    def work(i):
        try:
            results[i] = act(i)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


# ---- the queue ----

ONE_AND_ONE = ["--max-running-requests", "1", "--max-queued-requests", "1"]


def a_full_queue_refuses_before_the_body(server):
    with running_stream(server), open_chat(server, **LONG):
        wait_until(lambda: gauge(server, "sglang:num_queue_reqs") == 1, what="a queued request")
        for length in (5, 5000, 5000000):
            with server.connect() as client:
                client.send(request_bytes("POST", CHAT, b"", [("Content-Length", str(length))]))
                answer, seconds = timed(client.answer)
                check_refused(answer, 503, "queue")
                assert seconds < REFUSAL_SECONDS_MAX and int(answer.field("Retry-After")) > 0, (seconds, answer.fields)
                assert answer.is_closing and client.is_closed()
        assert server.get("/health").status == 200
    server.wait_idle()


def a_crowd_on_one_and_one_gets_200_or_503(server):
    statuses = in_threads(40, lambda i: server.chat("Hello %d" % i, max_tokens=50, ignore_eos=True).status)
    assert set(statuses) == {200, 503}, statuses


def the_queue_keeps_its_order(server):
    first = running_stream(server)
    second = open_chat(server, max_tokens=1)
    wait_until(lambda: gauge(server, "sglang:num_queue_reqs") == 1, what="a queued request")
    first.close()
    assert second.answer().status == 200
    second.close()


def a_place_in_the_queue_comes_back_with_its_client(server):
    with running_stream(server):
        for leaves in ("close", "reset") * 3:
            waiting = open_chat(server, **LONG)
            wait_until(lambda: gauge(server, "sglang:num_queue_reqs") == 1, what="a queued request")
            getattr(waiting, leaves)()
            wait_until(lambda: gauge(server, "sglang:num_queue_reqs") == 0, 1, "an empty queue")


# ---- bodies ----

DRIPS = ["--large-bodies", "4", "--body-timeout", "1.5", "--body-wait", "4"]


def drip_head(length=4000000):
    return request_bytes("POST", CHAT, b"", [("Content-Length", str(length))])


class Trickle(threading.Thread):
    """Uploads a body that never ends, `size` bytes every 50 ms, until it is refused."""

    def __init__(self, server, size):
        super().__init__(daemon=True)
        self.client, self.size, self.answer = server.connect(), size, None
        self.client.send(drip_head())
        self.client.socket.settimeout(0.05)
        self.start()

    def run(self):
        while True:
            try:
                self.client.send(b" " * self.size)
                self.answer = self.client.answer()
                return
            except TimeoutError:
                continue
            except (OSError, EOFError):
                return


def drips_and_waiting_pictures_do_not_delay_text(server):
    picture = noise_png(224, 224, 5)
    body = [picture_part(picture), text_part("?")]
    drips = [Trickle(server, 1) for _ in range(4)]
    wait_until(lambda: server.pools()["BODY_LARGE"] == 4, what="four large bodies")
    pictures = [open_chat(server, body, max_tokens=1) for _ in range(8)]
    for _ in range(10):
        short_text_is_prompt(server)
    assert server.pools()["BODY_LARGE"] == 4
    for drip in drips:
        drip.join(10)
        check_refused(drip.answer, 408)
    for client in pictures:
        assert client.answer().status == 200  # waited for the slots that the drips lost
        client.close()


def pictures_are_refused_when_no_slot_comes_free(server):
    uploads = [Trickle(server, 4000) for _ in range(4)]  # fast enough to be borne
    wait_until(lambda: server.pools()["BODY_LARGE"] == 4, what="four large bodies")
    with server.connect() as client:
        client.send(drip_head(100000))
        short_text_is_prompt(server)
        answer, seconds = timed(client.answer)
        check_refused(answer, 503, "slot")
        assert answer.field("Retry-After") and 3.5 < seconds < 5.5, (seconds, answer.fields)
    for upload in uploads:
        upload.client.close()
        upload.join(10)


# ---- connections ----

FEW = ["--max-connections", "8", "--header-timeout", "1"]


def connections_too_many_get_one_answer(server):
    clients = [server.connect() for _ in range(8)]
    for client in clients:
        client.send(request_bytes("GET", "/health"))
        assert client.answer().status == 200  # and stays open
    for _ in range(3):
        with server.connect() as client:
            answer = client.answer()
            check_refused(answer, 503, "connections")
            assert answer.field("Retry-After") and answer.is_closing and client.is_closed()
    more = [server.connect(5) for _ in range(30)]
    for client in more:
        check_refused(client.answer(), 503, "connections")
        client.close()
    clients[0].close()
    wait_until(lambda: server.get("/health").status == 200, what="a free connection")
    for client in clients[1:]:
        client.send(request_bytes("GET", "/health"))
        assert client.answer().status == 200  # they were not disturbed
        client.close()
    wait_until(lambda: server.pools()["CONN"] == 1, what="an idle server")


def silent_sockets_are_cleared_for_others(server):
    """All connections are taken by clients that say nothing, or hardly anything: others are told so, then served."""
    clients = [server.connect() for _ in range(8)]
    for client in clients[:4]:
        client.send(b"P")
    check_refused(server.get("/health"), 503, "connections")
    wait_until(lambda: server.chat("Hi", max_tokens=1).status == 200, 3, "a free connection")
    for client in clients:
        client.close()


def a_flood_of_connections_does_not_delay_who_is_there(server):
    with server.connect() as kept, running_stream(server) as stream:
        flood, took = [], []
        for i in range(60):
            for _ in range(10):
                flood.append(socket.socket())
                flood[-1].setblocking(False)
                flood[-1].connect_ex(("127.0.0.1", server.port))
            kept.send(request_bytes("GET", "/health"))
            answer, seconds = timed(kept.answer)
            assert answer.status == 200
            took.append(seconds)
            stream.until(b"\n\n")
        for client in flood:
            client.close()
        assert sorted(took)[-2] < 0.1, sorted(took)[-5:]
    wait_until(lambda: server.get("/health").status == 200, 5, "the end of the flood")
    wait_until(lambda: server.pools()["CONN"] == 1, 5, "an idle server")


# ---- slow clients ----

SLOW = ["--header-timeout", "0.5", "--body-timeout", "0.5", "--write-timeout", "0.5", "--keep-alive", "0.7"]


def slow_heads_are_408(server):
    clients = [server.connect() for _ in range(6)]
    started = time.monotonic()
    for client in clients[:3]:
        client.send(b"GET /health HTTP/1.1\r\nHo")
    for client in clients[:3]:
        check_refused(client.answer(), 408)
    for client in clients[3:]:
        assert client.is_closed(2)  # never sent a byte
    assert time.monotonic() - started < 2


def heads_that_drip_are_408(server):
    with server.connect() as client:
        client.socket.settimeout(0.1)
        for byte in (b"GET /health HTTP/1.1\r\nHost: " + b"a" * 1000)[:40]:
            client.send(bytes([byte]))
            try:
                answer = client.answer()
                check_refused(answer, 408)
                return
            except TimeoutError:
                pass
    raise AssertionError("forty bytes in four seconds were borne")


def bodies_that_stall_are_408(server):
    for length in (300, 300000):
        with server.connect() as client:
            client.send(request_bytes("POST", CHAT, b"", [("Content-Length", str(length))]) + b"{")
            check_refused(client.answer(), 408)
            assert client.is_closed()


def idle_connections_end_silently(server):
    with server.connect() as client:
        for _ in range(3):
            client.send(request_bytes("GET", "/health"))
            assert client.answer().status == 200
            time.sleep(0.3)
        assert client.is_closed(2)


def stuck_readers(server, count):
    """Streams whose clients never read, with the smallest buffers on their side."""
    clients = []
    for _ in range(count):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", server.port))
        client.sendall(chat_bytes(stream=True, **LONG))
        clients.append(client)
    return clients


def readers_that_stall_harm_nobody_and_are_cut(server):
    reference = server.chat("Hello", max_tokens=200, ignore_eos=True).json()["choices"][0]["message"]["content"]
    clients = stuck_readers(server, 3)
    time.sleep(0.1)
    with open_chat(server, max_tokens=200, ignore_eos=True, stream=True) as client:
        events = client.answer().events()
        text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])
        assert text == reference
    short_text_is_prompt(server)
    assert server.pools()["CONN"] == 1 + len(clients), "the readers do not stall"
    server.wait_idle(15)  # generated to the end, then cut by --write-timeout
    for client in clients:
        client.settimeout(5)
        received = b""
        try:
            while data := client.recv(65536):
                received += data
        except ConnectionResetError:
            pass
        assert received.startswith(b"HTTP/1.1 200 ") and not received.endswith(b"[DONE]\n\n\r\n0\r\n\r\n"), \
            received[-99:]
        client.close()


# ---- clients that leave ----

MANY = ["--max-running-requests", "16", "--max-queued-requests", "200", "--max-total-tokens", "16k"]


def two_hundred_long_requests_leave_at_once(server):
    for leaves in ("close", "reset"):
        clients = [open_chat(server, "Number %d" % i, **LONG) for i in range(200)]
        wait_until(lambda: gauge(server, "sglang:num_queue_reqs") > 150, what="a long queue")
        for client in clients:
            getattr(client, leaves)()
        answer, seconds = timed(lambda: server.chat("Hi", max_tokens=4))
        assert answer.status == 200 and seconds < 1, (answer, seconds)
        server.wait_idle(1)


def a_client_that_shuts_its_side_has_left(server):
    for is_stream in (True, False):
        client = open_chat(server, stream=is_stream, **LONG)
        wait_until(lambda: gauge(server, "sglang:num_running_reqs") == 1, what="a running request")
        client.socket.shutdown(socket.SHUT_WR)
        server.wait_idle(1)
        client.close()


def pools_name_their_holders(server):
    """One command says who holds what, instead of a heap dump; the log says the same on SIGUSR1."""
    with running_stream(server), server.connect() as uploading:
        uploading.send(drip_head(100000))
        wait_until(lambda: server.pools()["BODY_LARGE"] == 1, what="a large body")
        held = server.get("/pools").json()
        requests = {request["request"]: request for request in held["requests"]}
        by_state = {one["state"]: one for one in held["connections"] if "request" in one}
        assert len(requests) == 2 and set(by_state) == {"answer", "body"}, held["connections"]
        assert requests[by_state["body"]["request"]]["body"] == "BODY_LARGE", requests
        assert requests[by_state["answer"]["request"]]["answer_tokens"] > 0, requests
        assert all(request["age_ms"] >= 0 for request in requests.values()), requests
        used = {pool["pool"]: pool["used"] for pool in held["pools"]}
        assert used["REQUEST"] == 3 and used["BODY_LARGE"] == 1 and used["CONN"] == 3, used
        server.process.send_signal(signal.SIGUSR1)
        for name in requests:
            wait_until(lambda: "holder request=" + name in server.log(), 2, "the holder's line")


def health_answers_within_100_ms_under_full_load(server):
    """Long prompts, large pictures, streams, and connections that come and go, while /health is asked every 20 ms."""
    pictures = [noise_png(300, 300, seed) for seed in range(3)]
    kinds = [lambda i: chat_bytes("word " * 1900 + str(i), max_tokens=20),
             lambda i: chat_bytes([picture_part(pictures[i % 3]), text_part("? %d" % i)], max_tokens=20),
             lambda i: chat_bytes("Go on %d" % i, max_tokens=400, ignore_eos=True, stream=True)]
    bodies = [kinds[i % 3](i) for i in range(60)]
    statuses, ends = [], time.monotonic() + 4  # from here on: a busy machine takes seconds to make the pictures

    def load(number):
        while time.monotonic() < ends:
            for body in bodies[number::12]:
                with server.connect() as client:
                    client.send(body)
                    statuses.append(client.answer().status)
                if time.monotonic() > ends:
                    return

    threads = [threading.Thread(target=load, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    took, late = [], []
    while time.monotonic() < ends:
        answer, seconds = timed(lambda: server.get("/health"))
        assert answer.status == 200
        took.append(seconds)
        late.append(timed(lambda: time.sleep(0.02))[1] - 0.02)  # the machine's own delay, and that of our threads
    for thread in threads:
        thread.join()
    took.sort()
    late.sort()
    assert took[int(len(took) * 0.99)] < 0.1 + late[int(len(late) * 0.99)], (len(took), took[-5:], late[-5:])
    assert statuses and set(statuses) == {200}, {status: statuses.count(status) for status in set(statuses)}


def health_generate_proves_the_engine_under_load(server):
    with running_stream(server), running_stream(server):
        answer, seconds = timed(lambda: server.get("/health_generate"))
        assert answer.status == 200 and seconds < 2, (answer, seconds)
    assert in_threads(20, lambda _: server.get("/health_generate").status) == [200] * 20


# ---- the way down ----

def refuses_connections(server):
    try:
        with server.connect(2) as client:
            client.send(request_bytes("GET", "/health"))
            client.answer()
        return False
    except (ConnectionRefusedError, ConnectionResetError, EOFError):
        return True


def sigterm_lets_everything_end():
    with Server(SMALL + ["--max-running-requests", "5"]) as server:
        kept = server.connect()
        kept.send(request_bytes("GET", "/health"))
        assert kept.answer().status == 200
        streams = [open_chat(server, "Stream %d" % i, stream=True, max_tokens=1500, ignore_eos=True) for i in range(5)]
        for client in streams:
            client.until(b"\n\n")
        queued = [open_chat(server, "Queued %d" % i, max_tokens=3) for i in range(3)]
        uploading = server.connect()
        uploading.send(drip_head(100))
        wait_until(lambda: gauge(server, "sglang:num_queue_reqs") == 3, what="three queued requests")
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(server), 1, "the end of listening")
        kept.send(request_bytes("GET", "/health"))
        check_refused(kept.answer(), 503, "shutting down")
        check_refused(uploading.answer(), 503, "shutting down")
        for client in streams:
            body = client.buffer
            while client.fill():
                pass
            assert body is not None and client.buffer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), client.buffer[-200:]
            assert b'"finish_reason":"length"' in client.buffer, client.buffer[-600:]
        for client in queued:
            assert client.answer().status in (200, 503)
        assert server.process.wait(5) == 0, server.log()[-2000:]


def an_idle_server_ends_at_once():
    with Server(SMALL) as server:
        idle = [server.connect() for _ in range(5)]
        half = server.connect()
        half.send(b"GET /health HT")
        status, seconds = timed(lambda: server.stop(signal.SIGINT))
        assert status == 0 and seconds < 1, (status, seconds)
        for client in idle:
            assert client.is_closed()


def a_second_sigterm_ends_at_once():
    with Server(SMALL) as server:
        client = running_stream(server)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(server), 1, "the end of listening")
        status, seconds = timed(lambda: server.stop())
        assert seconds < 1 and status not in (-signal.SIGSEGV, -signal.SIGABRT), (status, seconds)
        while client.fill():
            pass
        assert b'"error"' in client.buffer and client.buffer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), \
            client.buffer[-600:]


def grace_over_cuts_with_a_finish():
    with Server(SMALL + ["--shutdown-grace", "0.2", "--max-running-requests", "1"]) as server:
        stream, queued = running_stream(server), open_chat(server, **LONG)
        wait_until(lambda: gauge(server, "sglang:num_queue_reqs") == 1, what="a queued request")
        status, seconds = timed(lambda: server.stop())
        assert status == 0 and seconds < 2, (status, seconds)
        while stream.fill():
            pass
        assert b'"finish_reason":"abort"' in stream.buffer, stream.buffer[-600:]
        assert stream.buffer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), stream.buffer[-200:]
        check_refused(queued.answer(), 503, "shutting down")


# ---- what the system refuses ----

class Unheard(Server):
    """A server whose log nobody can read: it is ready when it answers. `shell` starts it, as "$@"."""

    def __init__(self, shell, flags=(), **options):
        super().__init__(SMALL + list(flags), wrapper=["sh", "-c", shell, "sh"], **options)

    def wait_ready(self, seconds=30):
        def answers():
            assert self.process.poll() is None, "the server ended"
            try:
                return self.get("/health").status == 200
            except OSError:
                return False

        wait_until(answers, seconds, "an answer")


def serves_without_a_log(shell, **options):
    with Unheard(shell, **options) as server:
        server.note_idle()
        for _ in range(5):
            server.check_lives()
            check_refused(server.post(b"{"), 400)
            answer = server.chat("Hi", stream=True)
            assert answer.status == 200 and answer.events()
        server.wait_idle()
        server.process.send_signal(signal.SIGUSR1)
        server.check_lives()
        assert server.stop(seconds=10) == 0


def closed_standard_streams_harm_nobody():
    """Above all: what is meant for the log never reaches a socket that got its number."""
    serves_without_a_log('exec "$@" 2>&-')
    serves_without_a_log('exec "$@" <&- >&- 2>&-')


def a_full_disk_under_the_log_harms_nobody():
    serves_without_a_log('exec "$@" 2>/dev/full')


def a_log_reader_that_leaves_or_stalls_harms_nobody():
    for is_stuck in (False, True):
        read_end, write_end = os.pipe()
        os.set_inheritable(write_end, True)
        os.environ["ASHLAR_TEST_LOG"] = "/proc/%d/fd/%d" % (os.getpid(), write_end)
        with Unheard('exec "$@" 2>"$ASHLAR_TEST_LOG"', flags=["--max-queued-requests", "400"]) as server:
            server.note_idle()
            os.close(write_end)
            if not is_stuck:
                os.close(read_end)
            for _ in range(400):
                assert server.chat("Hi", max_tokens=1).status == 200
            server.wait_idle()
            assert server.stop(seconds=10) == 0
        if is_stuck:
            os.close(read_end)


def running_out_of_descriptors_harms_nobody():
    shell = 'ulimit -n 40; exec "$@"'
    with Unheard(shell, flags=["--max-connections", "200"]) as server:
        server.note_idle()
        clients = [server.connect() for _ in range(100)]
        for client in clients:
            client.send(request_bytes("GET", "/health", None, [("Connection", "close")]))
        for client in clients:
            assert client.answer().status == 200
            client.close()
        kept = [server.connect() for _ in range(60)]
        time.sleep(0.2)
        kept[0].send(chat_bytes("Hi", max_tokens=4))
        assert kept[0].answer().status == 200
        for client in kept:
            client.close()
        server.check_lives()
        server.wait_idle()
        assert server.stop(seconds=10) == 0


GROUPS = [
    (ONE_AND_ONE, a_full_queue_refuses_before_the_body, a_crowd_on_one_and_one_gets_200_or_503,
     the_queue_keeps_its_order, a_place_in_the_queue_comes_back_with_its_client),
    (DRIPS, drips_and_waiting_pictures_do_not_delay_text, pictures_are_refused_when_no_slot_comes_free),
    (FEW, connections_too_many_get_one_answer, silent_sockets_are_cleared_for_others,
     a_flood_of_connections_does_not_delay_who_is_there),
    (SLOW, slow_heads_are_408, heads_that_drip_are_408, bodies_that_stall_are_408, idle_connections_end_silently,
     readers_that_stall_harm_nobody_and_are_cut),
    (MANY, two_hundred_long_requests_leave_at_once, a_client_that_shuts_its_side_has_left, pools_name_their_holders,
     health_answers_within_100_ms_under_full_load, health_generate_proves_the_engine_under_load),
]
ALONE = [sigterm_lets_everything_end, an_idle_server_ends_at_once, a_second_sigterm_ends_at_once,
         grace_over_cuts_with_a_finish, closed_standard_streams_harm_nobody, a_full_disk_under_the_log_harms_nobody,
         a_log_reader_that_leaves_or_stalls_harms_nobody, running_out_of_descriptors_harms_nobody]

if __name__ == "__main__":
    run_groups("server/overload", GROUPS, ALONE)
