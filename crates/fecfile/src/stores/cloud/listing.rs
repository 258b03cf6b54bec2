//! Lists of objects as services send them, before they are read.

/// Takes the objects out whose keys are no plain paths: the crate `object_store` would fail on the whole list.
pub(super) fn without_odd_keys(xml: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(xml) else { return xml.to_vec() };
    let (open, close, key) = if text.contains("<Blob>") {
        ("<Blob>", "</Blob>", ("<Name>", "</Name>"))
    } else {
        ("<Contents>", "</Contents>", ("<Key>", "</Key>"))
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(open) {
        out.push_str(before);
        let Some((object, after)) = behind.split_once(close) else { break };
        let name = object.split_once(key.0).and_then(|(_, behind)| behind.split_once(key.1));
        if name.is_some_and(|(name, _)| is_plain(name) && !has_control(name)) {
            out.push_str(open);
            out.push_str(object);
            out.push_str(close);
        }
        rest = after;
    }
    out.push_str(rest);
    out.into_bytes()
}

/// Whether a key is a path of parts that are neither empty nor `.` or `..`, without control characters.
pub(super) fn is_plain(key: &str) -> bool {
    !key.chars().any(char::is_control) && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Whether a key in XML has control characters by number. Most characters by number are quotation marks.
fn has_control(key: &str) -> bool {
    key.split("&#").skip(1).any(|behind| {
        let number = behind.split(';').next().unwrap_or_default();
        let (digits, radix) = number.strip_prefix(['x', 'X']).map_or((number, 10), |hex| (hex, 16));
        u32::from_str_radix(digits, radix).ok().and_then(char::from_u32).is_none_or(char::is_control)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_keys_go() {
        let object = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let list = |keys: &[&str]| {
            let objects: String = keys.iter().map(|key| object(key)).collect();
            format!("<ListBucketResult><Prefix>a//</Prefix>{objects}<Token>x</Token></ListBucketResult>")
        };
        let odd = ["a/b", "a//b", "a/", "/a", "a/../b", "./a", "a&#10;b", "a&#x9;", "it&#39;s &amp; d"];
        let left = without_odd_keys(list(&odd).as_bytes());
        assert_eq!(String::from_utf8_lossy(&left), list(&["a/b", "it&#39;s &amp; d"]));
        let azure = "<Blobs><Blob><Name>x//y</Name></Blob><Blob><Name>x</Name></Blob></Blobs>";
        assert_eq!(without_odd_keys(azure.as_bytes()), b"<Blobs><Blob><Name>x</Name></Blob></Blobs>");
        assert_eq!(
            without_odd_keys(b"<Contents><Key>cut"),
            b"<Contents><Key>cut",
            "what is cut must not look whole"
        );
    }
}
