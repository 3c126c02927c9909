#!/usr/bin/env bash
# Trains SentencePiece unigram models of one language each and compares ids and speed of this suite with the Python package's.
#
# usage: scripts/compare/unigram.sh [--rounds N] [--cpus LIST] [--languages LIST] OUT
#
#   --rounds N     interleaved repetitions of both (default: 5, the fewest of which anything is established)
#   --cpus LIST    the processor to be pinned to (default: the one with the least to do)
#   --languages LIST  of english,japanese,chinese (default: all)
#   OUT            writes OUT.json, from which the same command goes on, and OUT.md
#
# A model has 8,000 pieces of nmt_nfkc text, the Chinese one byte fallback, too, and is trained on the lines that both encode:
# 12 MB at most. English is that of the sample; Japanese and Chinese are the manual pages of Debian's packages manpages-ja and
# manpages-zh, in documents of up to 6,000 characters, fetched by apt-get into build/compare/unigram, where others may be put
# beforehand: japanese.txt and chinese.txt. PYTHON names a Python with scripts/make_unigram_fixtures.requirements.txt, and numpy,
# if that is to be timed; TRAINWRIGHT_TEST_DATA is the folder of real data (bench/). unigram.py compares other models and texts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/unigram.sh --help"
: "${TRAINWRIGHT_TEST_DATA:?the folder with bench/}"
python=${PYTHON:-python3}
"$python" -c 'import sentencepiece' 2> /dev/null ||
  die "$python lacks sentencepiece" "see scripts/make_unigram_fixtures.requirements.txt; PYTHON names another Python"
out=${*: -1} options=() languages=english,japanese,chinese
set -- "${@:1:$#-1}"
while (($# > 0)); do
  case $1 in
    --languages) languages=$2; shift 2 ;;
    *) options+=("$1"); shift ;;
  esac
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
texts=build/compare/unigram

# manual_pages PACKAGE FILE: the pages of a Debian package as one text.
manual_pages() {
  local folder=$scratch/$1
  mkdir -p "$folder" "$texts" && (cd "$folder" && apt-get -qq download "$1" && dpkg-deb -x ./*.deb .) &&
    find "$folder" -path '*/man/*' -name '*.gz' -type f -print0 | sort -z | xargs -0 gzip -dc > "$2.part" && mv "$2.part" "$2"
}

text_of() {
  if [[ $1 == english ]]; then
    zstd -dcq "$TRAINWRIGHT_TEST_DATA/bench/english-32MB.jsonl.zst"
  else
    cat "$texts/$1.txt"
  fi
}

pairs=()
for language in ${languages//,/ }; do
  case $language in
    english) ;;
    japanese) package=manpages-ja ;;
    chinese) package=manpages-zh ;;
    *) die "--languages: unknown language $language" "english, japanese or chinese" ;;
  esac
  if [[ $language != english && ! -e $texts/$language.txt ]] && ! manual_pages "$package" "$texts/$language.txt"; then
    say "$package cannot be had: $language is left out, whose text might be in $texts/$language.txt"
    continue
  fi
  text_of "$language" | "$python" scripts/compare/unigram.py --documents "$scratch/$language"
  "$python" scripts/compare/unigram.py --train-one "$scratch/$language"
  pairs+=("$scratch/$language.model" "$scratch/$language")
done
((${#pairs[@]} > 0)) || die "there is no text"
"$python" scripts/compare/unigram.py --speed build/release/tests/encode_speed --out "$out" "${options[@]}" "${pairs[@]}"
