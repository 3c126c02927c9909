# Names, help texts and choices of every option, checked on the table itself.
clidoc lint
# Every tool has a list entry in clidoc, so that no rule misses one.
clidoc list > listed
for tool in $BUILT_TOOLS; do grep -qx "$tool" listed; done
