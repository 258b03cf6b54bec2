//! The places of shards in stores, as `--to` and `--from` name them.

use crate::say::failure::{Failure, Result, misuse};
use fec_base::names::show;
use fec_stores::target::{Target, TargetError};
use std::collections::BTreeSet;
use std::path::Path;

/// Most places that a list names.
const MOST_LINES: usize = 1024;
/// Most bytes of a line of a list of places.
const LONGEST_LINE: usize = 4096;

/// The place with this name.
///
/// # Errors
/// Wrong use. The message does not repeat a misplaced secret.
pub(crate) fn place(name: &str) -> Result<Target> {
    Target::parse(name).map_err(|e| {
        let failure = match (name.contains(['@', '?', '#']), name.split_once("://")) {
            (true, Some((scheme, _))) => Failure::usage(format!("{scheme}://…: {e}")),
            (true, None) => Failure::usage(e.to_string()),
            (false, _) => {
                Failure::usage(format!("{}: {e}", show(name.split(',').next().unwrap_or_default())))
            }
        };
        match e {
            TargetError::Colon(_) if name.contains(['@', '?', '#', ',']) => {
                failure.help("a folder that is called so is named with ./ before it")
            }
            TargetError::Colon(_) => failure.help(format!("a folder that is called so is ./{name}")),
            _ => failure,
        }
    })
}

/// The places in the text of a list: one on each line, and comments behind `#`.
///
/// # Errors
/// Wrong use.
pub(crate) fn listed(list: &Path, text: &str) -> Result<Vec<Target>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |(count, line): (usize, &str)| {
        if count == MOST_LINES {
            let what = format!("{}: more than {MOST_LINES} places are named in it", show(list));
            return Err(Failure::usage(what));
        }
        if line.len() > LONGEST_LINE {
            let why = format!("a line has more than {LONGEST_LINE} bytes, and names no place");
            return Err(misuse("read", list, &why).help("it lists a place on each line"));
        }
        place(line)
    };
    lines.enumerate().map(read).collect()
}

/// The places, of which there is at least one.
///
/// # Errors
/// Wrong use.
pub(crate) fn some(places: Vec<Target>) -> Result<Vec<Target>> {
    match places.is_empty() {
        true => Err(Failure::usage("no place is named").help("write s3://BUCKET/PREFIX, or a folder")),
        false => Ok(places),
    }
}

/// All places of a repair, and the numbers of those that shards may stand at from now on: those of `to`, or else of
/// `from` those that can be written to.
///
/// # Errors
/// Wrong use: shards may stand nowhere, or where nothing can be written.
pub(crate) fn repaired(from: Vec<Target>, to: Vec<Target>) -> Result<(Vec<Target>, BTreeSet<usize>)> {
    let mut all = from;
    let to = match to.is_empty() {
        true => all.iter().filter(|target| !target.is_read_only()).cloned().collect(),
        false => to,
    };
    if let Some(target) = to.iter().find(|target| target.is_read_only()) {
        return Err(Failure::usage(format!("repair --to {}: this place is only for reading", target.name())));
    }
    // The domains of --to override those of --from.
    for target in &to {
        match all.iter_mut().find(|other| other.name() == target.name()) {
            Some(other) => *other = target.clone(),
            None => all.push(target.clone()),
        }
    }
    let is_named = |nth: &usize| to.iter().any(|target| target.name() == all[*nth].name());
    let numbers: BTreeSet<usize> = (0..all.len()).filter(is_named).collect();
    if numbers.is_empty() {
        return Err(Failure::usage("repair --from: none of these places can be written to")
            .help("name others with --to"));
    }
    Ok((all, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_a_place_on_each_line() {
        let list = Path::new("list");
        let places = listed(list, "# mine\n\n  one,domain=a \ntwo\n").expect("places");
        assert_eq!(places.iter().map(Target::name).collect::<Vec<_>>().len(), 2);
        let many = "one\n".repeat(MOST_LINES + 1);
        let long = "x".repeat(LONGEST_LINE + 1);
        for (text, why) in [
            (many.as_str(), "list: more than 1024 places are named in it"),
            (&long, "read list: a line has more than 4096 bytes, and names no place"),
        ] {
            assert_eq!(listed(list, text).expect_err(why).message, why);
        }
        assert!(some(Vec::new()).is_err() && some(places).is_ok());
    }

    #[test]
    fn a_wrong_place_is_told_without_secrets() {
        let refused = place("s3://key:secret@bucket").expect_err("no place");
        assert!(refused.message.starts_with("s3://…: ") && !refused.message.contains("secret"), "{refused}");
    }

    #[test]
    fn a_repair_writes_where_it_may() {
        let of =
            |names: &[&str]| -> Vec<Target> { names.iter().map(|name| place(name).expect(name)).collect() };
        let url = "https://example.org/shards";
        let numbers =
            |from: &[&str], to: &[&str]| repaired(of(from), of(to)).map(|(all, to)| (all.len(), to));
        assert_eq!(numbers(&["one", url], &[]).expect("places"), (2, BTreeSet::from([0])));
        assert_eq!(numbers(&["one", "two"], &["two", "three"]).expect("places"), (3, BTreeSet::from([1, 2])));
        assert!(numbers(&[url], &[]).expect_err("none").message.contains("can be written to"));
        assert!(numbers(&["one"], &[url]).expect_err("none").message.contains("only for reading"));
    }
}
