//! The request: an object in JSON, with these members and no others.
//!
//! | member | holds |
//! |---|---|
//! | `do` | `"look"`: which encoding is it; `"verify"`: every byte; `"restore"`: the payload; `"encode"`; `"open"`: the
//! next requests are for parts of it; `"part"` |
//! | `objects` | a list of `{"name": "x.000.shard", "size": 123}`: the host's objects, numbered from 0 |
//! | `root` | 64 hexadecimal digits: only this encoding counts |
//! | `trust` | public keys for minisign, one on each line: only what one of them signed counts |
//! | `identities` | secret keys of age, or a private key of OpenSSH, for a sealed payload |
//! | `passphrase` | the passphrase of a sealed payload |
//! | `start`, `len` | of `"part"`: bytes of the payload |
//! | `k`, `m`, `hash`, `form`, `name` | of `"encode"`, of one object: 33, 67, `"BLAKE3"`, `"shards"`, its name |

use fec_base::roots::parse_root;
use fec_core::block::Code;
use fec_core::digest::{Digest, HashKind};
use fec_keys::age::{Keys, Passphrase, identities_of};
use fec_keys::sign::{Signer, Trust};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

/// The most bytes of a request.
const LONGEST: usize = 16 << 20;
/// The most objects of a request: each shard of the widest code many times over.
const MOST_OBJECTS: usize = 100_000;

/// The work that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Look,
    Verify,
    Restore,
    Encode,
    Open,
    Part,
}

/// An object as the request names it.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) size: u64,
}

/// The options of an encoding.
pub(crate) struct Encoding {
    pub(crate) code: Code,
    pub(crate) hash: HashKind,
    pub(crate) is_container: bool,
    pub(crate) name: Option<String>,
}

/// A request that was understood.
pub(crate) struct Request {
    pub(crate) work: Work,
    pub(crate) objects: Vec<Named>,
    pub(crate) root: Option<Digest>,
    pub(crate) trust: Option<Trust>,
    pub(crate) keys: Option<Keys>,
    /// The options of an encoding; the usual ones if nothing is encoded.
    pub(crate) encoding: Encoding,
    /// Start and length of the wanted part; zeros if none is.
    pub(crate) part: (u64, u64),
}

/// The reason why a request is refused, in words for whoever made it.
pub(crate) type Refusal = String;

/// Reads a request. Its keys are overwritten in memory once they are read.
pub(crate) fn parse(bytes: &[u8]) -> Result<Request, Refusal> {
    if bytes.len() > LONGEST {
        return Err(format!("the request has {} bytes; {LONGEST} are allowed", bytes.len()));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|e| format!("the request is not JSON: {e}"))?;
    let Value::Object(mut members) = value else {
        return Err("the request is not an object in JSON".to_owned());
    };
    let secret = |text: Option<String>| text.map(Zeroizing::new).filter(|text| !text.trim().is_empty());
    let identities = secret(text(&mut members, "identities")?);
    let passphrase = secret(text(&mut members, "passphrase")?);
    let work = match text(&mut members, "do")?.as_deref() {
        Some("look") => Work::Look,
        Some("verify") => Work::Verify,
        Some("restore") => Work::Restore,
        Some("encode") => Work::Encode,
        Some("open") => Work::Open,
        Some("part") => Work::Part,
        _ => return Err("`do` should be look, verify, restore, encode, open or part".to_owned()),
    };
    // Other work has none of these members.
    let mut options = Map::new();
    if work == Work::Encode {
        let taken = ["k", "m", "hash", "form", "name"].map(|name| (name.to_owned(), members.remove(name)));
        options.extend(taken.into_iter().filter_map(|(name, value)| Some((name, value?))));
    }
    let request = Request {
        work,
        objects: if work == Work::Part { Vec::new() } else { objects(members.remove("objects"))? },
        root: root(text(&mut members, "root")?)?,
        trust: trust(text(&mut members, "trust")?)?,
        keys: keys(identities, passphrase)?,
        encoding: encoding(&mut options)?,
        part: if work == Work::Part { part(&mut members)? } else { (0, 0) },
    };
    match members.keys().next() {
        None => Ok(request),
        Some(member) => Err(format!("the request has a member {member:?}, which is not known here")),
    }
}

/// Takes a text out of the members; `null` is none.
fn text(members: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Refusal> {
    match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` should be a text")),
    }
}

fn objects(list: Option<Value>) -> Result<Vec<Named>, Refusal> {
    let Some(Value::Array(list)) = list else { return Err("`objects` should be a list".to_owned()) };
    if list.is_empty() || list.len() > MOST_OBJECTS {
        return Err(format!("there are {} objects; 1 to {MOST_OBJECTS} are allowed", list.len()));
    }
    let named = |object: Value| match (object["name"].as_str(), object["size"].as_u64()) {
        (Some(name), Some(size)) => Ok(Named { name: name.to_owned(), size }),
        _ => Err("each object should have a name and a size".to_owned()),
    };
    list.into_iter().map(named).collect()
}

fn root(text: Option<String>) -> Result<Option<Digest>, Refusal> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    match parse_root(text.trim().as_bytes()) {
        Some(root) => Ok(Some(root)),
        None => {
            Err(format!("a root has 64 hexadecimal digits, and this has {}", text.trim().chars().count()))
        }
    }
}

fn trust(text: Option<String>) -> Result<Option<Trust>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let is_key = |line: &&str| !line.is_empty() && !line.starts_with("untrusted comment:");
    let keys = text.lines().map(str::trim).filter(is_key);
    let signers: Vec<Signer> = keys
        .map(|line| line.parse().map_err(|e| format!("a public key is not right: {e}")))
        .collect::<Result<_, Refusal>>()?;
    Ok((!signers.is_empty()).then(|| Trust { signers, ..Trust::default() }))
}

fn keys(
    identities: Option<Zeroizing<String>>,
    passphrase: Option<Zeroizing<String>>,
) -> Result<Option<Keys>, Refusal> {
    let given = |text: Zeroizing<String>| Passphrase::new(text).map_err(|e| format!("the passphrase: {e}"));
    let Some(identities) = identities else {
        return passphrase.map(|text| given(text).map(Keys::Passphrase)).transpose();
    };
    // A private key of OpenSSH has a passphrase of its own.
    let mut own = passphrase.map(given).transpose()?;
    let read = identities_of(identities.as_bytes(), &mut || own.take());
    match read.map_err(|e| format!("the identities: {e}"))? {
        _ if own.is_some() => {
            Err("identities and a passphrase are given; a payload is sealed to one of them".to_owned())
        }
        identities => Ok(Some(Keys::Identities(identities))),
    }
}

/// Takes a number out of the members.
fn number(members: &mut Map<String, Value>, name: &str, usual: Option<u64>) -> Result<u64, Refusal> {
    match (members.remove(name).filter(|value| !value.is_null()), usual) {
        (None, Some(usual)) => Ok(usual),
        (value, _) => value.and_then(|value| value.as_u64()).ok_or(format!("`{name}` should be a number")),
    }
}

fn part(members: &mut Map<String, Value>) -> Result<(u64, u64), Refusal> {
    Ok((number(members, "start", None)?, number(members, "len", None)?))
}

fn encoding(members: &mut Map<String, Value>) -> Result<Encoding, Refusal> {
    let (k, m) = (number(members, "k", Some(33))?, number(members, "m", Some(67))?);
    let [k, m] = [k, m].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let code = Code::new(k, m).map_err(|e| e.to_string())?;
    let hash = match text(members, "hash")?.as_deref() {
        None | Some("BLAKE3") => HashKind::Blake3,
        Some("SHA-256") => HashKind::Sha256,
        Some(_) => return Err("`hash` should be \"BLAKE3\" or \"SHA-256\"".to_owned()),
    };
    let is_container = match text(members, "form")?.as_deref() {
        None | Some("shards") => false,
        Some("container") => true,
        Some(_) => return Err("`form` should be \"shards\" or \"container\"".to_owned()),
    };
    Ok(Encoding { code, hash, is_container, name: text(members, "name")? })
}
