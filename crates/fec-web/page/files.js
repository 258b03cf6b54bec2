// The files that were chosen, read by slices in a worker.

// The browser takes half a millisecond for any read, so files are read ahead in blocks: as large as may be. A check
// goes through file after file; what restores reads from all of them in turn. Both look at all headers first.
const MOST_CACHED = 96 << 20;
const MOST_BLOCK = 4 << 20;
const MOST_ENDS = 32 << 20;
const LEAST_BLOCK = 64 << 10;
// Reads that the browser does at the same time.
const AT_ONCE = 6;
// More than the number of blocks in any file: 2^32 of 64 KiB are 256 TiB, and an object has a number below 2^20.
const MOST_NUMBERS = 2 ** 32;
// Buffers are given back once nobody needs them: garbage of a thread that is busy for long is collected late, or when
// half a gigabyte is there.
const nobody = new MessageChannel();
nobody.port2.close();

/** Frees a buffer: whoever sends it owns it no more, and nobody gets it. */
function giveBack(buffer) {
    nobody.port1.postMessage(null, [buffer]);
}

/** Blocks of files, of one size: the block that was used the longest ago gives way to another. */
class Blocks {
    constructor(files, size, most) {
        Object.assign(this, { files, size });
        this.most = Math.max(Math.floor(most / size), 1);
        // By object and number.
        this.known = new Map();
        this.coming = new Map();
        this.reader = new FileReaderSync();
    }

    key(object, at) {
        return object * MOST_NUMBERS + Math.floor(at / this.size);
    }

    slice(object, at) {
        const start = at - (at % this.size);
        return this.files[object].slice(start, start + this.size);
    }

    /** The bytes of a block from an offset of its file on; null if the block is not here. */
    find(object, at) {
        const key = this.key(object, at);
        const found = this.known.get(key);
        if (!found) return null;
        this.known.delete(key);
        this.known.set(key, found);
        return found.subarray(at % this.size);
    }

    load(object, at) {
        this.keep(this.key(object, at), this.reader.readAsArrayBuffer(this.slice(object, at)));
        return this.find(object, at);
    }

    /** Begins to read a block, if it is neither here nor coming. */
    fetch(object, at) {
        const key = this.key(object, at);
        if (!(at < this.files[object]?.size) || this.known.has(key)) return null;
        let coming = this.coming.get(key);
        if (!coming) {
            coming = this.slice(object, at).arrayBuffer().then((buffer) => this.keep(key, buffer));
            // Whoever waits for it is told of a failure; nobody may wait.
            coming.catch(() => {}).finally(() => this.coming.delete(key));
            this.coming.set(key, coming);
        }
        return coming;
    }

    keep(key, buffer) {
        if (this.known.size >= this.most) {
            const [oldest, { buffer: freed }] = this.known.entries().next().value;
            this.known.delete(oldest);
            giveBack(freed);
        }
        this.known.set(key, new Uint8Array(buffer));
    }

    end() {
        for (const { buffer } of this.known.values()) giveBack(buffer);
        this.known.clear();
    }
}

/** The files that were chosen, read by slices: first a little at both ends, then as much as goes at once. */
export class Source {
    /** `together` files are read in turn; of one, one after the other. */
    constructor(files, together) {
        Object.assign(this, { files, together });
        let size = MOST_BLOCK;
        while (size > LEAST_BLOCK && size * together > MOST_CACHED) size /= 2;
        this.ends = new Blocks(files, LEAST_BLOCK, MOST_ENDS);
        this.rest = new Blocks(files, size, MOST_CACHED);
        this.fault = null;
    }

    /** Reads both ends of all files. */
    async begin() {
        const most = MOST_ENDS / LEAST_BLOCK / 2;
        const both = this.files.slice(0, most).flatMap((file, object) => [[object, 0], [object, file.size - 1]]);
        const next = async () => {
            for (let end = both.pop(); end; end = both.pop()) await this.ends.fetch(...end)?.catch(() => {});
        };
        await Promise.all(Array.from({ length: AT_ONCE }, next));
    }

    end() {
        this.ends.end();
        this.rest.end();
    }

    /** Copies what is here: the number of bytes, or null if `wait` has to get them. -1 if there are none. */
    readNow(object, offset, bytes) {
        const file = this.files[object];
        if (!file || !(offset >= 0)) return -1;
        const wanted = Math.min(bytes.length, Math.max(file.size - offset, 0));
        let done = 0;
        while (done < wanted) {
            const part = this.find(object, offset + done)?.subarray(0, wanted - done);
            if (!part) return done > 0 ? done : null;
            if (part.length === 0) break;
            bytes.set(part, done);
            done += part.length;
        }
        return done;
    }

    find(object, at) {
        return this.ends.find(object, at) ?? this.rest.find(object, at);
    }

    /** Reads as `readNow`, and waits for the browser meanwhile. */
    read(object, offset, bytes) {
        return this.readNow(object, offset, bytes) ?? this.told(object, () => {
            this.rest.load(object, offset);
            return this.readNow(object, offset, bytes);
        });
    }

    told(object, read) {
        try {
            return read();
        } catch (error) {
            this.fault ??= `${this.files[object].name} cannot be read: ${error.message}`;
            return -1;
        }
    }

    /** Reads the block at an offset, and begins with those that follow: false if it cannot be read. */
    async wait(object, offset) {
        const { size } = this.rest;
        const wanted = this.rest.fetch(object, offset);
        let [next, at] = [object, offset];
        for (let ahead = 1; ahead < AT_ONCE; ahead += 1) {
            at += this.together === 1 ? size : 0;
            if (this.together > 1 || at - (at % size) >= this.files[next].size) {
                next += 1;
                at = this.together === 1 ? 0 : at;
            }
            if (next === this.files.length) break;
            this.rest.fetch(next, at);
        }
        try {
            await wanted;
            return true;
        } catch (error) {
            return this.told(object, () => { throw error; }) === 0;
        }
    }
}
