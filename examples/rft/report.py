#!/usr/bin/env python3
"""The table of the Makefile beside this: how often base, sft and rft answer, and answer rightly."""
import json
import pathlib
import sys

work = pathlib.Path(sys.argv[1])
kept = json.loads((work / "kept.json").read_text())


def share(score, name):
    low, high = score[name + "_interval"]
    return f"{score[name]:.1%} ({low:.1%} to {high:.1%})"


gsm8k = (work / "gsm8k").exists()
print(f"# Rejection fine-tuning on {'GSM8K' if gsm8k else 'unit conversions'}\n")
print(f"{kept['prompts']} questions without worked answers, {kept['samples']} samples at temperature 0.7: "
      f"{kept['samples_passed'] / max(1, kept['samples']):.1%} of them right, {kept['samples_kept']} distinct ones kept, for "
      f"{kept['prompts_with_kept']} questions; {kept['tokens_per_s']:,.0f} tokens/s.\n")
held = "the test set's questions" if gsm8k else "questions whose conversions were not trained on"
print(f"Greedy answers to {held}; in brackets Wilson's 95 % interval. Right: "
      "within 5 %; strictly: within 0.1 %.\n")
print("| questions | model | n | right | strictly right | answers at all |")
print("|---|---|---|---|---|---|")
for path in sorted(work.glob("scores/base-*.json")):
    test = path.stem.removeprefix("base-")
    for model in ("base", "sft", "rft"):
        score = json.loads((work / "scores" / f"{model}-{test}.json").read_text())
        print(f"| {test} | {model} | {score['n']} | {share(score, 'accuracy')} | {share(score, 'strict_accuracy')} | "
              f"{share(score, 'answer_rate')} |")
