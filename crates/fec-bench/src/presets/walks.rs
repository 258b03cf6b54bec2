//! The loops of the stream code: the walks of a sum along packets, in each cache and in memory.

use crate::counters;
use crate::lab::{Lab, megabits};
use crate::random::Mmix;
use crate::rows::{Level, filled};
use crate::table::{ESTIMATED_CYCLES, FigureTable, estimated_cycles, figure, key};
use fec_core::block::ShardBuf;
use fec_core::gf256::kernel::{Backend, Walk};
use std::cell::Cell;

/// Bytes of a packet, and of its row, which begins on a cache line.
const PACKET: usize = 1400;
const ROW: usize = PACKET.next_multiple_of(64);

/// Most packets of a sum: about as many as in a row of the sliding-window code.
const TERMS: usize = 48;

/// Most packets of a call, which has several sums.
const CALL: usize = 4 * TERMS;

/// Number of figures that [`table`] plans for each backend.
pub(crate) fn figures(levels: &[Level]) -> usize {
    2 * levels.len()
}

/// Every walk of every backend, in turn with the others.
pub(crate) fn table(lab: &mut Lab, backends: &[Backend], levels: &[Level]) -> FigureTable {
    let columns = [
        key("backend", "backend"),
        key("operation", "operation"),
        key("walk", "bytes at a time"),
        key("level", "in"),
        figure("packets", "packets", 0),
        figure("time_us", "median µs a packet", 4),
        figure("megabytes_per_second", "MB/s", 0),
        figure("megabits_per_second", "Mb/s", 0),
        figure("ratio", "against 64", 3),
        estimated_cycles(),
    ];
    let mut table = FigureTable::new(
        "walks",
        format!("Packet additions, one thread: MB/s and Mb/s of the {PACKET} B packets that are added"),
        columns.into_iter().chain(counters::columns()),
    );
    for &backend in backends {
        for level in levels {
            let set = Packets::new(level.bytes);
            for (operation, work) in
                [("add", Packets::add as PacketWork), ("sum", Packets::sum as PacketWork)]
            {
                rows(lab, &mut table, backend, level, &set, (operation, work));
            }
        }
    }
    table
}

/// Every walk of an operation on a set of packets.
fn rows(
    lab: &mut Lab,
    table: &mut FigureTable,
    backend: Backend,
    level: &Level,
    set: &Packets,
    (operation, work): (&str, PacketWork),
) {
    let name = format!("{} {operation} of packets in {}", backend.name(), level.name);
    let mut out = [(); Walk::ALL.len()].map(|()| vec![0; PACKET]);
    let mut walks = out.iter_mut().zip(Walk::ALL);
    let mut works: [_; Walk::ALL.len()] = std::array::from_fn(|_| {
        let (out, walk) = walks.next().expect("as many as there are walks");
        move || work(set, backend, walk, out)
    });
    let mut works = works.each_mut().map(|work| work as &mut dyn FnMut());
    let Some(measured) = lab.race(&name, false, &mut works) else { return };
    let (packets, base) = (set.taken.len() as f64, measured[0].time.median);
    for (walk, measured) in Walk::ALL.into_iter().zip(&measured) {
        let bytes = (set.taken.len() * PACKET) as u64;
        let seconds = measured.time.median;
        let cells = [
            ("backend", backend.name().into()),
            ("operation", operation.into()),
            ("walk", walk.name().into()),
            ("level", level.name.as_str().into()),
            ("packets", set.rows.rows().into()),
            ("time_us", measured.time.scaled(1e6 / packets).into()),
            ("megabytes_per_second", (bytes as f64 / 1e6 / seconds).into()),
            ("megabits_per_second", megabits(bytes, seconds).into()),
            ("ratio", (base / seconds).into()),
            (ESTIMATED_CYCLES, lab.estimated_cycles(bytes, seconds).into()),
        ];
        table.row(cells.into_iter().chain(counters::cells(&measured.counts, bytes)));
    }
}

/// A call on a set of packets.
type PacketWork = fn(&Packets, Backend, Walk, &mut [u8]);

/// Packets that calls take in an order that no processor guesses: a row of the code takes its packets from all over the
/// window.
struct Packets {
    rows: ShardBuf,
    /// The order of packets.
    order: Vec<usize>,
    /// Positions in `order` that a call takes, moved on by `at`.
    taken: std::ops::Range<usize>,
    /// All walks share this, so that none finds the packets of the one before it in a cache.
    at: Cell<usize>,
}

impl Packets {
    fn new(bytes: usize) -> Packets {
        let count = (bytes / (ROW + 64)).max(2);
        let order = Mmix(1).order(count);
        Packets { rows: filled(count, ROW), order, taken: 0..count.min(CALL), at: Cell::new(0) }
    }

    /// The packets of the next call.
    fn next(&self) -> impl Iterator<Item = &[u8]> {
        let at = self.at.get();
        self.at.set((at + self.taken.len()) % self.order.len());
        let places = self.taken.clone().map(move |place| (at + place) % self.order.len());
        places.map(|place| &self.rows.row(self.order[place])[..PACKET])
    }

    /// Adds packets singly.
    fn add(&self, backend: Backend, walk: Walk, out: &mut [u8]) {
        self.next().for_each(|packet| backend.add(walk, out, packet));
    }

    /// Adds the same packets, gathered in registers some at a time.
    fn sum(&self, backend: Backend, walk: Walk, out: &mut [u8]) {
        let mut packets = self.next();
        let mut terms: Vec<&[u8]> = Vec::with_capacity(TERMS);
        loop {
            terms.clear();
            terms.extend(packets.by_ref().take(TERMS));
            if terms.is_empty() {
                return;
            }
            backend.sum(walk, &[&terms], 1, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_walk_adds_each_packet_once() {
        let wanted: Vec<u8> = {
            let set = Packets::new(20 * ROW);
            (0..PACKET).map(|i| set.rows.iter().fold(0, |sum, row| sum ^ row[i])).collect()
        };
        for backend in Backend::available() {
            for walk in Walk::ALL {
                for work in [Packets::add as PacketWork, Packets::sum as PacketWork] {
                    let set = Packets::new(20 * ROW);
                    assert!(set.rows.rows() < TERMS, "one sum takes all");
                    let mut out = vec![0; PACKET];
                    work(&set, backend, walk, &mut out);
                    assert!(out == wanted, "{backend:?} {}", walk.name());
                }
            }
        }
    }
}
