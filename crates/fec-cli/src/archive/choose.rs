//! Which of several encodings is meant: the one asked for, or the only one that can be restored. Never
//! the one with the most shards.

use super::container::{Census, Stream};
use super::shards::Gathered;
use super::{Leftovers, show_root};
use crate::failure::{Exit, Failure, Result, hex};
use crate::restore::{Nowhere, Outcome, Restorer};
use fec_core::digest::Digest;

/// Nothing under the wanted root, or under any, was found.
pub(crate) fn nothing_found(wanted: Option<Digest>, others: &[Digest], leftovers: &Leftovers) -> Failure {
    if leftovers.is_live && others.is_empty() {
        return Failure::usage("the input is a live stream: it has no root, and nothing in it is proved")
            .help("fec decode restores it, without --root, --partial and --early");
    }
    let mut listed: String = others.iter().map(|root| format!("  found: root {}\n", hex(root))).collect();
    leftovers.describe(&mut listed);
    let listed = listed.trim_end();
    let exit = if others.is_empty() { leftovers.exit() } else { leftovers.exit().max(Exit::Untrue) };
    let (what, help) = match wanted {
        Some(root) => (
            format!("nothing that leads to root {} was found", hex(&root)),
            "is it the right root, and are these the right files?",
        ),
        None => (
            "no intact shard or record was found".to_owned(),
            "fec takes shard files, folders of them, or one container; to decode a live stream whose first packet is \
             damaged, add --stream",
        ),
    };
    let message = if listed.is_empty() { what } else { format!("{what}\n{listed}") };
    Failure::new(exit, message).help(help)
}

/// Two or more encodings could be restored and none was asked for.
pub(crate) fn ambiguous(roots: impl Iterator<Item = Option<Digest>>) -> Failure {
    let lines: Vec<String> = roots.map(|root| format!("\n  root {}", show_root(root))).collect();
    let message = format!("{} encodings are here, and none was asked for:{}", lines.len(), lines.concat());
    Failure::usage(message).help("choose one with --root")
}

/// Several encodings, of which none can be restored whole.
fn none_whole(roots: impl Iterator<Item = Option<Digest>>, leftovers: &Leftovers) -> Failure {
    let lines: Vec<String> = roots.map(|root| format!("\n  root {}", show_root(root))).collect();
    let message = format!("{} encodings are here, and none is whole:{}", lines.len(), lines.concat());
    Failure::new(leftovers.exit(), message).help("choose one with --root to see what is lost")
}

/// The root among shard files.
pub(crate) fn shards(gathered: &Gathered, wanted: Option<Digest>, restorer: &Restorer) -> Result<Digest> {
    let check = |root: &Digest| -> Result<Outcome> {
        let encoded = gathered.sets[root].encoded();
        encoded.check_memory(restorer.settings)?;
        restorer.run(encoded.records.as_ref(), &encoded.groups, &Nowhere)
    };
    let is_verified = |o: &Outcome| o.intact_records > 0;
    let roots: Vec<Digest> = gathered.sets.keys().copied().collect();
    if let Some(root) = wanted {
        if gathered.sets.contains_key(&root) {
            return Ok(root);
        }
        let mut others = Vec::new();
        for other in &roots {
            // One that is too large to check is named too.
            if check(other).as_ref().map_or_else(|e| e.exit == Exit::Refused, is_verified) {
                others.push(*other);
            }
        }
        return Err(nothing_found(Some(root), &others, &gathered.leftovers));
    }
    if let [root] = roots[..] {
        return Ok(root);
    }
    let mut restorable = Vec::new();
    let mut partly = Vec::new();
    let mut refused = None;
    for root in &roots {
        let outcome = match check(root) {
            // Sets beyond --max-memory must not keep others from being restored.
            Err(failure) if failure.exit == Exit::Refused => {
                refused = Some(failure);
                continue;
            }
            other => other?,
        };
        if outcome.is_whole() {
            restorable.push(*root);
        } else if is_verified(&outcome) {
            partly.push(*root);
        }
    }
    if let ([], Some(failure)) = (&restorable[..], refused) {
        return Err(failure);
    }
    match (&restorable[..], &partly[..]) {
        ([root], _) | ([], [root]) => Ok(*root),
        ([], []) => Err(nothing_found(None, &[], &gathered.leftovers)),
        ([], several) => Err(none_whole(several.iter().map(|root| Some(*root)), &gathered.leftovers)),
        (several, _) => Err(ambiguous(several.iter().map(|root| Some(*root)))),
    }
}

/// The stream in a container.
pub(crate) fn stream(census: &Census, streams: &[Stream], wanted: Option<Digest>) -> Result<Stream> {
    let with_records = || streams.iter().filter(|s| census.has_records(s));
    if let Some(root) = wanted {
        let found = streams.iter().find(|s| s.root == Some(root)).cloned();
        let others: Vec<Digest> = with_records().filter_map(|s| s.root).collect();
        return found.ok_or_else(|| nothing_found(Some(root), &others, &census.leftovers));
    }
    let left: Vec<Stream> = with_records().cloned().collect();
    let restorable: Vec<&Stream> = left.iter().filter(|s| census.is_restorable(s)).collect();
    match (&restorable[..], &left[..]) {
        ([stream], _) => Ok((*stream).clone()),
        ([], []) => Err(nothing_found(None, &[], &census.leftovers)),
        ([], [stream]) => Ok(stream.clone()),
        ([], several) => Err(none_whole(several.iter().map(|s| s.root), &census.leftovers)),
        (several, _) => Err(ambiguous(several.iter().map(|s| s.root))),
    }
}
