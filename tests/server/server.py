"""server: starts a real server on a free loopback port, talks to it byte for byte, and judges what it holds.

Whole-server tests call `run(NAME, globals(), flags)`. After every case a plain request must be answered and every pool
must be back at what it held at "ready"; so a case only has to say what it does to the server.
"""
import base64
import inspect
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
READY = "ready to roll"
SMALL = ["--max-source-pixels", "4Mi", "--large-bodies", "2", "--large-body-bytes", "8Mi", "--enable-metrics",
         "--max-running-requests", "4", "--threads", "2", "--served-model-name", "ashlar-demo"]


def path(*parts):
    return os.path.join(ROOT, *parts)


def read(*parts):
    with open(path(*parts), "rb") as file:
        return file.read()


# ---- one answer ----

class Answer:
    def __init__(self, status, reason, fields, body, is_closing):
        self.status, self.reason, self.fields, self.body, self.is_closing = status, reason, fields, body, is_closing

    def field(self, name):
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)

    def json(self):
        return json.loads(self.body)

    def events(self):
        """The objects of a stream; checks its framing: `data: ` lines, blank lines between, [DONE] at the end."""
        text = self.body.decode("utf-8")
        assert text.endswith("\n\n"), repr(text[-80:])
        lines = text[:-2].split("\n\n")
        assert all(line.startswith("data: ") and "\n" not in line for line in lines), text[:300]
        assert lines[-1] == "data: [DONE]", lines[-1]
        return [json.loads(line[6:]) for line in lines[:-1]]

    def __repr__(self):
        return "%d %r" % (self.status, self.body[:300])


class Client:
    """One connection."""

    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data)

    def fill(self):
        """False at the end of what the server sends."""
        data = self.socket.recv(65536)
        self.buffer += data
        return data != b""

    def until(self, mark):
        while mark not in self.buffer:
            if not self.fill():
                raise EOFError("closed after %r" % self.buffer[:200])
        found, self.buffer = self.buffer.split(mark, 1)
        return found

    def take(self, count):
        while len(self.buffer) < count:
            if not self.fill():
                raise EOFError("closed %d bytes short" % (count - len(self.buffer)))
        found, self.buffer = self.buffer[:count], self.buffer[count:]
        return found

    def answer(self, method="GET"):
        head = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status, reason = (head[0].split(" ", 2) + [""])[:3]
        assert version == "HTTP/1.1" and len(status) == 3, head[0]
        fields = [tuple(line.split(": ", 1)) for line in head[1:]]
        names = {name.lower(): value for name, value in fields}
        status, body = int(status), b""
        if method == "HEAD" or status in (100, 204):
            pass
        elif "chunked" in names.get("transfer-encoding", ""):
            body = self.chunks()
        elif "content-length" in names:
            body = self.take(int(names["content-length"]))
        else:
            raise AssertionError("no framing: %r" % head)
        return Answer(status, reason, fields, body, names.get("connection", "").lower() == "close")

    def chunks(self):
        body = b""
        while True:
            size = int(self.until(b"\r\n"), 16)
            body += self.take(size)
            assert self.take(2) == b"\r\n"
            if size == 0:
                return body

    def is_closed(self, seconds=5):
        """True if the server ends the connection within the time, having sent nothing more."""
        self.socket.settimeout(seconds)
        try:
            return not self.fill() and self.buffer == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def close(self):
        self.socket.close()

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def request_bytes(method, target, body=None, fields=()):
    head = ["%s %s HTTP/1.1" % (method, target), "Host: 127.0.0.1"]
    if body is not None and not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in fields):
        head.append("Content-Length: %d" % len(body))
    if body is not None and not any(name.lower() == "content-type" for name, _ in fields):
        head.append("Content-Type: application/json")
    head += ["%s: %s" % pair for pair in fields]
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def chunked_sizes(body, size, extension=b"", trailer=b""):
    """A body in chunks of `size` bytes."""
    out = b""
    for at in range(0, len(body), size):
        piece = body[at:at + size]
        out += b"%x%s\r\n%s\r\n" % (len(piece), extension, piece)
    return out + b"0\r\n" + trailer + b"\r\n"


# ---- bodies and pictures ----

def chat_body(content="Hello", **fields):
    body = {"model": "ashlar-demo", "temperature": 0, "max_tokens": 8,
            "messages": [{"role": "user", "content": content}]}
    body.update(fields)
    return body


def data_url(data, kind="image/png"):
    return "data:%s;base64,%s" % (kind, base64.b64encode(data).decode())


def picture_part(data, kind="image/png"):
    return {"type": "image_url", "image_url": {"url": data_url(data, kind)}}


def text_part(text):
    return {"type": "text", "text": text}


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, color=(200, 30, 30), rows=None):
    """A picture of one colour (or of `rows`, raw filtered bytes)."""
    if rows is None:
        rows = (b"\0" + bytes(color) * width) * height
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b""))


def noise_png(width, height, seed):
    state, row = seed * 2654435761 % 2**32 or 1, bytearray()
    for _ in range(height):
        row.append(0)
        for _ in range(width * 3):
            state = (state * 1664525 + 1013904223) % 2**32
            row.append(state >> 24)
    return png(width, height, rows=bytes(row))


# ---- the server ----

def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def binary():
    return os.environ.get("ASHLAR", path("build/ashlar"))


class Server:
    def __init__(self, flags=(), model="demo/model", environment=None, wrapper=()):
        self.port = free_port()
        self.log_path = os.path.join(tempfile.gettempdir(), "ashlar-test-%d-%d.log" % (os.getpid(), self.port))
        command = list(wrapper) + [binary(), "serve", "--model-path", path(model), "--host", "127.0.0.1", "--port",
                                   str(self.port)] + list(flags)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT,
                                            env=dict(os.environ, **(environment or {})))
        self.pid = self.process.pid
        self.key = None
        self.wait_ready()
        self.idle_pools = None

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def wait_ready(self, seconds=120):
        deadline = time.monotonic() + seconds
        while READY not in self.log():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError("the server did not get ready:\n" + self.log()[-3000:])
            time.sleep(0.05)

    def connect(self, timeout=60):
        return Client(self.port, timeout)

    def request(self, method, target, body=None, fields=(), timeout=120):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        fields = list(fields)
        if self.key is not None and not any(name.lower() == "authorization" for name, _ in fields):
            fields.append(("Authorization", "Bearer " + self.key))
        with self.connect(timeout) as client:
            try:
                client.send(request_bytes(method, target, body, fields))
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before all of the body was read: the answer is there
            return client.answer(method)

    def get(self, target, fields=()):
        return self.request("GET", target, None, fields)

    def chat(self, content="Hello", **fields):
        return self.request("POST", "/v1/chat/completions", chat_body(content, **fields))

    def post(self, body, fields=()):
        return self.request("POST", "/v1/chat/completions", body, fields)

    def metrics(self):
        values = {}
        for line in self.get("/metrics").body.decode().split("\n"):
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def pools(self):
        prefix = 'ashlar_pool_used{pool="'
        return {name[len(prefix):].split('"')[0]: value for name, value in self.metrics().items()
                if name.startswith(prefix)}

    def note_idle(self):
        self.idle_pools = self.pools()
        assert self.idle_pools, "no ashlar_pool_used in /metrics"

    def wait_idle(self, seconds=2):
        """Every pool is what it was at ready, within the time."""
        deadline = time.monotonic() + seconds
        while True:
            pools = self.pools()
            if pools == self.idle_pools:
                return
            if time.monotonic() > deadline:
                differences = {name: (self.idle_pools.get(name), value) for name, value in pools.items()
                               if value != self.idle_pools.get(name)}
                raise AssertionError("not idle (ready, now): %r" % differences)
            time.sleep(0.02)

    def memory(self):
        """Resident KiB: RssAnon, RssFile."""
        with open("/proc/%d/status" % self.pid) as status:
            lines = dict(line.split(":", 1) for line in status.read().split("\n") if ":" in line)
        return tuple(int(lines[name].split()[0]) for name in ("RssAnon", "RssFile"))

    def check_lives(self):
        assert self.process.poll() is None, "the server ended:\n" + self.log()[-3000:]
        answer = self.chat("Hi", max_tokens=1)
        assert answer.status == 200, answer

    def stop(self, sign=signal.SIGTERM, seconds=60):
        if self.process.poll() is None:
            self.process.send_signal(sign)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the server did not stop:\n" + self.log()[-2000:])
        finally:
            if os.path.exists(self.log_path):
                os.unlink(self.log_path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if os.path.exists(self.log_path):
            os.unlink(self.log_path)


# ---- checks ----

def check_refused(answer, status=400, *words):
    """A refusal with both forms of the error body, which says all of `words`."""
    assert answer.status == status, answer
    body = answer.json()
    error = body["error"]
    for form in (body, error):
        assert isinstance(form["message"], str) and form["message"], body
        assert isinstance(form["type"], str) and "param" in form, body
        assert form["code"] == status or isinstance(form["code"], str), body
    assert body["object"] == "error" and body["message"] == error["message"], body
    assert len(answer.body) < 4096, len(answer.body)
    for word in words:
        assert str(word) in body["message"], (word, body["message"])
    return body


def cases_of(scope):
    """The functions of a module that take one argument, `server`, in their order."""
    return [value for value in scope.values() if inspect.isfunction(value)
            and list(inspect.signature(value).parameters) == ["server"]]


def run_cases(cases, flags=(), **options):
    """Runs cases against one server of their own; how many passed and failed. argv[1] selects by name."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    cases = [case for case in cases if wanted in case.__name__]
    passed = failed = 0
    if not cases:
        return 0, 0
    with Server(SMALL + list(flags), **options) as server:
        server.check_lives()
        server.note_idle()
        for case in cases:
            try:
                case(server)
                server.check_lives()
                server.wait_idle()
                passed += 1
            except Exception:
                failed += 1
                print("%s: FAILED\n%s" % (case.__name__, traceback.format_exc(limit=-3)), flush=True)
                if server.process.poll() is not None:
                    print(server.log()[-3000:])
                    failed = len(cases) - passed
                    break
        if server.process.poll() is None:
            try:
                status = server.stop()
                assert status == 0, "exit status %d after SIGTERM" % status
                passed += 1
            except AssertionError as error:
                failed += 1
                print("stopping: FAILED\n%s" % error)
    return passed, failed


def run(name, scope, flags=(), **options):
    """Runs a module's cases against one server. Exits with 0 if all passed."""
    finish(name, *run_cases(cases_of(scope), flags, **options))


def run_groups(name, groups, alone=()):
    """Runs each group of cases, (flags, case, case...), against a server of its own, then the cases of `alone`, which
    start what they need themselves. Exits with 0 if all passed."""
    passed = failed = 0
    for flags, *cases in groups:
        more = run_cases(cases, flags)
        passed, failed = passed + more[0], failed + more[1]
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for case in (case for case in alone if wanted in case.__name__):
        try:
            case()
            passed += 1
        except Exception:
            failed += 1
            print("%s: FAILED\n%s" % (case.__name__, traceback.format_exc(limit=-3)), flush=True)
    finish(name, passed, failed)


def finish(name, passed, failed):
    print("%s: %d passed, %d failed" % (name, passed, failed), flush=True)
    sys.exit(0 if failed == 0 else 1)
