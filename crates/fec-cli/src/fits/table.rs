//! The options of each command, and the inputs that each option acts on. The tests compare this table with the options
//! of the command line.

/// The kind of thing that a command works on, as messages name it.
pub(crate) type Mode = &'static str;

pub(crate) const SHARDS: Mode = "shard files";
pub(crate) const CONTAINER: Mode = "a container";
pub(crate) const PIPE: Mode = "a container in a pipe";
pub(crate) const STREAM: Mode = "a live stream in a file or pipe";
pub(crate) const NETWORK: Mode = "a live stream over the network (udp://)";
pub(crate) const STORES: Mode = "stores";
pub(crate) const SEVERAL: Mode = "several at once";
pub(crate) const SIDECARS: Mode = "several sidecars";
pub(crate) const SIDECAR: Mode = "a sidecar";
pub(crate) const LIST: Mode = "a list of roots";
pub(crate) const NEW: Mode = "a new sidecar";
pub(crate) const UPDATE: Mode = "an update";
pub(crate) const KEYS: Mode = "a new key";
pub(crate) const LINK: Mode = "the link";
pub(crate) const TEXT: Mode = "text for the shell";
pub(crate) const GATES: Mode = "--gates";

/// A command, the modes it works on, and its options in groups, each with the modes it acts on.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) modes: &'static [Mode],
    pub(crate) options: &'static [(&'static [&'static str], &'static [Mode])],
}

const SEAL: [&str; 2] = ["recipient", "recipients-file"];
const NETWORK_OPTIONS: [&str; 4] = ["spool", "timeout", "retries", "limit"];

const ENCODED: &[Mode] = &[SHARDS, CONTAINER, PIPE, STORES, SEVERAL];
const STREAMS: &[Mode] = &[STREAM, NETWORK];

const ENCODE: Command = Command {
    name: "encode",
    modes: &[SHARDS, CONTAINER, PIPE, STREAM, NETWORK, STORES, SEVERAL],
    options: &[
        (
            &["json", "force", "passphrase", "cipher"],
            &[SHARDS, CONTAINER, PIPE, STREAM, NETWORK, STORES, SEVERAL],
        ),
        (&["output"], &[SHARDS, CONTAINER, PIPE, STREAM, NETWORK, SEVERAL]),
        (&["data", "recovery", "redundancy", "set-size", "hash"], ENCODED),
        (&SEAL, ENCODED),
        (&["group-size"], &[CONTAINER, PIPE, SEVERAL]),
        (&["payload-digest", "keep"], &[SHARDS, CONTAINER, SEVERAL]),
        (&["sign", "sign-passphrase-file"], &[SHARDS, CONTAINER, PIPE, SEVERAL]),
        (&["signature"], &[SHARDS, CONTAINER, PIPE]),
        (&["root-file", "print-root"], &[SHARDS, CONTAINER, PIPE, STORES]),
        (&["files-from", "null"], &[SEVERAL]),
        (
            &[
                "stream",
                "rate",
                "window",
                "block",
                "packet",
                "latency",
                "flush-ms",
                "profile",
                "mbps",
                "key-file",
                "impair",
                "stream-id",
            ],
            STREAMS,
        ),
        (&["interface", "ttl"], &[NETWORK]),
        (&["to", "segment-size", "uploads", "crowded"], &[STORES]),
        (&NETWORK_OPTIONS, &[STORES]),
    ],
};

const DECODE: Command = Command {
    name: "decode",
    modes: &[SHARDS, CONTAINER, PIPE, STREAM, NETWORK, STORES],
    options: &[
        (&["json", "output", "force", "passphrase"], &[SHARDS, CONTAINER, PIPE, STREAM, NETWORK, STORES]),
        (&["root", "range", "identity"], &[SHARDS, CONTAINER, PIPE, STORES]),
        (&["partial", "deep", "signer", "signature"], &[SHARDS, CONTAINER, PIPE]),
        (&["early"], &[PIPE]),
        (
            &[
                "stream",
                "key-file",
                "latency",
                "deadline-packets",
                "gap",
                "idle-ms",
                "wait-ms",
                "stats",
                "stream-id",
            ],
            STREAMS,
        ),
        (&["max-age", "follow", "interface"], &[NETWORK]),
        (&["from"], &[STORES]),
        (&NETWORK_OPTIONS, &[STORES]),
    ],
};

const VERIFY: Command = Command {
    name: "verify",
    modes: &[SHARDS, CONTAINER, PIPE, SIDECAR, SEVERAL, SIDECARS, LIST, STORES],
    options: &[
        (&["json", "deep"], &[SHARDS, CONTAINER, PIPE, SIDECAR, SEVERAL, SIDECARS, LIST, STORES]),
        (&["root"], &[SHARDS, CONTAINER, PIPE, SIDECAR, SIDECARS, STORES]),
        (&["signer", "signature"], &[SHARDS, CONTAINER, PIPE, SIDECAR, SEVERAL, SIDECARS, LIST]),
        (&["format"], &[SHARDS, CONTAINER, PIPE, SEVERAL, SIDECARS, LIST]),
        (&["need"], &[SHARDS, CONTAINER, PIPE, SEVERAL, LIST]),
        (&["identity", "passphrase"], &[SHARDS, CONTAINER, PIPE, SIDECAR, SEVERAL, SIDECARS, LIST]),
        (&["quick", "sidecar-only", "base", "sample"], &[SIDECAR, SIDECARS]),
        (&["state", "older-than", "budget"], &[SIDECAR]),
        (&["roots"], &[LIST]),
        (&["from"], &[STORES]),
        (&NETWORK_OPTIONS, &[STORES]),
    ],
};

const REPAIR: Command = Command {
    name: "repair",
    modes: &[SHARDS, CONTAINER, SIDECAR, STORES],
    options: &[
        (&["json", "root", "dry-run"], &[SHARDS, CONTAINER, SIDECAR, STORES]),
        (&["output", "signer", "signature"], &[SHARDS, CONTAINER, SIDECAR]),
        (&["force"], &[SHARDS, CONTAINER]),
        (&["base", "revert", "partial", "undo", "identity", "passphrase"], &[SIDECAR]),
        (&["from", "to", "now", "deep"], &[STORES]),
        (&NETWORK_OPTIONS, &[STORES]),
    ],
};

const PROTECT: Command = Command {
    name: "protect",
    modes: &[NEW, UPDATE],
    options: &[
        (
            &[
                "json",
                "output",
                "redundancy",
                "base",
                "exclude",
                "files-from",
                "one-file-system",
                "sha256",
                "force",
                "passphrase",
                "cipher",
                "sign",
                "sign-passphrase-file",
                "signature",
            ],
            &[NEW, UPDATE],
        ),
        (&SEAL, &[NEW, UPDATE]),
        (&["update", "root", "identity", "signer"], &[UPDATE]),
    ],
};

const MANIFEST: Command = Command {
    name: "manifest",
    modes: &[SIDECAR],
    options: &[(&["json", "sha256", "b3", "root", "identity", "passphrase"], &[SIDECAR])],
};

const KEYGEN: Command = Command {
    name: "keygen",
    modes: &[KEYS],
    options: &[(&["json", "stream", "pq", "sign", "sign-passphrase-file", "output"], &[KEYS])],
};

const BENCH: Command = Command {
    name: "bench",
    modes: &[
        "reference",
        "kernels",
        "batch",
        "sets",
        "files",
        "roof",
        "model",
        "tuning",
        "window",
        "stream",
        "seal",
        GATES,
        LINK,
    ],
    options: &[
        (
            &["format", "require-backend"],
            &[
                "reference",
                "kernels",
                "batch",
                "sets",
                "files",
                "roof",
                "model",
                "tuning",
                "window",
                "stream",
                "seal",
                GATES,
            ],
        ),
        (
            &["rounds", "budget", "quick", "save", "compare", "gate"],
            &[
                "reference",
                "kernels",
                "batch",
                "sets",
                "files",
                "roof",
                "model",
                "tuning",
                "window",
                "stream",
                "seal",
            ],
        ),
        (&["data", "recovery"], &["reference", "batch", "files", "model"]),
        (&["set-size"], &["reference", "files", "model"]),
        (&["hash"], &["reference"]),
        (&["model"], &["kernels", "sets", "model", "window"]),
        (&["profile"], &["model"]),
        (&["dir"], &["files", "roof"]),
        (&["loss"], &["stream"]),
        (&["gates"], &[GATES]),
        (
            &["json"],
            &[
                "reference",
                "kernels",
                "batch",
                "sets",
                "files",
                "roof",
                "model",
                "tuning",
                "window",
                "stream",
                "seal",
                GATES,
                LINK,
            ],
        ),
    ],
};

const COMPLETIONS: Command = Command { name: "completions", modes: &[TEXT], options: &[(&["json"], &[])] };
const MAN: Command = Command { name: "man", modes: &[TEXT], options: &[(&["json"], &[])] };

/// All commands.
pub(crate) const COMMANDS: [Command; 10] =
    [ENCODE, DECODE, VERIFY, REPAIR, PROTECT, MANIFEST, KEYGEN, BENCH, COMPLETIONS, MAN];
