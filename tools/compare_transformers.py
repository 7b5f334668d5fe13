#!/usr/bin/env python3
"""compare_transformers: one picture question end to end, ashlar beside Hugging Face transformers, alternating.

Both load the same folder, use the same threads and bf16, and answer the same question about the same picture greedily.
Prints every pair, the medians, the ratio pair by pair and the peak resident memory of each process.
Needs: build/ashlar, and `pip install torch torchvision transformers pillow` (outside CI).

    tools/compare_transformers.py --model-path demo/model --picture demo/samples/shapes.png --question "What is shown?"
"""
import argparse, base64, http.client, json, mimetypes, os, socket, statistics, subprocess, sys, time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def peak_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))


class Ashlar:
    """build/ashlar as a server of its own; ask() is one streamed-off chat request over loopback."""

    def __init__(self, args):
        self.port = free_port()
        command = ["build/ashlar", "serve", "--model-path", args.model_path, "--port", str(self.port), "--threads",
                   str(args.threads), "--disable-radix-cache"] + args.server_flags.split()
        env = dict(os.environ, SGLANG_VLM_CACHE_SIZE_MB="0")
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=env)
        for line in self.process.stderr:
            if "ready to roll" in line:
                break
        else:
            sys.exit("ashlar did not start")
        kind = mimetypes.guess_type(args.picture)[0]
        with open(args.picture, "rb") as f:
            url = f"data:{kind};base64," + base64.b64encode(f.read()).decode()
        self.body = json.dumps({"temperature": 0, "max_tokens": args.max_tokens, "ignore_eos": args.ignore_eos,
                                "messages": [{"role": "user", "content": [
                                    {"type": "image_url", "image_url": {"url": url}},
                                    {"type": "text", "text": args.question}]}]})

    def ask(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", "/v1/chat/completions", self.body, {"Content-Type": "application/json"})
        answer = json.load(connection.getresponse())
        connection.close()
        return answer["choices"][0]["message"]["content"], answer["usage"]

    def close(self):
        peak = peak_kib(self.process.pid)
        self.process.terminate()
        self.process.wait(60)
        return peak


PEER = r"""
import json, resource, sys, time
import torch
from PIL import Image
from transformers import AutoProcessor, AutoConfig, Qwen2_5_VLForConditionalGeneration
a = json.loads(sys.argv[1])
torch.set_num_threads(a["threads"])
if a["dummy"]:
    config = AutoConfig.from_pretrained(a["model_path"])
    config.text_config.num_hidden_layers = a["dummy"]; config.vision_config.depth = a["dummy"]
    config.text_config.layer_types = config.text_config.layer_types[:a["dummy"]]
    torch.set_default_dtype(torch.bfloat16)
    model = Qwen2_5_VLForConditionalGeneration(config)
else:
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(a["model_path"], dtype=torch.bfloat16)
model.eval()
processor = AutoProcessor.from_pretrained(a["processor_path"])
content = [{"type": "image"}, {"type": "text", "text": a["question"]}]
def ask():
    with open(a["picture"], "rb") as f:
        picture = Image.open(f).convert("RGB")
    text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    inputs = processor(text=[text], images=[picture], return_tensors="pt")
    length = inputs["input_ids"].shape[1]
    extra = {"min_new_tokens": a["max_tokens"]} if a["ignore_eos"] else {}
    with torch.inference_mode():
        out = model.generate(**inputs, do_sample=False, max_new_tokens=a["max_tokens"], **extra)
    ids = out[0, length:]
    return processor.tokenizer.decode(ids, skip_special_tokens=True), length, len(ids)
print("ready", flush=True)
for line in sys.stdin:
    t = time.perf_counter(); answer, prompt, generated = ask(); t = time.perf_counter() - t
    print(json.dumps({"seconds": t, "answer": answer, "prompt": prompt, "generated": generated,
                      "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)
"""


class Transformers:
    def __init__(self, args):
        wanted = {k: getattr(args, k) for k in ("model_path", "picture", "question", "threads", "max_tokens", "dummy",
                                                "ignore_eos")}
        wanted["processor_path"] = args.processor_path or args.model_path
        self.process = subprocess.Popen([args.python, "-c", PEER, json.dumps(wanted)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        while "ready" not in self.process.stdout.readline():
            if self.process.poll() is not None:
                sys.exit("transformers did not start")

    def ask(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model-path", required=True)
    p.add_argument("--processor-path", help="folder of the peer's processor, if not the model's")
    p.add_argument("--picture", required=True)
    p.add_argument("--question", required=True)
    p.add_argument("--max-tokens", type=int, default=64)
    p.add_argument("--ignore-eos", action="store_true", help="both generate exactly --max-tokens tokens")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--pairs", type=int, default=7)
    p.add_argument("--dummy", type=int, default=0, help="random weights with this depth (both towers)")
    p.add_argument("--server-flags", default="", help="more flags for ashlar")
    p.add_argument("--python", default=sys.executable, help="interpreter that has torch and transformers")
    args = p.parse_args()

    ours, peer = Ashlar(args), Transformers(args)
    ours.ask(), peer.ask()  # warm
    rows, peak = [], 0
    for i in range(args.pairs):
        start = time.perf_counter()
        text, usage = ours.ask()
        a = time.perf_counter() - start
        got = peer.ask()
        peak = got["peak_kib"]
        rows.append((a, got["seconds"]))
        print(f"pair {i + 1}: ashlar {a:.4f} s, transformers {got['seconds']:.4f} s, ratio {got['seconds'] / a:.2f}, "
              f"tokens {usage['prompt_tokens']}+{usage['completion_tokens']} / {got['prompt']}+{got['generated']}, "
              f"same answer: {text == got['answer']}")
    ours_peak = ours.close()
    peer.close()
    ratios = [b / a for a, b in rows]
    print(f"median: ashlar {statistics.median(a for a, _ in rows):.4f} s, transformers "
          f"{statistics.median(b for _, b in rows):.4f} s, ratio {statistics.median(ratios):.2f} "
          f"({min(ratios):.2f} .. {max(ratios):.2f})")
    print(f"peak memory: ashlar {ours_peak / 1024:.0f} MiB, transformers {peak / 1024:.0f} MiB, "
          f"share {ours_peak / peak:.3f}")


if __name__ == "__main__":
    main()
