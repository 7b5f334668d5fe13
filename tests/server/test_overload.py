"""Overload and the way down: refusals come early, text passes pictures, leavers free their places, SIGTERM drains."""
import json
import signal
import threading
import time

from server import SMALL, Server, chat_body, check_refused, finish, noise_png, picture_part, request_bytes, text_part

CHAT = "/v1/chat/completions"


def ask(client, content="Hello", **fields):
    client.send(request_bytes("POST", CHAT, json.dumps(chat_body(content, **fields)).encode()))


def endless(**fields):
    return dict({"max_tokens": 1500, "ignore_eos": True}, **fields)


def await_text(client):
    while b"data: " not in client.buffer:
        assert client.fill(), client.buffer


def tiny(*flags):
    return SMALL + ["--max-running-requests", "1"] + list(flags)


def a_full_queue_is_503_at_once():
    with Server(tiny("--max-queued-requests", "1")) as server:
        holders = [server.connect(), server.connect()]
        for holder in holders:
            ask(holder, **endless(stream=True))
            time.sleep(0.05)
        delays = []
        for _ in range(20):
            with server.connect() as client:
                client.send(request_bytes("POST", CHAT, b"", [("Content-Length", "1000")]))  # no body follows
                started = time.monotonic()
                answer = client.answer()
                delays.append(time.monotonic() - started)
                check_refused(answer, 503)
                assert int(answer.field("Retry-After")) >= 1, answer.fields
        assert sorted(delays)[len(delays) // 2] < 0.05, delays
        for holder in holders:
            holder.close()
        deadline = time.monotonic() + 1
        while server.chat("Hi", max_tokens=1).status == 503:
            assert time.monotonic() < deadline, "a place did not come free"
        assert server.stop() == 0


def everybody_in_a_crowd_is_answered():
    with Server(tiny("--max-queued-requests", "4")) as server:
        statuses = []

        def one():
            statuses.append(server.chat("Hello", max_tokens=20, ignore_eos=True).status)

        threads = [threading.Thread(target=one) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(statuses) == 64 and set(statuses) <= {200, 503} and statuses.count(200) >= 5, statuses
        assert server.stop() == 0


def two_hundred_leavers_make_room_within_a_second():
    with Server(SMALL + ["--max-running-requests", "4", "--max-queued-requests", "220"]) as server:
        server.note_idle()
        leavers = [server.connect() for _ in range(200)]
        for leaver in leavers:
            ask(leaver, **endless())
        time.sleep(0.5)
        for leaver in leavers:
            leaver.close()
        started = time.monotonic()
        assert server.chat("Hi", max_tokens=2).status == 200
        assert time.monotonic() - started < 1, time.monotonic() - started
        server.wait_idle(2)
        assert server.stop() == 0


def text_passes_drips_and_pictures():
    with Server(SMALL + ["--max-queued-requests", "40", "--body-timeout", "3", "--body-wait", "20"]) as server:
        server.note_idle()
        drips = [server.connect() for _ in range(4)]  # two slots: two are not read
        for drip in drips:
            drip.send(request_bytes("POST", CHAT, b"", [("Content-Length", "1000000")]) + b"{")
        picture = picture_part(noise_png(420, 420, 1))
        body = chat_body([picture, text_part("?")], max_tokens=2)
        assert len(json.dumps(body)) > 65536
        statuses = []
        askers = [threading.Thread(target=lambda: statuses.append(server.post(body).status)) for _ in range(8)]
        for asker in askers:
            asker.start()
        time.sleep(0.2)
        delays = []
        for _ in range(5):
            started = time.monotonic()
            assert server.chat("Hi", max_tokens=2).status == 200
            delays.append(time.monotonic() - started)
        assert max(delays) < 1, delays
        for asker in askers:
            asker.join()
        assert statuses == [200] * 8, statuses  # behind the drips, which ran out of time
        for drip in drips:
            assert drip.answer().status in (408, 503)
            drip.close()
        server.wait_idle(2)
        assert server.stop() == 0


def health_answers_while_everything_is_full():
    with Server(SMALL + ["--max-connections", "64"]) as server:
        with server.connect() as probe:
            busy = [server.connect() for _ in range(40)]
            for client in busy[:12]:
                ask(client, [picture_part(noise_png(300, 300, 2)), text_part("?")], **endless(stream=True))
            crowd = [server.connect() for _ in range(100)]  # more than there is room for
            delays = []
            for _ in range(30):
                started = time.monotonic()
                probe.send(request_bytes("GET", "/health"))
                assert probe.answer().status == 200
                delays.append(time.monotonic() - started)
                time.sleep(0.01)
            assert sorted(delays)[-2] < 0.1, sorted(delays)
            for client in busy + crowd:
                client.close()
        assert server.stop() == 0


def sigterm_lets_running_ones_end_and_refuses_new_work():
    with Server(SMALL) as server:
        idle = server.connect()
        idle.send(request_bytes("GET", "/health"))
        assert idle.answer().status == 200
        streams = [server.connect() for _ in range(4)]
        for stream in streams:
            ask(stream, **endless(stream=True, max_tokens=200))
            await_text(stream)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        idle.send(request_bytes("GET", "/health"))
        answer = idle.answer()
        assert answer.status == 503 and answer.is_closing, answer
        for stream in streams:
            events = stream.answer().events()
            assert events[-1]["choices"][0]["finish_reason"] == "length", events[-1]
        assert server.process.wait(20) == 0


def after_the_grace_time_answers_are_cut_properly():
    with Server(tiny("--shutdown-grace", "0.3")) as server:
        stream, queued = server.connect(), server.connect()
        ask(stream, **endless(stream=True))
        await_text(stream)
        ask(queued, **endless())
        time.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        events = stream.answer().events()
        assert events[-1]["choices"][0]["finish_reason"] in ("abort", "length"), events[-1]
        assert queued.answer().status in (200, 503)
        assert server.process.wait(20) == 0


def a_second_signal_leaves_an_error_behind():
    with Server(tiny()) as server:
        stream, queued = server.connect(), server.connect()
        ask(stream, **endless(stream=True, max_tokens=1900))
        await_text(stream)
        ask(queued, **endless())
        time.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
        server.process.send_signal(signal.SIGTERM)
        last = stream.answer().events()[-1]
        assert "error" in last or last["choices"][0]["finish_reason"] == "length", last
        assert queued.answer().status in (200, 503)
        assert server.process.wait(5) != 0 or "error" not in last


if __name__ == "__main__":
    passed = failed = 0
    for case in (a_full_queue_is_503_at_once, everybody_in_a_crowd_is_answered,
                 two_hundred_leavers_make_room_within_a_second, text_passes_drips_and_pictures,
                 health_answers_while_everything_is_full, sigterm_lets_running_ones_end_and_refuses_new_work,
                 after_the_grace_time_answers_are_cut_properly, a_second_signal_leaves_an_error_behind):
        try:
            case()
            passed += 1
        except Exception as error:
            failed += 1
            print("%s: FAILED\n%s: %s" % (case.__name__, type(error).__name__, error), flush=True)
    finish("server/overload", passed, failed)
