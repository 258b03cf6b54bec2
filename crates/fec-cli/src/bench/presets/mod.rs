//! What can be measured: one file for each preset.

mod batch;
mod files;
mod kernels;
mod model;
mod reference;
mod roof;
mod rows;
mod sets;
mod stream;
mod tuning;
mod walks;
mod window;

use super::lab::Lab;
use super::report::Table;
use crate::args::Preset;
use crate::failure::{Failure, Result};
use clap::ValueEnum;
use fec_core::block::Code;

/// What a preset found.
pub(crate) struct Outcome {
    pub(crate) tables: Vec<Table>,
    pub(crate) notes: Vec<String>,
}

/// Its name on the command line.
pub(crate) fn name(preset: Preset) -> String {
    preset.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

pub(crate) fn run(lab: &mut Lab) -> Result<Outcome> {
    match lab.args.preset {
        Preset::Reference => reference::run(lab),
        Preset::Kernels => kernels::run(lab),
        Preset::Batch => batch::run(lab),
        Preset::Sets => sets::run(lab),
        Preset::Files => files::run(lab),
        Preset::Roof => roof::run(lab),
        Preset::Model => model::run(lab),
        Preset::Stream => stream::run(lab),
        Preset::Tuning => tuning::run(lab),
        Preset::Window => window::run(lab),
    }
}

/// The code of -k and -m.
fn code(lab: &Lab) -> Result<Code> {
    let (k, m) = (lab.args.data, lab.args.recovery);
    Code::new(k.into(), m.into()).map_err(|e| Failure::usage(format!("-k {k} -m {m}: {e}")))
}

/// Millions of bits in a second.
fn megabits(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8e-6 / seconds
}

/// Cycles for each byte by the measured clock of the core: an estimate, since the clock may move.
fn estimated_cycles(lab: &Lab, bytes: u64, seconds: f64) -> Option<f64> {
    lab.core_mhz.map(|mhz| seconds * mhz * 1e6 / bytes as f64)
}
