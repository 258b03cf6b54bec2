// The far end of a worker: does one thing that it is told, or reads parts of what it opened.
import { wordsOf } from './errors.js';

// Progress is passed on at most ten times a second.
const PROGRESS_MS = 100;

function reporter(post) {
    let last = 0;
    return (done, total) => {
        const now = performance.now();
        if (now - last < PROGRESS_MS) return;
        last = now;
        post({ kind: 'progress', done, total });
    };
}

function buffersOf({ payload, container, shards = [] }) {
    const whole = [payload, container, ...shards.map(({ bytes }) => bytes)].filter(Boolean);
    return whole.map(({ buffer }) => buffer);
}

function failure(error) {
    const { class: kind, roots, encoding } = error ?? {};
    return { kind: 'failed', class: kind ?? null, message: wordsOf(error), roots, encoding };
}

/** Serves one client: `post` sends to it, `core` has the functions, `revive` makes sources and sinks of recipes. */
export function serve(post, core, revive) {
    let opened = null;

    async function begin({ module, work, objects, options, isReported }) {
        await core.init(module);
        const given = Array.isArray(objects) ? objects.map(revive.object) : revive.object(objects);
        const all = { ...options };
        if (isReported) all.onProgress = reporter(post);
        if (options.to) all.to = revive.sink(options.to);
        const result = await core[work](given, all);
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
