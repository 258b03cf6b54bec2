/*
 * fec: shards of a payload of which any k restore it, and a root of 32 bytes that proves each of them.
 *
 * Generated from the Rust code; crates/fec-c/tests/c/header.rs makes it. docs/guide/c.md begins with an example.
 *
 * ERRORS. Every function that can fail returns a status; FEC_STATUS_OK is 0. The last argument, `why`, may be NULL. If
 * not, it points to a `char *` that gets a sentence in English, in UTF-8, or NULL when all is well. The caller gives a
 * sentence back with fec_free_text. No output is set but when the status is FEC_STATUS_OK, or as the function says.
 *
 * POINTERS. Each leads to as much as its description says, or is NULL where that is allowed. Bytes that a function takes
 * do not change while it runs.
 *
 * OWNERSHIP. Whatever a function takes stays the caller's, and is not looked at after it returns. Whatever it makes is
 * the caller's to give back, each by the function that is named with it, once, from any thread. NULL may be given back.
 *
 * THREADS. There is no global state. All functions may be called from any threads at once. A thing that was made is
 * never changed, so any threads may read it at once; who gives it back sees to it that nobody still reads it.
 *
 * ZERO. A struct of options that is all zeros asks for the defaults: `fec_options options = {0};`.
 */


#ifndef FEC_H
#define FEC_H

#include <stddef.h>
#include <stdint.h>

/**
 * How a call ended. The numbers are the exit codes of the command.
 */
typedef enum {
    /**
     * All is well.
     */
    FEC_STATUS_OK = 0,
    /**
     * Something is damaged or missing, and all of it can be restored.
     */
    FEC_STATUS_DAMAGED = 1,
    /**
     * Wrong use: a NULL where none may be, no such code, an input in which nothing of fec is.
     */
    FEC_STATUS_USAGE = 2,
    /**
     * The payload cannot be restored whole.
     */
    FEC_STATUS_LOST = 3,
    /**
     * A callback failed, or the system did.
     */
    FEC_STATUS_IO = 4,
    /**
     * Not what the root promises.
     */
    FEC_STATUS_UNTRUE = 5,
    /**
     * A limit, or a version that this library does not know.
     */
    FEC_STATUS_REFUSED = 6,
    /**
     * A fault of the library itself. Nothing was made.
     */
    FEC_STATUS_FAULT = 70,
} fec_status;

/**
 * A hash function.
 */
typedef enum {
    /**
     * BLAKE3, the default.
     */
    FEC_HASH_BLAKE3 = 0,
    /**
     * SHA-256.
     */
    FEC_HASH_SHA256 = 1,
} fec_hash;

/**
 * The shards of a payload. Given back with `fec_free_shards`.
 */
typedef struct fec_shards fec_shards;

/**
 * Bytes of somebody else. `data` may be NULL if `len` is 0.
 */
typedef struct {
    /**
     * The first byte.
     */
    const uint8_t *data;
    /**
     * Their number.
     */
    size_t len;
} fec_bytes;

/**
 * How a payload is encoded. All zeros are the defaults.
 */
typedef struct {
    /**
     * Original shards, 1 to 256; any k shards restore the payload. 0 with an `m` of 0: 33, and 67 for `m`.
     */
    uint32_t k;
    /**
     * Recovery shards; k + m is at most 256.
     */
    uint32_t m;
    /**
     * A `fec_hash`.
     */
    uint32_t hash;
    /**
     * Threads that work at the same time. 0: one for each core. 1: callbacks are called by the calling thread.
     */
    uint32_t threads;
    /**
     * About as many bytes of payload are a set, which is coded as a whole. 0: what suits k and m, 4 MiB at most.
     */
    uint64_t set_size;
    /**
     * Sets of a group of a container, which is held in memory. 0: as many as take 48 MiB.
     */
    uint32_t group_sets;
    /**
     * The file name of the payload, without folders, which shards record and the root binds. Empty: "payload".
     * Containers record none.
     */
    fec_bytes name;
} fec_options;

/**
 * Reads some of the next bytes into `buffer`, at most `len`, which is not 0. Returns their number; 0 at the end; a
 * negative number if that failed, which ends the call with FEC_STATUS_IO.
 */
typedef ptrdiff_t (*fec_read)(void *context, uint8_t *buffer, size_t len);

/**
 * Takes all `len` bytes. Returns 0; anything else if that failed, which ends the call with FEC_STATUS_IO.
 */
typedef int (*fec_write)(void *context, const uint8_t *bytes, size_t len);

/**
 * The description of a shard.
 */
typedef struct {
    /**
     * Its number: below `k` it is a part of the payload.
     */
    uint32_t index;
    /**
     * Shards that restore the payload.
     */
    uint32_t k;
    /**
     * Recovery shards.
     */
    uint32_t m;
    /**
     * Bytes of the payload.
     */
    uint64_t payload_len;
} fec_shard_info;

/**
 * The findings about an encoding.
 */
typedef struct {
    /**
     * The root; zeros if it is not known, as that of a container that was cut.
     */
    uint8_t root[32];
    /**
     * Shards that restore the payload.
     */
    uint32_t k;
    /**
     * Recovery shards.
     */
    uint32_t m;
    /**
     * Shards that are intact, every byte of them.
     */
    uint32_t intact;
    /**
     * Shards of which a byte is missing or wrong.
     */
    uint32_t damaged;
    /**
     * Shards of which nothing is here.
     */
    uint32_t missing;
    /**
     * Further shards that may be lost, whichever they are; -1 if the payload cannot be restored.
     */
    int32_t may_still_lose;
    /**
     * Bytes of the payload; UINT64_MAX if they are not known.
     */
    uint64_t payload_len;
} fec_report;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Tells the version of the library, as text that lasts.
 */
const char *fec_version(void);

/**
 * Gives a sentence back. NULL may be given.
 */
void fec_free_text(char *text);

/**
 * Writes a root of 32 bytes as text: 64 hexadecimal digits and a NUL, so `text` has room for 65.
 */
fec_status fec_root_to_text(const uint8_t *root, char *text);

/**
 * Reads a root from text of 64 hexadecimal digits. FEC_STATUS_USAGE: it is another text.
 */
fec_status fec_root_from_text(const char *text, uint8_t *root);

/**
 * Encodes a payload to k + m shards in memory: the bytes of the shard files that `fec encode` writes. Shards below k
 * are parts of the payload.
 *
 * `root` gets the 32 bytes of the root, and may be NULL. `options` may be NULL. FEC_STATUS_REFUSED: a limit of the
 * format, such as a set that is too small for k.
 */
fec_status fec_encode(const uint8_t *payload,
                      size_t payload_len,
                      const fec_options *options,
                      uint8_t *root,
                      fec_shards **shards,
                      char **why);

/**
 * The number of shards: k + m; 0 for NULL.
 */
size_t fec_shards_count(const fec_shards *shards);

/**
 * The bytes of shard `index`, which last until the shards are given back. NULL and 0 if there is no such shard.
 */
fec_bytes fec_shards_get(const fec_shards *shards,
                         size_t index);

/**
 * The name that `fec encode` gives the file of shard `index`, such as "photo.jpg.007.shard", which lasts until the
 * shards are given back. NULL if there is no such shard.
 */
const char *fec_shards_name(const fec_shards *shards,
                            size_t index);

/**
 * Gives shards back. NULL may be given.
 */
void fec_free_shards(fec_shards *shards);

/**
 * Restores a payload from any k of its shards, in any order, with foreign bytes and damaged shards among them; or from
 * a container, which is one input. With a `root` of 32 bytes only its payload comes out. If it is NULL, the inputs
 * must hold one encoding only.
 *
 * `payload` gets the bytes, given back with `fec_free_bytes`, and `payload_len` their number. FEC_STATUS_LOST: too
 * little is left. FEC_STATUS_UNTRUE: it is of another root.
 */
fec_status fec_decode(const fec_bytes *inputs,
                      size_t count,
                      const uint8_t *root,
                      uint8_t **payload,
                      size_t *payload_len,
                      char **why);

/**
 * Gives bytes of `fec_decode` back. NULL may be given.
 */
void fec_free_bytes(uint8_t *bytes, size_t len);

/**
 * Encodes what `read` reads to a container that goes to `write`, in memory that does not grow with it. Each callback
 * gets its context, and is called by one thread at a time, which is the caller's only if `options` asks for one
 * thread. Callbacks return; they do not jump or throw. After a failure nothing that was written counts.
 *
 * `root` gets the 32 bytes of the root, and may be NULL. `options` may be NULL.
 */
fec_status fec_encode_stream(fec_read read,
                             void *read_context,
                             fec_write write,
                             void *write_context,
                             const fec_options *options,
                             uint8_t *root,
                             char **why);

/**
 * Restores the payload of a container that `read` reads to `write`, in memory that does not grow with it. Callbacks
 * are called as by `fec_encode_stream`. Each part is written once it is proved by itself. If the whole is not what
 * `root` promises, or a part cannot be restored, the status says so after other parts were written: they count only
 * with FEC_STATUS_OK. `root` may be NULL.
 */
fec_status fec_decode_stream(fec_read read,
                             void *read_context,
                             fec_write write,
                             void *write_context,
                             const uint8_t *root,
                             char **why);

/**
 * Checks every byte of a single shard against a root of 32 bytes, without any other shard. FEC_STATUS_OK: it is as it
 * was made. FEC_STATUS_UNTRUE: it is damaged, or of another root. FEC_STATUS_LOST: nothing of a shard is left in it.
 *
 * `info` gets what it is, and may be NULL.
 */
fec_status fec_verify_shard(const uint8_t *root,
                            const uint8_t *shard,
                            size_t shard_len,
                            fec_shard_info *info,
                            char **why);

/**
 * Checks every byte of inputs as `fec_decode` takes them. FEC_STATUS_OK: all shards are there and intact.
 * FEC_STATUS_DAMAGED: not all are, and the payload can be restored. FEC_STATUS_LOST: it cannot.
 *
 * `report` gets what was found with these three, and may be NULL. A single shard is checked by `fec_verify_shard`.
 */
fec_status fec_verify(const fec_bytes *inputs,
                      size_t count,
                      const uint8_t *root,
                      fec_report *report,
                      char **why);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FEC_H */
