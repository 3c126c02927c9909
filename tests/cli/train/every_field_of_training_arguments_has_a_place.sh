# Each field of transformers' TrainingArguments is known in a file of --config and explained on a command line, and a
# file that transformers wrote is read: its defaults are the options that mean the same.
python3 - << 'PYTHON'
import json, os, pathlib, subprocess
source = pathlib.Path(os.environ["TRAINWRIGHT_SOURCE_DIR"])
listed = json.loads((source / "tests/cli/train/training_arguments.json").read_text())
fields = listed["fields"]
assert len(fields) > 100

def train(*arguments):
    return subprocess.run(["train", *arguments, "--print-config"], capture_output=True, text=True)

def of_file(values):
    pathlib.Path("file.json").write_text(json.dumps(values, indent=1))
    return train("--config", "file.json")

for name, default in fields.items():
    # What it asks for by a value that none expects is refused by the field's name, or is no matter here.
    result = of_file({name: "surely nothing"})
    assert "unknown key" not in result.stderr, result.stderr
    assert result.returncode == 0 or f"'{name}'" in result.stderr or name == "deepspeed", (name, result.stderr)
    assert result.returncode in (0, 2) or name == "deepspeed", (name, result.stderr)  # there is no such file
    if result.returncode == 2 and "no counterpart" in result.stderr:
        assert "hint: " in result.stderr, (name, result.stderr)
    result = of_file({name: default})
    assert result.returncode == 0, (name, result.stderr)
    # As a flag it is explained, unless it is one.
    for flag in {"--" + name, "--" + name.replace("_", "-")}:
        result = train(flag + "=1")
        is_ours = "unknown option" not in result.stderr
        assert is_ours or "hint: " in result.stderr, (flag, result.stderr)
        assert "lists the options" not in result.stderr or name == "weight_decay", (flag, result.stderr)

# Misspelled, it is the nearest name.
for wrong, right in {"learning_rat": "learning_rate", "metric_for_bst_model": "metric_for_best_model",
                     "wieght_decay": "weight-decay"}.items():
    assert f"did you mean '{right}'?" in of_file({wrong: 1}).stderr, wrong
assert "did you mean --learning-rate? its name here is --lr" in train("--learnin_rate").stderr

flags = ("--batch 8 --accum 1 --epochs 3.0 --lr 5e-05 --schedule linear --min-lr-ratio 0 --warmup 0 --optimizer adamw "
         "--weight-decay 0.0 --beta1 0.9 --beta2 0.999 --adam-eps 1e-08 --clip 1.0 --label-smoothing 0.0 --log-every 500 "
         "--save-every 500 --seed 42 --workers 0 --pin on --dist-timeout 1800 --mixed-precision no").split()
expected = train(*flags).stdout
assert expected
written = listed["written"]
assert written.pop("output_dir") == "out"
assert set(written) == set(fields) - {"output_dir"}
for values in (fields, written):
    result = of_file(values)
    assert result.returncode == 0 and result.stdout == expected, (result.stdout, result.stderr)
    told = [line for line in result.stderr.splitlines() if "without effect here: " in line]
    assert len(told) == 1 and "hub_strategy" in told[0] and "eval_delay" in told[0], result.stderr

# Version 4 has fields that 5 has not.
older = {name: value for name, value in written.items() if name not in listed["newer_than_4"]} | listed["written_by_4"]
assert len(older) == 131
for name, value in listed["written_by_4"].items():
    result = of_file({name: value})
    assert result.returncode == 0, (name, result.stderr)
expected = train(*" ".join(flags).replace("--warmup 0", "--warmup-ratio 0.0").split()).stdout
result = of_file(older)
assert result.returncode == 0 and result.stdout == expected, (result.stdout, result.stderr)
PYTHON
