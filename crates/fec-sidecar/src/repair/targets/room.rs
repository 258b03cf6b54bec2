//! The folder that new files of a repair are made in.

use fec_base::io::base::Base;
use fec_base::io::naming::is_lacking;
use fec_base::io::output::open_folder;
use fec_base::io::system;
use fec_base::io::temporary::is_of_the_dead;
use std::io;

/// Syncs all files in the room for new ones.
pub(crate) fn sync_new(room: &Base) -> io::Result<()> {
    match system::sync_file_system(open_folder(room.path())?) {
        Err(e) if is_lacking(e) => {
            let (files, ..) = room.list(b"")?;
            files.iter().try_for_each(|file| system::sync(room.read(file)?))
        }
        done => Ok(done?),
    }
}

/// Removes the rooms of killed repairs: folders with such a name, of processes that are gone, with nothing in them but
/// files, links and empty folders that have numbers for names.
pub(crate) fn remove_old_rooms(base: &Base) {
    let Ok((_, folders, _)) = base.list(b"") else { return };
    for folder in folders.iter().filter(|folder| is_of_the_dead(folder)) {
        let Ok((mut files, folders, links)) = base.list(folder) else { continue };
        files.extend(links);
        let is_number = |path: &[u8]| path[folder.len() + 1..].iter().all(u8::is_ascii_digit);
        if files.iter().chain(&folders).all(|path| is_number(path)) {
            let removed = files.iter().try_for_each(|file| base.holder(file)?.remove());
            let removed =
                removed.and_then(|()| folders.iter().try_for_each(|path| base.holder(path)?.remove_folder()));
            // A room that cannot be removed stays, and harms nobody.
            let _ = removed.and_then(|()| base.holder(folder)?.remove_folder());
        }
    }
}
