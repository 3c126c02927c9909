# What says which samples are kept is refused without --keep-if, as every sample is written then, before a model is read.
for option in '--keep all' '--answer-format tag' '--gold gold.jsonl'; do
  fails 2 "${option%% *}: has a meaning only with --keep-if" generate --checkpoint none --prompt hi $option
done
# A variable says it for evaluate, too.
TRAINWRIGHT_GOLD=gold.jsonl fails 4 'none: does not exist' generate --checkpoint none --prompt hi
