# generate --state-out keeps what a recurrent model has of a prompt; --state-in goes on from it as one prompt would.
# After "ab" comes what did not come after the last "ab": what goes on without the state of "abc" is wrong.
python3 -c 'print("abcabd" * 4000, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --model ten-nano --steps 40 --batch 2 --seq 64 --lr 1e-2 --warmup 0 --threads 1 --out ten > /dev/null
train -q --steps 1 --batch 1 --seq 64 --threads 1 --out llama > /dev/null
continued() { generate -q --checkpoint ten --threads 1 "$@"; }
continued --prompt 'abcab' --max-tokens 16 > whole
continued --prompt 'ab' --max-tokens 16 > forgetful
continued --prompt 'abc' --max-tokens 1 --state-out first.state > /dev/null
continued --prompt 'ab' --max-tokens 12 --state-in first.state --state-out second.state --state-after sample \
  --summary summary.json > behind
continued --prompt '' --max-tokens 4 --state-in second.state > after
python3 - <<'PYTHON'
import hashlib, json, struct
ids = {name: json.load(open(name))["ids"] for name in ("whole", "forgetful", "behind", "after")}
assert ids["behind"] + ids["after"] == ids["whole"], ids
assert ids["whole"][0] != ids["forgetful"][0], ids
summary = json.load(open("summary.json"))
assert summary["context_tokens"] == len("abc"), summary
first = open("first.state", "rb").read()
assert summary["state"] == {"path": "first.state", "sha256": hashlib.sha256(first).hexdigest()}, summary

def header(name):
    content = open(name, "rb").read()
    return json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]])

said = header("second.state")["__metadata__"]
assert said["tokens"] == str(len("abcab") + 12), said
assert said["model_sha256"] == summary["model"]["sha256"] and said["precision"] == "fp32", said
sizes = [len(open(name, "rb").read()) for name in ("first.state", "second.state")]
assert max(sizes) - min(sizes) < 16, sizes  # whatever they are of
open("other.state", "wb").write(first.replace(said["model_sha256"].encode(), b"0" * 64))

def forge(name, change):
    forged = header("first.state")
    change(forged)
    text = json.dumps(forged).encode()
    text += b" " * (-len(text) % 8)
    size = struct.unpack("<Q", first[:8])[0]
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + first[8 + size:])

forge("start.state", lambda forged: forged["__metadata__"].update(init="compat"))
forge("shape.state", lambda forged: forged["hidden"].update(shape=[1, *forged["hidden"]["shape"]]))
PYTHON

fails 3 'another model' continued --prompt x --state-in other.state
fails 3 'start.state: is of init compat, the model of lru' continued --prompt x --state-in start.state
fails 3 'shape.state: has another shape than the model' continued --prompt x --state-in shape.state
fails 3 'precision fp32' continued --prompt x --state-in first.state --mixed-precision bf16
fails 2 'family llama has keys and values' generate --checkpoint llama --prompt x --state-in first.state
echo '{"prompt": "x", "context": "a"}' > prompts.jsonl
fails 2 'family ten has a state' continued --input prompts.jsonl --context-cache contexts
fails 2 'one prompt' continued --input prompts.jsonl --state-out third.state
test ! -e third.state
