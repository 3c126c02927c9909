# --top-p is a share above 0: help says so, and 0 is refused before a model is looked for.
generate --help > help
grep -A 3 -e '--top-p' help | tr -s '\n ' ' ' | grep -q 'above 0 and at most 1' || { cat help; exit 1; }
refused() { fails 2 'above 0 and at most 1' generate --checkpoint missing --prompt x --temperature 1 --top-p "$1"; }
refused 0
refused 1.01
fails 4 'missing' generate --checkpoint missing --prompt x --temperature 1 --top-p 1
