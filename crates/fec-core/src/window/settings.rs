//! The choices of a sender, checked.

use crate::format::packet::{MAX_WINDOW, MIN_PAYLOAD, Parameters, Profile};
use thiserror::Error;

/// Most bytes that a window of symbols may take, unless the caller says otherwise.
pub const WINDOW_LIMIT: u64 = 64 << 20;

/// Number of repair packets for a number of source packets.
///
/// Guaranteed: both numbers are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    repair: u16,
    source: u16,
}

impl Ratio {
    /// `repair` packets for each `source` packets; `None` when one of them is 0.
    pub fn new(repair: u16, source: u16) -> Option<Ratio> {
        (repair > 0 && source > 0).then_some(Ratio { repair, source })
    }

    /// Repair packets.
    pub fn repair(self) -> u16 {
        self.repair
    }

    /// Source packets.
    pub fn source(self) -> u16 {
        self.source
    }

    /// Repair packets for `sources` source packets, rounded up.
    pub(super) fn of(self, sources: u64) -> u64 {
        (u128::from(sources) * u128::from(self.repair)).div_ceil(u128::from(self.source)) as u64
    }
}

/// A sender's wishes for a stream. The numbers are checked when its [`parameters`](Self::parameters) are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// The number that tells the stream from others. A new stream takes a new one, at random.
    pub stream_id: u64,
    /// Most source packets that one repair packet covers, up to 65,536.
    pub window: u32,
    /// The step of the window's start, or packets of an independent block or set. It is adjusted to a fitting value:
    /// see [`StreamSettings::parameters`].
    pub block: u16,
    /// Most bytes of a payload, 16 to 65,535.
    pub payload: u16,
    /// The way repair packets are made.
    pub profile: Profile,
    /// Number of repair packets.
    pub ratio: Ratio,
    /// Most bytes that the symbols of a window may take together: [`WINDOW_LIMIT`] if in doubt.
    pub limit: u64,
}

impl StreamSettings {
    /// The parameters that the packets will carry.
    ///
    /// The block is cut to the most that the profile allows: a quarter of a sliding window, the window with
    /// [`Profile::ClassicBlocks`], and with [`Profile::Blocks`] the most packets that fit 256 together with their
    /// repair packets.
    ///
    /// # Errors
    /// [`SettingsError`], each with the number that is out of range.
    pub fn parameters(&self) -> Result<Parameters, SettingsError> {
        if self.window == 0 || self.window > MAX_WINDOW {
            return Err(SettingsError::Window(self.window));
        }
        if self.payload < MIN_PAYLOAD {
            return Err(SettingsError::Payload(self.payload));
        }
        if self.block == 0 {
            return Err(SettingsError::Block(self.block));
        }
        let block = match self.profile {
            Profile::Bounded | Profile::Classic => {
                let quarter = self.window.div_ceil(4);
                u32::from(self.block).max(quarter.min(48)).min(quarter)
            }
            Profile::ClassicBlocks => u32::from(self.block).min(self.window),
            Profile::Blocks => {
                let fits = |k: &u32| u64::from(*k) + self.ratio.of(u64::from(*k)) <= 256;
                let most = u32::from(self.block).min(255).min(self.window);
                (1..=most).rev().find(fits).ok_or(SettingsError::Ratio(self.ratio))?
            }
        };
        let parameters = Parameters {
            profile: self.profile,
            stream_id: self.stream_id,
            window: self.window,
            payload: self.payload,
            block: block as u16,
        };
        let bytes = u64::from(self.window) * parameters.symbol_len() as u64;
        if bytes > self.limit {
            return Err(SettingsError::Memory { bytes, limit: self.limit });
        }
        Ok(parameters)
    }
}

/// The reason why a stream cannot have these settings. All are of the class *refused*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The window is 0 or more than 65,536 packets.
    #[error("a window of {0} packets: it may have 1 to 65,536")]
    Window(u32),
    /// The largest payload is less than 16 bytes.
    #[error("packets of {0} bytes: they may have 16 to 65,535")]
    Payload(u16),
    /// The block is 0.
    #[error("a block of {0} packets: it needs 1 or more")]
    Block(u16),
    /// A single packet and its repair packets are more than a set of 256.
    #[error("{} repair packets for {} are more than Reed-Solomon sets of 256 allow", .0.repair, .0.source)]
    Ratio(Ratio),
    /// The window's symbols take more bytes than allowed.
    #[error("the window takes {bytes} bytes, beyond the limit of {limit}")]
    Memory {
        /// Bytes of the window's symbols.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}
