// Encodes a payload to 10 + 4 shards, loses four, and restores it, by fec's library for C and koffi.
//
//     npm install koffi && LD_LIBRARY_PATH=PREFIX/lib node shards.js
'use strict';
const koffi = require('koffi');

const lib = koffi.load('libfec.so');
const bytes = koffi.struct('fec_bytes', { data: 'uint8_t *', len: 'size_t' });
koffi.struct('fec_options', {
  k: 'uint32_t', m: 'uint32_t', hash: 'uint32_t', threads: 'uint32_t', set_size: 'uint64_t', group_sets: 'uint32_t', name: bytes,
});
koffi.opaque('fec_shards');
const encode = lib.func('int fec_encode(uint8_t *payload, size_t len, fec_options *options, _Out_ uint8_t *root, _Out_ fec_shards **shards, _Out_ void **why)');
const count = lib.func('size_t fec_shards_count(fec_shards *shards)');
const get = lib.func('fec_bytes fec_shards_get(fec_shards *shards, size_t index)');
const freeShards = lib.func('void fec_free_shards(fec_shards *shards)');
const verifyShard = lib.func('int fec_verify_shard(uint8_t *root, uint8_t *shard, size_t len, void *info, _Out_ void **why)');
const decode = lib.func('int fec_decode(fec_bytes *inputs, size_t count, uint8_t *root, _Out_ void **payload, _Out_ size_t *len, _Out_ void **why)');
const freeBytes = lib.func('void fec_free_bytes(void *bytes, size_t len)');
const freeText = lib.func('void fec_free_text(void *text)');

// Turns a status and its sentence, which is given back, into an exception.
function check(status, [why]) {
  if (status === 0) return;
  const words = koffi.decode(why, 'char', -1);
  freeText(why);
  throw new Error(`fec: status ${status}: ${words}`);
}

const copy = (data, len) => Buffer.from(koffi.decode(data, koffi.array('uint8_t', Number(len), 'Typed')));

exports.encode = (payload, k, m) => {
  const root = Buffer.alloc(32), shards = [null], why = [null];
  const options = { k, m, hash: 0, threads: 0, set_size: 0, group_sets: 0, name: { data: null, len: 0 } };
  check(encode(payload, payload.length, options, root, shards, why), why);
  const list = [];
  for (let i = 0; i < Number(count(shards[0])); i++) {
    const { data, len } = get(shards[0], i);
    list.push(copy(data, len));
  }
  freeShards(shards[0]);
  return { root, shards: list };
};

exports.checkShard = (root, shard) => {
  const why = [null];
  check(verifyShard(root, shard, shard.length, null, why), why);
};

exports.decode = (root, shards) => {
  const payload = [null], len = [0], why = [null];
  const inputs = shards.map((shard) => ({ data: shard, len: shard.length }));
  check(decode(inputs, inputs.length, root, payload, len, why), why);
  const restored = copy(payload[0], len[0]);
  freeBytes(payload[0], len[0]);
  return restored;
};

if (require.main === module) {
  const payload = Buffer.from('the only copy of something, '.repeat(5000));
  const { root, shards } = exports.encode(payload, 10, 4);
  console.log(`root ${root.toString('hex')}: ${shards.length} shards`);
  shards.forEach((shard) => exports.checkShard(root, shard));
  shards[3][100] ^= 1;
  let isRefused = false;
  try { exports.checkShard(root, shards[3]); } catch { isRefused = true; }
  if (!isRefused) throw new Error('a damaged shard passed');
  // Shard 3 is damaged, and 0 to 2 are lost.
  console.log(`restored from 10 of 14: ${exports.decode(root, shards.slice(3)).equals(payload)}`);
  try { exports.decode(root, shards.slice(4, 13)); } catch (error) { console.log(`from 9: ${error.message}`); }
}
