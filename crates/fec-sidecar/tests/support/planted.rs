//! The folder that updates are tried on, for the tests by calls and by the command.

use super::*;

/// Bytes of a block of these sidecars.
pub(crate) const BLOCK: usize = 4096;
/// The number of files that [`plant`] makes.
pub(crate) const FILES: u64 = 22;

/// Makes a folder `d` of 22 files, links and folders. With 16 %, its 504 blocks are in three sets, and each set may
/// lose 27.
pub(crate) fn plant(arena: &Arena) {
    arena.write("d/big", &payload(1, 200 * BLOCK));
    arena.write("d/middle", &payload(2, 100 * BLOCK + 1000));
    arena.write("d/other", &payload(3, 150 * BLOCK + 500));
    arena.write("d/sub/one", &payload(4, 50 * BLOCK + 2000));
    arena.write("d/sub/tool", &payload(5, 5000));
    arena.write("d/sub/empty", b"");
    (0..16).for_each(|nth| drop(arena.write(note(nth), &payload(100 + nth as u64, 300 + nth))));
    fs::create_dir(arena.path("d/void")).unwrap();
    symlink("big", arena.path("d/link")).unwrap();
    symlink("sub", arena.path("d/way")).unwrap();
    set_mode(&arena.path("d/sub/tool"), 0o750);
    for (nth, path) in files(arena).enumerate() {
        age(&path, nth as u64);
    }
}

/// The path of a small file, 0 to 15.
pub(crate) fn note(nth: usize) -> String {
    format!("d/notes/{nth:02}")
}

/// The paths of all files.
fn files(arena: &Arena) -> impl Iterator<Item = PathBuf> {
    let (folder, all) = (arena.path("d"), seen(&arena.path("d")));
    let files = all.into_iter().filter(|(_, seen)| matches!(seen.what, What::File { .. }));
    files.map(move |(path, _)| folder.join(path))
}

/// Everything that a sidecar records of the folder: names, bytes and links, and the modes and times of files.
pub(crate) fn state(arena: &Arena) -> BTreeMap<PathBuf, (What, Option<(u32, SystemTime)>)> {
    let stat = |seen: &Seen| match seen.what {
        What::File { .. } => Some((seen.mode, seen.modified)),
        _ => None,
    };
    seen(&arena.path("d")).into_iter().map(|(path, seen)| (path, (seen.what.clone(), stat(&seen)))).collect()
}

/// Loses small files and flips bits of others, every third file in turn, and asserts that `mend` brings each back with
/// its mode and time.
#[track_caller]
pub(crate) fn every_third_comes_back(arena: &Arena, mend: impl Fn(&Path)) {
    let before = state(arena);
    // Each call tests other files.
    let first = arena.read("d.fecp").len() / 64 % 3;
    for path in files(arena).skip(first).step_by(3) {
        let (len, is_linked) = fs::metadata(&path).map(|meta| (meta.len(), meta.nlink() > 1)).unwrap();
        match len {
            0..8192 if !is_linked => fs::remove_file(&path).unwrap(),
            0 => {}
            _ => [0, len / 2, len - 1].into_iter().for_each(|at| flip(&path, at)),
        }
        mend(&path);
        assert!(state(arena) == before, "{} is another", path.display());
    }
}
