"""The wire: framing, smuggling shapes, chunks, pipelines, expectations, bytes one by one, clients that leave."""
import json
import threading
import time

from server import chat_body, check_refused, chunked_sizes, png, picture_part, request_bytes, run, text_part

CHAT = "/v1/chat/completions"
BODY = json.dumps(chat_body(max_tokens=2)).encode()
LIMIT = 8 * 2**20


def raw(server, data, method="GET"):
    """Sends bytes as they are; the answer, and whether the connection closes behind it."""
    with server.connect() as client:
        client.send(data)
        answer = client.answer(method)
        return answer, answer.is_closing and client.is_closed()


def chunked_request(body, size, **options):
    return request_bytes("POST", CHAT, b"", [("Transfer-Encoding", "chunked")]) + chunked_sizes(body, size, **options)


def smuggling_shapes_are_400_and_close(server):
    tail = b"\r\n\r\n{}"
    host = b"POST " + CHAT.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    shapes = [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: chunked\r\nContent-Length: 2",
        b"Content-Length: 2\r\nContent-Length: 3", b"Content-Length: 2, 3", b"Content-Length: -2",
        b"Content-Length: +2",
        b"Content-Length: 0x2", b"Content-Length: 2 2", b"Content-Length: ", b"Content-Length: two",
        b"Content-Length: 99999999999999999999", b"Content-Length: 18446744073709551618", b"Content-Length : 2",
        b" Content-Length: 2", b"Content-Length\t: 2", b"Content-Length: 2\r\n folded: yes",
        b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Transfer-Encoding: xchunked", b"Transfer-Encoding: identity", b"Transfer-Encoding:\x0bchunked",
        b"Content-Length: 2\nX: y", b"Content-Length: 2\rX: y", b": empty", b"no colon",
        b"Content-Length: 2\r\nA\0B: c",
        b"Content-Length: 2\r\nBad Name: c", b"Content-Length: 2\r\nX: a\0b", b"Content-Length: 2\r\nHost: y",
    ]
    for shape in shapes:
        answer, is_closed = raw(server, host + shape + tail + request_bytes("GET", "/health"))
        assert answer.status in (400, 501), (shape, answer)
        check_refused(answer, answer.status)
        assert is_closed, (shape, "stays open")


def broken_request_lines_are_refused(server):
    rest = b"\r\nHost: x\r\n\r\n"
    for line, statuses in ((b"GET /health", (400, 505)), (b"GET /health HTTP/2.0", (505,)),
                           (b"GET /health HTTP/0.9", (505,)),
                           (b"GET  /health HTTP/1.1", (400,)), (b"GET /health  HTTP/1.1", (400,)),
                           (b"get /health HTTP/1.1", (400, 405, 501)), (b"G\x00T /health HTTP/1.1", (400,)),
                           (b"GET health HTTP/1.1", (400,)), (b"GET /h\x01ealth HTTP/1.1", (400,)),
                           (b"GET /health HTTP/1.1 x", (400,)), (b"GET /health http/1.1", (400, 505)),
                           (b"GET /health HTTP/1.10", (400, 505)), (b"\xff\xfe GET", (400,)),
                           (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", (400,)),
                           (b" GET /health HTTP/1.1", (400,))):
        answer, is_closed = raw(server, line + rest)
        assert answer.status in statuses, (line, answer)
        assert is_closed or answer.status == 405, line


def a_request_without_host_is_400(server):
    answer, _ = raw(server, b"GET /health HTTP/1.1\r\n\r\n")
    assert answer.status == 400, answer


def http_1_0_is_answered_and_closed(server):
    for fields in (b"", b"Host: x\r\n"):
        answer, is_closed = raw(server, b"GET /health HTTP/1.0\r\n" + fields + b"\r\n")
        assert answer.status == 200 and is_closed, (answer, is_closed)


def long_heads_are_431(server):
    for data in (b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40000 + b"\r\n\r\n",
                 b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 5000 + b"\r\n"):
        with server.connect() as client:
            try:
                client.send(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            assert client.answer().status in (400, 414, 431)


def a_kept_connection_serves_many(server):
    with server.connect() as client:
        for _ in range(30):
            client.send(request_bytes("GET", "/health"))
            assert client.answer().status == 200
            client.send(request_bytes("POST", CHAT, BODY))
            answer = client.answer()
            assert answer.status == 200 and not answer.is_closing, answer
        stream = json.dumps(chat_body(max_tokens=2, stream=True)).encode()
        client.send(request_bytes("POST", CHAT, stream))
        assert client.answer().events()
        client.send(request_bytes("POST", CHAT, b"{"))
        check_refused(client.answer())
        client.send(request_bytes("GET", "/health", None, [("Connection", "close")]))
        answer = client.answer()
        assert answer.status == 200 and answer.is_closing and client.is_closed(), answer


def pipelined_requests_are_answered_in_order(server):
    stream = json.dumps(chat_body(max_tokens=3, stream=True)).encode()
    with server.connect() as client:
        client.send(request_bytes("GET", "/health") + request_bytes("POST", CHAT, BODY) +
                    request_bytes("GET", "/v1/models") + request_bytes("POST", CHAT, stream) +
                    request_bytes("POST", CHAT, b"[]") + request_bytes("GET",
                                                                       "/nope") + request_bytes("GET", "/health"))
        assert client.answer().body == b""
        assert client.answer().json()["object"] == "chat.completion"
        assert client.answer().json()["object"] == "list"
        assert client.answer().events()
        assert client.answer().status == 400
        assert client.answer().status == 404
        assert client.answer().status == 200


def chunked_bodies_are_taken(server):
    for data in (chunked_request(BODY, len(BODY)), chunked_request(BODY, 1), chunked_request(BODY, 7),
                 chunked_request(BODY, 16, extension=b";a=b"), chunked_request(BODY, 16, extension=b';n="v v"'),
                 chunked_request(BODY, 50, trailer=b"X-Sum: 1\r\n"), chunked_request(BODY,
                                 50, trailer=b"A: b\r\nC: d\r\n"),
                 chunked_request(BODY, 10).replace(b"\r\na\r\n", b"\r\nA\r\n").replace(b"\r\nA\r\n", b"\r\n000A\r\n")):
        with server.connect() as client:
            client.send(data + request_bytes("GET", "/health"))
            answer = client.answer()
            assert answer.status == 200, (data[:200], answer)
            assert client.answer().status == 200


def broken_chunks_are_400_and_close(server):
    head = request_bytes("POST", CHAT, b"", [("Transfer-Encoding", "chunked")])
    for data in (b"x\r\n", b"-1\r\n", b"FFFFFFFFFFFFFFFFF\r\n", b"10000000000000000\r\n", b"\r\n",
                 b"5 \r\nhello\r\n0\r\n\r\n",
                 b"2\r\n{}x\r\n", b"2\r\n{}\n", b"2\n{}\r\n", b"0x2\r\n{}\r\n", b"2;" + b"a" * 1000 + b"\r\n{}\r\n",
                 b"2\r\n{}\r\n0\r\nbad trailer\r\n\r\n"):
        answer, is_closed = raw(server, head + data + request_bytes("GET", "/health"))
        assert answer.status == 400 and is_closed, (data, answer, is_closed)


def a_body_cut_short_harms_nobody(server):
    for data in (chunked_request(BODY, 10)[:-5], request_bytes("POST", CHAT, BODY)
                 [:-3], request_bytes("POST", CHAT, BODY)[:40]):
        for leaves in ("close", "reset"):
            client = server.connect()
            client.send(data)
            getattr(client, leaves)()


def large_bodies_are_refused_before_they_are_read(server):
    before = server.memory()[0]
    for length in (LIMIT + 1, 50 * 10**9, 2**63 - 1):
        head = request_bytes("POST", CHAT, b"", [("Content-Length", str(length))])
        with server.connect() as client:
            client.send(head)
            check_refused(client.answer(), 413)
    body = b'{"model":"x","messages":[{"role":"user","content":"' + b"a" * LIMIT + b'"}]}'
    check_refused(server.post(body), 413)
    with server.connect() as client:
        try:
            client.send(request_bytes("POST", CHAT, b"", [
                        ("Transfer-Encoding", "chunked")]) + chunked_sizes(body, 65536))
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert client.answer().status == 413
    assert server.memory()[0] == before, (before, server.memory())


def bodies_up_to_the_limit_are_read(server):
    for length in (65536, 65537, LIMIT):
        body = json.dumps(chat_body(max_tokens=1)).encode()
        body = body[:-1] + b" " * (length - len(body)) + b"}"
        assert len(body) == length and server.post(body).status == 200, length


def expectations_are_met_or_refused(server):
    fields = [("Expect", "100-continue")]
    head = request_bytes("POST", CHAT, b"", fields + [("Content-Length", str(len(BODY)))])
    with server.connect() as client:
        client.send(head)
        assert client.answer().status == 100
        client.send(BODY)
        assert client.answer().status == 200
    for length in (LIMIT + 1,):
        answer, _ = raw(server, request_bytes("POST", CHAT, b"", fields + [("Content-Length", str(length))]))
        assert answer.status == 413, answer
    answer, _ = raw(server, request_bytes("POST", CHAT, b"", [("Expect", "a-miracle"), ("Content-Length", "2")]))
    assert answer.status == 417, answer
    answer, _ = raw(server, request_bytes("POST", "/nope", b"", fields + [("Content-Length", "2")]))
    assert answer.status == 404, answer
    with server.connect() as client:
        client.send(request_bytes("POST", CHAT, BODY, fields))
        answer = client.answer()
        answer = client.answer() if answer.status == 100 else answer
        assert answer.status == 200, answer


def every_request_works_byte_by_byte(server):
    requests = [request_bytes("GET", target) for target in ("/health", "/v1/models", "/model_info", "/server_info",
                                                            "/metrics", "/nope", "/v1/models/x")]
    requests += [request_bytes("POST", CHAT, BODY), chunked_request(BODY, 9, extension=b";x", trailer=b"T: 1\r\n"),
                 request_bytes("POST", CHAT, json.dumps(chat_body(max_tokens=2, stream=True)).encode()),
                 request_bytes("POST", CHAT, b"{"), request_bytes("DELETE", CHAT),
                 request_bytes("POST", CHAT, json.dumps(chat_body(
                     [picture_part(png(28, 28)), text_part("?")], max_tokens=1)).encode())]
    for request in requests:
        with server.connect() as whole, server.connect() as pieces:
            whole.send(request)
            expected = whole.answer()
            for at in range(len(request)):
                pieces.send(request[at:at + 1])
            answer = pieces.answer()
            assert answer.status == expected.status, (request[:80], answer, expected)


def cross_origin_requests_get_their_fields(server):
    origin = [("Origin", "http://example.com")]
    asked = origin + [("Access-Control-Request-Method", "POST"),
                      ("Access-Control-Request-Headers", "authorization,content-type,x-stainless-os")]
    answer = server.request("OPTIONS", CHAT, None, asked)
    if answer.field("Access-Control-Allow-Origin") is None:
        return  # not offered
    assert answer.status in (200, 204), answer
    assert "x-stainless-os" in (answer.field("Access-Control-Allow-Headers") or "*") or \
        answer.field("Access-Control-Allow-Headers") == "*", answer.fields
    for body in (BODY, b"{", json.dumps(chat_body(max_tokens=1, stream=True)).encode()):
        assert server.post(body, origin).field("Access-Control-Allow-Origin"), body


def steps_of(info):
    return info.json()["internal_states"][0]["steps"]


def leaving_clients_free_everything_at_once(server):
    """At every stage: while the body is parsed, queued, decoded, streamed. Idle within a second, and not by ending."""
    picture = picture_part(png(448, 448))
    for content, is_stream in (("Hi", True), ("Hi", False), ([picture, text_part("?")], True)):
        body = chat_body(content, max_tokens=3500, ignore_eos=True, stream=is_stream)
        data = request_bytes("POST", CHAT, json.dumps(body).encode())
        for leaves in ("close", "reset"):
            for events in (0, 0, 0, 0, 0, 1, 5):
                before = steps_of(server.get("/server_info"))
                client = server.connect()
                client.send(data)
                if is_stream:
                    for _ in range(events):
                        client.until(b"\n\n")
                else:
                    time.sleep(0.01 * events)
                getattr(client, leaves)()
                server.wait_idle(1)
                steps = steps_of(server.get("/server_info")) - before
                assert steps < 2000, (content, is_stream, leaves, events, steps)


def a_crowd_gets_answers_or_503(server):
    answers = []

    def ask(i):
        answers.append(server.chat("Hello %d" % i, max_tokens=4, ignore_eos=True).status)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 40 and set(answers) <= {200, 503} and 200 in answers, answers


def slow_readers_harm_nobody(server):
    clients = []
    body = json.dumps(chat_body(max_tokens=1000, ignore_eos=True, stream=True)).encode()
    for _ in range(2):
        client = server.connect()
        client.send(request_bytes("POST", CHAT, body))
        clients.append(client)
    started = time.monotonic()
    assert server.get("/health").status == 200 and time.monotonic() - started < 0.5
    assert server.chat("Hi", max_tokens=2).status == 200
    for client in clients:
        client.close()


def idle_connections_are_kept_and_cost_nothing(server):
    clients = [server.connect() for _ in range(20)]
    assert server.chat("Hi", max_tokens=1).status == 200
    for client in clients:
        client.send(request_bytes("GET", "/health"))
    for client in clients:
        assert client.answer().status == 200
        client.close()


if __name__ == "__main__":
    run("server/http", globals())
