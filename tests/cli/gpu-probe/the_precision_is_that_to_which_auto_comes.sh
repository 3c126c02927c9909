# gpu-probe recommends the precision to which train's --mixed-precision auto comes, whatever was measured of the kernels.
export XDG_CACHE_HOME=$PWD/cache
seq 2000 > text
pretokenize -q text | pack -q --chunk 512 -o shards/
# agree WANTED KERNELS: both say so; an empty WANTED asks train alone. A machine whose GEMMs spread leaves it to train.
agree() {
  local taken advised
  taken=$(explained mixed-precision --device cpu --mixed-precision auto --kernels "$2")
  taken=${taken% *}
  test -z "$1" -o "$taken" = "$1" || { echo "$2: train takes '$taken', not '$1'"; cat err; exit 1; }
  gpu-probe -q --quick --disk-size 0 --device cpu --threads 1 --kernels "$2" --recommend > machine.yaml
  advised=$(sed -n 's/^mixed-precision: "\(.*\)"$/\1/p' machine.yaml)
  test "$advised" = "$taken" || grep -q '^# mixed-precision is left to train: the rate of ' machine.yaml || {
    echo "$2: gpu-probe says '$advised', train takes '$taken'"
    cat machine.yaml
    exit 1
  }
}
agree '' usual
agree no bf16=emulated
grep -q avx512vl /proc/cpuinfo || exit 0

# The same file is read by both: what was measured of this machine, and then other rates in its place.
agree '' auto
test -s cache/trainwright/kernels.json
measured() {  # measured FP32 BF16
  python3 - "$@" << 'PYTHON'
import json, sys
path, rates = "cache/trainwright/kernels.json", dict(zip(("fp32", "bf16"), map(float, sys.argv[1:])))
known = json.load(open(path))
for machine in known["machines"]:
    machine["kernels"] = "fp32=blocks,bf16=widened"
    machine["flops_per_s"] = {kind: rates[kind[:4]] for kind in ("fp32=blocks", "fp32=library", "bf16=widened")}
json.dump(known, open(path, "w"))
PYTHON
}
measured 100 172
agree bf16 auto
for rate in 105 101 95; do
  measured 100 $rate
  agree no auto
done
