// Runs a program for WASI in Node, as cargo asks of a runner: node --no-warnings wasi.mjs PROGRAM [ARGUMENT…]
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';

const [, , program, ...words] = process.argv;
const wasi = new WASI({ version: 'preview1', args: [program, ...words], env: process.env, preopens: { '/': '/' } });
const instance = await WebAssembly.instantiate(await WebAssembly.compile(await readFile(program)), wasi.getImportObject());
// Node may fault where it frees what a module had.
process.reallyExit(wasi.start(instance));
