import type {
    EncodedContainer, EncodedShards, EncodedTo, EncodeOptions, Encoding, NamedBytes, Opened, ReadOptions,
    RestoredPayload, RestoredTo, RestoreOptions, Sink, Verified,
} from './index.js';

export { FecError, hasSimd, init } from './index.js';

/** A file that the worker opens by its path, as those of `file()` and `shardsIn()`; in Node only. */
export interface WithPath {
    readonly path: string;
}

/** Anything that can be sent to a worker: bytes are copied, blobs and paths are not. */
export type Sendable = Uint8Array | ArrayBuffer | ArrayBufferView | Blob | File | NamedBytes | WithPath;
export type Objects = Sendable | Iterable<Sendable>;

/** A sink of `toFolder()`. */
export type SendableSink = Sink & { readonly folder: string };

/** As `encode` of the package, in a worker. A signal ends the worker. */
export function encode(payload: Sendable, options: EncodeOptions & { to: SendableSink }): Promise<EncodedTo>;
export function encode(
    payload: Sendable, options: EncodeOptions & { form: 'container'; to?: undefined },
): Promise<EncodedContainer>;
export function encode(
    payload: Sendable, options?: EncodeOptions & { form?: 'shards'; to?: undefined },
): Promise<EncodedShards>;

/** As `look` of the package, in a worker. */
export function look(objects: Objects, options?: ReadOptions): Promise<Encoding>;

/** As `verify` of the package, in a worker. */
export function verify(objects: Objects, options?: ReadOptions): Promise<Verified>;

/** As `restore` of the package, in a worker. */
export function restore(objects: Objects, options: RestoreOptions & { to: SendableSink }): Promise<RestoredTo>;
export function restore(objects: Objects, options?: RestoreOptions & { to?: undefined }): Promise<RestoredPayload>;

/** As `open` of the package: the worker lives until `close`. */
export function open(objects: Objects, options?: ReadOptions): Promise<Opened>;
