// The functions of the package in worker threads.
import { Worker } from 'node:worker_threads';
import { client } from './client.js';
import { FecError } from './errors.js';
import './index.node.js';

function start(hear, fail) {
    // Options of the process are for its own program: some of them are none for a worker.
    const worker = new Worker(new URL('./thread.node.js', import.meta.url), { execArgv: [] });
    const broken = (words) => fail(new FecError('fault', `the worker broke down: ${words}`));
    worker.on('message', hear);
    worker.on('messageerror', ({ message }) => broken(message));
    worker.on('error', ({ message }) => broken(message));
    worker.on('exit', (code) => broken(`it ended with code ${code}`));
    return { post: (message) => worker.postMessage(message), end: () => worker.terminate() };
}

export const { encode, look, verify, restore, open } = client(start);
export { FecError, hasSimd, init } from './core.js';
