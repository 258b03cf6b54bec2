// The far end of a worker: does one thing that it is told, or reads parts of what it opened.
import { wordsOf } from './errors.js';

// Progress is passed on at most ten times a second.
const PROGRESS_MS = 100;

class Reporter {
    constructor(post) {
        Object.assign(this, { post, last: 0, held: null });
    }

    report(done, total) {
        this.held = { done, total };
        if (performance.now() - this.last >= PROGRESS_MS) this.flush();
    }

    /** Passes on what was held back. */
    flush() {
        if (this.held) this.post({ kind: 'progress', ...this.held });
        Object.assign(this, { last: performance.now(), held: null });
    }
}

function buffersOf({ payload, container, shards = [] }) {
    const whole = [payload, container, ...shards.map(({ bytes }) => bytes)].filter(Boolean);
    return whole.map(({ buffer }) => buffer);
}

function failure(error) {
    const { class: kind, roots, encoding, isLocked } = error ?? {};
    return { kind: 'failed', class: kind ?? null, message: wordsOf(error), roots, encoding, isLocked };
}

/** Serves one client: `post` sends to it, `core` has the functions, `revive` makes sources and sinks of recipes. */
export function serve(post, core, revive) {
    let opened = null;

    async function begin({ module, work, objects, options, isReported }) {
        await core.init(module);
        const given = Array.isArray(objects) ? objects.map(revive.object) : revive.object(objects);
        const all = { ...options };
        const reporter = new Reporter(post);
        if (isReported) all.onProgress = (done, total) => reporter.report(done, total);
        if (options.to) all.to = revive.sink(options.to);
        const result = await core[work](given, all);
        reporter.flush();
        if (work !== 'open') return post({ kind: 'done', result, files: all.to?.files }, buffersOf(result));
        opened = result;
        const { name, size, encoding } = opened;
        return post({ kind: 'done', result: { name, size, encoding } });
    }

    async function read({ start, length }) {
        const bytes = await opened.read(start, length);
        post({ kind: 'done', result: bytes }, [bytes.buffer]);
    }

    return async (message) => {
        try {
            await (message.kind === 'read' ? read(message) : begin(message));
        } catch (error) {
            post(failure(error));
        }
    };
}
