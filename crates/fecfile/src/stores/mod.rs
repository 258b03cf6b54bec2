//! Shards in object stores that fail apart.
//!
//! A payload is cut into segments, each an ordinary encoding whose shard files are objects `ROOT/NNN.shard` below a prefix,
//! spread over targets so that no domain holds more of them than may be lost. A manifest names the segments; its root is the
//! root of all. Whoever has it and the places gets the payload back, and trusts none of them.
//!
//! [`ObjectStore`] is all that is asked of a place. Folders are one without further ado; S3, Google, Azure and HTTPS come with the
//! feature `stores`.

pub mod call;
#[cfg(feature = "stores")]
mod cloud;
pub mod error;
mod fetch;
mod find;
pub mod folder;
mod keys;
pub mod mend;
pub mod object;
mod part;
pub mod placement;
pub mod places;
mod put;
mod room;
pub mod send;
pub mod stored;
pub mod target;
pub mod verify;

pub use error::StoreError;
pub use object::ObjectStore;

use call::CallOptions;
use folder::FolderStore;
use std::sync::Arc;
use target::{Scheme, Target};

/// Opens a place; nothing is sent to it yet.
///
/// # Errors
/// [`StoreError::Unsupported`] in a build without the feature `stores`; [`StoreError::Denied`] without credentials.
pub fn open(target: &Target, options: &CallOptions, sync: bool) -> Result<Arc<dyn ObjectStore>, StoreError> {
    match &target.scheme {
        Scheme::Folder(path) => Ok(Arc::new(FolderStore::new(target.url.clone(), path, sync))),
        #[cfg(feature = "stores")]
        _ => cloud::open(target, options),
        #[cfg(not(feature = "stores"))]
        _ => {
            let _ = options;
            Err(StoreError::Unsupported("be reached: this build knows folders only"))
        }
    }
}
