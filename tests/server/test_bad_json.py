"""Bad bodies: every JSONTestSuite file and every wrong encoding is a refusal, never an error of the server's."""
import json
import os

from server import chat_body, check_refused, path, request_bytes, run

SUITE = path("tests/data/json/JSONTestSuite/test_parsing")
DEEP = 100000


def send_all(server, kind, expected):
    """Posts every file of a kind, over kept connections where the server keeps them."""
    client = server.connect()
    for name in sorted(os.listdir(SUITE)):
        if not name.startswith(kind):
            continue
        with open(os.path.join(SUITE, name), "rb") as file:
            client.send(request_bytes("POST", "/v1/chat/completions", file.read()))
        answer = client.answer()
        assert answer.status in expected, (name, answer)
        check_refused(answer, answer.status)
        if answer.is_closing:
            client.close()
            client = server.connect()
    client.close()


def files_that_are_no_json_are_400(server):
    send_all(server, "n_", (400, 413))


def files_that_are_json_are_no_chat_request(server):
    send_all(server, "y_", (400,))


def files_that_may_be_either_are_400(server):
    send_all(server, "i_", (400, 413))


def nesting_is_bounded(server):
    body = json.dumps(chat_body())[:-1]
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        nest = opening * DEEP + "1" + closing * DEEP
        for text in (nest, body + ',"x":' + nest + "}", body + ',"x":' + opening * DEEP,
                     body + ',"tools":[{"type":"function","function":{"name":"f","parameters":' + nest + "}}]}",
                     '{"messages":[{"role":"user","content":' + nest + "}]}"):
            answer = server.post(text.encode())
            check_refused(answer, answer.status)
            assert answer.status in (400, 413), answer
    shallow = body + ',"max_completion_tokens":1,"x":' + "[" * 30 + "]" * 30 + "}"
    assert server.post(shallow.encode()).status == 200


def empty_and_partial_bodies_are_400(server):
    whole = json.dumps(chat_body(max_tokens=1))
    for text in ("", " ", "{", "{}", "[]", "\"x\"", "5", "null", "true", whole + "x", whole + "{}", whole[:-1],
                 whole[1:],
                 whole.replace(":", "=", 1), whole.replace("\"", "'"), "\ufeff\ufeff" + whole, whole + "\0"):
        check_refused(server.post(text.encode()))


def a_fault_inside_any_field_is_400(server):
    whole = json.dumps(chat_body(max_tokens=1))[:-1]
    for field in ("tools", "tool_choice", "response_format", "stop", "logit_bias", "regex", "stream_options", "unknown",
                  "chat_template_kwargs", "messages", "temperature", "stream"):
        for value in ("[x", "{", "[1,]", "{\"a\"}", "tru", "-", "\"\\x\"", "", "}", "]", "[[[", "\"", "{\"type\":"):
            check_refused(server.post((whole + ',"%s":%s' % (field, value)).encode()))
            check_refused(server.post((whole + ',"%s":%s}' % (field, value)).encode()))


def values_of_any_type_are_taken_or_refused(server):
    for field in ("tools", "tool_choice", "response_format", "stop", "logit_bias", "regex", "stream_options", "unknown",
                  "chat_template_kwargs", "messages", "temperature", "stream", "model", "seed", "stop_token_ids"):
        for value in (None, True, False, 0, 1, -1.5, 1e300, "", "x", [], [1], ["x"], [[]], [{}], {}, {"a": 1},
                      {"type": 1},
                      {"type": []}, [None], {"type": "text"}, [{"type": "function"}], [{"type": 1, "function": []}]):
            answer = server.post(dict(chat_body(max_tokens=1), **{field: value}))
            assert answer.status in (200, 400), (field, value, answer)


def other_encodings_are_400(server):
    body = chat_body("Grüße 世界", max_tokens=1)
    text = json.dumps(body, ensure_ascii=False)
    for data in (text.encode("gbk", "replace") + b"\x81", text.encode("utf-16"), text.encode("utf-32"),
                 text.encode("utf-16-le"), json.dumps(body).encode().replace(b"ashlar", b"ash\xff"),
                 json.dumps(body).encode().replace(b"ashlar", b"\xc0\x80"), text.encode("latin-1", "ignore"),
                 json.dumps(body).encode().replace(b"ashlar", b"\xed\xa0\x80"),
                 json.dumps(body).encode().replace(b"ashlar", b"\xf4\x90\x80\x80")):
        check_refused(server.post(data))
    assert server.post(b"\xef\xbb\xbf" + text.encode()).status in (200, 400)
    assert server.post(text.encode()).status == 200


def control_bytes_in_strings_are_400(server):
    for byte in (0, 1, 9, 10, 13, 31):
        data = json.dumps(chat_body("a?b")).encode().replace(b"a?b", b"a" + bytes([byte]) + b"b")
        check_refused(server.post(data))


def many_members_are_taken_or_refused(server):
    for count in (100, 20000):
        body = chat_body(max_tokens=1, **{"x%d" % i: i for i in range(count)})
        assert server.post(body).status in (200, 400, 413)
    messages = [{"role": "user", "content": "x"}] * 5000
    answer = server.post(chat_body(messages=messages))
    assert answer.status in (400, 413), answer
    parts = [{"type": "text", "text": "x"}] * 5000
    answer = server.post(chat_body(messages=[{"role": "user", "content": parts}]))
    assert answer.status in (400, 413), answer


def any_order_of_members_and_any_spacing_is_taken(server):
    body = chat_body(max_tokens=2)
    answers = []
    for data in (json.dumps(body), json.dumps(dict(reversed(list(body.items())))), json.dumps(body, indent=3),
                 json.dumps(body, separators=(",", ":")), " \t\r\n" + json.dumps(body) + " \n",
                 json.dumps(body).replace("Hello", "\\u0048\\u0065llo").replace("messages", "\\u006dessages")):
        answer = server.post(data.encode())
        assert answer.status == 200, (data, answer)
        answers.append(answer.json()["choices"])
    assert all(choices == answers[0] for choices in answers), answers


if __name__ == "__main__":
    run("server/bad_json", globals())
