"""mixture: a load of everything that can happen to a server; the same seed makes the same requests."""
import json
import random
import threading

from server import (SMALL, Server, chat_body, chunked_sizes, finish, noise_png, picture_part, read, request_bytes,
                    text_part)

CHAT = "/v1/chat/completions"


class Mixture:
    def __init__(self, server, count, seed=1, threads=3):
        self.server, self.count, self.threads = server, count, threads
        self.seed = seed
        self.pictures = [noise_png(width, height, width) for width, height in
                         ((28, 28), (100, 60), (224, 224), (300, 500), (640, 480))]
        self.pictures += [read("tests/data/images/pillow/hopper.jpg"), read("demo/samples/number.png"),
                          read("tests/data/images/libjpeg-turbo/testimgint.jpg"),
                          read("tests/data/images/pillow/pil_sample_cmyk.jpg")]
        self.kinds = [self.text, self.text, self.pictures_asked, self.pictures_asked, self.stream, self.stream,
                      self.garbage, self.wrong_json, self.wrong_picture, self.leaves_early, self.leaves_in_stream,
                      self.chunked, self.info, self.pipelined, self.sampled, self.choices, self.choices_left]
        self.statuses = {}
        self.failures = []

    def run(self):
        """Sends all requests from a few threads; returns how many got which status."""
        numbers = list(range(self.count))
        lock = threading.Lock()

        def work():
            while True:
                with lock:
                    if not numbers:
                        return
                    number = numbers.pop(0)
                draw = random.Random(self.seed * 1000003 + number)
                kind = self.kinds[number % len(self.kinds)]
                try:
                    status = kind(draw)
                except (OSError, EOFError, AssertionError, ValueError) as error:
                    status = "error"
                    self.failures.append("%s: %r" % (kind.__name__, error))
                with lock:
                    self.statuses[(kind.__name__, status)] = self.statuses.get((kind.__name__, status), 0) + 1

        workers = [threading.Thread(target=work) for _ in range(self.threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return self.statuses

    def content(self, draw, least, most):
        parts = [picture_part(draw.choice(self.pictures)) for _ in range(draw.randint(least, most))]
        return parts + [text_part("What is shown? " + "word " * draw.randint(0, 60))]

    def text(self, draw):
        return self.server.chat("word " * draw.randint(1, 300), max_tokens=draw.randint(1, 12)).status

    def pictures_asked(self, draw):
        return self.server.chat(self.content(draw, 1, 3), max_tokens=draw.randint(1, 6)).status

    def stream(self, draw):
        answer = self.server.chat(self.content(draw, 0, 2), max_tokens=draw.randint(1, 12), stream=True,
                                  stream_options={"include_usage": draw.random() < 0.5})
        if answer.status == 200:
            answer.events()
        return answer.status

    def sampled(self, draw):
        return self.server.chat("Tell me", temperature=1.2, top_p=0.9, top_k=40, min_p=0.01, seed=draw.randint(0, 99),
                                repetition_penalty=1.1, presence_penalty=0.5, frequency_penalty=0.5, stop=["zq", "qz"],
                                logit_bias={"11": 2, "12": -3}, max_tokens=10).status

    def choices(self, draw):
        answer = self.server.chat(self.content(draw, 0, 1), n=draw.randint(2, 4), temperature=1.2,
                                  seed=draw.randint(0, 99), max_tokens=draw.randint(1, 12), stream=draw.random() < 0.5)
        return answer.status

    def choices_left(self, draw):
        body = json.dumps(chat_body(self.content(draw, 0, 1), n=draw.randint(2, 4), max_tokens=400, ignore_eos=True,
                                    stream=True)).encode()
        client = self.server.connect()
        client.send(request_bytes("POST", CHAT, body))
        if draw.random() < 0.5:
            client.until(b"\n")
        draw.choice([client.close, client.reset])()
        return "left"

    def garbage(self, draw):
        with self.server.connect() as client:
            try:
                client.send(bytes(draw.randrange(256) for _ in range(draw.randint(1, 3000))) + b"\r\n\r\n")
                return client.answer().status
            except (OSError, EOFError):
                return "closed"

    def wrong_json(self, draw):
        body = json.dumps(chat_body("x" * draw.randint(1, 500))).encode()
        at = draw.randrange(len(body))
        return self.server.post(draw.choice([body[:at], body[:at] + b"\xff" + \
                                body[at:], body[:at] + b"]" + body[at:], b""])).status

    def wrong_picture(self, draw):
        data = bytearray(draw.choice(self.pictures))
        del data[draw.randrange(len(data)):]
        return self.server.chat([picture_part(bytes(data)), text_part("?")], max_tokens=1).status

    def leaves_early(self, draw):
        body = json.dumps(chat_body(self.content(draw, 0, 2), max_tokens=400, ignore_eos=True)).encode()
        data = request_bytes("POST", CHAT, body)
        client = self.server.connect()
        client.send(data[:draw.randint(1, len(data))])
        draw.choice([client.close, client.reset])()
        return "left"

    def leaves_in_stream(self, draw):
        body = json.dumps(chat_body("Hi", max_tokens=400, ignore_eos=True, stream=True)).encode()
        client = self.server.connect()
        client.send(request_bytes("POST", CHAT, body))
        for _ in range(draw.randint(0, 6)):
            client.until(b"\n")
        draw.choice([client.close, client.reset])()
        return "left"

    def chunked(self, draw):
        body = json.dumps(chat_body("Hello", max_tokens=2)).encode()
        with self.server.connect() as client:
            client.send(request_bytes("POST", CHAT, b"", [("Transfer-Encoding", "chunked")]))
            client.send(chunked_sizes(body, draw.randint(1, 90)))
            return client.answer().status

    def info(self, draw):
        return self.server.get(draw.choice(["/v1/models", "/health", "/metrics",
                               "/server_info", "/nope", "/model_info", "/pools"])).status

    def pipelined(self, draw):
        body = json.dumps(chat_body("Hi", max_tokens=2)).encode()
        with self.server.connect() as client:
            client.send(
    request_bytes(
        "GET",
        "/health") +
        request_bytes(
            "POST",
            CHAT,
            body) +
            request_bytes(
                "GET",
                 "/health"))
            return [client.answer().status for _ in range(3)][1]


def main():
    """A short load on a server of its own (make asan ubsan tsan)."""
    with Server(SMALL) as server:
        server.note_idle()
        mixture = Mixture(server, 60)
        print(mixture.run())
        server.wait_idle(10)
        good = not mixture.failures and server.stop(seconds=120) == 0
        print("\n".join(mixture.failures))
    finish("server/mixture", int(good), int(not good))


if __name__ == "__main__":
    main()
