# --summary holds the names that scripts rely on, after success and after failure.
echo 'to be or not to be' > text
pretokenize -q --summary good.json text > tokens
pack -q --summary pack.json tokens > shards.tws
pretokenize -q --summary bad.json --format jsonl text > /dev/null 2>&1 || true
python3 - <<'PYTHON'
import json
for name, tool, status in (("good", "pretokenize", 0), ("pack", "pack", 0), ("bad", "pretokenize", 3)):
    summary = json.load(open(name + ".json"))
    assert summary["schema"] == f"trainwright.{tool}.summary/1", summary
    assert summary["exit_status"] == status, summary
    assert summary["wall_time_s"] > 0 and summary["cpu_time_s"] > 0 and summary["max_memory_bytes"] > 1e6, summary
    assert ("error" in summary) == (status != 0), summary
PYTHON
