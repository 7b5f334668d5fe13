#!/usr/bin/env python3
"""make bench-seed: the workload that started the project, on two models, with the verdict on memory.

1. The demo model: 100 prompts, 3 random 1080p JPEGs each, 1024 text tokens in, 1 out, one at a time.
2. Full width: Qwen2.5-VL-3B's shapes with both depths cut to 4 and seeded weights, so that real 1080p pictures (2,691
   tokens each) pass through. Slow on few cores, so SEED_WIDE_PROMPTS (default 12) bounds it; 0 leaves it out.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "server"))

from server import Server, path  # noqa: E402

BENCH = ["--backend", "sglang-oai-chat", "--dataset-name", "random-image", "--random-image-num-images", "3",
         "--random-image-resolution", "1080p", "--random-output-len", "1", "--random-range-ratio", "1",
         "--max-concurrency", "1", "--warmup-requests", "0"]
RUNS = (
    ("demo model, context 4096", "demo/model", "demo/model", int(os.environ.get("SEED_PROMPTS", "100")), 1024,
     ["--context-length", "4096"]),
    ("full width, both depths cut to 4", "tests/data/models/Qwen2.5-VL-3B-Instruct", "tests/data/tokenizers/qwen2",
     int(os.environ.get("SEED_WIDE_PROMPTS", "12")), 1024,
     ["--context-length", "12288", "--load-format", "dummy", "--tokenizer-path", path("tests/data/tokenizers/qwen2"),
      "--max-running-requests", "1", "--json-model-override-args",
      '{"num_hidden_layers": 4, "max_position_embeddings": 128000, '
      '"vision_config": {"depth": 4, "fullatt_block_indexes": [1, 3]}}']),
)


def main():
    failed = 0
    for title, model, tokenizer, prompts, words, flags in RUNS:
        if prompts == 0:
            continue
        print("== %s ==" % title, flush=True)
        with Server(["--enable-metrics", "--large-body-bytes", "32Mi", "--large-bodies", "1"] + flags,
                    model=model) as server:
            bench = [path("build/ashlar-bench"), "--port", str(server.port), "--pid", str(server.pid), "--tokenizer",
                     path(tokenizer), "--num-prompts", str(prompts), "--random-input-len", str(words),
                     "--settled-requests",
                     str(min(10, prompts // 2))] + BENCH
            failed += subprocess.run(bench).returncode != 0
            failed += server.stop() != 0
        print(flush=True)
    sys.exit(0 if failed == 0 else 1)


if __name__ == "__main__":
    main()
