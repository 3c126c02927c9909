# A tool becomes its engine in the process that was started, and is not started again: what a debugger, a sanitizer or a
# profiler has put into the environment of that process is there to its end. The loader writes a file a process.
pretokenize -q "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" | pack -q --chunk 1024 -o shards/
LD_DEBUG=files LD_DEBUG_OUTPUT=$PWD/loader train --data shards --model llama-1m --seq 64 --batch 1 --accum 1 --steps 1 --dry-run \
  > out
test "$(ls loader.* | wc -l)" = 1
test "$(grep -c 'calling init: .*/libtorch_cpu.so' loader.*)" = 1
test "$(grep -c 'initialize program: ' loader.*)" = 2
