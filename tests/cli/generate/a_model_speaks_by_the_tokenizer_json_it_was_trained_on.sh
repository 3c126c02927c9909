# BPE of characters, Unigram and WordPiece go from text through shards and a checkpoint to text again: all that follow
# pretokenize read the tokenizer from what the one before wrote. --verify compares with a slow reading of the file.
families=$TRAINWRIGHT_SOURCE_DIR/tests/tok/testdata/text_tokenizers
seq -f 'the king said %g times that all is well' 60 > text
printf 'caf\303\251 \346\227\245\346\234\254 \360\237\230\200 <s> </s>\n' >> text
for family in llama2 gemma t5 bert; do
  mkdir folder-$family
  cp "$families/$family.json" folder-$family/tokenizer.json
  pretokenize -q --tokenizer folder-$family --verify 1 --summary summary.json text | pack -q --chunk 256 -o $family/
  grep -q '"documents_verified": *61' summary.json
  grep -q 'slow reading of tokenizer.json' summary.json
  train -q --model ten-nano --steps 2 --batch 1 --seq 32 --threads 1 --data $family/ --out run-$family > /dev/null
  generate -q --checkpoint run-$family --prompt 'the king' --max-tokens 6 --threads 1 > said-$family
  test -s said-$family
  python3 - said-$family <<'PYTHON'
import pathlib, sys
pathlib.Path(sys.argv[1]).read_bytes().decode()
PYTHON
  find run-$family -name tokenizer.json > kept
  test -s kept
  while read -r file; do cmp "$file" folder-$family/tokenizer.json; done < kept
done
