"""The runs and the report of ranks.sh."""
import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from train_side_by_side import LLAMA_CONFIG, MODELS, UNTIMED_STEPS, load_average

HERE = os.path.dirname(os.path.abspath(__file__))
SEQUENCE, BATCH = MODELS["llama"]["sequence"], MODELS["llama"]["batch"]
RANKS, THREADS = 2, 2  # of the contest: two ranks of one thread, one of two
ONE_BUCKET_MB = 1 << 20
# What a run of ranks is called here: MiB of its buckets, options that PyTorch has no like of.
EXCHANGES = {"overlapped": (25, []), "one bucket": (ONE_BUCKET_MB, []),
             "overlapped, --zero 1": (25, ["--zero", "1"]), "overlapped, --zero 2": (25, ["--zero", "2"]),
             "overlapped, exact": (25, ["--exact-world", str(RANKS)])}
OF_BOTH = ("overlapped", "one bucket")
FREE = "loopback"
# What is promised: of one rank of two threads; and of a step's time on paper over the measured one.
LEAST_OF_ONE_RANK = 0.9
FORETOLD = (0.8, 1.25)


class Network:
    """What lies between the ranks of a run: a rate of the loopback, or a delay of each message, or nothing."""

    def __init__(self, name, rate=None, delay_us=0):
        self.name, self.rate, self.delay_us = name, rate, delay_us

    def command(self, command):
        if self.rate is None:
            return command
        script = (f"ip link set lo up && tc qdisc add dev lo root tbf rate {self.rate} burst 256kb latency 400ms && "
                  'exec "$@"')
        return ["unshare", "--net", "bash", "-c", script, "bash", *command]

    def environment(self, scratch):
        if self.delay_us == 0:
            return {}
        received_us = self.delay_us // 2
        return {"LD_PRELOAD": os.path.join(scratch, "delayed_sockets.so"),
                "SEND_DELAY_US": str(self.delay_us - received_us), "RECEIVE_DELAY_US": str(received_us)}

    def is_permitted(self):
        """What forbids it, or nothing."""
        tried = subprocess.run(self.command(["true"]), capture_output=True, text=True, check=False)
        return None if tried.returncode == 0 else tried.stderr.strip() or f"status {tried.returncode}"

    def bytes_per_s(self):
        """Of all ranks together."""
        units = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
        return float(self.rate[:-4]) * units[self.rate[-4:]] / 8


def networks_of(options):
    """(networks, why others are left out)."""
    networks, refused = [], []
    for rate in options.rates.split(","):
        network = Network(FREE) if rate == "free" else Network(f"loopback at {rate}", rate=rate)
        problem = network.is_permitted()
        if problem is None:
            networks.append(network)
        else:
            refused.append(f"{network.name} was not permitted here: {problem}")
    networks += [Network(f"messages {delay} us late", delay_us=int(delay)) for delay in options.delays.split(",") if delay]
    return networks, refused


def run(command, environment=None):
    """Runs a command to its end: (standard output, seconds, CPU seconds with its descendants')."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **(environment or {})}) as process:
        before = os.times()
        out, err = process.communicate()
        after = os.times()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}:\n{err[-3000:]}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return out, time.monotonic() - begin, cpu_s


class Contest:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.join(options.scratch, "runs")
        os.makedirs(self.folder)
        self.config = os.path.join(self.folder, "config.json")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(LLAMA_CONFIG, file)
        self.train = ["train", "--quiet", "--data", os.path.join(options.scratch, "shards"), "--model", self.config,
                      "--seq", str(SEQUENCE), "--batch", str(BATCH), "--save-every", "0", "--mixed-precision",
                      "no" if options.precision == "fp32" else "bf16"]
        initial = os.path.join(self.folder, "initial")
        run([*self.train, "--accum", str(RANKS), "--steps", "1", "--lr", "0", "--out", initial])
        self.initial = os.path.join(initial, "latest")
        self.plan = os.path.join(self.folder, "plan.json")
        self.results = {}

    def ours(self, network, ranks, threads, exchange, accum=None):
        out = os.path.join(self.folder, "run")
        bucket_mb, own = EXCHANGES[exchange]
        of_ranks = ["--nproc", str(ranks), "--ddp-bucket-mb", str(bucket_mb), *own] if ranks > 1 else []
        command = [*self.train, *of_ranks, "--threads", str(threads), "--accum", str(accum or RANKS // ranks), "--steps",
                   str(self.options.steps), "--out", out]
        _, wall_s, cpu_s = run(network.command(command), network.environment(self.options.scratch))
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        shutil.rmtree(out)
        with open(self.plan, "w", encoding="utf-8") as file:
            json.dump(next(record for record in records if record["type"] == "run_begin")["plan"], file)
        steps = [record for record in records if record["type"] == "step"]
        return {"losses_nats": [step["loss_nats"] for step in steps],
                "step_times_s": [step["step_time_s"] for step in steps],
                "model_flops_per_s": [step["model_flops_per_s"] for step in steps], "wall_s": wall_s, "cpu_s": cpu_s}

    def torch(self, network, ranks, threads, exchange):
        command = [sys.executable, os.path.join(HERE, "torch_train.py"), "--init", self.initial, "--plan", self.plan,
                   "--train", os.path.join(self.options.scratch, "chunks.jsonl"), "--steps", str(self.options.steps),
                   "--threads", str(threads), "--accum", str(RANKS // ranks)]
        if ranks > 1:
            command = [sys.executable, os.path.join(HERE, "start_ranks.py"), str(ranks), *command, "--bucket-mb",
                       str(EXCHANGES[exchange][0])]
        out, wall_s, cpu_s = run(network.command(command), network.environment(self.options.scratch))
        # Ranks write to one pipe: the ends of their lines may come after all of them.
        slowest = max((json.loads(line) for line in out.replace("}{", "}\n{").splitlines() if line.startswith("{")),
                      key=lambda result: statistics.median(result["step_times_s"]))
        return {**slowest, "wall_s": wall_s, "cpu_s": cpu_s}

    def round(self, networks):
        """Each contestant once: one rank, which no network slows, and two on each of them; on the first with all exchanges."""
        free = Network(FREE)
        contestants = {("train", 1, FREE, ""): lambda: self.ours(free, 1, THREADS, "overlapped")}
        if not self.options.ours:
            contestants["PyTorch", 1, FREE, ""] = lambda: self.torch(free, 1, THREADS, "overlapped")
        for network in networks:
            for exchange in EXCHANGES if network is networks[0] else OF_BOTH:
                contestants["train", RANKS, network.name, exchange] = (
                    lambda network=network, exchange=exchange: self.ours(network, RANKS, THREADS // RANKS, exchange))
                if not self.options.ours and exchange in OF_BOTH:
                    contestants["PyTorch", RANKS, network.name, exchange] = (
                        lambda network=network, exchange=exchange: self.torch(network, RANKS, THREADS // RANKS, exchange))
        for name, contestant in contestants.items():
            before = load_average()
            result = contestant()
            result["load"] = (before, load_average())
            self.results.setdefault(name, []).append(result)
            print(name, f"{step_s(result):.3f} s a step", file=sys.stderr, flush=True)

    def speeds(self, name):
        return [RANKS * BATCH * SEQUENCE / step_s(result) for result in self.results[name]]

    def ratios(self, name, base):
        """Speeds over those of another contestant, round by round."""
        return [own / other for own, other in zip(self.speeds(name), self.speeds(base))]

    def table(self):
        lines = ["| contestant | ranks | network | exchange | tokens/s, median of each round | against one rank of "
                 f"{THREADS} threads | CPU s | wall s | load 1 min |", "|---|---|---|---|---|---|---|---|---|"]
        for name, results in self.results.items():
            contestant, ranks, network, exchange = name
            ratios = self.ratios(name, (contestant, 1, FREE, ""))
            loads = [load for result in results for load in result["load"]]
            lines.append(
                f"| {contestant} | {ranks} x {THREADS // ranks} | {network} | {exchange} | "
                f"{' '.join(f'{speed:.0f}' for speed in self.speeds(name))} | {spread(ratios)} | "
                f"{statistics.median(result['cpu_s'] for result in results):.1f} | "
                f"{statistics.median(result['wall_s'] for result in results):.1f} | {min(loads):.1f} to {max(loads):.1f} |")
        return lines

    def comparison_with_torch(self):
        """Ratios to PyTorch, of one process and of ranks on each network."""
        lines = ["", "| train against PyTorch | exchange | round by round |", "|---|---|---|"]
        for name in self.results:
            contestant, ranks, network, exchange = name
            theirs = ("PyTorch", ranks, network, exchange)
            if contestant == "train" and theirs in self.results:
                ratios = self.ratios(name, theirs)
                place = "one process" if ranks == 1 else f"{ranks} ranks, {network}"
                lines.append(f"| {place} | {exchange} | {spread(ratios)} |")
        return lines

    def verdicts(self):
        """(lines, whether all is as promised), of the free loopback."""
        ranks = ("train", RANKS, FREE, "overlapped")
        if ranks not in self.results:
            return ["", f"Not judged: nothing ran on the free {FREE}."], True
        ratio = statistics.median(self.ratios(ranks, ("train", 1, FREE, "")))
        verdicts = [(f"{RANKS} ranks of {THREADS // RANKS} thread reach {LEAST_OF_ONE_RANK} of one rank of {THREADS}: "
                     f"{ratio:.3f}", ratio >= LEAST_OF_ONE_RANK)]
        if not self.options.ours:
            of_ranks, alone = (statistics.median(self.ratios(("train", *place), ("PyTorch", *place)))
                               for place in (ranks[1:], (1, FREE, "")))
            verdicts.append((f"the ratio to PyTorch of {RANKS} ranks is no lower than that of one process: {of_ranks:.3f}, "
                             f"{alone:.3f}", of_ranks >= alone))
        lines = [f"- {claim}: {'yes' if holds else 'no'}" for claim, holds in verdicts]
        return ["", "Medians of the rounds:", "", *lines], all(holds for _, holds in verdicts)

    def losses(self):
        alone = self.results["train", 1, FREE, ""][0]["losses_nats"]
        worst = max((abs(loss / other - 1) for name, results in self.results.items() if name[:2] == ("train", RANKS)
                     for result in results for loss, other in zip(result["losses_nats"], alone)), default=0)
        return f"\nLargest relative difference of the losses of {RANKS} ranks to those of one: {worst:.1e}."

    def alone_side_by_side(self, ranks):
        """1e12 operations a second of one of so many runs of one thread that share the machine and nothing else."""
        outs = [os.path.join(self.folder, f"alone-{rank}") for rank in range(ranks)]
        processes = [subprocess.Popen([*self.train, "--threads", "1", "--accum", "1", "--steps", str(self.options.steps),
                                       "--out", out]) for out in outs]
        if any(process.wait() != 0 for process in processes):
            sys.exit("a run beside others failed")
        rates = []
        for out in outs:
            with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
                steps = [record for record in map(json.loads, file) if record["type"] == "step"]
            rates.append(statistics.median(step["model_flops_per_s"] for step in steps[UNTIMED_STEPS:]))
            shutil.rmtree(out)
        return statistics.mean(rates) / 1e12

    def told(self, network, ranks, exchange, tflops):
        """What --dry-run tells of a step, the link's rate divided among the ranks that share the loopback."""
        summary = os.path.join(self.folder, "told.json")
        latency_us = network.delay_us or self.options.latency_us
        rate = network.bytes_per_s() / ranks if network.rate else self.options.loopback_bytes_per_s / ranks
        bucket_mb, own = EXCHANGES[exchange]
        command = [*self.train, *own, "--threads", "1", "--accum", "1", "--steps", str(self.options.steps), "--dry-run",
                   "--world", str(ranks), "--bandwidth", f"{rate:.0f}", "--latency", f"{latency_us}us", "--device-tflops",
                   f"{tflops:.6f}", "--ddp-bucket-mb", str(bucket_mb), "--summary", summary]
        run(command)
        with open(summary, encoding="utf-8") as file:
            world = json.load(file)["world"]["worlds"][0]
        return world["sharding"][world["asked"]]

    def foretelling(self, networks):
        """(lines, whether all times on paper are near those measured)."""
        lines = ["", "## Foretold", "",
                 "A rank computes as fast as one of as many runs of one thread that share the machine, its update included. "
                 f"The free loopback is taken for {self.options.loopback_bytes_per_s / 1e9:g} GB/s of all ranks together, "
                 f"its messages for {self.options.latency_us} us.", "",
                 "| ranks | network | exchange | told s | measured s | told / measured | within "
                 f"{FORETOLD[0]} to {FORETOLD[1]} | told MB a rank | told latency s | hidden |",
                 "|---|---|---|---|---|---|---|---|---|---|"]
        compared = within = 0
        for ranks in (1, 2, 4):
            cases = [(network, exchange) for network in (networks if ranks > 1 else [Network(FREE)])
                     for exchange in exchanges_to_foretell(network, ranks)]
            rates, times = [], {case: [] for case in cases}
            for _ in range(self.options.rounds):
                rates.append(self.alone_side_by_side(ranks))
                for case, measured in times.items():
                    measured.append(step_s(self.ours(case[0], ranks, 1, case[1], accum=1)))
            for (network, exchange), measured in times.items():
                told = self.told(network, ranks, exchange, statistics.median(rates))
                measured_s = statistics.median(measured)
                ratio = told["step_time_s"] / measured_s
                is_near = FORETOLD[0] <= ratio <= FORETOLD[1]
                compared, within = compared + 1, within + is_near
                hidden = told["hidden_time_s"] / told["link_time_s"] if told["link_time_s"] > 0 else 0
                sent_bytes = sum(told[part]["sent_bytes"] for part in ("gradients", "weights", "small"))
                lines.append(
                    f"| {ranks} | {network.name} | {exchange if ranks > 1 else ''} | {told['step_time_s']:.3f} | "
                    f"{measured_s:.3f} ({min(measured):.3f} to {max(measured):.3f}) | {ratio:.2f} | "
                    f"{'yes' if is_near else 'no'} | {sent_bytes / 1e6:.1f} | {told['latency_time_s']:.4f} | {hidden:.0%} |")
                print("foretold", ranks, network.name, exchange, f"{ratio:.2f}", file=sys.stderr, flush=True)
        lines += ["", f"Within these bounds: {within} of {compared}."]
        return lines, within == compared


def exchanges_to_foretell(network, ranks):
    """One order of additions costs nothing on paper; shards on late messages are left out to keep the runs few."""
    if ranks == 1:
        return ["overlapped"]
    return OF_BOTH if network.delay_us else [name for name in EXCHANGES if "exact" not in name]


def step_s(result):
    return statistics.median(result["step_times_s"][UNTIMED_STEPS:])


def spread(ratios):
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--rates", default="free,4gbit,1gbit")
    parser.add_argument("--delays", default="500")
    parser.add_argument("--ours", action="store_true")
    parser.add_argument("--foretell", action="store_true")
    parser.add_argument("--only-foretell", action="store_true")
    parser.add_argument("--latency-us", type=int, default=50)
    parser.add_argument("--loopback-bytes-per-s", type=float, default=4e9)
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    networks, refused = networks_of(options)
    contest = Contest(options)
    if not options.only_foretell:
        for _ in range(options.rounds):
            contest.round(networks)
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next(line for line in file if line.startswith("model name")).split(":")[1].strip()
    lines = [f"# Ranks of train beside PyTorch's, {datetime.date.today()}\n",
             f"{os.cpu_count()} processors of an {cpu}; {options.rounds} interleaved rounds of {options.steps} steps of "
             f"{RANKS * BATCH * SEQUENCE} tokens in {options.precision}, the first {UNTIMED_STEPS} not timed. CPU and wall "
             "seconds are of whole runs with their start. All ranks share the loopback's rate.\n"]
    as_promised = True
    if not options.only_foretell:
        lines += contest.table()
        if not options.ours:
            lines += contest.comparison_with_torch()
        verdicts, as_promised = contest.verdicts()
        lines += [*verdicts, contest.losses()]
    if options.foretell or options.only_foretell:
        foretold, near = contest.foretelling(networks)
        lines += foretold
        as_promised = as_promised and near
    lines += [f"\n{problem}" for problem in refused]
    report = "\n".join(lines) + "\n"
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(report)
    else:
        print(report)
    sys.exit(0 if as_promised else 1)


if __name__ == "__main__":
    main()
