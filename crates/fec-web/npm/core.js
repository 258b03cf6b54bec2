// The functions of the package, the same in Node and in browsers.
import { hasSimd } from './engine.js';
import { FecError, misuse } from './errors.js';
import { bytesOf, isList } from './objects.js';
import { Opened } from './opened.js';
import { inWords, Operation } from './operation.js';
import { Memory } from './outputs.js';

export { FecError, hasSimd };

const HASHES = { blake3: 'BLAKE3', sha256: 'SHA-256' };
// A record, its proofs and its headers take about this share of a shard more than the payload.
const OVERHEAD = 1.01;
// An output may be longer: room for more is made as it comes.
const MOST_EXPECTED = 256 << 20;

// Node and browsers get modules in different ways: `ours(name)` is the module of the package, `at(url)` another.
let platform = null;
let compiled = null;

export function setPlatform(given) {
    platform = given;
}

/** The compiled module, which all operations share. */
export function theModule() {
    return compiled ?? keep(platform.ours(hasSimd() ? 'fec-simd.wasm' : 'fec.wasm'));
}

function keep(coming) {
    compiled = coming;
    coming.catch(() => { if (compiled === coming) compiled = null; });
    return coming;
}

async function compile(given) {
    const got = await given;
    if (got instanceof WebAssembly.Module) return got;
    const bytes = bytesOf(got);
    if (bytes) return WebAssembly.compile(bytes);
    if (typeof Response === 'function' && got instanceof Response) return WebAssembly.compile(await got.arrayBuffer());
    if (typeof got === 'string' || got instanceof URL) return platform.at(got);
    throw misuse('init() takes a module, its bytes, a response or a URL');
}

/** Says which module is used, where the package does not find its own. */
export async function init(given) {
    await keep(compile(given));
}

const KNOWN = {
    encode: ['k', 'm', 'hash', 'name', 'form', 'to'],
    look: ['root', 'trust', 'identities', 'passphrase'],
    restore: ['root', 'trust', 'identities', 'passphrase', 'to'],
};

export function checkProgress(onProgress) {
    if (onProgress !== undefined && typeof onProgress !== 'function') throw misuse('onProgress should be a function');
}

/** Fails for options that nobody knows: a misspelt root would prove nothing. */
function checkOptions(options, known) {
    if (typeof options !== 'object' || options === null) throw misuse('the options should be an object');
    const unknown = Object.keys(options).find((name) => ![...known, 'signal', 'onProgress'].includes(name));
    if (unknown !== undefined) throw misuse(`there is no option ${JSON.stringify(unknown)}`);
    checkProgress(options.onProgress);
    // A value that came out as nothing must not mean that everything is believed.
    for (const name of ['root', 'trust', 'identities', 'passphrase'].filter((name) => name in options)) {
        const isText = typeof options[name] === 'string' && options[name].trim() !== '';
        if (!isText) throw misuse(`the option ${name} should be a text: leave it out if there is none`);
    }
}

async function begin(objects, options, sink) {
    return Operation.begin(await theModule(), objects, options, sink);
}

function asked(work, operation, { root, trust, identities, passphrase }) {
    return { do: work, objects: operation.objects.names(), root, trust, identities, passphrase };
}

/** Takes no outputs: looking and checking have none. */
const NOTHING = {
    write() { throw new Error('nothing should be written'); },
    readBack: () => 0,
};

/** Runs something that fills a sink, which is told of its end where it wants to know. */
async function filling(sink, fill, done) {
    try {
        const result = await fill();
        await sink.finish?.(done(result));
        return result;
    } catch (error) {
        await sink.discard?.();
        throw error;
    }
}

function hashOf(options) {
    const { hash = 'blake3' } = options;
    if (!Object.hasOwn(HASHES, hash)) throw misuse('hash should be "blake3" or "sha256"');
    return HASHES[hash];
}

/** Encodes a payload: k + m shards, any k of which restore it, or a container. */
export async function encode(payload, options = {}) {
    checkOptions(options, KNOWN.encode);
    const { k = 33, m = 67, name, form = 'shards', to } = options;
    if (isList(payload)) throw misuse('a single payload is encoded at a time');
    const hash = hashOf(options);
    const size = bytesOf(payload)?.length ?? payload?.size ?? 0;
    const share = form === 'container' ? (k + m) / k : 1 / k;
    const sink = to ?? new Memory(Math.min(Math.ceil(size * share * OVERHEAD), MOST_EXPECTED) || 0);
    const { signal, onProgress } = options;
    const fill = async () => {
        const operation = await begin(payload, { signal, onProgress, usual: 'payload' }, sink);
        const said = await operation.ask({ do: 'encode', objects: operation.objects.names(), k, m, hash, form, name });
        return said.encoded;
    };
    const listed = ({ names }) => names.map((each, output) => ({ output, name: each }));
    const { root, names } = await filling(sink, fill, listed);
    if (to) return { root, names };
    if (form === 'container') return { root, name: names[0], container: sink.take(0) };
    return { root, shards: names.map((each, output) => ({ name: each, bytes: sink.take(output) })) };
}

/** Finds out which encoding the objects are of; their headers are read. */
export async function look(objects, options = {}) {
    checkOptions(options, KNOWN.look);
    const operation = await begin(objects, options, NOTHING);
    return inWords((await operation.ask(asked('look', operation, options))).encoding);
}

/** Checks every byte. */
export async function verify(objects, options = {}) {
    checkOptions(options, KNOWN.look);
    const operation = await begin(objects, options, NOTHING);
    const said = await operation.ask(asked('verify', operation, options));
    return { encoding: inWords(said.encoding), ...inWords(said.verified) };
}

/** A container that records no name is restored under its own, as the command does: X.fec becomes X. */
function ofContainer([first, more]) {
    return !more && /.\.fec$/i.test(first.name) ? first.name.slice(0, -4) : null;
}

/** Restores the payload, or throws. */
export async function restore(objects, options = {}) {
    checkOptions(options, KNOWN.restore);
    const { to, signal, onProgress } = options;
    const sink = to ?? new Memory(0);
    const fill = async () => {
        const operation = await begin(objects, { signal, onProgress, isOnce: true }, sink);
        const said = await operation.ask(asked('restore', operation, options));
        operation.checkWhole(said.restored.output, said.restored.len);
        said.restored.name ??= ofContainer(operation.objects.names());
        return said;
    };
    const listed = ({ restored: { output, name } }) => [{ output, name }];
    const { restored, encoding } = await filling(sink, fill, listed);
    const { output, root, name, len: length, sets, mended_sets: mendedSets } = restored;
    const result = { root, name, length, sets, mendedSets, encoding: inWords(encoding) };
    return to ? { output, ...result } : { payload: sink.take(output), ...result };
}

/** A sink for one part, whose length is known. */
class Part {
    write(_output, offset, bytes) {
        this.bytes.set(bytes, offset);
    }

    readBack() {
        return 0;
    }
}

/** Opens an encoding, whose payload then is read in parts. */
export async function open(objects, options = {}) {
    checkOptions(options, KNOWN.look);
    const sink = new Part();
    let operation = await begin(objects, { ...options, isOnce: true }, sink);
    const said = await operation.ask(asked('open', operation, options));
    const part = async (start, length) => {
        sink.bytes = new Uint8Array(length);
        operation.written.clear();
        await operation.ask({ do: 'part', start, len: length });
        operation.checkWhole(0, length);
        return sink.bytes;
    };
    const { name, len: size } = said.opened;
    return new Opened({ name, size, encoding: inWords(said.encoding) }, part, () => { operation = null; });
}
