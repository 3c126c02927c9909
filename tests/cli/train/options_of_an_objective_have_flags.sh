# An option that only an objective has is a flag, a key, a variable and a value of --objective-option alike.
printf '{"query": "one", "pos": ["two"], "neg": []}\n{"query": "three", "pos": ["four"], "neg": []}\n' > pairs.jsonl
printf '{"text": "one two three"}\n{"text": "four five six"}\n' > text.jsonl
pretokenize -q --records contrastive pairs.jsonl | pack -q --chunk 512 -o pairs/
pretokenize -q text.jsonl | pack -q --chunk 512 -o text/
expect_explained '0.02 default' temperature --data pairs
expect_explained '0.05 command' temperature --data pairs --temperature 0.05
expect_explained '0.05 command' temperature --data pairs --temperature 0.5 --temperature 0.05
printf 'temperature: 0.05\n' > a.yaml
expect_explained '0.05 config' temperature --data pairs --config a.yaml
expect_explained '0.5 command' temperature --data pairs --config a.yaml --temperature 0.5
TRAINWRIGHT_GRIT_TEMPERATURE=0.05 expect_explained '0.05 environment' temperature --data pairs
# What is set for options of other tools that have such a name is not for these.
export TRAINWRIGHT_TEMPERATURE=0.7 TRAINWRIGHT_NEGATIVES=4 TRAINWRIGHT_MODE=concat TRAINWRIGHT_POOLING=cls
expect_explained '0.02 default' temperature --data pairs
unset TRAINWRIGHT_TEMPERATURE TRAINWRIGHT_NEGATIVES TRAINWRIGHT_MODE TRAINWRIGHT_POOLING
test "$(explained temperature --data pairs --objective-option temperature=0.05 | cut -d' ' -f1)" = 0.05

# What the data decides, and how long samples are.
expect_explained 'grit auto' objective --data pairs
expect_explained 'embedding auto' mode --data pairs
expect_explained 'unified auto' mode --data pairs --data text
expect_explained 'generative auto' mode --data text --objective grit
expect_explained '128 auto' seq --data pairs
expect_explained '48 auto' seq --data pairs --passage-max-len 48
expect_explained '200 auto' seq --data pairs --data text --generative-max-len 200
expect_explained 'true auto' drop-last --data pairs

# Other objectives have none of it.
TRAINWRIGHT_TEMPERATURE=0.7 expect_explained 'lm auto' objective --data text
expect_explained '' temperature --data text
expect_explained '' mode --data text

explain_fails '--temperature: has a meaning only with --objective grit' --data text --temperature 0.05
explain_fails '--temperature: has a meaning only with --objective grit' --data text --config a.yaml
TRAINWRIGHT_GRIT_TEMPERATURE=0.05 explain_fails \
  'TRAINWRIGHT_GRIT_TEMPERATURE: has a meaning only with --objective grit' --data text
explain_fails "gives 'temperature' twice" --data pairs --temperature 0.05 --objective-option temperature=0.05
explain_fails 'is not one of mean' --data pairs --pooling first
TRAINWRIGHT_GRIT_POOLING=first explain_fails "TRAINWRIGHT_GRIT_POOLING: .*is not one of mean" --data pairs
explain_fails "has no option 'warmth'" --data pairs --objective-option warmth=1
explain_fails 'a whole number from 1' --data pairs --group-size 1.5
