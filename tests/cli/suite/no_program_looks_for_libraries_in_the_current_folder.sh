# An empty entry in a program's search path names the folder that it is called from, and so does a relative one.
bin=$(dirname "$(command -v pack)")
for program in "$bin"/* "$bin"/../libexec/trainwright/*; do
  [[ -f $program ]] || continue
  path=$(readelf -d "$program" | sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]$/\2/p')
  if [[ $path && :$path: =~ :(:|[^/\$:]) ]]; then
    echo "$program looks for libraries in $path"
    exit 1
  fi
done
