// Headless Chromium, spoken to over two pipes (the DevTools protocol), without packages.
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';

// The longest wait for anything that is not large.
export const CASE_MS = 60000;
export const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

export function expect(holds, words) {
    if (!holds) throw new Error(words);
}

/** Chromium, and a page in it. */
export class Browser {
    constructor(folder) {
        this.downloads = join(folder, 'downloads');
        this.waiting = new Map();
        this.complaints = [];
        this.finished = new Map();
        this.number = 0;
        fs.mkdirSync(this.downloads, { recursive: true });
        this.process = spawn('chromium', ['--headless=new', '--no-sandbox', '--remote-debugging-pipe', '--no-first-run',
            '--disable-gpu', '--disable-extensions', '--disable-background-networking', '--disable-component-update',
            `--user-data-dir=${join(folder, 'profile')}`, 'about:blank'],
        { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
        this.process.on('exit', (code) => this.failAll(`chromium ended with code ${code}`));
        const pieces = [];
        this.process.stdio[4].on('data', (data) => {
            for (let rest = data; ;) {
                const end = rest.indexOf(0);
                if (end < 0) return pieces.push(rest);
                this.receive(JSON.parse(Buffer.concat([...pieces.splice(0), rest.subarray(0, end)]).toString()));
                rest = rest.subarray(end + 1);
            }
        });
        this.process.stdio[3].on('error', () => {});
    }

    failAll(words) {
        for (const { reject } of this.waiting.values()) reject(new Error(words));
    }

    receive({ id, result, error, method, params }) {
        if (id) {
            const { resolve, reject } = this.waiting.get(id);
            this.waiting.delete(id);
            return error ? reject(new Error(`${error.message} ${error.data ?? ''}`)) : resolve(result);
        }
        if (method === 'Runtime.exceptionThrown') this.complaints.push(params.exceptionDetails.exception?.description);
        if (method === 'Log.entryAdded') this.complaints.push(params.entry.text);
        const isOurs = /^(file|blob|data|http:\/\/127\.0\.0\.1):/;
        if (method === 'Network.requestWillBeSent' && !isOurs.test(params.request.url)) {
            this.complaints.push(`it asked for ${params.request.url}`);
        }
        if (method === 'Inspector.targetCrashed') this.failAll('the page crashed');
        if (method === 'Browser.downloadProgress') this.finished.set(params.guid, params.state);
    }

    send(method, params = {}, sessionId = this.session) {
        this.number += 1;
        const id = this.number;
        return new Promise((resolve, reject) => {
            this.waiting.set(id, { resolve, reject });
            this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
        });
    }

    async open(url) {
        const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' }, undefined);
        this.session = (await this.send('Target.attachToTarget', { targetId, flatten: true }, undefined)).sessionId;
        await this.send('Browser.setDownloadBehavior',
            { behavior: 'allowAndName', downloadPath: this.downloads, eventsEnabled: true }, undefined);
        for (const domain of ['Page', 'Runtime', 'Log', 'Network', 'DOM', 'Inspector']) {
            await this.send(`${domain}.enable`);
        }
        // Nobody is here to pick a file: the page saves as where there is no picker.
        await this.send('Page.addScriptToEvaluateOnNewDocument', { source: 'delete window.showSaveFilePicker' });
        await this.load(url);
    }

    async load(url) {
        await this.send('Page.navigate', { url });
        await this.until("document.readyState === 'complete'", 'the page to load');
    }

    async run(expression) {
        const { result, exceptionDetails } = await this.send('Runtime.evaluate',
            { expression, awaitPromise: true, returnByValue: true, userGesture: true });
        if (exceptionDetails) throw new Error(exceptionDetails.exception.description);
        return result.value;
    }

    async until(expression, words, ms = CASE_MS) {
        const end = Date.now() + ms;
        while (!(await this.run(expression))) {
            expect(this.complaints.length === 0, `the browser complains: ${this.complaints.splice(0).join('; ')}`);
            expect(Date.now() < end, `waited ${ms / 1000} s for ${words}`);
            await sleep(20);
        }
    }

    async click(id) {
        const at = await this.run(`(() => { const e = document.getElementById('${id}');
            e.scrollIntoView({ block: 'center' });
            const r = e.getBoundingClientRect(); return { x: r.x + r.width / 2, y: r.y + r.height / 2 }; })()`);
        for (const type of ['mousePressed', 'mouseReleased']) {
            await this.send('Input.dispatchMouseEvent', { type, ...at, button: 'left', clickCount: 1 });
        }
    }

    async press(key, modifiers = 0) {
        const codes = { Tab: 9, Enter: 13, ' ': 32 };
        const text = { Enter: '\r', ' ': ' ' }[key];
        const event = { key, code: key, windowsVirtualKeyCode: codes[key], modifiers };
        await this.send('Input.dispatchKeyEvent', { type: 'keyDown', text, ...event });
        await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    }

    async type(id, text) {
        await this.run(`(() => { const e = document.getElementById('${id}');
            for (let d = e.closest('details'); d; d = null) d.open = true; e.focus(); e.select(); })()`);
        if (text) await this.send('Input.insertText', { text });
        else await this.run(`(() => { const e = document.getElementById('${id}'); e.value = '';
            e.dispatchEvent(new Event('input', { bubbles: true })); })()`);
    }

    async choose(id, files) {
        const { result } = await this.send('Runtime.evaluate', { expression: `document.getElementById('${id}')` });
        await this.send('DOM.setFileInputFiles', { objectId: result.objectId, files });
    }

    async shot(path, width, dark = false) {
        await this.send('Emulation.setEmulatedMedia',
            { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
        await this.send('Emulation.setDeviceMetricsOverride',
            { width, height: 800, deviceScaleFactor: 1, mobile: width < 500 });
        await sleep(300);
        const overflow = await this.run('document.documentElement.scrollWidth - document.documentElement.clientWidth');
        const { data } = await this.send('Page.captureScreenshot', { captureBeyondViewport: true });
        fs.writeFileSync(path, Buffer.from(data, 'base64'));
        await this.send('Emulation.clearDeviceMetricsOverride');
        await this.send('Emulation.setEmulatedMedia', { features: [] });
        expect(overflow <= 0, `${path}: the page is ${overflow} pixels wider than the window`);
    }

    close() {
        this.process.removeAllListeners('exit');
        const gone = new Promise((resolve) => { this.process.once('exit', resolve); });
        this.send('Browser.close', {}, undefined).catch(() => {});
        return Promise.race([gone, sleep(10000).then(() => this.process.kill('SIGKILL'))]);
    }
}

/** The memory of Chromium and of its largest renderer, in bytes: the parts of what is shared, too. */
export function memoryOf(first) {
    const parents = new Map();
    for (const name of fs.readdirSync('/proc')) {
        if (!/^\d+$/.test(name)) continue;
        try {
            const stat = fs.readFileSync(`/proc/${name}/stat`, 'utf8');
            parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
        } catch { /* The process ended meanwhile. */ }
    }
    const isOurs = (pid) => pid === first || (parents.has(pid) && isOurs(parents.get(pid)));
    let all = 0;
    let renderer = 0;
    for (const pid of [...parents.keys()].filter(isOurs)) {
        try {
            const pss = 1024 * Number(/^Pss: *(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]);
            const is = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer');
            all += pss;
            if (is) renderer = Math.max(renderer, pss);
        } catch { /* The same. */ }
    }
    return { all, renderer };
}
