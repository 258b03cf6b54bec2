// Words: sizes, ranges and names as the page shows them. No DOM, and no state.

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** A size in the units of the command: 2.5 MiB. */
export function showSize(bytes) {
    let unit = 0;
    let value = bytes;
    while (value >= 1024 && unit < UNITS.length - 1) {
        value /= 1024;
        unit += 1;
    }
    if (unit === 0) return bytes === 1 ? '1 byte' : `${bytes} bytes`;
    return `${value.toFixed(value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

export function count(number, noun) {
    return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}

/** Numbers in order, with runs as ranges: 0–21, 40. */
export function showRuns(numbers) {
    const runs = [];
    for (const number of numbers) {
        const last = runs[runs.length - 1];
        if (last && last[1] === number - 1) last[1] = number;
        else runs.push([number, number]);
    }
    return runs.map(([first, end]) => (first === end ? `${first}` : `${first}–${end}`)).join(', ');
}

// Control characters, and those that turn the direction of text around or cannot be seen: an .exe looks like a .jpg
// with them.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const FORBIDDEN = /[/\\<>:"|?*]/g;
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
const MOST_NAME = 200;

/** A name that can be saved anywhere: no folders, no control characters, no dots in front, no devices. */
export function safeName(recorded, fallback) {
    let name = (recorded ?? '').replace(INVISIBLE, '').replace(FORBIDDEN, '_');
    name = name.replace(/^[\s.\-~]+/, '').replace(/[\s.]+$/, '');
    if (name === '') return fallback;
    if (DEVICE.test(name)) name = `_${name}`;
    return shortened(name);
}

/** Cuts long names in front of their extension. */
function shortened(name) {
    const len = (text) => new TextEncoder().encode(text).length;
    if (len(name) <= MOST_NAME) return name;
    const extension = /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? '';
    const letters = [...name.slice(0, name.length - extension.length)];
    while (len(letters.join('')) + extension.length > MOST_NAME) letters.pop();
    return letters.join('') + extension;
}

/** The root as it was typed or pasted: `root abc…`, spaces and capitals are fine. Null if it is none. */
export function parseRoot(text) {
    const found = /^(?:root)?([0-9a-f]{64})$/.exec(text.replace(/\s+/g, '').toLowerCase());
    return found ? found[1] : null;
}

// The sentences that name an error, by its class.
const TITLES = {
    damaged: 'Damaged beyond repair',
    missing: 'Too few shards',
    replaced: 'Not what the root or the key promises',
    ambiguous: 'More than one encoding',
    refused: 'Beyond a limit, or of another version',
    usage: 'Something else is needed',
    system: 'It could not be read or kept',
};

export function errorTitle(error) {
    if ((error.roots ?? []).length > 1) return TITLES.ambiguous;
    return TITLES[error.class] ?? 'It did not work';
}

// The advice for errors that bring none.
const ADVICE = {
    damaged: 'Add more copies or shards, from wherever there are any.',
    missing: '“Check” tells how many shards are lacking. Add shard files of the same root, from wherever there are '
        + 'copies; choose a container (*.fec) alone.',
    replaced: 'Look where the root or the key came from, and where the shards did. Nothing was restored.',
    refused: 'A newer version, or the command fec, may be able to do it.',
    system: 'Choose the files again: what changed or moved since it was chosen cannot be read.',
};

/** How many shards are lacking, if that is known and the reason. */
export function shortfall(encoding) {
    const lacking = encoding?.form === 'shards' ? encoding.k - encoding.given : 0;
    if (!(lacking > 0)) return null;
    const all = encoding.k + encoding.m;
    return `${encoding.given} of ${all} shards are here, and ${encoding.k} are needed: find ${lacking} more.`;
}

/** The advice of an error; where there is a list to choose from, that is the advice. */
export function adviceOf(error) {
    if ((error.roots ?? []).length > 1) return 'Choose one of the roots in the list, or give the root that you kept.';
    return error.help ?? ADVICE[error.class] ?? null;
}
