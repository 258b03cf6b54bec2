//! Encodes an object of the host.

use crate::host::{Host, Object, Output};
use crate::report;
use crate::request::Request;
use fec_base::context::{Context, Progress};
use fec_base::error::{Action, ErrorKind, Place};
use fec_base::io::{NewObjects, ReadAt, Store};
use fecfile::payload::{Options, Payload, Source};
use fecfile::{Error, Result, encode};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex};

/// Encodes the only object of a request to the outputs of the host.
pub(crate) fn encode(request: &Request, host: Arc<dyn Host>, context: &Context<'_>) -> Result<Value> {
    let [object] = &request.objects[..] else {
        return Ok(report::refused("a single object is encoded at a time"));
    };
    if request.root.is_some() || request.trust.is_some() || request.keys.is_some() {
        return Ok(report::refused("roots and keys are for reading an encoding"));
    }
    let encoding = &request.encoding;
    let name = encoding.name.as_ref().unwrap_or(&object.name);
    let payload = Read(Object { host: host.clone(), number: 0, size: object.size });
    let options = Options { hash: encoding.hash, ..Options::new(encoding.code) };
    let (root, names) = match encoding.is_container {
        false => {
            let store = Outputs { host, names: Mutex::default() };
            let written = encode::to_store(&payload, name.as_bytes(), &store, &options, context)?;
            let names = fec_core::executor::into_value(store.names);
            (written.root, names)
        }
        true => {
            let mut out = Output { host: &host, at: 0 };
            let source = Source::Payload(&payload);
            let written = encode::to_writer(source, &mut out, &Place::Output, &options, context)?;
            (written.root, vec![format!("{name}.fec")])
        }
    };
    Ok(json!({"ok": true, "encoded": report::encoded(&root, &names)}))
}

/// The object that is encoded.
struct Read(Object);

impl Payload for Read {
    fn size(&self) -> u64 {
        self.0.size
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.0.read_exact_at(offset, out).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::new(Action::Read, ErrorKind::Changed),
            _ => Error::io(Action::Read, Place::Nowhere, e),
        })
    }
}

/// The outputs of the host, as a store.
struct Outputs {
    host: Arc<dyn Host>,
    names: Mutex<Vec<String>>,
}

impl Store for Outputs {
    fn list(&self) -> io::Result<Vec<OsString>> {
        Ok(Vec::new())
    }

    fn open(&self, _name: &OsStr) -> io::Result<Box<dyn ReadAt>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn create(
        &self,
        names: &[OsString],
        _bytes: u64,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn NewObjects>> {
        let names = names.iter().map(|name| name.to_string_lossy().into_owned());
        *fec_core::executor::lock(&self.names) = names.collect();
        Ok(Box::new(New(self.host.clone())))
    }
}

struct New(Arc<dyn Host>);

impl NewObjects for New {
    fn write_at(&self, object: usize, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut at = offset;
        parts.iter().try_for_each(|part| {
            self.0.write(object as u32, at, part)?;
            at += part.len() as u64;
            Ok(())
        })
    }

    fn place(&self) -> Place {
        Place::Output
    }

    fn read_back(&self, object: usize, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.0.read_back(object as u32, offset, out)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
