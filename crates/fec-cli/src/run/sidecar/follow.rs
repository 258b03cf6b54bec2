//! `fec protect --follow`: updates a sidecar whenever something was written, until it is interrupted.

use crate::say::failure::{Failure, Result, say};
use crate::settings::Settings;
use fec_base::context::Context;
use fec_base::names::{bytes, show, show_bytes};
use fec_base::program::interrupt;
use fec_sidecar::SidecarError;
use fec_sidecar::protect::{Protect, look};
use fec_sidecar::update::{Updated, update};
use fecfile::Class;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(300);
/// The time for which what cannot be read or written may stay so: a log that is rotated is away for a moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// Follows the files of a job, whose sidecar is up to date. The first signal leads to a last update. Returns what the
/// last one did, if there was any.
///
/// # Errors
/// Those of an update, but for what ends within ten seconds. Somebody else's work on the sidecar is waited for.
pub(crate) fn follow(job: &Protect<'_>, settings: &Settings) -> Result<Option<Updated>> {
    interrupt::defer();
    let mut following = Following { job, settings, seen: None, last: None, told: BTreeSet::new() };
    if !settings.quiet && !settings.json {
        say(&format!("{} is up to date, and follows what is written; a signal ends it", show(job.output)));
    }
    let mut failing: Option<Instant> = None;
    loop {
        let started = Instant::now();
        let is_last = interrupt::interrupted();
        match following.look() {
            Ok(()) if is_last => return Ok(following.last),
            Ok(()) => failing = None,
            Err(error) => {
                let is_over = failing.get_or_insert(started).elapsed() > PATIENCE;
                let may_pass = match error.cause() {
                    // A repair takes its time.
                    Some(SidecarError::Busy) => !is_last || !is_over,
                    _ => error.class() == Class::Io && !is_last && !is_over,
                };
                if !may_pass {
                    return Err(Failure::from(error));
                }
            }
        }
        // Large trees and slow disks get as much rest as work.
        let until = Instant::now() + PAUSE.max(started.elapsed());
        while Instant::now() < until && !interrupt::interrupted() {
            std::thread::sleep(PAUSE / 8);
        }
    }
}

/// Files that are followed.
struct Following<'a> {
    job: &'a Protect<'a>,
    settings: &'a Settings,
    /// The looks of the files at the last update.
    seen: Option<u64>,
    last: Option<Updated>,
    /// Paths that are not protected as they are, and were told.
    told: BTreeSet<Box<[u8]>>,
}

impl Following<'_> {
    /// Looks at the files, and updates the sidecar if one has changed.
    fn look(&mut self) -> fecfile::Result<()> {
        // An update that has begun is ended, whatever signals say.
        let (job, context) = (self.job, Context::new(self.settings.library));
        let seen = look(job)?;
        if self.seen == Some(seen) {
            return Ok(());
        }
        let updated = update(job, (None, None), &context)?;
        self.seen = Some(seen);
        self.tell(&updated);
        self.last = Some(updated);
        Ok(())
    }

    /// Tells what an update did, with -v, and which files are not protected as they are, once each.
    fn tell(&mut self, updated: &Updated) {
        if self.settings.verbose && updated.written {
            let len = updated.sidecar.sidecar_len;
            say(&format!("{} coded, {} in the sidecar", bytes(updated.coded_len), bytes(len)));
        }
        let held = updated.held.iter().map(|held| &held.path);
        let others = [&updated.sidecar.omitted, &updated.sidecar.kept];
        let left: BTreeSet<Box<[u8]>> =
            held.chain(others.into_iter().flatten().map(|omitted| &omitted.path)).cloned().collect();
        let new: Vec<_> = left.difference(&self.told).collect();
        if let Some(first) = new.first().filter(|_| !self.settings.json) {
            let more = if new.len() > 1 { format!(" and {} more", new.len() - 1) } else { String::new() };
            say(&format!("warning: not protected as it is now: {}{more}", show_bytes(first)));
        }
        self.told = left;
    }
}
