"""The runs of ten.sh, by the protocol of protocol.py.

`train` starts anew in each round; its peers stay alive and go on with the steps that follow. Work is tokens. Of the scan alone, the
kernels' rows of kernel_speed, forward and backward, are as though they were steps.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys

import protocol
import ten_report
from protocol import TORCH_MODES, Comparison, Contestant, Sample, Worker
from ten_models import MODELS, long_shards, write_config
from train_runs import figures_of, records_of, run, version_of

HERE = pathlib.Path(__file__).resolve().parent
STEP_TOKENS = 32768
PACKAGES = ("torch", "transformers")
# Of a whole step and, "scan", of a scan alone, forward and backward.
CONTESTANTS = tuple(ten_report.NAMES)
# Of those that begin from given weights: the model.
STARTS = {"train": "ten", **{name: "ten" for name in TORCH_MODES}, "llama": "llama", **{f"llama-{name}": "llama" for name in TORCH_MODES}}


class Contest:
    """One model on samples of one length; a step has as many tokens whatever the length."""

    def __init__(self, options, model, tokens):
        self.options = options
        self.settings = {"model": model, "tokens": tokens, "batch": STEP_TOKENS // tokens, "steps": options.steps}
        self.threads = options.threads
        self.folder, self.shards = None, None

    @property
    def name(self):
        return f"{self.settings['model']}, {self.settings['tokens']} tokens, threads {self.threads}"

    @property
    def shape(self):
        return MODELS[self.settings["model"]]

    def prepare(self):
        """Shards, configurations, and the samples in the order in which train takes them."""
        self.folder = pathlib.Path(self.options.scratch) / f"{self.settings['model']}-{self.settings['tokens']}"
        self.folder.mkdir()
        for kind in ("ten", "llama"):
            write_config(self.folder / f"{kind}.json", self.shape[kind])
        write_config(self.folder / "mamba2.json", self.shape["mamba2"])
        self.shards = long_shards(self.folder, self.settings["tokens"], self.settings["batch"] * max(8, self.settings["steps"]))
        (self.folder / "chunks.jsonl").write_text(run("pack", "--cat", "--json", self.shards))

    def initial(self, kind):
        """The first weights of a model, made once; they do not depend on the samples, which are short here."""
        out = self.folder / f"initial-{kind}"
        if not out.exists():
            self.train(out.name, ("--model", self.folder / f"{kind}.json"), "--seq", min(512, self.settings["tokens"]),
                       "--batch", 1, "--steps", 1, "--lr", 0)
        return out / "latest"

    def train(self, name, start, *more):
        run("train", "--quiet", "--data", self.shards, *start, "--seq", self.settings["tokens"], "--batch",
            self.settings["batch"], "--accum", 1, "--threads", self.threads, "--seed", 1, "--save-every", 0,
            "--log-every", 1, "--schedule", "constant", "--warmup", 0, "--weight-decay", "0.01", "--beta1", "0.9", "--beta2",
            "0.95", "--clip", 1, "--mixed-precision", "no", *more, "--out", self.folder / name)

    def ours(self, kind):
        self.train("run", ("--init", self.initial(kind)), "--steps", self.settings["steps"], "--lr", "1e-4")
        records = records_of(self.folder / "run")
        shutil.rmtree(self.folder / "run")
        return protocol.timed_steps(figures_of(records) | {
            "parameters": next(record["parameters"] for record in records if "parameters" in record)}, ten_report.UNTIMED_STEPS)

    def worker(self, what, mode):
        settings = self.settings
        start = ("--init", self.initial(what)) if what in STARTS.values() else ()
        return Worker([sys.executable, HERE / "torch_ten_loop.py", "--what", what, *start, "--shape", self.folder / "mamba2.json",
                       "--chunks", self.folder / "chunks.jsonl", "--seq", settings["tokens"], "--batch", settings["batch"],
                       "--threads", self.threads, "--channels", self.shape["ten"]["num_eigenstates"],
                       *(["--compile", mode] if mode else [])],
                      longest_s=self.options.longest_answer)

    def scan(self):
        """The kernels' rows of kernel_speed, forward and backward."""
        summary = self.folder / "kernels.json"
        environment = {**os.environ, "TRAINWRIGHT_THREADS": str(self.threads), "OMP_NUM_THREADS": str(self.threads)}
        protocol.run_command([self.options.kernel_speed, "--device", "cpu", "--precision", "fp32", "--only", "diagonal_scan", "--rows",
                              STEP_TOKENS, "--span", self.settings["tokens"], "--width", 2 * self.shape["ten"]["num_eigenstates"],
                              "--vocabulary", 300, "--rounds", self.settings["steps"], "--summary", summary], environment=environment)
        rows = json.loads(summary.read_text())["operators"]
        return Sample(STEP_TOKENS, sum(row["cpu_time_s"] for row in rows), sum(row["time_s"] for row in rows))

    def can(self, contestant):
        return contestant != "mamba2" or self.settings["tokens"] <= self.shape["mamba2_longest"]

    def contestant(self, name, workers, first_losses):
        """Its name in reports, and how it is measured."""
        shown, peer = ten_report.NAMES[name], ten_report.PEERS.get(name)
        if name in ("train", "llama"):
            return Contestant(shown, lambda: self.ours("ten" if name == "train" else "llama"), peer)
        if name == "scan":
            return Contestant(shown, self.scan, peer)
        what = "mamba2" if name == "mamba2" else "scan" if name.startswith("scan-") else STARTS[name]
        worker = self.worker(what, TORCH_MODES[name.split("-", 1)[1] if name.startswith(("llama-", "scan-")) else name]
                             if what != "mamba2" else None)
        workers.append(worker)

        def warm():
            first_losses[name] = worker.ask(steps=ten_report.UNTIMED_STEPS)["losses_nats"][0]

        timed = self.settings["steps"] - ten_report.UNTIMED_STEPS
        return Contestant(shown, lambda: worker.sample(steps=timed), peer, warm)

    def compare(self, record, wanted):
        """Whole steps are one comparison, scans another."""
        self.prepare()
        for scans in (False, True):
            names = [name for name in CONTESTANTS if name in wanted and self.can(name) and name.startswith("scan") == scans]
            if not names:
                continue
            workers, first_losses = [], {}
            name = ("scan, " if scans else "") + self.name
            try:
                record.run(Comparison(name, "tokens", [self.contestant(one, workers, first_losses) for one in names],
                                      threads=self.threads, settings=self.settings, **protocol.how(self.options)))
            finally:
                for worker in workers:
                    worker.close()
            if first_losses and not scans:
                record.extra.setdefault("first_losses", {})[name] = first_losses
            record.write()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--kernel-speed", required=True)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--tokens", default="512,2048,8192,32768")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    if options.steps <= ten_report.UNTIMED_STEPS:
        parser.error(f"--steps must be above {ten_report.UNTIMED_STEPS}")
    for given, known in ((options.models, MODELS), (options.contestants, CONTESTANTS)):
        if unknown := set(given.split(",")) - set(known):
            parser.error(f"unknown {', '.join(unknown)}: one of {', '.join(known)}")
    lengths = [int(tokens) for tokens in options.tokens.split(",")]
    if any(STEP_TOKENS % tokens for tokens in lengths):
        parser.error(f"--tokens must divide {STEP_TOKENS}")
    contests = [Contest(options, model, tokens) for model in options.models.split(",") for tokens in lengths]
    record = protocol.Record(options.out, "The family ten beside its peers", "scripts/compare/ten.sh", notes=(
        f"{', '.join(map(version_of, PACKAGES))}. fp32, {STEP_TOKENS} tokens a step whatever the samples."))
    record.after = ten_report.text
    for contest in contests:
        contest.compare(record, options.contestants.split(","))
    ten_report.plot(record, pathlib.Path(f"{options.out}.svg"))
    failures = ten_report.differences(record)
    for line in failures:
        print(line, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
