// The worker: runs requests on files, away from the page, so that the page stays alive and can end it at any time.
import { Engine } from './engine.js';

const PIECE = 4 << 20;
// Pieces that are begun and not full. The engine goes through a payload in order, but for sets beside each other.
const MOST_OPEN = 64;
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

/** The ranges that were written: each byte has to be written once, or zeros would stand where none came. */
class Written {
    constructor() {
        this.ranges = [];
    }

    add(from, to) {
        if (from === to) return;
        // Writes come nearly in order: the place is near the end.
        let at = this.ranges.length;
        while (at > 0 && this.ranges[at - 1].from >= from) at -= 1;
        const before = this.ranges[at - 1];
        const after = this.ranges[at];
        if ((before && before.to > from) || (after && after.from < to)) {
            throw new Error(`the engine wrote twice at ${from}`);
        }
        this.ranges.splice(at, 0, { from, to });
        this.join(at);
        this.join(at - 1);
    }

    /** Makes one range of this and the next, if they touch. */
    join(at) {
        if (at < 0 || this.ranges[at].to !== this.ranges[at + 1]?.from) return;
        this.ranges[at].to = this.ranges[at + 1].to;
        this.ranges.splice(at + 1, 1);
    }

    /** Tells whether all of the first `len` bytes were written, and no others. */
    isAll(len) {
        const [only, more] = this.ranges;
        return len === 0 ? !only : !more && only?.from === 0 && only.to === len;
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

/** Pieces of a blob, which the browser moves to its disk as it likes. Each waits until all its bytes are there. */
class BlobSink {
    constructor() {
        this.pieces = [];
        // By number of the piece: its bytes, and how many are there.
        this.open = new Map();
    }

    write(offset, bytes) {
        for (let done = 0; done < bytes.length;) {
            const at = offset + done;
            const number = Math.floor(at / PIECE);
            const piece = this.pieceOf(number);
            const within = at % PIECE;
            const part = bytes.subarray(done, done + PIECE - within);
            piece.bytes.set(part, within);
            piece.filled += part.length;
            done += part.length;
            if (piece.filled === PIECE) this.close(number, piece);
        }
    }

    pieceOf(number) {
        let piece = this.open.get(number);
        if (!piece) {
            if (this.open.size >= MOST_OPEN) throw new Error('the engine wrote at too many places at once');
            piece = { bytes: new Uint8Array(PIECE), filled: 0 };
            this.open.set(number, piece);
        }
        return piece;
    }

    close(number, { bytes, filled }) {
        this.pieces[number] = new Blob([bytes.subarray(0, filled)]);
        this.open.delete(number);
        giveBack(bytes.buffer);
    }

    async finish() {
        for (const [number, piece] of [...this.open]) this.close(number, piece);
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
    const written = new Written();
    const host = {
        read: (object, offset, bytes) => source.read(object, offset, bytes),
        write(_output, offset, bytes) {
            try {
                written.add(offset, offset + bytes.length);
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
        const isGood = response.ok && sink !== null && faults.length === 0;
        if (isGood && !written.isAll(response.restored.len)) throw new Error('Not all restored bytes were kept.');
        const payload = isGood ? await sink.finish() : null;
        if (isGood && payload.size !== response.restored.len) {
            throw new Error('More bytes are kept than were restored.');
        }
        if (!isGood) await sink?.discard();
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
