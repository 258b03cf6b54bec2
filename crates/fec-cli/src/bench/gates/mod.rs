use crate::args::Format;
use crate::failure::{Exit, Result};
use crate::settings::Settings;
pub(super) fn run(_settings: &Settings, _format: Format) -> Result<Exit> {
    Ok(Exit::Done)
}
