//! Why calls on stores fail.

/// Why a call on a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no such object, bucket or folder.
    #[error("it is not there")]
    NotFound,
    /// The store does not let us.
    #[error("not allowed: {0}")]
    Denied(String),
    /// It does not answer, or says that it cannot now: trying again may help.
    #[error("{0}")]
    Unavailable(String),
    /// It answered with other bytes than it was asked for.
    #[error("it answered with other bytes than it was asked for: {0}")]
    WrongRange(String),
    /// It cannot do this.
    #[error("this place cannot {0}")]
    Unsupported(&'static str),
    /// The caller has stopped it.
    #[error("stopped")]
    Cancelled,
    /// Whoever takes the bytes has failed.
    #[error("{0}")]
    Sink(String),
    /// Anything else: trying again does not help.
    #[error("{0}")]
    Failed(String),
}

impl StoreError {
    /// Whether another attempt may succeed.
    pub fn is_worth_retrying(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::WrongRange(_))
    }
}
