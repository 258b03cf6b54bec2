// The places of an output that were written. A page and the package for Node both use this file.

/** The ranges that were written: each byte has to be written once, or zeros would stand where none came. */
export class Written {
    constructor() {
        this.ranges = [];
    }

    add(from, to) {
        if (from === to) return;
        // Writes come nearly in order: the place is near the end.
        let at = this.ranges.length;
        while (at > 0 && this.ranges[at - 1].from >= from) at -= 1;
        const [before, after] = [this.ranges[at - 1], this.ranges[at]];
        if (before?.to > from || after?.from < to) throw new Error(`the engine wrote twice at ${from}`);
        const [first, last] = [before?.to === from, after?.from === to];
        const range = { from: first ? before.from : from, to: last ? after.to : to };
        this.ranges.splice(at - Number(first), Number(first) + Number(last), range);
    }

    /** Tells whether all of the first `len` bytes were written, and no others. */
    isAll(len) {
        const [only, more] = this.ranges;
        return len === 0 ? !only : !more && only?.from === 0 && only.to === len;
    }
}
