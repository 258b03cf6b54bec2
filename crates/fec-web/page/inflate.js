// Raw deflate (RFC 1951). Browsers that run no vectors of 128 bits cannot inflate by themselves either, and the page
// has one way for all.

const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163,
    195, 227, 258];
const DISTANCES = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049,
    3073, 4097, 6145, 8193, 12289, 16385, 24577];
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const extraOfLength = (code) => (code < 8 || code === 28 ? 0 : (code >> 2) - 1);
const extraOfDistance = (code) => (code < 4 ? 0 : (code >> 1) - 1);

/** Bits of the input, the lowest of a byte first. */
class Bits {
    constructor(bytes) {
        Object.assign(this, { bytes, at: 0, held: 0, count: 0 });
    }

    take(count) {
        while (this.count < count) {
            if (this.at === this.bytes.length) throw new Error('the packed module ends early');
            this.held |= this.bytes[this.at] << this.count;
            this.at += 1;
            this.count += 8;
        }
        const bits = this.held & ((1 << count) - 1);
        this.held >>>= count;
        this.count -= count;
        return bits;
    }

    /** A symbol of a code: codes of one length follow each other, shorter ones first. */
    symbol({ counts, symbols }) {
        let [code, first, index] = [0, 0, 0];
        for (let length = 1; length < 16; length += 1) {
            code |= this.take(1);
            if (code - first < counts[length]) return symbols[index + code - first];
            index += counts[length];
            first = (first + counts[length]) << 1;
            code <<= 1;
        }
        throw new Error('the packed module has a code that is none');
    }
}

/** The code whose symbols have these lengths; 0 stands for a symbol that is not used. */
function codeOf(lengths) {
    const counts = new Uint16Array(16);
    for (const length of lengths) counts[length] += 1;
    counts[0] = 0;
    const symbols = [];
    for (let length = 1; length < 16; length += 1) {
        lengths.forEach((of, symbol) => { if (of === length) symbols.push(symbol); });
    }
    return { counts, symbols };
}

const FIXED = [
    codeOf(Array.from({ length: 288 }, (_, symbol) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8))),
    codeOf(new Array(30).fill(5)),
];

/** The codes of lengths and distances in front of a block. */
function codesOf(bits) {
    const [literals, distances, count] = [bits.take(5) + 257, bits.take(5) + 1, bits.take(4) + 4];
    const own = new Array(19).fill(0);
    for (let i = 0; i < count; i += 1) own[ORDER[i]] = bits.take(3);
    const code = codeOf(own);
    const lengths = [];
    while (lengths.length < literals + distances) {
        const symbol = bits.symbol(code);
        if (symbol < 16) lengths.push(symbol);
        else if (symbol === 16) lengths.push(...new Array(3 + bits.take(2)).fill(lengths.at(-1)));
        else lengths.push(...new Array(symbol === 17 ? 3 + bits.take(3) : 11 + bits.take(7)).fill(0));
    }
    return [codeOf(lengths.slice(0, literals)), codeOf(lengths.slice(literals))];
}

/** The `size` bytes that were packed. */
export function inflate(packed, size) {
    const bits = new Bits(packed);
    const out = new Uint8Array(size);
    let at = 0;
    for (let isLast = 0; !isLast;) {
        isLast = bits.take(1);
        const kind = bits.take(2);
        if (kind === 0) {
            bits.take(bits.count % 8);
            const len = bits.take(16);
            bits.take(16);
            for (let i = 0; i < len; i += 1) out[at++] = bits.take(8);
            continue;
        }
        const [code, distances] = kind === 1 ? FIXED : codesOf(bits);
        for (let symbol = bits.symbol(code); symbol !== 256; symbol = bits.symbol(code)) {
            if (symbol < 256) {
                out[at++] = symbol;
                continue;
            }
            const length = LENGTHS[symbol - 257] + bits.take(extraOfLength(symbol - 257));
            const distance = bits.symbol(distances);
            const back = DISTANCES[distance] + bits.take(extraOfDistance(distance));
            for (let i = 0; i < length; i += 1, at += 1) out[at] = out[at - back];
        }
    }
    if (at !== size) throw new Error('the packed module has another size');
    return out;
}
