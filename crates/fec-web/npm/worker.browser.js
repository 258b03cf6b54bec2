// The functions of the package in web workers.
import { client } from './client.js';
import { FecError } from './errors.js';
import './index.browser.js';

function start(hear, fail) {
    const worker = new Worker(new URL('./thread.browser.js', import.meta.url), { type: 'module' });
    const broken = ({ message = '' }) => fail(new FecError('fault', `the worker broke down: ${message}`));
    worker.onmessage = ({ data }) => hear(data);
    worker.onerror = broken;
    worker.onmessageerror = broken;
    return { post: (message) => worker.postMessage(message), end: () => worker.terminate() };
}

export const { encode, look, verify, restore, open } = client(start);
export { FecError, hasSimd, init } from './core.js';
