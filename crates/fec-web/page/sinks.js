// The outputs of a request, kept until they are saved.
import { Written } from './written.js';

const PIECE = 512 << 10;
// Pieces that are begun and not full. Each original shard file has a part of the payload, and there are 255 at most:
// the engine writes at as many places, and each may lie across two pieces.
const MOST_OPEN = 520;

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

    readBack(offset, bytes) {
        return this.handle.read(bytes, { at: offset });
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
        // Bytes of pieces that are closed: new ones would be cleared first.
        this.free = [];
        this.reader = new FileReaderSync();
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
            piece = { bytes: this.free.pop() ?? new Uint8Array(PIECE), filled: 0 };
            this.open.set(number, piece);
        }
        return piece;
    }

    close(number, { bytes, filled }) {
        this.pieces[number] = new Blob([bytes.subarray(0, filled)]);
        this.open.delete(number);
        this.free.push(bytes);
    }

    readBack(offset, bytes) {
        const number = Math.floor(offset / PIECE);
        const within = offset % PIECE;
        const open = this.open.get(number)?.bytes;
        const part = open
            ? open.subarray(within, within + bytes.length)
            : new Uint8Array(this.reader.readAsArrayBuffer(this.pieces[number].slice(within, within + bytes.length)));
        bytes.set(part);
        return part.length;
    }

    async finish() {
        for (const [number, piece] of [...this.open]) this.close(number, piece);
        // A browser without room for a piece says so only when it is read.
        for (const piece of this.pieces) this.reader.readAsArrayBuffer(piece.slice(0, 1));
        return new Blob(this.pieces);
    }

    async discard() {
        this.pieces = [];
    }
}

/** The outputs of a request: each byte of them is kept once, and they count only when all is well. */
export class Outputs {
    /** Begins `count` outputs, in the private storage if there is one: a page from file:// has none. */
    static async open(name, count) {
        const outputs = new Outputs();
        for (let number = 0; number < count; number += 1) {
            const stored = await StoredSink.open(`${name}.${number}`).catch(() => null);
            if (stored) outputs.sinks.set(number, stored);
        }
        return outputs;
    }

    constructor() {
        this.sinks = new Map();
        this.written = new Map();
        this.fault = null;
    }

    write(output, offset, bytes) {
        try {
            if (!this.written.has(output)) this.written.set(output, new Written());
            if (!this.sinks.has(output)) this.sinks.set(output, new BlobSink());
            this.written.get(output).add(offset, offset + bytes.length);
            this.sinks.get(output).write(offset, bytes);
            return 0;
        } catch (error) {
            this.fault ??= `The restored bytes cannot be kept in this browser: ${error.message}`;
            return -1;
        }
    }

    readBack(output, offset, bytes) {
        try {
            return this.sinks.get(output).readBack(offset, bytes);
        } catch (error) {
            this.fault ??= `The restored bytes cannot be read again: ${error.message}`;
            return -1;
        }
    }

    /** The file of an output of `len` bytes; the other outputs are gone then. */
    async finish(output, len) {
        const written = this.written.get(output) ?? new Written();
        if (!written.isAll(len)) throw new Error('Not all restored bytes were kept.');
        const sink = this.sinks.get(output) ?? new BlobSink();
        this.sinks.delete(output);
        await this.discard();
        const file = await sink.finish();
        if (file.size !== len) throw new Error('More bytes are kept than were restored.');
        return file;
    }

    async discard() {
        for (const sink of this.sinks.values()) await sink.discard().catch(() => {});
        this.sinks.clear();
    }
}
