// The outputs of an operation: in memory, or handed to a sink of the caller.

const LEAST = 64 << 10;

/** An output in memory that grows as it is written. */
class Grown {
    constructor(expected) {
        this.bytes = new Uint8Array(Math.max(expected, LEAST));
        this.length = 0;
    }

    write(offset, bytes) {
        const end = offset + bytes.length;
        if (end > this.bytes.length) {
            const more = new Uint8Array(Math.max(end, 2 * this.bytes.length));
            more.set(this.bytes.subarray(0, this.length));
            this.bytes = more;
        }
        this.bytes.set(bytes, offset);
        this.length = Math.max(this.length, end);
    }

    readBack(offset, bytes) {
        const part = this.bytes.subarray(offset, Math.min(offset + bytes.length, this.length));
        bytes.set(part);
        return part.length;
    }

    /** All of it, in a buffer of this length. */
    taken() {
        const isExact = this.bytes.length === this.length;
        return isExact ? this.bytes : this.bytes.slice(0, this.length);
    }
}

/** Outputs in memory. `expected` bytes of each are made room for. */
export class Memory {
    constructor(expected) {
        this.expected = expected;
        this.outputs = new Map();
    }

    write(output, offset, bytes) {
        if (!this.outputs.has(output)) this.outputs.set(output, new Grown(this.expected));
        this.outputs.get(output).write(offset, bytes);
    }

    readBack(output, offset, bytes) {
        return this.outputs.get(output)?.readBack(offset, bytes) ?? 0;
    }

    take(output) {
        const taken = this.outputs.get(output)?.taken() ?? new Uint8Array(0);
        this.outputs.delete(output);
        return taken;
    }
}
