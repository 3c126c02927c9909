# What says which samples are kept is refused without --keep-if, as every sample is written then, before a model is read.
for option in '--keep all' '--answer-format tag'; do
  fails 2 "${option%% *}: has a meaning only with --keep-if" generate --checkpoint none --prompt hi $option
done
