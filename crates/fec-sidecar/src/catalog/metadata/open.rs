//! Opens sidecars: by their root, a signature, or keys.

use super::{Newer, Sidecar};
use crate::catalog::fingerprint::fingerprint_of;
use crate::catalog::generations::{Links, Opened, Parsed, Seen, Wanted, broken, choose, extent_of};
use crate::catalog::proof::Proof;
use crate::catalog::reader::{Found, Reader, shifts, stored};
use crate::catalog::sealed::SealedBytes;
use crate::error::SidecarError;
use crate::kind;
use fec_base::context::Settings;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::ReadAt;
use fec_base::io::own::open_regular;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::group::SidecarGroup;
use fec_core::format::sidecar::piece::Generation;
use fec_keys::age::Keys;
use fec_keys::sign::{SignError, Signatures, Signed, Trust};
use fecfile::seal::SealError;
use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// The source that a sidecar is read from.
struct Stands {
    file: Arc<dyn ReadAt>,
    sealed: Option<(Arc<SealedBytes>, Digest)>,
    /// Bytes that are stored.
    stored: u64,
    /// The stat of the file, or of the container.
    meta: Metadata,
}

/// Chooses one of several roots.
type Choose<'a> = dyn Fn(&[Digest]) -> std::result::Result<Wanted, SignError> + 'a;

impl Sidecar {
    /// Opens the sidecar at `path`: the generation with the root `wanted`, or else the newest.
    ///
    /// # Errors
    /// [`SidecarError`], and those of the file.
    pub fn open(path: &Path, wanted: Option<Digest>, settings: &Settings) -> Result<Sidecar> {
        let root = |_: &[Digest]| Ok(Wanted { root: wanted, metadata: Vec::new() });
        let sidecar = Sidecar::open_by(path, &root, settings)?;
        Ok(Sidecar { proof: if wanted.is_some() { Proof::Root } else { Proof::Nothing }, ..sidecar })
    }

    /// Opens the sidecar at `path` with the root `wanted`. The caller knows metadata that belongs to it: values of E in
    /// `known`, from [`Protected::metadata`](crate::protect::Protected::metadata). A match proves times and
    /// permissions; otherwise the root alone counts.
    ///
    /// # Errors
    /// As [`Sidecar::open`].
    pub fn open_known(path: &Path, wanted: Digest, known: &[Digest], settings: &Settings) -> Result<Sidecar> {
        let choose = |_: &[Digest]| Ok(Wanted { root: Some(wanted), metadata: known.to_vec() });
        match Sidecar::open_by(path, &choose, settings) {
            Ok(sidecar) if known.contains(&sidecar.of.root) => {
                Ok(Sidecar { proof: Proof::Metadata, ..sidecar })
            }
            Err(error) if matches!(error.cause(), Some(SidecarError::OtherMetadata(_))) => {
                Sidecar::open(path, Some(wanted), settings)
            }
            opened => opened.map(|sidecar| Sidecar { proof: Proof::Root, ..sidecar }),
        }
    }

    /// Opens the newest generation of the sidecar at `path` whose root is signed by a trusted key, or the generation
    /// with the root `wanted` if that is signed. Sidecars hold no signatures: those are the `detached` ones of `trust`.
    /// If a signature names E, E is compared too.
    ///
    /// # Errors
    /// As [`Sidecar::open`]; [`Unsigned`](fec_keys::sign::SignError::Unsigned); [`SidecarError::OtherMetadata`].
    pub fn open_signed(
        path: &Path,
        wanted: Option<Digest>,
        trust: &Trust,
        settings: &Settings,
    ) -> Result<(Sidecar, Signed)> {
        let newest = |roots: &[Digest]| {
            let all = trust.check(roots, &Signatures::default())?;
            Ok(all.into_iter().next_back())
        };
        let choose = |roots: &[Digest]| {
            let of_wanted = |root: &&Digest| wanted.is_none_or(|wanted| wanted == **root);
            match roots.iter().filter(of_wanted).copied().collect::<Vec<_>>()[..] {
                // No signable root is left: the later choice reports what was found.
                [] => Ok(Wanted { root: wanted, metadata: Vec::new() }),
                ref roots => newest(roots).map(|signed| {
                    signed.map_or_else(Wanted::default, |signed| Wanted {
                        root: Some(signed.root),
                        metadata: signed.metadata,
                    })
                }),
            }
        };
        let sidecar = Sidecar::open_by(path, &choose, settings)?;
        let signed =
            newest(&[sidecar.root]).map_err(|cause: SignError| Error::at(Action::Read, path, cause))?;
        let signed = signed.ok_or_else(|| Error::at(Action::Read, path, ErrorKind::Changed))?;
        let proof = if signed.metadata.contains(&sidecar.of.root) { Proof::Metadata } else { Proof::Root };
        Ok((Sidecar { proof, ..sidecar }, signed))
    }

    /// Opens the generation that `wanted` chooses from all roots found, the oldest first.
    fn open_by(path: &Path, wanted: &Choose<'_>, settings: &Settings) -> Result<Sidecar> {
        let fail = |e| Error::io(Action::Read, path, e);
        let none = || Error::at(Action::Read, path, SidecarError::NotFound(None));
        let file = open_regular(path).map_err(fail)?.ok_or_else(none)?;
        let meta = file.metadata().map_err(fail)?;
        let stands = Stands { file: Arc::new(file), sealed: None, stored: stored(&meta), meta };
        Sidecar::open_in(path, stands, wanted, settings)
    }

    /// Opens the sidecar sealed in the container at `path` with `keys`. The container must have the root `wanted`, or a
    /// signature by a key of `trust`.
    ///
    /// # Errors
    /// As [`Sidecar::open_signed`]; those of [`Archive::opener`](fecfile::Archive::opener), also for a sidecar that is
    /// not sealed.
    pub fn open_sealed(
        path: &Path,
        (wanted, trust): (Option<Digest>, Option<&Trust>),
        keys: &Keys,
        settings: &Settings,
    ) -> Result<(Sidecar, Option<Signed>)> {
        if kind::starts(path)? {
            return Err(Error::at(Action::Open, path, SealError::NotSealed));
        }
        let meta = std::fs::metadata(path).map_err(|e| Error::io(Action::Read, path, e))?;
        let (bytes, root, signed) = SealedBytes::open(path, (wanted, trust), keys, settings)?;
        let bytes = Arc::new(bytes);
        let stored = bytes.stored();
        let stands = Stands { file: Arc::clone(&bytes) as _, sealed: Some((bytes, root)), stored, meta };
        // The root of the container binds all generations, and every byte of them.
        let is_proved = wanted.is_some() || trust.is_some();
        let proof = if is_proved { Proof::Metadata } else { Proof::Nothing };
        let sidecar = Sidecar::open_in(path, stands, &|_| Ok(Wanted::default()), settings)?;
        Ok((Sidecar { proof, ..sidecar }, signed))
    }

    fn open_in(path: &Path, stands: Stands, wanted: &Choose<'_>, settings: &Settings) -> Result<Sidecar> {
        let Stands { file, sealed, stored, meta } = stands;
        let len = file.size().map_err(|e| Error::io(Action::Read, path, e))?;
        let reader = Reader::new(file.as_ref(), (len, stored), settings);
        let meant = Meant::find(path, &reader, wanted)?;
        let (newer, replaced_by, older) = (meant.newer(&reader), meant.replaced_by(), meant.older());
        let Parsed { opened, catalog, stats, root, digests_at } = meant.parsed;
        let Opened { of, mut metadata, catalog_len, pieces, difference, .. } = opened;
        let shifts = shifts(&meant.found, &of, &catalog);
        metadata.truncate(catalog_len as usize);
        let digests = metadata.split_off(digests_at);
        let odd_head = (catalog.head_bytes() != metadata).then_some(metadata);
        Ok(Sidecar {
            len,
            stored,
            sealed,
            path: path.to_path_buf(),
            starts: starts(&catalog),
            seen: fingerprint_of(&meta),
            changed: (meta.ctime(), meta.ctime_nsec()),
            proof: Proof::Nothing,
            catalog,
            stats,
            odd_head,
            digests,
            root,
            of,
            pieces,
            difference,
            shifts,
            newer,
            replaced_by,
            older,
            unread: reader.unread.take(),
            file,
        })
    }
}

/// The generation that is meant, and everything that was found beside it.
struct Meant {
    parsed: Parsed,
    found: Found,
    links: Links,
    /// The encodings whose metadata can be restored and breaks no rule, with their roots.
    counting: Vec<(Generation, Digest)>,
}

impl Meant {
    fn find(path: &Path, reader: &Reader<'_>, wanted: &Choose<'_>) -> Result<Meant> {
        let fail = |e| Error::io(Action::Read, path, e);
        let at = |e: SidecarError| Error::at(Action::Read, path, e);
        let mut rule = None;
        let (found, seen) = find_encodings(reader, wanted, &mut rule).map_err(fail)?;
        if found.is_empty() {
            return Err(at(SidecarError::NotFound(rule)));
        }
        let broken = broken(&seen, rule);
        let wanted = wanted(&roots(&seen)).map_err(|e| Error::at(Action::Read, path, e))?;
        let links = reader.links.take();
        let counting = seen.iter().filter_map(|seen| Some((seen.of, seen.root()?))).collect();
        let chosen = choose(seen, &links, &wanted).map_err(|error| match (error, broken) {
            (SidecarError::TooFewPieces | SidecarError::OtherRoot(_), Some(rule)) => {
                at(SidecarError::Invalid(rule))
            }
            (error, _) => at(error),
        })?;
        // Among several encodings, only the chosen one is kept in memory, and read once more.
        let parsed = match chosen.parsed {
            Some(parsed) => *parsed,
            None => {
                reader.work.set(0);
                let again = reader.open(chosen.of, &found).map_err(fail)?;
                let parsed = again.and_then(|opened| opened.parse().ok());
                parsed.ok_or_else(|| Error::at(Action::Read, path, ErrorKind::Changed))?
            }
        };
        Ok(Meant { parsed, found, links, counting })
    }

    fn of(&self) -> &Generation {
        &self.parsed.opened.of
    }

    /// The root of the newest generation that replaces the one that is meant.
    fn replaced_by(&self) -> Option<Digest> {
        let descendants = self.links.descendants(self.of());
        let replacing = self.counting.iter().filter(|(other, _)| descendants.contains(&other.root));
        replacing.max_by_key(|(other, _)| other.layout.generation).map(|(_, root)| *root)
    }

    /// The greatest generation that is newer and cannot be restored.
    fn newer(&self, reader: &Reader<'_>) -> Option<Newer> {
        let generation = self.of().layout.generation;
        let counting: HashSet<Generation> = self.counting.iter().map(|(of, _)| *of).collect();
        let is_lost = |other: &Generation| other.layout.generation > generation && !counting.contains(other);
        let lost: Vec<_> = self.found.iter().filter(|(other, _)| is_lost(other)).collect();
        let beyond = reader.beyond.get().filter(|beyond| *beyond > generation);
        let newer = lost.iter().map(|(other, _)| other.layout.generation).chain(beyond).max();
        newer.map(|generation| Newer {
            generation,
            // An interrupted update leaves one unfinished generation.
            is_unfinished: lost.len() == 1
                && beyond.is_none()
                && lost.iter().all(|(other, places)| reader.is_unfinished(other, places)),
        })
    }

    /// The earlier generations whose extents the one that is meant still has, from the newest on.
    fn older(&self) -> Vec<Generation> {
        let catalog = &self.parsed.catalog;
        let (_, extents_before) = catalog.extents.split_last().expect("a catalog has an extent");
        // An update keeps the block: an extent in other blocks would be written over what stands in these.
        let is_before = |other: &&Generation| {
            other.layout.block == catalog.block
                && extent_of(other).is_some_and(|extent| extents_before.contains(&extent))
        };
        let mut older: Vec<Generation> = self.links.chain(self.of()).filter(is_before).copied().collect();
        // The chain may be broken between this generation and the whole one that it needs.
        let whole = self.parsed.opened.difference.as_ref().map(|of| of.whole);
        older.extend(whole.filter(|whole| !older.contains(whole)));
        older
    }
}

/// Finds the encodings of metadata, and those of them that can be restored. Unless all is well in the places where
/// pieces belong, the whole file is searched. The gravest rule that pieces break goes to `rule`.
fn find_encodings(
    reader: &Reader<'_>,
    wanted: &Choose<'_>,
    rule: &mut Option<FormatError>,
) -> std::io::Result<(Found, Vec<Seen>)> {
    let (mut found, is_tidy) = reader.by_place(rule);
    let mut seen = reader.look_at_all(&found)?;
    let is_enough = is_tidy && seen.len() == found.len() && seen.iter().all(|seen| seen.is_whole);
    let has_wanted = || wanted(&roots(&seen)).is_ok_and(|wanted| seen.iter().any(|seen| wanted.is(seen)));
    if !is_enough || !has_wanted() {
        found = reader.scan(rule)?;
        seen = reader.look_at_all(&found)?;
    }
    Ok((found, seen))
}

/// The roots of restored metadata, the oldest first.
fn roots(seen: &[Seen]) -> Vec<Digest> {
    let roots = seen.iter().filter_map(|seen| Some((seen.of.layout.generation, seen.root()?)));
    let mut roots: Vec<(u64, Digest)> = roots.collect();
    roots.sort_unstable();
    roots.into_iter().map(|(_, root)| root).collect()
}

/// For each group, its first position, and the number of that position's digest.
fn starts(catalog: &Catalog) -> Vec<(u64, u64)> {
    let mut next = (0, 0);
    let of_group = |group: &SidecarGroup| {
        let start = next;
        next = (start.0 + group.positions(), start.1 + group.positions() + group.recovery());
        start
    };
    catalog.groups.iter().map(of_group).collect()
}
