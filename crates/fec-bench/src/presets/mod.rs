//! The presets, one file for each.

mod batch;
mod files;
mod kem;
mod kernels;
mod model;
mod reference;
mod roof;
mod seal;
mod sets;
mod stream;
mod tree;
mod tuning;
mod walks;
mod window;

use crate::error::Result;
use crate::lab::Lab;
use crate::options::Preset;
use crate::table::Findings;

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    match lab.options.preset {
        Preset::Reference => reference::run(lab),
        Preset::Kernels => Ok(kernels::run(lab)),
        Preset::Batch => batch::run(lab),
        Preset::Sets => Ok(sets::run(lab)),
        Preset::Tree => tree::run(lab),
        Preset::Files => files::run(lab),
        Preset::Roof => roof::run(lab),
        Preset::Model => model::run(lab),
        Preset::Kem => kem::run(lab),
        Preset::Seal => seal::run(lab),
        Preset::Stream => stream::run(lab),
        Preset::Tuning => Ok(tuning::run(lab)),
        Preset::Window => window::run(lab),
    }
}
