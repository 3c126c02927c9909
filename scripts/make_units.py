#!/usr/bin/env python3
"""Makes unit-conversion questions with worked answers: data for rejection fine-tuning that everybody may use.

usage: make_units.py --out DIR [--seed N] [--train N] [--valid N] [--test N]
       make_units.py --check DIR

Writes JSON Lines into DIR, three files a split:
  SPLIT.sft.jsonl      {"question", "answer"}: a rationale that ends in <answer>NUMBER</answer>; for pretokenize --records sft
  SPLIT.prompts.jsonl  {"prompt"}: the question and a space, as the template qa-space has it; for generate
  SPLIT.gold.jsonl     {"prompt", "gold", "value", "from", "to"}: for the scorer alone
and manifest.json: seed, counts, hashes of the files, the conversion factors, and the proof that splits share nothing.

Splits: train, valid, test (conversions that train has not: a conversion is the triple value, unit, unit), test_pairs
(pairs of units that no other split has), test_phrasings (conversions and phrasings that train has not), test_hard
(values with decimals). Which split a conversion belongs to is decided by its hash, so that no question of one split
asks for a conversion of another. --check reads the files again and proves it from them alone; a split that overlaps is
exit status 1. Factors are exact fractions. Needs nothing but Python.
"""
import argparse
import hashlib
import itertools
import json
import pathlib
import random
import sys
from fractions import Fraction as F

# Unit: its size in the family's base unit, and its names; the last is the one that rationales count in.
INCH, POUND, GALLON = F("0.0254"), F("453.59237"), F("3785.411784")
YEAR = F("365.24219878") * 86400
FAMILIES = {
    "time": {"second": (F(1), ["s", "seconds"]), "minute": (F(60), ["min", "minutes"]), "hour": (F(3600), ["h", "hours"]),
             "day": (F(86400), ["days"]), "week": (F(604800), ["weeks"]), "month": (YEAR / 12, ["months"]),
             "year": (YEAR, ["years"]), "decade": (YEAR * 10, ["decades"]), "century": (YEAR * 100, ["centuries"])},
    "mass": {"gram": (F(1), ["g", "grams"]), "kilogram": (F(1000), ["kg", "kilograms"]),
             "ounce": (POUND / 16, ["oz", "ounces"]), "pound": (POUND, ["lb", "pounds"]),
             "tonne": (F(10**6), ["t", "tonnes"])},
    "length": {"millimetre": (F("0.001"), ["mm"]), "centimetre": (F("0.01"), ["cm"]), "metre": (F(1), ["m", "metres"]),
               "kilometre": (F(1000), ["km", "kilometres"]), "inch": (INCH, ["in", "inches"]),
               "foot": (INCH * 12, ["ft", "feet"]), "yard": (INCH * 36, ["yd", "yards"]),
               "mile": (INCH * 63360, ["mi", "miles"])},
    "volume": {"millilitre": (F(1), ["ml", "cc", "cm^3"]), "litre": (F(1000), ["l", "litres"]),
               "cubic metre": (F(10**6), ["m^3", "cubic metres"]), "fluid ounce": (GALLON / 128, ["fl oz", "US fluid ounces"]),
               "pint": (GALLON / 8, ["pt", "US pints"]), "quart": (GALLON / 4, ["qt", "US quarts"]),
               "gallon": (GALLON, ["gal", "US gallons"])},
    "speed": {"metre a second": (F(1), ["m/s"]), "kilometre an hour": (F(5, 18), ["km/h", "kmh"]),
              "mile an hour": (INCH * 63360 / 3600, ["mph", "mi/h"]), "foot a second": (INCH * 12, ["ft/s"]),
              "inch a second": (INCH, ["in/s"])},
    "data": {"bit": (F(1, 8), ["bits"]), "byte": (F(1), ["B", "bytes"]), "kilobyte": (F(1000), ["KB", "kB"]),
             "megabyte": (F(10**6), ["MB", "megabytes"]), "gigabyte": (F(10**9), ["GB", "gigabytes"])},
}
PHRASINGS = [
    "How many {b} are {v} {a}?", "What is {v} {a} in {b}?", "Convert {v} {a} to {b}.", "Express {v} {a} in {b}.",
    "{v} {a} is how many {b}?", "How many {b} are there in {v} {a}?", "Change {v} {a} into {b}.",
    "What do {v} {a} come to in {b}?", "Give {v} {a} in {b}.", "Write {v} {a} as {b}.", "How much is {v} {a} in {b}?",
    "Please convert {v} {a} into {b}.", "If I have {v} {a}, how many {b} is that?", "Tell me {v} {a} in {b}.",
    "I need {v} {a} in {b}.", "{v} {a} in {b}?", "Find the number of {b} in {v} {a}.", "State {v} {a} in {b}.",
    "What number of {b} equals {v} {a}?", "Turn {v} {a} into {b}.", "How many {b} make {v} {a}?",
    "Work out {v} {a} in {b}.", "Compute {v} {a} in {b}.", "Rewrite {v} {a} in {b}.",
]
HELD_OUT_PHRASINGS = [
    "Someone measured {v} {a}. What would that be in {b}?", "Measured in {b}, what are {v} {a}?",
    "A sign says {v} {a}; how many {b} does it mean?", "Which amount in {b} corresponds to {v} {a}?",
    "To how many {b} do {v} {a} amount?", "Restate {v} {a} using {b}.", "You are given {v} {a}. Answer in {b}.",
    "In {b}, please: {v} {a}.",
]
SPLITS = ["train", "valid", "test", "test_pairs", "test_phrasings", "test_hard"]
LEAST, MOST = F(1, 1000), 10**6  # answers beyond these say little about reasoning


def share(text):
    """A number in [0, 1) that the text alone decides."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def triple_hash(value, a, b):
    return hashlib.sha256(f"{F(value)}|{a}|{b}".encode()).hexdigest()


def shown(number):
    """At most six significant digits, all of those of a number that has no more; never an exponent."""
    digits = 6
    while True:
        text = f"{float(number):.{digits}g}"
        text = f"{F(text).__float__():f}" if "e" in text else text
        whole = text.split(".")[0].lstrip("-")
        if len(whole) <= digits or F(text) == number:
            break
        digits = len(whole)
    return text.rstrip("0").rstrip(".") if "." in text else text


def split_of(value, a, b):
    if share("pair|" + "|".join(sorted([a, b]))) < 0.1:
        return "test_pairs"
    if F(value).denominator != 1:
        return "test_hard"
    at = share("triple|" + triple_hash(value, a, b))
    return "train" if at < 0.66 else "valid" if at < 0.74 else "test" if at < 0.92 else "test_phrasings"


def all_triples(rng):
    """Every conversion, sorted: whole values, and per pair a few with decimals."""
    triples = []
    for units in FAMILIES.values():
        for a, b in itertools.permutations(units, 2):
            tenths = [F(rng.randrange(5, 1001), 10) for _ in range(4)]
            for value in sorted({F(v) for v in range(1, 11)} | {v for v in tenths if v.denominator > 1}):
                answer = value * units[a][0] / units[b][0]
                if LEAST <= answer <= MOST:
                    triples.append((value, a, b, units))
    return triples


def record(triple, phrasing, rng):
    value, a, b, units = triple
    (size_a, names_a), (size_b, names_b) = units[a], units[b]
    question = phrasing.format(v=shown(value), a=rng.choice(names_a), b=rng.choice(names_b))
    factor = size_a / size_b
    # The larger unit is the one, and the answer is that of the numbers that stand there: what is written is true.
    if factor >= 1:
        factor = shown(factor)
        answer = shown(value * F(factor))
        step = f"1 {a} = {factor} {names_b[-1]}, so {shown(value)} * {factor} = {answer}."
    else:
        factor = shown(1 / factor)
        answer = shown(value / F(factor))
        step = f"1 {b} = {factor} {names_a[-1]}, so {shown(value)} / {factor} = {answer}."
    return {"question": question, "answer": f"{step} <answer>{answer}</answer>", "gold": float(value * size_a / size_b),
            "value": str(value), "from": a, "to": b}


def make_split(name, triples, count, seed):
    rng = random.Random(f"{seed}/{name}")
    phrasings = HELD_OUT_PHRASINGS if name == "test_phrasings" else PHRASINGS
    records, seen = [], set()
    pool = list(triples)
    if not pool:
        sys.exit(f"make_units.py: no conversion falls to {name}")
    rng.shuffle(pool)
    for triple in itertools.islice(itertools.cycle(pool), 50 * count):
        if len(records) == count:
            break
        made = record(triple, rng.choice(phrasings), rng)
        if made["question"] not in seen:
            seen.add(made["question"])
            records.append(made)
    if len(records) < count:
        sys.exit(f"make_units.py: {name} has only {len(records)} different questions; ask for fewer")
    return records


def write_lines(path, objects):
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in objects)
    path.write_text(text, encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def proof(folder):
    """What the files say about overlaps: for every two splits, shared conversions, questions and pairs of units."""
    keys = {}
    for name in SPLITS:
        gold = read_lines(folder / f"{name}.gold.jsonl")
        keys[name] = {"conversions": {triple_hash(item["value"], item["from"], item["to"]) for item in gold},
                      "questions": {hashlib.sha256(item["prompt"].strip().encode()).hexdigest() for item in gold},
                      "pairs": {"|".join(sorted([item["from"], item["to"]])) for item in gold}}
    overlaps = {}
    for left, right in itertools.combinations(SPLITS, 2):
        kinds = ["conversions", "questions"] + (["pairs"] if "test_pairs" in (left, right) else [])
        for kind in kinds:
            overlaps[f"{left}/{right} {kind}"] = len(keys[left][kind] & keys[right][kind])
    sets = {name: hashlib.sha256("\n".join(sorted(sets["conversions"])).encode()).hexdigest() for name, sets in keys.items()}
    return {"overlaps": overlaps, "conversions": {name: len(sets["conversions"]) for name, sets in keys.items()},
            "conversions_sha256": sets}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, help="folder to write")
    parser.add_argument("--check", type=pathlib.Path, metavar="DIR", help="prove the splits of a folder disjoint")
    parser.add_argument("--seed", type=int, default=0)
    for name, count in (("train", 1000), ("valid", 200), ("test", 1000)):
        parser.add_argument(f"--{name}", type=int, default=count, metavar="N", help=f"questions (default: {count})")
    parser.add_argument("--extra-tests", type=int, default=200, metavar="N",
                        help="questions of each further test split (default: 200)")
    args = parser.parse_args()
    if (args.out is None) == (args.check is None):
        parser.error("give --out or --check")
    folder = args.out or args.check

    manifest = None
    if args.out is not None:
        folder.mkdir(parents=True, exist_ok=True)
        triples = all_triples(random.Random(f"{args.seed}/values"))
        counts = {"train": args.train, "valid": args.valid, "test": args.test}
        manifest = {"schema": "trainwright.units/1", "seed": args.seed, "counts": {}, "files_sha256": {},
                    "factors": {family: {unit: str(size) for unit, (size, _) in units.items()}
                                for family, units in FAMILIES.items()}}
        for name in SPLITS:
            mine = [triple for triple in triples if split_of(*triple[:3]) == name]
            records = make_split(name, mine, counts.get(name, args.extra_tests), args.seed)
            manifest["counts"][name] = len(records)
            for kind, lines in (
                    ("sft", [{"question": r["question"], "answer": r["answer"]} for r in records]),
                    ("prompts", [{"prompt": r["question"] + " "} for r in records]),
                    ("gold", [{"prompt": r["question"] + " ", "gold": r["gold"], "value": r["value"], "from": r["from"],
                               "to": r["to"]} for r in records])):
                file = f"{name}.{kind}.jsonl"
                manifest["files_sha256"][file] = write_lines(folder / file, lines)
    found = proof(folder)
    if manifest is not None:
        manifest.update(found)
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    bad = {name: count for name, count in found["overlaps"].items() if count}
    for name, count in bad.items():
        print(f"make_units.py: {name}: {count} shared", file=sys.stderr)
    print(json.dumps({"conversions": found["conversions"], "overlapping": sum(bad.values())}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
