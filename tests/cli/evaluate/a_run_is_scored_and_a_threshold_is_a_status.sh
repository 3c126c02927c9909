# What a run scores is printed as JSON; below --min-ndcg the status is 1.
printf 'q1 0 d1 1\nq1 0 d2 0\n' > qrels
printf 'q1 Q0 d2 1 0.9 x\nq1 Q0 d1 2 0.8 x\n' > run
evaluate -q --metric retrieval --run run --qrels qrels > result
python3 - <<'PYTHON'
import json, math
result = json.load(open("result"))
assert result["metric"] == "retrieval" and result["queries"] == 1
assert abs(result["ndcg_at_10"] - 1 / math.log2(3)) < 1e-12
assert result["ndcg_at_10_interval"] == [result["ndcg_at_10"]] * 2
assert result["mrr_at_10"] == 0.5 and result["recall_at_1"] == 0 and result["map"] == 0.5
PYTHON
evaluate -q --metric retrieval --run run --qrels qrels --min-ndcg 0.63 > /dev/null
status=0
evaluate -q --metric retrieval --run run --qrels qrels --min-ndcg 0.64 > /dev/null || status=$?
test "$status" = 1
refused() {  # TEXT ARGUMENT...
  fails 2 "$1" evaluate -q "${@:2}"
}
refused '--qrels' --metric retrieval --run run
refused 'is an input' --metric retrieval --run run --qrels qrels --run-out qrels
refused '--run' --metric perplexity --checkpoint run --data run --run run
grep -q 'it is for --metric retrieval' err
refused '--corpus: has no meaning for --metric answers' --metric answers --samples run --gold run --corpus run
refused '--run: does not go with the other inputs' --metric retrieval --checkpoint run --corpus run --queries run \
  --qrels qrels --run run
refused '--metric-at' --metric retrieval --run run --qrels qrels --metric-at 10,5
