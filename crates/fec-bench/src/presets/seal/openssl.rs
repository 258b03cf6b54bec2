//! The same ciphers by OpenSSL, measured by its own program where it is installed.
//!
//! OpenSSL's measurement encrypts and authenticates without a break, with one key and without nonces and tags between:
//! their cost is nothing beside 64 KiB.

use super::ciphers::{CHUNKS, ChunkWork};
use crate::lab::Lab;
use crate::slices::Slices;
use crate::stats::Summary;
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
            "OpenSSL: {version}, `openssl speed -elapsed -evp CIPHER -bytes {CHUNK} -seconds 1`"
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

/// Both in turn, as often as time allows.
fn row(lab: &mut Lab, table: &mut FigureTable, cipher: Cipher) -> Result<(), String> {
    let Some(share) = lab.share(&format!("{}, beside OpenSSL", cipher.name())) else { return Ok(()) };
    let mut work = ChunkWork::new(cipher, CHUNK, false);
    let mut own = Slices::calibrated(false, &mut || work.seal());
    let mut theirs = Vec::new();
    let rounds = (share.as_secs_f64() / (RUN + OWN).as_secs_f64()) as u32;
    for _ in 0..rounds.clamp(1, MOST) {
        let began = Instant::now();
        while began.elapsed() < OWN && !interrupted() {
            own.take(&mut || work.seal());
        }
        let text = print(&[
            "speed",
            "-mr",
            "-elapsed",
            "-evp",
            cipher.name(),
            "-bytes",
            &CHUNK.to_string(),
            "-seconds",
            "1",
        ])?;
        theirs.push(CHUNK as f64 / rate(&text, cipher)?);
    }
    own.forget_first();
    let (Some(own), Some(theirs)) = (lab.note(&own), Summary::of(theirs, 0)) else { return Ok(()) };
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

/// The program's output, or the reason why there is none.
fn print(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("openssl");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
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
    let out = child.stdout.take().ok_or("openssl has no output")?;
    out.take(MOST_PRINTED).read_to_string(&mut text).map_err(|_| "openssl printed no text")?;
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

/// Bytes per second, from the output of `-mr`: a line `+H:65536`, and a line `+F:25:AES-256-GCM:2180972544.00`, each
/// exactly once.
fn rate(text: &str, cipher: Cipher) -> Result<f64, String> {
    let lines = |start: &'static str| text.lines().filter_map(move |line| line.strip_prefix(start));
    let mut lengths = lines("+H:");
    let mut figures = lines("+F:");
    let (length, figure) = (lengths.next(), figures.next());
    let parsed = match (figure.map(|figure| figure.split(':').collect::<Vec<_>>()).as_deref(), figures.next())
    {
        (Some([_, name, rate]), None) if name.eq_ignore_ascii_case(cipher.name()) => rate.parse::<f64>().ok(),
        _ => None,
    };
    let is_ours = lengths.next().is_none() && length.and_then(|length| length.parse().ok()) == Some(CHUNK);
    let rate = parsed.filter(|rate| is_ours && rate.is_finite() && *rate >= 1.0);
    rate.ok_or_else(|| "openssl printed something else than it should".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_openssl_prints_is_a_rate() {
        let right = "+H:65536\n+F:25:AES-256-GCM:2180972544.00\n";
        assert_eq!(rate(right, Cipher::Aes256Gcm), Ok(2_180_972_544.0));
        let other = "+H:65536\n+F:25:ChaCha20-Poly1305:2271674368.00\n";
        assert_eq!(rate(other, Cipher::ChaCha20Poly1305), Ok(2_271_674_368.0));
        for wrong in [
            "",
            other,
            "+H:65536\n",
            "+F:25:AES-256-GCM:2180972544.00\n",
            "+H:16384\n+F:25:AES-256-GCM:2180972544.00\n",
            "+H:65536:16384\n+F:25:AES-256-GCM:2180972544.00\n",
            "+H:65536\n+F:25:AES-256-GCM:2180972544.00:1\n",
            "+H:65536\n+F:25:AES-256-GCM:inf\n",
            "+H:65536\n+F:25:AES-256-GCM:NaN\n",
            "+H:65536\n+F:25:AES-256-GCM:-5\n",
            "+H:65536\n+F:25:AES-256-GCM:0\n",
            "+H:65536\n+F:25:AES-256-GCM:fast\n",
            "+H:65536\n+F:25:AES-256-GCM:1e9\n+F:25:AES-256-GCM:1e9\n",
            "+H:65536\n+H:65536\n+F:25:AES-256-GCM:1e9\n",
        ] {
            assert!(rate(wrong, Cipher::Aes256Gcm).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_version_is_a_line() {
        assert_eq!(version("OpenSSL 3.0.19 27 Jan 2026\n"), Ok("OpenSSL 3.0.19 27 Jan 2026"));
        for wrong in ["", "\n", "a\nb\n", "\u{1b}[31m", &"x".repeat(121)] {
            assert!(version(wrong).is_err(), "{wrong:?}");
        }
    }
}
