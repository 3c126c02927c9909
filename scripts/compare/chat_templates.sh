#!/usr/bin/env bash
# Chat templates that models were published with, rendered here and by transformers.
#
# usage: scripts/compare/chat_templates.sh FILE|FOLDER...
#
#   FILE     a template in Jinja (NAME.jinja), or a tokenizer_config.json with a chat_template
#   FOLDER   all such files in it and below
#
# Each template gets 25 conversations (tests/jinja/make_render_goldens.py: system turns, tools, lists of content, thoughts, odd
# roles, and what templates refuse). What transformers gives, texts, spans of generation blocks and refusals, is what is expected
# here. Needs the built tests (cmake -DTRAINWRIGHT_TESTS=ON), and a Python with jinja2 3.1.6 and transformers 5.23.0 (PYTHON).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($#)) || die "takes files or folders of templates" "scripts/compare/chat_templates.sh --help"
mapfile -t files < <(find "$@" -type f \( -name '*.jinja' -o -name tokenizer_config.json \) | sort)
((${#files[@]})) || die "there is no .jinja file and no tokenizer_config.json in $*"
goldens=$(mktemp)
trap 'rm -f "$goldens"' EXIT
"${PYTHON:-python3}" tests/jinja/make_render_goldens.py "${files[@]}" > "$goldens"
say "${#files[@]} files"
TRAINWRIGHT_JINJA_GOLDENS=$goldens build/release/tests/jinja_test --gtest_brief=1 \
  --gtest_filter=RenderTest.EveryGoldenIsRenderedAsTransformersDoes
