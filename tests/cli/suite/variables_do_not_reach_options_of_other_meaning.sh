# What is set for one tool's option is none of an option of another meaning that another tool has by that name.
expect() {  # WANTED TOOL OPTION: its value as --print-config has it
  local wanted=$1 got
  case " $BUILT_TOOLS " in *" $2 "*) ;; *) return 0 ;; esac
  got=$("$2" --print-config | awk -v key="$3:" '$1 == key { gsub(/"/, "", $2); print $2 }')
  test "$got" = "$wanted" || { echo "$2 --$3: '$got', not '$wanted'"; exit 1; }
}
export TRAINWRIGHT_TOP_K=7 TRAINWRIGHT_FORMAT=jsonl
expect 7 generate top-k
expect jsonl pretokenize format
expect 100 evaluate top-k
expect auto embed format
expect auto generate format
export TRAINWRIGHT_EVALUATE_TOP_K=9 TRAINWRIGHT_EMBED_FORMAT=npy TRAINWRIGHT_GENERATE_FORMAT=text
expect 9 evaluate top-k
expect npy embed format
expect text generate format

export TRAINWRIGHT_SAMPLES=8 TRAINWRIGHT_AVERAGE=all TRAINWRIGHT_METRIC=retrieval TRAINWRIGHT_REPORT=runs/a
export TRAINWRIGHT_WARMUP=500 TRAINWRIGHT_KEEP=5 TRAINWRIGHT_TO=jsonl TRAINWRIGHT_SLICE=1/2 TRAINWRIGHT_VERIFY=100
expect 8 generate samples
expect '' evaluate samples
expect 0 gpu-probe samples
expect run evaluate average
expect retrieval evaluate metric
expect '' bench metric
expect '' bench report
expect 1 bench warmup
expect 500 train warmup
expect first generate keep
expect 5 train keep
expect auto ckpt-compress to
expect '' ckpt-compress slice
expect false pack verify
expect 100 pretokenize verify
export TRAINWRIGHT_EVALUATE_SAMPLES=samples.jsonl TRAINWRIGHT_EVALUATE_AVERAGE=all TRAINWRIGHT_GPU_PROBE_SAMPLES=3
export TRAINWRIGHT_BENCH_METRIC=[loss_nats] TRAINWRIGHT_BENCH_REPORT=bench.html TRAINWRIGHT_BENCH_WARMUP=2
export TRAINWRIGHT_GENERATE_KEEP=all TRAINWRIGHT_CKPT_COMPRESS_TO=raw TRAINWRIGHT_PACK_VERIFY=true
expect samples.jsonl evaluate samples
expect all evaluate average
expect 3 gpu-probe samples
expect '[loss_nats]' bench metric
expect bench.html bench report
expect 2 bench warmup
expect all generate keep
expect raw ckpt-compress to
expect true pack verify
