#!/usr/bin/env python3
"""Trains one small model on 1, 2 and 4 ranks with each --zero, in several precisions, whole and as adapters, and judges what
is promised of them: the same bits with --exact-world, the same run within rounding without it, one stream of data, and
memory that falls as --dry-run tells.

  scripts/compare/exact_worlds.py [--bin FOLDER] [--parts LIST] [--kinds LIST] [--steps N] [--timeout S] [OUT.md]

  --bin FOLDER   the built tools (default: build/release/bin)
  --parts LIST   of exact, rounding, memory (default: all)
  --kinds LIST   only those of the kinds whose name holds one of these texts, such as lora or bf16 (default: all)
  --steps N      optimizer steps of a run of exact and rounding; a multiple of 4 (default: 20)
  --timeout S    --dist-timeout of the runs (default: 60)
  OUT.md         where the report goes (default: standard output)

exact: a step is 16 samples in 8 micro-batches under --exact-world 4. A process by itself, 2 and 4 ranks with --zero 0, 1 and
2, and a run that SIGTERM to one rank stops after each quarter and another world goes on with (4 ranks --zero 2, 1 process,
2 ranks --zero 1, 4 ranks --zero 0) must end in the same weights and moments, with the same losses and norms on the way.
rounding: against one process whose micro-batch is the whole step, gradients of the first step within 1e-6 (fp32) or 1e-2
(bf16) in relative norm, and weights within 1e-3 of the distance travelled (fp32; bf16 is told). memory: a larger model; what
rank 0 counts at the end is what --dry-run tells, sharded parts are those of one process divided, and what each rank's memory
falls by is what --dry-run tells it does. Ends with status 1 where a promise is not kept, and leaves the folders then.
"""
import argparse
import dataclasses
import json
import math
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import start_ranks
from train_runs import (ROOT, describe, digest, floats_of, llama, make_shards, read_safetensors, records_of, tools_environment,
                        weights_of)

LEAVES, BATCH, MICRO_BATCHES = 4, 2, 8
WORLDS = [(1, 0), *((ranks, zero) for ranks in (2, 4) for zero in (0, 1, 2))]
CHAIN = [(4, 2), (1, 0), (2, 1), (4, 0)]
MOST_S = 900
SMALL, LARGE = llama(128, 384, 4, 4), llama(512, 1408, 8, 8)
BLOCK = 65536  # elements that belong to one rank
BETA1 = 0.9
# Where loss spikes, rounding grows by orders of magnitude within a few steps, on one process as on several.
STEADY_LR = 0.0005
GRADIENT_BOUND, WEIGHTS_BOUND = {"no": 1e-6, "bf16": 1e-2}, 1e-3
# Of the fall in memory: shares that may be off, and bytes below which the allocator's own matter more.
FALL_SHARE, FALL_BYTES = 0.15, 12 << 20
MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    precision: str
    lora: bool = False
    more: tuple = ()

    def options(self):
        tuning = ["--lora", "64", "--lora-dropout", "0.1"] if self.lora else []
        return ["--mixed-precision", self.precision, *tuning, *self.more]


ROUNDING_KINDS = [Kind("whole fp32", "no"), Kind("whole bf16", "bf16"), Kind("lora fp32", "no", True),
                  Kind("lora bf16", "bf16", True)]
EXACT_KINDS = [*ROUNDING_KINDS, Kind("whole bf16, bf16 moments", "bf16", more=("--optimizer-states", "bf16")),
               Kind("lora fp16, scaled loss", "fp16", True), Kind("lora on nf4, bf16", "bf16", True, ("--quant", "nf4"))]
# Several buckets are under way at once, which must not be large beside the model.
MEMORY_KINDS = [Kind("whole fp32", "no", more=("--ddp-bucket-mb", "2")),
                Kind("whole bf16", "bf16", more=("--ddp-bucket-mb", "2")), Kind("whole bf16, default buckets", "bf16")]


class Failed(Exception):
    """A run that did not end as it should."""


@dataclasses.dataclass
class Ended:
    """Of each rank, bytes: at most, and at most while it took steps after the first."""
    peaks: list
    resident: list


class Runs:
    def __init__(self, options, folder):
        self.options, self.folder, self.environment = options, folder, tools_environment(options.bin)
        (folder / "small.json").write_text(json.dumps(SMALL))
        (folder / "large.json").write_text(json.dumps(LARGE))
        make_shards(folder, self.environment, shards="head -n 8000")
        self.train(1, ["--model", "small.json", *self.common(64), "--steps", "2", "--batch", "4", "--out", "base"])

    def common(self, sequence):
        return ["--data", "shards", "--seq", str(sequence), "--async-save", "off", "--keep", "0", "--dist-timeout",
                str(self.options.timeout), "--seed", "1"]

    def train(self, ranks, arguments, stop_after=None):
        """Trains to the end, or to a stop of one rank by a signal once a step is on record. What is in the environment says
        that a rank is one: a run on one rank is a process like any other."""
        run = self.folder / arguments[arguments.index("--out") + 1]
        log = self.folder / f"{run.name}.log"
        with open(log, "ab") as messages:
            command = ["train", "-q", *arguments]
            streams = {"cwd": self.folder, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": messages}
            processes = (start_ranks.start(ranks, command, self.environment, **streams) if ranks > 1 else
                         [start_ranks.Process(command, env=self.environment, **streams)])
        begin, resident, stopped, last_step = time.monotonic(), [0] * ranks, False, 0
        steps = int(arguments[arguments.index("--steps") + 1]) if "--steps" in arguments else 0
        while not all([process.has_ended() for process in processes]):
            if time.monotonic() - begin > MOST_S:
                for process in processes:
                    process.end()
                raise Failed(f"{run.name} hung; see {log}")
            if not stopped:
                last_step = max((record["step"] for record in records_of(run, "step")), default=0)
            if 2 <= last_step < steps:
                resident = [max(most, start_ranks.process_bytes(process.pid, "VmRSS"))
                            for most, process in zip(resident, processes)]
            if stop_after and last_step >= stop_after and not stopped:
                processes[-1].send_signal(signal.SIGTERM)
                stopped = True
            time.sleep(0.005)
        statuses = [process.status() for process in processes]
        if statuses != [143 if stop_after else 0] * ranks:
            raise Failed(f"{run.name}: statuses {statuses}: {log.read_text(errors='replace').strip()[-300:]}")
        return Ended([process.peak_bytes for process in processes], resident)

    def told(self, ranks, arguments):
        """What --dry-run tells of a rank."""
        summary = self.folder / "told.json"
        command = ["train", "-q", *arguments, "--nproc", str(ranks), "--dry-run", "--summary", summary]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"the dry run ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return json.loads(summary.read_text())["memory_bytes"]


def state_of(checkpoint):
    """(what the state file tells of the run, the digest of its tensors)"""
    header, tensors = read_safetensors(checkpoint / "trainwright_state.safetensors")
    return json.loads(header["__metadata__"]["state"]), digest(tensors)


def stream_of(run, steps):
    """Digest of what was read: tokens and labels of each step, and the place in the data at each checkpoint."""
    read = [[record[name] for name in ("step", "tokens", "labels", "tokens_seen")] for record in records_of(run, "step")]
    places = []
    for step in steps:
        state, _ = state_of(run / "checkpoints" / f"step-{step:08}")
        places.append([state[name] for name in ("step", "tokens_seen", "labels_seen", "cursor", "order_fingerprint",
                                                "data_sha256")])
    return digest(json.dumps([read, places]).encode())


def records_digest(run):
    names = ("step", "loss_nats", "grad_norm", "lr", "loss_scale", "skipped", "effective_batch")
    return digest(json.dumps([[record[name] for name in names] for record in records_of(run, "step")]).encode())


class Report:
    """Tables, and promises that hold or do not."""

    def __init__(self):
        self.lines, self.promises = [], {}

    def section(self, title, text, header):
        self.lines += [f"\n## {title}\n", text, "", "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]

    def row(self, *cells):
        self.lines.append("| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in cells) + " |")
        print(*cells, sep=" | ", file=sys.stderr, flush=True)

    def promise(self, name, holds, where):
        """Returns how a cell tells it."""
        kept, broken = self.promises.setdefault(name, (0, []))
        self.promises[name] = (kept + bool(holds), broken if holds else [*broken, where])
        return "yes" if holds else "**no**"

    def kept(self):
        return not any(broken for _, broken in self.promises.values())

    def text(self):
        lines = ["| promise | held | not |", "|---|---|---|"]
        lines += [f"| {name} | {kept} of {kept + len(broken)} | {'; '.join(broken)} |"
                  for name, (kept, broken) in self.promises.items()]
        return "\n".join(lines + self.lines) + "\n"


class Exact:
    """--exact-world: every world ends in the bits of one process."""

    def __init__(self, runs, report, steps):
        self.runs, self.report, self.steps = runs, report, steps
        self.quarters = [steps * part // 4 for part in (1, 2, 3, 4)]

    def arguments(self, kind, ranks, zero, out):
        model = ["--init", "base"] if kind.lora else ["--model", "small.json"]
        return [*model, *self.runs.common(64), *kind.options(), "--batch", str(BATCH), "--accum", str(MICRO_BATCHES // ranks),
                "--exact-world", str(LEAVES), "--clip", "0.5", "--steps", str(self.steps), "--save-every",
                str(self.steps // 4), "--out", out, *self.world(ranks, zero)]

    @staticmethod
    def world(ranks, zero):
        return ["--zero", str(zero), "--ddp-bucket-mb", "1"] if ranks > 1 else []

    def chain(self, kind, out):
        """Goes on in other worlds; returns what they were, with the steps at which they changed."""
        told = []
        for i, (ranks, zero) in enumerate(CHAIN):
            last = i + 1 == len(CHAIN)
            arguments = self.arguments(kind, ranks, zero, out) if i == 0 else [
                "--resume", "--out", out, "--zero", str(zero)]
            self.runs.train(ranks, arguments, stop_after=None if last else self.quarters[i])
            step = max(record["step"] for record in records_of(self.runs.folder / out, "step"))
            told.append(f"{ranks} --zero {zero} to {step}")
        return ", ".join(told)

    def bits(self, run):
        checkpoint = run / "checkpoints" / f"step-{self.steps:08}"
        return [digest(weights_of(checkpoint).read_bytes()), state_of(checkpoint)[1], records_digest(run),
                stream_of(run, self.quarters)]

    def of_kind(self, kind):
        expected = None
        for number, world in enumerate([*WORLDS, None]):
            out, begin = f"exact-{number}", time.monotonic()
            name = f"{world[0]}, --zero {world[1]}" if world else "changing"
            where = f"{kind.name}: {name}"
            try:
                if world:
                    self.runs.train(world[0], self.arguments(kind, *world, out))
                else:
                    name = where = self.chain(kind, out)
                bits = self.bits(self.runs.folder / out)
            except (Failed, OSError, KeyError) as problem:
                self.report.row(kind.name, name, "", "", "", "", self.report.promise("exact: the run ends", False, where), problem)
                continue
            expected = expected or bits
            self.report.promise("exact: the run ends", True, where)
            if world != WORLDS[0]:
                for what, own, other in zip(("weights", "moments", "losses and norms"), bits, expected):
                    self.report.promise(f"exact: {what} are the bits of one process", own == other, where)
                self.report.promise("one stream of data", bits[3] == expected[3], where)
            same = "reference" if bits is expected else "yes" if bits == expected else "**no**"
            self.report.row(kind.name, name, *bits, same, f"{time.monotonic() - begin:.1f}")
            if same != "**no**":
                shutil.rmtree(self.runs.folder / out)

    def run(self, kinds):
        self.report.section(
            "Exact", f"`--exact-world {LEAVES} --batch {BATCH}`, {MICRO_BATCHES} micro-batches and "
            f"{BATCH * MICRO_BATCHES} samples a step, {self.steps} steps, one thread a rank, gradients clipped at 0.5, buckets "
            "of 1 MiB; adapters of rank 64 with dropout 0.1. sha256, the first 16 digits: of the weights' file, of the "
            "moments' tensors, of the steps' records (loss, norm, rate, loss scale, skipped), and of the data that was read "
            "(tokens and labels of each step, place in the data at each quarter).",
            ["kind", "ranks", "weights", "moments", "records", "data", "equal", "s"])
        for kind in kinds:
            self.of_kind(kind)


class Rounding:
    """Without --exact-world: worlds are one process within rounding."""

    def __init__(self, runs, report, steps):
        self.runs, self.report, self.steps = runs, report, steps

    def take(self, kind, ranks, zero, keep, what, out, micro_batches=1):
        """A run; what is its length and whatever else it has. One rank has so many micro-batches, of several each two."""
        samples = BATCH * MICRO_BATCHES
        what = what if "--lr" in what else [*what, "--lr", str(STEADY_LR)]
        split = ["--batch", str(samples // micro_batches), "--accum", str(micro_batches)] if ranks == 1 else [
            "--batch", str(samples // ranks // 2), "--accum", "2", "--zero", str(zero), "--ddp-bucket-mb", "1",
            *(["--zero-accum", "keep" if keep else "reduce"] if zero == 2 else [])]
        self.runs.train(ranks, ["--init", "base", *self.runs.common(64), *kind.options(), *split, *what, "--out", out])
        return self.runs.folder / out

    def gradient(self, kind, *world):
        """Of the first step, in what it leaves in the first moment: (1 - beta1) g."""
        run = self.take(kind, *world, ["--steps", "1", "--clip", "0", "--beta1", str(BETA1)], "rounding-gradient")
        moments = floats_of(run / "checkpoints/step-00000001/trainwright_state.safetensors", "exp_avg")
        stream = stream_of(run, [1])
        shutil.rmtree(run)
        return moments, stream

    def weights(self, kind, *world, micro_batches=1):
        """In the end."""
        run = self.take(kind, *world, ["--steps", str(self.steps)], "rounding-weights", micro_batches)
        weights = floats_of(weights_of(run / f"checkpoints/step-{self.steps:08}"))
        stream = stream_of(run, [self.steps])
        shutil.rmtree(run)
        return weights, stream

    def of_kind(self, kind):
        start_run = self.take(kind, 1, 0, False, ["--steps", "1", "--lr", "0"], "rounding-start")
        start = floats_of(weights_of(start_run / "checkpoints/step-00000001"))
        shutil.rmtree(start_run)
        gradient, weights = self.gradient(kind, 1, 0, False), self.weights(kind, 1, 0, False)
        norm, travelled = math.dist(gradient[0], [0.0] * len(gradient[0])), math.dist(weights[0], start)
        bound = GRADIENT_BOUND[kind.precision]
        alone = self.weights(kind, 1, 0, False, micro_batches=4)
        self.report.row(kind.name, "1, in 4 micro-batches", "", "", f"{math.dist(alone[0], weights[0]) / travelled:.1e}", "told", "")
        for ranks in (2, 4):
            for zero, keep in ((0, False), (1, False), (2, False), (2, True)):
                name = f"{ranks}, --zero {zero}" + (f" --zero-accum {'keep' if keep else 'reduce'}" if zero == 2 else "")
                where = f"{kind.name}: {name}"
                try:
                    own_gradient = self.gradient(kind, ranks, zero, keep)
                    own_weights = self.weights(kind, ranks, zero, keep)
                except (Failed, OSError, KeyError) as problem:
                    self.report.row(kind.name, name, "", "", self.report.promise("rounding: the run ends", False, where), problem)
                    continue
                off = math.dist(own_gradient[0], gradient[0]) / norm
                strayed = math.dist(own_weights[0], weights[0]) / travelled
                holds = self.report.promise(f"rounding: gradients of the first step within {bound:g}, "
                                            f"{'fp32' if kind.precision == 'no' else kind.precision}", off <= bound, where)
                if kind.precision == "no":
                    holds_weights = self.report.promise(f"rounding: weights within {WEIGHTS_BOUND:g} of the distance, fp32",
                                                        strayed <= WEIGHTS_BOUND, where)
                else:
                    holds_weights = "told"
                stream = (own_gradient[1], own_weights[1]) == (gradient[1], weights[1])
                self.report.row(kind.name, name, f"{off:.1e}", holds, f"{strayed:.1e}", holds_weights,
                                self.report.promise("one stream of data", stream, where))

    def run(self, kinds):
        self.report.section(
            "Within rounding", f"Without --exact-world, against one process whose micro-batch is the whole step of "
            f"{BATCH * MICRO_BATCHES} samples; ranks have two micro-batches each. Gradients: those of the first step, as the "
            f"first moment holds them, |g - g1| / |g1|. Weights: after {self.steps} steps, |w - w1| / |w1 - w0|, beside what "
            "one process that divides its step into micro-batches comes to.",
            ["kind", "ranks", "gradients", f"within {GRADIENT_BOUND['no']:g} / {GRADIENT_BOUND['bf16']:g}", "weights",
             f"within {WEIGHTS_BOUND:g}", "same data"])
        for kind in kinds:
            self.of_kind(kind)


class Memory:
    """Of each rank, beside what --dry-run tells."""

    def __init__(self, runs, report):
        self.runs, self.report = runs, report
        hidden, inner, keys = LARGE["hidden_size"], LARGE["intermediate_size"], LARGE["hidden_size"] // 2
        self.embedding = LARGE["vocab_size"] * hidden
        self.layer = 2 * hidden * hidden + 2 * hidden * keys + 3 * hidden * inner + 2 * hidden
        self.norms = (2 * LARGE["num_hidden_layers"] + 1) * hidden

    def arguments(self, kind, ranks, zero):
        return ["--model", "large.json", *self.runs.common(64), *kind.options(), "--batch", "1", "--accum", "1", "--steps", "8",
                "--save-every", "0", "--save-model-only", *(["--zero", str(zero)] if ranks > 1 else [])]

    @staticmethod
    def groups(told):
        """As the records have them."""
        return {"params": told["parameters"] + told["compute_copy"] + told["frozen"],
                "grads": told["gradients"] + told["exchange"], "optimizer": told["optimizer"]}

    def divides(self, kind, told, alone, ranks, zero):
        """What is wrong with the parts that ranks divide, as they are told: shares are whole blocks, and gradients of layers
        that are worked on, as many as fill a bucket, are whole."""
        limits = {}
        bucket = (int(kind.more[-1]) if kind.more else 25) * MIB // 4
        worked_on = self.layer * max(1, bucket // self.layer) + 2 * BLOCK
        if zero >= 1:
            limits["optimizer"] = alone["optimizer"] / ranks + 8 * BLOCK
            if alone["compute_copy"] > 0:
                limits["parameters"] = alone["parameters"] / ranks + 4 * (BLOCK + self.embedding + self.norms)
        if zero == 2:
            limits["gradients"] = alone["gradients"] / ranks + 4 * (BLOCK + worked_on)
        return [name for name, most in limits.items() if told[name] > most]

    def measure(self, kind, ranks, zero, base, alone):
        """Returns (told, resident)."""
        where = f"{kind.name}: {ranks}, --zero {zero}"
        arguments = self.arguments(kind, ranks, zero)
        told = self.runs.told(ranks, [*arguments, "--out", "memory-told"])
        ended = self.runs.train(ranks, [*arguments, "--out", "memory"])
        run = self.runs.folder / "memory"
        counted = records_of(run, "run_end")[-1]["memory_bytes"]
        shutil.rmtree(run)
        groups = self.groups(told)
        wrong = [name for name, size in groups.items() if abs(counted[name] - size) > 0.01 * size]
        as_told = self.report.promise("memory: what rank 0 counts is what is told", not wrong, f"{where}: {wrong}")
        undivided = self.divides(kind, told, alone or told, ranks, zero)
        if zero > 0:
            self.report.promise("memory: sharded parts are those of one process over the ranks, and a block", not undivided,
                                f"{where}: {undivided}")
        fall = ""
        if zero > 0:
            told_fall = base[0]["total"] - base[0]["process"] - told["total"] + told["process"]
            falls = [before - after for before, after in zip(base[1], ended.resident)]
            near = all(abs(own - told_fall) <= max(FALL_BYTES, FALL_SHARE * told_fall) for own in falls)
            fall = f"{told_fall / MIB:.0f}: {' '.join(f'{own / MIB:.0f}' for own in falls)}"
            if kind.more:
                fall += " " + self.report.promise(f"memory: each rank's falls as told, within {FALL_SHARE:.0%} or "
                                                  f"{FALL_BYTES / MIB:.0f} MiB", near, where)
        mib = [f"{told[name] / MIB:.1f}" for name in ("parameters", "compute_copy", "gradients", "optimizer", "exchange")]
        self.report.row(kind.name, f"{ranks}, --zero {zero}", *mib, as_told, f"{told['total'] / MIB:.0f}",
                        " ".join(f"{own / MIB:.0f}" for own in ended.resident),
                        " ".join(f"{own / MIB:.0f}" for own in ended.peaks), fall)
        return told, ended.resident

    def run(self, kinds):
        self.report.section(
            "Memory of a rank", "A Llama of 24 M parameters, one sample of 64 tokens a rank. MiB: masters, copies that the "
            "passes read, gradients, moments and the exchange as `--dry-run` tells them of a rank; whether rank 0 counts the "
            "same in its last record (parameters, gradients with the exchange, optimizer); the told total, and what each rank "
            "had resident while it took steps, and its peak, which the start and the save are part of. Fall: against "
            "--zero 0 on as many ranks, told: measured of each rank; judged with buckets of 2 MiB. The default's 25 MiB are "
            "large beside this model, and what the allocator keeps of such buffers is not told.",
            ["kind", "ranks", "masters", "copies", "gradients", "moments", "exchange", "rank 0 counts that", "told", "in steps",
             "peak", "fall"])
        for kind in kinds:
            alone = base = None
            for ranks, zero in WORLDS:
                try:
                    measured = self.measure(kind, ranks, zero, base, alone)
                except (Failed, OSError, KeyError, TypeError) as problem:
                    where = f"{kind.name}: {ranks}, --zero {zero}"
                    self.report.row(kind.name, f"{ranks}, --zero {zero}", *[""] * 8,
                                    self.report.promise("memory: the run ends", False, where), problem)
                    continue
                alone = alone or measured[0]
                base = measured if zero == 0 else base


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--parts", default="exact,rounding,memory")
    parser.add_argument("--kinds", default="")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    if options.steps < 4 or options.steps % 4 != 0:
        parser.error("--steps must be a multiple of 4")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="exact-worlds-"))
    begin = time.monotonic()
    report = Report()
    runs = Runs(options, folder)
    parts = {"exact": (Exact(runs, report, options.steps), EXACT_KINDS),
             "rounding": (Rounding(runs, report, options.steps), ROUNDING_KINDS), "memory": (Memory(runs, report), MEMORY_KINDS)}
    for name in options.parts.split(","):
        part, kinds = parts[name]
        part.run([kind for kind in kinds if any(text in kind.name for text in options.kinds.split(","))])
    text = f"# Worlds of ranks, {describe(options.bin)}\n\n{report.text()}\nAll in {time.monotonic() - begin:.0f} s.\n"
    if options.out:
        options.out.write_text(text)
    else:
        print(text)
    if report.kept():
        shutil.rmtree(folder)
    else:
        print(f"exact_worlds: a promise is not kept; see {folder}", file=sys.stderr)
    return 0 if report.kept() else 1


if __name__ == "__main__":
    sys.exit(main())
