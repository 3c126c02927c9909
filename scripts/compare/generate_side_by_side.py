"""The runs and the report of generate.sh, by the protocol of protocol.py.

Timed is decoding: what --tokens + 1 tokens take longer than one, of both sides, so that neither start-up nor the reading of
the prompts is in it. In fp32 all tokens of both sides have to be the same; in bf16, where the best two logits of random
weights are often within a rounding, those of fewer than half of the prompts may part at the first token. transformers stays
alive between rounds; its compiled modes have a static cache of keys and values.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import protocol
from protocol import Comparison, Contestant, Worker
from train_runs import version_of
from train_side_by_side import LLAMA_CONFIG, LAYERS, VOCABULARY, WIDTH

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
    """A Worker's other end: generates as many tokens of each prompt as it is asked for, less one."""
    import torch
    import transformers
    torch.set_num_threads(options.peer_threads)
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    model = transformers.AutoModelForCausalLM.from_pretrained(options.folder, dtype=dtype).eval()
    ids = torch.tensor(json.load(open(options.prompts)))
    arguments = dict(attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=0)
    if options.compile:
        model.forward = torch.compile(model.forward, mode=options.compile)
        arguments["cache_implementation"] = "static"
    first_unix_s = None

    def generate(tokens):
        with torch.inference_mode():
            return model.generate(ids, max_new_tokens=tokens, min_new_tokens=tokens, **arguments)[:, ids.shape[1]:]

    def work(tokens):
        nonlocal first_unix_s
        _, first = protocol.timed(lambda: generate(1))
        first_unix_s = first_unix_s or time.time()
        out, took = protocol.timed(lambda: generate(tokens + 1))
        share = min(one["cpu_s"] / one["wall_s"] for one in (first, took))
        return {"work": tokens * len(ids), **{name: took[name] - first[name] for name in took}, "cpu_share": share, "ids": out.tolist(),
                "first_token_unix_s": first_unix_s, "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}

    protocol.serve(work)


def run_ours(options, folder, prompts, precision, threads):
    summary = os.path.join(options.scratch, "summary.json")
    lines = "".join(json.dumps({"prompt": text}) + "\n" for text, _ in prompts)

    def generate(tokens):
        return protocol.run_command(["generate", "--quiet", "--checkpoint", folder, "--batch", len(prompts), "--max-tokens", tokens,
                                     "--threads", threads, "--mixed-precision", "bf16" if precision == "bf16" else "no", "--summary",
                                     summary], stdin=lines)

    first, whole = generate(1), generate(options.tokens + 1)
    return whole.sample(options.tokens * len(prompts), first, first_token_s=first.wall_s,
                        ids=[json.loads(line)["ids"] for line in whole.stdout.splitlines()])


def bandwidth_bytes_per_s():
    """The best that gpu-probe reaches by reading memory, on all threads."""
    out = subprocess.run(["gpu-probe", "--json", "--device", "cpu", "--disk-size", "0"], check=True,
                         capture_output=True, text=True)
    return max(m["best"] for m in json.loads(out.stdout)["measured"] if m["what"] == "memory_read")


def compare(options, record, folder, all_prompts, precision, batch, threads):
    prompts, workers, first_token_s, contestants = all_prompts[:batch], [], {}, []
    prompts_file = os.path.join(options.scratch, f"prompts-{batch}.json")
    with open(prompts_file, "w") as file:
        json.dump([ids for _, ids in prompts], file)
    contestants.append(Contestant("generate", lambda: run_ours(options, folder, prompts, precision, threads)))
    for name, mode in protocol.torch_modes(options).items():
        worker = Worker([sys.executable, __file__, "--peer", "--folder", folder, "--prompts", prompts_file, "--precision", precision,
                         "--peer-threads", threads, *(["--compile", mode] if mode else []), "unused"],
                        longest_s=options.longest_answer)
        workers.append(worker)

        def warm(worker=worker, name=name):
            told = worker.ask(tokens=options.tokens)
            first_token_s[f"transformers, {name}"] = told["first_token_unix_s"] - worker.started_unix_s

        contestants.append(Contestant(f"transformers, {name}", lambda worker=worker: worker.sample(tokens=options.tokens),
                                      peer="transformers", prepare=warm))
    name = f"{precision}, batch {batch}, threads {threads}"
    try:
        results = record.run(Comparison(name, "tokens", contestants, threads=threads, settings={"tokens": options.tokens},
                                        **protocol.how(options)))
    finally:
        for worker in workers:
            worker.close()
    if first_token_s:
        record.extra.setdefault("first_token_s", {})[name] = first_token_s
    for one in results.state["tries"]:  # one of each is enough to compare
        for of_contestant in one["samples"].values():
            if one is not results.rounds[0]:
                of_contestant[""].pop("ids", None)
    record.write()


def compare_precisions(options, record, folder, prompts, threads):
    """Ours in bf16 beside ours in fp32."""
    contestants = [Contestant(f"generate, {precision}", lambda precision=precision: run_ours(options, folder, prompts, precision, threads))
                   for precision in ("bf16", "fp32")]
    record.run(Comparison(f"bf16 beside fp32, batch {len(prompts)}, threads {threads}", "tokens", contestants, threads=threads,
                          settings={"tokens": options.tokens}, **protocol.how(options)))


def same_prefix(first, second):
    equal = [next((i for i, (a, b) in enumerate(zip(x, y)) if a != b), len(x)) for x, y in zip(first, second)]
    return min(equal), sum(n == len(x) for n, x in zip(equal, first))


def differences(record):
    """What should be equal and is not."""
    found = []
    for state in record.states:
        if "beside" in state["name"]:
            continue
        results = protocol.Results(state)
        samples = {name: next(iter(results.samples(name, "").values())) for name in results.contestants("")}
        own = samples.get(state["ours"], {}).get("ids")
        for name, sample in samples.items():
            theirs = sample.get("ids")
            if own is None or theirs is None or name == state["ours"]:
                continue
            alike = [a == b if state["name"].startswith("fp32") else a[:1] == b[:1] for a, b in zip(own, theirs, strict=True)]
            if sum(alike) < len(alike) if state["name"].startswith("fp32") else 2 * sum(alike) <= len(alike):
                found.append(f"{state['name']}: {name} has the same tokens for {sum(alike)} of {len(alike)} prompts")
    return found


def extra_text(record):
    """Markdown of memory, start, tokens and the ceiling."""
    bandwidth = record.extra.get("bandwidth_bytes_per_s")
    lines = ["", "## Memory, start, tokens", "",
             f"The ceiling is the time to read all weights but the embedding, {WEIGHTS_A_STEP / 1e6:.1f} M, once a step at the "
             f"{bandwidth / 1e9:.1f} GB/s that gpu-probe reached with all processors.", "",
             "| | contestant | peak memory MB | first token after, s | of the ceiling | same tokens as generate |", "|---|---|---:|---:|---:|---|"]
    for state in record.states:
        if "beside" in state["name"]:
            continue
        results, threads = protocol.Results(state), state["settings"]["threads"]
        precision, batch = state["name"].split(", ")[0], int(state["name"].split(", ")[1].split(" ")[1])
        ceiling = batch * bandwidth / (WEIGHTS_A_STEP * (2 if precision == "bf16" else 4))
        for name in results.contestants(""):
            samples = list(results.samples(name, "").values())
            first = (statistics.median(sample["first_token_s"] for sample in samples) if name == "generate" else
                     record.extra.get("first_token_s", {}).get(state["name"], {}).get(name))
            share = statistics.median(sample["work"] / max(sample["wall_s"], protocol.LEAST_TIME_S) for sample in samples) / ceiling
            shortest, whole = same_prefix(next(iter(results.samples("generate", "").values()))["ids"], samples[0]["ids"])
            lines.append(f"| {state['name']} | {name} | {max(sample['max_memory_bytes'] for sample in samples) / 1e6:.0f} | "
                         f"{'' if first is None else f'{first:.2f}'} | {f'{share:.0%}' if threads == os.cpu_count() else ''} | "
                         f"{whole} of {batch} whole, the first {shortest} of all |")
    lines += ["", *[f"**Not the same work:** {line}." for line in differences(record)]]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    for name in ("--folder", "--prompts", "--precision", "--compile"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--peer-threads", type=int, help=argparse.SUPPRESS)
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    if options.peer:
        return peer(options)
    data = os.environ["TRAINWRIGHT_TEST_DATA"]
    tokenizer = os.path.join(data, "tokenizers", "mistral-v1.model")
    folder = os.path.join(options.scratch, "model")
    subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import generate_side_by_side as g; "
                    "g.make_model(*sys.argv[2:])", os.path.dirname(os.path.abspath(__file__)), folder, tokenizer], check=True)
    all_prompts = make_prompts(tokenizer, os.path.join(data, "text", "tinyshakespeare.txt"), 16)
    record = protocol.Record(options.out, "Generation beside transformers", "scripts/compare/generate.sh", notes=(
        f"{version_of('torch')}, {version_of('transformers')}. Greedy, prompts of {PROMPT_TOKENS} tokens, {options.tokens} timed ones "
        f"each; Llama {LAYERS}x{WIDTH}, random weights. What is timed is said in generate_side_by_side.py."))
    record.extra.setdefault("bandwidth_bytes_per_s", bandwidth_bytes_per_s())
    record.after = extra_text
    for threads in map(int, options.threads.split(",")):
        for precision in options.precisions.split(","):
            for batch in map(int, options.batches.split(",")):
                compare(options, record, folder, all_prompts, precision, batch, threads)
        if {"fp32", "bf16"} <= set(options.precisions.split(",")):
            for batch in map(int, options.batches.split(",")):
                compare_precisions(options, record, folder, all_prompts[:batch], threads)
    return protocol.exit_status(differences(record))


if __name__ == "__main__":
    sys.exit(main())
