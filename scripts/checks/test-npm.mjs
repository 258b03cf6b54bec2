// Tests of the package fecshards, run by test-npm.sh in the folder where it is installed.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { encode, FecError, hasSimd, init, look, open, restore, verify } from 'fecshards';
import { file, shardsIn, toFolder } from 'fecshards/node';
import * as worker from 'fecshards/worker';

const { FEC, PROJECT } = process.env;
const SEED = Number(process.env.SEED ?? 1);
const MUTATIONS = Number(process.env.MUTATIONS ?? 500);
const CLASSES = ['ok', 'damaged', 'usage', 'missing', 'system', 'replaced', 'refused'];
const WHOLE = 300000;
const golden = join(PROJECT, 'tests/golden');
const vectors = (name) => JSON.parse(fs.readFileSync(join(golden, name), 'utf8'));
const scratch = fs.mkdtempSync(join(process.cwd(), 'work-'));
const here = (name) => join(scratch, name);
after(() => fs.rmSync(scratch, { recursive: true }));

/** The payload that the vectors name by a seed and a length. */
function payloadOf(seed, length) {
    let x = BigInt(seed);
    return Uint8Array.from({ length }, () => {
        x = BigInt.asUintN(64, x * 6364136223846793005n + 1442695040888963407n);
        return Number(x >> 56n);
    });
}

const isSame = (one, other) => Buffer.compare(one, other) === 0;
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** The files at a path, as objects. */
function objectsAt(path) {
    if (!fs.statSync(path).isDirectory()) return [{ name: basename(path), bytes: fs.readFileSync(path) }];
    return fs.readdirSync(path).sort().map((name) => ({ name, bytes: fs.readFileSync(join(path, name)) }));
}

/** The class in which something ends, and what it returned. */
async function verdict(promise) {
    try {
        return { class: 'ok', result: await promise };
    } catch (error) {
        assert.ok(error instanceof FecError, error);
        return { class: error.class, error };
    }
}

const fec = (words, options = {}) => {
    const { status, stdout, stderr } = spawnSync(FEC, words, { maxBuffer: 1 << 28, ...options });
    return { status, stdout, stderr: String(stderr) };
};

/** Runs a test with each of the two modules. */
function withBoth(name, run) {
    for (const module of hasSimd() ? ['fec-simd.wasm', 'fec.wasm'] : ['fec.wasm']) {
        test(`${name} (${module})`, async () => {
            await init(import.meta.resolve(`fecshards/${module}`));
            await run();
        });
    }
}

withBoth('any size comes back, as shards and as a container', async () => {
    for (const size of [0, 1, 1000, WHOLE]) {
        const payload = payloadOf(size + 1, size);
        const { root, shards } = await encode(payload, { k: 5, m: 4, name: 'report.pdf' });
        assert.equal(shards.length, 9);
        assert.equal(shards[3].name, 'report.pdf.003.shard');
        const found = await restore(shards.slice(4).reverse(), { root });
        assert.ok(isSame(found.payload, payload) && found.payload.buffer.byteLength === size);
        assert.deepEqual([found.name, found.root, found.length], ['report.pdf', root, size]);
        const boxed = await encode(payload.buffer, { k: 5, m: 4, hash: 'sha256', form: 'container' });
        assert.equal((await look(boxed.container)).hash, 'sha256');
        assert.ok((await verify(boxed.container, { root: boxed.root })).isIntact);
        assert.ok(isSame((await restore(new Blob([boxed.container]), { root: boxed.root })).payload, payload));
    }
});

withBoth('the golden vectors are verified and restored', async () => {
    let tried = 0;
    for (const vector of vectors('encode.json').filter(({ path }) => path)) {
        const objects = objectsAt(join(golden, vector.path));
        const checked = await verify(objects, { root: vector.root });
        assert.ok(checked.isIntact && checked.encoding.root === vector.root, vector.name);
        const { payload } = await restore(objects, { root: vector.root });
        assert.ok(isSame(payload, payloadOf(vector.seed, vector.payload_len)), vector.name);
        tried += 1;
    }
    assert.ok(tried >= 20);
});

test('encoding makes the bytes of the golden vectors', async () => {
    await init(import.meta.resolve('fecshards/fec-simd.wasm'));
    // The options of the package make these, and its containers are those of pipes.
    const isOurs = (vector) => vector.entries.length === 0 && vector.extra === null && vector.set_size === null
        && vector.group_size === null && vector.k + vector.m <= 140
        && (vector.form === 'shards' || vector.file_name === null);
    const ours = vectors('encode.json').filter(isOurs);
    for (const { name, form, hash, k, m, seed, payload_len: length, file_name: named, root, digests } of ours) {
        const options = { k, m, hash, form, name: named ?? 'x' };
        const made = await encode(payloadOf(seed, length), options);
        assert.equal(made.root, root, name);
        const files = form === 'shards' ? made.shards.map(({ bytes }) => bytes) : [made.container];
        assert.deepEqual(files.map(sha256), digests, name);
    }
    assert.ok(ours.length >= 100, String(ours.length));
});

test('every rule refuses its violations', async () => {
    let tried = 0;
    for (const vector of vectors('errors.json').filter(({ strict }) => strict !== true)) {
        const path = join(golden, vector.path);
        const objects = objectsAt(path);
        // There are no folders here: a single object is of any form.
        if (objects.length === 1 && fs.statSync(path).isDirectory()) continue;
        const said = await verdict(restore(objects, vector.root ? { root: vector.root } : {}));
        assert.equal(said.class, CLASSES[vector.exit], `${vector.name}: ${said.error?.message}`);
        if (vector.exit === 0) assert.equal(sha256(said.result.payload), vector.payload_sha256, vector.name);
        tried += 1;
    }
    assert.ok(tried >= 400);
});

test('sealed vectors open with their keys alone', async () => {
    const sealed = vectors('sealed.json');
    const keysOf = ({ passphrase }) => (
        passphrase ? { passphrase: sealed.passphrase } : { identities: sealed.identity });
    for (const vector of [...sealed.valid, ...sealed.again].filter(({ path }) => path)) {
        const objects = objectsAt(join(golden, vector.path));
        const { payload } = await restore(objects, keysOf(vector));
        const plain = payloadOf(vector.seed, vector.payload_len);
        assert.ok(isSame(payload, plain), vector.name);
        const opened = await open(objects, keysOf(vector));
        assert.ok(isSame(await opened.read(0, opened.size), plain), vector.name);
        await opened.close();
        assert.notEqual((await verdict(restore(objects))).class, 'ok', vector.name);
    }
    for (const vector of sealed.errors) {
        const said = await verdict(restore(objectsAt(join(golden, vector.path)), keysOf(vector)));
        assert.equal(said.class, CLASSES[vector.exit], vector.name);
    }
});

test('the command and the package read each other, and write the same', async () => {
    const payload = payloadOf(11, WHOLE);
    fs.writeFileSync(here('a.bin'), payload);
    const made = await encode(payload, { k: 5, m: 4, name: 'a.bin', to: toFolder(here('ours')) });
    const theirs = fec(['encode', here('a.bin'), '-k', '5', '-m', '4', '-o', `${here('theirs')}/`]);
    assert.equal(String(theirs.stdout).trim(), made.root);
    assert.deepEqual(objectsAt(here('ours')), objectsAt(here('theirs')));
    for (const name of made.names.slice(0, 4)) fs.rmSync(join(here('ours'), name));
    assert.ok(isSame(fec(['decode', here('ours'), '--root', made.root, '-o', '-']).stdout, payload));
    const boxed = await encode(new Blob([payload]), { k: 5, m: 4, form: 'container' });
    const piped = fec(['encode', '-', '-k', '5', '-m', '4'], { input: payload });
    assert.ok(isSame(boxed.container, piped.stdout));
    assert.ok(isSame(fec(['decode', '-', '--root', boxed.root], { input: boxed.container }).stdout, payload));
    assert.ok(isSame((await restore(piped.stdout, { root: boxed.root })).payload, payload));
});

test('too few shards, another root, two encodings', async () => {
    const payload = payloadOf(7, WHOLE);
    const { root, shards } = await encode(payload, { k: 5, m: 4, name: 'a' });
    const few = await verdict(restore(shards.slice(5), { root }));
    assert.deepEqual([few.class, few.error.encoding.given, few.error.encoding.k], ['missing', 4, 5]);
    assert.equal((await verify(shards.slice(5))).isRestorable, false);
    assert.equal((await verdict(restore(shards, { root: 'ab'.repeat(32) }))).class, 'replaced');
    const other = await encode(payloadOf(8, WHOLE), { k: 5, m: 4, name: 'b' });
    const both = [...shards, ...other.shards];
    const two = await verdict(restore(both));
    assert.deepEqual([two.class, [...two.error.roots].sort()], ['usage', [root, other.root].sort()]);
    assert.ok(isSame((await restore(both, { root })).payload, payload));
});

test('wrong use is refused', async () => {
    const some = new Uint8Array(1000);
    const read = () => 0;
    const wrong = [
        () => encode(some, { k: 0 }), () => encode(some, { hash: 'md5' }), () => encode(some, { form: 'zip' }),
        () => encode(some, { root: '00' }), () => encode([some]), () => encode('text'), () => encode(null),
        () => restore([]), () => restore(some, { root: undefined }), () => restore(some, { root: null }),
        () => restore(some, { root: '' }), () => restore(some, { root: 'abc' }), () => restore(some, { trust: 'x' }),
        () => restore(some, { Root: 'ab'.repeat(32) }), () => restore(some, null), () => restore({ size: -1, read }),
        () => restore(some, { identities: 'nonsense' }), () => worker.restore({ size: 1, read }),
        () => worker.restore(some, { to: { write() {}, readBack: () => 0 } }),
    ];
    for (const call of wrong) assert.equal((await verdict(call())).class, 'usage', String(call));
    assert.throws(() => toFolder(scratch, { name: '../x' }), { class: 'usage' });
});

test('sources and sinks that fail are told, and nothing comes out', async () => {
    const payload = payloadOf(3, WHOLE);
    const { root, shards } = await encode(payload, { k: 5, m: 4 });
    const patient = typeof WebAssembly.Suspending === 'function';
    const later = { size: payload.length, read: async (offset, out) => {
        out.set(payload.subarray(offset, offset + out.length));
        return Math.min(out.length, payload.length - offset);
    } };
    const said = await verdict(encode(later, { k: 5, m: 4 }));
    assert.equal(said.class, patient ? 'ok' : 'usage');
    if (patient) assert.equal(said.result.root, root);
    const odd = [() => { throw new Error('a disk'); }, () => -1, (_at, out) => out.length + 1, () => NaN, () => 0];
    for (const read of odd) {
        const failed = await verdict(encode({ size: 1000, read: (at, out) => (out.length === 1 ? 1 : read(at, out)) }));
        assert.ok(['system', 'damaged', 'usage'].includes(failed.class), failed.class);
    }
    const full = { write() { throw new Error('no room'); }, readBack: () => 0, discard() { this.isGone = true; } };
    const kept = await verdict(restore(shards, { to: full }));
    assert.deepEqual([kept.class, kept.error.cause.message, full.isGone], ['system', 'no room', true]);
    await assert.rejects(restore(shards, { onProgress() { throw new RangeError('mine'); } }), RangeError);
});

test('files of a folder appear whole or not at all, and replace none', async () => {
    const payload = payloadOf(5, WHOLE);
    const { root, shards } = await encode(payload, { k: 3, m: 2, name: 'x.bin' });
    const folder = here('folder');
    const to = toFolder(folder);
    const restored = await restore(shards, { root, to });
    assert.deepEqual([restored.name, to.files], ['x.bin', [join(folder, 'x.bin')]]);
    assert.ok(isSame(fs.readFileSync(to.files[0]), payload));
    fs.writeFileSync(to.files[0], 'mine');
    assert.equal((await verdict(restore(shards, { to: toFolder(folder) }))).class, 'system');
    assert.equal(fs.readFileSync(to.files[0], 'utf8'), 'mine');
    fs.writeFileSync(join(folder, 'x.bin.003.shard'), 'mine');
    const source = file(join(folder, 'x.bin'));
    assert.equal((await verdict(encode(source, { k: 3, m: 2, to: toFolder(folder) }))).class, 'system');
    source.close();
    assert.equal((await verdict(restore(shards.slice(3), { to: toFolder(folder) }))).class, 'missing');
    assert.deepEqual(fs.readdirSync(folder).sort(), ['x.bin', 'x.bin.003.shard']);
    await restore(shards, { to: toFolder(folder, { force: true }) });
    assert.ok(isSame(fs.readFileSync(to.files[0]), payload));
    const { container } = await encode(payload, { form: 'container' });
    assert.equal((await verdict(restore(container, { to: toFolder(folder) }))).class, 'usage');
    await restore(container, { to: toFolder(folder, { name: 'y.bin' }) });
    assert.ok(isSame(fs.readFileSync(join(folder, 'y.bin')), payload));
});

test('parts and streams come as they are asked for', async () => {
    const payload = payloadOf(9, 4 << 20);
    const all = Buffer.concat([payload, payload, payload]);
    const { root, shards } = await encode(all, { k: 10, m: 4 });
    const counted = shards.slice(4).map(({ bytes, name }) => ({ name, size: bytes.length, read(offset, out) {
        counted.read += out.length;
        out.set(bytes.subarray(offset, offset + out.length));
        return Math.min(out.length, bytes.length - offset);
    } }));
    counted.read = 0;
    const opened = await open(counted, { root });
    const ranges = [[0, 0], [0, 1], [all.length - 1, 1], [100000, 70001], [5000000, 5000000], [all.length, 0]];
    const parts = await Promise.all(ranges.map(([start, length]) => opened.read(start, length)));
    parts.forEach((part, at) => assert.ok(isSame(part, all.subarray(ranges[at][0], ranges[at][0] + ranges[at][1]))));
    const wrong = [[all.length, 1], [-1, 1], [0, 2 ** 60], [0.5, 1], [0, NaN]];
    for (const [start, length] of wrong) assert.equal((await verdict(opened.read(start, length))).class, 'usage');
    counted.read = 0;
    const reader = opened.stream({ start: 10 }).getReader();
    const first = await reader.read();
    const after = counted.read;
    await new Promise((done) => { setTimeout(done, 20); });
    assert.ok(counted.read === after && isSame(first.value, all.subarray(10, 10 + first.value.length)));
    await reader.cancel();
    const pieces = [];
    for await (const piece of opened.stream({ start: 10, end: all.length - 10 })) pieces.push(piece);
    assert.ok(isSame(Buffer.concat(pieces), all.subarray(10, -10)));
    await opened.close();
    assert.equal((await verdict(opened.read(0, 1))).class, 'usage');
});

test('a signal ends work, here and in workers', async () => {
    const payload = Buffer.alloc(30 << 20, 'abc');
    const control = new AbortController();
    const reason = new Error('enough');
    const onProgress = () => control.abort(reason);
    await assert.rejects(encode(payload, { onProgress, signal: control.signal }), reason);
    await assert.rejects(encode(payload, { signal: control.signal }), reason);
    for (const ms of [1, 60, 200]) {
        const to = toFolder(here('cut'));
        await assert.rejects(worker.encode(payload, { to, signal: AbortSignal.timeout(ms) }), { name: 'TimeoutError' });
        assert.deepEqual(fs.existsSync(here('cut')) ? fs.readdirSync(here('cut')) : [], []);
    }
});

test('workers do the same, with bytes, blobs and paths', async () => {
    const payload = payloadOf(13, WHOLE);
    let ticks = 0;
    const ticking = setInterval(() => { ticks += 1; }, 5);
    const { root, names } = await worker.encode(new File([payload], 'w.bin'), { k: 5, m: 4, to: toFolder(here('w')) });
    assert.equal((await encode(payload, { k: 5, m: 4, name: 'w.bin' })).root, root);
    assert.equal(names[8], 'w.bin.008.shard');
    const shards = shardsIn(here('w'));
    assert.ok((await worker.verify(shards, { root })).isIntact);
    assert.equal((await worker.look(shards)).name, 'w.bin');
    const seen = [];
    const restored = await worker.restore(shards.slice(4), { root, onProgress: (...progress) => seen.push(progress) });
    assert.ok(isSame(restored.payload, payload) && seen.length > 0);
    const few = await verdict(worker.restore(shards.slice(5)));
    assert.deepEqual([few.class, few.error.encoding.k], ['missing', 5]);
    const opened = await worker.open(shards, { root });
    assert.ok(isSame(await opened.read(1000, 5000), payload.subarray(1000, 6000)));
    const pieces = [];
    for await (const piece of opened.stream()) pieces.push(piece);
    assert.ok(isSame(Buffer.concat(pieces), payload));
    await opened.close();
    shards.close();
    clearInterval(ticking);
    assert.ok(ticks > 5);
});

test('progress of workers comes to its end, and what it throws ends the work', async () => {
    const payload = payloadOf(14, WHOLE);
    const { root, shards } = await encode(payload, { k: 5, m: 4, name: 'p.bin' });
    const seen = [];
    await worker.restore(shards, { root, onProgress: (done, total) => seen.push([done, total]) });
    const [done, total] = seen.at(-1);
    assert.ok(done === total && done > 0, JSON.stringify(seen));
    const mine = new Error('enough');
    await assert.rejects(worker.verify(shards, { root, onProgress: () => { throw mine; } }), mine);
    for (const work of [worker.verify, verify]) {
        assert.equal((await verdict(work(shards, { onProgress: 5 }))).class, 'usage');
    }
});

test('what is locked says so, and its encoding', async () => {
    const [sealed] = vectors('sealed.json').valid.filter(({ path, passphrase }) => path && passphrase !== true);
    const objects = objectsAt(join(golden, sealed.path));
    fec(['keygen', '-q', '-o', here('other')]);
    const other = fs.readFileSync(here('other'), 'utf8');
    for (const keys of [{}, { passphrase: 'another one' }, { identities: other }]) {
        for (const work of [restore, open, worker.restore]) {
            const { error } = await verdict(work(objects, keys));
            assert.ok(error.isLocked && error.encoding.isSealed, error.message);
        }
    }
    const few = await verdict(restore([{ name: 'x', bytes: new Uint8Array(100) }]));
    assert.ok(!few.error.isLocked);
});

test('folders are left as they were: without what was killed, and not empty', async () => {
    const payload = payloadOf(15, WHOLE);
    const left = here('left');
    const program = `import { encode } from 'fecshards'; import { toFolder } from 'fecshards/node';
        const onProgress = (done) => { if (done > 100000) process.kill(process.pid, 'SIGKILL'); };
        await encode(new Uint8Array(300000), { k: 5, m: 4, name: 'x', to: toFolder(${JSON.stringify(left)}), onProgress });`;
    spawnSync(process.execPath, ['--no-warnings', '--input-type=module', '--eval', program], { cwd: scratch });
    assert.ok(fs.readdirSync(left).length > 0 && fs.readdirSync(left).every((name) => name.startsWith('.fecshards-')));
    const { container } = await encode(payload, { k: 5, m: 4, form: 'container', name: 'c' });
    await restore(new File([container], 'c.bin.fec'), { to: toFolder(left) });
    assert.deepEqual(fs.readdirSync(left), ['c.bin']);
    const none = here('none');
    for (const { encode: work } of [{ encode }, worker]) {
        const stop = { onProgress: () => { throw new Error('enough'); } };
        await assert.rejects(work(payload, { k: 5, m: 4, name: 'x', to: toFolder(none), ...stop }));
        assert.ok(!fs.existsSync(none));
    }
    const opened = await open(container);
    assert.throws(() => opened.stream({ from: 10 }), { class: 'usage' });
    await assert.rejects(opened.read('5', 1), { class: 'usage', message: /not "5"/ });
});

const random = ((state) => (below) => {
    // A generator of 32 bits (xorshift), the same everywhere.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
})(SEED * 2654435761 + 1);

/** Damages one object of a list, in one of the ways in which storage and people do. */
function mutate(objects) {
    const at = random(objects.length);
    const bytes = Buffer.from(objects[at].bytes);
    const start = random(bytes.length);
    const end = Math.min(start + 1 + random(random(2) ? 200 : bytes.length), bytes.length);
    const { bytes: others } = objects[random(objects.length)];
    const ways = [
        () => { bytes[start] ^= 1 << random(8); return [bytes]; },
        () => { bytes[random(Math.min(600, bytes.length))] = random(256); return [bytes]; },
        () => [bytes.fill(random(2) * 255, start, end)],
        () => [bytes.subarray(0, start)],
        () => [Buffer.concat([bytes, bytes.subarray(start, end)])],
        () => [Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)])],
        () => [Buffer.concat([bytes.subarray(0, start), Buffer.alloc(random(3000), 7), bytes.subarray(start)])],
        () => { bytes.set(others.subarray(start, end), start); return [bytes]; },
        () => (objects.length > 2 ? [] : [bytes]),
        () => [bytes, bytes],
    ];
    let made = ways[random(ways.length)]();
    if (made.length > 1 && objects.length === 1) made = [Buffer.concat(made)];
    return [...objects.slice(0, at), ...made.map((each) => ({ bytes: each })), ...objects.slice(at + 1)];
}

/** Encodings of the command: several sets, groups, both forms and hashes, and a mixture. */
function victims() {
    const payload = payloadOf(21, 60000);
    fs.writeFileSync(here('v.bin'), payload);
    fs.writeFileSync(here('u.bin'), payloadOf(22, 20000));
    const make = (name, out, ...words) => {
        const { stdout, status, stderr } = fec(['encode', here(name), '-q', '-o', here(out), '-m', '2', ...words]);
        assert.equal(status, 0, stderr);
        const objects = objectsAt(here(out)).map(({ bytes }) => ({ bytes }));
        return { root: String(stdout).trim(), objects, isFolder: out.endsWith('/') };
    };
    const shards = make('v.bin', 'v1/', '-k', '3', '--set-size', '16K');
    const others = make('u.bin', 'v2/', '-k', '3', '--hash', 'sha256');
    return [
        shards, others, { ...shards, objects: [...shards.objects, ...others.objects] },
        make('v.bin', 'v3.fec', '-k', '3', '--set-size', '16K'), make('u.bin', 'v4.fec', '-k', '1'),
        make('v.bin', 'v5.fec', '-k', '3', '--set-size', '16K', '--group-size', '2'),
    ];
}

/** The exit codes of the command for objects, and what it restored. */
async function asCommand(number, { objects, isFolder }, words, isChecked) {
    const path = here(`m${number}`);
    if (isFolder) fs.mkdirSync(path);
    objects.forEach(({ bytes }, at) => fs.writeFileSync(isFolder ? join(path, `${at}.shard`) : path, bytes));
    const run = (what, ...more) => promisify(execFile)(FEC, [what, path, '-q', '-j', '1', ...words, ...more])
        .then(() => 0, ({ code, stderr }) => (assert.equal(typeof code, 'number', stderr), code));
    const out = `${path}.out`;
    const [decode, check] = await Promise.all([run('decode', '--no-sync', '-o', out), isChecked && run('verify')]);
    const restored = fs.existsSync(out) ? fs.readFileSync(out) : null;
    fs.rmSync(path, { recursive: true });
    fs.rmSync(out, { force: true });
    return { decode: CLASSES[decode], check: CLASSES[check], restored };
}

function checkedClass({ class: kind, result }) {
    if (kind !== 'ok') return kind;
    if (result.isIntact) return 'ok';
    return result.isRestorable ? 'damaged' : 'missing';
}

test(`${MUTATIONS} hostile changes end as with the command (seed ${SEED})`, async () => {
    const all = victims();
    const counts = {};
    for (let number = 0; number < MUTATIONS; number += 1) {
        const { root, objects: intact, isFolder } = all[number % all.length];
        let objects = intact;
        for (let times = 1 + random(4); times > 0; times -= 1) objects = mutate(objects);
        const isAsked = random(2) === 1;
        const options = isAsked ? { root } : {};
        // Half of the cases are checked too: processes take most of the time.
        const isChecked = random(2) === 1;
        const told = asCommand(number, { objects, isFolder }, isAsked ? ['--root', root] : [], isChecked);
        const said = await verdict(restore(objects, options));
        const checked = isChecked ? await verdict(verify(objects, options)) : null;
        const { decode, check, restored } = await told;
        const words = `case ${number}: ${said.error?.message}`;
        counts[said.class] = (counts[said.class] ?? 0) + 1;
        assert.equal(said.class, decode, words);
        if (decode === 'ok') {
            assert.ok(isSame(said.result.payload, restored), words);
            const opened = await open(objects, options);
            assert.ok(isSame(await opened.read(0, opened.size), restored), words);
        }
        // The command goes through encodings one by one where several are there.
        if (!isChecked || checked.error?.roots.length > 1) continue;
        assert.equal(checkedClass(checked), check, `case ${number}, verify: ${checked.error?.message}`);
    }
    assert.ok(counts.ok > MUTATIONS / 10 && Object.keys(counts).length > 2, JSON.stringify(counts));
});

test('an engine takes no more memory after many calls', async () => {
    const { Engine } = await import(new URL('engine.js', import.meta.resolve('fecshards')));
    const module = await WebAssembly.compile(fs.readFileSync(new URL(import.meta.resolve('fecshards/fec.wasm'))));
    const [container, damaged] = [objectsAt(here('v3.fec'))[0].bytes, Buffer.from(objectsAt(here('v3.fec'))[0].bytes)];
    damaged.fill(0, 500, 90000);
    const objects = [container, damaged, container.subarray(0, 100)];
    let number = 0;
    const read = (_object, offset, out) => out.set(objects[number].subarray(offset, offset + out.length))
        ?? Math.min(out.length, Math.max(objects[number].length - offset, 0));
    const engine = new Engine(module, { read, write: () => 0, readBack: () => -1, progress() {} });
    let before = 0;
    for (let call = 0; call < 500; call += 1) {
        number = call % 3;
        const work = ['look', 'verify', 'restore', 'open', 'encode'][call % 5];
        await engine.call({ do: work, objects: [{ name: 'x', size: objects[number].length }] });
        if (call === 50) before = engine.exports.memory.buffer.byteLength;
    }
    assert.ok(engine.exports.memory.buffer.byteLength <= before + (1 << 20), 'it grows');
});

const STREAMING = `
    import { open } from 'fecshards';
    import { file } from 'fecshards/node';
    import { createHash } from 'node:crypto';
    const source = file(process.argv[1]);
    const opened = await open(source);
    const before = process.memoryUsage.rss();
    const hash = createHash('sha256');
    let most = 0;
    for await (const piece of opened.stream()) {
        hash.update(piece);
        most = Math.max(most, process.memoryUsage.rss() - before);
    }
    console.log(JSON.stringify({ most, digest: hash.digest('hex') }));`;

test('a stream of 200 MB takes little memory', () => {
    const payload = Buffer.alloc(200e6);
    for (let at = 0; at < payload.length; at += 4096) payload.writeUInt32LE(at, at);
    fs.writeFileSync(here('long'), payload);
    assert.equal(fec(['encode', here('long'), '-r', '20%', '--no-sync', '-o', here('long.fec')]).status, 0);
    const words = ['--no-warnings', '--input-type=module', '--eval', STREAMING, here('long.fec')];
    const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
    assert.equal(stderr, '');
    const { most, digest } = JSON.parse(stdout);
    assert.equal(digest, sha256(payload));
    assert.ok(most < 150e6, `${most} bytes`);
});

test('the examples of the manual run', () => {
    const manual = fs.readFileSync(new URL('README.md', import.meta.resolve('fecshards')), 'utf8');
    const [first, ...more] = [...manual.matchAll(/```js\n([^]*?)```/g)].map(([, text]) => text);
    fs.writeFileSync(here('photos.tar'), payloadOf(4, WHOLE));
    const run = (text) => {
        const words = ['--no-warnings', '--input-type=module', '--eval', text];
        const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', cwd: scratch });
        assert.equal(stderr, '');
        return stdout;
    };
    assert.equal(run(first), 'true letter.txt the only copy of something\n');
    run(more.filter((example) => !example.includes('?url')).join('\n'));
    for (const name of ['back/photos.tar', 'copy.tar']) {
        assert.ok(isSame(fs.readFileSync(here(name)), payloadOf(4, WHOLE)), name);
    }
});
