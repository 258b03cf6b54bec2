// Files and folders, for Node.
import { createHash, randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { hostname } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { FecError, misuse } from './errors.js';

// Systems without hard links answer with these.
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

const DAY_MS = 24 * 60 * 60 * 1000;

/** A file as a source: it is open until it is closed. */
class FileSource {
    #descriptor;

    constructor(path) {
        this.path = resolve(path);
        this.name = basename(this.path);
        this.#descriptor = fs.openSync(this.path, 'r');
        const { size, isFile } = this.#stat();
        if (!isFile) {
            this.close();
            throw misuse(`${path} is not a file`);
        }
        this.size = size;
    }

    #stat() {
        const stat = fs.fstatSync(this.#descriptor);
        return { size: stat.size, isFile: stat.isFile() };
    }

    read(offset, bytes) {
        if (this.#descriptor === null) throw misuse(`${this.path} was closed`);
        return fs.readSync(this.#descriptor, bytes, 0, bytes.length, offset);
    }

    close() {
        if (this.#descriptor === null) return;
        fs.closeSync(this.#descriptor);
        this.#descriptor = null;
    }
}

/** A file as a source, which the caller closes. */
export function file(path) {
    return new FileSource(path);
}

/** The files of a folder as sources, by their names; hidden files and folders are left out. `close` closes all. */
export function shardsIn(folder) {
    const files = fs.readdirSync(folder, { withFileTypes: true })
        .filter((entry) => !entry.name.startsWith('.') && fs.statSync(join(folder, entry.name)).isFile())
        .map((entry) => entry.name)
        .sort();
    const sources = [];
    const close = () => sources.forEach((source) => source.close());
    try {
        files.forEach((name) => sources.push(new FileSource(join(folder, name))));
    } catch (error) {
        close();
        throw error;
    }
    Object.defineProperty(sources, 'close', { value: close });
    return sources;
}

/** Tells whether a name is that of a file in a folder: names in encodings may be anybody's. */
function isOneFile(name) {
    return typeof name === 'string' && name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name);
}

/** Waits until the names in a folder are on the disk, where the system can. */
function syncFolder(folder) {
    let descriptor = null;
    try {
        descriptor = fs.openSync(folder, 'r');
        fs.fsyncSync(descriptor);
    } catch {
        // Some systems do not open folders, and keep their names in their own way.
    } finally {
        if (descriptor !== null) fs.closeSync(descriptor);
    }
}

/** Digits for the processes that are seen from here: those of other machines and containers have other numbers. */
function home() {
    const tried = (read) => { try { return read(); } catch { return ''; } };
    const boot = tried(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
    const seen = `${hostname()} ${boot} ${tried(() => fs.readlinkSync('/proc/self/ns/pid'))}`;
    return createHash('sha256').update(seen).digest('hex').slice(0, 8);
}

function isGone(pid) {
    try {
        process.kill(pid, 0);
        return false;
    } catch ({ code }) {
        return code === 'ESRCH';
    }
}

/** Removes what killed processes left in a folder; where nobody knows of the process, what is a day old. */
function sweepDead(folder) {
    for (const name of fs.readdirSync(folder)) {
        const [, of, pid] = /^\.fecshards-([0-9a-f]{8})-(\d+)-[0-9a-f]{16}-\d+$/.exec(name) ?? [];
        const path = join(folder, name);
        const isOld = () => Date.now() - (fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity) > DAY_MS;
        if (of && (of === HOME ? isGone(Number(pid)) : isOld())) fs.rmSync(path, { force: true });
    }
}

const HOME = home();

/** A sink whose files have other names until all of them are there. */
export class FolderSink {
    #open = new Map();

    constructor(folder, { force = false, name = null, mark = randomBytes(8).toString('hex') } = {}) {
        if (name !== null && !isOneFile(name)) throw misuse(`${JSON.stringify(name)} is not the name of a file`);
        Object.assign(this, { folder: resolve(folder), force, name, mark });
        this.wasThere = fs.existsSync(this.folder);
        this.files = [];
    }

    /** As a worker needs it. */
    get recipe() {
        const { folder, force, name, mark } = this;
        return { folder, options: { force, name, mark } };
    }

    #prefix() {
        return `.fecshards-${HOME}-${process.pid}-${this.mark}-`;
    }

    #hidden(output) {
        return join(this.folder, `${this.#prefix()}${output}`);
    }

    #descriptorOf(output) {
        let descriptor = this.#open.get(output);
        if (descriptor === undefined) {
            if (this.#open.size === 0) {
                fs.mkdirSync(this.folder, { recursive: true });
                sweepDead(this.folder);
            }
            descriptor = fs.openSync(this.#hidden(output), 'wx+');
            this.#open.set(output, descriptor);
        }
        return descriptor;
    }

    write(output, offset, bytes) {
        const descriptor = this.#descriptorOf(output);
        for (let done = 0; done < bytes.length;) {
            done += fs.writeSync(descriptor, bytes, done, bytes.length - done, offset + done);
        }
    }

    readBack(output, offset, bytes) {
        return fs.readSync(this.#descriptorOf(output), bytes, 0, bytes.length, offset);
    }

    /** Gives the outputs their names: all or none of them, unless others are replaced. */
    finish(outputs) {
        const named = outputs.map(({ output, name }) => ({ output, name: this.#nameOf(name, outputs.length) }));
        for (const { output } of named) fs.fsyncSync(this.#descriptorOf(output));
        const made = [];
        try {
            for (const { output, name } of named) this.#place(this.#hidden(output), join(this.folder, name), made);
        } catch (error) {
            if (!this.force) made.forEach((path) => fs.rmSync(path, { force: true }));
            throw error;
        }
        this.files = named.map(({ name }) => join(this.folder, name));
        this.discard();
        syncFolder(this.folder);
    }

    #nameOf(name, count) {
        const wanted = count === 1 ? this.name ?? name : name;
        if (isOneFile(wanted)) return wanted;
        if (wanted === null) throw misuse('the encoding records no name: give one to toFolder()');
        throw new FecError('refused', `${JSON.stringify(wanted)} is not the name of a file in a folder`);
    }

    #place(from, to, made) {
        if (this.force) return fs.renameSync(from, to);
        try {
            fs.linkSync(from, to);
        } catch (error) {
            const isThere = error.code === 'EEXIST' || fs.existsSync(to);
            if (isThere) throw new FecError('system', `${to} exists`, { cause: error });
            if (!NO_LINKS.includes(error.code)) throw error;
            fs.renameSync(from, to);
        }
        made.push(to);
    }

    /** Removes everything that has no name yet. */
    discard() {
        for (const descriptor of this.#open.values()) fs.closeSync(descriptor);
        this.#open.clear();
        this.sweep();
    }

    /** Removes hidden files of this sink, those that a worker left too. */
    sweep() {
        if (!fs.existsSync(this.folder)) return;
        const mine = fs.readdirSync(this.folder).filter((name) => name.startsWith(this.#prefix()));
        mine.forEach((name) => fs.rmSync(join(this.folder, name), { force: true }));
        if (!this.wasThere && fs.readdirSync(this.folder).length === 0) fs.rmdirSync(this.folder);
    }
}

/** A sink that makes files in a folder appear once all of them are written. */
export function toFolder(folder, options) {
    return new FolderSink(folder, options);
}
