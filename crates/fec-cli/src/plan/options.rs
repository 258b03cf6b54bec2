//! The options of each command, and the inputs that each option acts on: the one place that says which option goes with
//! what. The tests compare this table with the options of the command line, and with what the commands do.

/// The kind of thing that a command works on, as messages name it.
pub(crate) type Mode = &'static str;

pub(crate) const SHARDS: Mode = "shard files";
pub(crate) const CONTAINER: Mode = "a container";
pub(crate) const PIPE: Mode = "a container in a pipe";
pub(crate) const STREAM: Mode = "a live stream in a file or pipe";
pub(crate) const NETWORK: Mode = "a live stream over the network (udp://)";
pub(crate) const STORES: Mode = "stores";
pub(crate) const MIRRORS: Mode = "a sidecar and copies of its files";
pub(crate) const COPIES: Mode = "an encoding and copies of it";
pub(crate) const AUDIT: Mode = "an audit of stores";
pub(crate) const SEVERAL: Mode = "several at once";
pub(crate) const SIDECARS: Mode = "several sidecars";
pub(crate) const SIDECAR: Mode = "a sidecar";
pub(crate) const PART: Mode = "a part of a sidecar";
pub(crate) const LIST: Mode = "a list of roots";
pub(crate) const NEW: Mode = "a new sidecar";
pub(crate) const UPDATE: Mode = "an update";
pub(crate) const GENERATIONS: Mode = "a list of generations";
pub(crate) const ROOTS: Mode = "a file of roots";
pub(crate) const KEYS: Mode = "a new key";
pub(crate) const LINK: Mode = "the link";
pub(crate) const TEXT: Mode = "text for the shell";
pub(crate) const GATES: Mode = "a check of this build";

/// Options of a command.
type Names = &'static [&'static str];

/// A command and the modes it works on.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) modes: &'static [Mode],
    /// The options that choose modes.
    pub(crate) chosen: &'static [(&'static str, &'static [Mode])],
    /// The options in groups, each with the modes it acts on.
    pub(crate) options: &'static [(Names, &'static [Mode])],
    /// Advice for options in modes that they do not act on, where there is more to say than to leave them out.
    pub(crate) advice: &'static [(Names, &'static [Mode], &'static str)],
}

const SEAL: [&str; 2] = ["recipient", "recipients-file"];
const NETWORK_OPTIONS: [&str; 4] = ["spool", "timeout", "retries", "limit"];

const UNSIGNED: &str = "in stores nothing is signed: leave --signer out";
const SHARED: &str = "both ends of a live stream share a key: --key-file or --passphrase";
const ROOTLESS: &str = "a live stream has no root, and is written as far as it comes";

const ENCODED: &[Mode] = &[SHARDS, CONTAINER, PIPE, STORES, SEVERAL];
const STREAMS: &[Mode] = &[STREAM, NETWORK];

const ENCODE: Command = Command {
    name: "encode",
    modes: &[SHARDS, CONTAINER, PIPE, STREAM, NETWORK, STORES, SEVERAL],
    chosen: &[("stream", STREAMS), ("to", &[STORES]), ("files-from", &[SEVERAL])],
    options: &[
        (
            &["json", "force", "passphrase", "cipher"],
            &[SHARDS, CONTAINER, PIPE, STREAM, NETWORK, STORES, SEVERAL],
        ),
        (&["output"], &[SHARDS, CONTAINER, PIPE, STREAM, NETWORK, SEVERAL]),
        (&["data", "recovery", "redundancy", "set-size", "hash"], ENCODED),
        (&SEAL, ENCODED),
        (&["group-size"], &[CONTAINER, PIPE, SEVERAL]),
        (&["outlines"], &[SHARDS, SEVERAL]),
        (&["payload-digest", "keep"], &[SHARDS, CONTAINER, SEVERAL]),
        (&["sign", "sign-passphrase-file"], &[SHARDS, CONTAINER, PIPE, SEVERAL]),
        (&["signature"], &[SHARDS, CONTAINER, PIPE]),
        (&["root-file"], &[SHARDS, CONTAINER, PIPE, STORES]),
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
                "metrics",
                "stream-id",
            ],
            STREAMS,
        ),
        (&["interface", "ttl"], &[NETWORK]),
        (&["to", "segment-size", "uploads", "enough", "crowded"], &[STORES]),
        (&NETWORK_OPTIONS, &[STORES]),
    ],
    advice: &[
        (&["sign"], STREAMS, "a live stream has no root to sign: seal it with --key-file"),
        (
            &["sign"],
            &[STORES],
            "what goes to stores is not signed: keep its root, which fec decode --from needs anyway",
        ),
        (&SEAL, STREAMS, SHARED),
        (&["to"], &[SEVERAL], "with --to one file is sent at a time"),
        (&["root-file"], &[SEVERAL], "of several files a line is printed for each: send the list to a file"),
    ],
};

const DECODE: Command = Command {
    name: "decode",
    modes: &[SHARDS, CONTAINER, PIPE, STREAM, NETWORK, STORES],
    chosen: &[("stream", STREAMS), ("from", &[STORES])],
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
                "metrics",
                "stream-id",
            ],
            STREAMS,
        ),
        (&["max-age", "follow", "interface", "no-reports"], &[NETWORK]),
        (&["from"], &[STORES]),
        (&NETWORK_OPTIONS, &[STORES]),
    ],
    advice: &[
        (&["signer"], &[STORES], UNSIGNED),
        (&["signer", "root", "range", "partial", "early"], STREAMS, ROOTLESS),
        (&["identity"], STREAMS, SHARED),
        (&["follow"], &[STREAM], "of a file or pipe with several streams, --stream-id chooses one"),
        (
            &[
                "key-file",
                "latency",
                "deadline-packets",
                "gap",
                "idle-ms",
                "wait-ms",
                "no-reports",
                "stats",
                "metrics",
                "stream-id",
            ],
            &[SHARDS, CONTAINER, PIPE],
            "it is no stream; if it is one whose beginning is damaged, add --stream",
        ),
        (
            &["max-age", "follow", "interface"],
            &[SHARDS, CONTAINER, PIPE, STREAM],
            "it is for a stream that comes from a network: udp://ADDRESS:PORT",
        ),
    ],
};

const VERIFY: Command = Command {
    name: "verify",
    modes: &[SHARDS, CONTAINER, PIPE, SIDECAR, PART, SEVERAL, SIDECARS, LIST, STORES, AUDIT],
    chosen: &[("from", &[STORES, AUDIT]), ("audit", &[AUDIT]), ("roots", &[LIST])],
    options: &[
        (&["json"], &[SHARDS, CONTAINER, PIPE, SIDECAR, PART, SEVERAL, SIDECARS, LIST, STORES, AUDIT]),
        (&["deep"], &[SHARDS, CONTAINER, PIPE, SIDECAR, SEVERAL, SIDECARS, LIST, STORES]),
        (&["root"], &[SHARDS, CONTAINER, PIPE, SIDECAR, PART, SIDECARS, STORES, AUDIT]),
        (&["signer", "signature"], &[SHARDS, CONTAINER, PIPE, SIDECAR, PART, SEVERAL, SIDECARS, LIST]),
        (&["format"], &[SHARDS, CONTAINER, PIPE, SEVERAL, SIDECARS, LIST, STORES]),
        (&["need"], &[SHARDS, CONTAINER, PIPE, SEVERAL, LIST]),
        (&["identity", "passphrase"], &[SHARDS, CONTAINER, PIPE, SIDECAR, PART, SEVERAL, SIDECARS, LIST]),
        (&["base", "ignore"], &[SIDECAR, PART, SIDECARS]),
        (&["quick", "sidecar-only", "sample"], &[SIDECAR, SIDECARS]),
        (&["state", "older-than"], &[SIDECAR, AUDIT]),
        (&["budget"], &[SIDECAR]),
        (&["roots"], &[LIST]),
        (&["from"], &[STORES, AUDIT]),
        (&["audit", "confidence", "rot", "budget-bytes", "seed"], &[AUDIT]),
        (&["spool"], &[STORES]),
        (&STORE_LIMITS, &[STORES, AUDIT]),
    ],
    advice: &[
        (&["signer"], &[STORES, AUDIT], UNSIGNED),
        (
            &["confidence", "rot", "budget-bytes", "seed", "state", "older-than"],
            &[STORES],
            "it is for an audit: add --audit",
        ),
        (&["spool"], &[AUDIT], "an audit keeps nothing on disk"),
        (&["budget"], &[AUDIT], "of bytes: --budget-bytes 8M"),
        (
            &["quick", "sidecar-only", "base", "sample", "ignore", "state", "older-than", "budget"],
            &[SHARDS, CONTAINER, PIPE, SEVERAL],
            "shard files and containers are always checked whole",
        ),
    ],
};

const REPAIR: Command = Command {
    name: "repair",
    modes: &[SHARDS, CONTAINER, SIDECAR, MIRRORS, COPIES, SEVERAL, SIDECARS, STORES],
    chosen: &[("from", &[STORES, MIRRORS, COPIES])],
    options: &[
        (&["json"], &[SHARDS, CONTAINER, SIDECAR, MIRRORS, COPIES, SEVERAL, SIDECARS, STORES]),
        (&["dry-run"], &[SHARDS, CONTAINER, SIDECAR, MIRRORS, SEVERAL, SIDECARS, STORES]),
        (&["root"], &[SHARDS, CONTAINER, SIDECAR, MIRRORS, COPIES, STORES]),
        (&["signer"], &[SHARDS, CONTAINER, SIDECAR, MIRRORS, COPIES, SEVERAL, SIDECARS]),
        (&["signature"], &[SHARDS, CONTAINER, SIDECAR, MIRRORS, COPIES]),
        (&["output"], &[SHARDS, CONTAINER, SIDECAR, MIRRORS]),
        (&["force"], &[SHARDS, CONTAINER, SEVERAL]),
        (&["revert", "partial", "owner", "identity", "passphrase"], &[SIDECAR, MIRRORS, SIDECARS]),
        (&["base", "undo"], &[SIDECAR, MIRRORS]),
        (&["from"], &[STORES, MIRRORS, COPIES]),
        (&["to", "now", "deep"], &[STORES]),
        (&["spool"], &[STORES, MIRRORS]),
        (&STORE_LIMITS, &[STORES, MIRRORS, COPIES]),
    ],
    advice: &[
        (&["signer"], &[STORES], UNSIGNED),
        (
            &["base", "revert", "partial", "undo", "owner"],
            &[SHARDS, CONTAINER, COPIES, SEVERAL],
            "of shard files and containers only what is damaged or missing is written",
        ),
        (
            &["identity", "passphrase"],
            &[SHARDS, CONTAINER, COPIES, SEVERAL],
            "all but sealed sidecars is repaired without a key",
        ),
        (
            &["to", "now", "deep"],
            &[MIRRORS, COPIES],
            "it is for shards in stores: name their --root, and no PATH",
        ),
        (
            &["from"],
            &[SEVERAL, SIDECARS],
            "copies elsewhere serve one sidecar or one encoding: name it alone",
        ),
        (&["spool"], &[COPIES], "each file is fetched beside its place"),
        (
            &["output", "dry-run"],
            &[COPIES],
            "what is fetched takes its place: leave it out, and first see what is lost by fec verify",
        ),
        (
            &["force"],
            &[MIRRORS, COPIES],
            "nothing that somebody changed is written over; to undo edits of protected files, add --revert",
        ),
        (
            &["force"],
            &[SIDECAR, SIDECARS],
            "to make files what they were although somebody changed them, add --revert",
        ),
    ],
};

const PROTECT: Command = Command {
    name: "protect",
    modes: &[NEW, UPDATE, GENERATIONS],
    chosen: &[("update", &[UPDATE]), ("list", &[GENERATIONS])],
    options: &[
        (&["json", "output", "passphrase"], &[NEW, UPDATE, GENERATIONS]),
        (&["list"], &[GENERATIONS]),
        (
            &[
                "redundancy",
                "base",
                "exclude",
                "exclude-caches",
                "policy",
                "append",
                "follow",
                "files-from",
                "one-file-system",
                "sha256",
                "force",
                "cipher",
                "sign",
                "sign-passphrase-file",
                "signature",
            ],
            &[NEW, UPDATE],
        ),
        (&SEAL, &[NEW, UPDATE]),
        (&["portable"], &[NEW]),
        (&["identity"], &[UPDATE, GENERATIONS]),
        (&["update", "root", "signer", "forget-excludes", "pruned", "pruning", "retired"], &[UPDATE]),
    ],
    advice: &[(&["portable"], &[UPDATE], "an update does as the sidecar was made")],
};

const MANIFEST: Command = Command {
    name: "manifest",
    modes: &[SIDECAR],
    chosen: &[],
    options: &[(&["json", "sha256", "b3", "root", "identity", "passphrase"], &[SIDECAR])],
    advice: &[],
};

const STORE_LIMITS: [&str; 3] = ["timeout", "retries", "limit"];

const LISTING: Command = Command {
    name: "list",
    modes: &[STORES],
    chosen: &[],
    options: &[(&["json", "from"], &[STORES]), (&STORE_LIMITS, &[STORES])],
    advice: &[],
};

const FORGET: Command = Command {
    name: "forget",
    modes: &[STORES],
    chosen: &[],
    options: &[(&["json", "root", "from", "yes", "partial"], &[STORES]), (&STORE_LIMITS, &[STORES])],
    advice: &[],
};

const REKEY: Command = Command {
    name: "rekey",
    modes: &[STORES],
    chosen: &[],
    options: &[
        (&["json", "root", "from", "root-file", "force"], &[STORES]),
        (&["recipient", "recipients-file", "identity", "passphrase"], &[STORES]),
        (&STORE_LIMITS, &[STORES]),
    ],
    advice: &[],
};

const ATTEST: Command = Command {
    name: "attest",
    modes: &[ROOTS],
    chosen: &[],
    options: &[(&["json", "check"], &[ROOTS])],
    advice: &[],
};

const KEYGEN: Command = Command {
    name: "keygen",
    modes: &[KEYS],
    chosen: &[],
    options: &[(&["json", "stream", "pq", "sign", "sign-passphrase-file", "output"], &[KEYS])],
    advice: &[],
};

/// The modes of `bench`: presets, then the others.
const BENCH_MODES: &[Mode] = &[
    "reference",
    "kernels",
    "batch",
    "sets",
    "tree",
    "files",
    "roof",
    "model",
    "tuning",
    "window",
    "stream",
    "seal",
    "kem",
    GATES,
    LINK,
];
const BENCHES: &[Mode] = BENCH_MODES.split_at(BENCH_MODES.len() - 2).0;
const BENCHES_AND_GATES: &[Mode] = BENCH_MODES.split_at(BENCH_MODES.len() - 1).0;

const BENCH: Command = Command {
    name: "bench",
    modes: BENCH_MODES,
    chosen: &[("gates", &[GATES])],
    options: &[
        (&["json"], BENCH_MODES),
        (&["format"], BENCHES_AND_GATES),
        (&["require-backend", "rounds", "budget", "quick", "save", "compare", "gate"], BENCHES),
        (&["data", "recovery"], &["reference", "batch", "tree", "files", "model"]),
        (&["set-size"], &["reference", "files", "model"]),
        (&["hash"], &["reference"]),
        (&["model"], &["kernels", "sets", "model", "window"]),
        (&["profile"], &["model"]),
        (&["dir"], &["files", "roof"]),
        (&["loss"], &["stream"]),
        (&["gates"], &["reference", "seal", GATES]),
    ],
    advice: &[],
};

const COMPLETIONS: Command =
    Command { name: "completions", modes: &[TEXT], chosen: &[], options: &[(&["json"], &[])], advice: &[] };
const MAN: Command =
    Command { name: "man", modes: &[TEXT], chosen: &[], options: &[(&["json"], &[])], advice: &[] };

/// All commands.
pub(crate) const COMMANDS: [Command; 14] = [
    ENCODE,
    DECODE,
    VERIFY,
    REPAIR,
    PROTECT,
    MANIFEST,
    ATTEST,
    KEYGEN,
    BENCH,
    COMPLETIONS,
    MAN,
    LISTING,
    FORGET,
    REKEY,
];
