# bench --timeout kills what a command began in sessions of their own, an orphan included.
command="setsid sleep 97 & echo \$! > $PWD/child; (setsid sh -c 'echo \$\$ > $PWD/orphan; exec sleep 97' &); wait; sleep 97"
fails 3 'did not end within --timeout' bench -q --before "$command" --after true --timeout 4 --min-rounds 2 --budget 1
for name in child orphan; do
  test -s $name
  for ((look = 0; look < 50; look++)); do
    grep -q '^State:[[:space:]]*[^ZX]' "/proc/$(cat $name)/status" 2> /dev/null || continue 2
    sleep 0.1
  done
  echo "$name goes on"
  exit 1
done
