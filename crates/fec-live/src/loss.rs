//! Models of loss: the packets that a channel loses, the same ones each time. A model only learns that another packet
//! comes, so it serves commands and measurements alike.

use super::LiveError;
use fec_base::error::{Action, Error};
use fec_base::io::small;
use fec_core::random::SplitMix64;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The largest trace file, in bytes.
const MAX_TRACE: u64 = 64 << 20;
/// The default start of a burst: the packets before it have passed.
const BURST_START: u64 = 1000;

/// The packets that are lost.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Each packet independently, with this probability.
    Random(f64),
    /// Gilbert-Elliott: this average loss, in bursts of this mean length, in packets.
    Bursts {
        /// Mean loss, 0 ≤ p < 1.
        mean: f64,
        /// Mean length of a burst, at least 1.
        length: f64,
    },
    /// This many packets in a row, once, from packet `start` on.
    Once {
        /// Packets of the burst.
        packets: u64,
        /// The first lost packet, counted from 0.
        start: u64,
    },
    /// A file of `0` (passes) and `1` (is lost), one for each packet; it begins again at its end.
    Trace(PathBuf),
}

/// The reason why a text is no loss model, or no list of impairments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImpairmentError {
    /// A loss model without a kind.
    #[error("a loss model is KIND:VALUE, as in random:0.05")]
    NoKind,
    /// An unknown kind of loss.
    #[error("{0}: not one of random, ge, burst, trace")]
    UnknownKind(String),
    /// Bursts without their length.
    #[error("write ge:LOSS,BURST, as in ge:0.05,50")]
    NoLength,
    /// Bursts that are too short for their loss, or for a packet.
    #[error("a burst has 1 packet at least, and losses above L/(L+1) need longer ones")]
    ShortBursts,
    /// Text that is no number.
    #[error("{0} is not a number")]
    NotANumber(String),
    /// Text that is no share.
    #[error("{0}: a share is at least 0 and below 1")]
    NotAShare(String),
    /// Text that is no seed.
    #[error("{0}: a seed is a whole number")]
    NotASeed(String),
    /// Text that is no number of packets to hold one back for.
    #[error("reorder is a number of packets up to {most}")]
    Reorder {
        /// The most.
        most: u32,
    },
    /// An item of a list that has no kind.
    #[error("{0}: write KIND:VALUE, of random, ge, burst, trace, reorder, dup, seed")]
    NoItem(String),
}

/// Reads `random:0.1`, `ge:0.05,50`, `burst:300`, `burst:300,5000` or `trace:FILE`.
impl FromStr for Loss {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<Loss, ImpairmentError> {
        let (kind, value) = text.split_once(':').ok_or(ImpairmentError::NoKind)?;
        let not_a_number = |text: &str| ImpairmentError::NotANumber(text.to_owned());
        match kind {
            "random" => Ok(Loss::Random(share(value)?)),
            "ge" => {
                let (mean, length) = value.split_once(',').ok_or(ImpairmentError::NoLength)?;
                let mean = share(mean)?;
                let length: f64 = length.parse().map_err(|_| not_a_number(length))?;
                // A burst begins in the good state with mean / (length · (1 − mean)), a probability.
                if !(1.0..=1e9).contains(&length) || mean > length / (length + 1.0) {
                    return Err(ImpairmentError::ShortBursts);
                }
                Ok(Loss::Bursts { mean, length })
            }
            "burst" => {
                let (packets, start) = value.split_once(',').map_or((value, None), |(p, s)| (p, Some(s)));
                let number = |text: &str| text.parse::<u64>().map_err(|_| not_a_number(text));
                let start = start.map_or(Ok(BURST_START), number)?;
                Ok(Loss::Once { packets: number(packets)?, start })
            }
            "trace" => Ok(Loss::Trace(value.into())),
            _ => Err(ImpairmentError::UnknownKind(kind.to_owned())),
        }
    }
}

impl Loss {
    /// The model, started.
    ///
    /// # Errors
    /// A trace file that cannot be read, is too large, or is no trace.
    pub fn start(&self, seed: u64) -> fec_base::Result<LossModel> {
        let state = match self {
            Loss::Random(p) => State::Random(*p),
            Loss::Bursts { mean, length } => State::Bursts {
                begin: mean / (length * (1.0 - mean)),
                end: 1.0 / length,
                // The chain starts in its steady state, drawn with the first packet.
                bad: None,
                mean: *mean,
            },
            Loss::Once { packets, start } => {
                State::Once { first: *start, behind: start.saturating_add(*packets), at: 0 }
            }
            Loss::Trace(path) => State::Trace { lost: read_trace(path)?, at: 0 },
        };
        Ok(LossModel { state, random: SplitMix64::new(seed) })
    }
}

/// The text that [`Loss::from_str`] reads.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Random(p) => write!(f, "random:{p}"),
            Loss::Bursts { mean, length } => write!(f, "ge:{mean},{length}"),
            Loss::Once { packets, start: BURST_START } => write!(f, "burst:{packets}"),
            Loss::Once { packets, start } => write!(f, "burst:{packets},{start}"),
            Loss::Trace(path) => write!(f, "trace:{}", fec_base::names::show(path)),
        }
    }
}

/// Reads a probability below 1.
pub(super) fn share(text: &str) -> Result<f64, ImpairmentError> {
    let share: Option<f64> = text.parse().ok();
    share.filter(|p| (0.0..1.0).contains(p)).ok_or_else(|| ImpairmentError::NotAShare(text.to_owned()))
}

fn read_trace(path: &Path) -> fec_base::Result<Vec<bool>> {
    let refuse = |cause| Err(Error::at(Action::Read, path, cause));
    let text = small::read(path, MAX_TRACE as usize).map_err(|e| Error::io(Action::Read, path, e))?;
    let Some(text) = text else { return refuse(LiveError::TraceTooLong { most: MAX_TRACE }) };
    let mut lost = Vec::new();
    for &byte in text.iter() {
        match byte {
            b'0' => lost.push(false),
            b'1' => lost.push(true),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => return refuse(LiveError::NotATrace),
        }
    }
    if lost.is_empty() {
        return refuse(LiveError::EmptyTrace);
    }
    Ok(lost)
}

/// Tells of each packet in turn whether it is lost.
#[derive(Debug)]
pub struct LossModel {
    state: State,
    random: SplitMix64,
}

#[derive(Debug)]
enum State {
    Random(f64),
    Bursts { begin: f64, end: f64, bad: Option<bool>, mean: f64 },
    Once { first: u64, behind: u64, at: u64 },
    Trace { lost: Vec<bool>, at: usize },
}

impl LossModel {
    /// Tells whether the next packet is lost.
    pub fn next_is_lost(&mut self) -> bool {
        match &mut self.state {
            State::Random(p) => self.random.chance(*p),
            State::Bursts { begin, end, bad, mean } => {
                let now = match bad {
                    None => self.random.chance(*mean),
                    Some(true) => !self.random.chance(*end),
                    Some(false) => self.random.chance(*begin),
                };
                *bad = Some(now);
                now
            }
            State::Once { first, behind, at } => {
                let lost = (*first..*behind).contains(at);
                *at += 1;
                lost
            }
            State::Trace { lost, at } => {
                let now = lost[*at];
                *at = (*at + 1) % lost.len();
                now
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str, packets: usize) -> Vec<bool> {
        let mut model = text.parse::<Loss>().unwrap().start(7).unwrap();
        (0..packets).map(|_| model.next_is_lost()).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|l| **l).count() as f64 / lost.len() as f64
    }

    #[test]
    fn models_lose_what_they_say() {
        assert!((share(&pattern("random:0.1", 400_000)) - 0.1).abs() < 0.003);
        assert_eq!(share(&pattern("random:0", 1000)), 0.0);
        for (mean, length) in [(0.05, 50.0), (0.1, 20.0), (0.3, 1.0)] {
            let lost = pattern(&format!("ge:{mean},{length}"), 2_000_000);
            assert!((share(&lost) / mean - 1.0).abs() < 0.1, "{mean} {}", share(&lost));
            let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count();
            let mean_burst = lost.iter().filter(|l| **l).count() as f64 / bursts as f64;
            assert!((mean_burst / length - 1.0).abs() < 0.1, "{length} {mean_burst}");
        }
        let lost = pattern("burst:300,500", 2000);
        assert!((0..2000).all(|i| lost[i] == (500..800).contains(&i)));
        assert_eq!(share(&pattern("burst:300", 3000)), 0.1);
    }

    #[test]
    fn models_are_written_as_they_are_read() {
        for text in ["random:0.1", "ge:0.05,50", "burst:300", "burst:300,5000"] {
            assert_eq!(text.parse::<Loss>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn traces_repeat() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "001\n1 0\n").unwrap();
        let text = format!("trace:{}", file.path().display());
        assert_eq!(pattern(&text, 7), [false, false, true, true, false, false, false]);
        for bad in ["", "0a1", "\n"] {
            std::fs::write(file.path(), bad).unwrap();
            assert!(text.parse::<Loss>().unwrap().start(1).is_err(), "{bad:?}");
        }
    }
}
