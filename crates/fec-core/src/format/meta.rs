//! Meta: the small typed list that the root binds (format specification, section 7).

use crate::error::FormatError;

/// The most bytes that meta may have.
pub const MAX_META: usize = 350;
/// The most bytes of a name.
pub const MAX_NAME: usize = 255;
const TYPE_NAME: u8 = 2;

/// What is known of a payload besides its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Meta {
    /// The file's name: raw bytes, one path component.
    pub name: Option<Vec<u8>>,
}

impl Meta {
    /// Meta with a name.
    ///
    /// # Errors
    /// [`FormatError::Meta`] when the name is not one path component of 1–255 bytes.
    pub fn with_name(name: &[u8]) -> Result<Meta, FormatError> {
        check_name(name)?;
        Ok(Meta { name: Some(name.to_vec()) })
    }

    /// Parses meta bytes; unknown odd types are skipped.
    ///
    /// # Errors
    /// [`FormatError::CriticalMeta`] for an unknown even type, [`FormatError::Meta`] for the rest.
    pub fn parse(bytes: &[u8]) -> Result<Meta, FormatError> {
        if bytes.len() > MAX_META {
            return Err(FormatError::Meta("it is longer than 350 bytes"));
        }
        let mut meta = Meta::default();
        let mut rest = bytes;
        let mut before = None;
        while !rest.is_empty() {
            let [kind, low, high, after @ ..] = rest else {
                return Err(FormatError::Meta("an entry is cut short"));
            };
            let len = usize::from(u16::from_le_bytes([*low, *high]));
            if before.is_some_and(|b| b >= *kind) {
                return Err(FormatError::Meta("the types are not strictly ascending"));
            }
            let value = after.get(..len).ok_or(FormatError::Meta("an entry is longer than the meta"))?;
            match *kind {
                TYPE_NAME => {
                    check_name(value)?;
                    meta.name = Some(value.to_vec());
                }
                even if even % 2 == 0 => return Err(FormatError::CriticalMeta(even)),
                _ => {}
            }
            before = Some(*kind);
            rest = &after[len..];
        }
        Ok(meta)
    }

    /// The meta bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(name) = &self.name {
            out.push(TYPE_NAME);
            out.extend_from_slice(&(name.len() as u16).to_le_bytes());
            out.extend_from_slice(name);
        }
        out
    }
}

fn check_name(name: &[u8]) -> Result<(), FormatError> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(FormatError::Meta("a name has 1 to 255 bytes"));
    }
    if name.iter().any(|b| matches!(b, b'/' | 0)) || name == b"." || name == b".." {
        return Err(FormatError::Meta("a name is one path component"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_round_trips_and_every_rule_rejects() {
        let meta = Meta::with_name(b"a.tar").unwrap();
        assert_eq!(Meta::parse(&meta.to_bytes()), Ok(meta));
        assert_eq!(Meta::parse(b""), Ok(Meta::default()));
        assert_eq!(Meta::parse(b"\x03\x01\x00x"), Ok(Meta::default()), "unknown odd types are skipped");
        assert_eq!(Meta::parse(b"\x04\x00\x00"), Err(FormatError::CriticalMeta(4)));
        for bad in [
            &b"\x02"[..],
            b"\x02\x01",
            b"\x02\x00\x00",
            b"\x02\x02\x00a",
            b"\x02\x01\x00ax",
            b"\x03\x00\x00\x02\x01\x00a",
            b"\x02\x01\x00a\x02\x01\x00a",
            b"\x02\x01\x00/",
            b"\x02\x01\x00\0",
            b"\x02\x01\x00.",
            b"\x02\x02\x00..",
        ] {
            assert!(matches!(Meta::parse(bad), Err(FormatError::Meta(_))), "{bad:?}");
        }
        let longest = Meta::with_name(&[b'n'; 255]).unwrap();
        assert!(Meta::parse(&longest.to_bytes()).is_ok());
        assert!(Meta::with_name(&[b'n'; 256]).is_err());
    }
}
