# A tensor of half a GiB takes less than 256 MiB of memory, both ways, with two threads.
large_tensor big.safetensors 0
for level in --fast ''; do
  within_256_mib ckpt-compress -q -f --threads 2 $level -o big.twc.safetensors big.safetensors
done
within_256_mib ckpt-compress -q -d --threads 2 -o restored.safetensors big.twc.safetensors
ckpt-compress -l big.twc.safetensors > listed
grep -q rank-one listed
cmp big.safetensors restored.safetensors
