// The page: what is chosen, what is asked of the worker, and what happens to its answers.
import { hasSimd } from './engine.js';
import { inflate } from './inflate.js';
import { adviceOf, count, parseRoot, safeName, shortfall, showSize } from './words.js';
import {
    byId, element, errorNote, showError, showFacts, showProgress, showRestored, showResult, showRoots, showVerified,
} from './view.js';

const MOST_TEXT = 1 << 20;
const DOING = { look: 'Reading headers', verify: 'Checking', restore: 'Restoring' };
const STORED = 'fec-';

const state = {
    files: [],
    // The root that was picked from a list tells which one is meant, and proves nothing.
    picked: null,
    worker: null,
    job: null,
    payload: null,
    url: null,
    runs: 0,
};
// The names of this page's files in the private storage begin so; a lock of this name tells that the page lives.
const ours = `${STORED}${Date.now()}-${Math.floor(Math.random() * 1e9)}`;
let moduleBytes = null;

/** The module that fits this machine, out of the page itself. */
function unpackModule() {
    const { textContent, dataset } = byId(hasSimd() ? 'module-simd' : 'module-plain');
    const packed = Uint8Array.from(atob(textContent.trim()), (letter) => letter.charCodeAt(0));
    return inflate(packed, Number(dataset.size)).buffer;
}

const policy = self.trustedTypes?.createPolicy('fec-worker', { createScriptURL: (url) => url });

async function startWorker() {
    moduleBytes ??= unpackModule();
    const url = URL.createObjectURL(new Blob([byId('worker-source').textContent], { type: 'text/javascript' }));
    const worker = new Worker(policy ? policy.createScriptURL(url) : url);
    worker.onmessage = ({ data }) => onAnswer(worker, data);
    worker.onerror = (event) => {
        event.preventDefault();
        onAnswer(worker, { kind: 'fault', message: event.message || 'The worker could not be started.', lines: [] });
    };
    worker.onmessageerror = () => {
        onAnswer(worker, { kind: 'fault', message: 'An answer could not be read.', lines: [] });
    };
    worker.postMessage({ kind: 'start', module: moduleBytes });
    return worker;
}

function stopWorker() {
    state.worker?.terminate();
    state.worker = null;
}

/** Sends a request to the worker, with a new one if there is none. */
async function start(action, request, opener) {
    const job = { action, opener, began: performance.now(), told: 0, proof: proofOf(request) };
    state.job = job;
    setBusy(true);
    try {
        const worker = state.worker ?? (await startWorker());
        if (state.job !== job) return worker.terminate();
        state.worker = worker;
        const objects = state.files.map((file) => ({ name: file.webkitRelativePath || file.name, size: file.size }));
        const whole = { do: action, objects, root: null, trust: null, identities: null, passphrase: null, ...request };
        state.runs += 1;
        worker.postMessage({ kind: 'run', request: whole, files: state.files, storage: `${ours}.${state.runs}` });
    } catch (error) {
        onFault(job, { message: `The engine could not be started: ${error.message}`, lines: [] });
    }
}

/** Tells what was given to prove the result by; a root from the list of those that are here is no proof. */
function proofOf(request) {
    const isKept = request.root !== null && request.root === parseRoot(byId('root').value);
    return { root: isKept, trust: Boolean(request.trust) };
}

function onAnswer(worker, answer) {
    const { job } = state;
    if (!job || worker !== state.worker) return;
    if (answer.kind === 'progress') onProgress(job, answer);
    else if (answer.kind === 'fault') onFault(job, answer);
    else onDone(job, answer);
}

function onProgress(job, progress) {
    showProgress(progress, (performance.now() - job.began) / 1000);
    const quarter = Math.floor((4 * progress.done) / progress.total);
    if (progress.total > 0 && quarter > job.told && quarter < 4) {
        job.told = quarter;
        tell(`${25 * quarter} %`);
    }
}

/** A fault ends the worker: nobody knows in which state it is. */
function onFault(job, { message, lines }) {
    stopWorker();
    end(job);
    if (job.action === 'look') byId('encoding').hidden = true;
    showError({
        message,
        help: 'Try again, with fewer files or in a newer browser. The command fec does the same work.',
        class: 'fault',
    }, lines);
}

function onDone(job, { response, payload, faults }) {
    end(job);
    if (job.action === 'look') return onLooked(response);
    if (!response.ok || faults.length > 0) {
        const error = response.error ?? { message: faults[0], help: null, class: 'system' };
        if (faults.length > 0 && error.message !== faults[0]) {
            error.help = [faults[0], error.help].filter(Boolean).join(' ');
        }
        if (error.class === 'missing') error.help ??= shortfall(response.encoding);
        offerRoots(error.roots ?? []);
        return showError(error);
    }
    if (response.encoding) describe(response.encoding);
    if (job.action === 'verify') return showVerified(response, job.proof);
    const name = safeName(response.restored.name ?? response.encoding.name, fallbackName());
    showRestored(response, job.proof, (performance.now() - job.began) / 1000, saver(payload, name));
}

/** A container that records no name is restored under its own, as the command does: X.fec becomes X. */
function fallbackName() {
    const [first] = state.files;
    const name = state.files.length === 1 && /\.fec$/i.test(first.name) ? first.name.slice(0, -4) : '';
    return safeName(name, 'restored.bin');
}

function onLooked(response) {
    byId('encoding').hidden = false;
    byId('looked').hidden = response.ok;
    if (response.ok) {
        describe(response.encoding);
        const { name, k, m } = response.encoding;
        return tell(`${name ?? 'An encoding'}: any ${k} of ${k + m} shards restore it.`);
    }
    const { error } = response;
    byId('facts').replaceChildren();
    byId('looked').replaceChildren(errorNote('warn', error));
    offerRoots(error.roots ?? []);
    tell(`${error.message}. ${adviceOf(error) ?? ''}`);
}

function describe(encoding) {
    byId('looked').hidden = true;
    showFacts(encoding);
    offerRoots(encoding.root ? [encoding.root, ...encoding.others] : encoding.others, encoding.root);
    if (encoding.is_sealed) byId('secrets').open = true;
}

/** Lists roots to choose from. A list that is there already stays while its root is looked at. */
function offerRoots(roots, current = null) {
    if (roots.length < 2) return;
    const known = [...byId('root-choices').querySelectorAll('input')].map((input) => input.value);
    const all = [...new Set([...known, ...roots])];
    showRoots(all, state.picked ?? current, (root) => {
        state.picked = root;
        look();
    });
}

function look() {
    clearResult();
    if (state.files.length > 0) start('look', { root: state.picked }, null);
}

function setBusy(is) {
    const { job } = state;
    byId('work').hidden = !is;
    for (const id of ['check', 'restore']) byId(id).disabled = is || state.files.length === 0;
    for (const id of ['choose-files', 'choose-folder', 'clear']) byId(id).disabled = is;
    byId('not-yet').hidden = state.files.length > 0;
    if (!is) return;
    byId('work-title').textContent = DOING[job.action];
    byId('bar').removeAttribute('value');
    byId('work-text').textContent = 'Starting…';
    if (job.action === 'look') return;
    tell(DOING[job.action]);
    byId('cancel').focus();
}

function end(job) {
    if (state.job === job) state.job = null;
    setBusy(false);
}

function cancel() {
    const { job } = state;
    if (!job) return;
    stopWorker();
    end(job);
    removeOwn();
    if (job.action === 'look') {
        byId('encoding').hidden = true;
        byId('choose-files').focus();
    } else {
        showResult('Cancelled', element('p', '', 'Nothing was kept.'));
    }
}

/** Says something to those who listen; the same words twice in a row are said twice. */
function tell(text) {
    byId('live').textContent = '';
    setTimeout(() => { byId('live').textContent = text; }, 50);
}

// The files that are chosen.

function keyOf(file) {
    return [file.webkitRelativePath || file.name, file.size, file.lastModified].join('\0');
}

function addFiles(files) {
    const known = new Set(state.files.map(keyOf));
    for (const file of files) {
        if (!known.has(keyOf(file))) state.files.push(file);
        known.add(keyOf(file));
    }
    showChosen();
}

function showChosen() {
    const size = state.files.reduce((sum, file) => sum + file.size, 0);
    byId('chosen').hidden = state.files.length === 0;
    byId('chosen-text').textContent = `${count(state.files.length, 'file')}, ${showSize(size)}`;
    byId('encoding').hidden = true;
    state.picked = null;
    showRoots([], null, null);
    setBusy(false);
    look();
}

function readEntries(reader) {
    return new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
}

/** All files below a folder that was dropped. */
async function walk(entry) {
    if (entry.isFile) return [await new Promise((resolve, reject) => { entry.file(resolve, reject); })];
    const reader = entry.createReader();
    const found = [];
    // A reader gives a hundred at a time, and nothing at the end.
    for (let some = await readEntries(reader); some.length > 0; some = await readEntries(reader)) {
        for (const next of some) found.push(...await walk(next));
    }
    return found;
}

async function walkHandle(handle) {
    if (handle.kind === 'file') return [await handle.getFile()];
    const found = [];
    for await (const next of handle.values()) found.push(...await walkHandle(next));
    return found;
}

/** All files of a folder: by a handle where there are any, because entries cannot be read by pages from file://. */
async function below(item, entry) {
    return item.getAsFileSystemHandle ? walkHandle(await item.getAsFileSystemHandle()) : walk(entry);
}

async function onDrop(event) {
    event.preventDefault();
    byId('drop').classList.remove('over');
    if (state.job) return;
    // The list is empty after the first wait: all of it is taken now.
    const items = [...event.dataTransfer.items].filter(({ kind }) => kind === 'file').map((item) => {
        const entry = item.webkitGetAsEntry?.();
        return { file: item.getAsFile(), files: entry?.isDirectory ? below(item, entry) : null };
    });
    try {
        const files = [];
        for (const item of items) {
            if (item.files) files.push(...await item.files);
            else if (item.file) files.push(item.file);
        }
        addFiles(files);
    } catch (error) {
        showError({
            message: `The folder cannot be read when it is dropped on this page: ${error.message}`,
            help: 'Use “Choose a folder…”, or drop the files themselves.',
            class: 'system',
        });
    }
}

function fillFromFile(target) {
    const input = byId('text-file');
    input.value = '';
    input.onchange = async () => {
        const [file] = input.files;
        if (!file) return;
        byId(target).value = file.size > MOST_TEXT ? '' : await file.text();
        showProof();
        byId(target).focus();
    };
    input.click();
}

// Saving.

function clearResult() {
    byId('result').hidden = true;
    byId('result-body').replaceChildren();
    if (state.url) URL.revokeObjectURL(state.url);
    removeOwn();
    state.url = null;
    state.payload = null;
}

/** The control that saves: into a file that is picked, or else as a download. */
function saver(payload, name) {
    state.payload = payload;
    state.url = URL.createObjectURL(payload);
    const status = element('p', 'saved');
    status.setAttribute('role', 'status');
    const link = element('a', 'button main', `Save ${name}`);
    Object.assign(link, { id: 'save', href: state.url, download: name });
    link.addEventListener('click', (event) => {
        if (self.showSaveFilePicker) {
            event.preventDefault();
            saveAs(payload, name, status);
        } else {
            status.textContent = 'It goes to the downloads of this browser.';
        }
    });
    return element('div', '', element('p', 'buttons', link), status);
}

async function saveAs(payload, name, status) {
    try {
        const picked = await self.showSaveFilePicker({ suggestedName: name });
        status.textContent = 'Saving…';
        // The file appears when all of it is written, and not before.
        await payload.stream().pipeTo(await picked.createWritable());
        status.textContent = `Saved: ${picked.name}, ${showSize(payload.size)}.`;
    } catch (error) {
        const link = element('a', '', 'Take it as a download instead');
        Object.assign(link, { href: state.url, download: name });
        // A picker that cannot be shown looks as if somebody had closed it.
        const why = error.name === 'AbortError' ? 'Not saved. ' : `It was not saved: ${error.message} `;
        status.replaceChildren(why, link);
    }
}

/** Removes from the private storage what `isOver` is true of: the page that made it, and in which run. */
async function removeStored(isOver) {
    try {
        const folder = await navigator.storage.getDirectory();
        for await (const name of folder.keys()) {
            const [page, run] = name.split('.');
            if (!name.startsWith(STORED) || !isOver(page, Number(run))) continue;
            // A worker that was just ended may still hold the file: it goes away the next time.
            await folder.removeEntry(name).catch(() => {});
        }
    } catch {
        // Pages from file:// have no private storage, and nothing to remove.
    }
}

/** Removes what earlier runs of this page left there. */
function removeOwn() {
    const last = state.runs;
    return removeStored((page, run) => page === ours && run <= last);
}

/** Removes what pages left that are gone: those that live hold a lock. */
async function tidyStorage() {
    try {
        navigator.locks.request(ours, () => new Promise(() => {})).catch(() => {});
        const { held } = await navigator.locks.query();
        const living = new Set(held.map((lock) => lock.name));
        await removeStored((page) => page !== ours && !living.has(page));
    } catch {
        // The same pages have no locks.
    }
}

// The form.

/** The texts of the form, or null if the root is none. */
function readForm() {
    const text = (id) => byId(id).value.trim() || null;
    const root = text('root') && parseRoot(text('root'));
    const isWrong = text('root') !== null && root === null;
    byId('root').setAttribute('aria-invalid', String(isWrong));
    byId('root-error').textContent = isWrong ? 'A root has 64 digits, 0 to 9 and a to f.' : '';
    if (isWrong) {
        byId('root').focus();
        return null;
    }
    return {
        root: root ?? state.picked,
        trust: text('trust'),
        identities: text('identities'),
        passphrase: byId('passphrase').value || null,
    };
}

function showProof() {
    byId('unproved').hidden = byId('root').value.trim() !== '' || byId('trust').value.trim() !== '';
}

function onSubmit(event) {
    event.preventDefault();
    if (state.job || state.files.length === 0) return;
    const opener = event.submitter ?? byId('check');
    // A result that stays would look as if it came from what is in the form now.
    clearResult();
    const request = readForm();
    if (request === null) return;
    start(opener.value, request, opener);
}

function listen() {
    const drop = byId('drop');
    for (const id of ['files', 'folder']) {
        byId(`choose-${id}`).addEventListener('click', () => byId(id).click());
        byId(id).addEventListener('change', (event) => {
            addFiles([...event.target.files]);
            event.target.value = '';
        });
    }
    // A file that misses the frame would be opened by the browser, in the place of this page.
    addEventListener('dragover', (event) => {
        event.preventDefault();
        drop.classList.add('over');
    });
    addEventListener('dragleave', (event) => {
        if (event.relatedTarget === null) drop.classList.remove('over');
    });
    addEventListener('drop', onDrop);
    byId('clear').addEventListener('click', () => {
        state.files = [];
        showChosen();
        byId('choose-files').focus();
    });
    byId('cancel').addEventListener('click', cancel);
    byId('ask').addEventListener('submit', onSubmit);
    byId('ask').addEventListener('input', showProof);
    for (const button of document.querySelectorAll('[data-fills]')) {
        button.addEventListener('click', () => fillFromFile(button.dataset.fills));
    }
}

listen();
setBusy(false);
showProof();
tidyStorage();
