//! A run reports the truth. Exit code 0 means that everything named was examined, and any other code comes with a
//! reason. No secret is repeated, and no name plays tricks with a terminal.

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod looked;
mod secrets;
mod silence;
mod terminal;

use common::{Arena, payload};

/// A folder with a payload `a` as shard files, a container and a live stream, and with a protected folder `d` of four
/// files.
fn furnished() -> Arena {
    let arena = Arena::new();
    arena.write("a", &payload(1, 50_000));
    for nth in 0..4 {
        arena.write(format!("d/{nth}"), &payload(nth, 20_000));
    }
    arena.expect(["encode", "a", "-o", "a.fec", "-q"], 0);
    arena.expect(["encode", "a", "-q"], 0);
    arena.expect(["encode", "a", "--stream", "-o", "s.stream", "-q"], 0);
    arena.expect(["protect", "d", "-r", "100%", "-q"], 0);
    arena
}
