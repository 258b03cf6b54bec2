// The objects that an operation reads: bytes, blobs, and sources of the caller.
import { misuse, wordsOf } from './errors.js';

// Blocks of objects that cannot be read at once, by those who wait for them.
const MOST_CACHED = 64 << 20;
const MOST_BLOCK = 4 << 20;
const LEAST_BLOCK = 64 << 10;

/** Tells whether the engine can wait for promises (JSPI). */
export function isPatient() {
    return typeof WebAssembly.Suspending === 'function';
}

/** The bytes of a view or a buffer, as they lie in memory; null if it is neither. */
export function bytesOf(given) {
    if (given instanceof Uint8Array) return given;
    if (ArrayBuffer.isView(given)) return new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
    const isShared = typeof SharedArrayBuffer === 'function' && given instanceof SharedArrayBuffer;
    return given instanceof ArrayBuffer || isShared ? new Uint8Array(given) : null;
}

/** An object that is read at once: `readAt(offset, bytes)` fills the start of `bytes`. */
function ofBytes(bytes, name) {
    const readAt = (offset, out) => {
        const part = bytes.subarray(offset, offset + out.length);
        out.set(part);
        return part.length;
    };
    return { name, size: bytes.length, readAt };
}

/** A blob: in parts by whoever can wait or read it at once, else as a whole. */
async function ofBlob(blob, name) {
    const canLoad = typeof FileReaderSync === 'function';
    if (!isPatient() && !canLoad) return ofBytes(new Uint8Array(await blob.arrayBuffer()), name);
    const fetch = async (start, end) => new Uint8Array(await blob.slice(start, end).arrayBuffer());
    const load = (start, end) => new Uint8Array(new FileReaderSync().readAsArrayBuffer(blob.slice(start, end)));
    return { name, size: blob.size, fetch, load: canLoad ? load : null };
}

/** The number of bytes that a source says it read, if it makes sense. */
function counted(read, most) {
    if (!Number.isInteger(read) || read < 0 || read > most) {
        throw new TypeError(`read() should return how many bytes it read, 0 to ${most}, and said ${String(read)}`);
    }
    return read;
}

async function wholly(source, start, end) {
    const bytes = new Uint8Array(end - start);
    let done = 0;
    while (done < bytes.length) {
        const read = counted(await source.read(start + done, bytes.subarray(done)), bytes.length - done);
        if (read === 0) break;
        done += read;
    }
    return bytes.subarray(0, done);
}

/** A source of the caller, whose first byte tells whether it reads at once or by promises. */
async function ofSource(source, name) {
    const { size } = source;
    if (!Number.isSafeInteger(size) || size < 0) throw misuse('the size of a source should be a whole number');
    const first = size > 0 ? source.read(0, new Uint8Array(1)) : 0;
    if (typeof first?.then === 'function') {
        await first;
        if (!isPatient()) {
            throw misuse('this source reads by promises, and the engine can wait for them only where '
                + 'WebAssembly.Suspending is there: read at once, or give bytes');
        }
        return { name, size, fetch: (start, end) => wholly(source, start, end), load: null };
    }
    return { name, size, readAt: (offset, out) => counted(source.read(offset, out), out.length) };
}

async function objectOf(given, usual) {
    const isNamed = typeof given?.name === 'string' && given.name !== '';
    const name = isNamed ? given.name : usual;
    const bytes = bytesOf(given) ?? bytesOf(given?.bytes);
    if (bytes) return ofBytes(bytes, name);
    if (given instanceof Blob) return ofBlob(given, name);
    if (typeof given?.read === 'function') return ofSource(given, name);
    throw misuse('an object should be bytes, a Blob, a File or a source with size and read()');
}

/** Tells whether this is a list of objects, not an object. */
export function isList(given) {
    return typeof given === 'object' && given !== null && !ArrayBuffer.isView(given) && Symbol.iterator in given;
}

/** Objects as the engine asks for them, by their numbers. */
export class Objects {
    static async of(given, usual) {
        const list = isList(given) ? [...given] : [given];
        if (list.length === 0) throw misuse('there are no objects');
        const known = [];
        for (const [number, one] of list.entries()) known.push(await objectOf(one, usual ?? `object ${number}`));
        return new Objects(known);
    }

    constructor(known) {
        this.known = known;
        const slow = known.filter((object) => !object.readAt).length;
        this.isSlow = slow > 0;
        this.fault = null;
        let size = MOST_BLOCK;
        while (size > LEAST_BLOCK && 2 * size * slow > MOST_CACHED) size /= 2;
        Object.assign(this, { size, most: MOST_CACHED / size, blocks: new Map(), coming: new Map() });
    }

    /** The members of a request. */
    names() {
        return this.known.map(({ name, size }) => ({ name, size }));
    }

    failed(error) {
        this.fault ??= error;
        return -1;
    }

    /** Reads what is here: null if `wait` or `load` has to get it first. */
    readNow(number, offset, bytes) {
        const object = this.known[number];
        if (!object || !(offset >= 0)) return -1;
        const wanted = Math.min(bytes.length, Math.max(object.size - offset, 0));
        if (wanted === 0) return 0;
        if (!object.readAt) {
            const part = this.find(number, offset)?.subarray(0, wanted);
            if (!part) return null;
            bytes.set(part);
            return part.length;
        }
        try {
            return object.readAt(offset, bytes.subarray(0, wanted));
        } catch (error) {
            return this.failed(error);
        }
    }

    read(number, offset, bytes) {
        return this.readNow(number, offset, bytes) ?? this.readLoaded(number, offset, bytes);
    }

    readLoaded(number, offset, bytes) {
        const object = this.known[number];
        const start = offset - (offset % this.size);
        try {
            this.keep(`${number} ${start}`, object.load(start, Math.min(start + this.size, object.size)));
            return this.readNow(number, offset, bytes) ?? -1;
        } catch (error) {
            return this.failed(error);
        }
    }

    /** Gets the block at an offset, and begins with the next: false if it cannot be read. */
    async wait(number, offset) {
        try {
            const wanted = this.fetch(number, offset);
            this.fetch(number, offset + this.size)?.catch(() => {});
            await wanted;
            return true;
        } catch (error) {
            return this.failed(error) === 0;
        }
    }

    fetch(number, offset) {
        const object = this.known[number];
        const start = offset - (offset % this.size);
        const key = `${number} ${start}`;
        if (start >= object.size || this.blocks.has(key)) return null;
        let coming = this.coming.get(key);
        if (!coming) {
            coming = object.fetch(start, Math.min(start + this.size, object.size))
                .then((bytes) => this.keep(key, bytes))
                .finally(() => this.coming.delete(key));
            this.coming.set(key, coming);
        }
        return coming;
    }

    /** The bytes of a block from an offset on; the block that was used the longest ago gives way to another. */
    find(number, offset) {
        const within = offset % this.size;
        const key = `${number} ${offset - within}`;
        const found = this.blocks.get(key);
        if (!found) return null;
        this.blocks.delete(key);
        this.blocks.set(key, found);
        return found.subarray(within);
    }

    keep(key, bytes) {
        if (this.blocks.size >= this.most) this.blocks.delete(this.blocks.keys().next().value);
        this.blocks.set(key, bytes);
    }

    /** The words about what could not be read. */
    complaint() {
        return this.fault === null ? null : `an object cannot be read: ${wordsOf(this.fault)}`;
    }
}
