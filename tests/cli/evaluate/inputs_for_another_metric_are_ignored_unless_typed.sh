# What the environment or a file names for other metrics is ignored; the same on the command line is refused.
printf 'q1 0 d1 1\n' > qrels
printf 'q1 Q0 d1 1 0.9 x\n' > run
printf '{"prompt": "2+2?", "text": "<answer>4</answer>", "sample": 0}\n' > samples
printf '{"prompt": "2+2?", "gold": 4}\n' > gold
export TRAINWRIGHT_CHECKPOINT=runs/none TRAINWRIGHT_DATA=shards
evaluate -q --metric answers --samples samples --gold gold > /dev/null
evaluate -q --metric retrieval --run run --qrels qrels > /dev/null
unset TRAINWRIGHT_CHECKPOINT TRAINWRIGHT_DATA
printf '%s\n' 'data: shards' 'samples: samples' 'gold: gold' 'run: run' 'qrels: qrels' > evaluate.yaml
evaluate -q --config evaluate.yaml --metric answers > /dev/null
evaluate -q --config evaluate.yaml --metric retrieval > /dev/null
fails 2 '--qrels: has no meaning for --metric answers' evaluate -q --metric answers --samples samples --gold gold --qrels qrels
