// The worker: runs requests on files, away from the page, so that the page stays alive and can end it at any time.
import { Engine } from './engine.js';
import { Source } from './files.js';
import { Outputs } from './sinks.js';

const PROGRESS_MS = 100;

// A promise: a request may come while the module is still being compiled.
let compiled = null;
// The encoding that was found last: how many files are read in turn, and how many outputs there will be.
let looked;

/** Makes a function that passes progress on, at most ten times a second. */
function reporter() {
    let last = 0;
    return (done, total) => {
        const now = performance.now();
        if (now - last < PROGRESS_MS) return;
        last = now;
        postMessage({ kind: 'progress', done, total });
    };
}

async function run({ request, files, storage }) {
    const module = await compiled;
    const { k, is_sealed: isSealed } = looked ?? {};
    const source = new Source(files, request.do === 'verify' ? 1 : Math.min(files.length, k ?? files.length));
    const outputs = await Outputs.open(storage, request.do === 'restore' ? 1 + Number(Boolean(isSealed)) : 0);
    try {
        const engine = new Engine(module, {
            readNow: (object, offset, bytes) => source.readNow(object, offset, bytes),
            wait: (object, offset) => source.wait(object, offset),
            read: (object, offset, bytes) => source.read(object, offset, bytes),
            write: (output, offset, bytes) => outputs.write(output, offset, bytes),
            readBack: (output, offset, bytes) => outputs.readBack(output, offset, bytes),
            progress: reporter(),
        });
        await source.begin();
        const response = await engine.call(request);
        looked = response.encoding;
        const faults = [outputs.fault, source.fault].filter(Boolean);
        const { restored } = response.ok && faults.length === 0 ? response : {};
        const payload = restored ? await outputs.finish(restored.output, restored.len) : null;
        postMessage({ kind: 'done', response, payload, faults });
    } catch (error) {
        postMessage({ kind: 'fault', message: error.message, lines: error.lines ?? [] });
    } finally {
        source.end();
        await outputs.discard();
    }
}

onmessage = async ({ data }) => {
    try {
        if (data.kind === 'start') compiled = WebAssembly.compile(data.module);
        else await run(data);
    } catch (error) {
        postMessage({ kind: 'fault', message: error.message, lines: [] });
    }
};
