//! Random trees, damage, edits and mirrors: no wrong byte, no edit touched, and everything back that somebody has.

use super::double::{Conduct, Double};
use super::*;
use fec_core::random::SplitMix64;

struct Round {
    random: SplitMix64,
}

impl Round {
    fn below(&mut self, most: u64) -> u64 {
        self.random.next() % most.max(1)
    }

    fn tree(&mut self, places: [&Arena; 2]) -> Vec<String> {
        let files = 1 + self.below(9);
        let mut paths = Vec::new();
        for nth in 0..files {
            let len = match self.below(5) {
                0 => self.below(1200),
                1 => self.below(30) * 1024,
                _ => self.below(40_000),
            };
            let path = format!("d/{}{nth}", ["", "sub/", "sub/deep/"][self.below(3) as usize]);
            let seed = if self.below(6) == 0 { 1 } else { self.below(1 << 40) };
            for place in places {
                age(&place.write(&path, &payload(seed, len as usize)), nth);
            }
            paths.push(path);
        }
        paths
    }

    /// Damages a file, or edits it. Returns whether it was edited.
    fn damage(&mut self, path: &Path) -> bool {
        let len = fs::metadata(path).expect("it is there").len();
        match self.below(7) {
            0 => fs::remove_file(path).expect("it is there"),
            1 | 2 if len > 0 => {
                for _ in 0..1 + self.below(20) {
                    flip(path, self.below(len));
                }
            }
            3 if len > 0 => rot(path, self.below(len) / 2, &vec![7; (len / 2) as usize]),
            4 => {
                edit(path, b"an edit");
                return true;
            }
            _ => {}
        }
        false
    }

    fn double(&mut self, copy: &Arena) -> Double {
        let mut double = Double::of(copy.home.path());
        let kind = self.below(8);
        double.conduct = match kind {
            0 => Conduct::Lies,
            1 => Conduct::FailsAfter(self.below(6)),
            _ => Conduct::Honest,
        };
        let keys: Vec<Vec<u8>> = double.files.keys().cloned().collect();
        for key in keys {
            let of = self.below(12);
            let bytes = double.files.get_mut(&key).expect("it is there");
            let len = bytes.len() as u64;
            match of {
                0 => drop(double.files.remove(&key)),
                1 => bytes.truncate(self.below(len) as usize),
                2 if len > 0 => (0..self.below(9)).for_each(|_| bytes[self.below(len) as usize] ^= 1),
                3 => bytes.insert(self.below(len) as usize, 7),
                _ => {}
            }
        }
        double
    }
}

#[test]
fn random_mirrors_give_no_wrong_byte() {
    let rounds: u64 = std::env::var("FEC_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(60);
    let first: u64 = std::env::var("FEC_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + rounds {
        let mut round = Round { random: SplitMix64::new(seed) };
        let (arena, copy) = (Arena::new(), Arena::new());
        let paths = round.tree([&arena, &copy]);
        arena.protect(&How::of_percent([1, 5, 20][round.below(3) as usize]));
        let mut edited = Vec::new();
        for path in &paths {
            if round.below(3) > 0 && round.damage(&arena.path(path)) {
                edited.push(path.clone());
            }
        }
        let before: Vec<Option<Vec<u8>>> = paths.iter().map(|path| fs::read(arena.path(path)).ok()).collect();
        let doubles: Vec<Double> = (0..1 + round.below(3)).map(|_| round.double(&copy)).collect();
        let partial = round.below(2) == 0;
        let (done, fetched) =
            mend_from(&arena, &Mend { partial, ..Mend::default() }, &doubles.iter().collect::<Vec<_>>());
        let is_whole = done.as_ref().is_ok_and(|mended| mended.failed.is_empty());
        for (path, before) in paths.iter().zip(&before) {
            let now = fs::read(arena.path(path)).ok();
            let is_right = now.as_ref() == Some(&copy.read(path));
            assert!(
                is_right || !is_whole || edited.contains(path),
                "seed {seed}: {path} is wrong, {fetched:?}"
            );
            assert!(is_right || now == *before || partial, "seed {seed}: {path} was changed");
            assert!(!edited.contains(path) || now == *before, "seed {seed}: the edit of {path} is gone");
        }
        if let Err(error) = done {
            assert_eq!(error.class(), Class::Lost, "seed {seed}: {error}");
        }
        // An honest and whole copy gives everything.
        let whole = Double::of(copy.home.path());
        let list: Vec<&Double> = doubles.iter().chain([&whole]).collect();
        let (done, fetched) = mend_from(&arena, &Mend::default(), &list);
        let mended = done.unwrap_or_else(|error| panic!("seed {seed}: {error}: {fetched:?}"));
        assert!(mended.failed.is_empty(), "seed {seed}: {mended:?}");
        for path in paths.iter().filter(|path| !edited.contains(path)) {
            assert!(arena.read(path) == copy.read(path), "seed {seed}: {path}");
        }
        assert!(!arena.path("d.fecp.fetched").exists(), "seed {seed}");
    }
}
