//! The golden vectors in tests/golden, and what all of their tests need.

#![allow(dead_code, reason = "no test uses all of it")]

use fec_base::Class;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

/// The vectors of a file.
pub(crate) fn read(file: &str) -> Value {
    let bytes = std::fs::read(golden().join(file)).expect("the golden vectors are there");
    serde_json::from_slice(&bytes).expect("they are JSON")
}

pub(crate) fn str_of<'a>(vector: &'a Value, field: &str) -> &'a str {
    vector[field].as_str().unwrap_or_else(|| panic!("{vector} has no {field}"))
}

/// The payload that the vectors name by a seed and a length.
pub(crate) fn payload(seed: u64, len: usize) -> Vec<u8> {
    let mut x = seed;
    (0..len)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 56) as u8
        })
        .collect()
}

/// The exit code that the vectors name for a class.
pub(crate) fn exit_of(class: Class) -> i64 {
    match class {
        Class::Mendable => 1,
        Class::Usage => 2,
        Class::Lost => 3,
        Class::Io => 4,
        Class::Untrue => 5,
        Class::Refused => 6,
        Class::Cancelled => unreachable!("nobody ends it early"),
    }
}
