//! The best that a code could do: decoding simulated on coefficients alone, without a byte of payload.
//!
//! A loss trace says of each transmission whether it arrives. The simulation sends a stream of one of the
//! [`Generator`]s through it and solves the same equations as the [`Decoder`](super::Decoder). [`Generator::Ideal`] has
//! random coefficients: only by chance does a code with the same windows do better, so it is the standard of
//! comparison.

use super::row::{RepairRow, column_values, lanes, window_start};
use super::settings::{SettingsError, StreamSettings};
use super::system::{Inserted, System};
use crate::format::packet::Parameters;
use crate::gf256::kernel::Backend;
use crate::random::SplitMix64;

/// Source of the coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Uniformly random elements of GF(2^8).
    Ideal,
    /// The rows of the profile, which is [`bounded`](super::Profile::Bounded) or [`classic`](super::Profile::Classic).
    Profile,
}

/// The result of a simulated stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Numbers of the source packets that were not recovered.
    pub lost: Vec<u64>,
    /// For each source packet that was lost and recovered, the number of source packets that were sent from it on until
    /// its recovery.
    pub delays: Vec<u32>,
    /// Most lost packets in equations at a time.
    pub most_open: usize,
    /// For each time when everything lost had been recovered, the number of rows that had come in vain since the time
    /// before.
    pub overheads: Vec<u32>,
}

/// A sender and a receiver of coefficients.
struct Simulation {
    generator: Generator,
    parameters: Parameters,
    system: System,
    row: RepairRow,
    rows: u64,
    /// Lost packets that no equation has met yet.
    fresh: Vec<u64>,
    /// Rows without new information.
    vain: u32,
}

impl Simulation {
    fn new(generator: Generator, parameters: Parameters, columns: usize) -> Simulation {
        let system = System::new(Backend::best(), columns, 0);
        Simulation {
            generator,
            parameters,
            system,
            row: RepairRow::default(),
            rows: 0,
            fresh: Vec::new(),
            vain: 0,
        }
    }

    /// The next row, over columns `first..end`; `lost` says whether a column is lost. Returns the recovered columns.
    fn row(&mut self, first: u64, end: u64, arrives: bool, lost: impl Fn(u64) -> bool) -> Vec<u64> {
        let number = self.rows;
        self.rows += 1;
        self.system.give_up_before(first);
        if !arrives {
            return Vec::new();
        }
        for seq in self.fresh.drain(..).filter(|&seq| seq >= first) {
            self.system.push_column(seq, column_values(lanes(self.parameters.profile), seq));
        }
        if self.system.open() == 0 {
            return Vec::new();
        }
        let inserted = match self.generator {
            Generator::Ideal => self.system.insert(|column, _| random_byte(number, column), |_| {}),
            Generator::Profile => {
                self.row.generate(&self.parameters, number, first, (end - first) as u32);
                let mut open_taps: Vec<_> = self.row.tapped().filter(|&(column, _)| lost(column)).collect();
                self.system.insert(self.row.coefficients(&mut open_taps), |_| {})
            }
        };
        self.vain += u32::from(inserted != Inserted::Useful);
        let mut recovered = Vec::new();
        if inserted == Inserted::Useful {
            self.system.solve(|seq, _| {
                recovered.push(seq);
                true
            });
        }
        recovered
    }
}

/// Sends `count` source packets and the repair packets between them over a line; `lost` is asked once for each
/// transmission, in order. Columns that the last row does not recover count as lost.
///
/// # Errors
///
/// Those of [`StreamSettings::parameters`].
pub fn stream(
    generator: Generator,
    settings: &StreamSettings,
    count: u64,
    mut lost: impl FnMut() -> bool,
) -> Result<Outcome, SettingsError> {
    let parameters = settings.parameters()?;
    let mut simulation = Simulation::new(generator, parameters, parameters.window.min(2048) as usize);
    let mut states = vec![false; count as usize];
    let mut outcome = Outcome::default();
    let mut owed = 0;
    for seq in 0..count {
        if lost() {
            states[seq as usize] = true;
            simulation.fresh.push(seq);
        }
        let end = seq + 1;
        let start = window_start(&parameters, end);
        owed += u32::from(settings.ratio.repair());
        while owed >= u32::from(settings.ratio.source()) {
            owed -= u32::from(settings.ratio.source());
            let arrives = !lost();
            let recovered = simulation.row(start, end, arrives, |column| states[column as usize]);
            if !recovered.is_empty() && simulation.system.open() == 0 {
                outcome.overheads.push(std::mem::take(&mut simulation.vain));
            }
            for recovered in recovered {
                states[recovered as usize] = false;
                outcome.delays.push((end - recovered) as u32);
            }
            outcome.most_open = outcome.most_open.max(simulation.system.open());
        }
    }
    outcome.lost = (0..count).filter(|&seq| states[seq as usize]).collect();
    Ok(outcome)
}

/// A random coefficient of a column in a row.
fn random_byte(row: u64, column: u64) -> u8 {
    SplitMix64::new(row << 32 ^ column).next() as u8
}
