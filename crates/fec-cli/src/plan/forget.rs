//! The refusals of `fec forget`.

use super::{Table, refusals};

/// The consent to a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// --yes, or the answer was yes.
    Given,
    /// Nobody can be asked.
    NotAsked,
    /// The answer was another.
    Refused,
}

/// The value `{command}` is the same command with --yes.
pub(crate) const CONSENT: Table<Consent> = refusals! {
    |consent| *consent == Consent::NotAsked => "forget: nothing was removed, for want of a terminal to ask at",
        "to remove it without being asked:\n  {command}";
    |consent| *consent == Consent::Refused => "forget: nothing was removed, as the answer was not yes", "";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_refuses() {
        crate::plan::assert_rows(CONSENT, &[Consent::NotAsked, Consent::Refused]);
        assert!(crate::plan::check(&Consent::Given, CONSENT, str::to_owned).is_ok());
    }
}
