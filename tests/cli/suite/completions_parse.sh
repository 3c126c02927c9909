# Each shell that is there accepts its completions.
cd "$TRAINWRIGHT_SOURCE_DIR/completions"
for file in bash/*; do bash -n "$file"; done
if command -v zsh > /dev/null; then for file in zsh/_*; do zsh -n "$file"; done; fi
if command -v fish > /dev/null; then for file in fish/*.fish; do fish -n "$file"; done; fi
