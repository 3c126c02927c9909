# The segments of a conversation of 3,000 questions are written within 15 s of CPU time, and are its questions and answers.
python3 - > long.jsonl <<'PYTHON'
import json
turns = [{"role": role, "content": f"{role} {i} is here"} for i in range(3000) for role in ("user", "assistant")]
print(json.dumps({"messages": turns}))
PYTHON
pretokenize -q --records sft --template plain --tokenizer "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" long.jsonl -o long.tokens
(ulimit -t 15 && pretokenize --decode --to jsonl -q long.tokens > decoded.jsonl)
python3 - <<'PYTHON'
import json
line = json.load(open("decoded.jsonl"))
texts = [segment["text"] for segment in line["segments"]]
assert "".join(texts) == line["text"]
answers = [segment["text"] for segment in line["segments"] if segment["loss"]]
assert len(answers) == 3000
for i, answer in enumerate(answers):
    assert answer.strip() == f"assistant {i} is here", (i, answer)
PYTHON
