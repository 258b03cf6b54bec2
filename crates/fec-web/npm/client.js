// The near end of workers: one for each operation, ended by whoever loses patience.
import { checkProgress, theModule } from './core.js';
import { FecError, misuse } from './errors.js';
import { Opened } from './opened.js';
import { recipesOf } from './recipes.js';

/** A worker that does one thing at a time. `start(hear, fail)` makes it: it has `post` and `end`. */
class Hand {
    constructor(start, { signal, onProgress }) {
        Object.assign(this, { signal, onProgress, waiting: null, reason: null });
        this.worker = start((message) => this.hear(message), (error) => this.fail(error));
        this.abort = () => this.fail(signal.reason);
        signal?.addEventListener('abort', this.abort, { once: true });
    }

    hear(message) {
        if (message.kind === 'progress') return this.told(message);
        const { resolve, reject } = this.waiting ?? {};
        this.waiting = null;
        if (message.kind === 'done') return resolve?.(message);
        const { class: kind, message: words, roots, encoding, isLocked } = message;
        return reject?.(kind ? new FecError(kind, words, { roots, encoding, isLocked }) : new Error(words));
    }

    /** A callback that throws ends the work, as it does without a worker. */
    told({ done, total }) {
        if (this.reason) return;
        try {
            this.onProgress?.(done, total);
        } catch (error) {
            this.fail(error);
        }
    }

    /** No more comes from this worker. */
    fail(reason) {
        this.reason ??= { reason };
        this.waiting?.reject(reason);
        this.waiting = null;
        this.end();
    }

    ask(message) {
        if (this.reason) return Promise.reject(this.reason.reason);
        return new Promise((resolve, reject) => {
            this.waiting = { resolve, reject };
            this.worker.post(message);
        });
    }

    /** Ends the worker; the same promise each time. */
    end() {
        this.reason ??= { reason: misuse('this worker was ended') };
        this.signal?.removeEventListener('abort', this.abort);
        this.over ??= Promise.resolve(this.worker.end());
        return this.over;
    }
}

/** The functions of the package, done by workers that `start` makes. */
export function client(start) {
    async function ask(work, objects, { signal, onProgress, to, ...options }) {
        signal?.throwIfAborted();
        checkProgress(onProgress);
        const recipes = recipesOf(objects);
        if (to !== undefined && !to.recipe) throw misuse('a worker writes by toFolder() only');
        const module = await theModule();
        signal?.throwIfAborted();
        const hand = new Hand(start, { signal, onProgress });
        try {
            const given = { ...options, ...(to && { to: to.recipe }) };
            const isReported = Boolean(onProgress);
            const said = await hand.ask({ kind: 'begin', module, work, objects: recipes, options: given, isReported });
            if (to) to.files = said.files;
            return { hand, result: said.result };
        } catch (error) {
            await hand.end();
            to?.sweep();
            throw error;
        }
    }

    async function once(work, objects, options = {}) {
        const { hand, result } = await ask(work, objects, options);
        await hand.end();
        return result;
    }

    return {
        encode: (payload, options) => once('encode', payload, options),
        look: (objects, options) => once('look', objects, options),
        verify: (objects, options) => once('verify', objects, options),
        restore: (objects, options) => once('restore', objects, options),
        async open(objects, options = {}) {
            const { hand, result } = await ask('open', objects, options);
            const part = async (start, length) => (await hand.ask({ kind: 'read', start, length })).result;
            return new Opened(result, part, () => hand.end());
        },
    };
}
