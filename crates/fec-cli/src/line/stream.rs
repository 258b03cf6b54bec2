//! The options of live streams, as clap sees them.

use clap::{Args, ValueEnum};
use fec_core::window::{Profile, Ratio};
use fec_live::impair::Impairment;
use fec_live::key::StreamKey;
use fec_live::receive::{Deadline, GapPolicy, MAX_AGE, NETWORK_IDLE, Opening, ReceiveOptions};
use fec_live::send::{NETWORK_LATENCY, RATES, RateBounds, Sealing, SendOptions};
use fec_live::udp::Interface;
use std::path::PathBuf;
use std::time::Duration;

/// Most milliseconds of --latency: an hour.
const MOST_LATENCY: u64 = 3_600_000;

/// Most seconds of --max-age: a day.
const MOST_AGE: u32 = 86_400;

/// Interval between statistics.
const STATS: Duration = Duration::from_secs(1);

/// Interval between renewals of the file of --metrics.
const METRICS: Duration = Duration::from_secs(5);

/// Options of `encode --stream`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Live streams")]
pub(crate) struct Send {
    /// Send a live stream of packets, with repair packets among them, instead of making shards
    #[arg(long)]
    pub(crate) stream: bool,
    /// Repair packets for source packets. auto follows the loss that the receiver reports, between two bounds, and is
    /// 1/6 as long as it does not report; @FILE is read again whenever it changes [default: auto to one receiver over
    /// a network, otherwise 1/6]
    #[arg(long, value_name = "R/S|auto[:R/S..R/S]|@FILE", value_parser = rate)]
    pub(crate) rate: Option<Rate>,
    /// Source packets that a repair packet covers, up to 65536
    #[arg(long, value_name = "PACKETS", default_value_t = 6000)]
    pub(crate) window: u32,
    /// Steps in which the window moves; or packets of an independent block or set
    #[arg(long, value_name = "PACKETS", default_value_t = 240)]
    pub(crate) block: u16,
    /// Payload bytes of a packet; 42 to 58 bytes are added. auto: 1350 in a file or pipe; to a network 1174, which pass
    /// nearly everywhere, or what is known to pass
    #[arg(long, value_name = "BYTES|auto", default_value = "auto", value_parser = packet)]
    pub(crate) packet: Packet,
    /// Mend what was lost within this time, or not at all: packets older than this, and covered by a repair packet, are
    /// not protected any more; a --block of them leaves at a time. none protects a whole --window. For the profiles
    /// bounded and classic [default: 3000 to a network, none otherwise]
    #[arg(long, value_name = "MS|none", value_parser = latency)]
    pub(crate) latency: Option<Latency>,
    /// Send partial packets, and pending repair packets as far as --rate allows, after so long
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(..=60_000),
    )]
    pub(crate) flush_ms: u32,
    /// How repair packets are made
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Kind::Bounded)]
    pub(crate) profile: Kind,
    /// Send no more than this many million bits a second, headers of UDP and IP not counted
    #[arg(long, value_name = "N", value_parser = rate_limit)]
    pub(crate) mbps: Option<f64>,
    /// Encrypt packets, and make them authentic, with the key in this file: see `fec keygen --stream`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["passphrase", "stream_id"])]
    pub(crate) key_file: Option<PathBuf>,
    /// Lose, reorder and double packets, to try what a stream stands: a list of random:P, ge:P,BURST,
    /// burst:N,START, trace:FILE, reorder:N, dup:P and seed:N
    #[arg(long, value_name = "LIST")]
    pub(crate) impair: Option<Impairment>,
    /// Keep statistics in this file, for Prometheus (the textfile collector of node_exporter): it is renewed every 5
    /// seconds, and stays at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,
    /// The number of the stream, in hexadecimal [default: a random one]
    #[arg(long, value_name = "HEX", value_parser = stream_id)]
    pub(crate) stream_id: Option<u64>,
    /// Use this network interface; given several times, one for each -o
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Vec<String>,
    /// How far multicast packets go: 0 stays on this machine, 1 on this network, more crosses routers
    #[arg(
        long,
        value_name = "HOPS",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=255),
    )]
    pub(crate) ttl: u32,
}

/// Options of `decode` for a stream.
#[derive(Debug, Args)]
#[command(next_help_heading = "Live streams")]
pub(crate) struct Receive {
    /// Receive a live stream; without this, a stream is known by its first packet, and by udp://
    #[arg(long)]
    pub(crate) stream: bool,
    /// Take only packets that are sealed with the key in this file
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase")]
    pub(crate) key_file: Option<PathBuf>,
    /// Refuse sealed packets from a network that are older, or from further in the future, by the clocks of both
    /// ends: they may be a recording; any takes them [default: 10]
    #[arg(long, value_name = "SECONDS|any", value_parser = max_age)]
    pub(crate) max_age: Option<MaxAge>,
    /// Wait no longer for a lost packet, from when a later one came; none waits as long as repair packets may mend it
    /// [default: 900, and for 60 later packets, from a network to a pipe; otherwise none]
    #[arg(long, alias = "deadline-ms", value_name = "MS|none", value_parser = latency)]
    pub(crate) latency: Option<Latency>,
    /// Give a lost packet up when so many later ones were sent
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) deadline_packets: Option<u32>,
    /// What stands for packets that are lost for good: nothing, zeros, or the end [default: skip]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) gap: Option<Gap>,
    /// End when the stream is silent for so long; 0 waits for ever [default: 10000 for UDP, 0 for a pipe]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(..=86_400_000))]
    pub(crate) idle_ms: Option<u32>,
    /// End when nothing comes for so long at the beginning [default: wait for ever]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=86_400_000))]
    pub(crate) wait_ms: Option<u32>,
    /// From the network: when a stream is over, receive the sender's next one, into the same output
    #[arg(long, conflicts_with = "stream_id")]
    pub(crate) follow: bool,
    /// Print statistics every second on standard error
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) stats: Option<Stats>,
    /// Keep statistics in this file, for Prometheus (the textfile collector of node_exporter): it is renewed every 5
    /// seconds, with --stats every second, and stays at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,
    /// Receive the stream with this number, in hexadecimal [default: the first one that comes]
    #[arg(long, value_name = "HEX", value_parser = stream_id)]
    pub(crate) stream_id: Option<u64>,
    /// Use this network interface
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    /// Send nothing back: a sender with --rate auto then keeps to 1/6
    #[arg(long)]
    pub(crate) no_reports: bool,
}

impl Receive {
    /// Tells whether the options say that the input is a live stream.
    pub(crate) fn is_told(&self) -> bool {
        self.stream || self.key_file.is_some()
    }

    /// `is_live`: the stream comes from a network, and somebody may watch the output. `key`: the key that opens
    /// packets.
    pub(crate) fn options(&self, is_network: bool, is_live: bool, key: Option<StreamKey>) -> ReceiveOptions {
        let milliseconds = |ms: u32| Duration::from_millis(ms.into());
        ReceiveOptions {
            stream_id: self.stream_id,
            opening: key.map(|key| Opening { key, max_age: self.max_age.unwrap_or(MaxAge(Some(MAX_AGE))).0 }),
            deadline: match self.latency {
                Some(Latency(latency)) => latency.map(|after| Deadline { after, packets: 0 }),
                None => (is_live && self.deadline_packets.is_none()).then_some(Deadline::LIVE),
            },
            deadline_packets: self.deadline_packets,
            gaps: self.gap.map_or(GapPolicy::Skip, GapPolicy::from),
            idle: match self.idle_ms {
                Some(0) => None,
                Some(ms) => Some(milliseconds(ms)),
                None => is_network.then_some(NETWORK_IDLE),
            },
            wait: self.wait_ms.map(milliseconds),
            follow: self.follow,
            reports: !self.no_reports,
            tell_every: self.stats.map(|_| STATS).or(self.metrics.as_ref().map(|_| METRICS)),
        }
    }

    pub(crate) fn interface(&self) -> Interface {
        Interface { name: self.interface.clone(), ..Interface::default() }
    }
}

impl Send {
    /// `payload`: the value of `auto`. `sealing`: the key and cipher of packets.
    pub(crate) fn options(&self, payload: u16, is_network: bool, sealing: Option<Sealing>) -> SendOptions {
        SendOptions {
            latency: match self.latency {
                Some(Latency(latency)) => latency,
                None => is_network.then_some(NETWORK_LATENCY),
            },
            stream_id: self.stream_id,
            window: self.window,
            block: self.block,
            payload: self.packet.0.unwrap_or(payload),
            profile: self.profile.into(),
            ratio: self.ratio(),
            reports: self.reports(is_network),
            flush: Duration::from_millis(self.flush_ms.into()),
            mbps: self.mbps,
            sealing,
            impairment: self.impair.clone(),
            tell_every: self.metrics.as_ref().map(|_| METRICS),
        }
    }

    /// The ratio as long as nobody reports; that in a file is read later.
    fn ratio(&self) -> Ratio {
        match self.rate {
            Some(Rate::Fixed(ratio)) => ratio,
            _ => SendOptions::default().ratio,
        }
    }

    /// The bounds of a rate that follows the loss.
    fn reports(&self, is_network: bool) -> Option<RateBounds> {
        match self.rate {
            Some(Rate::Auto(bounds)) => Some(bounds),
            None => is_network.then(RateBounds::default),
            _ => None,
        }
    }

    /// The network interface of the way with this number.
    pub(crate) fn interface(&self, nth: usize) -> Interface {
        let name = if self.interface.len() > 1 { self.interface.get(nth) } else { self.interface.first() };
        Interface { name: name.cloned(), hops: self.ttl }
    }
}

/// The profiles, with a word on each.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// Protects the whole window with constant work for each packet
    Bounded,
    /// As Siamese: the whole window, work grows with it
    Classic,
    /// As Siamese over independent blocks: less work, and a burst of a block's repair packets kills it
    ClassicBlocks,
    /// Independent Reed-Solomon sets, interleaved over the window
    Blocks,
}

impl Kind {
    /// Tells whether the window slides.
    pub(crate) fn slides(self) -> bool {
        matches!(self, Kind::Bounded | Kind::Classic)
    }
}

impl From<Kind> for Profile {
    fn from(kind: Kind) -> Profile {
        match kind {
            Kind::Bounded => Profile::Bounded,
            Kind::Classic => Profile::Classic,
            Kind::ClassicBlocks => Profile::ClassicBlocks,
            Kind::Blocks => Profile::Blocks,
        }
    }
}

/// How long packets stay protected. `None`: for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latency(pub(crate) Option<Duration>);

fn latency(text: &str) -> Result<Latency, String> {
    match (text, text.parse()) {
        ("none", _) => Ok(Latency(None)),
        (_, Ok(ms)) if (1..=MOST_LATENCY).contains(&ms) => Ok(Latency(Some(Duration::from_millis(ms)))),
        _ => Err(format!("write none, or a number of milliseconds from 1 to {MOST_LATENCY}")),
    }
}

/// Most seconds that the time of a packet may differ. `None`: any number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxAge(pub(crate) Option<u32>);

fn max_age(text: &str) -> Result<MaxAge, String> {
    match (text, text.parse()) {
        ("any", _) => Ok(MaxAge(None)),
        (_, Ok(seconds)) if (1..=MOST_AGE).contains(&seconds) => Ok(MaxAge(Some(seconds))),
        _ => Err(format!("write any, or a number of seconds from 1 to {MOST_AGE}")),
    }
}

/// The output in place of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gap {
    /// Go on behind it
    Skip,
    /// Write zeros, a full packet's for each
    Zero,
    /// Stop, also where the beginning of a file or pipe is missing
    Fail,
}

impl From<Gap> for GapPolicy {
    fn from(gap: Gap) -> GapPolicy {
        match gap {
            Gap::Skip => GapPolicy::Skip,
            Gap::Zero => GapPolicy::Zero,
            Gap::Fail => GapPolicy::Fail,
        }
    }
}

/// How running statistics are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stats {
    /// A line of words
    Text,
    /// A JSON object
    Json,
}

/// Payload bytes of a packet. `None`: as many as pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet(pub(crate) Option<u16>);

pub(crate) fn packet(text: &str) -> Result<Packet, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Packet(None)),
        (_, Ok(bytes)) => Ok(Packet(Some(bytes))),
        _ => Err("write auto, or a number of bytes from 16 to 65535".to_owned()),
    }
}

/// `1/6` is one repair packet for six source packets.
pub(crate) fn ratio(text: &str) -> Result<Ratio, String> {
    let parsed = text.split_once('/').and_then(|(repair, source)| {
        let number = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        Ratio::new(number(repair)?, number(source)?)
    });
    parsed
        .ok_or_else(|| "write R/S, repair packets for source packets, each 1 to 65535, as in 1/6".to_owned())
}

/// The number of repair packets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rate {
    /// Stays the same.
    Fixed(Ratio),
    /// Follows the loss between these bounds.
    Auto(RateBounds),
    /// Follows this file.
    File(PathBuf),
}

fn rate(text: &str) -> Result<Rate, String> {
    if let Some(file) = text.strip_prefix('@') {
        return if file.is_empty() {
            Err("write @FILE, a file with R/S".to_owned())
        } else {
            Ok(Rate::File(file.into()))
        };
    }
    let Some(rest) = text.strip_prefix("auto") else { return ratio(text).map(Rate::Fixed) };
    if rest.is_empty() {
        return Ok(Rate::Auto(RateBounds::default()));
    }
    let bounds = rest.strip_prefix(':').and_then(|bounds| bounds.split_once(".."));
    let (least, most) =
        bounds.ok_or_else(|| "write auto, or auto:R/S..R/S, as in auto:1/50..1/2".to_owned())?;
    let bounds = RateBounds::new(ratio(least)?, ratio(most)?);
    bounds.map(Rate::Auto).ok_or_else(|| {
        format!("the first bound is at most the second, and that at most {}/1", RateBounds::MOST)
    })
}

fn stream_id(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let id = u64::from_str_radix(text, 16).ok().filter(|_| digits);
    id.ok_or_else(|| "a stream's number has 1 to 16 hexadecimal digits".to_owned())
}

pub(crate) fn rate_limit(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok();
    rate.filter(|r| RATES.contains(r))
        .ok_or_else(|| "a rate is a number from 0.001 to 1000000, in million bits a second".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn what_is_not_said_is_as_the_library_has_it() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            send: Send,
        }
        let send = Line::parse_from(["fec"]).send;
        let options = send.options(SendOptions::default().payload, false, None);
        assert_eq!(format!("{options:?}"), format!("{:?}", SendOptions::default()));
        assert_eq!((send.interface(0).name, send.interface(0).hops), (None, Interface::default().hops));
    }

    #[test]
    fn values_are_read_strictly() {
        assert_eq!(ratio("1/6"), Ok(Ratio::new(1, 6).unwrap()));
        for bad in ["", "1", "0/6", "1/0", "1/6/2", "-1/6", "+1/6", "17%", "65536/1"] {
            assert!(ratio(bad).is_err(), "{bad}");
        }
        assert_eq!(rate("2/7"), Ok(Rate::Fixed(Ratio::new(2, 7).unwrap())));
        assert_eq!(rate("@rate"), Ok(Rate::File("rate".into())));
        assert_eq!(rate("auto"), rate("auto:1/50..1/2"));
        for bad in [
            "@",
            "auto:",
            "auto:1/6",
            "auto:1/2..1/6",
            "auto:1/6..7/1",
            "auto:1/6...1/2",
            "Auto",
            "automatic",
        ] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        assert_eq!(stream_id("00ff"), Ok(255));
        for bad in ["", "+1", "x", "11111111111111111"] {
            assert!(stream_id(bad).is_err(), "{bad}");
        }
        for bad in ["0", "-1", "nan", "inf", "x", "1e9"] {
            assert!(rate_limit(bad).is_err(), "{bad}");
        }
    }
}
