// The views of the page: texts go in by textContent alone, because names and reports come from files of strangers.
import { adviceOf, count, errorTitle, showRuns, showSize } from './words.js';

export const byId = (id) => document.getElementById(id);

// The sign in each cell, because colours alone tell nothing to some.
const SIGNS = { intact: '✓', damaged: '!', missing: '–' };
// More rows than somebody reads would only make the page slow.
const MOST_ROWS = 500;

/** An element with a class, and with texts and elements in it. */
export function element(tag, kind, ...parts) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.append(...parts.filter((part) => part !== null));
    return made;
}

function note(kind, ...parts) {
    return element('div', `note ${kind}`, ...parts.map((part) => element('p', '', part)));
}

function list(items) {
    const shown = items.slice(0, MOST_ROWS).map((item) => element('li', '', item));
    if (items.length > shown.length) shown.push(element('li', '', `and ${items.length - shown.length} more`));
    return element('ul', '', ...shown);
}

function folded(title, items) {
    return items.length === 0 ? null : element('details', '', element('summary', '', title), list(items));
}

/** The facts about an encoding, as terms with what is known of each. */
export function showFacts(encoding) {
    const { k, m } = encoding;
    const form = encoding.form === 'shards' ? 'shard files' : encoding.form;
    const facts = [
        ['Form', encoding.is_one_shard ? 'one shard of it, which can be checked alone' : form],
        ['Name', encoding.name ?? 'not recorded'],
        ['Size', encoding.payload_len === null ? 'not known yet' : showSize(encoding.payload_len)],
        ['Shards', `any ${k} of ${k + m} restore it; any ${m} may be lost`],
        ['Sealed', encoding.is_sealed ? 'yes: a key or a passphrase opens it' : 'no'],
        ['Signed', signedBy(encoding)],
        ['Hash', encoding.hash],
    ];
    const rows = facts.flatMap(([term, fact]) => [element('dt', '', term), element('dd', '', fact)]);
    rows.push(element('dt', '', 'Root'));
    rows.push(element('dd', 'code', encoding.root ?? 'not known before all is read'));
    byId('facts').replaceChildren(...rows);
}

function signedBy(encoding) {
    if (encoding.signed_by) return `by key ${encoding.signed_by}`;
    if (encoding.signatures > 0) return `${count(encoding.signatures, 'signature')}; give a public key to check`;
    return 'no';
}

/** Asks which of several roots is meant. */
export function showRoots(roots, chosen, choose) {
    byId('roots').hidden = roots.length < 2;
    byId('root-choices').replaceChildren(...roots.map((root) => {
        const input = element('input');
        Object.assign(input, { type: 'radio', name: 'which', value: root, checked: root === chosen });
        input.addEventListener('change', () => choose(root));
        return element('label', '', input, element('span', 'code', root));
    }));
}

/** Shows a result: the title takes the focus, so that whoever listens or uses the keyboard is there. */
export function showResult(title, ...parts) {
    byId('result-title').textContent = title;
    byId('result-body').replaceChildren(...parts.filter((part) => part !== null));
    byId('result').hidden = false;
    byId('result-title').focus();
}

export function errorNote(kind, error) {
    const body = note(kind, error.message);
    const advice = adviceOf(error);
    if (advice) body.append(element('p', '', element('strong', '', 'What to do: '), advice));
    return body;
}

export function showError(error, lines = []) {
    const body = errorNote('bad', error);
    const details = lines.length === 0 ? null
        : element('details', '', element('summary', '', 'The last words of the engine'),
            element('pre', '', lines.join('\n')));
    showResult(errorTitle(error), body, details);
}

/** A sentence about how far the result is proved: `proof` says what was given, and was true. */
function proofNote(proof, encoding) {
    const lines = [];
    if (proof.root) lines.push('This is the root that was given.');
    if (proof.trust && encoding.signed_by) {
        lines.push(`Signed by key ${encoding.signed_by}, one of those that were given.`);
    }
    if (lines.length > 0) return note('good', lines.join(' '));
    return note('warn',
        'No root and no public key was given: this is proved to be consistent, not to be what was stored.');
}

function rootLine(root) {
    return root ? element('p', 'code', `root ${root}`) : null;
}

function verdict({ verified, encoding }) {
    const all = encoding.k + encoding.m;
    if (verified.is_restorable === false) return 'It cannot be restored from these';
    if (verified.is_restorable === null) return verified.damaged > 0 ? 'The shard is damaged' : 'The shard is intact';
    if (verified.intact === all && verified.damage.length === 0) return `All ${all} shards are intact`;
    if (verified.damaged === 0 && verified.damage.length === 0) return 'Some shards are missing; it can be restored';
    return 'Damaged; it can be restored';
}

function outlook({ verified, encoding }) {
    const { may_still_lose: spare, weakest } = verified;
    if (verified.is_seal_lost) return 'No copy of the seal is left: no key opens the payload any more.';
    if (verified.is_restorable === null) return 'To restore the payload, others are needed too.';
    if (verified.is_restorable) {
        if (spare === 0) return 'The payload can be restored; not one more shard may be lost.';
        return spare === null ? 'The payload can be restored.'
            : `The payload can be restored, and any ${count(spare, 'more shard')} may be lost.`;
    }
    const lacking = Math.max(encoding.k - weakest, 0);
    if (lacking === 0) return 'The payload cannot be restored whole.';
    return `${encoding.k} shards are needed, and ${weakest} are intact: ${lacking} more are missing. `
        + 'Look for more shard files of this root, and add them.';
}

export function showVerified(response, proof) {
    const { verified, encoding } = response;
    const kind = verified.is_restorable === false ? 'bad' : verified.damaged > 0 ? 'warn' : 'good';
    const counts = `${verified.intact} of ${encoding.k + encoding.m} shards intact, ${verified.damaged} damaged, `
        + `${verified.missing} missing`;
    showResult(
        verdict(response),
        note(kind, counts, outlook(response)),
        proofNote(proof, encoding),
        rootLine(encoding.root),
        map(verified.shards, encoding),
        damageTable(verified.shards),
        folded(`Damaged places (${verified.damage.length})`, verified.damage),
        folded(`Left aside (${verified.leftovers.length})`, verified.leftovers),
    );
    const places = byId('result-body').querySelector('details');
    if (places && verified.damage.length > 0) places.open = true;
}

function cell(state) {
    const made = element('span', `cell ${state}`, SIGNS[state] ?? '?');
    made.setAttribute('aria-hidden', 'true');
    return made;
}

function summary(shards) {
    const parts = Object.keys(SIGNS).map((state) => {
        const those = shards.filter((shard) => shard.state === state).map((shard) => shard.index);
        return those.length === 0 ? `none ${state}` : `${state}: ${showRuns(those)}`;
    });
    return parts.join('; ');
}

/** The map: a cell for each shard, originals apart from recovery shards, and the same in words. */
function map(shards, encoding) {
    if (shards.length === 0) return null;
    const groups = [['Original shards', 0, encoding.k], ['Recovery shards', encoding.k, encoding.k + encoding.m]];
    const figure = element('figure');
    for (const [title, from, to] of groups) {
        const those = shards.filter(({ index }) => index >= from && index < to);
        if (those.length === 0) continue;
        const cells = element('div', 'map', ...those.map((shard) => {
            const made = cell(shard.state);
            made.title = `Shard ${shard.index}: ${shard.state}`;
            return made;
        }));
        cells.setAttribute('role', 'img');
        const noun = title.toLowerCase().slice(0, -1);
        cells.setAttribute('aria-label', `Map of ${count(those.length, noun)}: ${summary(those)}`);
        figure.append(element('h3', '', `${title} ${from}–${to - 1}`), cells);
    }
    const legend = Object.keys(SIGNS).map((state) => {
        const those = shards.filter((shard) => shard.state === state).map((shard) => shard.index);
        const which = those.length === 0 || those.length === shards.length ? '' : `: ${showRuns(those)}`;
        return element('li', '', cell(state), element('span', '', `${those.length} ${state}${which}`));
    });
    figure.append(element('ul', 'legend', ...legend));
    return figure;
}

function damageTable(shards) {
    const places = shards.flatMap((shard) => shard.damage.map((place) => [shard.index, place]));
    if (places.length === 0) return null;
    const rows = places.slice(0, MOST_ROWS).map(([index, { file, bytes, what }]) => {
        const cells = [`Shard ${index}`, file, bytes ? `bytes ${bytes}` : '', what];
        return element('tr', '', ...cells.map((text) => element('td', '', text)));
    });
    const titles = ['Shard', 'File', 'Where', 'What'].map((title) => {
        const made = element('th', '', title);
        made.scope = 'col';
        return made;
    });
    const head = element('thead', '', element('tr', '', ...titles));
    const more = places.length > MOST_ROWS ? element('p', '', `and ${places.length - MOST_ROWS} more`) : null;
    const table = element('table', '', head, element('tbody', '', ...rows));
    table.setAttribute('aria-label', 'Damaged shards');
    return element('div', '', element('h3', '', 'Damaged'), element('div', 'scroll', table), more);
}

/** The result of a restoring; `save` is the control that saves it. */
export function showRestored(response, proof, seconds, save) {
    const { restored, encoding } = response;
    const mended = restored.mended_sets > 0
        ? `Mended: ${restored.mended_sets} of ${count(restored.sets, 'set')} lacked originals, which were rebuilt.`
        : 'All original shards were intact.';
    showResult(
        'Restored',
        note('good', `${showSize(restored.len)} restored in ${seconds.toFixed(1)} s. ${mended}`),
        proofNote(proof, encoding),
        rootLine(restored.root ?? encoding.root),
        save,
    );
}

/** Shows how far the work is; the text is not live, because nobody wants to hear ten numbers a second. */
export function showProgress({ done, total }, seconds) {
    const bar = byId('bar');
    if (total > 0) {
        bar.max = total;
        bar.value = Math.min(done, total);
    } else {
        bar.removeAttribute('value');
    }
    const parts = [total > 0 ? `${showSize(done)} of ${showSize(total)}` : showSize(done)];
    if (total > 0) parts.push(`${Math.floor((100 * Math.min(done, total)) / total)} %`);
    if (seconds > 0.5) parts.push(`${showSize(Math.round(done / seconds))}/s`);
    byId('work-text').textContent = parts.join(' · ');
}
