# An option that only an objective has is a flag, a key, a variable and a value of --objective-option alike.
printf '{"query": "one", "pos": ["two"], "neg": []}\n{"query": "three", "pos": ["four"], "neg": []}\n' > pairs.jsonl
printf '{"text": "one two three"}\n{"text": "four five six"}\n' > text.jsonl
pretokenize -q --records contrastive pairs.jsonl | pack -q --chunk 512 -o pairs/
pretokenize -q text.jsonl | pack -q --chunk 512 -o text/
explained() {  # OPTION ARGUMENT...: the value of an option and who gave it
  local option=$1
  shift
  train -q --explain --steps 1 --threads 1 "$@" 2> err | awk -v option="$option" '$1 == option { print $2, $3 }'
}
expect() {  # WANTED OPTION ARGUMENT...
  local wanted=$1 got
  shift
  got=$(explained "$@") || true
  test "$got" = "$wanted" || { echo "$*: '$got', not '$wanted'"; cat err; exit 1; }
}
expect '0.02 default' temperature --data pairs
expect '0.05 command' temperature --data pairs --temperature 0.05
expect '0.05 command' temperature --data pairs --temperature 0.5 --temperature 0.05
printf 'temperature: 0.05\n' > a.yaml
expect '0.05 config' temperature --data pairs --config a.yaml
expect '0.5 command' temperature --data pairs --config a.yaml --temperature 0.5
TRAINWRIGHT_GRIT_TEMPERATURE=0.05 expect '0.05 environment' temperature --data pairs
# What is set for options of other tools that have such a name is not for these.
export TRAINWRIGHT_TEMPERATURE=0.7 TRAINWRIGHT_NEGATIVES=4 TRAINWRIGHT_MODE=concat TRAINWRIGHT_POOLING=cls
expect '0.02 default' temperature --data pairs
unset TRAINWRIGHT_TEMPERATURE TRAINWRIGHT_NEGATIVES TRAINWRIGHT_MODE TRAINWRIGHT_POOLING
test "$(explained temperature --data pairs --objective-option temperature=0.05 | cut -d' ' -f1)" = 0.05

# What the data decides, and how long samples are.
expect 'grit auto' objective --data pairs
expect 'embedding auto' mode --data pairs
expect 'unified auto' mode --data pairs --data text
expect 'generative auto' mode --data text --objective grit
expect '128 auto' seq --data pairs
expect '48 auto' seq --data pairs --passage-max-len 48
expect '200 auto' seq --data pairs --data text --generative-max-len 200
expect 'true auto' drop-last --data pairs

# Other objectives have none of it.
TRAINWRIGHT_TEMPERATURE=0.7 expect 'lm auto' objective --data text
expect '' temperature --data text
expect '' mode --data text

refused() {  # TEXT ARGUMENT...
  fails 2 "$1" train -q --explain --steps 1 --threads 1 "${@:2}"
}
refused '--temperature: has a meaning only with --objective grit' --data text --temperature 0.05
refused '--temperature: has a meaning only with --objective grit' --data text --config a.yaml
refused "gives 'temperature' twice" --data pairs --temperature 0.05 --objective-option temperature=0.05
refused 'is not one of mean' --data pairs --pooling first
refused "has no option 'warmth'" --data pairs --objective-option warmth=1
refused 'a whole number from 1' --data pairs --group-size 1.5
