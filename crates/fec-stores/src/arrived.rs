//! Checks shard files that came.

use super::call::Cancel;
use super::room::Room;
use fec_base::context::{Context, Settings};
use fec_core::digest::Digest;
use fecfile::error::EncodingError;
use fecfile::report::ShardReport;
use fecfile::{Archive, Input};
use std::path::Path;

/// Tells whether the file at `path` holds all records of shard `index` of this root. `None`: it could not be looked at;
/// a restore looks again, and has the cause.
pub(super) fn holds_shard(path: &Path, index: u32, root: &Digest, cancel: &Cancel) -> Option<bool> {
    let context = Context::new(Settings { threads: 1, ..Settings::new() }).with_cancel(cancel);
    let input = Input::of_paths(&[path.to_path_buf()]).map(Input::as_several);
    let archive = input.and_then(|input| Archive::open(&input, Some(*root), &context));
    match archive.and_then(|archive| archive.examine(&context)) {
        Ok(found) => {
            Some(found.shards.iter().any(|shard| shard.index == index && shard.intact_sets == shard.sets))
        }
        Err(error) => matches!(error.cause(), Some(EncodingError::NothingFound(_))).then_some(false),
    }
}

/// Tells whether the file of the object with this index is intact. Other files may claim the index too, and say nothing
/// about this one. A file that is another shard of the encoding counts as damaged.
pub(super) fn is_own_intact(shards: &[ShardReport], index: u32) -> bool {
    let own = Room::shard_name(index);
    let report = shards.iter().find(|shard| shard.index == index);
    report.is_some_and(|shard| {
        shard.files.iter().any(|file| file.ends_with(&own))
            && !shard.damage.iter().any(|damage| damage.file.ends_with(&own))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_base::io::folder::Folder;
    use fec_base::io::output::Policy;
    use fec_core::block::Code;
    use fecfile::encode;
    use fecfile::payload::Options;
    use std::fs;

    #[test]
    fn only_the_shard_itself_counts() {
        let spool = tempfile::tempdir().expect("a folder");
        let room = Room::new(Some(spool.path())).expect("a room");
        let (made, cancel) = (Folder::new(room.shards(), Policy::new().with_sync(false)), Cancel::default());
        let (options, context) = (Options::new(Code::new(3, 2).expect("a code")), Context::default());
        let written = encode::to_store(&vec![7; 300_000], b"x", &made, &options, &context).expect("shards");
        for index in 0..5 {
            fs::rename(room.shards().join(format!("x.{index:03}.shard")), room.shard_of(index))
                .expect("a file");
        }
        let holds = |index: u32| holds_shard(&room.shard_of(index), index, &written.root, &cancel);
        assert!((0..5).all(|index| holds(index) == Some(true)));
        let right = fs::read(room.shard_of(0)).expect("a file");
        let flipped = |at: usize| {
            let mut bytes = right.clone();
            bytes[at] ^= 1;
            bytes
        };
        let other = fs::read(room.shard_of(1)).expect("a file");
        // A header at the other end is enough.
        for at in [0, right.len() - 1] {
            fs::write(room.shard_of(0), flipped(at)).expect("it is written");
            assert_eq!(holds(0), Some(true));
        }
        let wrong = [flipped(right.len() / 2), other, vec![0; right.len()]];
        for bytes in wrong {
            fs::write(room.shard_of(0), bytes).expect("it is written");
            assert_eq!(holds(0), Some(false));
        }
        assert_eq!(holds_shard(&room.shard_of(1), 1, &[9; 32], &cancel), Some(false), "another root");
        fs::remove_file(room.shard_of(0)).expect("it is removed");
        assert_eq!(holds(0), None);
        cancel.cancel();
        fs::write(room.shard_of(0), flipped(right.len() / 2)).expect("it is written");
        assert_eq!(holds(0), None);
    }
}
