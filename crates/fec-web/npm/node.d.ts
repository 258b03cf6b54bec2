import type { Sink, Source } from './index.js';

/** A file that is open until it is closed. */
export interface FileSource extends Source {
    readonly name: string;
    readonly path: string;
    read(offset: number, bytes: Uint8Array): number;
    close(): void;
}

/** A sink whose files appear in a folder once all of them are written. */
export interface FolderSink extends Sink {
    readonly folder: string;
    /** The paths of the files; empty before they are there. */
    readonly files: string[];
}

/** Opens a file. */
export function file(path: string): FileSource;

/** Opens the files of a folder, in the order of their names; hidden files and folders are left out. */
export function shardsIn(folder: string): FileSource[] & { close(): void };

/**
 * A sink that makes files in a folder, which is made too if it is not there. An existing file is an error, and is
 * replaced with `force`. `name` is that of a single output, in place of the recorded one.
 */
export function toFolder(folder: string, options?: { force?: boolean; name?: string }): FolderSink;
