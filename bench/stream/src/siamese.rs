//! Calls of siamese's C interface (`siamese.h`, version 5) that a stream needs.

// This file calls C++, and makes slices over memory that siamese owns.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::{null, null_mut};
use std::slice;

const VERSION: c_int = 5;
const SUCCESS: c_int = 0;

#[repr(C)]
struct RawOriginal {
    number: c_uint,
    len: c_uint,
    data: *const u8,
}

#[repr(C)]
struct RawRecovery {
    len: c_uint,
    data: *const u8,
}

unsafe extern "C" {
    fn siamese_init_(version: c_int) -> c_int;
    fn siamese_encoder_create() -> *mut c_void;
    fn siamese_encoder_free(encoder: *mut c_void);
    fn siamese_encoder_add(encoder: *mut c_void, packet: *mut RawOriginal) -> c_int;
    fn siamese_encoder_remove_before(encoder: *mut c_void, first_kept: c_uint) -> c_int;
    fn siamese_encode(encoder: *mut c_void, recovery: *mut RawRecovery) -> c_int;
    fn siamese_decoder_create() -> *mut c_void;
    fn siamese_decoder_free(decoder: *mut c_void);
    fn siamese_decoder_add_original(decoder: *mut c_void, packet: *const RawOriginal) -> c_int;
    fn siamese_decoder_add_recovery(decoder: *mut c_void, packet: *const RawRecovery) -> c_int;
    fn siamese_decoder_is_ready(decoder: *mut c_void) -> c_int;
    fn siamese_decode(decoder: *mut c_void, packets: *mut *mut RawOriginal, count: *mut c_uint) -> c_int;
}

/// Makes the tables that all calls need.
fn init() {
    // SAFETY: the call takes a number, and may be repeated.
    let result = unsafe { siamese_init_(VERSION) };
    assert_eq!(result, SUCCESS, "siamese runs on this machine, in this version");
}

/// A sender's side.
pub struct Encoder {
    /// Result of `siamese_encoder_create`, freed with this value.
    raw: *mut c_void,
}

impl Encoder {
    pub fn new() -> Encoder {
        init();
        // SAFETY: `init` came first; the call needs nothing more.
        let raw = unsafe { siamese_encoder_create() };
        assert!(!raw.is_null(), "there is memory for an encoder");
        Encoder { raw }
    }

    /// Adds a packet and returns its number; `None` if no more are taken.
    pub fn add(&mut self, payload: &[u8]) -> Option<u32> {
        let mut packet = RawOriginal { number: 0, len: payload.len() as c_uint, data: payload.as_ptr() };
        // SAFETY: `raw` is an encoder that was not freed. `packet` describes a slice that is readable during the call,
        // which copies it.
        let result = unsafe { siamese_encoder_add(self.raw, &mut packet) };
        (result == SUCCESS).then_some(packet.number)
    }

    /// Forgets the packets before `first_kept`.
    pub fn remove_before(&mut self, first_kept: u32) {
        // SAFETY: `raw` is an encoder that was not freed; any number is allowed.
        let result = unsafe { siamese_encoder_remove_before(self.raw, first_kept) };
        assert_eq!(result, SUCCESS, "packets are removed");
    }

    /// The next repair packet over all its packets.
    pub fn encode(&mut self) -> &[u8] {
        let mut recovery = RawRecovery { len: 0, data: null() };
        // SAFETY: `raw` is an encoder that was not freed; `recovery` may be written.
        let result = unsafe { siamese_encode(self.raw, &mut recovery) };
        assert_eq!(result, SUCCESS, "a repair packet is made");
        // SAFETY: on success this many bytes stay valid until the next call, which needs `self` mutably.
        unsafe { slice::from_raw_parts(recovery.data, recovery.len as usize) }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: `raw` is an encoder, and nobody uses it after this.
        unsafe { siamese_encoder_free(self.raw) };
    }
}

/// A receiver's side.
pub struct Decoder {
    /// Result of `siamese_decoder_create`, freed with this value.
    raw: *mut c_void,
}

impl Decoder {
    pub fn new() -> Decoder {
        init();
        // SAFETY: `init` came first; the call needs nothing more.
        let raw = unsafe { siamese_decoder_create() };
        assert!(!raw.is_null(), "there is memory for a decoder");
        Decoder { raw }
    }

    /// Takes packet `number`. The decoder may refuse it: after too many losses it takes no more.
    pub fn add_original(&mut self, number: u32, payload: &[u8]) {
        let packet = RawOriginal { number, len: payload.len() as c_uint, data: payload.as_ptr() };
        // SAFETY: `raw` is a decoder that was not freed. `packet` describes a slice that is readable during the call,
        // which copies it.
        unsafe { siamese_decoder_add_original(self.raw, &packet) };
    }

    /// Takes a repair packet. The decoder may refuse it, as above.
    pub fn add_recovery(&mut self, bytes: &[u8]) {
        let packet = RawRecovery { len: bytes.len() as c_uint, data: bytes.as_ptr() };
        // SAFETY: `raw` is a decoder that was not freed. `packet` describes a slice that is readable during the call,
        // which copies it.
        unsafe { siamese_decoder_add_recovery(self.raw, &packet) };
    }

    /// The packets that can be rebuilt now, if the decoder reports any.
    pub fn decode(&mut self) -> Option<Rebuilt<'_>> {
        // SAFETY: `raw` is a decoder that was not freed.
        if unsafe { siamese_decoder_is_ready(self.raw) } != SUCCESS {
            return None;
        }
        let (mut packets, mut count) = (null_mut(), 0);
        // SAFETY: `raw` is a decoder that was not freed; both results may be written.
        let result = unsafe { siamese_decode(self.raw, &mut packets, &mut count) };
        let packets: &[RawOriginal] = if result == SUCCESS && count > 0 {
            // SAFETY: on success this many packets stay valid until the next call, which needs `self` mutably.
            unsafe { slice::from_raw_parts(packets, count as usize) }
        } else {
            &[]
        };
        (result == SUCCESS).then_some(Rebuilt { packets, of: PhantomData })
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: `raw` is a decoder, and nobody uses it after this.
        unsafe { siamese_decoder_free(self.raw) };
    }
}

/// Rebuilt packets, whose bytes belong to the decoder.
pub struct Rebuilt<'a> {
    packets: &'a [RawOriginal],
    of: PhantomData<&'a Decoder>,
}

impl<'a> Rebuilt<'a> {
    /// Their numbers and payloads.
    pub fn packets(&self) -> impl Iterator<Item = (u32, &'a [u8])> {
        self.packets.iter().map(|packet| {
            // SAFETY: the packets of a successful call of `siamese_decode` describe bytes that stay until the next call
            // on the decoder, which is borrowed for that long.
            (packet.number, unsafe { slice::from_raw_parts(packet.data, packet.len as usize) })
        })
    }
}
