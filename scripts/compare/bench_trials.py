"""The trials and the report of bench.sh."""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

from scipy import stats

SIGNIFICANCE = 0.05
EXTRA = 0.05


def run_bench(before, after, options, seed):
    command = ["bench", "--quiet", "--before", before, "--after", after, "--budget", str(options.budget), "--seed",
               str(seed), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 7):
        sys.exit(f"bench failed: {done.stderr}")
    return json.loads(done.stdout)


def run_hyperfine(before, after, runs, scratch):
    out = os.path.join(scratch, "hyperfine.json")
    subprocess.run(["hyperfine", "--style", "none", "--warmup", "2", "--runs", str(runs), "--export-json", out, before,
                    after], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as file:
        return [result["times"] for result in json.load(file)["results"]]


def trials(before, after, count, options):
    """Verdicts of each method, and what bench needed."""
    verdicts = {"bench": [], "hyperfine, Welch": [], "Google Benchmark, U test": []}
    floors, rounds, seconds = [], [], []
    for seed in range(count):
        result = run_bench(before, after, options, seed)
        comparison = result["results"][0]["comparisons"][0]
        verdicts["bench"].append(comparison["verdict"])
        measurement = result["measurements"][0]
        floors.append(comparison["noise_floor"])
        rounds.append(len(measurement["rounds"]))
        seconds.append(measurement["measured_s"])
        first, second = run_hyperfine(before, after, 2 * rounds[-1], options.scratch)
        slower = statistics.mean(second) > statistics.mean(first)
        for name, p in (("hyperfine, Welch", stats.ttest_ind(first, second, equal_var=False).pvalue),
                        ("Google Benchmark, U test", stats.mannwhitneyu(first, second, alternative="two-sided").pvalue)):
            verdicts[name].append("undecided" if p >= SIGNIFICANCE else "slower" if slower else "faster")
    return verdicts, floors, rounds, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--slower", type=int, default=100)
    parser.add_argument("--budget", type=float, default=1)
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    piece = os.path.join(options.scratch, "piece")
    with open(options.text, "rb") as source, open(piece, "wb") as file:
        file.write(source.read(300_000))
    before = f"gzip -1 -c {piece}"
    usual_s = run_bench(before, before, options, 0)["results"][0]["comparisons"][0]["before"]
    after = f"{before}; sleep {EXTRA * usual_s:.6f}"
    # A command that sleeps for no time has the cost of starting sleep, so that the extra is the sleep alone.
    level = f"{before}; sleep 0"
    loads = [os.getloadavg()[0]]
    equal = trials(before, before, options.trials, options)
    loads.append(os.getloadavg()[0])
    slower = trials(level, after, options.slower, options)
    loads.append(os.getloadavg()[0])
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next(line for line in file if line.startswith("model name")).split(":")[1].strip()
    lines = [
        f"# bench beside hyperfine and Google Benchmark, {datetime.date.today()}\n",
        f"{os.cpu_count()} processors of an {cpu}, load {' '.join(f'{load:.1f}' for load in loads)} (before, between, "
        f"after). The command compresses 300 kB ({usual_s * 1e3:.1f} ms); budget {options.budget:g} s a comparison, "
        f"2 runs of each command a round. hyperfine ran each as often as bench did.\n",
        "| of so many | method | faster | slower | same | undecided |", "|---|---|---|---|---|---|"]
    for title, (verdicts, _, _, _) in (("the command against itself", equal), ("5 % more wall time", slower)):
        for method, answers in verdicts.items() if verdicts["bench"] else ():
            counts = " | ".join(str(answers.count(word)) for word in ("faster", "slower", "same", "undecided"))
            lines.append(f"| {title}, {len(answers)} | {method} | {counts} |")
    for title, (_, floors, rounds, seconds) in (("Equals", equal), ("5 % more", slower)):
        if not floors:
            continue
        lines.append(f"\n{title}: noise floor (A/A) median {statistics.median(floors):.1%}, largest {max(floors):.1%}; "
                     f"{min(rounds)} to {max(rounds)} rounds in {statistics.median(seconds):.1f} s (median).")
    report = "\n".join(lines) + "\n"
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(report)
    else:
        print(report)


if __name__ == "__main__":
    main()
