// Objects on their way to a worker: bytes and blobs with their names, and paths.
import { misuse } from './errors.js';
import { bytesOf, isList } from './objects.js';

function recipeOf(given) {
    const name = typeof given?.name === 'string' ? given.name : '';
    const bytes = bytesOf(given) ?? bytesOf(given?.bytes);
    // A view is sent with all of the buffer behind it.
    if (bytes) return { name, bytes: bytes.length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes) };
    if (given instanceof Blob) return { name, blob: given };
    if (typeof given?.path === 'string') return { path: given.path };
    throw misuse('a worker takes bytes, blobs, and what file() and shardsIn() open: other sources stay on their thread');
}

export function recipesOf(given) {
    return isList(given) ? [...given].map(recipeOf) : recipeOf(given);
}

/** An object of its recipe. */
export function named({ name, bytes, blob }) {
    if (bytes) return { name, bytes };
    return blob instanceof File && blob.name === name ? blob : new File([blob], name);
}
