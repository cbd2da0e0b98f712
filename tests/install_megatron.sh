#!/usr/bin/env bash
# Installs megatron-core 0.19.2 (pure Python, 21 MB) beside the tests, for tests/integration/test_megatron_parser.py.
#
# The wheel asks for Python >= 3.12 but uses nothing newer than 3.11 once typing.override exists, so the check of the
# Python version is switched off; its dependencies (Transformer Engine, CUDA) are not needed to parse arguments.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

version=0.19.2
directory=${MESHWRIGHT_MEGATRON_DIR:-.cache/megatron-core-$version}
if [ -f "$directory/megatron/training/arguments.py" ]; then
  echo "megatron-core is already in $directory"
  exit 0
fi
mkdir -p "$(dirname "$directory")"
staging=$(mktemp -d "$directory.XXXXXX")
trap 'rm -rf "$staging"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python \
  --python-version 3.12 --only-binary=:all: --target "$staging" "megatron-core==$version"
chmod 755 "$staging"
rm -rf "$directory"
mv "$staging" "$directory"
trap - EXIT
echo "megatron-core $version is in $directory"
