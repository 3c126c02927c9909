# A tensor of half a GiB that comes through a pipe takes less than 256 MiB of memory, and gives the bytes that the file gives. So it is with
# a base of that size, plain or compressed, both ways.
large_tensor big.safetensors 0
ckpt-compress -q -o big.twc.safetensors big.safetensors
cat big.safetensors | within_256_mib ckpt-compress -q --threads 2 --to safetensors -o of-pipe -
cmp big.twc.safetensors of-pipe

large_tensor next.safetensors 1
within_256_mib ckpt-compress -q --threads 2 --base big.safetensors -o of-file next.safetensors
cat next.safetensors | within_256_mib ckpt-compress -q -f --threads 2 --base big.twc.safetensors --to safetensors -o of-pipe -
cmp of-file of-pipe
for base in big.safetensors big.twc.safetensors; do
  within_256_mib ckpt-compress -q -d --threads 2 --base $base -o - of-pipe | cmp - next.safetensors
done
ckpt-compress -l of-pipe > listed
grep -q 'base const' listed
