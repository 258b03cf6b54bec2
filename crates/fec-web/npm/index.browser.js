// The package in browsers: modules come from beside this file.
import { setPlatform } from './core.js';

// Bundlers find files by these very expressions.
const MODULES = {
    'fec-simd.wasm': () => new URL('./fec-simd.wasm', import.meta.url),
    'fec.wasm': () => new URL('./fec.wasm', import.meta.url),
};

async function at(url) {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`the module cannot be loaded from ${url}: status ${response.status}`);
    return WebAssembly.compile(await response.arrayBuffer());
}

setPlatform({ at, ours: (name) => at(MODULES[name]()) });

export * from './core.js';
