//! Types and parsers of values that several commands take.

use crate::units::size;

use clap::ValueEnum;
use fec_base::io::small;
use fec_base::roots::parse_root;
use fec_core::digest::{Digest, HashKind};
use fec_sidecar::Redundancy;
use fecfile::PayloadRange;
use std::io::Read;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hash {
    /// BLAKE3: the fastest
    Blake3,
    /// SHA-256: what the rest of the world has
    Sha256,
}

impl From<Hash> for HashKind {
    fn from(hash: Hash) -> HashKind {
        match hash {
            Hash::Blake3 => HashKind::Blake3,
            Hash::Sha256 => HashKind::Sha256,
        }
    }
}

/// Words without white space, with commas between.
pub(crate) fn words(text: &str) -> Result<String, String> {
    match text.split(',').any(|word| word.trim().contains(char::is_whitespace)) {
        true => Err("it has no spaces".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// `5%` is 0.05.
pub(super) fn per_cent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').ok_or("write per cent, as in 5%")?;
    match number.parse::<f64>() {
        Ok(number) if (0.0..=1000.0).contains(&number) => Ok(number / 100.0),
        _ => Err("per cent is a number like 5% or 2.5%, from 0 to 1000".into()),
    }
}

/// A number of shards.
pub(super) fn shards(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "it is a number of shards; for per cent there is -r, as in -r 60%".into())
}

/// Sets of a group.
pub(super) fn sets(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(sets) if sets > 0 => Ok(sets),
        Ok(_) | Err(_) => Err("it is a number of sets, not a size; --set-size is the size of each".into()),
    }
}

/// n = 100 and k = floor(100 / (1 + P)): at least P, in exact arithmetic.
pub(super) fn redundancy(text: &str) -> Result<(u16, u16), String> {
    let number = text.strip_suffix('%').ok_or_else(|| format!("write it with %, as in {text}%"))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits || whole.len() > 6 || fraction.len() > 6 {
        return Err("per cent is a number like 17% or 12.5%".into());
    }
    // P = numerator / denominator.
    let digits: u64 = format!("{whole}{fraction}").parse().map_err(|_| "not a number".to_owned())?;
    let denominator = 100 * 10u64.pow(fraction.len() as u32);
    let k = 100 * denominator / (denominator + digits);
    if k == 0 {
        return Err("more than 9900% leaves no original shard among 100; use -k and -m".into());
    }
    Ok((k as u16, (100 - k) as u16))
}

/// Per cent as in `16%` or `12.5%`, of what a sidecar protects.
pub(super) fn sidecar_redundancy(text: &str) -> Result<Redundancy, String> {
    let wrong = "write per cent between 0.01% and 12700%, as in 16%";
    hundredths(text, wrong).and_then(|parts| Redundancy::new(parts).ok_or_else(|| wrong.to_owned()))
}

/// Per cent of all bytes, in parts of 10,000.
pub(super) fn sample(text: &str) -> Result<u32, String> {
    let wrong = "write per cent between 0.01% and 100%, as in 5%";
    let parts = hundredths(text, wrong)?;
    if (1..=10_000).contains(&parts) { Ok(parts) } else { Err(wrong.to_owned()) }
}

/// A share of which something is left: `99%`, `0.5%`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let wrong = "write per cent between 0.01% and 99.99%, as in 1%";
    let parts = hundredths(text, wrong)?;
    if (1..10_000).contains(&parts) { Ok(f64::from(parts) / 10_000.0) } else { Err(wrong.to_owned()) }
}

/// Hundredths of a per cent.
fn hundredths(text: &str, wrong: &str) -> Result<u32, String> {
    let wrong = || wrong.to_owned();
    let number = text.strip_suffix('%').ok_or_else(|| match hundredths(&format!("{text}%"), "") {
        Ok(1..) => format!("write it with %, as in {text}%"),
        _ => wrong(),
    })?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 2 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u32 = whole.parse().map_err(|_| wrong())?;
    let fraction: u32 = format!("{fraction:0<2}").parse().map_err(|_| wrong())?;
    whole.checked_mul(100).map(|parts| parts + fraction).ok_or_else(wrong)
}

/// 64 hexadecimal digits, or the first line of a file.
pub(super) fn root(text: &str) -> Result<Digest, String> {
    let line = match text.strip_prefix('@') {
        None => text.to_owned(),
        Some(path) => {
            let content = read_root(Path::new(path)).map_err(|e| format!("read {path}: {e}"))?;
            String::from_utf8_lossy(&content).split_whitespace().next().unwrap_or("").to_owned()
        }
    };
    parse_root(line.as_bytes()).ok_or_else(|| match text {
        file if Path::new(file).is_file() => format!("a root in a file is written --root @{file}"),
        _ => "a root is 64 hexadecimal digits, or @FILE with them".to_owned(),
    })
}

/// The beginning of a file that holds a root.
fn read_root(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    small::open(path)?.take(4096).read_to_end(&mut content)?;
    Ok(content)
}

/// `A..B`, `A..+N`, `A..` or `..B`, each number with K, M, G or none.
pub(super) fn payload_range(text: &str) -> Result<PayloadRange, String> {
    let wrong = || "write A..B, A..+N, A.. or ..B, as in 4K..8K".to_owned();
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| if text == "0" { Ok(0) } else { size(text) };
    let start = if start.is_empty() { 0 } else { number(start)? };
    let end = match (end.strip_prefix('+'), end) {
        (_, "") => None,
        (Some(count), _) => Some(start.checked_add(number(count)?).ok_or_else(wrong)?),
        (None, end) => Some(number(end)?),
    };
    if end.is_some_and(|end| end < start) {
        return Err("it ends before it begins".to_owned());
    }
    Ok(PayloadRange { start, end })
}

/// A user, and a group if one is named: numbers, or names as the files of the system have them.
pub(crate) fn owner(text: &str) -> Result<(u32, Option<u32>), String> {
    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (text, None),
    };
    let user = number_of(user, "user", Path::new("/etc/passwd"))?;
    let group = group.map(|group| number_of(group, "group", Path::new("/etc/group"))).transpose()?;
    Ok((user, group))
}

/// The number of a user or group. `file` has a line for each: the name, the password and the number, between colons.
fn number_of(text: &str, kind: &str, file: &Path) -> Result<u32, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        // The last number stands for nobody.
        let number = text.parse().ok().filter(|number| *number != u32::MAX);
        return number.ok_or_else(|| format!("there is no such {kind}"));
    }
    let lines = std::fs::read(file).unwrap_or_default();
    let lines = String::from_utf8_lossy(&lines);
    let named = lines.lines().find_map(|line| line.strip_prefix(text)?.strip_prefix(':')?.split(':').nth(1));
    let number = named.and_then(|number| number.parse().ok()).filter(|_| !text.is_empty());
    number.ok_or_else(|| format!("{} has no {kind} {text:?}; a number works too", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redundancy_is_at_least_what_was_asked_for() {
        let expected = [("17%", 85), ("200%", 33), ("0%", 100), ("12.5%", 88), ("100%", 50), ("9900%", 1)];
        for (text, k) in expected {
            assert_eq!(redundancy(text), Ok((k, 100 - k)), "{text}");
        }
        for bad in ["17", "%", "-1%", "1e3%", "9901%", "nan%", "1.2.3%"] {
            assert!(redundancy(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn owners_are_numbers_or_names() {
        assert_eq!(owner("1000"), Ok((1000, None)));
        assert_eq!(owner("1000:7"), Ok((1000, Some(7))));
        let temporary = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            temporary.path(),
            b"root:x:0:0:\xff::\nanna:x:1001:100::/:\nanna-maria:x:7:7\nbroken:x\n",
        )
        .unwrap();
        let number = |text: &str| number_of(text, "user", temporary.path());
        assert_eq!(
            [number("root"), number("anna"), number("anna-maria"), number("12")],
            [Ok(0), Ok(1001), Ok(7), Ok(12)]
        );
        for none in ["", "ann", "broken", "nobody", "x", "4294967295", "4294967296", "-1", "+1"] {
            number(none).unwrap_err();
        }
        for bad in ["", ":", "1:", ":1", "1:2:3"] {
            owner(bad).unwrap_err();
        }
    }

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        assert_eq!(size("4M"), Ok(4 << 20));
        assert_eq!(size("64KiB"), Ok(64 << 10));
        assert_eq!((size("3MiB"), size("3MB"), size("3 kB")), (Ok(3 << 20), Ok(3_000_000), Ok(3000)));
        assert_eq!(size("1"), Ok(1));
        for bad in ["", "M", "4X", "0", "-1", "99999999999G", "1.5M"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn roots_have_64_digits() {
        assert!(root(&"ab".repeat(32)).is_ok());
        for bad in ["", "ab", &"ab".repeat(33), &"xy".repeat(32), "@/does/not/exist"] {
            assert!(root(bad).is_err(), "{bad}");
        }
    }
}
