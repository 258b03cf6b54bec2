//! `fec repair` of several encodings and sidecars: one line for each, and a summary.

use super::encoding::mend;
use crate::line;
use crate::plan::options::{SEVERAL, SIDECARS};
use crate::run::own::check_own;
use crate::run::sidecar;
use crate::run::sign;
use crate::run::survey::{Place, Survey};
use crate::say::failure::{Exit, Failure, Result, gravest};
use crate::say::repair_table::{Done, Report, Row};
use crate::say::state::Outcome;
use crate::settings::{Settings, print_line};
use fec_base::names::show;
use fec_core::params::Form;
use fec_keys::age::Keys;
use fec_sidecar::kind;
use fecfile::{Archive, Input, Wanted};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Repairs everything in the named places.
pub(crate) fn run(
    survey: &Survey,
    args: &line::Repair,
    settings: &Settings,
    started: Instant,
) -> Result<Exit> {
    settings.given.only_for(match (survey.sidecars.is_empty(), survey.encodings.is_empty()) {
        (true, _) => &[SEVERAL],
        (false, true) => &[SIDECARS],
        (false, false) => &[SEVERAL, SIDECARS],
    })?;
    let mut repairs = Repairs { args, settings, keys: args.open.keys()?, rows: Vec::new() };
    for place in &survey.encodings {
        let row = repairs.encoding(place).unwrap_or_else(|failure| Row::failed(&place.name, &failure));
        repairs.add(row)?;
    }
    for path in &survey.sidecars {
        let row = repairs.sidecar(path).unwrap_or_else(|failure| Row::failed(&show(path), &failure));
        repairs.add(row)?;
    }
    let is_of_some = |path: &PathBuf| survey.encodings.iter().any(|place| place.paths.contains(path));
    for path in survey.unknown.iter().filter(|path| !is_of_some(path)) {
        let failure = Failure::usage("no shard or record was found in it".to_owned());
        repairs.add(Row::failed(&show(path), &failure))?;
    }
    let exit = gravest(repairs.rows.iter().map(|row| row.exit));
    let report = Report::new(&repairs.rows, started);
    let outcome = Outcome::mended(exit, repairs.rows.iter().any(Row::has_work));
    settings.report(&report, outcome, &report.describe(), false)?;
    Ok(exit)
}

struct Repairs<'a> {
    args: &'a line::Repair,
    settings: &'a Settings,
    keys: Option<Keys>,
    rows: Vec<Row>,
}

impl Repairs<'_> {
    fn encoding(&self, place: &Place) -> Result<Row> {
        if place.form == Form::Container {
            check_own(&place.paths[0], self.args, self.settings)?;
        }
        let input = Input::of_paths(&place.paths)?;
        // A single shard file stands for an encoding that has lost the others.
        let input = if place.form == Form::Shards { input.as_several() } else { input };
        self.opened(&place.name, &input)
    }

    /// Repairs an encoding.
    fn opened(&self, name: &str, input: &Input) -> Result<Row> {
        let Repairs { args, settings, .. } = *self;
        let bars = settings.bars("repair");
        let context = settings.context(&bars);
        let trust = sign::trust(&args.trusted)?;
        let archive = Archive::open(input, Wanted::from(None).signed_by(trust.as_ref()), &context)?;
        let (report, exit) = mend(&archive, args, settings, Instant::now())?;
        let done = Done { form: report.form, root: report.root.clone(), did: !report.files.is_empty() };
        Ok(Row::new(name, done, report.what(), exit))
    }

    /// Repairs a sidecar and the files that it protects. Without a key, only the container of a sealed one is repaired.
    fn sidecar(&self, path: &Path) -> Result<Row> {
        let Repairs { args, settings, .. } = *self;
        let own = check_own(path, args, settings)?;
        if self.keys.is_none() && kind::is_sealed(path)? {
            let input = Input::of_paths(&[path.to_path_buf()])?;
            return Ok(self.opened(&show(path), &input)?.unopened());
        }
        sidecar::repair::row(path, &own, self.keys.as_ref(), args, settings)
    }

    /// Prints the row at once: later ones may take long.
    fn add(&mut self, row: Row) -> Result<()> {
        if !self.settings.quiet && !self.settings.json {
            print_line(&row.describe())?;
        }
        self.settings.report_damage(row.exit, || row.describe());
        self.rows.push(row);
        Ok(())
    }
}
