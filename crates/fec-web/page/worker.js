// The worker: runs requests on files, away from the page, so that the page stays alive and can end it at any time.
import { Engine } from './engine.js';

const PIECE = 4 << 20;
// The browser takes half a millisecond for any read, so files are read ahead in blocks: as large as may be, if there
// is room for a block of each of a hundred files.
const MOST_CACHED = 64 << 20;
const LEAST_BLOCK = 128 << 10;
const PROGRESS_MS = 100;
// All blocks are copied into the same bytes, and where the browser put them is given back at once: garbage of a thread
// that is busy for long is collected late, or when half a gigabyte is there.
let cache = null;
const nobody = new MessageChannel();
nobody.port2.close();

/** Frees a buffer: whoever sends it owns it no more, and nobody gets it. */
function giveBack(buffer) {
    nobody.port1.postMessage(null, [buffer]);
}

// A promise: a request may come while the module is still being compiled.
let compiled = null;

/** The files that were chosen, read by slices. */
class Source {
    constructor(files, isWholeRead) {
        this.files = files;
        this.reader = new FileReaderSync();
        this.block = isWholeRead ? PIECE : LEAST_BLOCK;
        while (this.block > LEAST_BLOCK && this.block * files.length > MOST_CACHED) this.block /= 2;
        // By object and number: the place in the cache, and how many bytes are there.
        this.blocks = new Map();
        this.fault = null;
    }

    read(object, offset, bytes) {
        const file = this.files[object];
        if (!file || !(offset >= 0)) return -1;
        const wanted = Math.min(bytes.length, Math.max(file.size - offset, 0));
        try {
            for (let done = 0; done < wanted;) {
                const at = offset + done;
                const within = at % this.block;
                const from = this.blockOf(object, Math.floor(at / this.block));
                const part = from.subarray(within, within + wanted - done);
                if (part.length === 0) return done;
                bytes.set(part, done);
                done += part.length;
            }
            return wanted;
        } catch (error) {
            this.fault ??= `${file.name} cannot be read: ${error.message}`;
            return -1;
        }
    }

    /** A block of an object; the block that was used the longest ago gives way. */
    blockOf(object, number) {
        const key = `${object}:${number}`;
        let found = this.blocks.get(key);
        if (found) {
            this.blocks.delete(key);
        } else {
            const slice = this.files[object].slice(number * this.block, (number + 1) * this.block);
            const buffer = this.reader.readAsArrayBuffer(slice);
            found = { at: this.freePlace(), len: buffer.byteLength };
            cache.set(new Uint8Array(buffer), found.at);
            giveBack(buffer);
        }
        this.blocks.set(key, found);
        return cache.subarray(found.at, found.at + found.len);
    }

    freePlace() {
        cache ??= new Uint8Array(MOST_CACHED);
        const at = this.blocks.size * this.block;
        if (at < MOST_CACHED) return at;
        const [oldest, { at: freed }] = this.blocks.entries().next().value;
        this.blocks.delete(oldest);
        return freed;
    }
}

/** A file in the private storage of the page: bytes may come in any order. */
class StoredSink {
    static async open(name) {
        const folder = await navigator.storage.getDirectory();
        const file = await folder.getFileHandle(name, { create: true });
        const handle = await file.createSyncAccessHandle();
        handle.truncate(0);
        return new StoredSink(folder, file, handle);
    }

    constructor(folder, file, handle) {
        Object.assign(this, { folder, file, handle });
    }

    write(offset, bytes) {
        if (this.handle.write(bytes, { at: offset }) !== bytes.length) throw new Error('the storage is full');
    }

    async finish() {
        this.handle.flush();
        this.handle.close();
        return this.file.getFile();
    }

    async discard() {
        this.handle.close();
        await this.folder.removeEntry(this.file.name);
    }
}

/** Pieces of a blob, which the browser moves to its disk as it likes: bytes have to come in order. */
class BlobSink {
    constructor() {
        this.pieces = [];
        this.buffer = new Uint8Array(PIECE);
        this.filled = 0;
        this.next = 0;
    }

    write(offset, bytes) {
        if (offset !== this.next) throw new Error(`the engine wrote at ${offset}, and not at ${this.next}`);
        for (let done = 0; done < bytes.length;) {
            const part = bytes.subarray(done, done + PIECE - this.filled);
            this.buffer.set(part, this.filled);
            this.filled += part.length;
            done += part.length;
            if (this.filled === PIECE) this.flush();
        }
        this.next += bytes.length;
    }

    flush() {
        this.pieces.push(new Blob([this.buffer.subarray(0, this.filled)]));
        this.filled = 0;
    }

    async finish() {
        this.flush();
        // A browser without room for a piece says so only when it is read.
        const reader = new FileReaderSync();
        for (const piece of this.pieces) reader.readAsArrayBuffer(piece.slice(0, 1));
        return new Blob(this.pieces);
    }

    async discard() {
        this.pieces = [];
    }
}

async function openSink(name) {
    try {
        return await StoredSink.open(name);
    } catch {
        // Pages from file:// have no private storage.
        return new BlobSink();
    }
}

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
    const source = new Source(files, request.do !== 'look');
    const sink = request.do === 'restore' ? await openSink(storage) : null;
    const faults = [];
    const host = {
        read: (object, offset, bytes) => source.read(object, offset, bytes),
        write(offset, bytes) {
            try {
                sink.write(offset, bytes);
                return 0;
            } catch (error) {
                faults[0] ??= `The restored bytes cannot be kept in this browser: ${error.message}`;
                return -1;
            }
        },
        progress: reporter(),
    };
    try {
        const engine = new Engine(module, host);
        const response = engine.call(request);
        const payload = response.ok && sink && faults.length === 0 ? await sink.finish() : null;
        if (payload && payload.size !== response.restored.len) {
            throw new Error(`${response.restored.len} bytes were restored, and ${payload.size} were kept.`);
        }
        if (!payload) await sink?.discard();
        if (source.fault) faults.push(source.fault);
        postMessage({ kind: 'done', response, payload, faults });
    } catch (error) {
        await sink?.discard().catch(() => {});
        postMessage({ kind: 'fault', message: error.message, lines: error.lines ?? [] });
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
