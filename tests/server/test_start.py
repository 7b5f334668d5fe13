"""Starting and stopping: refusals by exit code and message, plans, ports, signals."""
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from server import SMALL, Server, binary, finish, path, request_bytes, chat_body

MODEL = ["--model-path", path("demo/model")]


def ashlar(*arguments, seconds=60):
    return subprocess.run([binary()] + list(arguments), capture_output=True, text=True, timeout=seconds)


def refuses(code, *arguments, words=()):
    done = ashlar(*arguments)
    text = done.stderr + done.stdout
    assert done.returncode == code, (arguments, done.returncode, text[-500:])
    assert all(word in text for word in words), (arguments, words, text[-500:])


def help_and_version_exit_0():
    assert "--model-path" in ashlar("--help").stdout
    assert "ashlar" in ashlar("--version").stdout


def wrong_flags_exit_2_and_are_named():
    for flags, word in ((["--no-such-flag"], "--no-such-flag"), (["--port=abc"], "--port"),
                        (["--port", "70000"], "--port"),
                        (["--port"], "--port"), (["--mem-fraction-static", "1.5"], "--mem-fraction-static"),
                        (["--mem-fraction-static", "nan"], "--mem-fraction-static"), (["--tp-size", "2"], "--tp-size"),
                        (["--mem-fraction-static", "0"], "--mem-fraction-static"), (["--dtype", "int3"], "--dtype"),
                        (["--mem-fraction-static", "90%"],
                         "--mem-fraction-static"), (["--context-length", "-5"], "--context-length"),
                        (["--mm-process-config", '{"image":{"max_pixels":784}}'], "--mm-process-config"),
                        (["--device-memory", "12Q"], "--device-memory")):
        refuses(2, "plan", *MODEL, *flags, words=[word])
        refuses(2, "serve", *MODEL, *flags, words=[word])
    refuses(2, "serve", *MODEL, "--device-memory", "1Gi", "--api-key", "", words=["--api-key"])
    refuses(2, "serve", words=["--model-path"])
    refuses(2, "")


def ignored_flags_warn_once():
    done = ashlar("plan", *MODEL, "--device-memory", "1Gi", "--attention-backend", "fa3", "--schedule-policy", "lpm")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("--attention-backend") == 1 and done.stderr.count("--schedule-policy") == 1, done.stderr


def too_little_memory_exits_3_with_advice():
    done = ashlar("plan", *MODEL, "--device-memory", "8Mi")
    assert done.returncode == 3, (done.returncode, done.stderr[-500:])
    assert "bytes are missing" in done.stderr, done.stderr
    assert done.stdout.count(" frees ") == 3 and "--max-source-pixels" in done.stdout, done.stdout
    served = ashlar("serve", *MODEL, "--port", "0", "--device-memory", "8Mi")
    assert served.returncode == 3 and served.stderr.count(" frees ") == 3, served.stderr


def a_bad_model_exits_4_and_names_the_file():
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model")
        shutil.copytree(path("demo/model"), model)

        def broken(name, change):
            whole = os.path.join(model, name)
            with open(whole, "rb") as file:
                data = file.read()
            changed = change(data)
            if changed is None:
                os.unlink(whole)
            else:
                with open(whole, "wb") as file:
                    file.write(changed)
            refuses(4, "serve", "--model-path", model, "--port", "0", "--device-memory", "1Gi", words=[name])
            with open(whole, "wb") as file:
                file.write(data)

        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            broken(name, lambda data: None)
            broken(name, lambda data: b"")
            broken(name, lambda data: data[:len(data) // 2])
        broken("model.safetensors", lambda data: b"\0\0\0\0\0\0\0\x10" + data[8:])
        broken("model.safetensors", lambda data: data.replace(b"model.norm.weight", b"model.norm.weighs"))
        broken("model.safetensors", lambda data: data + b"x")
        broken("config.json", lambda data: data.replace(b'"hidden_size": 256', b'"hidden_size": 0'))
        broken("config.json", lambda data: data.replace(b'"hidden_size": 256', b'"hidden_size": 248'))
        broken("config.json", lambda data: data.replace(b"Qwen2_5_VLForConditionalGeneration", b"NobodyKnowsIt"))
        broken("config.json", lambda data: b'{"a":' * 5000)
        broken("config.json", lambda data: data.replace(b'"intermediate_size": 512', b'"intermediate_size": 511'))
        for data in (b"", b"null", b"[]", b'{"chat_template": 5}', b'{"chat_template": "' + b"a" * 9000 + b'"}'):
            broken("chat_template.json", lambda _, data=data: data)
        broken("chat_template.json", lambda data: data.replace(b"im_start", b"im_begin"))
        os.unlink(os.path.join(model, "config.json"))
        os.mkfifo(os.path.join(model, "config.json"))
        refuses(4, "serve", "--model-path", model, "--port", "0", words=["config.json"])
    refuses(4, "serve", "--model-path", "/nonexistent", "--port", "0")


def a_taken_port_exits_6_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        started = time.monotonic()
        done = ashlar("serve", *MODEL, *SMALL, "--host", "127.0.0.1", "--port", str(taken.getsockname()[1]))
        assert done.returncode == 6 and "port" in done.stderr.lower(), (done.returncode, done.stderr[-300:])
        assert time.monotonic() - started < 5


def a_taken_port_shows_before_memory_is_touched():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refuses(6, "serve", *MODEL, *SMALL, "--host", "127.0.0.1", "--port", str(taken.getsockname()[1]),
                "--device-memory", "100Ti", "--max-running-requests", "4096")


def narrow_limits_of_the_system_are_met_or_named():
    """A small stack grows or is refused; a log that may not grow harms nobody."""
    for hard, soft in ((resource.RLIM_INFINITY, 65536), (65536, 65536)):
        done = subprocess.run([binary(), "plan", *MODEL, "--device-memory", "1Gi"], capture_output=True, text=True,
                              preexec_fn=lambda h=hard, s=soft: resource.setrlimit(resource.RLIMIT_STACK, (s, h)))
        assert done.returncode == (0 if hard != soft else 3), (done.returncode, done.stderr[-300:])
        assert hard != soft or "ulimit" in done.stderr, done.stderr
    with Server(SMALL, wrapper=["sh", "-c", 'ulimit -Ss 64; exec "$@"', "sh"]) as server:
        server.check_lives()
        assert server.stop() == 0
    with tempfile.TemporaryFile() as log:
        done = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", binary(), "serve", *MODEL, "--port", "0",
                               "--device-memory", "8Mi"], stdout=log, stderr=log, timeout=60)
        assert done.returncode == 3, done.returncode


def a_plan_is_the_same_twice_and_adds_up():
    flags = ["plan", "--json", *MODEL, "--device-memory", "2Gi", "--mem-fraction-static", "0.5"]
    one, two = ashlar(*flags), ashlar(*flags)
    assert one.returncode == 0 and one.stdout == two.stdout, one.stderr
    plan = json.loads(one.stdout)
    parts = sum(pool["bytes"] for pool in plan["pools"]) + plan["books_bytes"]
    assert 0 <= plan["total_bytes"] - parts < 4096 * (len(plan["pools"]) + 1), (plan["total_bytes"], parts)
    assert plan["total_bytes"] <= plan["limit_bytes"], plan


def a_killed_server_starts_again_on_its_port():
    with Server(SMALL) as server:
        with server.connect() as client:
            client.send(request_bytes("GET", "/health"))
            client.answer()
            server.process.kill()
            server.process.wait()
        port = str(server.port)
    process = subprocess.Popen([binary(), "serve", *MODEL, *SMALL, "--host", "127.0.0.1", "--port", port],
                               stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 30
        for line in process.stderr:
            if "ready to roll" in line or time.monotonic() > deadline:
                break
        assert process.poll() is None
    finally:
        process.terminate()
        assert process.wait(30) == 0


def sigterm_finishes_what_runs_and_refuses_what_comes():
    for sign in (signal.SIGTERM, signal.SIGINT):
        with Server(SMALL) as server:
            answers = []
            client = server.connect()
            body = json.dumps(chat_body(max_tokens=150, ignore_eos=True, stream=True)).encode()
            client.send(request_bytes("POST", "/v1/chat/completions", body))
            client.until(b"data: ")
            reader = threading.Thread(target=lambda: answers.append(read_to_end(client)))
            reader.start()
            server.process.send_signal(sign)
            reader.join(60)
            assert answers and b"data: [DONE]" in answers[0], answers
            assert server.process.wait(30) == 0


def read_to_end(client):
    while client.fill():
        pass
    return client.buffer


def a_second_signal_ends_at_once():
    with Server(SMALL) as server:
        client = server.connect()
        body = json.dumps(chat_body(max_tokens=3000, ignore_eos=True, stream=True)).encode()
        client.send(request_bytes("POST", "/v1/chat/completions", body))
        client.until(b"data: ")
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        started = time.monotonic()
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
        server.process.wait(10)
        assert time.monotonic() - started < 5


def main():
    cases = [value for name, value in globals().items()
             if callable(value) and getattr(value, "__module__", "") == "__main__" and name not in
             ("ashlar", "refuses", "read_to_end", "main")]
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    passed = failed = 0
    for case in cases:
        if wanted not in case.__name__:
            continue
        try:
            case()
            passed += 1
        except Exception:
            failed += 1
            print("%s: FAILED\n%s" % (case.__name__, traceback.format_exc(limit=-3)), flush=True)
    finish("server/start", passed, failed)


if __name__ == "__main__":
    main()
