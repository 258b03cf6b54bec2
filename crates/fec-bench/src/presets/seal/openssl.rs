//! The same ciphers by OpenSSL, measured by its own program where it is installed.
//!
//! OpenSSL's measurement encrypts and authenticates without a break, with one key and without nonces and tags between:
//! their cost is nothing beside 64 KiB. Both are told by the processor's time, in turn: other work costs rounds, and
//! moves neither.

use super::ciphers::{CHUNKS, ChunkWork};
use crate::lab::Lab;
use crate::slices::Slices;
use crate::stats::Summary;
use crate::system::TELLS_DISTURBANCES;
use crate::table::{FigureTable, figure, key};
use fec_base::program::interrupt::interrupted;
use fec_keys::cipher::{Cipher, ENGINE};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CHUNK: usize = CHUNKS[0];

/// Number of figures.
pub(super) const FIGURES: usize = Cipher::ALL.len();

/// The time of a run of the program, and the time after which it is killed.
const RUN: Duration = Duration::from_millis(1100);
const LONGEST: Duration = Duration::from_secs(10);

/// Runs at most: more make no median better.
const MOST: u32 = 7;

/// The least share of its time that a run has a core in an undisturbed round, and the least such rounds. (OpenSSL reads
/// a clock of ten milliseconds.)
const SHARE: f64 = 0.9;
const FEWEST: usize = 3;

/// Time of this library's work before and after each run.
const OWN: Duration = Duration::from_millis(100);

/// Most bytes read of its output.
const MOST_PRINTED: u64 = 16 << 10;

pub(super) fn table(lab: &mut Lab, notes: &mut Vec<String>) -> FigureTable {
    let columns = [
        key("cipher", "cipher"),
        figure("time_us", "median µs a chunk", 2),
        figure("megabytes_per_second", "MB/s", 0),
        figure("openssl_us", "OpenSSL's", 2),
        figure("openssl_megabytes_per_second", "MB/s", 0),
        figure("ratio", "against OpenSSL", 3),
    ];
    let title = format!("Sealing chunks of {} KiB, one thread: {ENGINE} and OpenSSL in turn", CHUNK >> 10);
    let mut table = FigureTable::new("openssl", title, columns);
    match print(&["version"]).and_then(|text| version(&text).map(str::to_owned)) {
        Ok(version) => notes.push(format!(
            "OpenSSL: {version}{}, `openssl speed -evp CIPHER -bytes {CHUNK} -seconds 1`; times of both are those on the core",
            vaes(&version)
        )),
        Err(why) => {
            notes.push(format!("no comparison with OpenSSL: {why}"));
            return table;
        }
    }
    for cipher in Cipher::ALL {
        if let Err(why) = row(lab, &mut table, cipher) {
            notes.push(format!("no comparison with OpenSSL's {}: {why}", cipher.name()));
        }
    }
    table
}

/// Both in turn, as often as time allows. Rounds in which either had no core for long do not count, where there are
/// enough others.
fn row(lab: &mut Lab, table: &mut FigureTable, cipher: Cipher) -> Result<(), String> {
    let Some(share) = lab.share(&format!("{}, beside OpenSSL", cipher.name())) else { return Ok(()) };
    let mut work = ChunkWork::new(cipher, CHUNK, false);
    let calibrated = Slices::calibrated(false, &mut || work.seal());
    let mut rounds = Vec::new();
    let count = (share.as_secs_f64() / (RUN + OWN).as_secs_f64()) as u32;
    for _ in 0..count.clamp(1, MOST) {
        let (mut own, began) = (calibrated.clone(), Instant::now());
        while began.elapsed() < OWN && !interrupted() {
            own.take(&mut || work.seal());
        }
        let bytes = CHUNK.to_string();
        let arguments = ["speed", "-mr", "-evp", cipher.name(), "-bytes", &bytes, "-seconds", "1"];
        rounds.push((own, run_of(&print(&arguments)?, cipher)?));
    }
    let quiet: Vec<_> =
        rounds.iter().filter(|(own, theirs)| own.share().min(theirs.share) >= SHARE).collect();
    let is_disturbed = quiet.len() < FEWEST.min(rounds.len());
    let used: Vec<_> = if is_disturbed { rounds.iter().collect() } else { quiet };
    let discarded = (rounds.len() - used.len()) as u32;
    let figure = |of: fn(&(Slices, Run)) -> Option<f64>| -> Option<Summary> {
        let times = used.iter().filter_map(|round| of(round)).collect();
        let unfiltered = !TELLS_DISTURBANCES;
        Some(Summary { on_core: is_disturbed, unfiltered, ..Summary::of(times, discarded)? })
    };
    rounds.iter().for_each(|(own, _)| {
        lab.note(own);
    });
    let (own, theirs) =
        (figure(|(own, _)| own.on_core()), figure(|(_, theirs)| Some(CHUNK as f64 / theirs.rate)));
    let (Some(own), Some(theirs)) = (own, theirs) else { return Ok(()) };
    let rate = |summary: &Summary| CHUNK as f64 / 1e6 / summary.median;
    table.row([
        ("cipher", cipher.name().into()),
        ("time_us", own.scaled(1e6).into()),
        ("megabytes_per_second", rate(&own).into()),
        ("openssl_us", theirs.scaled(1e6).into()),
        ("openssl_megabytes_per_second", rate(&theirs).into()),
        ("ratio", (theirs.median / own.median).into()),
    ]);
    Ok(())
}

/// The words on the instructions for AES of several blocks at once: OpenSSL uses them for AES-GCM since 3.1, with
/// AVX-512.
fn vaes(version: &str) -> &'static str {
    let numbers = version.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = numbers.split('.').map_while(|number| number.parse::<u32>().ok());
    match (version.starts_with("OpenSSL "), numbers.next(), numbers.next()) {
        (true, Some(major), Some(minor)) if (major, minor) < (3, 1) => " (without VAES, which 3.1 brought)",
        (true, Some(_), Some(_)) => " (with VAES, where the processor has AVX-512)",
        _ => "",
    }
}

/// The program's output, or the reason why there is none.
fn print(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("openssl");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => "openssl is not installed".to_owned(),
        _ => format!("openssl does not start: {e}"),
    })?;
    // The program prints less than a pipe holds, and ends only then.
    let ended = wait(&mut child);
    if ended.is_err() {
        // Errors do not matter: a process that has ended already is as good, and nothing remains of either.
        let _ = child.kill();
        let _ = child.wait();
    }
    ended?;
    let mut text = String::new();
    let (out, errors) = child.stdout.take().zip(child.stderr.take()).ok_or("openssl has no output")?;
    // Its measurements go to one, and what follows from them to the other.
    let mut both = out.take(MOST_PRINTED).chain(errors.take(MOST_PRINTED));
    both.read_to_string(&mut text).map_err(|_| "openssl printed no text")?;
    Ok(text)
}

fn wait(child: &mut Child) -> Result<(), String> {
    let began = Instant::now();
    while began.elapsed() < LONGEST && !interrupted() {
        match child.try_wait().map_err(|e| format!("openssl is gone: {e}"))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("openssl ended with {status}")),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    Err(if interrupted() { "interrupted".to_owned() } else { "openssl did not end".to_owned() })
}

/// The version in the output: one line of printable characters.
fn version(text: &str) -> Result<&str, String> {
    let line = text.trim_end();
    let is_plain = |line: &&str| line.len() <= 120 && line.bytes().all(|c| matches!(c, b' '..=b'~'));
    Some(line)
        .filter(is_plain)
        .filter(|line| !line.is_empty())
        .ok_or_else(|| "openssl tells no version".to_owned())
}

/// A run of the program.
#[derive(Debug, PartialEq)]
struct Run {
    /// Bytes for each second on a core.
    rate: f64,
    /// The share of its time that it had a core.
    share: f64,
}

/// The run that the output of `-mr` tells: a line `+H:65536`, a line `+F:25:AES-256-GCM:2180972544.00`, and a line
/// `+R:33279:AES-256-GCM:0.990000` with the calls and the seconds on a core, each exactly once.
fn run_of(text: &str, cipher: Cipher) -> Result<Run, String> {
    let once = |start: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(start));
        lines.next().filter(|_| lines.next().is_none())
    };
    let number = |start: &str| match once(start)?.split(':').collect::<Vec<_>>()[..] {
        [_, name, number] if name.eq_ignore_ascii_case(cipher.name()) => number.parse::<f64>().ok(),
        _ => None,
    };
    let is_ours = once("+H:").and_then(|length| length.parse().ok()) == Some(CHUNK);
    let run = number("+F:").zip(number("+R:")).map(|(rate, share)| Run { rate, share });
    let run = run
        .filter(|run| is_ours && run.rate.is_finite() && run.rate >= 1.0 && (0.0..10.0).contains(&run.share));
    run.ok_or_else(|| "openssl printed something else than it should".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_openssl_prints_is_a_run() {
        let right =
            "+H:65536\n+F:25:AES-256-GCM:2180972544.00\n+DT:AES-256-GCM:1:65536\n+R:23684:AES-256-GCM:0.56\n";
        assert_eq!(run_of(right, Cipher::Aes256Gcm), Ok(Run { rate: 2_180_972_544.0, share: 0.56 }));
        let other = right.replace("AES-256-GCM", "ChaCha20-Poly1305");
        assert_eq!(run_of(&other, Cipher::ChaCha20Poly1305).map(|run| run.share), Ok(0.56));
        let lines: Vec<&str> = right.lines().collect();
        for left_out in [0, 1, 3] {
            let rest = lines.iter().enumerate().filter(|(nth, _)| *nth != left_out).map(|(_, line)| *line);
            let rest = rest.collect::<Vec<_>>().join("\n");
            assert!(run_of(&rest, Cipher::Aes256Gcm).is_err(), "{rest}");
            let twice = format!("{right}{}\n", lines[left_out]);
            assert!(run_of(&twice, Cipher::Aes256Gcm).is_err(), "{twice}");
        }
        for (what, by) in [
            ("65536", "16384"),
            ("+H:65536", "+H:65536:16384"),
            ("2180972544.00", "2180972544.00:1"),
            ("2180972544.00", "inf"),
            ("2180972544.00", "NaN"),
            ("2180972544.00", "-5"),
            ("2180972544.00", "0"),
            ("2180972544.00", "fast"),
            ("0.56", "-1"),
            ("0.56", "NaN"),
            ("0.56", "1e9"),
        ] {
            let wrong = right.replace(what, by);
            assert!(run_of(&wrong, Cipher::Aes256Gcm).is_err(), "{wrong}");
        }
        assert!(run_of(&other, Cipher::Aes256Gcm).is_err() && run_of("", Cipher::Aes256Gcm).is_err());
    }

    #[test]
    fn a_version_tells_what_it_can_do() {
        assert!(vaes("OpenSSL 3.0.19 27 Jan 2026").contains("without VAES"));
        assert!(vaes("OpenSSL 3.1.0 14 Mar 2023").contains("with VAES"));
        assert!(vaes("OpenSSL 4.0.3 1 Aug 2026").contains("with VAES"));
        assert_eq!((vaes("LibreSSL 3.3.6"), vaes("OpenSSL"), vaes("OpenSSL x.y")), ("", "", ""));
    }

    #[test]
    fn a_version_is_a_line() {
        assert_eq!(version("OpenSSL 3.0.19 27 Jan 2026\n"), Ok("OpenSSL 3.0.19 27 Jan 2026"));
        for wrong in ["", "\n", "a\nb\n", "\u{1b}[31m", &"x".repeat(121)] {
            assert!(version(wrong).is_err(), "{wrong:?}");
        }
    }
}
