// A worker of a browser.
import * as core from './index.browser.js';
import { named } from './recipes.js';
import { serve } from './thread.js';

const revive = { object: named };
const answer = serve((message, buffers = []) => self.postMessage(message, buffers), core, revive);
self.onmessage = ({ data }) => answer(data);
