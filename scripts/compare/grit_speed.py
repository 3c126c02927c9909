"""The runs and the report of grit_speed.sh."""
import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import grit_data

HERE = pathlib.Path(__file__).resolve().parent
UNTIMED_STEPS = 2
# Of training, over eager PyTorch: what is promised where padding is half or more of what is computed, and where lengths are
# equal (as of plain training), by precision; and of peak memory.
LEAST_RATIO = {"unlike": {"fp32": 2.5, "bf16": 2.5}, "equal": {"fp32": 1.05, "bf16": 1.1}}
MOST_MEMORY = 0.5
SHAPE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": 258,
         "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
         "bos_token_id": 256, "eos_token_id": 257}
MODELS = {
    "llama-1m": {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 5, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "head_dim": 32},
    "6x384": {"hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 6,
              "num_key_value_heads": 6, "head_dim": 64},
}
# Words of a text and how the logarithms of their numbers spread; the limits in tokens, which are bytes.
LENGTHS = {
    "unlike": {"words": {"query_words": 5, "passage_words": 14, "spread": 0.9, "most_words": 120},
               "limits": {"query": 256, "passage": 768}},
    # Long enough that every text is cut at its limit.
    "equal": {"words": {"query_words": 40, "passage_words": 90, "spread": 0.0, "most_words": 120},
              "limits": {"query": 64, "passage": 256}},
}


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-3000:]}")
    return done.stdout


class Contest:
    """One model on texts of one kind of lengths, in one precision."""

    def __init__(self, options, model, lengths, precision):
        self.options, self.precision, self.limits = options, precision, LENGTHS[lengths]["limits"]
        self.least_ratio = LEAST_RATIO[lengths][precision]
        self.compiling = ["--compile", "--few-shapes"] if lengths == "equal" else ["--compile"]
        self.sorts = lengths != "equal"  # of equal lengths the order says nothing
        self.name = f"{model}, {lengths} lengths, {precision}"
        self.folder = pathlib.Path(options.scratch) / f"{model}-{lengths}-{precision}"
        self.folder.mkdir()
        self.records = self.folder / "records.jsonl"
        count = options.batch * options.accum * 4
        grit_data.write_records(self.records,
                                grit_data.contrastive_records(count, 1, instructed=False, **LENGTHS[lengths]["words"]))
        run(["pretokenize", "-q", "--tokenizer", "bytes", "--records", "contrastive", "--template", "grit", self.records,
             "-o", self.folder / "records.tokens"])
        run(["pack", "-q", self.folder / "records.tokens", "-o", self.folder / "shards"])
        config = self.folder / "config.json"
        config.write_text(json.dumps({**SHAPE, **MODELS[model]}))
        self.train = ["train", "--quiet", "--objective", "grit", "--mode", "embedding", "--data", self.folder / "shards",
                      "--batch", options.batch, "--accum", options.accum, "--threads", options.threads,
                      "--save-every", 0, "--log-every", 1, "--schedule", "constant",
                      "--warmup", 0, "--lr", "1e-4", "--weight-decay", "0.01", "--clip", 1,
                      "--query-max-len", self.limits["query"], "--passage-max-len", self.limits["passage"],
                      "--attn", "bbcc" if options.attention == "bb" else "cccc",
                      "--mixed-precision", "no" if precision == "fp32" else "bf16"]
        run([*self.train, "--model", config, "--steps", 1, "--lr", 0, "--out", self.folder / "initial"])
        self.initial = self.folder / "initial/latest"
        self.results = {}

    def ours(self):
        out = self.folder / "run"
        run([*self.train, "--init", self.initial, "--steps", self.options.steps, "--out", out])
        records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        shutil.rmtree(out)
        steps = [record for record in records if record["type"] == "step"]
        return {"losses_nats": [step["loss_nats"] for step in steps],
                "step_times_s": [step["step_time_s"] for step in steps], "tokens": [step["tokens"] for step in steps],
                "padded_tokens": [step.get("tokens_if_padded", step["tokens"]) for step in steps],
                "max_memory_bytes": steps[-1]["max_memory_bytes"]}

    def torch(self, *flags):
        out = run([sys.executable, HERE / "torch_grit_loop.py", "--init", self.initial, "--records", self.records, "--steps",
                   self.options.steps, "--batch", self.options.batch, "--accum", self.options.accum, "--threads",
                   self.options.threads, "--attention", self.options.attention,
                   "--precision", self.precision, "--query-max-len", self.limits["query"], "--passage-max-len",
                   self.limits["passage"], *flags])
        return json.loads(out.splitlines()[-1])

    def contestants(self):
        peers = {"PyTorch eager, padded": []}
        if self.options.compile:
            peers["torch.compile, padded"] = self.compiling
        if self.sorts:
            peers |= {name.replace("padded", "sorted"): [*flags, "--sorted"] for name, flags in peers.items()}
        if self.options.st:
            peers |= {"sentence-transformers": ["--loop", "st"]}
        return {"train": self.ours, **{name: lambda flags=flags: self.torch(*flags) for name, flags in peers.items()}}

    def round(self):
        for name, contestant in self.contestants().items():
            before = os.getloadavg()[0]
            result = contestant()
            result["load"] = (before, os.getloadavg()[0])
            self.results.setdefault(name, []).append(result)
            print(f"{self.name}, {name}: {speed(result):.0f} tokens/s", file=sys.stderr, flush=True)

    def report(self):
        ours = self.results["train"]
        lines = [f"\n## {self.name}\n",
                 "| contestant | useful tokens/s, each round | train is faster, round by round | computed a useful token | "
                 "peak memory MB | train takes of it | load 1 min |", "|---|---|---|---|---|---|---|"]
        for name, results in self.results.items():
            ratios = [speed(own) / speed(theirs) for own, theirs in zip(ours, results)]
            memory = statistics.median(result["max_memory_bytes"] for result in results)
            share = statistics.median(own["max_memory_bytes"] / theirs["max_memory_bytes"]
                                      for own, theirs in zip(ours, results))
            padding = sum(results[0]["padded_tokens"]) / sum(results[0]["tokens"])
            loads = [load for result in results for load in result["load"]]
            lines.append(f"| {name} | {' '.join(f'{speed(result):.0f}' for result in results)} | "
                         f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
                         f"{'1' if name == 'train' else f'{padding:.2f}'} | {memory / 1e6:.0f} | {share:.0%} | "
                         f"{min(loads):.1f} to {max(loads):.1f} |")
        least = min(speed(own) / speed(theirs) for name, results in self.results.items() if name != "train"
                    for own, theirs in zip(ours, results))
        share = max(own["max_memory_bytes"] / theirs["max_memory_bytes"] for name, results in self.results.items()
                    if name != "train" for own, theirs in zip(ours, results))
        lines.append(f"\nOf all peers and rounds, train is {least:.2f} times as fast or more (goal {self.least_ratio}: "
                     f"{'met' if least >= self.least_ratio else 'not met'}) and takes {share:.0%} of the memory or less "
                     f"(goal {MOST_MEMORY:.0%}: {'met' if share <= MOST_MEMORY else 'not met'}).")
        told = sum(ours[0]["padded_tokens"]) / sum(ours[0]["tokens"])
        lines.append(f"\ntrain packs texts without padding; it tells that padding each micro-batch would compute {told:.2f} "
                     f"tokens for a useful one. Loss of the first step: "
                     + ", ".join(f"{name} {results[0]['losses_nats'][0]:.4f}" for name, results in self.results.items())
                     + " (on other queries).")
        return "\n".join(lines)


def speed(result):
    """Useful tokens a second: the median over the timed steps."""
    timed = list(zip(result["tokens"], result["step_times_s"]))[UNTIMED_STEPS:]
    return statistics.median(tokens / step_time_s for tokens, step_time_s in timed)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")


def version(package):
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--accum", type=int, default=8)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--models", default="llama-1m,6x384")
    parser.add_argument("--lengths", default="unlike,equal")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--attention", choices=["bb", "cc"], default="bb")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--no-sentence-transformers", dest="st", action="store_false")
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    if options.steps <= UNTIMED_STEPS:
        parser.error(f"--steps must be above {UNTIMED_STEPS}")
    contests = [Contest(options, model, lengths, precision) for model in options.models.split(",")
                for lengths in options.lengths.split(",") for precision in options.precisions.split(",")]
    for number in range(options.rounds):
        for contest in contests:
            contest.round()
        if options.out:  # so that an interrupted comparison leaves the rounds that it has
            pathlib.Path(options.out).write_text(report(options, contests, number + 1))
    if not options.out:
        print(report(options, contests, options.rounds), end="")


def report(options, contests, rounds):
    peers = ", ".join(map(version, ("torch", "transformers", "sentence-transformers")))
    return "\n".join([
        f"# Training embeddings beside PyTorch and sentence-transformers, {datetime.date.today()}\n",
        f"scripts/compare/grit_speed.sh: {os.cpu_count()} processors of an {processor()}, {options.threads} threads on both "
        f"sides; {peers}. {options.batch} queries x {options.accum} micro-batches a step with a positive and a negative each, "
        f"attention {options.attention}, {options.steps} steps of which {UNTIMED_STEPS} are not timed; {rounds} rounds in "
        f"which the contestants take turns; ratios are medians of rounds, with the least and the greatest. Useful tokens "
        f"are those of texts, padding is none."] + [contest.report() for contest in contests]) + "\n"


if __name__ == "__main__":
    main()
