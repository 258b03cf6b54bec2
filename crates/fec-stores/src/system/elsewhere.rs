//! The border on a system that is no Unix, such as Windows.

use std::fs::OpenOptions;
use std::path::PathBuf;

/// Changes nothing: files get their permissions from the folder around them, which is the owner's alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// The path of a folder in a spelling that any other of the same folder has too: in small letters, since capitals make
/// no other name.
pub(crate) fn spelling(path: PathBuf) -> PathBuf {
    path.to_str().map_or(path.clone(), |text| PathBuf::from(text.to_lowercase()))
}

/// A place as the user writes it, without the slashes at its end. The slash behind the letter of a drive stays: without
/// it the path would begin wherever the process last was on that drive.
pub(crate) fn without_end(place: &str) -> &str {
    let trimmed = place.trim_end_matches('/');
    if trimmed.ends_with(':') && trimmed.len() < place.len() { &place[..=trimmed.len()] } else { trimmed }
}

/// The path that stands behind `file://`, which begins with a slash; none stands before the letter of a drive.
pub(crate) fn path_of_url(behind: &str) -> &str {
    let path = match without_end(behind) {
        "" => "/",
        path => path,
    };
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => &path[1..],
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_drives() {
        for (place, path) in [("C:/", "C:/"), ("C:///", "C:/"), ("C:", "C:"), ("C:/a/", "C:/a"), ("a//", "a")]
        {
            assert_eq!(without_end(place), path);
        }
        for (behind, path) in
            [("/C:/a/", "C:/a"), ("/C:/", "C:/"), ("/a", "/a"), ("/", "/"), ("/1:/", "/1:/")]
        {
            assert_eq!(path_of_url(behind), path);
        }
        assert_eq!(spelling("C:/Shards".into()), spelling("c:/shards".into()));
    }
}
