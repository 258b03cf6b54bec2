//! How the codec uses threads without having any: the caller lends them.

use crate::block::Plan;
use std::sync::Mutex;

/// Runs independent jobs, in any order, on the threads of whoever implements it.
pub trait Spread: Sync {
    /// How many jobs run at the same time.
    fn width(&self) -> usize;
    /// Calls `job(0)` … `job(count - 1)` and returns when all are done.
    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync));
}

/// Everything on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Spread for Inline {
    fn width(&self) -> usize {
        1
    }

    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(job);
    }
}

/// Below this many bytes a row is not worth splitting.
const SMALLEST_CHUNK: usize = 16 << 10;

/// Calls `job` once for each item, which it owns.
pub(crate) fn for_each<T: Send>(spread: &dyn Spread, items: Vec<T>, job: impl Fn(T) + Sync) {
    if spread.width() == 1 || items.len() == 1 {
        return items.into_iter().for_each(job);
    }
    let slots: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    spread.run(slots.len(), &|i| {
        let item = slots[i].lock().unwrap_or_else(|e| e.into_inner()).take();
        item.into_iter().for_each(&job);
    });
}

/// Sources and destinations of one range of columns.
type Columns<'a> = (Vec<&'a [u8]>, Vec<&'a mut [u8]>);

/// Runs a plan with the columns split over the threads.
pub(crate) fn run_plan(spread: &dyn Spread, plan: &Plan, src: &[&[u8]], dst: &mut [&mut [u8]]) {
    let len = src.first().map_or(0, |row| row.len());
    let chunk = len.div_ceil(spread.width()).next_multiple_of(64).max(SMALLEST_CHUNK);
    if dst.is_empty() {
        return;
    }
    if chunk >= len {
        return plan.run(src, dst);
    }
    let mut jobs: Vec<Columns> = Vec::new();
    for start in (0..len).step_by(chunk) {
        jobs.push((src.iter().map(|row| &row[start..len.min(start + chunk)]).collect(), Vec::new()));
    }
    for row in dst {
        jobs.iter_mut().zip(row.chunks_mut(chunk)).for_each(|(job, part)| job.1.push(part));
    }
    for_each(spread, jobs, |(src, mut dst)| plan.run(&src, &mut dst));
}
