//! The threads of a fetch.

use super::running::Told;
use crate::arrived;
use crate::call::Cancel;
use crate::find::{locate, locate_by_key};
use crate::lists::Lists;
use crate::places::Places;
use crate::transfer::{Active, Source, transfer};
use fec_base::threads::spawn_or_do;
use fec_core::format::shard_file::Encoding;
use std::sync::mpsc::Sender;
use std::thread::Scope;

/// The shards that places are asked for.
#[derive(Clone, Copy)]
pub(super) struct Sought<'a> {
    pub(super) places: &'a Places,
    pub(super) encoding: &'a Encoding,
    pub(super) lists: Option<&'a Lists>,
}

/// Starts the threads that do the work.
pub(super) struct Crew<'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) telling: Sender<Told>,
    pub(super) all: Cancel,
}

impl<'scope> Crew<'scope, '_> {
    /// Asks a place for its list.
    pub(super) fn locate<'a: 'scope>(&self, sought: Sought<'a>, place: usize) {
        let (telling, all) = (self.telling.clone(), self.all.clone());
        spawn_or_do(self.scope, move || {
            let Sought { places, encoding, lists } = sought;
            let n = encoding.geometry.shape().code.n() as u32;
            // A failed send means that the receiver is gone.
            let _ = telling.send(Told::Located(locate(places, place, (&encoding.root, n), lists, &all)));
        });
    }

    /// Asks a place for shards by their keys.
    pub(super) fn locate_by_key<'a: 'scope>(&self, sought: Sought<'a>, place: usize, indices: Vec<u32>) {
        let (telling, all) = (self.telling.clone(), self.all.clone());
        spawn_or_do(self.scope, move || {
            let located = locate_by_key(sought.places, place, &sought.encoding.root, &indices, &all);
            let _ = telling.send(Told::Located(located));
        });
    }

    /// Fetches an object of which `bytes` are here.
    pub(super) fn fetch<'a: 'scope>(&self, source: Source<'a>, bytes: u64) -> Active {
        let active = Active::new(self.all.child(), bytes);
        let (telling, under_way) = (self.telling.clone(), active.clone());
        spawn_or_do(self.scope, move || {
            let Source { encoding, key, .. } = source;
            let mut came = transfer(&source, &under_way);
            // A liar is found while other places still give.
            let place = source.places.get(key.1);
            if came.done.is_ok() && !place.has_proved() {
                match arrived::holds_shard(&source.path, key.0, &encoding.root, &under_way.cancel) {
                    Some(true) => place.note_proved(),
                    Some(false) => came.is_damaged = true,
                    None => {}
                }
            }
            let _ = telling.send(Told::Came(key, came));
        });
        active
    }
}
