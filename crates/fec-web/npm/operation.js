// An operation: an instance of the engine with the objects that it reads and the sink that it writes to.
import { Engine, EngineFault } from './engine.js';
import { FecError, misuse, wordsOf } from './errors.js';
import { Objects } from './objects.js';
import { Written } from './written.js';

/** `is_sealed` and others as JavaScript writes them; a hash by the name that options have for it. */
export function inWords(said, member = '') {
    if (Array.isArray(said)) return said.map((each) => inWords(each));
    if (member === 'hash') return said === 'SHA-256' ? 'sha256' : 'blake3';
    if (typeof said !== 'object' || said === null) return said;
    const renamed = (name) => name.replace(/_(\w)/g, (_all, letter) => letter.toUpperCase());
    return Object.fromEntries(Object.entries(said).map(([name, value]) => [renamed(name), inWords(value, name)]));
}

/** Fails as soon as the signal says so; `stop` takes its ear away. */
function ended(signal) {
    if (!signal) return { whenever: new Promise(() => {}), stop: () => {} };
    let hear;
    const whenever = new Promise((_resolve, reject) => {
        hear = () => reject(signal.reason);
        signal.addEventListener('abort', hear, { once: true });
    });
    return { whenever, stop: () => signal.removeEventListener('abort', hear) };
}

export class Operation {
    /** Objects, as the caller gave them, a compiled module, and a sink. */
    static async begin(module, given, options, sink) {
        options.signal?.throwIfAborted();
        const objects = await Objects.of(given, options.usual);
        options.signal?.throwIfAborted();
        return new Operation(module, objects, options, sink);
    }

    constructor(module, objects, { signal, onProgress, isOnce }, sink) {
        Object.assign(this, { objects, signal, onProgress, sink });
        // By number of the output, where each byte comes once.
        this.written = isOnce ? new Map() : null;
        this.length = 0;
        this.fault = null;
        this.thrown = null;
        this.engine = new Engine(module, this.host());
    }

    host() {
        const objects = this.objects;
        // An exception ends the engine at once, wherever it is.
        const live = (call) => (...words) => {
            try {
                this.signal?.throwIfAborted();
                return call(...words);
            } catch (error) {
                this.thrown ??= { error };
                throw error;
            }
        };
        const host = {
            read: live((object, offset, bytes) => objects.read(object, offset, bytes)),
            write: live((output, offset, bytes) => this.kept(() => this.write(output, offset, bytes))),
            readBack: live((output, offset, bytes) => this.kept(() => this.sink.readBack(output, offset, bytes))),
            progress: live((done, total) => { this.onProgress?.(done, total < 0 ? null : total); }),
        };
        if (objects.isSlow) {
            host.readNow = live((object, offset, bytes) => objects.readNow(object, offset, bytes));
            host.wait = (object, offset) => objects.wait(object, offset);
        }
        return host;
    }

    write(output, offset, bytes) {
        if (this.written) {
            if (!this.written.has(output)) this.written.set(output, new Written());
            this.written.get(output).add(offset, offset + bytes.length);
        }
        const said = this.sink.write(output, offset, bytes);
        if (typeof said?.then === 'function') throw misuse('write() of a sink should keep the bytes before it returns');
        return 0;
    }

    kept(call) {
        try {
            return call();
        } catch (error) {
            this.fault ??= error;
            return -1;
        }
    }

    /** Sends a request; returns what is said if all is well, and throws otherwise. */
    async ask(request) {
        const { whenever, stop } = ended(this.signal);
        try {
            this.signal?.throwIfAborted();
            const said = await Promise.race([this.engine.call(request), whenever]);
            this.judge(said);
            return said;
        } catch (error) {
            if (this.signal?.aborted) throw this.signal.reason;
            if (this.thrown) throw this.thrown.error;
            if (!(error instanceof EngineFault)) throw error;
            const last = error.lines.at(-1);
            throw new FecError('fault', last ? `${error.message} ${last}` : error.message, { cause: error });
        } finally {
            stop();
        }
    }

    judge(said) {
        if (this.fault !== null) {
            if (this.fault instanceof FecError) throw this.fault;
            const message = `the output cannot be kept: ${wordsOf(this.fault)}`;
            throw new FecError('system', message, { cause: this.fault });
        }
        if (said.ok === true) return;
        const encoding = said.encoding ? inWords(said.encoding) : null;
        const { message, class: kind, roots, is_locked: isLocked } = said.error;
        const unread = this.objects.complaint();
        const cause = this.objects.fault ?? undefined;
        throw new FecError(kind, unread ? `${message} (${unread})` : message, { roots, encoding, isLocked, cause });
    }

    /** Fails if not all bytes of an output came. */
    checkWhole(output, length) {
        if ((this.written.get(output) ?? new Written()).isAll(length)) return;
        throw new FecError('fault', 'the engine did not write all bytes that it restored');
    }
}
