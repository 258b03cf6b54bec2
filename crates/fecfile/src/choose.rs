//! Chooses among several encodings: the one asked for, or the only one that can be restored; never the one with the
//! most shards.

use crate::error::{Action, Class, EncodingError, Error, NothingFound, Result};
use crate::forms::encoded::Encoded;
use crate::forms::form::{Candidate, Found, Seen};
use crate::leftovers::Leftovers;
use crate::report::Outcome;
use fec_core::digest::Digest;
use fec_core::params::Form;

/// The error when nothing was found under the wanted root, or under any.
pub(crate) fn nothing_found(wanted: Option<Digest>, others: Vec<Digest>, leftovers: Leftovers) -> Error {
    let is_shard_file = false;
    let found = NothingFound { wanted, others, leftovers, is_shard_file };
    Error::new(Action::Read, EncodingError::NothingFound(Box::new(found)))
}

/// An encoding's position: the index of its form in `found`, and its number within that form.
pub(crate) type Choice = (usize, usize);

/// Chooses among all encodings of all forms. Without a wanted root only the roots in `only` count, if that is given.
/// `check` decodes an encoding to nowhere.
///
/// # Errors
/// [`NothingFound`](EncodingError::NothingFound), [`Ambiguous`](EncodingError::Ambiguous),
/// [`NoneWhole`](EncodingError::NoneWhole); and those of `check`.
pub(crate) fn choose(
    found: &[Box<dyn Found>],
    seen: &Seen,
    wanted: Option<Digest>,
    only: Option<&[Digest]>,
    check: &dyn Fn(&Encoded<'_>) -> Result<Outcome>,
) -> Result<Choice> {
    let all: Vec<(Choice, Candidate)> = (0..)
        .zip(found)
        .flat_map(|(form, found)| {
            (0..).zip(found.candidates()).map(move |(nth, candidate)| ((form, nth), candidate))
        })
        .collect();
    let check = |(form, nth): Choice| check(&found[form].encoded(nth));
    // The form of an input that holds nothing to restore (docs/FORMAT.md, section 9.3).
    let form = seen.form.unwrap_or(Form::Container);
    let leftovers = || {
        let (own, others): (Vec<_>, Vec<_>) = found.iter().partition(|found| found.kind() == form);
        let mut left = own.first().map_or_else(Leftovers::default, |found| found.leftovers().clone());
        // Without a valid header the form is unknown, and a wanted root may stand in any form: the leftovers of all
        // forms count.
        if seen.form.is_none() || wanted.is_some() {
            others.iter().for_each(|found| left.absorb(found.leftovers()));
        }
        left
    };
    match wanted {
        Some(root) => {
            if let Some((choice, _)) = all.iter().find(|(_, c)| c.root == Some(root)) {
                return Ok(*choice);
            }
            let mut others: Vec<Digest> = all.iter().filter_map(|(_, candidate)| candidate.root).collect();
            let left_aside = found.iter().flat_map(|found| &found.leftovers().others);
            others.extend(left_aside.filter(|root| !others.contains(root)).copied().collect::<Vec<_>>());
            let leftovers = leftovers();
            if leftovers.found_wanted {
                // The wanted root itself is there, so other roots explain nothing.
                others.clear();
            }
            Err(nothing_found(wanted, others, leftovers))
        }
        None => {
            let of_form = |(form, _): Choice| found[form].kind();
            let counts =
                |root: Option<Digest>| only.is_none_or(|only| root.is_some_and(|root| only.contains(&root)));
            let all: Vec<_> = all.into_iter().filter(|(_, candidate)| counts(candidate.root)).collect();
            only_one(&all, |choice| of_form(choice) == form, &check, leftovers)
        }
    }
}

/// The only encoding that can be restored. If none can, the only one that has records and the form of the input.
fn only_one(
    all: &[(Choice, Candidate)],
    has_form: impl Fn(Choice) -> bool,
    check: &dyn Fn(Choice) -> Result<Outcome>,
    leftovers: impl Fn() -> Leftovers,
) -> Result<Choice> {
    if let [(choice, candidate)] = all
        && candidate.is_restorable.is_none()
    {
        // Restoring tells whether it can be restored; a check first would decode it twice.
        return Ok(*choice);
    }
    let mut whole = Vec::new();
    let mut partly = Vec::new();
    let mut refused = None;
    for (choice, candidate) in all {
        let (is_whole, is_there) = match candidate.is_restorable {
            Some(is) => (is, candidate.has_records),
            None => match check(*choice) {
                // Sets beyond the memory must not keep others from being restored.
                Err(e) if e.class() == Class::Refused => {
                    refused = Some(e);
                    continue;
                }
                outcome => outcome.map(|outcome| (outcome.is_whole(), outcome.intact_records > 0))?,
            },
        };
        match (is_whole, is_there) {
            (true, _) => whole.push((*choice, candidate.root)),
            (false, true) if has_form(*choice) => partly.push((*choice, candidate.root)),
            (false, _) => {}
        }
    }
    let roots = |list: &[(Choice, Option<Digest>)]| list.iter().map(|(_, root)| *root).collect();
    match (&whole[..], &partly[..], refused) {
        ([(choice, _)], ..) => Ok(*choice),
        ([], _, Some(error)) => Err(error),
        ([], [(choice, _)], None) => Ok(*choice),
        ([], [], None) => Err(nothing_found(None, Vec::new(), leftovers())),
        ([], several, None) => {
            let leftovers = Box::new(leftovers());
            Err(Error::new(Action::Read, EncodingError::NoneWhole { roots: roots(several), leftovers }))
        }
        (several, ..) => Err(Error::new(Action::Read, EncodingError::Ambiguous(roots(several)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_base::ErrorKind;

    /// The choice among encodings, each given as (can be restored, has records).
    fn chosen(encodings: &[(bool, bool)]) -> Result<usize> {
        let candidate = |nth: usize, (is_restorable, has_records)| Candidate {
            root: Some([nth as u8; 32]),
            is_restorable: Some(is_restorable),
            has_records,
            is_in_annexes: false,
        };
        let all: Vec<_> =
            (0..).zip(encodings).map(|(nth, encoding)| ((0, nth), candidate(nth, *encoding))).collect();
        let check = |_: Choice| unreachable!("all is known");
        only_one(&all, |_| true, &check, Leftovers::default).map(|(_, nth)| nth)
    }

    #[test]
    fn the_only_encoding_that_can_be_restored_is_chosen() {
        assert_eq!(chosen(&[(false, true), (true, true), (false, false)]).unwrap(), 1);
        let several = chosen(&[(true, true), (false, true), (true, true)]).unwrap_err();
        let roots = [Some([0; 32]), Some([2; 32])];
        assert!(matches!(several.cause(), Some(EncodingError::Ambiguous(of)) if *of == roots));
    }

    /// An index may list groups that have no records left. Such an encoding does not compete with one that has records.
    #[test]
    fn an_encoding_without_records_is_never_chosen() {
        assert_eq!(chosen(&[(false, false), (false, true), (false, false)]).unwrap(), 1);
        for encodings in [&[][..], &[(false, false)], &[(false, false), (false, false)]] {
            assert!(
                matches!(chosen(encodings).unwrap_err().cause(), Some(EncodingError::NothingFound(_))),
                "{encodings:?}"
            );
        }
        let none_whole = chosen(&[(false, true), (false, false), (false, true)]).unwrap_err();
        let of = [Some([0; 32]), Some([2; 32])];
        assert!(matches!(none_whole.cause(), Some(EncodingError::NoneWhole { roots, .. }) if *roots == of));
    }

    /// The choice among encodings that only decoding judges, each given as (result of decoding, has the input's form).
    fn decoded(encodings: Vec<(Result<Outcome>, bool)>) -> Result<usize> {
        let candidate =
            Candidate { root: Some([1; 32]), is_restorable: None, has_records: true, is_in_annexes: false };
        let all: Vec<_> = (0..encodings.len()).map(|nth| ((0, nth), candidate)).collect();
        let have_form: Vec<bool> = encodings.iter().map(|(_, has)| *has).collect();
        let outcomes: Vec<_> =
            encodings.into_iter().map(|(outcome, _)| std::cell::RefCell::new(Some(outcome))).collect();
        let check = |(_, nth): Choice| outcomes[nth].take().expect("it is asked once");
        only_one(&all, |(_, nth)| have_form[nth], &check, Leftovers::default).map(|(_, nth)| nth)
    }

    #[test]
    fn what_is_not_known_is_told_by_decoding() {
        let refused = || Err(Error::new(Action::Decode, ErrorKind::SetMemory { need: 2, most: 1 }));
        let unreadable = || Err(Error::new(Action::Read, ErrorKind::Io(std::io::ErrorKind::Other.into())));
        let whole = || Ok(Outcome::default());
        let partly = |intact_records| Ok(Outcome { lost_sets: 1, intact_records, ..Outcome::default() });
        let is_refused = |error: Error| matches!(error.kind, ErrorKind::SetMemory { .. });
        // A lone encoding is not decoded twice.
        assert_eq!(decoded(vec![(unreadable(), true)]).unwrap(), 0);
        assert_eq!(decoded(vec![(partly(1), true), (whole(), false)]).unwrap(), 1);
        assert_eq!(decoded(vec![(refused(), true), (whole(), true)]).unwrap(), 1);
        assert!(is_refused(decoded(vec![(refused(), true), (partly(1), true)]).unwrap_err()));
        let error = decoded(vec![(unreadable(), true), (whole(), true)]).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Io(_)), "{error}");
        // An encoding without intact records, or of another form than the input, does not compete.
        for intact in [1, 2] {
            assert_eq!(decoded(vec![(partly(0), true), (partly(intact), true)]).unwrap(), 1);
        }
        assert_eq!(decoded(vec![(partly(1), false), (partly(1), true)]).unwrap(), 1);
        let nothing = decoded(vec![(partly(1), false), (partly(1), false)]).unwrap_err();
        assert!(matches!(nothing.cause(), Some(EncodingError::NothingFound(_))));
    }

    /// The findings of one form: roots, whether they can be restored, and the leftovers beside them.
    struct Told {
        kind: Form,
        roots: Vec<Digest>,
        is_restorable: bool,
        leftovers: Leftovers,
    }

    impl Found for Told {
        fn kind(&self) -> Form {
            self.kind
        }

        fn candidates(&self) -> Vec<Candidate> {
            let candidate = |root: &Digest| Candidate {
                root: Some(*root),
                is_restorable: Some(self.is_restorable),
                has_records: true,
                is_in_annexes: false,
            };
            self.roots.iter().map(candidate).collect()
        }

        fn leftovers(&self) -> &Leftovers {
            &self.leftovers
        }

        fn encoded(&self, _: usize) -> Encoded<'_> {
            unreachable!("all is known")
        }

        fn examine(&self, _: usize, _: &fec_base::context::Context<'_>) -> crate::report::Examination {
            unreachable!("it is only chosen")
        }

        fn repair(
            &self,
            _: usize,
            _: &crate::report::Examination,
            _: &crate::forms::repair::RepairJob<'_>,
        ) -> Result<Vec<std::path::PathBuf>> {
            unreachable!("it is only chosen")
        }

        fn signatures(&self) -> &fec_keys::sign::Signatures {
            unreachable!("it is only chosen")
        }
    }

    fn found(kind: Form, roots: &[u8], unreadable: &str) -> Box<dyn Found> {
        let mut leftovers = Leftovers::default();
        leftovers.unreadable.push(unreadable.to_owned());
        Box::new(Told {
            kind,
            roots: roots.iter().map(|root| [*root; 32]).collect(),
            is_restorable: true,
            leftovers,
        })
    }

    fn choice(
        found: &[Box<dyn Found>],
        form: Option<Form>,
        wanted: Option<u8>,
        only: Option<&[u8]>,
    ) -> Result<Choice> {
        let seen = Seen { form, ..Seen::default() };
        let only: Option<Vec<Digest>> = only.map(|only| only.iter().map(|root| [*root; 32]).collect());
        let check = |_: &Encoded<'_>| unreachable!("all is known");
        choose(found, &seen, wanted.map(|root| [root; 32]), only.as_deref(), &check)
    }

    fn nothing_found<T>(chosen: Result<T>) -> NothingFound {
        match chosen.err().expect("it is not there").into_cause() {
            Ok(EncodingError::NothingFound(nothing)) => *nothing,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_root_that_is_wanted_is_chosen_among_all_forms() {
        let both = [found(Form::Shards, &[1, 2], "a"), found(Form::Container, &[3, 2], "b")];
        for (wanted, expected) in [(1, (0, 0)), (2, (0, 1)), (3, (1, 0))] {
            assert_eq!(choice(&both, None, Some(wanted), None).unwrap(), expected);
        }
        let nothing = nothing_found(choice(&both, None, Some(9), None));
        assert_eq!(nothing.wanted, Some([9; 32]));
        assert_eq!(nothing.others, [[1; 32], [2; 32], [3; 32], [2; 32]]);
        // Roots that were left aside are listed once.
        let mut leftovers = Leftovers::default();
        leftovers.others.extend([[1; 32], [5; 32]]);
        let aside = Told { kind: Form::Container, roots: vec![[1; 32]], is_restorable: true, leftovers };
        let nothing = nothing_found(choice(&[Box::new(aside)], None, Some(9), None));
        assert_eq!(nothing.others, [[1; 32], [5; 32]]);
        let several = choice(&both, None, None, None).unwrap_err();
        assert!(matches!(several.cause(), Some(EncodingError::Ambiguous(roots)) if roots.len() == 4));
        assert_eq!(choice(&both, None, None, Some(&[3])).unwrap(), (1, 0));
    }

    #[test]
    fn what_stands_beside_counts_as_far_as_it_has_the_form_of_the_input() {
        let both = [found(Form::Shards, &[], "a"), found(Form::Container, &[], "b")];
        let beside = |form, wanted| nothing_found(choice(&both, form, wanted, None)).leftovers.unreadable;
        assert_eq!(beside(Some(Form::Shards), None), ["a"]);
        assert_eq!(beside(Some(Form::Container), None), ["b"]);
        // Nothing names a form: the input is reported as a container, and the leftovers of all forms count.
        assert_eq!(beside(None, None), ["b", "a"]);
        assert_eq!(beside(Some(Form::Shards), Some(9)), ["a", "b"]);
        assert_eq!(beside(None, Some(9)), ["b", "a"]);
    }

    /// If no encoding is whole, the one with the input's form is chosen.
    #[test]
    fn only_the_form_of_the_input_is_restored_in_part() {
        let partly = |kind, root: u8| -> Box<dyn Found> {
            let (roots, leftovers) = (vec![[root; 32]], Leftovers::default());
            Box::new(Told { kind, roots, is_restorable: false, leftovers })
        };
        let both = [partly(Form::Shards, 1), partly(Form::Container, 2)];
        for (form, expected) in
            [(Some(Form::Shards), (0, 0)), (Some(Form::Container), (1, 0)), (None, (1, 0))]
        {
            assert_eq!(choice(&both, form, None, None).unwrap(), expected);
        }
    }
}
