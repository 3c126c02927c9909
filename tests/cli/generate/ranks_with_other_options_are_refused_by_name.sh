# Ranks that would compute something else are refused by the option that differs, before a model is looked for.
generate='generate --checkpoint missing --batch-invariant'
ranks_differ --prompt '--prompt a' '--prompt b' $generate
ranks_differ --temperature '--temperature 1' '' $generate --prompt a
ranks_differ --context-cache '--context-cache kept' '' $generate --input missing.jsonl
