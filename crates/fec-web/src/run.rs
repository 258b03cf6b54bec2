//! Does what a request asks for.

use crate::host::{Host, Object, Output, Sealed, Shown};
use crate::request::{Request, Work, parse};
use crate::{encode, report};
use fec_base::context::{Context, Settings};
use fec_base::error::{Action, Place};
use fec_base::threads::Threads;
use fecfile::report::Restored;
use fecfile::seal::Opener;
use fecfile::{Archive, EncodingError, Error, Input, PayloadRange, Result, Wanted};
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers requests over the objects of a host.
pub struct Session {
    host: Arc<dyn Host>,
    /// The encoding whose parts may be asked for.
    opened: Option<(Archive, Option<Opener>)>,
}

impl Session {
    /// A session with a host, in which nothing is open.
    pub fn new(host: Arc<dyn Host>) -> Session {
        Session { host, opened: None }
    }

    /// Answers a request (see [`request`](crate::request) and [`report`]). Everything runs on the calling thread, in
    /// at most 96 MiB beside the request, and as much as a passphrase's own work takes.
    pub fn answer(&mut self, request: &[u8]) -> Value {
        let request = match parse(request) {
            Ok(request) => request,
            Err(why) => return report::refused(&why),
        };
        let shown = Shown(self.host.clone());
        let settings = Settings { threads: 1, map: false, sync: false, ..Settings::new() };
        let context = Context::new(settings).with_progress(&shown);
        let done = match request.work {
            Work::Encode => encode::encode(&request, self.host.clone(), &context),
            Work::Part => self.part(&request, &context),
            Work::Open => self.open(&request, &context),
            Work::Look | Work::Verify | Work::Restore => read(&request, &self.host, &context),
        };
        done.unwrap_or_else(|error| report::failed(&error))
    }

    /// Opens an encoding, in place of one that was open.
    fn open(&mut self, request: &Request, context: &Context<'_>) -> Result<Value> {
        self.opened = None;
        let archive = found(request, &self.host, context)?;
        let opener = match archive.opener(request.keys.as_ref()) {
            Ok(opener) => opener,
            Err(error) => {
                let mut said = report::failed(&error);
                said["encoding"] = report::encoding(&archive);
                return Ok(said);
            }
        };
        let extent = archive.encoded().extent();
        let len = opener.as_ref().map_or(Ok(extent.sealed_len), |opener| opener.opened_len(extent))?;
        let said = report::opened(report::encoding(&archive), name_of(&archive, opener.as_ref()), len);
        self.opened = Some((archive, opener));
        Ok(said)
    }

    /// Restores a part of the open encoding to output 0, from its byte 0 on.
    fn part(&self, request: &Request, context: &Context<'_>) -> Result<Value> {
        let Some((archive, opener)) = &self.opened else {
            return Ok(report::refused("no encoding is open: ask to \"open\" one first"));
        };
        let (start, len) = request.part;
        let range = PayloadRange { start, end: Some(start.saturating_add(len)) };
        let mut out = Output { host: &self.host, at: 0 };
        let _ = archive.restore_in_order(range, opener.as_ref(), (&mut out, Place::Output), context)?;
        Ok(json!({"ok": true, "part": {"start": start, "len": out.at}}))
    }
}

/// The encoding that a request is about.
fn found(request: &Request, host: &Arc<dyn Host>, context: &Context<'_>) -> Result<Archive> {
    let wanted = Wanted::from(request.root).signed_by(request.trust.as_ref());
    Archive::open(&input(request, host), wanted, context)
}

/// The name of the payload: that in the seal, if it is opened.
fn name_of(archive: &Archive, opener: Option<&Opener>) -> Option<Vec<u8>> {
    opener.and_then(|opener| opener.name().map(<[u8]>::to_vec)).or_else(|| archive.name())
}

/// Looks at an encoding, verifies or restores it.
fn read(request: &Request, host: &Arc<dyn Host>, context: &Context<'_>) -> Result<Value> {
    let archive = found(request, host, context)?;
    let encoding = report::encoding(&archive);
    match request.work {
        Work::Verify => {
            let verified = archive.verify(false, context)?;
            Ok(json!({"ok": true, "encoding": encoding, "verified": report::verified(&verified)}))
        }
        Work::Restore => {
            let mut said = match restore(request, &archive, host, context) {
                Ok(restored) => json!({"ok": true, "restored": restored}),
                Err(error) => report::failed(&error),
            };
            said["encoding"] = encoding;
            Ok(said)
        }
        _ => Ok(json!({"ok": true, "encoding": encoding})),
    }
}

/// The objects of a request. A single one may be of any form, several are shard files.
fn input(request: &Request, host: &Arc<dyn Host>) -> Input {
    let objects = (0..).zip(&request.objects).map(|(number, named)| {
        let bytes = Arc::new(Object { host: host.clone(), number, size: named.size });
        fecfile::Object::new(&named.name, bytes).expect("the request has its size")
    });
    let mut objects: Vec<fecfile::Object> = objects.collect();
    match (objects.len(), objects.pop()) {
        (1, Some(only)) => Input::One(only),
        (_, last) => {
            objects.extend(last);
            Input::Several(objects)
        }
    }
}

/// Restores the payload to output 0. A sealed one is opened from there to output 1, once all of it is proved.
fn restore(
    request: &Request,
    archive: &Archive,
    host: &Arc<dyn Host>,
    context: &Context<'_>,
) -> Result<Value> {
    let opener = archive.opener(request.keys.as_ref())?;
    let fail = |e| Error::io(Action::Write, Place::Output, e);
    // A payload that can be restored has no more bytes than its shards. A longer one gets no room: hosts that
    // keep outputs in memory would make it up to the last byte.
    let held = request.objects.iter().fold(0, |sum: u64, object| sum.saturating_add(object.size));
    let has_room = archive.encoded().known_len() <= held;
    let put = |offset, bytes: &[u8]| match has_room {
        true => host.write(0, offset, bytes).map_err(fail),
        false => Ok(()),
    };
    let restored = whole(archive.restore_by(&put, context)?)?;
    let extent = archive.encoded().extent();
    let name = name_of(archive, opener.as_ref());
    let Some(opener) = &opener else { return Ok(report::restored(&restored, name, (0, extent.sealed_len))) };
    let len = opener.opened_len(extent)?;
    let sealed = Sealed { host: host.clone(), len: extent.sealed_len };
    opener.open_file(&sealed, (extent, &(0..len)), false, Threads(1), &fail)?;
    Ok(report::restored(&restored, name, (1, len)))
}

/// The result, if the whole payload was restored.
fn whole(restored: Restored) -> Result<Restored> {
    match restored.is_whole() {
        true => Ok(restored),
        false => Err(Error::new(Action::Decode, EncodingError::Lost(Box::new(restored)))),
    }
}
