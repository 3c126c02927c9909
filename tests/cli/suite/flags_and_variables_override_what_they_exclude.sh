# A flag takes precedence over a variable, and that over a file of --config, also where one option excludes another.
file() { printf '%b' "$1" > f.yaml; }

file 'no-eos: true\n'
overrides "f.yaml: key 'no-eos' in line 1: --eos overrides it" 'eos: true' no-eos pretokenize --config f.yaml --eos
overrides '--eos overrides it' 'eos: true' no-eos TRAINWRIGHT_EOS=true pretokenize --config f.yaml
overrides 'TRAINWRIGHT_NO_EOS: --eos overrides it' 'eos: true' no-eos TRAINWRIGHT_NO_EOS=true pretokenize --eos
file 'verify: true\n'
overrides '--info overrides it' 'info: true' verify pack --config f.yaml --info
file 'max: true\n'
overrides '--fast overrides it' 'fast: true' max ckpt-compress --config f.yaml --fast
echo hi > text
pretokenize -q --eos text > with
TRAINWRIGHT_NO_EOS=true pretokenize -q --eos text | cmp - with

# In one file, and among variables, it is an error that names the places.
file 'eos: true\nno-eos: true\n'
fails 2 "f.yaml: key 'eos' in line 1: excludes f.yaml: key 'no-eos' in line 2" pretokenize --config f.yaml text
fails 2 'TRAINWRIGHT_EOS: excludes TRAINWRIGHT_NO_EOS' env TRAINWRIGHT_EOS=1 TRAINWRIGHT_NO_EOS=1 pretokenize text

# What only repeats a default excludes nothing: what --print-config has written is read back beside any option.
pretokenize --eos --print-config > printed.yaml
pretokenize -q --config printed.yaml text | cmp - with
pretokenize -q --config printed.yaml --no-eos text > out
pretokenize -q --no-eos text | cmp - out
for off in 'pretokenize --config f.yaml --eos=false' 'pretokenize --config f.yaml --eos=no' 'env TRAINWRIGHT_NO_EOS=true pretokenize --eos=false'; do
  echo 'no-eos: true' > f.yaml
  $off -q text | cmp - out
done
echo 'eos: true' > f.yaml
pretokenize -q --config f.yaml --no-eos=false text | cmp - with
pack -q --chunk 64 -o shards/ with
pack --print-config > printed.yaml
pack --config printed.yaml --info shards/ > out 2> err
test ! -s err || { cat err; exit 1; }
