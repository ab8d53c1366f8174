#!/usr/bin/env bash
# Rules and dashboards against a server that is Ready and the hooks:  run.sh URL VENV HOOKS
set -euo pipefail
url=$1
python=$(realpath "$2")/bin/python
hooks=$(realpath "$3")
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" files.py >"$folder/rules.yaml"
cp rules_test.yaml "$folder/"
promtool check rules "$folder/rules.yaml"
promtool test rules "$folder/rules_test.yaml"
"$python" test_files.py
"$python" test_queries.py "$url" "$hooks"
