// Drives the page in headless Chromium, as a visitor does: node test-page.mjs --fec BIN --page HTML --work DIR
//     [--out DIR] [--mb N] [--cases N] [--seed N] [--only LETTERS]
import { execFileSync } from 'node:child_process';
import { createHash, randomFillSync } from 'node:crypto';
import * as fs from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Browser, CASE_MS, expect, memoryOf, sleep } from './browser.mjs';

const { values: options } = parseArgs({
    options: {
        fec: { type: 'string' }, page: { type: 'string' }, work: { type: 'string' }, out: { type: 'string' },
        mb: { type: 'string', default: '20' }, cases: { type: 'string', default: '60' },
        seed: { type: 'string', default: '1' }, only: { type: 'string', default: '' },
    },
});
const MB = 1e6;
/** The visitor: chooses, types, clicks, and reads what the page says. */
class Visitor {
    constructor(browser, url) {
        Object.assign(this, { browser, url });
    }

    fresh() { return this.browser.load(this.url); }

    idle(ms) { return this.browser.until("document.getElementById('work').hidden", 'the work to end', ms); }

    async choose(files, ms) {
        await this.idle();
        if (await this.browser.run("!document.getElementById('chosen').hidden")) await this.browser.click('clear');
        await this.browser.choose('files', files);
        await this.browser.until("!document.getElementById('chosen').hidden", 'the files');
        await this.idle(ms);
    }

    async ask(button, fields = {}, ms = CASE_MS) {
        for (const id of ['root', 'trust', 'identities', 'passphrase']) {
            const now = await this.browser.run(`document.getElementById('${id}').value`);
            if (now !== (fields[id] ?? '')) await this.browser.type(id, fields[id] ?? '');
        }
        const began = performance.now();
        await this.browser.click(button);
        await this.idle(ms);
        return { ...(await this.result()), seconds: (performance.now() - began) / 1000 };
    }

    result() {
        return this.browser.run(`(() => { const r = document.getElementById('result'); return {
            shown: !r.hidden, title: document.getElementById('result-title').textContent, text: r.innerText,
            saves: document.getElementById('save')?.download ?? null, rows: r.querySelectorAll('tbody tr').length,
            cells: ['intact', 'damaged', 'missing'].map((s) => r.querySelectorAll('.map .' + s).length),
            hasFocus: document.activeElement?.id === 'result-title' }; })()`);
    }

    /** Saves by the link, and returns the digest and the name. */
    async save() {
        this.browser.finished.clear();
        await this.browser.click('save');
        const end = Date.now() + CASE_MS;
        for (;;) {
            const [guid, state] = [...this.browser.finished].at(-1) ?? [];
            expect(state !== 'canceled' && Date.now() < end, 'the download did not end');
            if (state === 'completed') {
                const path = join(this.browser.downloads, guid);
                const hash = digest(path);
                fs.rmSync(path);
                return hash;
            }
            await sleep(20);
        }
    }
}

function digest(path) {
    const hash = createHash('sha256');
    const buffer = Buffer.alloc(1 << 20);
    const file = fs.openSync(path, 'r');
    for (let len; (len = fs.readSync(file, buffer)) > 0;) hash.update(buffer.subarray(0, len));
    fs.closeSync(file);
    return hash.digest('hex');
}

/** Random bytes that are the same for the same seed: xorshift, in 32 bits. */
function generator(seed) {
    let state = (seed * 2654435761 + 88675123) >>> 0 || 1;
    return (below) => {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        return (state >>> 0) % below;
    };
}

function makeFile(path, len) {
    const file = fs.openSync(path, 'w');
    const buffer = Buffer.alloc(1 << 20);
    for (let done = 0; done < len; done += buffer.length) {
        fs.writeSync(file, randomFillSync(buffer), 0, Math.min(buffer.length, len - done));
    }
    fs.closeSync(file);
}

function overwrite(path, at, bytes) {
    const file = fs.openSync(path, 'r+');
    fs.writeSync(file, Buffer.from(bytes), 0, bytes.length, at);
    fs.closeSync(file);
}

const listed = (folder) => fs.readdirSync(folder).sort().map((name) => join(folder, name));
const PHRASE = 'a long enough passphrase';
const env = { ...process.env, FEC_SIGN_PASSPHRASE: '', FEC_PASSPHRASE: PHRASE };
const fec = (...words) => execFileSync(options.fec, words,
    { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'pipe'] }).trim();

/** The inputs: a file, and what `words` make of it. Returns the root, the digest, and the files. */
function encoded(folder, name, len, ...words) {
    fs.mkdirSync(folder, { recursive: true });
    const path = join(folder, name);
    if (!fs.existsSync(path)) makeFile(path, len);
    const isContainer = words[0] === 'container';
    const output = join(folder, isContainer ? `${name}.fec` : `${name}.shards/`);
    const root = fec('encode', path, '-q', '-o', output, ...words.slice(isContainer ? 1 : 0));
    return { root, hash: digest(path), files: isContainer ? [output] : listed(output) };
}

/** The large file, from file:// and from a server, where the page has a private storage. */
async function large(visitor, folder) {
    await largeAt(visitor, folder);
    await served(async (url) => {
        console.log('    from a server:');
        await largeAt(new Visitor(visitor.browser, url), folder);
        const kept = `(async () => { const folder = await navigator.storage.getDirectory(); let n = 0;
            for await (const name of folder.keys()) n += 1; return n; })()`;
        expect(await visitor.browser.run(kept) === 1, 'the restored file is not in the private storage');
        await visitor.browser.click('clear');
        await visitor.browser.until(`${kept}.then((n) => n === 0)`, 'the private storage to be empty');
    });
}

/** Serves the page to `visit`, as any server would. */
async function served(visit) {
    const server = createServer((_request, response) => {
        response.setHeader('Content-Type', 'text/html; charset=utf-8');
        response.end(fs.readFileSync(options.page));
    });
    await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    try {
        await visit(`http://127.0.0.1:${server.address().port}/`);
    } finally {
        server.closeAllConnections();
        server.close();
    }
}

async function largeAt(visitor, folder) {
    const len = Number(options.mb) * MB;
    const { root, hash, files } = encoded(folder, 'large.bin', len);
    for (const path of files.slice(0, 22)) fs.rmSync(path);
    const there = files.slice(22);
    for (const [i, path] of there.slice(0, 5).entries()) overwrite(path, 5000 + 7000 * i, Buffer.from('rot'));
    fs.rmSync(join(folder, 'large.bin'));
    await visitor.fresh();
    await visitor.choose(there);
    const { pid } = visitor.browser.process;
    const before = memoryOf(pid);
    const peak = { ...before };
    const sampler = setInterval(() => {
        const now = memoryOf(pid);
        for (const key of ['all', 'renderer']) peak[key] = Math.max(peak[key], now[key]);
    }, 200);
    const mb = (bytes) => `${Math.round(bytes / MB)} MB`;
    const say = (what, bytes, seconds) => console.log(`    ${what}: ${mb(bytes)} in ${seconds.toFixed(2)} s, `
        + `${(bytes / MB / seconds).toFixed(0)} MB/s; peak beyond the start: `
        + `renderer ${mb(peak.renderer - before.renderer)}, all of Chromium ${mb(peak.all - before.all)}`);
    const size = there.reduce((sum, path) => sum + fs.statSync(path).size, 0);
    const checked = await visitor.ask('check', { root }, 600000);
    expect(checked.title === 'Damaged; it can be restored', checked.text);
    expect(String(checked.cells) === '73,5,22' && checked.rows >= 5, `${checked.cells}, ${checked.rows} rows`);
    say('check', size, checked.seconds);
    const restored = await visitor.ask('restore', { root }, 600000);
    expect(restored.title === 'Restored' && restored.saves === 'large.bin', restored.text);
    expect(restored.text.includes('This is the root that was given.'), restored.text);
    say('restore', len, restored.seconds);
    const began = performance.now();
    expect(await visitor.save() === hash, 'the saved file is another one');
    say('save', len, (performance.now() - began) / 1000);
    clearInterval(sampler);
    fs.rmSync(folder, { recursive: true });
}

async function refused(visitor, files, fields, pattern) {
    const { title, text, saves, hasFocus } = await visitor.ask('restore', fields);
    expect(saves === null && hasFocus && title !== 'Restored', `it was not refused: ${text}`);
    expect(pattern.test(text), `${pattern} is not in: ${text}`);
}

async function restores(visitor, fields, hash, pattern = /./) {
    const { title, text, saves } = await visitor.ask('restore', fields);
    expect(title === 'Restored' && saves, text);
    expect(pattern.test(text), `${pattern} is not in: ${text}`);
    expect(await visitor.save() === hash, 'the saved file is another one');
    return saves;
}

async function roots(visitor, folder) {
    const { root, hash, files } = encoded(folder, 'a file.bin', 300000);
    await visitor.fresh();
    await visitor.choose(files);
    await refused(visitor, files, { root: '0'.repeat(64) }, /root/);
    await refused(visitor, files, { root: root.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')) }, /root/);
    const { shown } = await visitor.ask('restore', { root: 'abc' });
    expect(!shown && await visitor.browser.run("document.activeElement.id === 'root'"), 'half a root was taken');
    await restores(visitor, {}, hash, /No root and no public key was given/);
    await restores(visitor, { root: `root ${root.toUpperCase()}` }, hash, /This is the root that was given/);
}

async function container(visitor, folder) {
    const { root, hash, files } = encoded(folder, 'plain.bin', 2000000, 'container');
    overwrite(files[0], 100000, Buffer.alloc(300000, 7));
    await visitor.fresh();
    await visitor.choose(files);
    const { title } = await visitor.ask('check', { root });
    expect(title === 'Damaged; it can be restored', title);
    const name = await restores(visitor, { root }, hash);
    expect(name === 'plain.bin', name);
}

async function sealed(visitor, folder) {
    fs.mkdirSync(folder, { recursive: true });
    const identities = [1, 2].map((i) => {
        fec('keygen', '-q', '-o', join(folder, `key${i}`));
        return fs.readFileSync(join(folder, `key${i}`), 'utf8');
    });
    const recipient = /public key: (\S+)/.exec(identities[0])[1];
    const one = encoded(folder, 'secret.bin', 400000, '--recipient', recipient);
    await visitor.fresh();
    await visitor.choose(one.files);
    const { title } = await visitor.ask('check', { root: one.root });
    expect(title === 'All 100 shards are intact', title);
    await refused(visitor, one.files, {}, /seal|key/i);
    await refused(visitor, one.files, { identities: identities[1] }, /key|identit/i);
    await refused(visitor, one.files, { identities: 'nonsense' }, /key|identit/i);
    await restores(visitor, { identities: identities[0], root: one.root }, one.hash);
    const two = encoded(join(folder, 'two'), 'phrase.bin', 400000, 'container', '--passphrase');
    await visitor.choose(two.files);
    await refused(visitor, two.files, { passphrase: 'another passphrase' }, /passphrase/i);
    await restores(visitor, { passphrase: PHRASE }, two.hash);
    const open = encoded(join(folder, 'open'), 'open.bin', 1000);
    await visitor.choose(open.files);
    await refused(visitor, open.files, { identities: identities[0] }, /seal/i);
}

async function signed(visitor, folder) {
    fs.mkdirSync(folder, { recursive: true });
    const keys = [1, 2].map((i) => {
        fec('keygen', '--sign', '-q', '-o', join(folder, `key${i}`));
        return fs.readFileSync(join(folder, `key${i}.pub`), 'utf8').trim().split('\n').at(-1);
    });
    for (const form of [['container'], []]) {
        const { hash, files } = encoded(join(folder, `of${form}`), 'signed.bin', 400000, ...form,
            '--sign', join(folder, 'key1'));
        await visitor.fresh();
        await visitor.choose(files);
        await refused(visitor, files, { trust: keys[1] }, /sign/i);
        await restores(visitor, { trust: keys[0] }, hash, /Signed by key/);
    }
}

/** A set of files that were damaged by the generator. */
function hostileCase(folder, draw, { shards, others, container: whole }) {
    fs.rmSync(folder, { recursive: true, force: true });
    fs.mkdirSync(folder);
    const from = draw(4) === 0 ? [whole] : shards.filter(() => draw(3) > 0);
    if (draw(4) === 0) from.push(...others.filter(() => draw(2) > 0));
    const files = from.map((path, i) => {
        const copy = join(folder, `${i}-${path.split('/').at(-1)}`);
        fs.copyFileSync(path, copy);
        return copy;
    });
    for (let left = draw(files.length + 3); left > 0; left -= 1) {
        const path = files[draw(files.length)];
        const len = fs.statSync(path).size;
        const kind = draw(6);
        if (kind === 0) fs.truncateSync(path, draw(len + 1));
        if (kind === 1) overwrite(path, draw(Math.min(len, 120) + 1), [draw(256)]);
        if (kind === 2) overwrite(path, draw(len + 1), [draw(256), draw(256), draw(256)]);
        if (kind === 3) fs.writeFileSync(path, '');
        if (kind === 4) fs.writeFileSync(path, Buffer.from(Array.from({ length: draw(5000) }, () => draw(256))));
        if (kind === 5) fs.appendFileSync(path, Buffer.from(Array.from({ length: draw(300) }, () => draw(256))));
    }
    return files;
}

async function hostile(visitor, folder) {
    const [one, two] = ['one', 'two'].map((name) => encoded(join(folder, name), `${name}.bin`, 150000));
    const whole = encoded(join(folder, 'one'), 'one.bin', 0, 'container');
    const draw = generator(Number(options.seed));
    const from = { shards: one.files, others: two.files, container: whole.files[0] };
    const good = new Set([one.hash, two.hash]);
    let restored = 0;
    await visitor.fresh();
    for (let i = 0; i < Number(options.cases); i += 1) {
        const files = hostileCase(join(folder, 'case'), draw, from);
        const fields = draw(2) === 0 ? { root: one.root } : {};
        await visitor.choose(files);
        const checked = await visitor.ask('check', fields);
        const { title, text, saves } = await visitor.ask('restore', fields);
        const said = `${checked.text}; ${text}`;
        expect(checked.shown && title !== '' && !/engine/i.test(said), `case ${i}: ${said}`);
        expect((title === 'Restored') === (saves !== null), `case ${i}: ${text}`);
        if (saves === null) continue;
        const hash = await visitor.save();
        expect(fields.root ? hash === one.hash : good.has(hash), `case ${i}: wrong bytes were saved`);
        restored += 1;
    }
    console.log(`    ${options.cases} cases of seed ${options.seed}: ${restored} restored, the others refused`);
}

async function few(visitor, folder) {
    const { root, files } = encoded(folder, 'few.bin', 200000);
    await visitor.fresh();
    await visitor.choose(files.slice(60, 90));
    const { title, text } = await visitor.ask('check', { root });
    expect(title === 'It cannot be restored from these' && /\b3 more\b/.test(text), text);
    await refused(visitor, files, { root }, /Too few shards.*30 of 100 shards are here, and 33 are needed: find 3 more/s);
}

async function several(visitor, folder) {
    const [one, two] = ['one', 'two'].map((name) => encoded(join(folder, name), `${name}.bin`, 100000));
    await visitor.fresh();
    await visitor.choose([...one.files, ...two.files]);
    const choice = `[...document.querySelectorAll('#root-choices input')]`;
    const listedRoots = await visitor.browser.run(`${choice}.map((i) => i.value).sort().join()`);
    expect(listedRoots === [one.root, two.root].sort().join(), `the roots: ${listedRoots}`);
    await refused(visitor, [], {}, /encodings/);
    await visitor.browser.run(`${choice}.find((i) => i.value === '${two.root}').click()`);
    await visitor.idle();
    await restores(visitor, {}, two.hash, /No root and no public key was given/);
    await restores(visitor, { root: one.root }, one.hash, /This is the root that was given/);
}

async function keyboard(visitor, folder) {
    const { browser } = visitor;
    const { files } = encoded(folder, 'keys.bin', 200000);
    await visitor.fresh();
    await visitor.choose(files.slice(5));
    await browser.run(`document.querySelectorAll('details').forEach((d) => { d.open = true; });
        document.activeElement.blur()`);
    const wanted = await browser.run(`[...document.querySelectorAll('button, input:not([hidden]), textarea, summary')]
        .filter((e) => e.checkVisibility() && !e.disabled).length`);
    const reached = new Set();
    let unseen = 0;
    for (let i = 0; i < wanted + 2; i += 1) {
        await browser.press('Tab');
        const [key, outline] = await browser.run(`(() => { const e = document.activeElement;
            return [e.id || e.textContent + e.dataset.fills, getComputedStyle(e).outlineStyle]; })()`);
        if (outline === 'none') unseen += 1;
        if (key) reached.add(key);
        if (key === 'restore') break;
    }
    expect(reached.size === wanted && unseen === 0,
        `${reached.size} of ${wanted} reached, ${unseen} without a sign: ${[...reached]}`);
    await browser.press('Tab', 8);
    await browser.press('Enter');
    await visitor.idle();
    await browser.until("document.activeElement.id === 'result-title'", 'the focus on the result');
    const label = await browser.run(`document.querySelector('.map')?.getAttribute('aria-label')
        ?? document.getElementById('result').innerText`);
    expect(/33 original shards.*missing: 0–4/.test(label), label);
}

/** Files and a folder that are dropped, and a folder that is chosen. */
async function dropped(visitor, folder) {
    const { browser } = visitor;
    const { files } = encoded(folder, 'dropped.bin', 100000);
    const shards = join(folder, 'dropped.bin.shards');
    const drop = async (paths) => {
        await visitor.fresh();
        for (const type of ['dragEnter', 'dragOver', 'drop']) {
            await browser.send('Input.dispatchDragEvent',
                { type, x: 300, y: 250, data: { items: [], files: paths, dragOperationsMask: 1 } });
        }
    };
    const said = () => browser.run(`document.getElementById('chosen-text').textContent
        + document.getElementById('result').innerText`);
    const shown = "!document.getElementById('chosen').hidden || !document.getElementById('result').hidden";
    for (const paths of [files, [shards]]) {
        await drop(paths);
        await browser.until(shown, 'the files that were dropped');
        await visitor.idle();
        expect(/^100 files|Choose a folder/.test(await said()), await said());
        console.log(`    ${paths.length} dropped: ${(await said()).split('\n')[0]}`);
    }
    await visitor.fresh();
    await browser.choose('folder', [shards]);
    await browser.until(shown, 'the folder');
    expect(/^100 files/.test(await said()), await said());
    await visitor.idle();
}

/** Saving through a picker, which is played here: a file that is picked, and none. */
async function picked(visitor, folder) {
    const { browser } = visitor;
    const { hash, files } = encoded(folder, 'picked.bin', 6000000);
    await visitor.fresh();
    await visitor.choose(files);
    await visitor.ask('restore');
    const said = "document.querySelector('.saved').textContent";
    await browser.run(`self.showSaveFilePicker = async ({ suggestedName }) => { self.kept = [];
        return { name: suggestedName, createWritable: async () => new WritableStream({ write(bytes) {
            self.kept.push(bytes); } }) }; }, 0`);
    await browser.click('save');
    await browser.until(`${said}.startsWith('Saved: picked.bin')`, 'the words that it is saved');
    const kept = await browser.run(`new Blob(self.kept).arrayBuffer()
        .then((all) => crypto.subtle.digest('SHA-256', all))
        .then((all) => [...new Uint8Array(all)].map((byte) => byte.toString(16).padStart(2, '0')).join(''))`);
    expect(kept === hash, 'other bytes were written');
    await browser.run("self.showSaveFilePicker = async () => { throw new DOMException('closed', 'AbortError'); }, 0");
    await browser.click('save');
    await browser.until(`${said}.startsWith('Not saved')`, 'the words that it is not saved');
    expect(await browser.run("document.querySelector('.saved a').download === 'picked.bin'"), 'there is no other way');
}

/** An engine that breaks down, and work that is cancelled. */
async function faults(visitor, folder) {
    const { browser } = visitor;
    const { files, hash } = encoded(folder, 'faults.bin', 20 * MB, 'container');
    await visitor.fresh();
    await browser.run('void (moduleBytes = new Uint8Array(8).buffer)');
    await visitor.choose(files);
    const { title, text } = await visitor.result();
    expect(title === 'It did not work', text);
    await browser.run('void (moduleBytes = null)');
    await visitor.choose(files);
    await browser.click('check');
    await browser.click('cancel');
    await visitor.idle();
    expect((await visitor.result()).title === 'Cancelled', (await visitor.result()).text);
    await restores(visitor, {}, hash);
    browser.complaints.splice(0);
}

/** A browser without vectors, and without a module that waits: the other module, and reads that block. */
async function older(visitor, folder) {
    const { browser } = visitor;
    const { root, hash, files } = encoded(folder, 'older.bin', 3 * MB);
    const page = join(folder, 'older.html');
    const ours = fs.readFileSync(options.page, 'utf8');
    fs.writeFileSync(page, ours.replace(/(id="worker-source"[^>]*>)/, '$1delete WebAssembly.Suspending;'));
    expect(fs.statSync(page).size > ours.length, 'the page has another form');
    await browser.load(`file://${page}`);
    await browser.run('void (window.hasSimd = () => false)');
    await visitor.choose(files.slice(22));
    const { title, text } = await visitor.ask('check', { root });
    expect(title.startsWith('Damaged') || /78 of 100 shards intact/.test(text), text);
    await restores(visitor, { root }, hash);
}

async function shots(visitor, folder) {
    const { browser } = visitor;
    const out = options.out ?? folder;
    const { files, root } = encoded(folder, 'photos of the summer.tar', 4000000);
    fs.mkdirSync(out, { recursive: true });
    await visitor.fresh();
    await browser.shot(join(out, 'start.png'), 1100);
    for (const path of [files[40], files[71]]) overwrite(path, 3000, [1, 2, 3]);
    await visitor.choose(files.slice(12, 90));
    await visitor.ask('check', {});
    for (const [name, width, dark] of [['desktop', 1100], ['narrow', 360], ['dark', 1100, true]]) {
        await browser.shot(join(out, `${name}.png`), width, dark);
    }
    await visitor.ask('restore', { root });
    await browser.shot(join(out, 'restored.png'), 1100);
    await visitor.ask('restore', { root: '1'.repeat(64) });
    await browser.shot(join(out, 'refused.png'), 360);
}

const TESTS = {
    a: large, b: roots, c: container, d: sealed, e: signed, f: hostile, g: few, h: keyboard, i: shots, m: several,
    n: dropped, o: older, p: picked, x: faults,
};

async function main() {
    const browser = new Browser(options.work);
    let failed = 0;
    try {
        await browser.open(`file://${options.page}`);
        for (const [letter, test] of Object.entries(TESTS)) {
            if (options.only && !options.only.includes(letter)) continue;
            try {
                await test(new Visitor(browser, `file://${options.page}`), join(options.work, test.name));
                const complaints = browser.complaints.splice(0).join('; ');
                expect(complaints === '', `the browser complains: ${complaints}`);
                console.log(`ok   ${test.name}`);
            } catch (error) {
                failed += 1;
                console.log(`FAIL ${test.name}: ${error.message}`);
            }
        }
    } finally {
        await browser.close();
    }
    process.exitCode = failed > 0 ? 1 : 0;
}

await main();
