// A worker of Node.
import { parentPort } from 'node:worker_threads';
import * as core from './index.node.js';
import { file, FolderSink } from './node.js';
import { named } from './recipes.js';
import { serve } from './thread.js';

const revive = {
    object: (recipe) => (recipe.path === undefined ? named(recipe) : file(recipe.path)),
    sink: ({ folder, options }) => new FolderSink(folder, options),
};
const answer = serve((message, buffers) => parentPort.postMessage(message, buffers), core, revive);
parentPort.on('message', answer);
