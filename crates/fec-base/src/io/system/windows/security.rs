//! Owners and permissions: security descriptors, which this module reads and makes as bytes and as text.

use super::handle::{ALL, done, handle, is_any, open_again, owned, wide};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::path::Path;
use std::ptr::null_mut;
use windows_sys::Win32::Foundation::{
    ERROR_INSUFFICIENT_BUFFER, GENERIC_READ, GENERIC_WRITE, HANDLE, LocalFree,
};
use windows_sys::Win32::Security::Authorization::ConvertStringSecurityDescriptorToSecurityDescriptorW;
use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, GetKernelObjectSecurity, GetTokenInformation, OWNER_SECURITY_INFORMATION,
    PROTECTED_DACL_SECURITY_INFORMATION, SE_DACL_PROTECTED, SECURITY_ATTRIBUTES, SetKernelObjectSecurity,
    TOKEN_INFORMATION_CLASS, TOKEN_QUERY, TokenOwner, TokenUser, UNPROTECTED_DACL_SECURITY_INFORMATION,
};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_FLAG_OPEN_REPARSE_POINT, READ_CONTROL, WRITE_DAC,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// Administrators and the system, who may do anything anyway, and everybody, to whom all files belong where a file
/// system knows no owners.
const ANYWAY: [&str; 3] = ["S-1-5-32-544", "S-1-5-18", "S-1-1-0"];

/// The text of the security identifier (SID) that these bytes begin with.
fn text_of_sid(bytes: &[u8]) -> Option<String> {
    let ([revision, count, authority @ ..], subs) = bytes.split_first_chunk::<8>()?;
    let authority = authority.iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    let subs = subs.as_chunks::<4>().0.get(..usize::from(*count))?;
    let subs: String = subs.iter().map(|sub| format!("-{}", u32::from_le_bytes(*sub))).collect();
    Some(format!("S-{revision}-{authority}{subs}"))
}

/// A SID of this process: that of its user, or of the owner of files that it makes.
fn own_sid(class: TOKEN_INFORMATION_CLASS) -> io::Result<String> {
    let mut token: HANDLE = null_mut();
    // SAFETY: the call takes no pointer and cannot fail; its handle needs no closing.
    let process = unsafe { GetCurrentProcess() };
    // SAFETY: the handle is that of this process, and `token` is writable.
    let opened = unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) };
    done(opened)?;
    // The type of the file is never asked for: `token` only has to be closed.
    // SAFETY: the call has just opened it.
    let token = unsafe { owned(token) }?;
    // The structure begins with a pointer to the SID, which stands behind it. A SID has at most 68 bytes.
    let mut buffer = [0usize; 64];
    let (len, mut used) = (size_of_val(&buffer) as u32, 0);
    let at = buffer.as_mut_ptr().cast::<c_void>();
    // SAFETY: the handle is open as long as `token` lives; `at` leads to `len` writable bytes, aligned for pointers.
    let told = unsafe { GetTokenInformation(handle(&token), class, at, len, &raw mut used) };
    done(told)?;
    let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let sid = buffer[0].checked_sub(buffer.as_ptr().addr()).and_then(|start| bytes.get(start..));
    sid.and_then(text_of_sid).ok_or_else(|| io::Error::other("the system told no user"))
}

/// A security descriptor of the system's making.
struct Descriptor(*mut c_void);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the call that made the descriptor says to free it by this; nobody has the pointer afterwards.
        let _ = unsafe { LocalFree(self.0) };
    }
}

/// The descriptor that gives everything to this user, and nothing to anybody else; with `inherited`, also in what is
/// made in the folder.
fn of_owner_alone(inherited: &str) -> io::Result<Descriptor> {
    let user = own_sid(TokenUser)?;
    let text: Vec<u16> = format!("O:{user}D:P(A;{inherited};FA;;;{user})\0").encode_utf16().collect();
    let mut descriptor = null_mut();
    // SAFETY: `text` ends with a zero, `descriptor` is writable, and the length of the descriptor may be left out.
    let made = unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            text.as_ptr(),
            1,
            &raw mut descriptor,
            null_mut(),
        )
    };
    done(made).map(|()| Descriptor(descriptor))
}

fn attributes(descriptor: &Descriptor) -> SECURITY_ATTRIBUTES {
    SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: 0,
    }
}

/// Makes a file that only this user may open, and opens it for reading and writing.
///
/// # Errors
/// Those of the system, and that the name is taken.
pub(super) fn create_private(path: &Path, share: u32, flags: u32) -> io::Result<File> {
    let (path, descriptor) = (wide(path)?, of_owner_alone("")?);
    let (attributes, access) = (attributes(&descriptor), GENERIC_READ | GENERIC_WRITE);
    // A link that leads nowhere is an entry of this name too.
    let flags = flags | FILE_FLAG_OPEN_REPARSE_POINT;
    // SAFETY: `path` ends with a zero; `attributes` and the descriptor in it live until the call returns; no template
    // is given.
    let opened = unsafe {
        CreateFileW(path.as_ptr(), access, share, &raw const attributes, CREATE_NEW, flags, null_mut())
    };
    // SAFETY: the call has just opened it.
    unsafe { owned(opened) }
}

/// Makes a folder that only this user may use, and files in it too.
///
/// # Errors
/// Those of the system, and that the name is taken.
pub(super) fn create_private_folder(path: &Path) -> io::Result<()> {
    let (path, descriptor) = (wide(path)?, of_owner_alone("OICI")?);
    let attributes = attributes(&descriptor);
    // SAFETY: `path` ends with a zero; `attributes` and the descriptor in it live until the call returns.
    let made = unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) };
    done(made)
}

/// Parts of the descriptor of an open file, aligned for the system.
fn descriptor_of(file: &File, parts: u32) -> io::Result<Vec<u64>> {
    let mut words = vec![0u64; 128];
    loop {
        let (len, mut needed) = (8 * words.len() as u32, 0);
        let at = words.as_mut_ptr().cast::<c_void>();
        // SAFETY: the handle is open as long as `file` is borrowed; `at` leads to `len` writable bytes.
        let told = unsafe { GetKernelObjectSecurity(handle(file), parts, at, len, &raw mut needed) };
        match done(told) {
            Err(e) if is_any(&e, &[ERROR_INSUFFICIENT_BUFFER]) && needed > len => {
                words.resize(needed.div_ceil(8) as usize, 0);
            }
            done => return done.map(|()| words),
        }
    }
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Tells whether an open file belongs to this user, or to somebody who may do anything anyway.
///
/// # Errors
/// Those of the system.
pub(super) fn is_own(file: &File) -> io::Result<bool> {
    let bytes = bytes_of(&descriptor_of(file, OWNER_SECURITY_INFORMATION)?);
    // The offset of the owner stands in bytes 4 to 7; zero means none.
    let start = bytes.get(4..8).map_or(0, |at| u32::from_le_bytes([at[0], at[1], at[2], at[3]]));
    let owner = bytes.get(start as usize..).filter(|_| start > 0).and_then(text_of_sid);
    let Some(owner) = owner else { return Ok(false) };
    Ok(ANYWAY.contains(&owner.as_str()) || owner == own_sid(TokenUser)? || owner == own_sid(TokenOwner)?)
}

/// # Safety
/// The pointer leads to a whole descriptor.
unsafe fn set(file: &File, parts: u32, descriptor: *mut c_void) -> io::Result<()> {
    let file = open_again(file, WRITE_DAC, ALL)?;
    // SAFETY: the handle is open as long as `file` lives; the descriptor is whole, as the caller promises.
    let result = unsafe { SetKernelObjectSecurity(handle(&file), parts, descriptor) };
    done(result)
}

/// Takes an open file away from all but this user.
///
/// # Errors
/// Those of the system.
pub(super) fn keep_from_others(file: &File) -> io::Result<()> {
    let descriptor = of_owner_alone("")?;
    // SAFETY: the system made the descriptor, which lives until the call returns.
    unsafe { set(file, DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION, descriptor.0) }
}

/// Gives an open entry the permissions of another, and whether those of its folder count too.
///
/// # Errors
/// Those of the system.
pub(super) fn copy_permissions(of: &File, to: &File) -> io::Result<()> {
    let of = open_again(of, READ_CONTROL, ALL)?;
    let mut words = descriptor_of(&of, DACL_SECURITY_INFORMATION)?;
    // Its bytes 2 and 3 are its flags.
    let control = (words[0].to_le() >> 16) as u16;
    let inherits = if control & SE_DACL_PROTECTED != 0 {
        PROTECTED_DACL_SECURITY_INFORMATION
    } else {
        UNPROTECTED_DACL_SECURITY_INFORMATION
    };
    // SAFETY: the system wrote the descriptor into `words`, which live until the call returns.
    unsafe { set(to, DACL_SECURITY_INFORMATION | inherits, words.as_mut_ptr().cast::<c_void>()) }
}

/// Tells whether only this user has rights to an open entry, and the system, which Wine adds.
#[cfg(test)]
pub(super) fn is_for_owner_alone(file: &File) -> io::Result<bool> {
    let bytes = bytes_of(&descriptor_of(file, DACL_SECURITY_INFORMATION)?);
    let number = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    // The offset of the list; in it, the number of entries; in each, its length, and its SID behind its rights.
    let list = number(16);
    let mut at = list + 8;
    let mut all = Vec::new();
    for _ in 0..number(list + 4) {
        all.extend(text_of_sid(&bytes[at + 8..]));
        at += number(at + 2);
    }
    let user = own_sid(TokenUser)?;
    Ok(list > 0 && !all.is_empty() && all.iter().all(|sid| *sid == user || sid == "S-1-5-18"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_told_as_the_system_writes_them() {
        let admins = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0, 9, 9];
        assert_eq!(text_of_sid(&admins).as_deref(), Some("S-1-5-32-544"));
        assert_eq!(text_of_sid(&admins[..15]), None);
        assert!(own_sid(TokenUser).unwrap().starts_with("S-1-5-"));
    }
}
