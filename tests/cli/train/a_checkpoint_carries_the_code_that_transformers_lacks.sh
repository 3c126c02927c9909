# A checkpoint of the family ten holds the Python that transformers opens it with, listed with its hash like all else there;
# code that somebody changed is refused.
seq 400 > text
pretokenize -q text | pack -q --chunk 256 -o shards/
cat > tiny.json << 'JSON'
{"model_type": "ten", "vocab_size": 512, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
 "num_eigenstates": 8, "num_heads": 2, "max_position_embeddings": 64}
JSON
train -q --data shards --model tiny.json --steps 1 --batch 1 --seq 64 --threads 1 --out run > /dev/null
python3 - <<'PYTHON'
import ast, hashlib, json, pathlib
folder = pathlib.Path("run/latest")
files = json.loads((folder / "metadata.json").read_text())["files"]
for name in ("configuration_ten.py", "modeling_ten.py"):
    code = (folder / name).read_bytes()
    assert files[name] == {"size_bytes": len(code), "sha256": hashlib.sha256(code).hexdigest()}, name
for kind, name in json.loads((folder / "config.json").read_text())["auto_map"].items():
    module, class_name = name.split(".")
    tree = ast.parse((folder / f"{module}.py").read_text())
    assert any(isinstance(node, ast.ClassDef) and node.name == class_name for node in tree.body), (kind, name)
PYTHON
echo "import os" >> run/latest/modeling_ten.py
fails 3 'modeling_ten.py: does not match its sha256' evaluate -q --checkpoint run --data shards --seq 64 --threads 1
