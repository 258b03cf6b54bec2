//! The owners of what root restores: those of the folder around it, or those that were asked for.
//!
//! In a folder of somebody else, another entry may come to stand under any name: an entry gets its owner while it
//! is in the room for new files, which nobody else can enter, or through its descriptor.

use fec_base::io::base::Base;
use fec_base::io::list;
use fec_base::io::output::{if_any, open_folder};
use fec_base::io::temporary::parent;
use rustix::fs::{Gid, Mode, Stat, Uid};
use rustix::process::geteuid;
use std::fs::File;
use std::io::{self, ErrorKind as IoKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A user and a group.
pub(super) type UserAndGroup = (u32, u32);
/// The user that was asked for, and the group.
pub(crate) type Given = Option<(u32, Option<u32>)>;

/// The user and the group that were asked for, or those of what is around.
pub(super) fn owner_of(given: Given, around: UserAndGroup) -> UserAndGroup {
    given.map_or(around, |(user, group)| (user, group.unwrap_or(around.1)))
}

/// Gives a folder that was just made to the owner of the one around it, or to the one that was asked for. If somebody
/// has put another one in its place, it is not empty, or not root's.
///
/// # Errors
/// Those of the system.
pub(crate) fn give_new_folder(path: &Path, given: Given) -> io::Result<()> {
    let folder = open_folder(path)?;
    let is_made =
        || folder.metadata().is_ok_and(|meta| meta.uid() == 0) && list(path).is_ok_and(|all| all.is_empty());
    if !geteuid().is_root() || !is_made() {
        return Ok(());
    }
    let around = std::fs::metadata(parent(path))?;
    give(&folder, Some(owner_of(given, (around.uid(), around.gid()))))
}

/// Gives an open file to a user and a group, where the file system has owners.
pub(super) fn give(file: &File, owner: Option<UserAndGroup>) -> io::Result<()> {
    let Some((user, group)) = owner else { return Ok(()) };
    let given = rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    if_any(given.map_err(io::Error::from))
}

/// The room that was just made, if nobody has put another folder in its place. Where permissions cannot be set, the
/// file system has none, and whoever reaches it may write to everything there.
pub(super) fn own_room(room: Base) -> io::Result<Base> {
    let is_closed = |stat: &Stat| stat.st_mode & 0o077 == 0;
    let stat = room.stat(b"")?;
    if stat.st_uid == geteuid().as_raw() && is_closed(&stat) {
        return Ok(room);
    }
    if_any(rustix::fs::fchmod(room.read_folder(b"")?, Mode::RWXU).map_err(io::Error::from))?;
    if is_closed(&stat) || is_closed(&room.stat(b"")?) {
        Err(IoKind::PermissionDenied.into())
    } else {
        Ok(room)
    }
}
