# A variable that one tool takes keeps no other from its work: neither a value that only the first has, nor a flag that asks
# for something else here. Given as an option it is refused.
clidoc json > tools.json
python3 - << 'PYTHON'
import collections, json, os, subprocess, sys

options_of = collections.defaultdict(list)
with open("tools.json") as file:
    for tool in json.load(file):
        for option in tool["options"]:
            if "environment" in option and "choices" in option:
                options_of[option["environment"]].append((tool["tool"], set(option["choices"])))
tried = 0
for variable, options in options_of.items():
    every = set().union(*(choices for _, choices in options))
    for tool, choices in options:
        if tool not in os.environ["BUILT_TOOLS"].split():
            continue
        for choice in sorted(every - choices):
            done = subprocess.run([tool, "--print-config"], env={**os.environ, variable: choice}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{variable}={choice} {tool}: {done.stderr}")
            tried += 1
assert tried > 0
PYTHON

echo 'to be or not to be' > text
export TRAINWRIGHT_JSON=true
pretokenize -q text | pack -q --chunk 64 -o shards/
fails 2 '--json: ' pack -q --json -o other/ shards/
case " $BUILT_TOOLS " in
  *" train "*)
    train -q --explain --steps 1 --threads 1 > /dev/null
    fails 2 '--json' train -q --json --explain --steps 1 --threads 1
    fails 2 'int8' train -q --quant int8 --explain --steps 1 --threads 1
    TRAINWRIGHT_QUANT=nf4 train --print-config > config.yaml
    grep -qx 'quant: "nf4"' config.yaml
    ;;
esac
