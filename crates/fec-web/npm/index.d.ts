/** Bytes that are read from a position on, in a store of the caller's. */
export interface Source {
    /** The name of a payload goes into its shard files; other names are for messages. */
    readonly name?: string;
    readonly size: number;
    /**
     * Fills the start of `bytes` from `offset` on, and returns how many bytes there are: 0 at the end. A promise is
     * waited for only where `WebAssembly.Suspending` is there; elsewhere the operation is refused.
     */
    read(offset: number, bytes: Uint8Array): number | Promise<number>;
}

/** Bytes with a name. */
export interface NamedBytes {
    readonly name?: string;
    readonly bytes: Uint8Array | ArrayBuffer;
}

/** Anything that can be read, and does not change before the operation is done. */
export type ReadableObject = Uint8Array | ArrayBuffer | ArrayBufferView | Blob | File | NamedBytes | Source;

/** A container, or one shard, or several shards in any order, mixed with anything. */
export type Objects = ReadableObject | Iterable<ReadableObject>;

/** Options of all operations. */
export interface CommonOptions {
    /**
     * Ends the operation, which then throws the reason of the signal. Work on this thread is interrupted only by
     * callbacks and by waiting, so a timer's signal comes too late: `fecshards/worker` ends at once.
     */
    signal?: AbortSignal;
    /** `done` bytes are done, of `total` if it is known. An exception ends the operation, which throws it. */
    onProgress?(done: number, total: number | null): void;
}

/** Takes the outputs of an operation in place of memory. */
export interface Sink {
    /** Keeps bytes of an output before it returns. Outputs have numbers from 0 on; bytes come in any order. */
    write(output: number, offset: number, bytes: Uint8Array): void;
    /** Fills the start of `bytes` with what `write` took; returns how many there are. */
    readBack(output: number, offset: number, bytes: Uint8Array): number;
    /** All is well: these outputs count, and no others. */
    finish?(outputs: { output: number; name: string | null }[]): void | Promise<void>;
    /** The operation failed, and nothing counts. */
    discard?(): void | Promise<void>;
}

export interface EncodeOptions extends CommonOptions {
    /** Any k of the k + m shards restore the payload; 33. */
    k?: number;
    /** The number of shards that may be lost; 67. */
    m?: number;
    /** The hash function of digests and roots; "blake3". */
    hash?: 'blake3' | 'sha256';
    /** The name of the payload, which shard files record; that of the file or source, or "payload". */
    name?: string;
    /** Shards for many places, or a container that withstands a gap; "shards". */
    form?: 'shards' | 'container';
    to?: Sink;
}

/** Which encoding is read, and who opens it. A text that is empty or missing by mistake is refused. */
export interface ReadOptions extends CommonOptions {
    /** 64 hexadecimal digits: only this encoding counts. */
    root?: string;
    /** Public keys of minisign, one on each line: only what one of them signed counts. */
    trust?: string;
    /** Secret keys of age, or a private key of OpenSSH, for a sealed payload. */
    identities?: string;
    /** The passphrase of a sealed payload, or of the private key. */
    passphrase?: string;
}

export interface RestoreOptions extends ReadOptions {
    to?: Sink;
}

/** A shard, under the name of its file. */
export interface Shard {
    name: string;
    bytes: Uint8Array;
}

export interface EncodedShards {
    /** 64 hexadecimal digits that name exactly these shards. Keep it. */
    root: string;
    shards: Shard[];
}

export interface EncodedContainer {
    root: string;
    name: string;
    container: Uint8Array;
}

/** An encoding that a sink took. */
export interface EncodedTo {
    root: string;
    /** The names of the outputs, by their numbers. */
    names: string[];
}

/** An encoding, by the headers of its objects. */
export interface Encoding {
    form: 'shards' | 'container';
    root: string | null;
    name: string | null;
    k: number;
    m: number;
    hash: 'blake3' | 'sha256';
    /** Bytes of the payload as it was encoded: if it is sealed, of the ciphertext. */
    payloadLen: number;
    isSealed: boolean;
    isOneShard: boolean;
    /** The number of its shards that are there. */
    given: number;
    signatures: number;
    /** The public key whose signature is right, with its comment; null without the option `trust`. */
    signedBy: string | null;
    trustedComment: string | null;
    /** The roots of other encodings among the objects: without `root` and `trust`, a sign to look at. */
    others: string[];
}

export interface ShardReport {
    index: number;
    state: 'intact' | 'damaged' | 'missing';
    files: string[];
    intactSets: number;
    sets: number;
    damage: { file: string; what: string; bytes: string }[];
}

export interface Verified {
    encoding: Encoding;
    intact: number;
    damaged: number;
    missing: number;
    /** The number of intact shards where there are the fewest. */
    weakest: number | null;
    /** All shards are there, and nothing is damaged. */
    isIntact: boolean;
    /** Nothing of this encoding is damaged, and no shard of another is among the objects. */
    isGivenIntact: boolean;
    isRestorable: boolean | null;
    /** The number of further shards that may be lost. */
    mayStillLose: number | null;
    isSealLost: boolean;
    shards: ShardReport[];
    damage: string[];
    /** In words for people: what is among the objects and belongs to no encoding. */
    leftovers: string[];
}

export interface Restored {
    root: string | null;
    /** The recorded name, which may be anybody's: check it before it becomes a path. */
    name: string | null;
    length: number;
    sets: number;
    /** The number of sets that had lost something, and were rebuilt. */
    mendedSets: number;
    encoding: Encoding;
}

export interface RestoredPayload extends Restored {
    payload: Uint8Array;
}

/** A payload that a sink took, as its output of this number. */
export interface RestoredTo extends Restored {
    output: number;
}

/**
 * In a word, with the exit code of the command: `damaged` (1), `usage` (2), `missing` (3: too much is lost), `system`
 * (4), `replaced` (5: not what the root promises, or no key opens it), `refused` (6: a limit, or something that this
 * version does not know), and `fault` (the engine broke down). `damaged` and `cancelled` are the command's alone.
 */
export type FecErrorClass =
    'damaged' | 'usage' | 'missing' | 'system' | 'replaced' | 'refused' | 'cancelled' | 'fault';

/** Why something was not done. Nothing is returned then. */
export class FecError extends Error {
    private constructor();
    readonly name: 'FecError';
    readonly class: FecErrorClass;
    /** Roots to choose from, where several encodings are there and none was asked for. */
    readonly roots: string[];
    /** The encoding, if it was found. */
    readonly encoding: Encoding | null;
    /** A key or a passphrase is lacking, or does not fit. */
    readonly isLocked: boolean;
}

/** An encoding that is open. */
export interface Opened {
    readonly name: string | null;
    readonly size: number;
    readonly encoding: Encoding;
    /** Bytes of the payload, proved, or an error; so is a place behind its end. Calls wait for each other. */
    read(start: number, length: number): Promise<Uint8Array>;
    /**
     * The payload, or its bytes from `start` to before `end`: pieces of up to 4 MiB, each proved and read when somebody
     * wants it.
     */
    stream(range?: { start?: number; end?: number }): ReadableStream<Uint8Array>;
    /** Lets go of the engine, and of the worker, which keeps Node alive until then. Sources stay open. */
    close(): Promise<void>;
}

/** Encodes a payload: k + m shards, any k of which restore it, or a container. */
export function encode(payload: ReadableObject, options: EncodeOptions & { to: Sink }): Promise<EncodedTo>;
export function encode(
    payload: ReadableObject, options: EncodeOptions & { form: 'container'; to?: undefined },
): Promise<EncodedContainer>;
export function encode(
    payload: ReadableObject, options?: EncodeOptions & { form?: 'shards'; to?: undefined },
): Promise<EncodedShards>;
export function encode(
    payload: ReadableObject, options: EncodeOptions,
): Promise<EncodedShards | EncodedContainer | EncodedTo>;

/** Finds out which encoding the objects are of, by their headers: nothing else is proved. */
export function look(objects: Objects, options?: ReadOptions): Promise<Encoding>;

/** Checks every byte. Damage is no error here: the report tells of it. */
export function verify(objects: Objects, options?: ReadOptions): Promise<Verified>;

/** Restores the payload bit for bit, or throws. */
export function restore(objects: Objects, options: RestoreOptions & { to: Sink }): Promise<RestoredTo>;
export function restore(objects: Objects, options?: RestoreOptions & { to?: undefined }): Promise<RestoredPayload>;
export function restore(objects: Objects, options: RestoreOptions): Promise<RestoredPayload | RestoredTo>;

/** Opens an encoding, whose payload is read in parts then. */
export function open(objects: Objects, options?: ReadOptions): Promise<Opened>;

/** Says which module is used, where the package does not find its own, as in some bundles. */
export function init(
    module: WebAssembly.Module | BufferSource | Response | string | URL | Promise<Response | WebAssembly.Module>,
): Promise<void>;

/** Tells whether this machine runs modules with vectors of 128 bits. */
export function hasSimd(): boolean;
