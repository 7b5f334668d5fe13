#!/usr/bin/env python3
"""make soak: everything that can happen to a server, many thousand times, over many connections at once.

First every good request is answered alone, by a server without caches: its reference. Then one server takes the whole
mixture: text, pictures, dialogues, streams, pipelines, clients that leave at any moment, broken bodies, pictures and
HTTP. Every answer must be a documented one, every good request's text its reference, and the server the same
afterwards: no heap call, no byte more memory, every pool idle. Ends with `soak: N passed, N failed`.

SOAK_REQUESTS (20000), SOAK_SECONDS (900, at most), SOAK_CONNECTIONS (256), SOAK_SEED (1); SOAK_MEMORY=0: memory and
heap are not judged (sanitizers). SOAK_FLAGS: further flags of the server. The same seed makes the same requests.
"""
import asyncio
import json
import multiprocessing
import os
import random
import re
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "server"))

from server import (SMALL, Answer, Server, chat_body, check_refused, chunked_sizes, path,  # noqa: E402
                    picture_part, png, read, request_bytes, text_part)

REQUESTS = int(os.environ.get("SOAK_REQUESTS", "20000"))
SECONDS = float(os.environ.get("SOAK_SECONDS", "900"))
CONNECTIONS = int(os.environ.get("SOAK_CONNECTIONS", "256"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
JUDGES_MEMORY = os.environ.get("SOAK_MEMORY", "1") != "0"
GOOD_COUNT = max(60, min(400, REQUESTS // 12))  # distinct good requests

CHAT = "/v1/chat/completions"
FILE_GROWTH_KIB_MAX = 256  # 64 pages: design, section 4
HEALTH_MS_MAX = 100        # of 99 in 100
ANSWER_SECONDS_MAX = 120 if JUDGES_MEMORY else 600  # sanitizers take their time
# Caches and queue so small that they overflow all the time.
FLAGS = SMALL + ["--max-running-requests", "16", "--max-queued-requests", "48", "--max-total-tokens", "12k",
                 "--chunked-prefill-size", "128", "--large-bodies", "4", "--body-wait", "2",
                 "--max-connections", str(CONNECTIONS + 40), "--random-seed", "5"]
FLAGS += os.environ.get("SOAK_FLAGS", "").split()
CACHES = {"SGLANG_VLM_CACHE_SIZE_MB": "1"}
ALONE = SMALL + ["--max-running-requests", "4", "--disable-radix-cache", "--chunked-prefill-size", "-1"]
BUSY = (503,)
BAD_HTTP = (400, 404, 405, 413, 417, 431, 501, 505)

results = []


def check(what, is_good, detail=""):
    results.append(is_good)
    print("  %-58s %s%s" % (what, "ok" if is_good else "FAILED", "" if is_good or not detail else ": " + str(detail)),
          flush=True)


# ---- what is asked ----

def noise(draw, width, height):
    return png(width, height, rows=b"".join(b"\0" + draw.randbytes(3 * width) for _ in range(height)))


def all_pictures(draw):
    """Pictures of random sizes, most of them small: (file, kind)."""
    sizes = [(draw.randint(1, 90), draw.randint(1, 90)) for _ in range(24)]
    sizes += [(draw.randint(90, 260), draw.randint(20, 120)) for _ in range(12)] + [(640, 360), (200, 1), (1, 200)]
    found = [(noise(draw, width, height), "image/png") for width, height in sizes]
    found += [(png(draw.randint(100, 1500), draw.randint(100, 1000), draw.randbytes(3)), "image/png")
              for _ in range(8)]
    for name in ("pillow/hopper.jpg", "libjpeg-turbo/testimgint.jpg", "pillow/pil_sample_cmyk.jpg"):
        found.append((read("tests/data/images", name), "image/jpeg"))
    return found + [(read("demo/samples", name), "image/png") for name in ("number.png", "shapes.png", "row.png")]


class Good:
    """A good request, and the answer that it must have."""

    def __init__(self, body):
        self.body, self.texts, self.usage = body, None, None

    def __call__(self, **fields):
        return json.dumps(dict(self.body, **fields)).encode()


def words(draw, most):
    return " ".join(draw.choice(("What", "is", "shown", "here", "?", "word", "42", "\u00e4\u4e2d", "shapes", "blue"))
                    for _ in range(draw.randint(1, most)))


def good_requests(draw, pictures):
    found = []
    for i in range(GOOD_COUNT):
        content = words(draw, 300 if i % 8 == 0 else 30)
        if i % 2:
            parts = [picture_part(*draw.choice(pictures)) for _ in range(draw.randint(1, 3))] + [text_part(content)]
            draw.shuffle(parts)
            content = parts
        body = chat_body(content, max_tokens=draw.randint(1, 24), ignore_eos=draw.random() < 0.3)
        if draw.random() < 0.3:
            body.update(temperature=draw.uniform(0.5, 1.5), seed=draw.randint(0, 10**9), top_p=draw.uniform(0.5, 1))
        if draw.random() < 0.1:
            body.update(stop=["e"], presence_penalty=0.5)
        if draw.random() < 0.15:
            body.update(n=draw.randint(2, 4), temperature=1.0, seed=draw.randint(0, 10**9))
        found.append(Good(body))
    return found


def answer_alone(good):
    """The references; one request in three goes on as a dialogue, with what was answered."""
    with Server(ALONE, environment={"SGLANG_VLM_CACHE_SIZE_MB": "0"}) as server:
        queue = list(good)
        for number, request in enumerate(queue):
            answer = server.post(request())
            assert answer.status == 200, (answer, json.dumps(request.body)[:300])
            request.texts, request.usage = texts_of(answer)
            if number % 3 == 0 and len(request.body["messages"]) < 7 and len(good) < 2 * GOOD_COUNT:
                messages = request.body["messages"] + [{"role": "assistant", "content": request.texts[0]},
                                                       {"role": "user", "content": "And number %d?" % number}]
                good.append(Good(dict(request.body, messages=messages)))
                queue.append(good[-1])
        assert server.stop() == 0


# ---- one connection ----

class Connection:
    """A client's connection that is opened when it is needed."""

    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None

    async def send(self, data):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        self.writer.write(data)

    async def answer(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        fields = [tuple(line.split(": ", 1)) for line in head[1:]]
        names = {name.lower(): value for name, value in fields}
        assert re.fullmatch(r"HTTP/1\.1 [1-5]\d\d .*", head[0]), head[0]
        if "transfer-encoding" in names:
            body = dechunk(await self.reader.readuntil(b"\r\n0\r\n\r\n"))
        else:
            body = await self.reader.readexactly(int(names["content-length"]))
        answer = Answer(int(head[0][9:12]), "", fields, body, names.get("connection", "").lower() == "close")
        if answer.is_closing:
            self.leave()
        return answer

    def leave(self, is_reset=False):
        if self.writer is None:
            return
        if is_reset:
            sock = self.writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        self.reader = self.writer = None


def dechunk(raw):
    body, at = b"", 0
    while True:
        end = raw.index(b"\r\n", at)
        size = int(raw[at:end], 16)
        body += raw[end + 2:end + 2 + size]
        at = end + 2 + size
        assert raw[at:at + 2] == b"\r\n", raw[at:at + 20]
        at += 2
        if size == 0:
            assert at == len(raw)
            return body


def texts_of(answer):
    """Texts of all choices, and the usage, of a good answer, streamed or not."""
    if not answer.field("Content-Type").startswith("text/event-stream"):
        body = answer.json()
        assert all(choice["finish_reason"] for choice in body["choices"]), body
        choices = sorted(body["choices"], key=lambda choice: choice["index"])
        return [choice["message"]["content"] for choice in choices], body["usage"]
    events, texts, finishes = answer.events(), {}, {}
    for choice in (choice for event in events for choice in event["choices"]):
        index = choice["index"]
        assert index not in finishes, (index, choice)
        texts[index] = texts.get(index, "") + (choice["delta"].get("content") or "")
        if choice["finish_reason"]:
            finishes[index] = choice["finish_reason"]
    assert set(finishes) == set(texts), (finishes, texts)
    usages = [event["usage"] for event in events if event.get("usage")]
    return [texts[index] for index in sorted(texts)], usages[0] if usages else None


# ---- the mixture ----

class Soak:
    def __init__(self, port, good, pictures):
        self.port, self.good, self.pictures = port, good, pictures
        self.short = [request for request in good if len(request()) < 10000]
        self.next_number, self.ends = 0, time.monotonic() + SECONDS
        self.counts, self.failures = {}, []
        self.kinds = ([self.ask] * 30 + [self.ask_again_and_again] * 6 + [self.pipeline] * 6 + [self.leave_early] * 10 +
                      [self.leave_in_the_answer] * 14 + [self.break_json] * 8 + [self.break_picture] * 8 +
                      [self.break_http] * 6 + [self.wrong_field] * 4 + [self.look] * 6 + [self.flush] * 1)

    def count(self, kind, status):
        self.counts[(kind, status)] = self.counts.get((kind, status), 0) + 1

    async def patient(self, connection, data, act=None):
        """The answer to `data`; asks again when the server is full."""
        for i in range(1000):
            try:
                await connection.send(data)
                answer = await connection.answer()
            except (ConnectionError, asyncio.IncompleteReadError):
                connection.leave()
                if i > 20:
                    raise
                continue  # refused early: the answer was lost with the reset, or the idle connection had ended
            if answer.status != 503:
                return answer
            check_refused(answer, 503)
            assert int(answer.field("Retry-After")) > 0
            self.count("(full)", 503)
            await asyncio.sleep(random.uniform(0.05, 0.3))
        raise AssertionError("503 a thousand times")

    def judge(self, request, answer):
        assert answer.status == 200, (answer, json.dumps(request.body)[:200])
        texts, usage = texts_of(answer)
        assert texts == request.texts, ("another text", texts, request.texts, json.dumps(request.body)[:200])
        if usage is not None:
            assert all(usage[name] == request.usage[name] for name in ("prompt_tokens", "completion_tokens")), usage

    def bytes_of(self, request, draw):
        """The request's bytes, in one of the ways that there are to send it."""
        body = request(stream=True, stream_options={"include_usage": draw.random() < 0.5}) if draw.random() < 0.5 \
            else request()
        if draw.random() < 0.1:
            return request_bytes("POST", CHAT, b"", [("Transfer-Encoding", "chunked")]) + \
                chunked_sizes(body, draw.randint(100, 20000))
        return request_bytes("POST", CHAT, body)

    async def ask(self, draw, connection):
        request = draw.choice(self.good)
        answer = await self.patient(connection, self.bytes_of(request, draw))
        self.judge(request, answer)
        return answer.status

    async def ask_again_and_again(self, draw, connection):
        """Turns that go on behind each other, so that each meets the cache of the one before."""
        request = draw.choice(self.good)
        for turn in range(1, len(request.body["messages"]) + 1, 2):
            shorter = next((other for other in self.good
                            if other.body["messages"] == request.body["messages"][:turn]), None)
            if shorter is not None:
                self.judge(shorter, await self.patient(connection, self.bytes_of(shorter, draw)))
        return 200

    async def pipeline(self, draw, connection):
        """Several requests at once, answered in their order."""
        requests = [draw.choice(self.short) for _ in range(draw.randint(2, 4))]
        data = b"".join(self.bytes_of(request, draw) + request_bytes("GET", "/health") for request in requests)
        await connection.send(data)
        for request in requests:
            answer = await connection.answer()
            if answer.status != 503:
                self.judge(request, answer)
            elif answer.is_closing:
                check_refused(answer, 503)
                return 503  # refused before its body: nobody reads what follows
            health = await connection.answer()
            assert health.status == 200 and health.body == b"", health
        return 200

    async def leave_early(self, draw, connection):
        data = self.bytes_of(draw.choice(self.good), draw)
        await connection.send(data[:draw.choice((draw.randint(1, 200), draw.randint(1, len(data)), len(data)))])
        await asyncio.sleep(draw.choice((0, 0, draw.uniform(0, 0.05))))
        connection.leave(draw.random() < 0.5)
        return "left"

    async def leave_in_the_answer(self, draw, connection):
        body = draw.choice(self.good)(stream=draw.random() < 0.8, max_tokens=draw.randint(50, 1500), ignore_eos=True)
        await connection.send(request_bytes("POST", CHAT, body))
        try:
            await asyncio.wait_for(connection.reader.readexactly(draw.randint(1, 20000)), draw.uniform(0.001, 1))
        except (asyncio.IncompleteReadError, TimeoutError, asyncio.TimeoutError):
            pass
        connection.leave(draw.random() < 0.5)
        return "left"

    async def break_json(self, draw, connection):
        body = bytearray(draw.choice(self.good)(max_tokens=1))
        at = draw.randrange(len(body))
        kind = draw.randrange(4)
        if kind == 0:
            del body[at:]
        elif kind == 1:
            body[at] = draw.randrange(256)
        elif kind == 2:
            body[at:at] = draw.choice((b"\xff", b"]", b"}", b'"', b"\\u", b"{" * 100, b"0e"))
        else:
            del body[at:at + draw.randint(1, 50)]
        answer = await self.patient(connection, request_bytes("POST", CHAT, bytes(body)))
        if answer.status != 200:
            assert answer.status in (400, 413), answer
            check_refused(answer, answer.status)
        return answer.status

    async def break_picture(self, draw, connection):
        data, kind = draw.choice(self.pictures)
        data = bytearray(data)
        at = draw.randrange(len(data))
        if draw.random() < 0.4:
            del data[at:]
        else:
            data[at] ^= 1 << draw.randrange(8)
        body = chat_body([picture_part(bytes(data), kind), text_part("?")], max_tokens=1)
        answer = await self.patient(connection, request_bytes("POST", CHAT, json.dumps(body).encode()))
        if answer.status != 200:
            check_refused(answer, 400)
        return answer.status

    async def break_http(self, draw, connection):
        head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" % CHAT.encode()
        data = draw.choice((draw.randbytes(draw.randint(1, 2000)).replace(b"\n", b"") + b"\r\n\r\n",
                            b"GET /health HTTP/1.%d\r\n\r\n" % draw.randint(0, 9),
                            head + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
                            head + b"Content-Length: 99999999999\r\n\r\n", head + b"X: " + b"y" * 20000 + b"\r\n\r\n",
                            head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" %
                            draw.randrange(1000), b"DELETE %s HTTP/1.1\r\nHost: x\r\n\r\n" % CHAT.encode()))
        connection.leave()
        try:
            await connection.send(data)
            answer = await connection.answer()
        except (ConnectionError, asyncio.IncompleteReadError):
            return "closed"
        finally:
            connection.leave()
        if answer.status != 200:
            assert answer.status in BAD_HTTP + BUSY, answer
            check_refused(answer, answer.status)
        return answer.status

    async def wrong_field(self, draw, connection):
        field = draw.choice(({"max_tokens": -1}, {"temperature": "hot"}, {"n": 0}, {"top_p": 7}, {"messages": []},
                             {"messages": [{"role": "critic", "content": "x"}]}, {"max_tokens": 10**9},
                             {"logit_bias": {"999999999": 1}}, {"stop": [1]}, {"response_format": {"type": "x"}},
                             {"messages": [{"role": "user", "content": "word " * 9000}]}))
        answer = await self.patient(connection, request_bytes("POST", CHAT, draw.choice(self.good)(**field)))
        check_refused(answer, 400)
        return answer.status

    async def look(self, draw, connection):
        target, statuses = draw.choice((("/health", (200,)), ("/metrics", (200,)), ("/server_info", (200,)),
                                        ("/v1/models", (200,)), ("/pools", (200,)), ("/health_generate", (200,)),
                                        ("/nope", (404,))))
        answer = await self.patient(connection, request_bytes("GET", target))
        assert answer.status in statuses, (target, answer)
        return answer.status

    async def flush(self, draw, connection):
        answer = await self.patient(connection, request_bytes("POST", "/flush_cache", b""))
        assert answer.status in (200, 400), answer
        return answer.status

    async def work(self):
        connection = Connection(self.port)
        while self.next_number < REQUESTS and time.monotonic() < self.ends and len(self.failures) < 20:
            number = self.next_number
            self.next_number += 1
            draw = random.Random(SEED * 1000003 + number)
            kind = draw.choice(self.kinds)
            try:
                self.count(kind.__name__, await asyncio.wait_for(kind(draw, connection), ANSWER_SECONDS_MAX))
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                if kind not in (self.pipeline, self.leave_early, self.leave_in_the_answer):
                    self.failures.append("request %d, %s: %r" % (number, kind.__name__, error))
                self.count(kind.__name__, "broken off")  # the idle connection had ended, or was one too many
                connection.leave()
            except Exception as error:
                self.failures.append("request %d, %s: %.600r" % (number, kind.__name__, error))
                connection.leave()
            if draw.random() < 0.05:
                connection.leave()
        connection.leave()

    async def run(self):
        await asyncio.gather(*(self.work() for _ in range(CONNECTIONS)))


def watch_health(server, is_over, results):
    """A process of its own, so that it does not wait for our own load: how long /health takes, every 50 ms; and how
    late the machine wakes a sleeper, which no server can be blamed for."""
    took_ms, late_ms, failures = [], [], []
    while not is_over.is_set():
        started = time.monotonic()
        try:
            answer = server.get("/health")
            assert answer.status == 200, answer
            took_ms.append((time.monotonic() - started) * 1000)
        except (OSError, EOFError, AssertionError) as error:
            failures.append(repr(error))
        started = time.monotonic()
        is_over.wait(0.05)
        late_ms.append((time.monotonic() - started) * 1000 - 50)
    results.put((sorted(took_ms), sorted(late_ms), failures[:5]))


def table(counts):
    by_kind = {}
    for (kind, status), count in counts.items():
        by_kind.setdefault(kind, []).append("%s %d" % (status, count))
    return "\n".join("    %-22s %s" % (kind, ", ".join(sorted(found))) for kind, found in sorted(by_kind.items()))


def environment():
    interposer = path("build/tools/interposer.so")
    if JUDGES_MEMORY and os.path.exists(interposer):
        return dict(CACHES, LD_PRELOAD=interposer, ASHLAR_HEAP="count")
    return CACHES


def judge_server(server, before):
    try:
        server.wait_idle(10)
        idle = ""
    except AssertionError as error:
        idle = error
    check("all pools are as at ready", not idle, idle)
    info, after, log = server.get("/server_info").json(), server.memory(), server.log()
    if JUDGES_MEMORY:
        calls = info.get("heap_calls_since_ready")
        check("no heap, mmap or brk call since ready", calls == 0, calls)
        check("RssAnon is as at ready (%d KiB)" % before[0], after[0] == before[0], after[0])
        check("RssFile grew by at most 64 pages (%+d KiB)" % (after[1] - before[1]),
              after[1] - before[1] <= FILE_GROWTH_KIB_MAX)
    errors = re.findall(r".* error .*|.*Sanitizer.*|.*runtime error.*", log)
    check("no error in the log", not errors, errors[:3])
    refused = {name.split('"')[1]: int(value) for name, value in server.metrics().items()
               if name.startswith("ashlar_pool_refused") and value}
    state = info["internal_states"][0]
    print("    refused gets: %s; pictures decoded %d, encoded %d, found again %d; steps %d" % (
        refused, state["pictures_decoded"], state["pictures_encoded"], state["feature_hits"], state["steps"]))
    status = server.stop(seconds=60)
    check("exit status 0 after SIGTERM", status == 0, status)


def main():
    draw = random.Random(SEED)
    pictures = all_pictures(draw)
    good = good_requests(draw, pictures)
    started = time.monotonic()
    answer_alone(good)
    print("soak: %d references in %.1f s" % (len(good), time.monotonic() - started), flush=True)
    with Server(FLAGS, environment=environment()) as server:
        server.note_idle()
        before = server.memory()
        soak = Soak(server.port, good, pictures)
        is_over, queue = multiprocessing.Event(), multiprocessing.Queue()
        watcher = multiprocessing.Process(target=watch_health, args=(server, is_over, queue), daemon=True)
        watcher.start()
        started = time.monotonic()
        asyncio.run(soak.run())
        seconds = time.monotonic() - started
        print("%s\n    %d requests, %d connections, %.1f s, %.0f requests a second" % (
            table(soak.counts), soak.next_number, CONNECTIONS, seconds, soak.next_number / seconds), flush=True)
        check("every answer is documented, every text its reference", not soak.failures, "\n".join(soak.failures[:10]))
        is_over.set()
        took_ms, late_ms, failures = queue.get()
        watcher.join()
        p99, late = (times[int(len(times) * 0.99)] for times in (took_ms, late_ms))
        what = "/health took %.1f ms, 99 of 100 times at most %.1f ms" % (took_ms[len(took_ms) // 2], p99)
        check(what, not failures and (p99 <= HEALTH_MS_MAX + max(0, late) or not JUDGES_MEMORY),
              failures or "the machine itself was late by %.1f ms" % late)
        if server.process.poll() is not None:
            check("the server lives", False, server.log()[-4000:])
        else:
            judge_server(server, before)
    print("soak: %d passed, %d failed" % (sum(results), len(results) - sum(results)))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
