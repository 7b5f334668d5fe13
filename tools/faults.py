#!/usr/bin/env python3
"""make faults: fence 6 across the whole feature set. Each pool refuses its n-th get, that one only or all from there.

One load of everything (text, repeats, pictures small and large, dialogues, streams, chunks, pipelines, clients that
leave, broken requests) runs on a server of its own for each pool and n, several clients at once, until a run meets no
refusal. Whatever is refused: an answer is the right one or a documented refusal, afterwards every pool is as at ready,
the server lives and ends with 0. Ends with `faults: N passed, N failed`.

faults.py [POOL] runs one pool. FAULTS_STEP: from-then-on runs skip get numbers by this factor (1.5).
"""
import json
import os
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "server"))

from server import (SMALL, Server, chat_body, check_refused, chunked_sizes, noise_png, picture_part, read,  # noqa: E402
                    request_bytes, text_part)

CHAT = "/v1/chat/completions"
STEP = float(os.environ.get("FAULTS_STEP", "1.5"))
FLAGS = SMALL + ["--body-wait", "1", "--context-length", "2048", "--chunked-prefill-size", "64"]
WAIT_SECONDS = 1.5  # until a client gives up when what it needs may never come
CLIENTS = 4
# Pools that requests wait for, so that a client may see nothing before it leaves; the others' refusals are answers.
WAITED_FOR = ("KV_PAGE", "MM_PAGE", "FEATURE", "PIXELS", "PAGE_LIST")
# A refused CONN is nobody's answer: who waits in the kernel's backlog is let in later, or never.
POOLS = ("REQUEST", "TOKENS", "BODY_SMALL", "BODY_LARGE", "CONN", "PAGE_LIST", "KV_PAGE", "PREFIX", "MM_PAGE",
         "FEATURE", "PIXELS")


class Piece:
    """Something that a client does. `ask(client)` returns what it got: texts and statuses that must be `expected`."""

    def __init__(self, name, data, count=1, is_left=False):
        self.name, self.data, self.count, self.is_left, self.expected = name, data, count, is_left, None

    def ask(self, server, timeout):
        with server.connect(timeout) as client:
            client.send(self.data)
            if self.is_left:
                client.until(b"\n\n")
                return ["left"]
            found = []
            for _ in range(self.count):
                answer = client.answer()
                found.append(outcome(answer))
                if answer.is_closing:
                    break
            return found


def outcome(answer):
    if answer.status != 200:
        check_refused(answer, answer.status)
        return answer.status
    if answer.body == b"":
        return "empty"
    if answer.field("Content-Type").startswith("text/event-stream"):
        events = answer.events()
        errors = [event["error"]["code"] for event in events if "error" in event]
        if errors:
            return errors[0]
        return "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])
    return [choice["message"]["content"] for choice in answer.json()["choices"]]


def chat(content, **fields):
    return request_bytes("POST", CHAT, json.dumps(chat_body(content, **fields)).encode())


def the_load():
    number = picture_part(read("demo/samples/number.png"))
    shapes = picture_part(read("demo/samples/shapes.png"))
    large = picture_part(noise_png(200, 200, 7))  # a body beyond 64 KiB
    dialogue = chat_body("", max_tokens=20)
    dialogue["messages"] = [{"role": "user", "content": [number, text_part("Which number?")]},
                            {"role": "assistant", "content": "The number is 42."},
                            {"role": "user", "content": "Sure?"}]
    broken = picture_part(read("demo/samples/number.png")[:200])
    chunks = request_bytes("POST", CHAT, b"", [("Transfer-Encoding", "chunked")]) + \
        chunked_sizes(json.dumps(chat_body("In chunks", max_tokens=4)).encode(), 50)
    return [
        Piece("text", chat("Hello " * 40)), Piece("the same text", chat("Hello " * 40)),
        Piece("a picture", chat([number, text_part("Which number?")])),
        Piece("a large body", chat([large, text_part("What is shown?")])),
        Piece("a stream", chat("Hi", stream=True, max_tokens=60, ignore_eos=True)),
        Piece("a client that leaves", chat("Bye", stream=True, max_tokens=1500, ignore_eos=True), is_left=True),
        Piece("two pictures", chat([number, text_part("or"), shapes, text_part("?")], stream=True)),
        Piece("the same picture elsewhere", chat([text_part("Look:"), number])),
        Piece("a dialogue", request_bytes("POST", CHAT, json.dumps(dialogue).encode())),
        Piece("chunks", chunks),
        Piece("a pipeline", request_bytes("GET", "/health") + chat("One") + chat([shapes, text_part("List them.")]),
              count=3),
        Piece("a broken picture", chat([broken, text_part("?")])),
        Piece("a broken body", request_bytes("POST", CHAT, b"{")),
        Piece("a sampled one", chat("Tell me", temperature=1.2, seed=5, max_tokens=20, ignore_eos=True)),
        Piece("three choices", chat("Tell me", temperature=1.2, seed=6, n=3, max_tokens=30, ignore_eos=True)),
        Piece("a long one", chat("word " * 100, max_tokens=200, ignore_eos=True)),
    ]


def run_load(server, load, timeout):
    """(piece, what it got) of all pieces, in their order but several at once. None: it gave up waiting."""
    waiting, found, lock = list(load), [], threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                piece = waiting.pop(0)
            try:
                got = piece.ask(server, timeout)
            except TimeoutError:
                got = None
            except (EOFError, ConnectionError):
                got = "closed"
            except AssertionError as error:
                got = "not a documented answer: %s" % error
            with lock:
                found.append((piece, got))

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def judge(pool, is_once, piece, got):
    if got is None:
        assert not is_once and (pool in WAITED_FOR or pool == "CONN"), (piece.name, "no answer")
        return
    if got == "closed":
        assert pool == "CONN" or piece.is_left, (piece.name, got)
        return
    assert isinstance(got, list), (piece.name, got)
    for one, expected in zip(got, piece.expected):
        assert one == expected or one == 503, (piece.name, one, expected)
    assert len(got) == len(piece.expected) or got[-1] == 503, (piece.name, got)


def try_refusal(pool, number, is_once, load):
    """True if the refusal happened."""
    environment = {"ASHLAR_REFUSE": "%s:%d%s" % (pool, number, ":once" if is_once else ""), "ASHLAR_GUARDS": "1"}
    with Server(FLAGS, environment=environment) as server:
        if pool != "CONN":  # asking would itself use up connections
            server.note_idle()
        may_wait = not is_once and (pool in WAITED_FOR or pool == "CONN")
        found = run_load(server, load, WAIT_SECONDS if may_wait else 60)
        assert server.process.poll() is None, server.log()[-3000:]
        for piece, got in found:
            judge(pool, is_once, piece, got)
        happened = any(got is None or got == "closed" or 503 in got for _, got in found)
        if is_once or pool != "CONN":
            happened = next(value for name, value in server.metrics().items()
                            if name.startswith('ashlar_pool_refused{pool="%s"' % pool)) > 0
        if pool != "CONN":
            server.wait_idle(5)
        if is_once:
            server.chat("Hi", max_tokens=1)  # a refusal that is still to come may hit this one
            server.check_lives()
        status = server.stop()
        assert status == 0, "exit status %d" % status
        return happened


def try_pool(pool, is_once, load):
    """Passed and failed runs."""
    passed = failed = number = 0
    started, name = time.monotonic(), "once" if is_once else "from then on"
    while True:
        try:
            happened = try_refusal(pool, number, is_once, load)
            passed += 1
            if not happened:
                break
        except Exception:
            failed += 1
            print("%s, %s, get %d: FAILED\n%s" % (pool, name, number, traceback.format_exc(limit=-3)), flush=True)
            if failed > 3:
                break
        number = number + 1 if is_once else max(number + 1, int(number * STEP))
    print("  %-12s %-14s up to get %4d: %4d runs, %d failed, %.0f s" % (
        pool, name, number, passed + failed, failed, time.monotonic() - started), flush=True)
    return passed, failed


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    load = the_load()
    with Server(FLAGS) as server:
        for piece in load:
            piece.expected = piece.ask(server, 60)
    passed = failed = 0
    for pool in POOLS:
        for is_once in (True, False):
            if wanted in pool:
                more = try_pool(pool, is_once, load)
                passed, failed = passed + more[0], failed + more[1]
    print("faults: %d passed, %d failed" % (passed, failed))
    sys.exit(0 if failed == 0 else 1)


if __name__ == "__main__":
    main()
