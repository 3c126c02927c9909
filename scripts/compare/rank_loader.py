"""The runs and the report of rank_loader.sh.

A rank of W reads r tokens a second of its own, and so decodes and cuts W r, of which it widens r into micro-batches. With d
CPU seconds for a token that is decoded and c for one that is widened it pays the share r (W d + c) of a core. Measured is
W d + c, for each W; d and c follow from the least and the greatest W.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

LENGTH, BATCH = 2048, 8
LIMIT = 0.05  # of a core
# Shards, workers, blocks, MiB of cache.
READINGS = {"chunks of 32,768 (pack's default)": ("shards-32768", 1, 1, 0),
            "chunks of 2,048, --shuffle-block 16": ("shards-2048", 1, 16, 0),
            "chunks of 2,048, nothing kept": ("shards-2048", 1, 1, 0)}
DEFAULT = next(iter(READINGS))


def measure(options, reading, ranks):
    """CPU seconds for a token of the rank's own."""
    shards, *numbers = READINGS[reading]
    command = [options.loader_speed, str(options.work / shards), str(LENGTH), str(BATCH), str(options.tokens),
               *map(str, numbers), str(ranks)]
    result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return result["cpu_s"] / result["own_tokens"]


def significant(number):
    """Of three digits, without an exponent."""
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def rate(tokens_per_s):
    """For people, of three digits."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if tokens_per_s >= size:
            return f"{tokens_per_s / size:.3g}{unit}"
    return f"{tokens_per_s:g}"


def rows_of(options, reading, costs_s):
    least, greatest = options.ranks[0], options.ranks[-1]
    widened_s = None
    if greatest > least:
        decoded_s = (costs_s[greatest] - costs_s[least]) / (greatest - least)
        widened_s = costs_s[least] - least * decoded_s
    rows = []
    for ranks in options.ranks:
        shares = " | ".join(f"{100 * tokens_per_s * costs_s[ranks]:.3g} %" for tokens_per_s in options.rates)
        most = LIMIT / costs_s[ranks]
        rows.append(f"| {reading} | {ranks} | {significant(1e9 * costs_s[ranks])} ns | {shares} | {rate(most)} | {rate(ranks * most)} |")
    if widened_s is not None:
        rows.append(f"| {reading} | W | {1e9 * decoded_s:.3g} W + {1e9 * widened_s:.3g} ns | "
                    f"{'| ' * len(options.rates)}| {rate(LIMIT / decoded_s)} at most |")
    return rows


def main():
    numbers = lambda text: [int(number) for number in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--loader-speed", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=40_000_000)
    parser.add_argument("--ranks", type=numbers, default=[1, 8, 64])
    parser.add_argument("--rates", type=numbers, default=[8000, 480_000])
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    options.ranks.sort()
    costs_s, loads = {}, []
    for _ in range(options.rounds):
        for reading in READINGS:
            for ranks in options.ranks:
                loads.append(os.getloadavg()[0])
                costs_s.setdefault((reading, ranks), []).append(measure(options, reading, ranks))
    lines = [f"# What ranks pay for their samples, {datetime.date.today()}", "",
             f"{os.cpu_count()} processors, 1-minute load {min(loads):.1f} to {max(loads):.1f}, {options.rounds} interleaved "
             f"rounds of {options.tokens / 1e6:.0f} million tokens, medians, made by `scripts/compare/rank_loader.sh`: the "
             f"English sample, Mistral v1, {BATCH} samples of {LENGTH} tokens a rank in a step. A rank of W decodes and cuts "
             f"all W shares of a step and widens its own. The last two columns are the rates at which it takes "
             f"{LIMIT:.0%} of a core.", "",
             "| shards | W | CPU time for a token of the rank | " +
             " | ".join(f"of a core at {rate(tokens_per_s)} tokens/s a rank" for tokens_per_s in options.rates) +
             " | tokens/s a rank | tokens/s of all |", "|---|--:|--:|" + "--:|" * (len(options.rates) + 2)]
    held = []
    for reading in READINGS:
        medians_s = {ranks: statistics.median(costs_s[reading, ranks]) for ranks in options.ranks}
        lines += rows_of(options, reading, medians_s)
        if reading == DEFAULT:
            held = [max(medians_s.values()) * tokens_per_s < LIMIT for tokens_per_s in options.rates]
    lines += ["", f"Below {LIMIT:.0%} of a core for all of these numbers of ranks, with {DEFAULT}:", ""]
    lines += [f"- at {rate(tokens_per_s)} tokens/s a rank: {'yes' if holds else 'no'}"
              for tokens_per_s, holds in zip(options.rates, held)]
    report = "\n".join(lines) + "\n"
    if options.out:
        pathlib.Path(options.out).write_text(report, encoding="utf-8")
    else:
        print(report, end="")
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
