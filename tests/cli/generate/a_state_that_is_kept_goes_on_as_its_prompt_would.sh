# generate --state-out keeps what a recurrent model has of a prompt; --state-in goes on from it as one prompt would.
head -c 20000 "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" > text.txt
pretokenize -q text.txt | pack -q --chunk 256 -o shards/
train -q --model ten-nano --steps 2 --batch 1 --seq 64 --threads 1 --out ten > /dev/null
train -q --steps 1 --batch 1 --seq 64 --threads 1 --out llama > /dev/null
continued() { generate -q --checkpoint ten --threads 1 "$@"; }
continued --prompt 'To be, or not to be' --max-tokens 16 > whole
continued --prompt 'To be, or ' --max-tokens 1 --state-out first.state > /dev/null
continued --prompt 'not to be' --max-tokens 12 --state-in first.state --state-out second.state --state-after sample \
  --summary summary.json > behind
continued --prompt '' --max-tokens 4 --state-in second.state > after
python3 - <<'PYTHON'
import hashlib, json, struct
ids = {name: json.load(open(name))["ids"] for name in ("whole", "behind", "after")}
assert ids["behind"] + ids["after"] == ids["whole"], ids
summary = json.load(open("summary.json"))
assert summary["context_tokens"] == len("To be, or "), summary
first = open("first.state", "rb").read()
assert summary["state"] == {"path": "first.state", "sha256": hashlib.sha256(first).hexdigest()}, summary

def header(name):
    content = open(name, "rb").read()
    return json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]])

said = header("second.state")["__metadata__"]
assert said["tokens"] == str(len("To be, or not to be") + 12), said
assert said["model_sha256"] == summary["model"]["sha256"] and said["precision"] == "fp32", said
sizes = [len(open(name, "rb").read()) for name in ("first.state", "second.state")]
assert max(sizes) - min(sizes) < 16, sizes  # whatever they are of
open("other.state", "wb").write(first.replace(said["model_sha256"].encode(), b"0" * 64))
PYTHON

fails 3 'another model' continued --prompt x --state-in other.state
fails 3 'precision fp32' continued --prompt x --state-in first.state --mixed-precision bf16
fails 2 'family llama has keys and values' generate --checkpoint llama --prompt x --state-in first.state
echo '{"prompt": "x", "context": "a"}' > prompts.jsonl
fails 2 'family ten has a state' continued --input prompts.jsonl --context-cache contexts
fails 2 'one prompt' continued --input prompts.jsonl --state-out third.state
test ! -e third.state
