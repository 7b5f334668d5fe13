"""The same answer in any company: alone or among others, cold or warm, by chunks of any size, on one thread or two.

The reference of every request is its answer alone, on one thread, without caches and without chunks. Sampled requests
are the finest probe: a logit that differs in its last bit moves a token sooner or later.
"""
import json
import random
import threading

from server import (SMALL, Server, chat_body, finish, noise_png, picture_part, read, text_part)

MODELS = ("demo/model", "tests/data/fixtures/models/q25vl-a", "tests/data/fixtures/models/q25vl-b")
COMMON = SMALL + ["--max-running-requests", "16", "--max-queued-requests", "64", "--random-seed", "1"]
ALONE = ["--threads", "1", "--disable-radix-cache", "--chunked-prefill-size", "-1"]
# Flags, MiB of the feature cache. All chunk sizes, one thread and two, each cache on and off.
SERVERS = [(["--threads", "2", "--chunked-prefill-size", "16"], 100),
           (["--threads", "1", "--chunked-prefill-size", "64"], 0),
           (["--threads", "2", "--chunked-prefill-size", "512", "--disable-radix-cache"], 100),
           (["--threads", "2", "--chunked-prefill-size", "-1"], 0)]
CROWDS = (1, 2, 5, 16)


def requests_of(model):
    """A fixed mixture; every other one is sampled."""
    draw = random.Random(9)
    small, wide, tall = noise_png(84, 84, 1), noise_png(300, 90, 2), noise_png(60, 250, 3)
    photo = read("tests/data/images/pillow/hopper.jpg")
    words = ("one", "two", "shapes", "blue", "count the", "and then", "\u00e9\u00df", "12345", "?")
    contents = ["Hi", "word " * 40, " ".join(draw.choice(words) for _ in range(120)),
                " ".join(draw.choice(words) for _ in range(260)),
                [picture_part(small), text_part("What is shown?")], [text_part("Look:"), picture_part(wide)],
                [picture_part(photo, "image/jpeg"), text_part("Describe it.")],
                [picture_part(small), text_part("or"), picture_part(tall), text_part("?")],
                [text_part("word " * 30), picture_part(tall), text_part("word " * 30), picture_part(wide)]]
    bodies = []
    for i, content in enumerate(contents + contents):
        body = chat_body(content, max_tokens=draw.randint(10, 40), ignore_eos=True)
        if i >= len(contents):
            body.update(temperature=1.3, top_p=0.95, seed=100 + i, repetition_penalty=1.1, presence_penalty=0.2)
        bodies.append(body)
    dialogue = chat_body("Hi", max_tokens=16)
    dialogue["messages"] = [{"role": "user", "content": [picture_part(small), text_part("?")]},
                            {"role": "assistant", "content": "A picture."}, {"role": "user", "content": "Sure?"}]
    return bodies + [dialogue, dict(dialogue, temperature=0.9, seed=4)]


def text_of(server, body, is_stream):
    if not is_stream:
        answer = server.post(body)
        assert answer.status == 200, answer
        return answer.json()["choices"][0]["message"]["content"]
    answer = server.post(dict(body, stream=True))
    assert answer.status == 200, answer
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in answer.events() if event["choices"])


def differences(server, bodies, references, crowd, draw):
    """Asks all of them, `crowd` at once, in a random order, streamed or not."""
    numbers, wrong, lock = list(range(len(bodies))), [], threading.Lock()
    draw.shuffle(numbers)

    def work():
        while True:
            with lock:
                if not numbers:
                    return
                number = numbers.pop()
                is_stream = draw.random() < 0.5
            text = text_of(server, bodies[number], is_stream)
            if text != references[number]:
                wrong.append((number, crowd, text[:60], references[number][:60]))

    threads = [threading.Thread(target=work) for _ in range(crowd)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def answers_alone(model, bodies):
    with Server(COMMON + ALONE, model=model, environment={"SGLANG_VLM_CACHE_SIZE_MB": "0"}) as server:
        return [text_of(server, body, False) for body in bodies]


def check_model(model):
    """Failures, as text."""
    bodies, draw, failures = requests_of(model), random.Random(3), []
    references = answers_alone(model, bodies)
    if len(set(references)) < len(references) // 2:
        failures.append("the answers are too much alike to tell")
    for flags, cache_mib in SERVERS:
        with Server(COMMON + flags, model=model, environment={"SGLANG_VLM_CACHE_SIZE_MB": str(cache_mib)}) as server:
            server.note_idle()
            for crowd in CROWDS:  # the first round meets cold caches, the others warm ones
                wrong = differences(server, bodies, references, crowd, draw)
                failures += ["%s: %s" % (" ".join(flags), json.dumps(case)) for case in wrong]
            server.wait_idle()
            if server.stop() != 0:
                failures.append("%s: exit status" % " ".join(flags))
    return failures


def main():
    passed = failed = 0
    for model in MODELS:
        failures = check_model(model)
        print("\n".join("%s: FAILED: %s" % (model, failure) for failure in failures[:10]), end="\n" if failures else "")
        passed, failed = passed + (not failures), failed + bool(failures)
    finish("server/company", passed, failed)


if __name__ == "__main__":
    main()
