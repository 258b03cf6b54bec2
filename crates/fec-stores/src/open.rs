//! Opens places by their addresses.

use crate::call::CallOptions;
use crate::cloud;
use crate::error::StoreError;
use crate::folder::FolderStore;
use crate::object::ObjectStore;
use crate::target::{Scheme, Target};
use std::sync::Arc;

/// Opens a place; nothing is sent to it yet.
///
/// # Errors
/// [`StoreError::Denied`] without credentials.
pub fn open(target: &Target, options: &CallOptions, sync: bool) -> Result<Arc<dyn ObjectStore>, StoreError> {
    match &target.scheme {
        Scheme::Folder(path) => Ok(Arc::new(FolderStore::new(target.url.clone(), path, sync))),
        _ => cloud::open(target, options),
    }
}
