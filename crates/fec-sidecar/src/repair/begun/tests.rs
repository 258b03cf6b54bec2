//! Lists that others plant, and those of interrupted repairs.

use crate::Sidecar;
use crate::examine::base_of;
use crate::protect::{Protect, protect};
use crate::redundancy::Redundancy;
use crate::repair::{Mend, Mended, repair};
use fec_base::context::Context;
use fec_base::error::{ErrorKind, Result};
use fec_base::io::output::Policy;
use fec_base::names::hex;
use fec_core::digest::HashKind;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const BLOCK: usize = 1024;

/// A folder of one file, with its sidecar.
struct Arena {
    place: tempfile::TempDir,
    right: Vec<u8>,
}

impl Arena {
    fn new() -> Arena {
        let place = tempfile::tempdir().unwrap();
        let right: Vec<u8> = (0..9500u32).map(|n| ((n * n) >> 7) as u8).collect();
        let arena = Arena { place, right };
        fs::create_dir(arena.at("d")).unwrap();
        fs::write(arena.at("d/a"), &arena.right).unwrap();
        let (paths, output) = ([arena.at("d")], arena.at("d.fecp"));
        let job = Protect {
            redundancy: Redundancy::new(20_000),
            policy: Policy::new().with_sync(false),
            ..Protect::new(&paths, &output)
        };
        let _ = protect(&job, &Context::default()).unwrap();
        arena
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn list(&self) -> PathBuf {
        self.at("d.fecp.repairing")
    }

    fn sidecar(&self) -> Sidecar {
        Sidecar::open(&self.at("d.fecp"), None, &Context::default().settings).unwrap()
    }

    fn repair(&self) -> Result<Mended> {
        let sidecar = self.sidecar();
        let base = base_of(&sidecar, None).unwrap();
        repair(&sidecar, &base, &Mend::default(), &Context::default())
    }

    /// Writes a list that records these blocks of the file as in `was`.
    fn plant(&self, was: &[u8], blocks: &[usize]) {
        let word = |block: &usize| {
            let piece = &was[block * BLOCK..was.len().min((block + 1) * BLOCK)];
            format!(" {}:{}", block * BLOCK, hex(&HashKind::Blake3.digest(piece)[..8]))
        };
        let line: String = blocks.iter().map(word).collect();
        let text = format!("fec repair of {}\n1{line}\n", hex(&self.sidecar().root()));
        fs::write(self.list(), text).unwrap();
    }
}

/// Waits until later changes have a later time.
fn tick() {
    std::thread::sleep(Duration::from_millis(20));
}

#[test]
fn what_is_no_file_of_ones_own_is_neither_followed_nor_waited_for() {
    let arena = Arena::new();
    let before = File::open(arena.at("d/a")).and_then(|file| file.metadata()).unwrap().modified().unwrap();
    let mut rotten = arena.right.clone();
    rotten[5000] ^= 1;
    fs::write(arena.at("d/a"), &rotten).unwrap();
    File::open(arena.at("d/a")).and_then(|file| file.set_modified(before)).unwrap();
    fs::write(arena.at("victim"), b"precious").unwrap();
    let plants: [&dyn Fn(); 5] = [
        &|| symlink("victim", arena.list()).unwrap(),
        &|| symlink("/dev/full", arena.list()).unwrap(),
        &|| mknodat(CWD, arena.list(), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap(),
        &|| fs::hard_link(arena.at("victim"), arena.list()).unwrap(),
        &|| fs::write(arena.list(), b"a letter").unwrap(),
    ];
    for plant in plants {
        plant();
        assert!(matches!(arena.repair().unwrap_err().kind, ErrorKind::NotOwn(_)));
        assert!(fs::read(arena.at("d/a")).unwrap() == rotten);
        fs::remove_file(arena.list()).unwrap();
    }
    assert_eq!(arena.repair().unwrap().mended, [1]);
    assert_eq!(fs::read(arena.at("victim")).unwrap(), b"precious");
    assert!(fs::read(arena.at("d/a")).unwrap() == arena.right && !arena.list().exists());
}

#[test]
fn a_planted_list_reverts_nothing() {
    let arena = Arena::new();
    let mut edited = arena.right.clone();
    edited[3000..3100].fill(7);
    let now = || fs::write(arena.at("d/a"), &edited).unwrap();
    // The first list is later than the edit, has the right digests and the edit's time of modification. The others are
    // older than the edit: one has other digests, the other has none.
    let plants: [&dyn Fn(); 3] = [
        &|| {
            now();
            tick();
            arena.plant(&edited, &[2, 3]);
            let time = fs::metadata(arena.at("d/a")).and_then(|meta| meta.modified()).unwrap();
            File::open(arena.list()).and_then(|file| file.set_modified(time)).unwrap();
        },
        &|| {
            arena.plant(&vec![9; 9500], &[2, 3]);
            File::open(arena.list()).and_then(|file| file.set_modified(SystemTime::now())).unwrap();
            tick();
            now();
        },
        &|| {
            arena.plant(&edited, &[]);
            tick();
            now();
        },
    ];
    for plant in plants {
        plant();
        let mended = arena.repair().unwrap();
        assert_eq!((&mended.left[..], &mended.mended[..]), (&[1][..], &[][..]));
        assert!(fs::read(arena.at("d/a")).unwrap() == edited);
        fs::remove_file(arena.list()).ok();
    }
}

#[test]
fn what_is_half_mended_is_mended_and_what_was_edited_since_is_not() {
    for (foreign, is_mended) in [(None, true), (Some(4100), false), (Some(20), false), (Some(9499), false)] {
        let arena = Arena::new();
        let mut now = arena.right.clone();
        [1500, 4500, 8000, 9400].into_iter().for_each(|at: usize| now[at] ^= 0x55);
        arena.plant(&now, &[1, 4, 7, 9]);
        tick();
        now[BLOCK..2 * BLOCK].copy_from_slice(&arena.right[BLOCK..2 * BLOCK]);
        foreign.into_iter().for_each(|at: usize| now[at] ^= 1);
        fs::write(arena.at("d/a"), &now).unwrap();
        let mended = arena.repair().unwrap();
        assert_eq!(mended.mended == [1], is_mended, "{foreign:?}");
        assert!(fs::read(arena.at("d/a")).unwrap() == if is_mended { arena.right.clone() } else { now });
    }
}
