# The committed man pages, completions and frozen command line are those of the tools' definitions.
"$TRAINWRIGHT_SOURCE_DIR/scripts/update_generated.sh" --clidoc "$(command -v clidoc)" --into .
for generated in $(find man completions tests -type f); do
  diff -u "$TRAINWRIGHT_SOURCE_DIR/$generated" "$generated"
done
# None is left of a tool that is gone.
diff <(cd "$TRAINWRIGHT_SOURCE_DIR" && ls man/*.1 completions/*/* | sort) <(ls man/*.1 completions/*/* | sort)
