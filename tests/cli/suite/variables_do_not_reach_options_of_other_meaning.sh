# What is set for one tool's option is none of an option of another meaning that another tool has by that name.
expect() {  # WANTED TOOL OPTION: its value as --print-config has it
  local wanted=$1 got
  case " $BUILT_TOOLS " in *" $2 "*) ;; *) return 0 ;; esac
  got=$("$2" --print-config | awk -v key="$3:" '$1 == key { gsub(/"/, "", $2); print $2 }')
  test "$got" = "$wanted" || { echo "$2 --$3: '$got', not '$wanted'"; exit 1; }
}
export TRAINWRIGHT_TOP_K=7 TRAINWRIGHT_FORMAT=jsonl
expect 7 generate top-k
expect jsonl pretokenize format
expect 100 evaluate top-k
expect auto embed format
expect auto generate format
export TRAINWRIGHT_EVALUATE_TOP_K=9 TRAINWRIGHT_EMBED_FORMAT=npy TRAINWRIGHT_GENERATE_FORMAT=text
expect 9 evaluate top-k
expect npy embed format
expect text generate format
