# --early-stop counts evaluations of --eval-every: on resume with another interval those made before count as they were made.
seq 400 | sed 's/$/ bottles of beer on the wall/' > text
tail -90 text > held
pretokenize -q text | pack -q --chunk 256 -o shards/
pretokenize -q held | pack -q --chunk 256 -o held-out/
# A learning rate that does nothing: no evaluation is better than the first.
begin() { # begin RUN ARGUMENT...
  train -q --model neox-tiny --data shards --eval-data held-out --seq 64 --batch 2 --lr 1e-30 --weight-decay 0 \
    --schedule constant --warmup 0 --threads 1 --out "$@"
}
ended() { # ended RUN STEP: by --early-stop
  local wanted="$2 early stop" got
  got=$(python3 -c 'import json, sys; end = json.load(sys.stdin); print(end["steps"], end["reason"])' < "$1/complete.json")
  test "$got" = "$wanted" || { echo "$1: '$got', not '$wanted'"; exit 1; }
}
begin denser --steps 12 --eval-every 4 --early-stop 5
train -q --resume --out denser --steps 20 --eval-every 1
ended denser 14
begin sparser --steps 3 --eval-every 1 --early-stop 5
train -q --resume --out sparser --steps 40 --eval-every 5
ended sparser 10
# Evaluations of saves between those of --eval-every do not count.
begin saves --steps 20 --eval-every 4 --early-stop 2 --save-every 3 --keep-best 1
ended saves 8
