//! Payloads in memory stores that lie, stall, crawl, are dead, or give wrong lists. The tests check the result and the
//! number of calls and bytes. Counts are asserted, times are printed.

mod auditing;
mod bytes;
mod calls;
mod folders;
mod forged;
mod forgetting;
mod inventory;
mod leaves;
mod lists;
mod mending;
mod meta;
mod places;
mod rekeying;
mod sending;
mod store;

use fec_base::io::output::Destination;
use fec_core::block::Code;
use fec_core::digest::Digest;
use fec_stores::call::CallOptions;
use fec_stores::places::{Place, Places};
use fec_stores::send::{SendOptions, send};
use fec_stores::stored::{Stored, StoredRestored};
use fec_stores::target::Target;
use fecfile::Context;
use fecfile::error::{Class, Error};
use fecfile::payload::{Options, Source};
use std::sync::Arc;
use std::time::Duration;
use store::Memory;

/// A payload that was sent to places in memory.
pub(crate) struct Sent {
    pub(crate) stores: Vec<Arc<Memory>>,
    pub(crate) payload: Vec<u8>,
    pub(crate) root: Digest,
    pub(crate) segments: Vec<Digest>,
    /// Bytes of a shard file of the first segment.
    pub(crate) shard: u64,
}

/// Settings of sending a payload.
pub(crate) struct How {
    pub(crate) places: usize,
    pub(crate) code: (usize, usize),
    pub(crate) len: usize,
    pub(crate) segment: u64,
    pub(crate) set_size: Option<u64>,
}

impl Sent {
    pub(crate) fn new(seed: u64, how: &How) -> Sent {
        let stores: Vec<Arc<Memory>> = (0..how.places).map(|nth| Arc::new(Memory::new(nth, seed))).collect();
        Sent::to(&stores, seed, how)
    }

    /// Sends a payload to the first places of these.
    pub(crate) fn to(stores: &[Arc<Memory>], seed: u64, how: &How) -> Sent {
        let stores = stores[..how.places].to_vec();
        let payload = store::bytes_of(seed, how.len);
        let code = Code::new(how.code.0, how.code.1).expect("a code");
        let encode = Options { set_size: how.set_size, ..Options::new(code) };
        let options = SendOptions {
            encode,
            segment_len: how.segment,
            spool: None,
            uploads: 4,
            crowded: false,
            enough: false,
            permissions: 0o600,
        };
        let places = places(&stores, 0);
        let source = Source::Payload(&payload);
        let sent = send(source, b"payload", &places, &options, &Context::default()).expect("it is sent");
        let segments = sent.manifest.segments.iter().map(|segment| segment.root).collect();
        let shard = sent.manifest.segments[0].layout().file_len;
        stores.iter().for_each(|store| store.forget_calls());
        Sent { stores, payload, root: sent.root, segments, shard }
    }

    pub(crate) fn places(&self) -> Places {
        places(&self.stores, 2)
    }

    /// Restores the payload, and asserts that no wrong byte comes out.
    pub(crate) fn restore(&self) -> Result<StoredRestored, Error> {
        let places = self.places();
        let mut out = Vec::new();
        let restored = Stored::find(&places, self.root, None)
            .and_then(|stored| stored.restore(None, Destination::writer(&mut out), &Context::default()));
        match &restored {
            Ok(_) => assert!(out == self.payload, "other bytes"),
            Err(_) => assert!(self.payload.starts_with(&out), "other bytes"),
        }
        restored
    }

    /// Bytes of objects given by all places.
    pub(crate) fn given(&self) -> u64 {
        self.stores.iter().map(|store| store.given()).sum()
    }
}

pub(crate) fn places(stores: &[Arc<Memory>], retries: u32) -> Places {
    let place = |store: &Arc<Memory>| {
        let target = Target::parse(&format!("s3://bucket/{}", store.nth)).expect("a target");
        Place::new(target, store.clone())
    };
    let options = CallOptions { timeout: Duration::from_secs(30), retries, rate: None };
    Places::new(stores.iter().map(place).collect(), options)
}

/// Class and text of an error.
pub(crate) fn class(error: &Error) -> (Class, String) {
    (error.class(), error.to_string())
}
