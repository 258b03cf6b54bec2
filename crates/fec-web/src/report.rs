//! The answer: an object in JSON. `"ok"` tells whether all that was asked for was done.
//!
//! | member | holds |
//! |---|---|
//! | `encoding` | the encoding that was found: form, root, name, k, m, hash, length, seal, signatures, others |
//! | `verified` | of `"verify"`: the state of each shard, its damage, and whether the payload can be restored |
//! | `restored` | of `"restore"`: the output with the payload, its length, its name, and the number of mended sets |
//! | `opened` | of `"open"`: length and name of the payload, as it comes out |
//! | `part` | of `"part"`: where it starts, and its length |
//! | `encoded` | of `"encode"`: the root, and the names of the outputs in their order |
//! | `error` | `message`, `class` (`missing`, `replaced`, `refused`, `system`, `usage`), `roots` to choose from, and
//! `is_locked` if a key or passphrase is lacking or does not fit |

use fec_base::Class;
use fec_base::names::hex;
use fec_base::ranges::ByteRange;
use fec_core::digest::{Digest, HashKind};
use fecfile::report::{Damage, Restored, ShardReport, ShardState, Verified};
use fecfile::seal::SealError;
use fecfile::{Archive, EncodingError, Error};
use serde_json::{Value, json};

/// The most ranges of damaged bytes that are listed for a file.
const MOST_RANGES: usize = 8;
/// The most lines of a list.
const MOST_LINES: usize = 50;

/// The answer to a request that was not understood.
pub(crate) fn refused(why: &str) -> Value {
    json!({"ok": false, "error": {"message": why, "class": "usage", "roots": [], "is_locked": false}})
}

/// The answer when an operation failed.
pub(crate) fn failed(error: &Error) -> Value {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let words = cause.to_string();
        // Most errors say their cause themselves.
        if !message.contains(&words) {
            message = format!("{message}: {words}");
        }
        source = cause.source();
    }
    let roots: Vec<String> = match error.cause() {
        Some(EncodingError::Ambiguous(roots)) => roots.iter().flatten().map(|root| hex(root)).collect(),
        _ => Vec::new(),
    };
    let is_locked = matches!(error.cause(), Some(SealError::NoKey | SealError::Age(_)));
    let class = class(error.class());
    json!({"ok": false, "error": {"message": message, "class": class, "roots": roots, "is_locked": is_locked}})
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Mendable => "damaged",
        Class::Lost => "missing",
        Class::Untrue => "replaced",
        Class::Refused => "refused",
        Class::Io => "system",
        Class::Usage => "usage",
        Class::Cancelled => "cancelled",
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The encoding that was found.
pub(crate) fn encoding(archive: &Archive) -> Value {
    let encoded = archive.encoded();
    let shape = encoded.shape();
    let others: Vec<String> = archive.others().iter().map(|root| hex(root)).collect();
    json!({
        "form": archive.form().name(),
        "root": archive.root().map(|root| hex(&root)),
        "name": archive.name().map(|name| text(&name)),
        "k": shape.code.k(),
        "m": shape.code.m(),
        "hash": match shape.hash { HashKind::Blake3 => "BLAKE3", HashKind::Sha256 => "SHA-256" },
        "payload_len": encoded.payload_len,
        "is_sealed": shape.is_sealed(),
        "is_one_shard": archive.is_one_shard(),
        "given": archive.given(),
        "signatures": archive.signatures().iter().count(),
        "signed_by": archive.signed().map(|signed| signed.key.to_string()),
        "trusted_comment": archive.signed().map(|signed| signed.trusted_comment.clone()),
        "others": others,
    })
}

/// The result of checking every byte.
pub(crate) fn verified(verified: &Verified) -> Value {
    let count = |state| verified.found.shards.iter().filter(|shard| shard.state == state).count();
    let mut leftovers = String::new();
    verified.leftovers.describe_all(&mut leftovers);
    let leftovers: Vec<&str> = leftovers.lines().filter(|line| !line.is_empty()).take(MOST_LINES).collect();
    let damage: Vec<&String> = verified.found.damage.iter().take(MOST_LINES).collect();
    json!({
        "intact": count(ShardState::Intact),
        "damaged": count(ShardState::Damaged),
        "missing": count(ShardState::Missing),
        "weakest": verified.found.weakest,
        "is_intact": verified.is_intact(),
        "is_given_intact": verified.is_given_intact(),
        "is_restorable": verified.is_restorable,
        "may_still_lose": verified.may_still_lose(),
        "is_seal_lost": verified.is_seal_lost(),
        "shards": verified.found.shards.iter().map(shard).collect::<Vec<_>>(),
        "damage": damage,
        "leftovers": leftovers,
    })
}

fn shard(shard: &ShardReport) -> Value {
    let state = match shard.state {
        ShardState::Intact => "intact",
        ShardState::Damaged => "damaged",
        ShardState::Missing => "missing",
    };
    let damage: Vec<Value> = shard.damage.iter().take(MOST_LINES).map(damage).collect();
    json!({
        "index": shard.index,
        "state": state,
        "files": shard.files.iter().take(MOST_LINES).collect::<Vec<_>>(),
        "intact_sets": shard.intact_sets,
        "sets": shard.sets,
        "damage": damage,
    })
}

fn damage(damage: &Damage) -> Value {
    json!({"file": damage.file, "what": damage.what, "bytes": ranges(&damage.bytes)})
}

/// Ranges of bytes, the first and the last byte of each.
fn ranges(ranges: &[ByteRange]) -> String {
    let shown = ranges.iter().take(MOST_RANGES).map(|range| match range.end - range.start {
        1 => range.start.to_string(),
        _ => format!("{}-{}", range.start, range.end.saturating_sub(1)),
    });
    let mut shown: Vec<String> = shown.collect();
    if ranges.len() > MOST_RANGES {
        shown.push(format!("{} more", ranges.len() - MOST_RANGES));
    }
    shown.join(", ")
}

/// The encoding that is open now, and the name and length of what comes out of it.
pub(crate) fn opened(encoding: Value, name: Option<Vec<u8>>, len: u64) -> Value {
    let name = name.map(|name| text(&name));
    json!({"ok": true, "encoding": encoding, "opened": {"name": name, "len": len}})
}

/// The result of restoring `len` bytes to an output.
pub(crate) fn restored(restored: &Restored, name: Option<Vec<u8>>, (output, len): (u32, u64)) -> Value {
    json!({
        "root": restored.root.map(|root| hex(&root)),
        "name": name.map(|name| text(&name)),
        "output": output,
        "len": len,
        "sets": restored.sets,
        "mended_sets": restored.outcome.mended_sets,
    })
}

/// The result of encoding.
pub(crate) fn encoded(root: &Digest, names: &[String]) -> Value {
    json!({"root": hex(root), "names": names})
}
