# What --print-config writes of options that need another, which are their defaults, is read back without that one.
embed --print-config > printed.yaml
grep -q '^negatives: ' printed.yaml
fails 4 'none: does not exist' embed --config printed.yaml --checkpoint none < /dev/null
