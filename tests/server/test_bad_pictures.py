"""Bad pictures: each is a 400 that names the part, before anything is generated; odd but good ones are answered."""
import base64
import os
import random
import struct
import time
import zlib

from server import (
    chat_body,
    check_refused,
    data_url,
    noise_png,
    path,
    picture_part,
    png,
    png_chunk,
    read,
    run,
     text_part)

JPEG = read("tests/data/images/pillow/hopper.jpg")
PNG = png(64, 48)
HEAD = b"\x89PNG\r\n\x1a\n"


def ask(server, data, kind="image/png", **fields):
    return server.chat([picture_part(data, kind), text_part("?")], max_tokens=1, **fields)


def ask_url(server, url):
    return server.chat([{"type": "image_url", "image_url": {"url": url}}, text_part("?")], max_tokens=1)


def header_only(width, height, depth=8, color=2, interlace=0):
    return (HEAD + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)) +
            png_chunk(b"IDAT", zlib.compress(b"\0" * 100)) + png_chunk(b"IEND", b""))


def the_part_is_named(server):
    content = [text_part("a"), picture_part(PNG), picture_part(b"no picture"), text_part("b")]
    body = check_refused(server.chat(content))
    assert "2" in body["message"] + str(body["param"]), body
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"},
                {"role": "user", "content": [picture_part(b"no picture")]}]
    body = check_refused(server.post(chat_body(messages=messages)))
    assert "messages[2].content[0]" in body["message"] + str(body["param"]), body


def cut_files_are_refused(server):
    for data in (b"", b"\xff", JPEG[:2], JPEG[:100], JPEG[:len(JPEG) // 2], JPEG[:-128], PNG[:8], PNG[:20], PNG[:33],
                 PNG[:len(PNG) // 2], PNG[:-20], HEAD, read("tests/data/images/pillow/truncated_jpeg.jpg")):
        for is_stream in (False, True):
            check_refused(ask(server, data, stream=is_stream))


def a_png_without_its_end_is_refused_or_taken(server):
    assert ask(server, PNG[:-12]).status in (200, 400)


def no_size_is_refused(server):
    for width, height in ((0, 0), (0, 5), (5, 0), (0x80000000, 5), (5, 0xFFFFFFFF)):
        check_refused(ask(server, header_only(width, height)))
    for size in (b"\0\0\0\0", b"\0\0\0\x10", b"\0\x10\0\0"):
        at = JPEG.index(b"\xff\xc0") + 5
        check_refused(ask(server, JPEG[:at] + size + JPEG[at + 4:]))


def bombs_are_refused_from_their_header(server):
    before = server.memory()[0]
    bomb = png(30000, 1, rows=(b"\0" + b"\0" * 90000) * 1).replace(
        png_chunk(b"IHDR", struct.pack(">IIBBBBB", 30000, 1, 8, 2, 0, 0, 0)),
        png_chunk(b"IHDR", struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)))
    for data in (header_only(30000, 30000), bomb, header_only(65535, 65535), header_only(2**31 - 1, 2**31 - 1)):
        started = time.monotonic()
        check_refused(ask(server, data), 400, "pixels")
        assert time.monotonic() - started < 1
    assert server.memory()[0] - before <= 64, (before, server.memory())


def extreme_shapes_are_refused_and_small_ones_grow(server):
    for width, height in ((1005, 5), (5, 1005), (3000, 1)):
        for is_stream in (False, True):
            check_refused(ask(server, png(width, height), stream=is_stream), 400)
    for width, height in ((1000, 5), (1, 1), (1, 28), (27, 27), (27, 257), (28, 28), (31, 31), (32, 32)):
        answer = ask(server, png(width, height))
        assert answer.status == 200, (width, height, answer)


def labels_do_not_matter(server):
    for kind in ("image/png", "image/jpeg", "image/jpg", "application/octet-stream", "image/*", "IMAGE/PNG", ""):
        assert ask(server, PNG, kind).status == 200, kind
        assert ask(server, JPEG, kind).status == 200, kind


def other_formats_are_refused_by_name(server):
    for name, word in (("hopper.webp", "WebP"), ("hopper.gif", "GIF"), ("hopper.bmp", "BMP"),
                       ("transparent.webp", "WebP"),
                       ("anim_frame1.webp", "WebP"), ("zero_width.gif", "GIF")):
        body = check_refused(ask(server, read("tests/data/images/pillow", name)))
        assert word.lower() in body["message"].lower(), (word, body)
    for data in (b"<svg xmlns='x'/>", b"%PDF-1.4", b"II*\0" + b"\0" * 40, b"\0" * 1000, b"hello", b"\xff\xd8\xff"):
        check_refused(ask(server, data))


def odd_data_urls_are_taken_or_refused(server):
    good = base64.b64encode(PNG).decode()
    for url in ("data:image/jpeg;charset=utf-8;base64," + good, "data:image/png;name=a.png;base64," + good,
                "data:image/png;BASE64," + good, "DATA:image/png;base64," + good):
        assert ask_url(server, url).status == 200, url[:60]
    for url in ("data:,x", "data:image/png," + good, "data:image/png;base64", "data:image/png;base64,", "data:", "",
                "data:image/png;base64,data:image/png;base64," + good, "data:image/png;base64,!!!!",
                "data:image/png;base64," + good[:-1] + "*", "data:image/png;base64,A", "data:image/png;base64,A===",
                "data:image/png;base64,=" + good, "data:image/png;base64," + good + "=x"):
        check_refused(ask_url(server, url))
    assert ask_url(server, good).status in (200, 400)
    assert ask_url(server, "data:;base64," + good).status in (200, 400)


def malformed_parts_are_refused(server):
    for part in ({"type": "image_url"}, {"type": "image_url", "image_url": {}},
                 {"type": "image_url", "image_url": None},
                 {"type": "image_url", "image_url": {"url": None}}, {"type": "image_url", "image_url": {"url": 5}},
                 {"type": "image_url", "image_url": {"url": ["x"]}}, {"type": "image_url", "image_url": []},
                 {"type": "image_url", "image_url": 5}):
        check_refused(server.chat([part, text_part("?")]), 400)


def the_payload_is_not_repeated(server):
    data = base64.b64encode(noise_png(700, 700, 3)).decode()
    answer = ask_url(server, "data:image/png;base64," + data + "*")
    check_refused(answer)
    assert len(answer.body) < 1024, len(answer.body)
    assert max(len(line) for line in server.log().split("\n")) < 4096


def too_many_pictures_are_refused(server):
    answer = server.chat([picture_part(png(28, 28))] * 100 + [text_part("?")])
    check_refused(answer, 400)


def every_broken_file_of_the_suites_is_refused(server):
    for folder, prefix in (("pngsuite", "x"), ("jpeg-decoder/crashtest", ""), ("jpeg-decoder/unsupported", "")):
        names = sorted(name for name in os.listdir(path("tests/data/images", folder)) if name.startswith(prefix))
        for name in names[:60]:
            if name.endswith((".png", ".jpg", ".jpeg")):
                answer = ask(server, read("tests/data/images", folder, name), "image/x")
                assert answer.status in ((400,) if folder == "pngsuite" else (200, 400)), (name, answer)


def odd_but_good_files_are_answered(server):
    names = [
    "pngsuite/" +
    name for name in (
        "basn0g01.png",
        "basi3p04.png",
        "basn6a16.png",
        "tbbn3p08.png",
         "basi4a16.png")]
    names += ["pillow/" + name for name in ("hopper_gray.jpg", "pil_sample_cmyk.jpg", "hopper_orientation_6.jpg",
                                            "multiple_exif.jpg", "junk_jpeg_header.jpg", "invalid-exif.jpg")]
    names += ["exif-orientation/Landscape_6.jpg", "libjpeg-turbo/testorig.jpg", "libjpeg-turbo/testimgari.jpg"]
    for name in names:
        answer = ask(server, read("tests/data/images", name))
        assert answer.status in ((200, 400) if "junk" in name or "ari" in name else (200,)), (name, answer)


def a_turned_picture_counts_as_it_is_seen(server):
    for shape in ("Landscape_%d.jpg", "Portrait_%d.jpg"):
        counts = {}
        for turn in (1, 6, 8):
            data = read("tests/data/images/exif-orientation", shape % turn)
            counts[turn] = ask(server, data).json()["usage"]["prompt_tokens"]
        assert len(set(counts.values())) == 1, (shape, counts)


def mutated_files_never_harm(server):
    draw = random.Random(20250828)
    sources = [JPEG, read("tests/data/images/pngsuite/basi6a08.png"),
               read("tests/data/images/libjpeg-turbo/testimgint.jpg"),
               read("demo/samples/number.png")]
    for i in range(120):
        data = bytearray(sources[i % len(sources)])
        for _ in range(draw.randint(1, 8)):
            kind, at = draw.randint(0, 3), draw.randrange(len(data))
            if kind == 0:
                data[at] ^= 1 << draw.randint(0, 7)
            elif kind == 1:
                data[at:at + draw.randint(1, 64)] = b"\0" * 16
            elif kind == 2:
                del data[at:at + draw.randint(1, 200)]
            else:
                data[at:at] = bytes(draw.randrange(256) for _ in range(8))
        answer = ask(server, bytes(data))
        assert answer.status in (200, 400), (i, answer)


def a_picture_does_not_raise_memory(server):
    ask(server, noise_png(600, 400, 1))
    before = server.memory()[0]
    for i in range(6):
        assert ask(server, noise_png(560 + 28 * i, 400, i + 2)).status == 200
    for data_kind in (data_url(JPEG, "image/jpeg"),):
        assert ask_url(server, data_kind).status == 200
    assert server.memory()[0] == before, (before, server.memory())


if __name__ == "__main__":
    run("server/bad_pictures", globals())
