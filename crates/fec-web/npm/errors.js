// The one error of the package.

/** Why something was not done; `class` says it in a word, and stands for an exit code of the command. */
export class FecError extends Error {
    constructor(kind, message, { roots = [], encoding = null, isLocked = false, cause } = {}) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = 'FecError';
        this.class = kind;
        this.roots = roots;
        this.encoding = encoding;
        this.isLocked = isLocked;
    }
}

/** Wrong use of the package. */
export function misuse(message) {
    return new FecError('usage', message);
}

/** Words for an error of somebody else, whatever was thrown. */
export function wordsOf(error) {
    return error instanceof Error ? error.message : String(error);
}
