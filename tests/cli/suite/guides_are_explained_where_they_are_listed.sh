# What the names of bench's claims and of train's presets stand for is said beside them, in the same words.
for tool in bench train; do
  [[ " $BUILT_TOOLS " == *" $tool "* ]] || continue
  "$tool" --help > help
  for guide in 'grit       GRIT of GRITLM' 'refocused  ReFocused-AI' 'rft        rejection fine-tuning' 'lora       a trainer of LoRA' \
    'ten        Temporal Eigenstate Networks'; do
    grep -q "^ *$guide" help || { echo "$tool --help does not say: $guide"; exit 1; }
  done
done
# Every guide of bench has presets, and every preset but the guides' own names for some is of one.
[[ " $BUILT_TOOLS " == *" train "* ]] || exit 0
train --list-presets | sed 's/[- ].*//' | grep -vxE 'test|production|low' | sort -u > of-presets
printf '%s\n' grit lora refocused rft ten | cmp - of-presets
