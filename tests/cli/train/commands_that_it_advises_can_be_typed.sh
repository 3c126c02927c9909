# What a run prints as a command is one that a shell takes, whatever the folder is called.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train --batch 1 --accum 1 --seq 32 --threads 1 --model ten-nano --steps 1 --out 'out dir/run' > told 2>&1
grep -q "curves: tensorboard --logdir 'out dir/run/tb'\$" told
grep -q "next: generate --checkpoint 'out dir/run/" told
