//! The ciphers on messages of text, of associated data, and of as much of either; what a key costs stands apart.

use crate::counters;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::random::Mmix;
use crate::table::{ESTIMATED_CYCLES, FigureTable, estimated_cycles, figure, key};
use fec_keys::cipher::{AeadKey, Cipher, ENGINE, KEY, NONCE, TAG};
use std::hint::black_box;

/// Bytes of messages, text and associated data together.
const LENGTHS: [usize; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];

/// Number of figures.
pub(super) const FIGURES: usize = LENGTHS.len() + 1;

/// The parts of a message.
#[derive(Clone, Copy)]
enum Mix {
    Text,
    Associated,
    Both,
}

impl Mix {
    const ALL: [Mix; 3] = [Mix::Text, Mix::Associated, Mix::Both];

    fn name(self) -> &'static str {
        match self {
            Mix::Text => "text",
            Mix::Associated => "associated data",
            Mix::Both => "half of each",
        }
    }

    /// Bytes of text in a message.
    fn text(self, len: usize) -> usize {
        match self {
            Mix::Text => len,
            Mix::Associated => 0,
            Mix::Both => len / 2,
        }
    }
}

pub(super) fn table(lab: &mut Lab) -> Result<FigureTable> {
    let columns = [
        key("cipher", "cipher"),
        key("bytes", "bytes"),
        key("mix", "of"),
        figure("time_ns", "median ns", 0),
        figure("megabytes_per_second", "MB/s", 0),
        estimated_cycles(),
    ];
    let mut table = FigureTable::new(
        "messages",
        format!("Sealing messages, one thread, by {ENGINE}, with a ready key; and making a key"),
        columns.into_iter().chain(counters::columns()),
    );
    for len in LENGTHS {
        rows(lab, &mut table, len)?;
    }
    keys(lab, &mut table);
    Ok(table)
}

/// All ciphers and mixes of messages of one length, in turn.
fn rows(lab: &mut Lab, table: &mut FigureTable, len: usize) -> Result<()> {
    let ways = Cipher::ALL.map(|cipher| Mix::ALL.map(|mix| (cipher, mix)));
    let ways = ways.as_flattened();
    let mut works: Vec<Message> = ways.iter().map(|(cipher, mix)| Message::new(*cipher, *mix, len)).collect();
    let measured = {
        let mut calls: Vec<_> = works.iter_mut().map(|work| move || work.seal()).collect();
        let mut calls: Vec<_> = calls.iter_mut().map(|call| call as &mut dyn FnMut()).collect();
        lab.race(&format!("messages of {} KiB", len >> 10), false, &mut calls)
    };
    works.iter_mut().try_for_each(Message::check)?;
    let Some(measured) = measured else { return Ok(()) };
    for ((cipher, mix), measured) in ways.iter().zip(&measured) {
        let seconds = measured.time.median;
        let cells = [
            ("cipher", cipher.name().into()),
            ("bytes", len.into()),
            ("mix", mix.name().into()),
            ("time_ns", measured.time.scaled(1e9).into()),
            ("megabytes_per_second", (len as f64 / 1e6 / seconds).into()),
            (ESTIMATED_CYCLES, lab.estimated_cycles(len as u64, seconds).into()),
        ];
        table.row(cells.into_iter().chain(counters::cells(&measured.counts, len as u64)));
    }
    Ok(())
}

/// Rows of keys: the cost before the first message.
fn keys(lab: &mut Lab, table: &mut FigureTable) {
    let mut calls =
        Cipher::ALL.map(|cipher| move || drop(black_box(AeadKey::new(cipher, black_box(&[7; KEY])))));
    let mut calls: Vec<_> = calls.iter_mut().map(|call| call as &mut dyn FnMut()).collect();
    let Some(measured) = lab.race("keys of ciphers", false, &mut calls) else { return };
    for (cipher, measured) in Cipher::ALL.iter().zip(&measured) {
        table.row([
            ("cipher", cipher.name().into()),
            ("bytes", 0_usize.into()),
            ("mix", "a key is made".into()),
            ("time_ns", measured.time.scaled(1e9).into()),
        ]);
    }
}

/// A message that is sealed again and again in place.
struct Message {
    cipher: Cipher,
    key: AeadKey,
    text: Vec<u8>,
    associated: Vec<u8>,
    tag: [u8; TAG],
    calls: u64,
}

impl Message {
    fn new(cipher: Cipher, mix: Mix, len: usize) -> Message {
        let mut text = vec![0; mix.text(len)];
        let mut associated = vec![0; len - text.len()];
        Mmix(1).fill(&mut text);
        Mmix(2).fill(&mut associated);
        Message { cipher, key: AeadKey::new(cipher, &[7; KEY]), text, associated, tag: [0; TAG], calls: 0 }
    }

    fn nonce(&self) -> [u8; NONCE] {
        let mut nonce = [0; NONCE];
        nonce[..8].copy_from_slice(&self.calls.to_le_bytes());
        nonce
    }

    fn seal(&mut self) {
        self.calls += 1;
        self.tag = self.key.seal(&self.nonce(), black_box(&self.associated), &mut self.text);
    }

    /// Checks that the last message opens, and with another byte of associated data does not.
    ///
    /// # Errors
    /// [`Error::NotAuthentic`].
    fn check(&mut self) -> Result<()> {
        self.seal();
        let mut sealed = [&self.text[..], &self.tag].concat();
        let mut other = (sealed.clone(), self.associated.clone());
        other.1.push(0);
        let opens = self.key.open(&self.nonce(), &self.associated, &mut sealed).is_ok();
        let forged = self.key.open(&self.nonce(), &other.1, &mut other.0).is_ok();
        if opens && !forged { Ok(()) } else { Err(Error::NotAuthentic(self.cipher.name())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_has_its_bytes_and_is_authentic() {
        for cipher in Cipher::ALL {
            for mix in Mix::ALL {
                let mut message = Message::new(cipher, mix, 4 << 10);
                assert_eq!(message.text.len() + message.associated.len(), 4 << 10);
                assert_eq!(message.text.len(), mix.text(4 << 10));
                message.seal();
                message.check().expect("it is authentic");
                message.tag[0] ^= 1;
                let sealed = [&message.text[..], &message.tag].concat();
                assert!(
                    message.key.open(&message.nonce(), &message.associated, &mut sealed.clone()).is_err()
                );
            }
        }
    }
}
