//! Does what a request asks for.

use crate::host::{Host, Object, Output, Shown};
use crate::request::{Request, Work, parse};
use crate::{encode, report};
use fec_base::context::{Context, Settings};
use fec_base::error::{Action, Place};
use fecfile::report::Restored;
use fecfile::{Archive, EncodingError, Error, Input, Result, Wanted};
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers a request (see [`request`](crate::request) and [`report`]) over the objects of `host`. Everything runs on
/// the calling thread, in at most 96 MiB beside the request, and as much as a passphrase's own work takes.
pub fn answer(request: &[u8], host: Arc<dyn Host>) -> Value {
    let request = match parse(request) {
        Ok(request) => request,
        Err(why) => return report::refused(&why),
    };
    let shown = Shown(host.clone());
    let settings = Settings { threads: 1, map: false, sync: false, ..Settings::new() };
    let context = Context::new(settings).with_progress(&shown);
    let done = match &request.encoding {
        Some(encoding) => encode::encode(&request, encoding, host, &context),
        None => read(&request, &host, &context),
    };
    done.unwrap_or_else(|error| report::failed(&error))
}

/// Looks at an encoding, verifies or restores it.
fn read(request: &Request, host: &Arc<dyn Host>, context: &Context<'_>) -> Result<Value> {
    let wanted = Wanted::from(request.root).signed_by(request.trust.as_ref());
    let archive = Archive::open(&input(request, host), wanted, context)?;
    let encoding = report::encoding(&archive);
    match request.work {
        Work::Verify => {
            let verified = archive.verify(false, context)?;
            Ok(json!({"ok": true, "encoding": encoding, "verified": report::verified(&verified)}))
        }
        Work::Restore => {
            let restored = restore(request, &archive, host, context)?;
            Ok(json!({"ok": true, "encoding": encoding, "restored": restored}))
        }
        Work::Look | Work::Encode => Ok(json!({"ok": true, "encoding": encoding})),
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

/// Restores the payload to output 0: in any order, but a sealed one from front to back.
fn restore(
    request: &Request,
    archive: &Archive,
    host: &Arc<dyn Host>,
    context: &Context<'_>,
) -> Result<Value> {
    let opener = archive.opener(request.keys.as_ref())?;
    let fail = |e| Error::io(Action::Write, Place::Output, e);
    let (restored, len) = match &opener {
        Some(opener) => {
            let mut out = Output { host, at: 0 };
            let restored = archive.restore_in_order(Some(opener), (&mut out, Place::Output), context)?;
            (restored, out.at)
        }
        None => {
            let put = |offset, bytes: &[u8]| host.write(0, offset, bytes).map_err(fail);
            let restored = whole(archive.restore_by(&put, context)?)?;
            let len = restored.payload_len.unwrap_or_default();
            (restored, len)
        }
    };
    let name = opener.as_ref().and_then(|opener| opener.name().map(<[u8]>::to_vec));
    let name = name.or_else(|| archive.name());
    Ok(report::restored(&restored, name.as_deref(), len))
}

/// The result, if the whole payload was restored.
fn whole(restored: Restored) -> Result<Restored> {
    match restored.is_whole() {
        true => Ok(restored),
        false => Err(Error::new(Action::Decode, EncodingError::Lost(Box::new(restored)))),
    }
}
