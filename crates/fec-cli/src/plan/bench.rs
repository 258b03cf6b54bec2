//! The plan of `fec bench`.

use super::given::Given;
use super::options::{GATES, LINK};
use super::{Table, check, refusals};
use crate::line;
use crate::line::link::Link;
use crate::say::failure::{Failure, Result};
use fec_bench::{CacheHierarchy, Error, Preset};
use std::path::PathBuf;

/// The work of a bench.
#[derive(Debug)]
pub(crate) enum Bench<'a> {
    /// The link to another machine is tested.
    Link(&'a Link),
    /// Nothing is measured: results are checked.
    Gates,
    /// The preset is measured.
    Preset,
}

const REFUSALS: Table<line::Bench> = refusals! {
    |line| line.format == line::Format::Board && (line.preset != line::Preset::Reference || line.gates) =>
        "bench --format board: only `reference` gives such a row", "fec bench --format board";
    |line| matches!(line.save, Some(None)) && line.preset != line::Preset::Tuning =>
        "bench: --save without a file is for `tuning`",
        "name a file to write the result to, as in --save before.json";
};

/// Refuses a measurement if the kernel `{backend}` would run, and not the one that is `{asked}` for.
const BACKEND: Table<bool> = refusals! {
    |is_other| *is_other => "--require-backend {asked}: {backend} would run",
        "--backend chooses one that this machine has";
};

impl Bench<'_> {
    /// The plan of a command line, where the kernel `backend` would run.
    ///
    /// # Errors
    /// Wrong use: options without effect, and the tables of refusals.
    pub(crate) fn of<'a>(line: &'a line::Bench, given: Given, backend: &str) -> Result<Bench<'a>> {
        if let Some(line::OtherBench::Link(link)) = &line.other {
            return given.check(LINK).map(|()| Bench::Link(link));
        }
        let has_gates = matches!(line.preset, line::Preset::Reference | line::Preset::Seal);
        given.check(if line.gates && has_gates { GATES } else { Preset::from(line.preset).name() })?;
        given.check_format()?;
        let asked = line.require_backend.as_deref().unwrap_or(backend);
        let value = |name: &str| if name == "asked" { asked } else { backend }.to_owned();
        check(&(asked != backend), BACKEND, value)?;
        check(line, REFUSALS, |_| String::new())?;
        Ok(if line.gates { Bench::Gates } else { Bench::Preset })
    }
}

/// The file in the home folder that settings are kept in, if there is a home folder.
///
/// # Errors
/// Wrong use: there is none.
pub(crate) fn kept_at(file: Option<PathBuf>) -> Result<PathBuf> {
    let why = "bench: --save without a file keeps settings in the home folder, and there is none";
    file.ok_or_else(|| Failure::usage(why).help("set HOME or XDG_CONFIG_HOME"))
}

/// `cortex-a53`, `host`, or `32K,4,512K,16`.
pub(crate) fn caches(text: &str) -> Result<CacheHierarchy> {
    if text == "host" {
        return Ok(CacheHierarchy::host());
    }
    if let Some(known) = CacheHierarchy::named(text) {
        return Ok(known);
    }
    let parts: Vec<&str> = text.split(',').collect();
    let cache = |bytes: &str, ways: &str| {
        Some((crate::units::size(bytes).ok()?, ways.parse().ok().filter(|ways| *ways <= 1024)?))
    };
    let sizes = match parts[..] {
        [l1, ways1, l2, ways2] => cache(l1, ways1).zip(cache(l2, ways2)),
        _ => None,
    };
    let Some((l1, l2)) = sizes else {
        let names: Vec<&str> = CacheHierarchy::names().collect();
        return Err(Failure::usage(format!("--model {text}: not known"))
            .help(format!("{}, host, or L1,WAYS,L2,WAYS as in 32K,4,512K,16", names.join(", "))));
    };
    CacheHierarchy::new(text, l1, l2).map_err(|error| {
        let why = match error {
            Error::Cache { level } => format!("{level} is no whole number of sets, or above 1 GiB"),
            other => other.to_string(),
        };
        Failure::usage(format!("--model {text}: {why}")).help("its bytes are a multiple of 64 times its ways")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Command;

    fn parsed(words: &str) -> (line::Bench, Given) {
        match crate::plan::parsed("bench", words) {
            (Command::Bench(line), given) => (line, given),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_line_tells_the_work() {
        for (words, plan) in [
            ("", "Preset"),
            ("model --rounds 1", "Preset"),
            ("tuning --save", "Preset"),
            ("--gates", "Gates"),
            ("seal --gates", "Gates"),
            ("--require-backend scalar", "Preset"),
            ("link --listen", "Link"),
        ] {
            let (line, given) = parsed(words);
            let is = Bench::of(&line, given, "scalar").unwrap_or_else(|e| panic!("{words}: {e}"));
            assert!(format!("{is:?}").starts_with(plan), "{words}: {is:?}");
        }
    }

    #[test]
    fn every_row_refuses_its_line() {
        for (words, message) in [
            ("roof --format board", REFUSALS[0].what),
            ("--gates --format board", REFUSALS[0].what),
            ("--save", REFUSALS[1].what),
            ("--require-backend avx9", "--require-backend avx9: scalar would run"),
            ("--json --format csv", "bench: --json and --format say both how to print"),
        ] {
            let (line, given) = parsed(words);
            assert_eq!(Bench::of(&line, given, "scalar").expect_err(words).message, message);
        }
        crate::plan::assert_rows(BACKEND, &[true]);
        assert!(kept_at(None).is_err() && kept_at(Some("kept".into())).is_ok());
    }

    #[test]
    fn caches_have_names_or_numbers() {
        for (text, told) in [
            ("cortex-a53", "cortex-a53 (L1 32 KiB 4-way, L2 512 KiB 16-way, LRU)"),
            ("48K,12,2M,16", "48K,12,2M,16 (L1 48 KiB 12-way, L2 2048 KiB 16-way, LRU)"),
        ] {
            assert_eq!(caches(text).expect("caches").to_string(), told);
        }
        assert!(caches("host").expect("caches").to_string().starts_with("host"));
        for bad in
            ["", "cortex-a99", "32K,4", "32K,0,512K,16", "100,3,512K,16", "32K,4,512K,x", "32K,4,2G,16"]
        {
            assert!(caches(bad).is_err(), "{bad}");
        }
    }
}
