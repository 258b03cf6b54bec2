// The package in Node: modules are files beside this one.
import { readFile } from 'node:fs/promises';
import { setPlatform } from './core.js';

async function at(given) {
    const url = new URL(given);
    if (url.protocol === 'file:') return WebAssembly.compile(await readFile(url));
    const response = await fetch(url);
    if (!response.ok) throw new Error(`the module cannot be loaded from ${url}: status ${response.status}`);
    return WebAssembly.compile(await response.arrayBuffer());
}

setPlatform({ at, ours: (name) => at(new URL(`./${name}`, import.meta.url)) });

export * from './core.js';
