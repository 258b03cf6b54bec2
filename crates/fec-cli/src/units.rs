//! Sizes and times as people write them.

use std::time::Duration;

/// `4M` or `4MiB` is 4 × 2^20, `4MB` is 4 × 10^6, and a bare number counts bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err("a size is a number of bytes, or has a unit: 64KiB (or 64K), 4MiB, 3MB, 1GiB".into()),
    };
    let number: u64 = number.parse().map_err(|_| "a size starts with a whole number".to_owned())?;
    let bytes = number.checked_mul(factor).filter(|b| *b > 0);
    bytes.ok_or_else(|| "a size is at least 1 and below 2^64".into())
}

/// A time, as in `30d` or `1h 30min`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(_) => Err(format!("write it with a unit, as in {text}d, {text}h or {text}min")),
        Err(_) => humantime::parse_duration(text).map_err(|e| e.to_string()),
    }
}
