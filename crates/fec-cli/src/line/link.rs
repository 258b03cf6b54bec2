//! The options of `bench link`, as clap sees them.

use crate::line::examples;
use crate::line::stream::{Packet, packet, rate_limit, ratio};
use clap::Args;
use fec_bench::link::{self, LinkOptions, ListenOptions, Recovery, SECONDS};
use fec_core::window::Ratio;
use fec_live::address::Address;
use fec_live::impair::Impairment;
use fec_live::loss::{ImpairmentError, Loss};
use std::time::Duration;

/// The options of `bench link`.
#[derive(Debug, Args)]
#[command(after_help = examples::LINK)]
pub(crate) struct Link {
    /// The machine to test the link to, on which `fec bench link --listen` runs: `HOST`, `HOST:PORT` or `[IPV6]:PORT`
    /// [default port: 5205]
    #[arg(value_name = "HOST", value_parser = host, required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) host: Option<Address>,
    /// Wait for a test, here or on this address of the machine, take part in it, tell what arrived, and end
    #[arg(short, long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "", value_parser = link_address)]
    pub(crate) listen: Option<Address>,
    /// With --listen: wait for the next test after each
    #[arg(long, requires = "listen", conflicts_with = "host")]
    pub(crate) keep: bool,
    /// Wait at most so long for a test, or for somebody to listen [default: 600000 for a test; 5000 for an answer, and
    /// not at all where the other machine says that nobody listens]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=86_400_000))]
    wait_ms: Option<u32>,
    /// Send for so many seconds, 0.1 to 3600
    #[arg(short, long, value_name = "SECONDS", default_value = "10", value_parser = seconds, conflicts_with = "listen")]
    time: Duration,
    /// Send no more than this many million bits a second, headers of UDP and IP not counted [default: as many as this
    /// machine can, which few links take]
    #[arg(long, value_name = "N", value_parser = rate_limit, conflicts_with = "listen")]
    pub(crate) mbps: Option<f64>,
    /// Lose packets on purpose, to try recovery: a share like 5%, or random:P, ge:P,BURST, burst:N,START or trace:FILE
    #[arg(long, value_name = "P%|MODEL", value_parser = loss, conflicts_with = "listen")]
    loss: Option<Loss>,
    /// Lose, reorder and double packets on purpose: a list as for `encode --impair`
    #[arg(long, value_name = "LIST", conflicts_with_all = ["listen", "loss"])]
    impair: Option<Impairment>,
    /// Payload bytes of a packet. auto: 1174, which live streams have, or what passes
    #[arg(long, value_name = "BYTES|auto", default_value = "auto", value_parser = packet, conflicts_with = "listen")]
    packet: Packet,
    /// Repair packets for source packets
    #[arg(long, value_name = "R/S", default_value = "1/6", value_parser = ratio, conflicts_with = "listen")]
    rate: Ratio,
    /// Source packets that a repair packet covers, up to 65536
    #[arg(long, value_name = "PACKETS", default_value_t = 6000, conflicts_with = "listen")]
    window: u32,
    /// Send payloads alone, without repair packets
    #[arg(long, conflicts_with_all = ["listen", "rate", "window"])]
    no_recovery: bool,
}

impl Link {
    pub(crate) fn options(&self) -> LinkOptions {
        let of_loss = |loss: &Loss| Impairment { losses: vec![loss.clone()], reorder: 0, dup: 0.0, seed: 1 };
        LinkOptions {
            time: self.time,
            mbps: self.mbps,
            payload: self.packet.0,
            recovery: (!self.no_recovery).then_some(Recovery { ratio: self.rate, window: self.window }),
            impairment: self.impair.clone().or_else(|| self.loss.as_ref().map(of_loss)),
            wait: self.wait(),
        }
    }

    pub(crate) fn listen_options(&self) -> ListenOptions {
        let usual = ListenOptions::default();
        ListenOptions { wait: self.wait().unwrap_or(usual.wait) }
    }

    fn wait(&self) -> Option<Duration> {
        self.wait_ms.map(|ms| Duration::from_millis(ms.into()))
    }
}

fn link_address(text: &str) -> Result<Address, String> {
    link::address(text).map_err(|_| "write ADDRESS:PORT, [IPV6]:PORT, ADDRESS or :PORT".to_owned())
}

fn host(text: &str) -> Result<Address, String> {
    let wrong = || "write HOST, HOST:PORT, or [IPV6]:PORT".to_owned();
    let plain = text.strip_prefix("udp://").unwrap_or(text);
    if plain.is_empty() || (plain.starts_with(':') && !plain.starts_with("::")) {
        return Err(wrong());
    }
    link::address(text).ok().filter(|address| address.port() > 0).ok_or_else(wrong)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    let seconds = number.filter(|seconds| SECONDS.contains(seconds)).map(Duration::from_secs_f64);
    seconds.ok_or_else(|| format!("a number from {} to {}", SECONDS.start(), SECONDS.end()))
}

fn loss(text: &str) -> Result<Loss, String> {
    let Some(number) = text.strip_suffix('%') else {
        return text.parse().map_err(|e: ImpairmentError| e.to_string());
    };
    let share: Option<f64> = number.parse().ok();
    let share = share.filter(|share| (0.0..100.0).contains(share)).map(|share| Loss::Random(share / 100.0));
    share.ok_or_else(|| "a share is at least 0% and below 100%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        link: Link,
    }

    fn parse(words: &[&str]) -> Result<Link, clap::Error> {
        Line::try_parse_from([&["link"], words].concat()).map(|line| line.link)
    }

    #[test]
    fn what_is_not_said_is_as_the_library_has_it() {
        let link = parse(&["board"]).expect("a host is enough");
        assert_eq!(format!("{:?}", link.options()), format!("{:?}", LinkOptions::default()));
        assert_eq!(link.listen_options().wait, ListenOptions::default().wait);
        assert_eq!(link.host.expect("it was given").port(), link::PORT);
    }

    #[test]
    fn values_are_read_strictly() {
        assert_eq!(loss("5%"), Ok(Loss::Random(0.05)));
        assert_eq!(loss("random:0.05"), Ok(Loss::Random(0.05)));
        for bad in ["5", "100%", "-1%", "%", "nan%"] {
            assert!(loss(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "3601", "nan", "x"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        for bad in ["", ":5205", "board:0", "board:x"] {
            assert!(host(bad).is_err(), "{bad}");
        }
        assert!(host("::1").is_ok());
    }

    #[test]
    fn one_side_or_the_other() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["--listen"]).expect("nothing else is needed").listen.is_some());
        assert!(parse(&["--listen", ":5000"]).is_ok());
        for bad in [
            &["board", "--listen"][..],
            &["--listen", "--mbps", "5"],
            &["--listen", "-t", "5"],
            &["board", "--keep"],
            &["board", "--no-recovery", "--window", "5"],
            &["board", "--loss", "5%", "--impair", "dup:0.1"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
