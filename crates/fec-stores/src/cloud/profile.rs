//! Reads a profile from the files of AWS: `~/.aws/credentials` and `~/.aws/config`.

use super::check;
use crate::error::StoreError;
use fec_base::io::small;
use object_store::aws::AwsCredential;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, fs, io};
use zeroize::Zeroizing;

/// The useful settings of a profile.
#[derive(Default)]
pub(super) struct Profile {
    pub(super) key_id: Option<String>,
    pub(super) secret: Option<Zeroizing<String>>,
    pub(super) token: Option<Zeroizing<String>>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
}

impl Profile {
    /// Checks its values before they come into requests.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let secrets = [&self.secret, &self.token].map(|value| value.as_deref().map(String::as_str));
        for value in secrets.into_iter().chain([self.key_id.as_deref()]).flatten() {
            check::credential("a credential in the profile", value)?;
        }
        let region = |region| check::region("the region in the profile", region);
        self.region.as_deref().map_or(Ok(()), region)?;
        let endpoint = |endpoint| check::endpoint("the endpoint_url in the profile", endpoint);
        self.endpoint.as_deref().map_or(Ok(()), endpoint)
    }

    /// Its credentials, if it has any.
    pub(super) fn credential(&self) -> Option<AwsCredential> {
        Some(AwsCredential {
            key_id: self.key_id.clone()?,
            secret_key: self.secret.as_ref()?.to_string(),
            token: self.token.as_ref().map(|token| token.to_string()),
        })
    }
}

/// Most bytes of such a file.
const LONGEST: usize = 4 << 20;

/// Settings for credentials that AWS's programs know and this one does not.
const FOREIGN: [&str; 5] =
    ["credential_process", "credential_source", "role_arn", "sso_session", "sso_start_url"];

/// The place of a profile.
#[derive(Clone, Debug)]
pub(super) struct Source {
    name: Option<String>,
    credentials: PathBuf,
    config: PathBuf,
}

/// State of both files, by which a change shows.
pub(super) type Stamp = [Option<(SystemTime, u64)>; 2];

impl Source {
    /// The profile `name`, or the one that AWS_PROFILE names, or `default`.
    pub(super) fn new(name: Option<&str>) -> Source {
        let from_environment = env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
        Source {
            name: name.map(str::to_owned).or(from_environment),
            credentials: path_of("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            config: path_of("AWS_CONFIG_FILE", "config"),
        }
    }

    /// A profile in these files.
    #[cfg(test)]
    pub(super) fn of_files(name: &str, credentials: &Path, config: &Path) -> Source {
        let [credentials, config] = [credentials, config].map(Path::to_path_buf);
        Source { name: Some(name.into()), credentials, config }
    }

    /// Reads the profile. A named one has to exist.
    pub(super) fn read(&self) -> Result<Profile, StoreError> {
        profile_of(&text_of(&self.credentials)?, &text_of(&self.config)?, self.name.as_deref())
    }

    pub(super) fn stamp(&self) -> Stamp {
        [&self.credentials, &self.config].map(|path| {
            let meta = fs::metadata(path).ok()?;
            Some((meta.modified().ok()?, meta.len()))
        })
    }
}

/// Path of a file of AWS; empty without a home.
fn path_of(variable: &str, file: &str) -> PathBuf {
    let named = env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let of_home = || env::home_dir().map(|home| home.join(".aws").join(file));
    named.or_else(of_home).unwrap_or_default()
}

/// Path and text of a file; the text is empty if there is no file.
fn text_of(path: &Path) -> Result<(PathBuf, Zeroizing<String>), StoreError> {
    match small::read_text(path, LONGEST) {
        Ok(text) => Ok((path.to_path_buf(), text)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok((path.to_path_buf(), Zeroizing::default()))
        }
        Err(e) => Err(StoreError::Denied(format!("{}: {e}", path.display()))),
    }
}

fn profile_of(
    credentials: &(PathBuf, Zeroizing<String>),
    config: &(PathBuf, Zeroizing<String>),
    name: Option<&str>,
) -> Result<Profile, StoreError> {
    let wanted = name.unwrap_or("default");
    let of_config = if wanted == "default" { wanted.to_owned() } else { format!("profile {wanted}") };
    let mut values = section_of(&config.0, &config.1, &[&of_config])?;
    let mut found = values.is_some();
    if let Some(first) = section_of(&credentials.0, &credentials.1, &[wanted])? {
        found = true;
        values.get_or_insert_default().extend(first);
    }
    if name.is_some() && !found {
        return Err(StoreError::Denied(format!(
            "there is no profile {wanted:?} in {} or {}",
            credentials.0.display(),
            config.0.display()
        )));
    }
    let values = values.unwrap_or_default();
    let text = |key: &str| values.get(key).map(|value| value.to_string()).filter(|value| !value.is_empty());
    let secret = |key: &str| values.get(key).cloned().filter(|value| !value.is_empty());
    let profile = Profile {
        key_id: text("aws_access_key_id"),
        secret: secret("aws_secret_access_key"),
        token: secret("aws_session_token"),
        region: text("region"),
        endpoint: text("endpoint_url"),
    };
    if profile.key_id.is_some() != profile.secret.is_some() {
        return Err(StoreError::Denied(format!(
            "the profile {wanted:?} has one of aws_access_key_id and aws_secret_access_key, and not the other"
        )));
    }
    let foreign = FOREIGN.iter().find(|key| values.contains_key(**key));
    if let (None, Some(foreign)) = (&profile.key_id, foreign) {
        return Err(StoreError::Denied(format!(
            "the profile {wanted:?} gets its credentials by {foreign}, which is not known here: \
             aws configure export-credentials --format env prints variables to set"
        )));
    }
    Ok(profile)
}

type Values = BTreeMap<String, Zeroizing<String>>;

/// Values of the sections with these names; `None`: there is no such section.
fn section_of(path: &Path, text: &str, names: &[&str]) -> Result<Option<Values>, StoreError> {
    let mut values: Option<Values> = None;
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        // Indented lines belong to the setting above, and none of those matters here.
        if line.starts_with([' ', '\t', '#', ';']) || line.trim().is_empty() {
            continue;
        }
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let name: Vec<&str> = name.0.split_whitespace().collect();
            inside = names.contains(&name.join(" ").replace('"', "").as_str());
            if inside {
                values.get_or_insert_default();
            }
        } else if let Some((key, value)) = line.split_once('=') {
            if let (true, Some(values)) = (inside, &mut values) {
                values.insert(key.trim().to_ascii_lowercase(), Zeroizing::new(value.trim().to_owned()));
            }
        } else {
            // The line itself may be a secret, so only its number is told.
            return Err(StoreError::Denied(format!(
                "{}, line {}, is neither [a section] nor a name = a value",
                path.display(),
                number + 1
            )));
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (PathBuf, Zeroizing<String>) {
        ("FILE".into(), Zeroizing::new(text.into()))
    }

    #[test]
    fn profiles_come_from_both_files() {
        let credentials = file(
            "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=B=/+\n\n[ci]\naws_access_key_id=C\n\
             aws_secret_access_key=D\naws_session_token=E\n",
        );
        let config = file(
            "[default]\nregion = eu-north-1\ns3 =\n  max_concurrent_requests = 1\n[profile ci]\nregion=x\n\
             endpoint_url = http://h:1\naws_access_key_id = not this one\n[profile sso]\nsso_session = y\n",
        );
        let read = |name: Option<&str>| profile_of(&credentials, &config, name);
        let default = read(None).expect("a profile");
        assert_eq!((default.key_id.as_deref(), default.region.as_deref()), (Some("A"), Some("eu-north-1")));
        assert_eq!(default.secret.as_deref().map(String::as_str), Some("B=/+"));
        let ci = read(Some("ci")).expect("a profile");
        assert_eq!((ci.key_id.as_deref(), ci.endpoint.as_deref()), (Some("C"), Some("http://h:1")));
        assert!(ci.token.is_some());
        assert!(matches!(read(Some("none")), Err(StoreError::Denied(_))));
        assert!(matches!(read(Some("sso")), Err(StoreError::Denied(text)) if text.contains("sso_session")));
        let nothing = profile_of(&file(""), &file(""), None).expect("a profile");
        assert!(nothing.key_id.is_none() && nothing.region.is_none());
    }

    #[test]
    fn what_is_wrong_is_told_without_secrets() {
        let wrong = |text: &str| match profile_of(&file(text), &file(""), None) {
            Err(StoreError::Denied(text)) => text,
            _ => panic!("it was read"),
        };
        assert!(wrong("[default]\nverysecret\n").contains("line 2"));
        assert!(!wrong("[default]\nverysecret\n").contains("verysecret"));
        assert!(wrong("[default]\naws_access_key_id=A\n").contains("aws_secret_access_key"));
    }
}
