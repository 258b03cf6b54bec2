// The engine: the WebAssembly module of fec with the functions that it imports. There is no DOM here, so that a worker
// and Node use the same file.

const EBADF = 8;
const EINVAL = 28;
const ENOSYS = 52;
// crypto.getRandomValues refuses more at once.
const MOST_RANDOM = 65536;
// Lines on standard error are kept for messages only: a module that never stops to complain may not fill the memory.
const MOST_LINES = 40;

// (module (func (result v128) (i8x16.splat (i32.const 0)))): valid only where simd128 is there.
const SIMD_PROBE = new Uint8Array([
    0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11,
]);

/** Tells whether this machine runs modules with vectors of 128 bits. */
export function hasSimd() {
    return WebAssembly.validate(SIMD_PROBE);
}

/** The module ended itself, or ran into a trap; `lines` has the last words that it wrote. */
export class EngineFault extends Error {
    constructor(message, lines) {
        super(message);
        this.name = 'EngineFault';
        this.lines = lines;
    }
}

/** Collects what a program writes, line by line. */
class Lines {
    constructor() {
        this.kept = [];
        this.rest = '';
        this.decoder = new TextDecoder();
    }

    add(bytes) {
        const parts = (this.rest + this.decoder.decode(bytes, { stream: true })).split('\n');
        this.rest = parts.pop().slice(-4096);
        this.kept.push(...parts);
        this.kept.splice(0, this.kept.length - MOST_LINES);
    }

    all() {
        return this.rest ? [...this.kept, this.rest] : [...this.kept];
    }
}

/** The functions of WASI that need the memory of the module, which `memory()` gives as it is now. */
function wasiOfMemory(memory, lines) {
    const view = () => new DataView(memory().buffer);
    const nothing = (count, size) => {
        view().setUint32(count >>> 0, 0, true);
        view().setUint32(size >>> 0, 0, true);
        return 0;
    };
    return {
        args_sizes_get: nothing,
        environ_sizes_get: nothing,
        clock_res_get(_clock, out) {
            view().setBigUint64(out >>> 0, 1000000n, true);
            return 0;
        },
        clock_time_get(clock, _precision, out) {
            const ms = clock === 0 ? Date.now() : performance.now();
            view().setBigUint64(out >>> 0, BigInt(Math.round(ms * 1e6)), true);
            return 0;
        },
        random_get(at, len) {
            const bytes = new Uint8Array(memory().buffer, at >>> 0, len >>> 0);
            for (let start = 0; start < bytes.length; start += MOST_RANDOM) {
                crypto.getRandomValues(bytes.subarray(start, start + MOST_RANDOM));
            }
            return 0;
        },
        fd_write(descriptor, list, count, out) {
            if (descriptor !== 1 && descriptor !== 2) return EBADF;
            let written = 0;
            for (let at = list >>> 0, end = at + 8 * count; at < end; at += 8) {
                const len = view().getUint32(at + 4, true);
                lines.add(new Uint8Array(memory().buffer, view().getUint32(at, true), len));
                written += len;
            }
            view().setUint32(out >>> 0, written, true);
            return 0;
        },
        // Every wait is over at once: there is nobody to wait for on one thread.
        poll_oneoff(subscriptions, events, count, out) {
            if (count === 0) return EINVAL;
            for (let i = 0; i < count; i += 1) {
                const from = (subscriptions >>> 0) + 48 * i;
                const to = (events >>> 0) + 32 * i;
                new Uint8Array(memory().buffer, to, 32).fill(0);
                view().setBigUint64(to, view().getBigUint64(from, true), true);
                view().setUint8(to + 10, view().getUint8(from + 8));
            }
            view().setUint32(out >>> 0, count, true);
            return 0;
        },
    };
}

/** The rest of WASI: no files, no arguments, no environment. */
function wasiOfNothing(lines) {
    return {
        args_get: () => 0,
        environ_get: () => 0,
        fd_close: () => EBADF,
        fd_seek: () => EBADF,
        fd_fdstat_get: () => EBADF,
        fd_prestat_get: () => EBADF,
        fd_prestat_dir_name: () => EBADF,
        sched_yield: () => 0,
        proc_exit(code) {
            throw new EngineFault(`The engine ended itself with code ${code}.`, lines.all());
        },
    };
}

/**
 * An instance of the module.
 *
 * `host` has `read(object, offset, bytes)`, which fills the start of `bytes` and returns how many there are, 0 at the
 * end, or -1; perhaps also `readNow`, which returns null where it would have to wait, and `wait(object, offset)`, a
 * promise that tells whether `readNow` has something afterwards; `write(output, offset, bytes)`, which returns 0 or -1 and copies what it keeps; `progress(done, total)`;
 * and, where something is encoded, `readBack(output, offset, bytes)`, which is to `write` as `read` is to objects.
 */
export class Engine {
    constructor(module, host) {
        this.lines = new Lines();
        // The module can wait for promises (JSPI), so that files are read ahead while it works.
        this.isPatient = Boolean(host.wait) && typeof WebAssembly.Suspending === 'function';
        this.exports = new WebAssembly.Instance(module, this.imports(module, host)).exports;
        this.exports._initialize?.();
    }

    imports(module, host) {
        // Memory may grow at any call, and views of the old one are empty then: each use asks again.
        const memory = () => this.exports.memory;
        const bytes = (at, len) => new Uint8Array(memory().buffer, at >>> 0, len >>> 0);
        const later = async (object, offset, at, len) => (
            (await host.wait(object, offset)) ? host.readNow(object, offset, bytes(at, len)) ?? -1 : -1);
        const given = {
            fec: {
                read: this.isPatient
                    ? new WebAssembly.Suspending((object, offset, at, len) => (
                        host.readNow(object >>> 0, offset, bytes(at, len)) ?? later(object >>> 0, offset, at, len)))
                    : (object, offset, at, len) => host.read(object >>> 0, offset, bytes(at, len)),
                write: (output, offset, at, len) => host.write(output >>> 0, offset, bytes(at, len)),
                read_back: (output, offset, at, len) => host.readBack?.(output >>> 0, offset, bytes(at, len)) ?? -1,
                progress: (done, total) => host.progress(done, total),
            },
            wasi_snapshot_preview1: { ...wasiOfMemory(memory, this.lines), ...wasiOfNothing(this.lines) },
        };
        const imports = {};
        for (const { module: from, name } of WebAssembly.Module.imports(module)) {
            imports[from] ??= {};
            imports[from][name] = given[from]?.[name] ?? (() => ENOSYS);
        }
        return imports;
    }

    /** Sends a request and returns the response. After an EngineFault the instance is of no use. */
    async call(request) {
        try {
            return await this.exchange(new TextEncoder().encode(JSON.stringify(request)));
        } catch (error) {
            if (error instanceof EngineFault) throw error;
            throw new EngineFault(`The engine broke down: ${error.message}`, this.lines.all());
        }
    }

    async exchange(text) {
        const { memory, fec_alloc: alloc, fec_free: free } = this.exports;
        const call = this.isPatient ? WebAssembly.promising(this.exports.fec_call) : this.exports.fec_call;
        const asked = alloc(text.length) >>> 0;
        new Uint8Array(memory.buffer, asked, text.length).set(text);
        const answer = (await call(asked, text.length)) >>> 0;
        const len = new DataView(memory.buffer).getUint32(answer, true);
        const response = JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, answer + 4, len)));
        free(answer, len + 4);
        return response;
    }
}
