"""The runs and the report of generate.sh."""
import argparse
import datetime
import json
import os
import resource
import statistics
import subprocess
import sys
import time

from train_side_by_side import LLAMA_CONFIG, LAYERS, VOCABULARY, WIDTH, load_average

PROMPT_TOKENS = 32
# What a decoding step reads: every matrix but the embedding.
WEIGHTS_A_STEP = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * 1024) + VOCABULARY * WIDTH


def make_model(folder, tokenizer):
    import torch
    import transformers
    torch.manual_seed(1)
    config = transformers.LlamaConfig(**{k: v for k, v in LLAMA_CONFIG.items() if k != "architectures"},
                                      bos_token_id=1, eos_token_id=None)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    with open(tokenizer, "rb") as source, open(os.path.join(folder, "tokenizer.model"), "wb") as target:
        target.write(source.read())


def make_prompts(tokenizer, text, count):
    """Texts of PROMPT_TOKENS tokens each, and their ids."""
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_file=tokenizer)
    words, prompts = open(text).read().split(), []
    while len(prompts) < count:
        taken = []
        while len(processor.encode(" ".join(taken))) < PROMPT_TOKENS:
            taken.append(words.pop(0))
        while len(processor.encode(" ".join(taken))) > PROMPT_TOKENS:
            taken[-1] = taken[-1][:-1]
        ids = processor.encode(" ".join(taken))
        if len(ids) == PROMPT_TOKENS:
            prompts.append((" ".join(taken), ids))
    return prompts


def peer(options):
    """One process of transformers: loads, generates once to warm up and once timed."""
    start = time.perf_counter()
    import torch
    import transformers
    torch.set_num_threads(os.cpu_count())
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    model = transformers.AutoModelForCausalLM.from_pretrained(options.folder, dtype=dtype).eval()
    ids = torch.tensor(json.load(open(options.prompts)))
    arguments = dict(attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=0)
    with torch.inference_mode():
        model.generate(ids, max_new_tokens=1, min_new_tokens=1, **arguments)
        first_token_s = time.perf_counter() - start
        model.generate(ids, max_new_tokens=8, **arguments)
        begin = time.perf_counter()
        out = model.generate(ids, max_new_tokens=options.tokens, min_new_tokens=options.tokens, **arguments)
        elapsed = time.perf_counter() - begin
    print(json.dumps({"tokens_per_s": out[:, ids.shape[1]:].numel() / elapsed,
                      "ids": out[:, ids.shape[1]:].tolist(), "first_token_s": first_token_s,
                      "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def run_peer(options, folder, prompts_file, precision):
    out = subprocess.run([sys.executable, __file__, "--peer", "--folder", folder, "--prompts", prompts_file,
                          "--precision", precision, "--tokens", str(options.tokens)],
                         check=True, capture_output=True, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def run_ours(options, folder, prompts, precision, batch):
    summary = os.path.join(options.scratch, "summary.json")

    def generate(tokens):
        lines = "".join(json.dumps({"prompt": text}) + "\n" for text, _ in prompts)
        start = time.perf_counter()
        out = subprocess.run(["generate", "--quiet", "--checkpoint", folder, "--batch", str(batch),
                              "--max-tokens", str(tokens), "--mixed-precision",
                              "bf16" if precision == "bf16" else "no", "--summary", summary],
                             check=True, capture_output=True, text=True, input=lines)
        return [json.loads(line) for line in out.stdout.splitlines()], time.perf_counter() - start

    first_token_s = generate(1)[1]
    samples, _ = generate(options.tokens)
    counts = json.load(open(summary))
    return {"tokens_per_s": counts["tokens_per_s"], "ids": [sample["ids"] for sample in samples],
            "first_token_s": first_token_s, "max_memory_bytes": counts["max_memory_bytes"]}


def bandwidth_bytes_per_s():
    """The best that gpu-probe reaches by reading memory, on all threads."""
    out = subprocess.run(["gpu-probe", "--json", "--device", "cpu", "--disk-size", "0"], check=True,
                         capture_output=True, text=True)
    return max(m["best"] for m in json.loads(out.stdout)["measured"] if m["what"] == "memory_read")


def same_prefix(first, second):
    equal = [next((i for i, (a, b) in enumerate(zip(x, y)) if a != b), len(x)) for x, y in zip(first, second)]
    return min(equal), sum(n == len(x) for n, x in zip(equal, first))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--prompts", help=argparse.SUPPRESS)
    parser.add_argument("--precision", help=argparse.SUPPRESS)
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    if options.peer:
        return peer(options)
    data = os.environ["TRAINWRIGHT_TEST_DATA"]
    tokenizer = os.path.join(data, "tokenizers", "mistral-v1.model")
    folder = os.path.join(options.scratch, "model")
    make_model(folder, tokenizer)
    all_prompts = make_prompts(tokenizer, os.path.join(data, "text", "tinyshakespeare.txt"), 16)
    memory = bandwidth_bytes_per_s()
    load_before = load_average()
    rows = []
    for precision in options.precisions.split(","):
        for batch in (int(b) for b in options.batches.split(",")):
            prompts = all_prompts[:batch]
            prompts_file = os.path.join(options.scratch, "prompts.json")
            json.dump([ids for _, ids in prompts], open(prompts_file, "w"))
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours.append(run_ours(options, folder, prompts, precision, batch))
                theirs.append(run_peer(options, folder, prompts_file, precision))
            ceiling = batch * memory / (WEIGHTS_A_STEP * (2 if precision == "bf16" else 4))
            rows.append((precision, batch, ours, theirs, ceiling))
    import torch
    import transformers
    lines = [f"# Generation beside transformers, {datetime.date.today()}", "",
             f"{os.cpu_count()} processors, PyTorch {torch.__version__}, transformers {transformers.__version__}; load "
             f"{load_before:.1f} before and {load_average():.1f} after; {options.rounds} interleaved rounds, medians "
             f"(lowest to highest). Greedy, prompts of {PROMPT_TOKENS} tokens, {options.tokens} new ones each; Llama "
             f"{LAYERS}x{WIDTH}, random weights, {WEIGHTS_A_STEP / 1e6:.1f} M of them read a step. Memory bandwidth "
             f"{memory / 1e9:.1f} GB/s, by gpu-probe just before.", "",
             "| precision | batch | tokens/s, ours | tokens/s, transformers | ratio | of the ceiling | peak memory, ours / "
             "theirs | first token after, ours / theirs | same tokens as transformers |",
             "|---|---|---|---|---|---|---|---|---|"]

    def spread(runs, key, scale=1.0, digits=0):
        values = sorted(run[key] * scale for run in runs)
        return f"{statistics.median(values):,.{digits}f} ({values[0]:,.{digits}f} to {values[-1]:,.{digits}f})"

    for precision, batch, ours, theirs, ceiling in rows:
        ratio = [a["tokens_per_s"] / b["tokens_per_s"] for a, b in zip(ours, theirs)]
        memory_ratio = statistics.median(a["max_memory_bytes"] / b["max_memory_bytes"] for a, b in zip(ours, theirs))
        shortest, whole = same_prefix(ours[0]["ids"], theirs[0]["ids"])
        lines.append(f"| {precision} | {batch} | {spread(ours, 'tokens_per_s')} | {spread(theirs, 'tokens_per_s')} | "
                     f"{statistics.median(ratio):.2f} | "
                     f"{statistics.median(run['tokens_per_s'] for run in ours) / ceiling:.0%} | {memory_ratio:.0%} | "
                     f"{spread(ours, 'first_token_s', 1, 2)} s / {spread(theirs, 'first_token_s', 1, 2)} s | "
                     f"{whole} of {batch} whole, the first {shortest} of all |")
    text = "\n".join(lines) + "\n"
    (open(options.out, "w") if options.out else sys.stdout).write(text)


if __name__ == "__main__":
    main()
