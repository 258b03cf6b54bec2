#!/bin/bash
# The package for Node and browsers as a stranger gets it: packed, installed in a folder of its own, and called from
# there: the golden vectors, the command's own bytes, damage, hostile objects, streams, workers, and what it takes.
#
#   scripts/checks/test-npm.sh [--fec BIN] [--modules FOLDER] [--seed N] [--mutations N]
#
# --modules tests with modules that are built. With Chromium the package is called in a page too, and with tsc its types
# are checked. Needs Node 20 or newer with npm, and rustup, which brings the standard library of wasm32-wasip1. Without
# these it does nothing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

fec='' modules=() seed=1 mutations=500
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --fec) fec=${2-} ;;
    --modules) modules=(--modules "${2-}") ;;
    --seed) seed=${2-} ;;
    --mutations) mutations=${2-} ;;
    *) usage ;;
    esac
    [ $# -gt 1 ] || usage
    shift 2
done
leave() { echo "left out: $1"; exit 0; }
is_new() { has node && has npm && node -e 'process.exit(Number(parseInt(process.versions.node) < 20))'; }
has_library() { has rustup && rustup target add wasm32-wasip1 2> /dev/null; }
is_new || leave 'the package needs Node 20 or newer with npm'
[ ${#modules[@]} -gt 0 ] || has_library || leave 'the package needs rustup and its target wasm32-wasip1'
make_scratch
fec=$(find_fec "$fec")
tgz=$("$root/scripts/release/npm.sh" "$scratch" "${modules[@]}")
again=$("$root/scripts/release/npm.sh" "$scratch/again" "${modules[@]}")
[ ${#modules[@]} -eq 0 ] || cmp "$tgz" "$again" || fail 'the package is not the same twice'
mkdir "$scratch/user"
cd "$scratch/user"
echo '{ "private": true, "type": "module" }' > package.json
npm install --silent --offline --no-audit --no-fund "$tgz"
cp "$root/scripts/checks/test-npm.mjs" .
FEC=$fec PROJECT=$root SEED=$seed MUTATIONS=$mutations node --no-warnings --test test-npm.mjs || fail 'a test fails'

if has chromium; then
    node "$root/scripts/checks/test-npm-page.mjs" "$scratch/user/node_modules/fecshards" "$scratch/page"
else
    echo 'left out: Chromium'
fi
if has tsc; then
    cat > types.ts << 'END'
import { encode, FecError, look, open, restore, verify, type Encoding, type Source } from 'fecshards';
import { file, shardsIn, toFolder } from 'fecshards/node';
import * as worker from 'fecshards/worker';

const source: Source = { size: 3, read: (offset, bytes) => bytes.length - offset };
const { root, shards } = await encode(source, { k: 5, m: 4 });
const bytes: Uint8Array = (await encode(new Blob([]), { form: 'container' })).container;
const names: string[] = (await encode(file('x'), { to: toFolder('y', { force: true }) })).names;
const back: Uint8Array = (await restore(shards, { root, signal: AbortSignal.timeout(9) })).payload;
const output: number = (await restore(bytes, { to: toFolder('y') })).output;
const found: Encoding = await look([back, source]);
const intact: boolean = (await verify(new Set(shards))).isIntact;
const stream: ReadableStream<Uint8Array> = (await open(bytes)).stream({ start: 3 });
const far: Uint8Array = (await worker.restore(shardsIn('y'))).payload;
// @ts-expect-error A worker takes no functions.
await worker.restore(source);
// @ts-expect-error There is no such option.
await restore(bytes, { Root: root });
export const kind = (error: unknown) => (error instanceof FecError ? error.class : null);
export { names, output, found, intact, stream, far };
END
    tsc --noEmit --strict --skipLibCheck --module nodenext --target es2022 --lib es2023,dom,dom.iterable types.ts
else
    echo 'left out: tsc'
fi
