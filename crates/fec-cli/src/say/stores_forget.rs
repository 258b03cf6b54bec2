//! The words of `forget`: what it is about to remove, and what it removed.

use super::stores::{Lacking, list};
use crate::say::failure::plain;
use fec_base::names::{bytes, counted, hex};
use fec_stores::forget::{Forget, Forgotten, Share, Shared};
use fec_stores::places::Places;
use fec_stores::send::causes;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// A segment that another encoding needs.
#[derive(Debug, Serialize)]
struct Needed {
    segment: String,
    needed_by: String,
    objects: u64,
}

/// Objects and their bytes.
#[derive(Debug, Serialize)]
struct Amount {
    objects: u64,
    bytes: u64,
}

impl From<Share> for Amount {
    fn from(Share { objects, bytes }: Share) -> Amount {
        Amount { objects, bytes }
    }
}

/// The outcome of `forget`.
#[derive(Debug, Serialize)]
pub(crate) struct ForgetReport {
    root: String,
    /// Objects that were there of it, by place.
    held: BTreeMap<String, Amount>,
    removed: Amount,
    /// Removed objects whose bytes places keep as older versions.
    hidden: BTreeMap<String, u64>,
    /// Segments that stay, because other encodings have them too.
    needed: Vec<Needed>,
    /// Objects that are still there.
    stays: Vec<Lacking>,
    trouble: Vec<String>,
    seconds: f64,
    #[serde(skip)]
    causes: Vec<String>,
}

/// The objects that go, before the question whether they may.
pub(crate) fn intends(plan: &Forget<'_>, places: &Places) -> String {
    let shares = plan.shares();
    let all = shares.values().fold(Share::default(), |all, share| Share {
        objects: all.objects + share.objects,
        bytes: all.bytes.saturating_add(share.bytes),
    });
    let mut out = format!(
        "root {}\nto be removed: {}, {}\n",
        hex(&plan.root()),
        counted(all.objects, "object"),
        bytes(all.bytes)
    );
    let line = |(place, share): (&usize, &Share)| {
        let (objects, bytes) = (counted(share.objects, "object"), bytes(share.bytes));
        format!("  {}: {objects}, {bytes}\n", plain(&places.get(*place).target.name()))
    };
    list(shares.iter().map(line), &mut out);
    describe_needed(plan.shared(), &mut out);
    out.truncate(out.trim_end().len());
    out
}

/// The segments that stay.
fn describe_needed(shared: &[Shared], out: &mut String) {
    if shared.is_empty() {
        return;
    }
    let (stay, them) = if shared.len() == 1 { ("stays", "it") } else { ("stay", "them") };
    let segments = counted(shared.len(), "segment");
    let _ = writeln!(out, "{segments} {stay}, because other encodings need {them}:");
    let line = |Shared { needed_by, objects, .. }: &Shared| {
        format!("  {} that {} needs\n", counted(*objects, "object"), hex(needed_by))
    };
    list(shared.iter().map(line), out);
}

impl ForgetReport {
    pub(crate) fn new(
        plan: &Forget<'_>,
        done: &Forgotten,
        places: &Places,
        started: Instant,
    ) -> ForgetReport {
        let name = |place: &usize| plain(&places.get(*place).target.name());
        let needed = |Shared { segment, needed_by, objects }: &Shared| Needed {
            segment: hex(segment),
            needed_by: hex(needed_by),
            objects: *objects,
        };
        ForgetReport {
            root: hex(&plan.root()),
            held: plan.shares().into_iter().map(|(place, share)| (name(&place), share.into())).collect(),
            removed: done.removed.into(),
            hidden: done.hidden.iter().map(|(place, count)| (name(place), *count)).collect(),
            needed: plan.shared().iter().map(needed).collect(),
            stays: done.stays.iter().map(|missing| Lacking::new(missing, places)).collect(),
            trouble: done.unasked.iter().map(|(place, why)| format!("{}: {why}", name(place))).collect(),
            seconds: started.elapsed().as_secs_f64(),
            causes: causes(done.stays.iter(), places),
        }
    }

    /// The reasons why something is left, in few lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let stays = self.causes.iter().map(|line| format!("still there: {line}"));
        let hidden = self
            .hidden
            .iter()
            .map(|(place, count)| format!("{place}: {} kept as older versions", counted(*count, "object")));
        let trouble = self.trouble.iter().map(|line| format!("not asked: {line}"));
        stays.chain(hidden).chain(trouble).collect()
    }

    pub(crate) fn describe(&self) -> String {
        let mut out = match self.removed.objects {
            0 if self.held.is_empty() => "nothing of this root is there\n".to_owned(),
            removed => format!("{} removed, {}\n", counted(removed, "object"), bytes(self.removed.bytes)),
        };
        if !self.stays.is_empty() {
            let _ = writeln!(out, "{} still there:", counted(self.stays.len(), "object"));
            list(self.causes.iter().map(|line| format!("  {line}\n")), &mut out);
            out.push_str("run the same command again: it removes what is left\n");
        }
        if !self.hidden.is_empty() {
            out.push_str("places that keep older versions still have the bytes, behind a mark:\n");
            let line =
                |(place, count): (&String, &u64)| format!("  {place}: {}\n", counted(*count, "object"));
            list(self.hidden.iter().map(line), &mut out);
            out.push_str(
                "a rule of the bucket, or its owner, removes them; what is locked, once the lock ends\n",
            );
        }
        if !self.trouble.is_empty() {
            out.push_str("not asked, so it is not known what is there:\n");
            list(self.trouble.iter().map(|line| format!("  {line}\n")), &mut out);
        }
        let _ = write!(out, "{:.2} s", self.seconds);
        out
    }
}
