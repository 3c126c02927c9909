"""The runs of grit_speed.sh, by the protocol of protocol.py.

`train` starts anew in each round; its peers stay alive and take the same steps again. Work is useful tokens: those of texts.
"""
import argparse
import json
import pathlib
import shutil
import sys

import grit_data
import grit_order
import grit_speed_report
import protocol
from grit_speed_report import UNTIMED_STEPS
from protocol import Comparison, Contestant, Worker
from train_runs import figures_of, records_of, run, version_of

HERE = pathlib.Path(__file__).resolve().parent
SHAPE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": 258,
         "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
         "bos_token_id": 256, "eos_token_id": 257}
MODELS = {
    "llama-1m": {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 5, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "head_dim": 32},
    "6x384": {"hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 6,
              "num_key_value_heads": 6, "head_dim": 64},
}
# So that a round of one model, precision and kind of lengths takes a few minutes on two processors.
DEFAULTS = {"llama-1m": {"steps": 5, "batch": 16, "accum": 4}, "6x384": {"steps": 4, "batch": 8, "accum": 2}}
# Words of a text and how the logarithms of their numbers spread; the limits in tokens, which are bytes.
LENGTHS = {
    "unlike": {"words": {"query_words": 5, "passage_words": 14, "spread": 0.9, "most_words": 120},
               "limits": {"query": 256, "passage": 768}},
    # Long enough that every text is cut at its limit.
    "equal": {"words": {"query_words": 40, "passage_words": 90, "spread": 0.0, "most_words": 120},
              "limits": {"query": 64, "passage": 256}},
}
# Each with the options of torch_grit_loop.py; train has none.
CONTESTANTS = {"train": None,
               **{name: ["--loop", "st", *(["--compile", mode] if mode else [])]
                  for name, mode in zip(grit_speed_report.LIBRARY, protocol.TORCH_MODES.values())},
               **{name + order: [*(["--compile", mode] if mode else []), *flags] for name, mode in protocol.TORCH_MODES.items()
                  for order, flags in (("", []), ("-sorted", ["--sorted"]))}}
PACKAGES = ("torch", "transformers", "sentence-transformers")


class Contest:
    """One model on texts of one kind of lengths, in one precision."""

    def __init__(self, options, model, lengths, precision):
        self.options = options
        self.settings = {"model": model, "lengths": lengths, "precision": precision, "attention": options.attention,
                         **{name: getattr(options, name) or default for name, default in DEFAULTS[model].items()}}
        self.threads = options.threads
        self.limits = LENGTHS[lengths]["limits"]
        self.folder = None

    @property
    def name(self):
        return ", ".join(self.settings[key] for key in ("model", "lengths", "precision")) + f", threads {self.threads}"

    def contestants(self):
        """Of those asked for; of equal lengths the order says nothing."""
        return [name for name in self.options.contestants.split(",")
                if self.settings["lengths"] != "equal" or not name.endswith("-sorted")]

    def prepare(self):
        """Makes the shards, the first weights, and the records in the order in which train takes them."""
        settings = self.settings
        self.folder = pathlib.Path(self.options.scratch) / self.name.replace(", ", "-").replace(" ", "-")
        self.folder.mkdir()
        count = settings["batch"] * settings["accum"] * settings["steps"]
        records = list(grit_data.contrastive_records(count, 1, instructed=False, **LENGTHS[settings["lengths"]]["words"]))
        grit_data.write_records(self.folder / "stored.jsonl", records)
        run("pretokenize", "-q", "--tokenizer", "bytes", "--records", "contrastive", "--template", "grit",
             self.folder / "stored.jsonl", "-o", self.folder / "records.tokens")
        run("pack", "-q", self.folder / "records.tokens", "-o", self.folder / "shards")
        (self.folder / "config.json").write_text(json.dumps({**SHAPE, **MODELS[settings["model"]]}))
        self.train("initial", "--model", self.folder / "config.json", "--steps", 1, "--lr", 0)
        plan = next(record["plan"] for record in records_of(self.folder / "initial") if record["type"] == "run_begin")
        grit_data.write_records(self.folder / "records.jsonl",
                                grit_order.in_order(records, self.folder / "shards", plan, count))

    def train(self, name, *more):
        settings = self.settings
        run("train", "--quiet", "--objective", "grit", "--mode", "embedding", "--data", self.folder / "shards",
            "--batch", settings["batch"], "--accum", settings["accum"], "--threads", self.threads,
            "--seed", 1, "--save-every", 0, "--log-every", 1, "--schedule", "constant", "--warmup", 0, "--weight-decay", "0.01",
            "--beta1", "0.9", "--beta2", "0.95", "--clip", 1, "--group-size", 2, "--temperature", "0.02",
            "--query-max-len", self.limits["query"], "--passage-max-len", self.limits["passage"],
            "--attn", "bbcc" if settings["attention"] == "bb" else "cccc",
            "--mixed-precision", "no" if settings["precision"] == "fp32" else "bf16",
            *more, "--out", self.folder / name)

    def ours(self):
        self.train("run", "--init", self.folder / "initial/latest", "--steps", self.settings["steps"], "--lr", "1e-4")
        records = records_of(self.folder / "run")
        shutil.rmtree(self.folder / "run")
        return protocol.timed_steps(figures_of(records), UNTIMED_STEPS)

    def worker(self, flags):
        settings = self.settings
        if "--compile" in flags and settings["lengths"] == "equal":
            flags = [*flags, "--few-shapes"]
        return Worker([sys.executable, HERE / "torch_grit_loop.py", "--init", self.folder / "initial/latest",
                       "--records", self.folder / "records.jsonl", "--batch", settings["batch"], "--accum", settings["accum"],
                       "--threads", self.threads, "--attention", settings["attention"], "--precision", settings["precision"],
                       "--query-max-len", self.limits["query"], "--passage-max-len", self.limits["passage"], *flags],
                      longest_s=self.options.longest_answer)

    def compare(self, record):
        """Runs all rounds; returns what differs of the first steps."""
        self.prepare()
        steps, first_steps, contestants, workers = self.settings["steps"], {}, [], []
        for name in self.contestants():
            if name == "train":
                contestants.insert(0, Contestant(grit_speed_report.NAMES["train"], self.ours))
                continue
            worker = self.worker(CONTESTANTS[name])
            workers.append(worker)

            def warm(worker=worker, name=name):
                first_steps[name] = worker.ask(first=0, steps=UNTIMED_STEPS)
                if CONTESTANTS[name] != []:  # the shapes of the other steps are compiled before a round, too
                    worker.ask(first=UNTIMED_STEPS, steps=steps - UNTIMED_STEPS)

            contestants.append(Contestant(grit_speed_report.NAMES[name], lambda worker=worker: worker.sample(
                first=UNTIMED_STEPS, steps=steps - UNTIMED_STEPS), peer=grit_speed_report.PEERS[name], prepare=warm))
        try:
            results = record.run(Comparison(self.name, "useful tokens", contestants, threads=self.threads, settings=self.settings,
                                            **protocol.how(self.options)))
        finally:
            for worker in workers:
                worker.close()
        if first_steps:
            record.extra.setdefault("first_losses", {})[self.name] = {name: told["losses_nats"][0] for name, told in first_steps.items()}
        return results


def ratios_in(text):
    """{"fp32": 1.3} of fp32=1.3."""
    ratios = {precision: float(ratio) for precision, _, ratio in (part.partition("=") for part in text.split(","))}
    if not set(ratios) <= {"fp32", "bf16"}:
        raise ValueError(text)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--accum", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--lengths", default=",".join(LENGTHS))
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    parser.add_argument("--attention", choices=["bb", "cc"], default="bb")
    parser.add_argument("--plain-ratio", type=ratios_in, default={})
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    if options.steps is not None and options.steps <= UNTIMED_STEPS:
        parser.error(f"--steps must be above {UNTIMED_STEPS}")
    for given, known in ((options.models, MODELS), (options.lengths, LENGTHS), (options.contestants, CONTESTANTS)):
        if unknown := set(given.split(",")) - set(known):
            parser.error(f"unknown {', '.join(unknown)}: one of {', '.join(known)}")
    contests = [Contest(options, model, lengths, precision) for model in options.models.split(",")
                for lengths in options.lengths.split(",") for precision in options.precisions.split(",")]
    record = protocol.Record(options.out, "Training embeddings beside PyTorch and sentence-transformers", "scripts/compare/grit_speed.sh",
                             notes=f"{', '.join(map(version_of, PACKAGES))}. {grit_speed_report.NOTES}")
    record.after = lambda written: grit_speed_report.text(written, options.plain_ratio)
    for contest in contests:
        contest.compare(record)
        record.write()
    failures = grit_speed_report.differences(record)
    for line in failures:
        print(line, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
