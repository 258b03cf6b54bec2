// An encoding that is open: parts of its payload, one after the other.
import { misuse } from './errors.js';

const PIECE = 4 << 20;

function checkNumbers(...numbers) {
    const wrong = numbers.find((number) => !Number.isSafeInteger(number) || number < 0);
    if (numbers.includes(wrong)) throw misuse(`places in a payload are whole numbers, not ${JSON.stringify(wrong)}`);
}

/** The payload of an encoding, read in parts. `part(start, length)` gets one, `end()` lets go of everything. */
export class Opened {
    #part;
    #end;
    #last = Promise.resolve();
    #isClosed = false;

    constructor({ name, size, encoding }, part, end) {
        Object.assign(this, { name, size, encoding });
        this.#part = part;
        this.#end = end;
    }

    /** Bytes of the payload, proved. Calls wait for each other. */
    async read(start, length) {
        checkNumbers(start, length);
        if (length > this.size - start) {
            throw misuse(`the payload has ${this.size} bytes, and ${length} from byte ${start} on are not in it`);
        }
        const mine = this.#last.then(() => {
            if (this.#isClosed) throw misuse('this encoding was closed');
            return this.#part(start, length);
        });
        this.#last = mine.catch(() => {});
        return mine;
    }

    /** The payload, or the bytes from `start` to before `end`, a piece for each time that somebody wants more. */
    stream(range = {}) {
        const { start = 0, end = this.size, ...others } = range;
        const [unknown] = Object.keys(others);
        if (unknown !== undefined) throw misuse(`a stream has start and end, and no ${JSON.stringify(unknown)}`);
        checkNumbers(start, end);
        if (start > end || end > this.size) {
            throw misuse(`the payload has ${this.size} bytes, and ${start} to ${end} are not in it`);
        }
        let at = start;
        const pull = async (controller) => {
            if (at < end) {
                // Pieces end where others would begin: sets are opened once.
                const piece = await this.read(at, Math.min(PIECE - (at % PIECE), end - at));
                at += piece.length;
                controller.enqueue(piece);
            }
            if (at === end) controller.close();
        };
        return new ReadableStream({ pull }, { highWaterMark: 0 });
    }

    /** Lets go of the engine. Objects stay the caller's. */
    async close() {
        if (this.#isClosed) return;
        this.#isClosed = true;
        await this.#end();
    }
}
