// Makes the page: one HTML file with everything in it.
//
//   node build.mjs SIMD.wasm PLAIN.wasm OUT.html
//
// SIMD.wasm is the module with vectors of 128 bits, PLAIN.wasm the one without. The output may have 1,500,000 bytes.
import { createHash } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { Script } from 'node:vm';
import { deflateRawSync } from 'node:zlib';

const MOST = 1500000;

function fail(words) {
    console.error(`build.mjs: ${words}`);
    process.exit(1);
}

const ours = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');

/** A script without its imports and exports: all scripts of a thread become one. */
function joined(...names) {
    return names.map((name) => ours(name).replace(/^import [^;]*;\n/gm, '').replace(/^export /gm, '')).join('\n');
}

/** The module as text: deflate makes it small, and base64 keeps it out of the way of the HTML. */
function packed(path) {
    return deflateRawSync(readFileSync(path), { level: 9 }).toString('base64');
}

/** The name of an inline script or style in a policy: nothing else runs then. */
function hash(text) {
    return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function inlined(markup, parts) {
    return markup.replace(/\/\*@(\w+)\*\/|@@(\w+)@@/g, (_whole, first, second) => {
        const name = first ?? second;
        if (!(name in parts)) fail(`page.html asks for ${name}`);
        return parts[name];
    });
}

function main([simd, plain, out]) {
    const style = ours('page.css');
    const script = `'use strict';\n${joined('engine.js', 'inflate.js', 'words.js', 'view.js', 'page.js')}`;
    const worker = `'use strict';\n${joined('engine.js', 'files.js', 'written.js', 'sinks.js', 'worker.js')}`;
    // Scripts that are joined may use a name twice: a syntax error, better here than in a browser.
    for (const text of [script, worker]) new Script(text);
    for (const text of [style, script, worker]) {
        if (/<\/(script|style)|<!--/i.test(text)) fail('a script or style would end early in HTML');
    }
    const page = inlined(ours('page.html'), {
        style, script, worker, simd: packed(simd), plain: packed(plain),
        simd_size: statSync(simd).size, plain_size: statSync(plain).size,
        script_hash: hash(script), style_hash: hash(style),
    });
    const size = Buffer.byteLength(page);
    if (size > MOST) fail(`${out} would have ${size} bytes, and ${MOST} are the most`);
    writeFileSync(out, page);
    console.log(`${out}: ${size} bytes`);
}

const args = process.argv.slice(2);
if (args.length !== 3) fail('usage: node build.mjs SIMD.wasm PLAIN.wasm OUT.html');
main(args);
