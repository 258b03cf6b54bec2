//! The classes of errors, by their meaning for the caller.

use fec_core::error::Class as FormatClass;

/// The meaning of an error for the caller. When an operation fails for several causes, the last of them in this order
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The damage that was found can be repaired, as far as was looked.
    Mendable,
    /// The payload cannot be restored whole.
    Lost,
    /// The bytes are not those that the root promises.
    Untrue,
    /// The object exceeds a limit, or needs something that this build does not know.
    Refused,
    /// An input or output error, or the input changed while it was read.
    Io,
    /// Wrong use, or refused before any work.
    Usage,
    /// The caller ended the operation early.
    Cancelled,
}

/// The class of an error of the formats; without one, the object is lost.
pub fn class_of(class: Option<FormatClass>) -> Class {
    match class {
        Some(FormatClass::Refused) => Class::Refused,
        Some(FormatClass::Invalid) => Class::Untrue,
        Some(FormatClass::Damaged) | None => Class::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_causes_the_gravest_counts() {
        let order = [Class::Mendable, Class::Lost, Class::Untrue, Class::Refused, Class::Io];
        assert!(order.is_sorted());
    }
}
