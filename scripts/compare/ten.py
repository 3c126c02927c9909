"""The runs of ten.sh."""
import argparse
import datetime
import functools
import json
import os
import pathlib
import resource
import shutil
import sys
import time

import ten_report
from ten_models import MODELS, long_shards, write_config
from run_results import RunResults
from train_runs import figures_of, processor, records_of, run, version_of

HERE = pathlib.Path(__file__).resolve().parent
STEP_TOKENS = 32768
PACKAGES = ("torch", "transformers")
# Of a whole step and, "scan", of a scan alone, forward and backward.
CONTESTANTS = ("train", "llama", "eager", "compiled", "llama-eager", "llama-compiled", "mamba2", "scan", "scan-eager",
               "scan-compiled")
# Of those that begin from given weights: the model.
STARTS = {"train": "ten", "eager": "ten", "compiled": "ten", "llama": "llama", "llama-eager": "llama",
          "llama-compiled": "llama"}


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Contest:
    """One model on samples of one length; a step has as many tokens whatever the length."""

    def __init__(self, options, model, tokens):
        self.options = options
        self.settings = {"model": model, "tokens": tokens, "batch": STEP_TOKENS // tokens, "steps": options.steps,
                         "threads": options.threads}
        self.folder, self.shards = None, None

    @property
    def name(self):
        return f"{self.settings['model']}, {self.settings['tokens']} tokens"

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
            self.settings["batch"], "--accum", 1, "--threads", self.settings["threads"], "--seed", 1, "--save-every", 0,
            "--log-every", 1, "--schedule", "constant", "--warmup", 0, "--weight-decay", "0.01", "--beta1", "0.9", "--beta2",
            "0.95", "--clip", 1, "--mixed-precision", "no", *more, "--out", self.folder / name)

    def ours(self, kind):
        self.train("run", ("--init", self.initial(kind)), "--steps", self.settings["steps"], "--lr", "1e-4")
        records = records_of(self.folder / "run")
        shutil.rmtree(self.folder / "run")
        return figures_of(records) | {"parameters": next(record["parameters"] for record in records if "parameters" in record)}

    def torch(self, what, *more):
        settings = self.settings
        start = ("--init", self.initial(what)) if what in STARTS.values() else ()
        out = run(sys.executable, HERE / "torch_ten_loop.py", "--what", what, *start, "--shape",
                  self.folder / "mamba2.json", "--chunks", self.folder / "chunks.jsonl", "--seq", settings["tokens"],
                  "--batch", settings["batch"], "--steps", settings["steps"], "--threads", settings["threads"],
                  "--channels", self.shape["ten"]["num_eigenstates"], *more)
        return json.loads(out.splitlines()[-1])

    def scan(self):
        """The kernels' rows of kernel_speed, forward and backward, as though they were steps."""
        summary = self.folder / "kernels.json"
        environment = ("env", f"TRAINWRIGHT_THREADS={self.settings['threads']}", f"OMP_NUM_THREADS={self.settings['threads']}")
        run(*environment, self.options.kernel_speed, "--device", "cpu", "--precision", "fp32", "--only", "diagonal_scan",
            "--rows", STEP_TOKENS, "--span", self.settings["tokens"], "--width", 2 * self.shape["ten"]["num_eigenstates"],
            "--vocabulary", 300, "--rounds", self.settings["steps"], "--summary", summary)
        told, steps = json.loads(summary.read_text()), self.settings["steps"]
        times, processor_times = ({row["operator"]: row[clock] for row in told["operators"]} for clock in ("time_s", "cpu_time_s"))
        return {"step_times_s": [sum(times.values())] * steps, "cpu_times_s": [sum(processor_times.values())] * steps,
                "tokens": [STEP_TOKENS] * steps, "threads": told["threads"], "forward_s": times["diagonal_scan"], "backward_s": times["diagonal_scan_backward"]}

    def can(self, contestant):
        return contestant != "mamba2" or self.settings["tokens"] <= self.shape["mamba2_longest"]

    def measure(self, contestant, number):
        """One run, with what was so around it."""
        if self.folder is None:
            self.prepare()
        if contestant in STARTS:
            self.initial(STARTS[contestant])
        started, begin, load = datetime.datetime.now().isoformat(timespec="seconds"), time.monotonic(), os.getloadavg()[0]
        begin_cpu = cpu_of_children()
        result = {"train": lambda: self.ours("ten"), "llama": lambda: self.ours("llama"), "eager": lambda: self.torch("ten"),
                  "compiled": lambda: self.torch("ten", "--compile"), "llama-eager": lambda: self.torch("llama"),
                  "llama-compiled": lambda: self.torch("llama", "--compile"), "mamba2": lambda: self.torch("mamba2"),
                  "scan": self.scan, "scan-eager": lambda: self.torch("scan"),
                  "scan-compiled": lambda: self.torch("scan", "--compile")}[contestant]()
        return {"settings": self.settings, "contestant": contestant, "round": number, "started": started,
                "process_s": time.monotonic() - begin, "process_cpu_s": cpu_of_children() - begin_cpu, "load": [load, os.getloadavg()[0]],
                "processor": f"{os.cpu_count()} processors of an {processor()}", "versions": list(map(version_of, PACKAGES)),
                **result}


def write_report(out, runs):
    """OUT.md and OUT.svg."""
    pathlib.Path(f"{out}.md").write_text(ten_report.report(runs))
    ten_report.plot(runs, pathlib.Path(f"{out}.svg"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--kernel-speed", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--tokens", default="512,2048,8192,32768")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
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
    results = RunResults(options.out, functools.partial(write_report, options.out))
    if others := {run["settings"]["threads"] for run in results.runs} - {options.threads}:
        parser.error(f"{options.out}.json has runs of {others.pop()} threads: one OUT for each number of threads")
    wanted = options.contestants.split(",")
    for number in range(1, options.rounds + 1):
        for contest in contests:
            for contestant in wanted[::1 if number % 2 else -1]:
                if not contest.can(contestant) or results.has(contest.settings, contestant, number):
                    continue
                results.add(contest.measure(contestant, number))
                print(f"{contest.name}, round {number}: {ten_report.line_of(results.runs[-1])}", file=sys.stderr, flush=True)
    failures = ten_report.differences(results.runs)
    for line in failures:
        print(line, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
