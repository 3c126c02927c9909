# With as many threads as are started at most without --threads, a tensor of 64-bit elements takes less than 256 MiB of memory, both ways:
# with --max, whose zstd at its highest level takes the most, with a base, plain or compressed, and with both.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=1"  # a sanitizer keeps freed memory for a while
python3 - <<'PYTHON'
import array, json, random, struct
size = 1 << 26
header = json.dumps({"w": {"dtype": "F64", "shape": [4096, size // 8 // 4096], "data_offsets": [0, size]}}).encode()
numbers = random.Random(7)
# The tensor and the difference repeat, too far away for the default to see, which zstd at its highest level lives on.
base = array.array("Q", (numbers.getrandbits(64) for _ in range(1 << 14)))
after = array.array("Q", ((element + (numbers.getrandbits(64) & 0x0F0F0F0F0F0F0F0F)) % 2**64 for element in base))
for name, elements in (("base", base), ("next", after)):
    with open(f"{name}.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + elements.tobytes() * (size // 8 >> 14))
PYTHON
# round_trip METHOD LEVEL OPTION...: both ways with the options; the listing says METHOD.
round_trip() {
  local method=$1 level=$2
  shift 2
  within_256_mib ckpt-compress -q -f $level "$@" -o small.twc.safetensors next.safetensors
  within_256_mib ckpt-compress -q -d -f "$@" -o restored.safetensors small.twc.safetensors
  cmp next.safetensors restored.safetensors
  ckpt-compress -l small.twc.safetensors > listed
  grep -q "$method" listed || { cat listed; exit 1; }
}
round_trip zstd --max --threads 11
ckpt-compress -q base.safetensors
for base in base.safetensors base.twc.safetensors; do
  round_trip 'base ' '' --threads 10 --base $base
  round_trip 'base .*zstd' --max --threads 8 --base $base
done
