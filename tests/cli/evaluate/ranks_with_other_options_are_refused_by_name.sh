# Ranks that would compute something else are refused by the option that differs, before a model is looked for.
evaluate='evaluate --checkpoint missing --data missing.txt'
ranks_differ --loss-on '--loss-on all' '--loss-on assistant' $evaluate
ranks_differ --query-instruction '--query-instruction Find' '' $evaluate --metric sts
ranks_differ --metric '--metric sts' '' $evaluate
