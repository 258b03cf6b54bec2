//! Reasons why a run stops before it has a report: each cause is a value, so that the caller can choose words and exit
//! codes.
//!
//! A slowdown, a shut gate or a signal is no error: the report tells of it.

use fec_base::error::Cause;
use fec_base::names::show;
use fec_core::block::CodeError;
use fec_core::error::FormatError;
use fec_core::set::SetError;
use fec_core::window::SettingsError;
use fec_live::loss::Loss;
use fecfile::Class;
use fecfile::seal::SealError;
use std::path::PathBuf;

/// The result of this library's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of a file, or of the library that is measured.
    #[error(transparent)]
    Library(#[from] fecfile::Error),
    /// k and m that are no code.
    #[error("{k} + {m} shards: {cause}")]
    Code {
        /// Original shards.
        k: u16,
        /// Recovery shards.
        m: u16,
        /// The rule that they break.
        cause: CodeError,
    },
    /// A set that the format does not allow.
    #[error(transparent)]
    Geometry(FormatError),
    /// A set that takes more memory than allowed when held twice.
    #[error("the set takes {0} bytes twice")]
    SetMemory(u64),
    /// Caches to be modelled that no processor has.
    #[error("{level} is no whole number of sets, above 1 GiB, or of more than 1024 ways")]
    Cache {
        /// L1 or L2.
        level: &'static str,
    },
    /// A loss model that cannot be used.
    #[error("{loss}: {cause}")]
    Loss {
        /// The model.
        loss: Loss,
        /// The reason.
        cause: Box<fecfile::Error>,
    },
    /// Settings that no live stream can have.
    #[error(transparent)]
    Stream(#[from] SettingsError),
    /// A file that holds no saved report.
    #[error("read {}: not a result of fec bench: {cause}", show(.path))]
    NotAReport {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        cause: serde_json::Error,
    },
    /// A saved report of another preset.
    #[error("compare with {}: it is of preset {then}", show(.path))]
    OtherPreset {
        /// The file.
        path: PathBuf,
        /// Its preset.
        then: String,
        /// The preset of the report that it was to be compared with.
        now: String,
    },
    /// A report that cannot be written as JSON.
    #[error("write the report: {0}")]
    Report(serde_json::Error),
    /// A freshly encoded shard that does not pass its check.
    #[error("shard {0} does not pass its check")]
    Check(u32),
    /// A freshly encoded set that cannot be decoded.
    #[error(transparent)]
    Decode(SetError),
    /// A shard that was decoded wrongly.
    #[error("shard {0} was decoded wrongly")]
    WrongShard(u32),
    /// A payload that cannot be sealed or opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A freshly sealed text that is not authentic.
    #[error("what {0} sealed is not authentic")]
    NotAuthentic(&'static str),
    /// A file that came back changed.
    #[error("the file did not come back as it was")]
    WrongFile,
}

impl Error {
    /// The class of the error, for the caller.
    pub fn class(&self) -> Class {
        match self {
            Error::Library(error) => error.class(),
            Error::Code { .. }
            | Error::Cache { .. }
            | Error::Loss { .. }
            | Error::Stream(_)
            | Error::NotAReport { .. }
            | Error::OtherPreset { .. } => Class::Usage,
            Error::Geometry(_) | Error::SetMemory(_) => Class::Refused,
            Error::Report(_) => Class::Io,
            Error::Seal(error) => error.class(),
            Error::Check(_)
            | Error::Decode(_)
            | Error::WrongShard(_)
            | Error::NotAuthentic(_)
            | Error::WrongFile => Class::Untrue,
        }
    }
}
