//! The metas of an input, of which a bounded number is kept.

use fec_core::digest::Digest;

/// Most metas that are kept.
const MOST: usize = 64;

/// Metas by their hashes.
#[derive(Debug)]
pub(crate) struct Metas<T>(Vec<(Digest, T)>);

impl<T> Default for Metas<T> {
    fn default() -> Metas<T> {
        Metas(Vec::new())
    }
}

impl<T> Metas<T> {
    /// Keeps a meta, unless a copy is there. Anybody can put false frames in front: among more than [`MOST`], a meta
    /// that a first group names, as `is_named` tells, takes the place of one that none names.
    pub(crate) fn add(&mut self, meta_hash: Digest, meta: T, is_named: impl Fn(&Digest) -> bool) {
        if self.get(&meta_hash).is_some() {
            return;
        }
        if self.0.len() == MOST {
            let unnamed = self.0.iter().position(|(known, _)| !is_named(known));
            let Some(unnamed) = unnamed.filter(|_| is_named(&meta_hash)) else { return };
            self.0.remove(unnamed);
        }
        self.0.push((meta_hash, meta));
    }

    pub(crate) fn get(&self, meta_hash: &Digest) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == meta_hash).map(|(_, meta)| meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn false_metas_in_front_hide_none_that_is_named() {
        let hash = |number: u8| [number; 32];
        let mut metas = Metas::default();
        (0..200).for_each(|number| metas.add(hash(number), number, |_| false));
        let kept = |metas: &Metas<u8>| {
            (0..=255).filter(|number| metas.get(&hash(*number)).is_some()).collect::<Vec<u8>>()
        };
        assert_eq!(kept(&metas), (0..MOST as u8).collect::<Vec<_>>());
        let is_named = |meta_hash: &Digest| meta_hash[0] >= 200 || meta_hash[0] == 3;
        (200..=255).for_each(|number| metas.add(hash(number), number, is_named));
        let named = kept(&metas).into_iter().filter(|number| *number == 3 || *number >= 200);
        assert_eq!((named.count(), kept(&metas).len()), (57, MOST));
        // A list of named metas stays as it is.
        let is_named = |_: &Digest| true;
        let before = kept(&metas);
        metas.add(hash(100), 100, is_named);
        assert_eq!(kept(&metas), before);
    }
}
