// The package in Chromium: on the page itself, with sources that make promises, and in workers.
//
//   node test-npm-page.mjs PACKAGE WORK
import * as fs from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { Browser, expect } from './browser.mjs';

const [folder, work] = process.argv.slice(2);
const TYPES = { '.js': 'text/javascript', '.wasm': 'application/wasm', '.html': 'text/html' };

const PAGE = `<!doctype html><link rel="icon" href="data:,"><script type="module">
    import * as here from './index.browser.js';
    import * as worker from './worker.browser.js';
    async function run() {
        const payload = new Uint8Array(3000000).map((_byte, at) => at * at >> 7);
        const isSame = (bytes) => bytes.length === payload.length && bytes.every((byte, at) => byte === payload[at]);
        const { root, shards } = await here.encode(new File([payload], 'a.bin'), { k: 5, m: 4 });
        const blobs = shards.slice(4).map(({ bytes }) => new Blob([bytes]));
        const later = shards.slice(4).map(({ bytes }) => ({ size: bytes.length, async read(offset, out) {
            await new Promise((done) => { setTimeout(done, 1); });
            const part = bytes.subarray(offset, offset + Math.min(out.length, 50000));
            out.set(part);
            return part.length;
        } }));
        const said = { simd: here.hasSimd(), patient: typeof WebAssembly.Suspending === 'function' };
        for (const [name, functions] of Object.entries({ here, worker })) {
            const { payload: back, name: named } = await functions.restore(blobs, { root });
            said[name] = isSame(back) && named === 'a.bin' && (await functions.verify(shards, { root })).isIntact;
            const opened = await functions.open(blobs, { root });
            let at = 0;
            for await (const piece of opened.stream()) {
                said[name] &&= piece.every((byte, nth) => byte === payload[at + nth]);
                at += piece.length;
            }
            said[name] &&= at === payload.length;
            await opened.close();
            said[name + 'Root'] = (await functions.encode(new File([payload], 'a.bin'), { k: 5, m: 4 })).root === root;
            const few = await functions.restore(blobs.slice(1)).catch((error) => error);
            said[name + 'Few'] = few.name === 'FecError' && few.class === 'missing';
        }
        if (said.patient) {
            said.later = isSame((await here.restore(later, { root })).payload);
            const control = new AbortController();
            setTimeout(() => control.abort(new Error('enough')), 5);
            const cut = await here.restore(later, { root, signal: control.signal }).catch((error) => error);
            said.cut = cut.message === 'enough';
        }
        const cut = await worker.restore(blobs, { signal: AbortSignal.timeout(1) }).catch((error) => error);
        said.workerCut = cut.name === 'TimeoutError';
        await here.init(new URL('./fec.wasm', location.href));
        said.plain = isSame((await here.restore(blobs, { root })).payload);
        return said;
    }
    window.said = run().catch((error) => ({ error: String(error.stack) }));
</script>`;

const server = createServer((request, response) => {
    const name = request.url.slice(1);
    const path = join(folder, name);
    const isThere = name !== '' && !name.includes('/') && fs.existsSync(path);
    response.writeHead(isThere || name === '' ? 200 : 404, { 'content-type': TYPES[extname(name)] ?? 'text/html' });
    response.end(isThere ? fs.readFileSync(path) : name === '' ? PAGE : '');
});
await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
const browser = new Browser(work);
try {
    await browser.open(`http://127.0.0.1:${server.address().port}/`);
    await browser.until("'said' in window", 'the functions');
    const said = await browser.run('said');
    const wrong = Object.entries(said).filter(([name, value]) => value !== true && name !== 'patient');
    expect(wrong.length === 0, `in the browser: ${JSON.stringify(said)}`);
    expect(browser.complaints.length === 0, browser.complaints.join('; '));
    console.log(`in Chromium all is the same${said.patient ? '' : ', without promises'}`);
} finally {
    await browser.close();
    server.close();
}
