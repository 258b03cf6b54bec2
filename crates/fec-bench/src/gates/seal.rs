//! Sealing: the ciphers against publications and another implementation, and age files that others made or that go
//! there and back.

use super::{age_files, ciphers};
use fec_base::program::interrupt::interrupted;
use fec_keys::cipher::{Cipher, ENGINE};

/// Name, right ones and total of each gate, until a signal comes.
pub(super) fn right() -> Vec<(String, u64, u64)> {
    let mut gates = Vec::new();
    let mut add = |name: String, (right, of): (u64, u64)| gates.push((name, right, of));
    for cipher in Cipher::ALL {
        add(format!("published vectors of {}, {ENGINE}", cipher.name()), ciphers::published(cipher));
        add(format!("vectors of Wycheproof of {}, {ENGINE}", cipher.name()), ciphers::of_wycheproof(cipher));
        // An engine compared with itself would always be right.
        if ENGINE != ciphers::OTHER {
            for (what, right) in [
                ("lengths to 300 and around 64 KiB", ciphers::lengths as fn(Cipher) -> (u64, u64)),
                ("random texts", ciphers::random),
            ] {
                if !interrupted() {
                    add(format!("{what}, as {} has {}", ciphers::OTHER, cipher.name()), right(cipher));
                }
            }
        }
    }
    add("age files that others made".to_owned(), age_files::of_others());
    for kind in age_files::Kind::ALL {
        if !interrupted() {
            add(format!("age files there and back, {}", kind.name()), age_files::trips(kind));
        }
    }
    gates
}
