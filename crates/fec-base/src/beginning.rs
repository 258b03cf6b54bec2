//! The beginning of an input, by which a live stream is told from encodings.

/// The kind of live stream that an input starts with, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beginning {
    /// No packet of a stream.
    #[default]
    Other,
    /// A whole valid packet.
    Stream,
    /// A packet that looks sealed; only a key holder can tell.
    Sealed,
}
