# shellcheck shell=bash disable=SC2154
# What scripts/fetch_*.sh share: wheels from pip, pinned by version and sha256, unpacked into a cache folder that appears
# complete or not at all.
#
# The script sets, before it calls fetch_wheels ARGUMENT...:
#   name, size       what is fetched ("LibTorch 2.11.0") and how much is downloaded ("530 MB")
#   pins, target     the requirements file and the folder to fill
#   probe            a file of the folder that tells it from an empty one
#   own              how to do without: the hint of errors
#   unpack_wheels WHEELS TREE   a function that fills TREE from the folder WHEELS
# and the ARGUMENTs are what pip needs to take the same wheels whatever Python runs it.

stamp=.trainwright-complete  # holds the pins that the folder was made from

end_if_complete() {
  [[ -e $target/$probe ]] && cmp -s "$pins" "$target/$stamp" || return 0
  say "$name is in $target"
  exit 0
}

fetch_wheels() {
  [[ $(uname -sm) == 'Linux x86_64' ]] || die "the pinned $name is for Linux on x86_64; this is $(uname -sm)" "$own"
  end_if_complete
  mkdir -p "$(dirname "$target")"
  exec {lock}> "$target.lock"
  if ! flock -n "$lock"; then
    say "another run is fetching $name; waiting for it"
    flock "$lock"
    end_if_complete
  fi

  rm -rf "$target".partial.*  # of a run that was killed: the lock says that none is at work
  partial=$(mktemp -d "$target.partial.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM

  # pip checks the hashes before it keeps a file.
  say "fetching $name ($size) into $target"
  run python3 -m pip download --quiet --require-hashes --no-deps --no-cache-dir --only-binary=:all: \
    --implementation cp --abi cp311 --python-version 3.11 "$@" --dest "$partial/wheels" -r "$pins" < /dev/null ||
    die "the download failed; nothing was changed" "check the network and pip's settings, or $own"

  mkdir "$partial/tree"
  unpack_wheels "$partial/wheels" "$partial/tree"
  [[ -e $partial/tree/$probe ]] || die "the wheels lack what was expected in them" "check $pins"
  cp "$pins" "$partial/tree/$stamp"
  sync -f "$partial/tree"

  [[ ! -e $target ]] || mv "$target" "$partial/old"
  mv "$partial/tree" "$target"
  say "$name is in $target ($(du -sh "$target" | cut -f1))"
}
