//! The sender's side: payloads in, packets out.
//!
//! All profiles share [`Sender`]. Each profile has a type of its own behind [`RepairRows`] that decides which packets a
//! row covers, from which sums it is made, and when it is due.
//!
//! | profiles | type | a row covers |
//! |---|---|---|
//! | bounded, classic | `SlidingRows` | the newest packets, up to a window of them |
//! | classic-blocks | `BlockRows` | the last complete block |
//! | blocks | `SetRows` | a set of the last complete window |
//!
//! The profile is matched twice: when an encoder is made, and once for each call ([`ProfileRows::get`]).

mod blocks;
mod longest;
mod owed;
mod repair_rows;
mod row_adder;
mod sender;
mod sets;
mod sliding;
#[cfg(feature = "trace")]
mod trace;

use super::operation::Perform;
use super::settings::{Ratio, SettingsError, StreamSettings};
use crate::format::packet::{self, Parameters, Profile};
use crate::gf256::kernel::Backend;
use blocks::BlockRows;
use repair_rows::RepairRows;
use sender::Sender;
use sets::SetRows;
use sliding::SlidingRows;

pub use sender::PushError;
#[cfg(feature = "trace")]
pub use trace::{Stage, Trace};

/// Marks that end a stream: more than one, because packets get lost.
const END_MARKS: usize = 3;

/// Makes the packets of one stream.
///
/// # Guarantees
///
/// - A source packet is emitted before [`push`](Self::push) returns, and it is not changed by the code.
/// - With [`Profile::Bounded`] the work of a packet does not depend on the window.
/// - Memory holds the window's symbols, 48 sums for each block in it (24 with [`Profile::Classic`]), and a mebibyte;
///   symbols and sums take up to 192 bytes more than their own. It is allocated once. [`Profile::Blocks`] keeps two
///   windows and the repair symbols of one, [`Profile::ClassicBlocks`] two blocks.
#[derive(Debug)]
pub struct Encoder {
    sender: Sender,
    rows: ProfileRows,
    /// Source packets that no repair packet covers. Where windows do not slide, source packets since the last flush.
    uncovered: u64,
}

/// The rows of the stream's profile.
#[derive(Debug)]
enum ProfileRows {
    Sliding(Box<SlidingRows>),
    Blocks(Box<BlockRows>),
    Sets(Box<SetRows>),
}

impl ProfileRows {
    /// The rows, with their steps performed by a `P`.
    fn get<P: Perform>(&mut self) -> &mut dyn RepairRows<P> {
        match self {
            ProfileRows::Sliding(rows) => &mut **rows,
            ProfileRows::Blocks(rows) => &mut **rows,
            ProfileRows::Sets(rows) => &mut **rows,
        }
    }
}

impl Encoder {
    /// An encoder for these settings.
    ///
    /// # Errors
    ///
    /// Those of [`StreamSettings::parameters`].
    pub fn new(settings: &StreamSettings, backend: Backend) -> Result<Encoder, SettingsError> {
        let parameters = settings.parameters()?;
        let Parameters { window, block, .. } = parameters;
        let (rows, places) = match parameters.profile {
            Profile::Bounded | Profile::Classic => {
                (ProfileRows::Sliding(Box::new(SlidingRows::new(&parameters))), window)
            }
            Profile::ClassicBlocks => {
                (ProfileRows::Blocks(Box::new(BlockRows::new(&parameters))), 2 * u32::from(block))
            }
            Profile::Blocks => {
                let rows = SetRows::new(backend, &parameters, settings.ratio);
                (ProfileRows::Sets(Box::new(rows)), 2 * window)
            }
        };
        let sender = Sender::new(parameters, settings.ratio, backend, places.into());
        Ok(Encoder { sender, rows, uncovered: 0 })
    }

    /// The parameters that the packets carry.
    pub fn parameters(&self) -> &Parameters {
        &self.sender.parameters
    }

    /// Number of source packets so far.
    pub fn sent(&self) -> u64 {
        self.sender.sent
    }

    /// Number of repair packets so far.
    pub fn repaired(&self) -> u64 {
        self.sender.rows
    }

    /// Number of packets, and sums of packets, that were added up for repair packets so far: the cost of repair
    /// packets, in packet additions. [`Profile::Blocks`], whose repair packets are made a set at a time, does not count
    /// them.
    pub fn added(&self) -> u64 {
        self.sender.added
    }

    /// Takes the next payload; emits its source packet, then the repair packets that are due.
    ///
    /// # Errors
    ///
    /// [`PushError::TooLong`] when the payload is longer than the settings allow, [`PushError::Full`] after 2^63
    /// packets. Nothing is emitted then.
    pub fn push(&mut self, payload: &[u8], emit: &mut dyn FnMut(&[u8])) -> Result<(), PushError> {
        let mut backend = self.sender.backend;
        self.push_on(&mut backend, payload, emit)
    }

    fn push_on<P: Perform>(
        &mut self,
        on: &mut P,
        payload: &[u8],
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), PushError> {
        let Encoder { sender, rows, uncovered } = self;
        // The other profiles cover packets when their block is complete.
        let slides = matches!(rows, ProfileRows::Sliding(_));
        let rows = rows.get();
        sender.admit(payload)?;
        sender.emit_source(payload, emit);
        *uncovered += 1;
        rows.absorb(sender, on, emit);
        while sender.owed.is_due(rows.longest()) {
            sender.owed.spend(rows.longest());
            if rows.emit_row(sender, on, emit) && slides {
                *uncovered = 0;
            }
        }
        rows.look_ahead(sender, on);
        Ok(())
    }

    /// Emits a repair packet before the ratio owes it, so that a slow stream need not wait for the next payloads to
    /// protect the last ones. Nothing is emitted if all packets are protected. The ratio takes the packet into account:
    /// the next ones come later. The caller chooses how often to flush: see [`ahead`](Self::ahead).
    ///
    /// [`Profile::ClassicBlocks`] and [`Profile::Blocks`] emit as many repair packets as the ratio gives for the
    /// packets since the last flush (one block of them at most), rounded up, and those that the last complete block or
    /// window still lacks. [`Profile::Blocks`] sends the repair packets of a complete window in any case.
    pub fn flush(&mut self, emit: &mut dyn FnMut(&[u8])) {
        let Encoder { sender, rows, uncovered } = self;
        let sources = std::mem::take(uncovered).min(u64::from(sender.parameters.block));
        if sources > 0 {
            let mut backend = sender.backend;
            rows.get().emit_early(sources, sender, &mut backend, emit);
        }
    }

    /// Tells whether [`flush`](Self::flush) would emit something.
    pub fn is_uncovered(&self) -> bool {
        self.uncovered > 0
    }

    /// Number of repair packets that [`flush`](Self::flush) has emitted and the ratio does not owe yet. A caller that
    /// flushes the more rarely the larger this is stays near the ratio whatever the input, and still protects the last
    /// packet before a long pause.
    pub fn ahead(&self) -> f64 {
        let longest = match &self.rows {
            ProfileRows::Sliding(rows) => RepairRows::<Backend>::longest(&**rows),
            ProfileRows::Blocks(_) | ProfileRows::Sets(_) => 0,
        };
        self.sender.owed.ahead(longest)
    }

    /// Tells whether windows slide.
    pub fn slides(&self) -> bool {
        matches!(self.rows, ProfileRows::Sliding(_))
    }

    /// Goes on with another ratio: source packets earn repair packets by it from now on. Returns whether it does: only
    /// where windows slide can the ratio change.
    pub fn set_ratio(&mut self, ratio: Ratio) -> bool {
        if self.slides() {
            self.sender.ratio = ratio;
            self.sender.owed.set_ratio(ratio);
        }
        self.slides()
    }

    /// Emits `count` repair packets over the window that the ratio does not owe, and does not take into account: for a
    /// receiver that lacks them. Nothing is emitted where windows do not slide, or before the first packet.
    pub fn emit_extra(&mut self, count: u64, emit: &mut dyn FnMut(&[u8])) {
        let Encoder { sender, rows: ProfileRows::Sliding(rows), uncovered } = self else { return };
        let mut backend = sender.backend;
        for _ in 0..count {
            if rows.emit_row(sender, &mut backend, emit) {
                *uncovered = 0;
            }
        }
    }

    /// The first packet that the next repair packet covers; 0 where windows do not slide.
    pub fn covers_from(&self) -> u64 {
        match &self.rows {
            ProfileRows::Sliding(rows) => rows.start(),
            ProfileRows::Blocks(_) | ProfileRows::Sets(_) => 0,
        }
    }

    /// Ends the stream: emits repair packets for the packets that fewer rows cover than the others, and the marks of
    /// the end.
    ///
    /// A sliding window emits as many as the ratio gives for a twelfth of the stream, at most for a quarter of the
    /// window (or one block), and at least for 24 packets. Other profiles emit all that the last blocks still lack.
    pub fn finish(&mut self, emit: &mut dyn FnMut(&[u8])) {
        let Encoder { sender, rows, .. } = self;
        let mut backend = sender.backend;
        rows.get().finish(sender, &mut backend, emit);
        for _ in 0..END_MARKS {
            emit(&packet::mark(&sender.parameters, sender.sent, true));
        }
    }

    /// Emits a mark with the number of packets sent, for when there is nothing else to send: the receiver learns that
    /// the last packets are missing.
    pub fn keep_alive(&self, emit: &mut dyn FnMut(&[u8])) {
        emit(&packet::mark(&self.sender.parameters, self.sender.sent, false));
    }

    /// Notes that the receiver needs nothing before packet `oldest_needed`, so that rows cover no more than they must.
    /// Packets that no row has covered stay until one has. The call is optional, and ignored where windows do not slide
    /// or the number is no news.
    pub fn acknowledge(&mut self, oldest_needed: u64) {
        // Uncovered packets stay until a row covers them.
        let covered = self.sender.sent - self.uncovered.min(self.sender.sent);
        self.rows.get::<Backend>().acknowledge(oldest_needed.min(covered));
    }
}

#[cfg(all(test, feature = "trace"))]
impl Encoder {
    /// All memory that holds bytes of packets, by address.
    fn memory(&self) -> Vec<&[u8]> {
        let mut parts = match &self.rows {
            ProfileRows::Sliding(rows) => rows.memory(),
            ProfileRows::Blocks(rows) => rows.memory(),
            ProfileRows::Sets(rows) => rows.memory(),
        };
        parts.push(self.sender.store.memory());
        // Blocks change places in memory.
        parts.sort_by_key(|part| part.as_ptr());
        parts
    }
}
