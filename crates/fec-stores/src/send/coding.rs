//! Cuts a payload into segments, and codes each into a temporary folder.

use super::options::SendOptions;
use crate::error::StoresError;
use crate::room::Room;
use crate::system::private;
use fec_base::context::Context;
use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::ReadAt;
use fec_base::io::folder::Folder;
use fec_base::io::output::{OWNER_ALONE, Policy, check_room};
use fec_core::format::shard_file::{Encoding, HEADER_LEN, ShardHeader};
use fecfile::payload::{Options, Payload, Source};
use fecfile::within::{Label, SpareRooms, write_in};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::SyncSender;

/// Bytes read from a pipe at a time.
const PIECE: usize = 1 << 20;
/// Most bytes for the buffers of sets: concurrent uploads need memory too.
const CODING_MEMORY: u64 = 40 << 20;

/// Refuses more segments than the manifest has room for.
pub(super) fn check_segments(segments: u64, most: u64) -> Result<()> {
    let many = StoresError::ManySegments { segments, most };
    if segments > most { Err(Error::new(Action::Encode, many)) } else { Ok(()) }
}

/// A part of a payload.
struct Segment<'a> {
    payload: &'a dyn Payload,
    start: u64,
    len: u64,
}

impl Payload for Segment<'_> {
    fn size(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.payload.read_at(self.start + offset, out)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.payload.check_unchanged()
    }

    fn place(&self) -> Place {
        self.payload.place()
    }
}

/// A segment of a pipe, in a temporary file.
struct Spooled {
    file: File,
    len: u64,
    place: Place,
}

impl Payload for Spooled {
    fn size(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(offset, out).map_err(|e| Error::io(Action::Read, Place::Temporary, e))
    }

    fn place(&self) -> Place {
        self.place.clone()
    }
}

/// A coded segment.
pub(super) struct Coded {
    pub(super) number: u32,
    pub(super) encoding: Encoding,
    /// The name that its files begin with.
    pub(super) files: Vec<u8>,
    pub(super) room: Room,
}

/// Codes segment after segment, at most `most`, until the source ends or the receiver is gone. Segments record `name`;
/// those of a sealed payload record none.
pub(super) fn code(
    mut source: Source<'_>,
    (name, most): (Option<&[u8]>, u64),
    options: &SendOptions,
    coded: &SyncSender<Coded>,
    context: &Context<'_>,
) -> Result<()> {
    let settings = fec_base::context::Settings {
        max_memory: context.settings.max_memory.min(CODING_MEMORY),
        // The files are removed after sending.
        sync: false,
        ..context.settings
    };
    let context = context.silent().with_settings(settings);
    // A range of a payload in stores costs its leaves then.
    let encode = Options { outlines: true, ..options.encode.clone() };
    let spare = SpareRooms::default();
    let mut pipe = Vec::new();
    for number in 0.. {
        check_segments(u64::from(number) + 1, most)?;
        let start = u64::from(number) * options.segment_len;
        let room = Room::new(options.spool.as_deref())?;
        let (segment, is_last) = match &mut source {
            Source::Payload(payload) => {
                let len = (payload.size() - start).min(options.segment_len);
                let is_last = start + len == payload.size();
                let segment = Segment { payload: *payload, start, len };
                (code_segment(&segment, (name, number, is_last), room, &spare, &encode, &context)?, is_last)
            }
            Source::Pipe(..) => {
                let place = source.place();
                let path = room.payload();
                let (len, is_last) = spool(&mut source, start, &mut pipe, &path, options.segment_len)?;
                let file = File::open(&path).map_err(|e| Error::io(Action::Read, Place::Temporary, e))?;
                // The open file stays readable.
                let _ = fs::remove_file(&path);
                let segment = Spooled { file, len, place };
                (code_segment(&segment, (name, number, is_last), room, &spare, &encode, &context)?, is_last)
            }
        };
        // The sender tells its own error.
        if coded.send(segment).is_err() || is_last {
            break;
        }
    }
    Ok(())
}

/// Copies a segment of a pipe to a file; returns its length, and whether the pipe has ended. A byte read beyond the
/// segment tells whether it is the last; `ahead` keeps that byte for the next segment.
fn spool(
    source: &mut Source<'_>,
    start: u64,
    ahead: &mut Vec<u8>,
    path: &Path,
    segment_len: u64,
) -> Result<(u64, bool)> {
    let fail = |e| Error::io(Action::Write, Place::Temporary, e);
    let mut create = File::options();
    let mut file = private(create.write(true).create_new(true)).open(path).map_err(fail)?;
    let mut piece = vec![0; PIECE];
    file.write_all(ahead).map_err(fail)?;
    let mut len = ahead.len() as u64;
    ahead.clear();
    while len < segment_len {
        let most = (segment_len - len).min(PIECE as u64) as usize;
        let read = source.read(start + len, &mut piece[..most])?;
        file.write_all(&piece[..read]).map_err(fail)?;
        len += read as u64;
        if read < most {
            return Ok((len, true));
        }
    }
    let read = source.read(start + len, &mut piece[..1])?;
    ahead.extend_from_slice(&piece[..read]);
    Ok((len, read == 0))
}

/// The name that a segment records: the payload's own if it is the only segment, else with a number.
fn segment_name(name: &[u8], number: u32, is_last: bool) -> Vec<u8> {
    if number == 0 && is_last {
        return name.to_vec();
    }
    let suffix = format!(".{number:05}.segment");
    let most = fec_core::format::meta::MAX_NAME - suffix.len();
    [&name[..name.len().min(most)], suffix.as_bytes()].concat()
}

/// Codes a segment into the files of a room.
fn code_segment(
    segment: &dyn Payload,
    (name, number, is_last): (Option<&[u8]>, u32, bool),
    room: Room,
    spare: &SpareRooms,
    encode: &Options,
    context: &Context<'_>,
) -> Result<Coded> {
    let code = encode.code;
    let bytes = segment.size() / code.k() as u64 * code.n() as u64;
    check_room(room.path(), bytes).map_err(Room::failure)?;
    let store = Folder::new(room.shards(), Policy::new().with_sync(false).with_permissions(OWNER_ALONE));
    let label = match name {
        Some(name) => Label::named(&segment_name(name, number, is_last))?,
        None => Label::part_of_sealed(),
    };
    write_in(spare, segment, &label, &store, encode, context)?;
    let files = label.files().to_vec();
    let mut header = [0; HEADER_LEN];
    let fail = |e| Error::io(Action::Read, Place::Temporary, e);
    File::open(room.shard(&files, 0)).and_then(|file| file.read_exact_at(0, &mut header)).map_err(fail)?;
    let header = ShardHeader::parse(&header).map_err(|e| Error::new(Action::Encode, e))?;
    Ok(Coded { number, encoding: header.encoding, files, room })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_have_names_of_their_own() {
        assert_eq!(segment_name(b"a.tar", 0, true), b"a.tar");
        assert_eq!(segment_name(b"a.tar", 0, false), b"a.tar.00000.segment");
        assert_eq!(segment_name(b"a.tar", 7, true), b"a.tar.00007.segment");
        assert_eq!(segment_name(&[b'x'; 255], 3, true).len(), 255);
    }
}
