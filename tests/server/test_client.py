"""The official `openai` client against a real server: what a user's program sees."""
import threading

import openai

from server import data_url, png, read, run


def client_of(server):
    """Use it in a `with`: it keeps connections open, and open connections are not idle."""
    return openai.OpenAI(base_url="http://127.0.0.1:%d/v1" % server.port, api_key="none", max_retries=0)


def question(picture):
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": data_url(picture)}},
                                         {"type": "text", "text": "What is shown in the image?"}]}]


def models_are_listed(server):
    with client_of(server) as client:
        assert [model.id for model in client.models.list().data] == ["ashlar-demo"]
        assert client.models.retrieve("ashlar-demo").id == "ashlar-demo"
        try:
            client.models.retrieve("nosuch")
            raise AssertionError("found")
        except openai.NotFoundError as error:
            assert error.code == "model_not_found", error.body


def a_chat_is_answered(server):
    with client_of(server) as client:
        answer = client.chat.completions.create(model="ashlar-demo", temperature=0, max_tokens=5,
                                                messages=[{"role": "user", "content": "Hello"}])
    assert answer.choices[0].message.role == "assistant" and answer.usage.completion_tokens <= 5, answer


def a_stream_arrives_piece_by_piece(server):
    asked = {"model": "x", "temperature": 0, "messages": question(read("demo/samples/shapes.png")),
             "max_tokens": 400, "extra_body": {"ignore_eos": True}}  # long: a busy machine may join a few tokens
    with client_of(server) as client:
        whole = client.chat.completions.create(**asked)
        pieces = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert text == whole.choices[0].message.content and len(pieces) > 5, (text, whole)
    assert pieces[-1].usage.total_tokens == whole.usage.total_tokens, pieces[-1]


def errors_have_the_clients_types(server):
    with client_of(server) as client:
        for fields in ({"temperature": -1}, {"messages": []}, {"messages": question(b"no picture")}):
            arguments = {"model": "x", "messages": [{"role": "user", "content": "x"}], **fields}
            try:
                client.chat.completions.create(**arguments)
                raise AssertionError("no error for %r" % fields)
            except openai.BadRequestError as error:
                assert error.status_code == 400 and error.message, error


def several_clients_at_once_are_served(server):
    answers = []

    def ask(i):
        with client_of(server) as client:
            messages = question(png(112 + 28 * i, 112))
            answers.append(client.chat.completions.create(model="x", max_tokens=4, messages=messages))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6


def a_stream_can_be_left(server):
    with client_of(server) as client:
        stream = client.chat.completions.create(model="x", max_tokens=1500, stream=True,
                                                extra_body={"ignore_eos": True},
                                                messages=[{"role": "user", "content": "x"}])
        next(iter(stream))
        stream.close()


if __name__ == "__main__":
    run("server/client", globals())
