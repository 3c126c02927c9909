# Ranks that would compute something else are refused by the option that differs, before a model is looked for.
embed='embed --checkpoint missing --mine-negatives missing.jsonl'
ranks_differ --first-place '--first-place 3' '' $embed
ranks_differ --pooling '--pooling cls' '' $embed
