//! Targets: the user's names of places for shards, each a URL or a folder with options.

use super::system;
use fec_base::error::Place;
use fec_base::names::show;
use std::fs;
use std::path::{Path, PathBuf};

/// A place as the user names it: `URL[,NAME=VALUE]…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The place, without trailing slashes and options.
    pub url: String,
    /// Name of the group of places that fail together. No domain gets more shards of a set than may be lost.
    pub domain: String,
    /// Address of an S3 service other than Amazon's: `http://host:port`.
    pub endpoint: Option<String>,
    /// Region of an S3 service.
    pub region: Option<String>,
    /// An S3 service is asked at a host that begins with the name of the bucket: some refuse it behind the slash.
    pub is_virtual: bool,
    /// Profile with the credentials in the files of AWS.
    pub profile: Option<String>,
    /// Kind of the place.
    pub scheme: Scheme,
}

/// Kinds of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A folder: a path, or `file:///path`.
    Folder(PathBuf),
    /// `s3://BUCKET/PREFIX`.
    S3,
    /// `gs://BUCKET/PREFIX`.
    Google,
    /// `az://CONTAINER/PREFIX`.
    Azure,
    /// `https://HOST/PATH`, or `http://`: only for reading.
    Http,
}

/// Errors of parsing a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The name is empty.
    #[error("it is empty")]
    Empty,
    /// The scheme is unknown.
    #[error("{0}:// is not known; s3, gs, az, https, http, file and folders are")]
    Scheme(String),
    /// The URL names no host or bucket, or has a part that does not belong there.
    #[error("{0}")]
    Url(&'static str),
    /// A known scheme without `://` behind it.
    #[error("write {0}://…, with a colon and two slashes")]
    Colon(&'static str),
    /// An unknown option behind a comma; its name, if it has one.
    #[error("{}what stands behind the comma is not known: domain=, endpoint=, region=, profile= and style= are", Name(.0))]
    Option(Option<String>),
}

/// Longest name of a domain, in bytes.
const MAX_DOMAIN: usize = 64;
/// Longest name of an option that an error repeats, in bytes.
const MAX_NAME: usize = 32;

impl Target {
    /// Parses a target. A URL has no user, password, query or fragment: credentials come from the environment and from
    /// files, so they never stand where others see them.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let mut parts = text.split(',');
        let place = parts.next().unwrap_or_default();
        let (mut domain, mut endpoint, mut region, mut profile) = (None, None, None, None);
        let mut is_virtual = false;
        for part in parts {
            if let Some(style) = part.strip_prefix("style=") {
                is_virtual = match style {
                    "virtual" => true,
                    "path" => false,
                    _ => return Err(TargetError::Url("style= is virtual or path")),
                };
                continue;
            }
            let slot = match part.split_once('=').filter(|(_, value)| !value.is_empty()) {
                Some(("domain", value)) => (&mut domain, value),
                Some(("endpoint", value)) => (&mut endpoint, value),
                Some(("region", value)) => (&mut region, value),
                Some(("profile", value)) => (&mut profile, value),
                _ => return Err(TargetError::Option(name_of(part))),
            };
            *slot.0 = Some(slot.1.to_owned());
        }
        if let Some(endpoint) = &endpoint {
            check_url(endpoint)?;
        }
        if domain.as_ref().is_some_and(|domain: &String| domain.len() > MAX_DOMAIN) {
            return Err(TargetError::Url("the name of a domain has at most 64 bytes"));
        }
        let (url, scheme) = scheme_of(place)?;
        // By default each place is its own domain.
        let mut target = Target { url, domain: String::new(), endpoint, region, is_virtual, profile, scheme };
        target.domain = domain.unwrap_or_else(|| target.name());
        Ok(target)
    }

    /// The place's name in manifests and messages: its URL, and its endpoint if one is given.
    pub fn name(&self) -> String {
        match &self.endpoint {
            Some(endpoint) => format!("{},endpoint={endpoint}", self.url),
            None => self.url.clone(),
        }
    }

    /// Tells whether its domain is not the default one.
    pub fn has_domain(&self) -> bool {
        self.domain != self.name()
    }

    /// The bucket or container, and the prefix in it, without slashes around it.
    pub fn bucket_and_prefix(&self) -> (&str, &str) {
        let behind = self.url.split_once("://").map_or("", |(_, behind)| behind);
        behind.split_once('/').unwrap_or((behind, ""))
    }

    /// Identities of the place, independent of its name, as far as visible from here. Two targets that share an
    /// identity are the same place.
    pub(super) fn identities(&self) -> Vec<Identity> {
        match &self.scheme {
            Scheme::Folder(path) => {
                let file =
                    fec_base::io::system::identity(path).map(|(device, inode)| Identity::File(device, inode));
                let path = system::spelling(resolved(path));
                file.into_iter().chain([Identity::Path(path)]).collect()
            }
            _ => vec![Identity::Name(self.name())],
        }
    }

    /// Tells whether the place is only for reading.
    pub fn is_read_only(&self) -> bool {
        self.scheme == Scheme::Http
    }
}

/// A property that no two places share.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identity {
    /// Device and inode of an existing folder.
    File(u64, u64),
    /// Path of a folder, without links.
    Path(PathBuf),
    /// Name of any other place.
    Name(String),
}

/// The path with links resolved, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let known = absolute.ancestors().find_map(|there| Some((there, fs::canonicalize(there).ok()?)));
    match known {
        Some((there, known)) => absolute.strip_prefix(there).map_or(known.clone(), |rest| known.join(rest)),
        None => absolute,
    }
}

/// The name of an option, for messages. Any other text may be a secret.
fn name_of(option: &str) -> Option<String> {
    let (name, _) = option.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_');
    ((1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_name)).then(|| name.to_owned())
}

/// Writes the name of an option in front of a sentence.
struct Name<'a>(&'a Option<String>);

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |name| write!(f, "{name}=: "))
    }
}

/// The known scheme that the place begins with, if `:` or `//` follows it: folders hardly have such names.
fn mistyped(place: &str) -> Option<&'static str> {
    let known = ["s3", "gs", "az", "https", "http", "file"].into_iter();
    let mut of_place = known
        .filter(|scheme| place.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    of_place.find(|scheme| [":", "//"].iter().any(|behind| place[scheme.len()..].starts_with(behind)))
}

fn scheme_of(place: &str) -> Result<(String, Scheme), TargetError> {
    let trimmed = system::without_end(place);
    let Some((scheme, behind)) = place.split_once("://") else {
        if let Some(scheme) = mistyped(place) {
            return Err(TargetError::Colon(scheme));
        }
        return match (place.is_empty(), trimmed.is_empty()) {
            (true, _) => Err(TargetError::Empty),
            (false, true) => Ok(("/".into(), Scheme::Folder("/".into()))),
            (false, false) => Ok((trimmed.into(), Scheme::Folder(trimmed.into()))),
        };
    };
    let scheme_name = scheme;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "file" => {
            if !behind.starts_with('/') {
                return Err(TargetError::Url(
                    "write file:///PATH: a path on this machine begins with a slash",
                ));
            }
            if behind.contains('%') {
                return Err(TargetError::Url("write the path as it is, without file:// and %-signs"));
            }
            return Ok((trimmed.into(), Scheme::Folder(system::path_of_url(behind).into())));
        }
        "s3" => Scheme::S3,
        "gs" => Scheme::Google,
        "az" => Scheme::Azure,
        "https" | "http" => Scheme::Http,
        _ => return Err(TargetError::Scheme(scheme.to_owned())),
    };
    check_url(if behind.trim_end_matches('/').is_empty() { place } else { trimmed })?;
    // The case of the scheme does not matter.
    let rest = trimmed.find("://").map_or("", |at| &trimmed[at..]);
    Ok((format!("{}{rest}", scheme_name.to_ascii_lowercase()), scheme))
}

/// Refuses parts that do not belong into a place's URL.
fn check_url(url: &str) -> Result<(), TargetError> {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    let (host, path) = behind.split_once('/').unwrap_or((behind, ""));
    if host.is_empty() {
        return Err(TargetError::Url("it names no host or bucket"));
    }
    if host.contains('@') {
        return Err(TargetError::Url(
            "a user or password does not belong here: credentials come from the environment and from files",
        ));
    }
    if behind.contains(['?', '#']) {
        return Err(TargetError::Url("a query does not belong here"));
    }
    if behind.chars().any(|c| c.is_control() || c == ' ') {
        return Err(TargetError::Url("it has spaces or control characters"));
    }
    if path.split('/').any(|part| part == "." || part == "..") || path.starts_with('/') || path.contains("//")
    {
        return Err(TargetError::Url("its path has an empty part, or one that is . or .."));
    }
    Ok(())
}

impl From<&Target> for Place {
    fn from(target: &Target) -> Place {
        Place::Address(show(target.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_name() {
        let target =
            Target::parse("s3://bucket/a/b/,domain=oslo,endpoint=http://127.0.0.1:9000,region=eu,profile=ci")
                .expect("a target");
        assert_eq!((target.url.as_str(), target.domain.as_str()), ("s3://bucket/a/b", "oslo"));
        assert_eq!(target.bucket_and_prefix(), ("bucket", "a/b"));
        assert_eq!(target.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        let is_virtual = |text: &str| Target::parse(text).map(|target| target.is_virtual);
        assert_eq!(
            [",style=virtual", ",style=path", ""].map(|style| is_virtual(&format!("s3://b{style}"))),
            [Ok(true), Ok(false), Ok(false)]
        );
        assert_eq!(is_virtual("s3://b,style=other"), Err(TargetError::Url("style= is virtual or path")));
        assert_eq!((target.region.as_deref(), target.profile.as_deref()), (Some("eu"), Some("ci")));
        let folder = |text: &str| Target::parse(text).map(|target| (target.scheme, target.domain));
        assert_eq!(folder("/mnt/a/"), Ok((Scheme::Folder("/mnt/a".into()), "/mnt/a".into())));
        assert_eq!(folder("file:///mnt/a"), Ok((Scheme::Folder("/mnt/a".into()), "file:///mnt/a".into())));
        assert_eq!(folder("shards,domain=x"), Ok((Scheme::Folder("shards".into()), "x".into())));
        assert_eq!(Target::parse("gs://b").expect("a target").bucket_and_prefix(), ("b", ""));
        let [one, other] = ["http://a:1", "http://a:2"]
            .map(|at| Target::parse(&format!("s3://b,endpoint={at}")).expect("a target").domain);
        assert_ne!(one, other, "two services are two domains");
        assert_eq!(Target::parse("S3://Bucket/X").expect("a target").url, "s3://Bucket/X");
    }

    #[test]
    fn one_place_by_several_names() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let at =
            |name: &str| Target::parse(&format!("{}/{name}", scratch.path().display())).expect("a target");
        fs::create_dir(scratch.path().join("a")).expect("a folder");
        std::os::unix::fs::symlink("a", scratch.path().join("link")).expect("a link");
        let file = Target::parse(&format!("file://{}/a", scratch.path().display())).expect("a target");
        for (one, other, is_same) in [
            (at("a"), at("./a"), true),
            (at("a"), file, true),
            (at("a"), at("link"), true),
            (at("a/new/er"), at("link/new/er"), true),
            (at("a"), at("b"), false),
            (at("b"), at("./b"), true),
            (at("a"), at("a/b"), false),
        ] {
            let shares = one.identities().iter().any(|identity| other.identities().contains(identity));
            assert_eq!(shares, is_same, "{one:?} {other:?}");
        }
    }

    #[test]
    fn what_does_not_belong() {
        for text in [
            "",
            "ftp://host/x",
            "s3://",
            "s3:///x",
            "s3://user:secret@bucket/x",
            "https://host/x?token=1",
            "https://host/#x",
            "s3://b/x,domain=",
            "s3://b/x,secret=1",
            "s3://b/x,domain",
            "s3://b/../x",
            "s3://b//x",
            "file://host/x",
            "s3://b/a b",
            "s3://b,endpoint=http://u@h",
            "az://c/./x",
            "file:///a%20b",
            "s3:b/x",
            "s3:/b",
            "S3//b",
            "file:/x",
            "https:host/x",
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
        for text in ["./s3:b", "s3", "s3x:b", "s3/x", "C:x"] {
            assert!(Target::parse(text).is_ok_and(|target| target.url == text), "{text}");
        }
        for text in ["s3://b/x,hunter2", "s3://b/x,hunter2=x", "s3://b/x,domain", "s3://b,secret=hunter2"] {
            let error = Target::parse(text).expect_err(text).to_string();
            assert!(!error.contains("hunter2") && error.contains("behind the comma"), "{error}");
        }
    }
}
