//! The key of a sealed stream: from a file, or from a passphrase that is asked for.

use crate::say::failure::Result;
use crate::system::border::no_core_dumps;
use crate::system::passphrase;
use fec_live::key::StreamKey;
use std::path::Path;

/// The key that the options name, if they name one. `is_new`: for a stream to send, not for one to receive.
pub(crate) fn key(file: Option<&Path>, is_passphrase: bool, is_new: bool) -> Result<Option<StreamKey>> {
    if file.is_some() || is_passphrase {
        no_core_dumps();
    }
    match file {
        Some(path) => Ok(Some(StreamKey::read(path)?)),
        None if is_passphrase => {
            let passphrase = passphrase::of_sealed("the stream", false, "--key-file")?;
            Ok(Some(match is_new {
                true => StreamKey::from_new_passphrase(&passphrase)?,
                false => StreamKey::from_passphrase(&passphrase)?,
            }))
        }
        None => Ok(None),
    }
}
